/**
 * A specification of levels, lists and `also`, and every program up to a bound. It knows nothing of routers, Koa or
 * HTTP: a program is a row of decisions from the application to the operation, and a mounting is how its routers are
 * put together, which must not matter.
 */

// --- programs

/**
 * What a level says: nothing, public, one key, one of two keys, or one more key. A level has two keys, `0a` and `0b` at
 * the outermost.
 */
export const decisions = ['unset', 'null', 'one', 'list', 'also'] as const
export type Decision = (typeof decisions)[number]

/** From the outermost router to the operation, which is the last. */
export type Program = ReadonlyArray<Decision>

/** When a router gets its contents: before it is guarded, after, or after its `routes()` were taken. */
const moments = ['before', 'after', 'served'] as const
type Moment = (typeof moments)[number]

/** How routers are put together: the moment of each, and whether a nested one has its path at `use` or as a prefix. */
export interface Mounting {
  readonly moments: ReadonlyArray<Moment>
  readonly by: 'path' | 'prefix'
}

const wordsOf = <A>(letters: ReadonlyArray<A>, length: number): ReadonlyArray<ReadonlyArray<A>> =>
  length === 0 ? [[]] : wordsOf(letters, length - 1).flatMap((word) => letters.map((letter) => [...word, letter]))

/** All programs with so many routers inside each other. */
export const programsOf = (depth: number): ReadonlyArray<Program> => wordsOf(decisions, depth + 1)

/** All mountings of so many routers. A single one is not nested. */
export const mountingsOf = (depth: number): ReadonlyArray<Mounting> =>
  wordsOf(moments, depth).flatMap((given) =>
    (depth === 1 ? (['path'] as const) : (['path', 'prefix'] as const)).map((by) => ({ moments: given, by })),
  )

// --- the rule

/** A key: the level, and which of its two. */
export type Key = string

/** What is demanded: one key of each clause, in this order. None: the operation is public. */
type Demanded = ReadonlyArray<ReadonlyArray<Key>>

/** `null` opens, one key or a list replaces what the levels outside decided, `also` adds to it, `unset` leaves it. */
export const demandedBy = (program: Program): Demanded =>
  program.reduce<Demanded>((outer, decision, level) => {
    switch (decision) {
      case 'unset':
        return outer
      case 'null':
        return []
      case 'one':
        return [[`${level}a`]]
      case 'list':
        return [[`${level}a`, `${level}b`]]
      case 'also':
        return [...outer, [`${level}a`]]
    }
  }, [])

/** The principal of a program whose clauses were passed with these keys: `also` keeps what it inherits. */
const principalOf = (program: Program, passed: ReadonlySet<Key>): unknown =>
  program.reduce<unknown>((outer, decision, level) => {
    switch (decision) {
      case 'unset':
        return outer
      case 'null':
        return undefined
      case 'one':
        return `${level}a`
      case 'list':
        return passed.has(`${level}a`) ? `${level}a` : `${level}b`
      case 'also':
        return { inherited: outer, own: `${level}a` }
    }
  }, undefined)

/** What must happen: the handler runs with a principal, or a 401 offers the keys of the clauses that are left. */
type Outcome =
  | { readonly passes: true; readonly principal: unknown }
  | { readonly passes: false; readonly offers: ReadonlyArray<Key> }

export const outcomeOf = (program: Program, right: ReadonlySet<Key>): Outcome => {
  const demanded = demandedBy(program)
  const failing = demanded.findIndex((clause) => !clause.some((key) => right.has(key)))
  return failing === -1
    ? { passes: true, principal: principalOf(program, right) }
    : { passes: false, offers: demanded.slice(failing).flat() }
}

// --- requests

/** A request: the keys that are right, and those that are sent and wrong. */
export interface Asked {
  readonly right: ReadonlySet<Key>
  readonly wrong: ReadonlySet<Key>
}

const allKeys = (program: Program): ReadonlyArray<Key> => program.flatMap((_, level) => [`${level}a`, `${level}b`])

/**
 * The requests in which programs differ: nothing, every key, every key wrong, and for each clause one without it, one
 * with its second key only, and the least that passes.
 */
export const requestsOf = (program: Program): ReadonlyArray<Asked> => {
  const keys = allKeys(program)
  const demanded = demandedBy(program)
  const asked = (right: ReadonlyArray<Key>, wrong: ReadonlyArray<Key> = []): Asked => ({
    right: new Set(right),
    wrong: new Set(wrong),
  })
  const without = (some: ReadonlyArray<Key>) => keys.filter((key) => !some.includes(key))
  return [
    asked([]),
    asked(keys),
    asked([], keys),
    ...demanded.flatMap((clause) => [
      asked(without(clause)),
      asked(without(clause), clause),
      ...(clause.length > 1 ? [asked(without(clause.slice(0, 1)), clause.slice(0, 1))] : []),
    ]),
    ...(demanded.length > 0 ? [asked(demanded.map(([first]) => first!)), asked(without(demanded.flat()))] : []),
  ]
}

/** How many programs, mountings and requests there are up to a depth. */
export const countsUpTo = (depth: number, mountings: (depth: number) => ReadonlyArray<Mounting> = mountingsOf) => {
  const depths = Array.from({ length: depth }, (_, at) => at + 1)
  const sum = (of: (depth: number) => number) => depths.reduce((total, one) => total + of(one), 0)
  const requests = (one: number) => programsOf(one).reduce((total, program) => total + requestsOf(program).length, 0)
  return {
    programs: sum((one) => programsOf(one).length),
    applications: sum((one) => programsOf(one).length * mountings(one).length),
    requests: sum((one) => requests(one) * mountings(one).length),
  }
}
