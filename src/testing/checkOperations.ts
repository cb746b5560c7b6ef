/**
 * Every operation of a served application is sent what must be refused, and every breach is kept.
 */
import { blindAttacks, informedAttacks, type Attack } from './Attack.js'
import { refuse, type Breach } from './BrokenLaws.js'
import { judge, judgePublic, type Asked } from './judgeAnswer.js'
import { isOpen, type Filling, type Tested } from './operations.js'
import type { Served } from './probe.js'
import { impostors } from './requests.js'
import { pathOf, together, type Line, type Sketch } from './Sketch.js'
import type { Tripwires } from './tripwires.js'

/** What is expected of an application. */
export interface GuardedOptions extends Filling {
  /** The operations that anyone may call, as `GET /health`; any other one that is public is a breach. Default: not looked at. */
  readonly public?: ReadonlyArray<string>
  /** Requests that some operations let in: they are sent misspelled and repeated, too. */
  readonly valid?: ReadonlyArray<Sketch>
  /** Fields of every request, as `Host`. */
  readonly fields?: ReadonlyArray<Line>
  /** What a refusal may answer. Default 401 without a credential; with a wrong one also 400, 403 and 431. */
  readonly statuses?: ReadonlyArray<number>
  /** How long an answer may take, in milliseconds. Default 5000. */
  readonly within?: number
}

/** What was done to an operation. */
export interface CheckedOperation {
  /** As `GET /pets`. */
  readonly operation: string
  /** `optional`: anyone may call, also as nobody. */
  readonly protection: 'guarded' | 'optional' | 'public'
  /** How many requests it was sent. */
  readonly requests: number
}

// -------------------------------------------------------------------------------------
// what is sent
// -------------------------------------------------------------------------------------

const nothing: Attack = { what: 'no credential', sketch: {}, secrets: [] }

// Once without a credential by every method; the attacks by one, because one guard stands before all
const attacksOn = (
  { methods, places, description }: Tested,
  target: string,
  { valid = [], fields = [] }: GuardedOptions,
): ReadonlyArray<Attack> => {
  const [method = 'GET'] = methods
  const to = (sketch: Sketch, by: string): Sketch =>
    together({ url: target, fields }, sketch, { method: by, url: pathOf({ url: target }) })
  const bare = methods.map((by) => ({ ...nothing, sketch: to({}, by) }))
  if (description === undefined) return bare
  const attacks = [
    ...impostors.map((sketch) => ({ ...nothing, sketch })),
    ...blindAttacks(places),
    ...informedAttacks({ places, valid }),
  ]
  return [
    ...bare,
    ...attacks.map(({ rest, ...attack }) => ({
      ...attack,
      sketch: to(attack.sketch, method),
      ...(rest !== undefined && { rest: to(rest, method) }),
    })),
  ]
}

// -------------------------------------------------------------------------------------
// what came of it
// -------------------------------------------------------------------------------------

const AT_ONCE = 8

/** Checks operations one after the other, and rejects with every breach. */
export const checkAll = async (
  served: Served,
  wires: Tripwires,
  operations: ReadonlyArray<Tested>,
  options: GuardedOptions,
): Promise<ReadonlyArray<CheckedOperation>> => {
  let sent = 0
  const ask = async (sketch: Sketch): Promise<Asked> => {
    const probe = String(++sent)
    return {
      sketch,
      answer: await served.ask(probe, sketch),
      trace: wires.traceOf(probe),
      error: served.errorOf(probe),
    }
  }
  const checked: CheckedOperation[] = []
  const breaches: Breach[] = []
  for (const tested of operations) {
    const attacks = tested.target === undefined ? [] : attacksOn(tested, tested.target, options)
    breaches.push(
      ...(tested.target === undefined ? [unreachable(tested)] : await checkOperation(ask, tested, attacks, options)),
    )
    const protection = tested.description === undefined ? 'public' : isOpen(tested) ? 'optional' : 'guarded'
    checked.push({ operation: tested.name, protection, requests: attacks.length })
  }
  refuse('an application', [...breaches, ...unlisted(operations, options.public)])
  return checked
}

const checkOperation = async (
  ask: (sketch: Sketch) => Promise<Asked>,
  tested: Tested,
  attacks: ReadonlyArray<Attack>,
  { statuses }: GuardedOptions,
): Promise<ReadonlyArray<Breach>> => {
  const judged = tested.description === undefined ? judgePublic : judge
  const breaches: Breach[] = []
  const check = async (attack: Attack): Promise<boolean> => {
    const { sketch, rest } = attack
    const isLawful = rest !== undefined && (async () => (await ask(rest)).trace.ran !== undefined)
    const asked = await ask(sketch)
    breaches.push(...[(await judged(asked, { tested, attack, statuses, isLawful })) ?? []].flat())
    return asked.answer instanceof Error
  }
  for (let at = 0; at < attacks.length; at += AT_ONCE) {
    const unanswered = await Promise.all(attacks.slice(at, at + AT_ONCE).map(check))
    // each of the others would wait as long
    if (unanswered.includes(true)) break
  }
  return summed(breaches)
}

// Of breaches of one law the first, and how many there are
const summed = (breaches: ReadonlyArray<Breach>): ReadonlyArray<Breach> => {
  const laws = [...new Set(breaches.map(({ law }) => law))]
  return laws.flatMap((law) => {
    const [first, ...more] = breaches.filter((breach) => breach.law === law)
    const others = more.length === 0 ? '' : `\n(and ${more.length} more)`
    return first === undefined ? [] : [{ ...first, counterexample: first.counterexample + others }]
  })
}

const unreachable = ({ name }: Tested): Breach => ({
  law: `${name}: nobody can tell where to send requests`,
  counterexample: name,
  fix: `say so: expectGuarded(app, router, { paths: { ${JSON.stringify(name)}: '/...' } })`,
})

const unlisted = (
  operations: ReadonlyArray<Tested>,
  listed: ReadonlyArray<string> | undefined,
): ReadonlyArray<Breach> => {
  if (listed === undefined) return []
  const open = operations.filter(isOpen).map(({ name }) => name)
  return [
    ...open
      .filter((name) => !listed.includes(name))
      .map((name) => ({
        law: `${name}: public, but not listed`,
        counterexample: name,
        fix: 'guard it with withAuth(a), or list it in { public }',
      })),
    ...listed
      .filter((name) => !open.includes(name))
      .map((name) => ({
        law: `${name}: listed as public, but it is not`,
        counterexample: `public are ${open.join(', ') || 'none'}`,
        fix: 'take it from { public }, or write it as the router has it: method, blank, pattern',
      })),
  ]
}
