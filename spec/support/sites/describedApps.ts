/**
 * Random applications whose document is compared with their behaviour: trees of routers, levels and described
 * authenticators, and a client that knows only the document and its credentials.
 *
 * No credential is in the authenticator of one level twice, and those of `also` are monotone. Otherwise `optional` and
 * `firstPresent` take a part of an all-of that is sent for another member as a failed attempt, which no list of
 * alternatives can say.
 */
import Router, { type RouterInstance } from '@koa/router'
import fc, { type Arbitrary } from 'fast-check'
import type { Context } from 'koa'
import { allOf, also, anyOf, optional, requireScopes, withAuth, type Authenticator, type Guard } from 'koa-with-auth'
import { firstPresent, lenient } from 'koa-with-auth/fp'
import { kinds, type Kind, type Principal } from '../models/sentKinds.js'

// --- authenticators

interface Built {
  readonly authenticator: Authenticator<unknown>
  /** Whether it also admits anonymous callers. */
  readonly open: boolean
}

const scopes = fc.constantFrom<readonly [string, ...string[]]>(['read'], ['write'], ['read', 'write'])

const leaf = ({ authenticator }: Kind): Arbitrary<Built> =>
  fc
    .option(scopes, { nil: undefined })
    .map((demanded) =>
      demanded === undefined
        ? authenticator
        : requireScopes(demanded, { granted: ({ scopes }: Principal) => scopes })(authenticator),
    )
    .map((made) => ({ authenticator: made, open: false }))

// An optional member is last, or there is none
const inOrder = (members: ReadonlyArray<Built>): ReadonlyArray<Built> => {
  const [last] = members.filter(({ open }) => open)
  const closed = members.filter(({ open }) => !open)
  return last === undefined ? closed : [...closed, last]
}

const group = (name: 'anyOf' | 'allOf' | 'firstPresent', members: ReadonlyArray<Built>): Built => {
  if (name === 'allOf') {
    return {
      authenticator: allOf(members.map(({ authenticator }) => authenticator) as [Authenticator<unknown>]),
      open: members.every(({ open }) => open),
    }
  }
  const ordered = inOrder(members)
  const list = ordered.map(({ authenticator }) => authenticator) as [Authenticator<unknown>]
  return { authenticator: name === 'anyOf' ? anyOf(list) : firstPresent(list), open: ordered.some(({ open }) => open) }
}

const relaxed = (how: 'as it is' | 'optional' | 'lenient', built: Built): Built =>
  how === 'as it is'
    ? built
    : { authenticator: (how === 'optional' ? optional : lenient)(built.authenticator), open: true }

// Every kind occurs once
const tree = (of: ReadonlyArray<Kind>): Arbitrary<Built> => {
  const [first, second, ...rest] = of
  const strict =
    first === undefined
      ? fc.constant({ authenticator: anyOf([() => false]), open: false })
      : second === undefined
        ? leaf(first)
        : fc
            .tuple(
              fc.constantFrom('anyOf' as const, 'allOf' as const, 'firstPresent' as const),
              fc.oneof(fc.constant([[first], [second, ...rest]]), fc.constant([[first, second], rest])),
            )
            .chain(([name, parts]) =>
              fc.tuple(...parts.filter((part) => part.length > 0).map(tree)).map((members) => group(name, members)),
            )
  return fc
    .tuple(strict, fc.constantFrom('as it is', 'as it is', 'as it is', 'optional', 'lenient'))
    .map(([built, how]) => relaxed(how, built))
}

const treeAmong = (of: ReadonlyArray<Kind>): Arbitrary<Built> =>
  fc.shuffledSubarray([...of], { minLength: 1 }).chain(tree)

const addition = (of: ReadonlyArray<Kind>): Arbitrary<Built> =>
  fc
    .tuple(fc.shuffledSubarray([...of], { minLength: 1 }), fc.constantFrom('anyOf' as const, 'allOf' as const))
    .chain(([some, name]) => fc.tuple(...some.map(leaf)).map((members) => group(name, members)))

// --- routers

/** The decision of a level; `undefined` if it is undecided. */
type Decision = Guard<unknown> | undefined

const decision = (all: ReadonlyArray<Kind>): Arbitrary<Decision> =>
  fc.oneof(
    { weight: 2, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constant(withAuth(null) as Guard<unknown>) },
    { weight: 4, arbitrary: treeAmong(all.slice(0, 3)).map(({ authenticator }) => withAuth(authenticator)) },
    {
      weight: 2,
      // Safe: the result of `also` is a guard, and its types do not matter here
      arbitrary: addition(all.slice(3)).map(
        ({ authenticator }) => withAuth(also(authenticator)) as unknown as Guard<unknown>,
      ),
    },
  )

interface Node {
  readonly own: Decision
  readonly registration: Decision
  readonly operations: ReadonlyArray<Decision>
  readonly children: ReadonlyArray<Node>
  /** Whether it gets its operations before its level decides. */
  readonly early: boolean
}

const node = (all: ReadonlyArray<Kind>, depth: number): Arbitrary<Node> =>
  fc.record({
    own: decision(all),
    registration: decision(all),
    operations: fc.array(decision(all), { minLength: depth === 0 ? 1 : 0, maxLength: 2 }),
    children: depth === 0 ? fc.constant([]) : fc.array(node(all, depth - 1), { minLength: 1, maxLength: 2 }),
    early: fc.boolean(),
  })

/** An application, and the credentials of its operations. */
export interface DescribedApp {
  readonly router: RouterInstance
  readonly kinds: ReadonlyArray<Kind>
  /** The number of its operations. */
  readonly size: number
}

/** Counts the calls of all handlers. */
export const calls = { count: 0 }

const handler = (ctx: Context): void => {
  calls.count++
  ctx.body = 'in'
}

const wrapped = (by: Decision, router: RouterInstance): RouterInstance => (by === undefined ? router : by(router))

const routerOf = ({ own, operations, children, early }: Node): RouterInstance => {
  const fill = (router: RouterInstance): RouterInstance => {
    for (const [at, guard] of operations.entries()) {
      if (guard === undefined) router.get(`/o${at}`, handler)
      else router.get(`/o${at}`, guard, handler)
    }
    for (const [at, child] of children.entries()) {
      router.use(`/r${at}`, wrapped(child.registration, routerOf(child)).routes())
    }
    return router
  }
  return early ? wrapped(own, fill(new Router())) : fill(wrapped(own, new Router()))
}

const sizeOf = ({ operations, children }: Node): number =>
  children.reduce((sum, child) => sum + sizeOf(child), operations.length)

/** Random applications. */
export const describedApp: Arbitrary<DescribedApp> = kinds.chain((all) =>
  node(all, 2).map((root) => ({ router: routerOf(root), kinds: all, size: sizeOf(root) })),
)
