/**
 * Sends each operation of a served application requests that it must refuse, and collects all violations.
 */
import { blindAttacks, informedAttacks, type Attack } from '../attacks/Attack.js'
import { refuse, type Violation } from '../LawViolations.js'
import { judge, judgePublic, type Asked } from './judge.js'
import { isOpen, type Filling, type Tested } from './operations.js'
import type { Served } from './serve.js'
import { impostors } from '../request/fixedRequests.js'
import { pathOf, mergeRequests, type HeaderLine, type RequestSpec } from '../request/RequestSpec.js'
import { isEntryOf, listedName, whyMissing } from '../../koa/publicList.js'
import type { Tripwires } from './tripwires.js'

/** What is expected of an application. */
export interface GuardedOptions extends Filling {
  /**
   * The operations that anyone may call, such as `GET /health`, or `docs` for a docs page: the same list as for `seal`. Any other public
   * operation is a violation. Default: none.
   */
  readonly public?: ReadonlyArray<string> | undefined
  /** Requests that some operations let in. They are also sent misspelled and repeated. */
  readonly valid?: ReadonlyArray<RequestSpec> | undefined
  /** Header fields that are added to every request, such as `Host`. */
  readonly fields?: ReadonlyArray<HeaderLine> | undefined
  /** The statuses that a refusal may have. Default: 401 without a credential; with a wrong one also 400, 403 and 431. */
  readonly statuses?: ReadonlyArray<number> | undefined
  /** How long an answer may take, in milliseconds. Default 5000. */
  readonly within?: number | undefined
}

/** The check of an operation. */
export interface CheckedOperation {
  /** Its name, such as `GET /pets`. */
  readonly operation: string
  /** `optional`: anyone may call, also anonymously. */
  readonly protection: 'guarded' | 'optional' | 'public'
  /** How many requests were sent. */
  readonly requests: number
}

// -------------------------------------------------------------------------------------
// what is sent
// -------------------------------------------------------------------------------------

const nothing: Attack = { what: 'no credential', spec: {}, secrets: [] }

// One request without a credential for each method. The attacks use one method, because all methods have the same guard
const attacksOn = (
  { methods, locations, description }: Tested,
  target: string,
  { valid = [], fields = [] }: GuardedOptions,
): ReadonlyArray<Attack> => {
  const [method = 'GET'] = methods
  const to = (spec: RequestSpec, by: string): RequestSpec =>
    mergeRequests({ url: target, fields }, spec, { method: by, url: pathOf({ url: target }) })
  const bare = methods.map((by) => ({ ...nothing, spec: to({}, by) }))
  if (description === undefined) return bare
  const attacks = [
    ...impostors.map((spec) => ({ ...nothing, spec })),
    ...blindAttacks(locations),
    ...informedAttacks({ locations, valid }),
  ]
  return [
    ...bare,
    ...attacks.map(({ rest, ...attack }) => ({
      ...attack,
      spec: to(attack.spec, method),
      ...(rest !== undefined && { rest: to(rest, method) }),
    })),
  ]
}

// results

const AT_ONCE = 8

/** Checks operations one after the other, and rejects with every violation. */
export const checkAll = async (
  served: Served,
  wires: Tripwires,
  operations: ReadonlyArray<Tested>,
  options: GuardedOptions,
): Promise<ReadonlyArray<CheckedOperation>> => {
  let sent = 0
  const ask = async (spec: RequestSpec): Promise<Asked> => {
    const probe = String(++sent)
    return {
      spec,
      answer: await served.ask(probe, spec),
      trace: wires.traceOf(probe),
      error: served.errorOf(probe),
    }
  }
  const checked: CheckedOperation[] = []
  const violations: Violation[] = []
  for (const tested of operations) {
    const attacks = tested.target === undefined ? [] : attacksOn(tested, tested.target, options)
    violations.push(
      ...(tested.target === undefined ? [unreachable(tested)] : await checkOperation(ask, tested, attacks, options)),
    )
    const protection = tested.description === undefined ? 'public' : isOpen(tested) ? 'optional' : 'guarded'
    checked.push({ operation: tested.name, protection, requests: attacks.length })
  }
  refuse('an application', [...violations, ...unlisted(operations, options.public)])
  return checked
}

const checkOperation = async (
  ask: (spec: RequestSpec) => Promise<Asked>,
  tested: Tested,
  attacks: ReadonlyArray<Attack>,
  { statuses }: GuardedOptions,
): Promise<ReadonlyArray<Violation>> => {
  const judged = tested.description === undefined ? judgePublic : judge
  const violations: Violation[] = []
  const check = async (attack: Attack): Promise<boolean> => {
    const { spec, rest } = attack
    const isLawful = rest !== undefined && (async () => (await ask(rest)).trace.ran !== undefined)
    const asked = await ask(spec)
    violations.push(...[(await judged(asked, { tested, attack, statuses, isLawful })) ?? []].flat())
    return asked.answer instanceof Error
  }
  for (let at = 0; at < attacks.length; at += AT_ONCE) {
    const unanswered = await Promise.all(attacks.slice(at, at + AT_ONCE).map(check))
    // each of the others would take the time limit, too
    if (unanswered.includes(true)) break
  }
  return summed(violations)
}

// The first violation of each law, and the number of others
const summed = (violations: ReadonlyArray<Violation>): ReadonlyArray<Violation> => {
  const laws = [...new Set(violations.map(({ law }) => law))]
  return laws.flatMap((law) => {
    const [first, ...more] = violations.filter((violation) => violation.law === law)
    const others = more.length === 0 ? '' : `\n(and ${more.length} more)`
    return first === undefined ? [] : [{ ...first, counterexample: first.counterexample + others }]
  })
}

const unreachable = ({ name }: Tested): Violation => ({
  law: `${name}: the path for requests is unknown`,
  counterexample: name,
  fix: `name the path: expectGuarded(app, router, { paths: { ${JSON.stringify(name)}: '/...' } })`,
})

const unlisted = (operations: ReadonlyArray<Tested>, listed: ReadonlyArray<string> = []): ReadonlyArray<Violation> => {
  const open = operations.filter(isOpen)
  const names = open.map(({ name }) => name)
  return [
    ...open
      .filter((operation) => !listed.some((entry) => isEntryOf(operation, entry)))
      .map((operation) => ({
        law: `${operation.name}: public, but not listed`,
        counterexample: operation.name,
        fix: `guard it with withAuth(a), or list '${listedName(operation)}' in { public }`,
      })),
    ...listed
      .filter((entry) => !open.some((operation) => isEntryOf(operation, entry)))
      .map((entry) => ({
        law: `${entry}: listed as public, but it is not`,
        counterexample: whyMissing(entry, operations) ?? `public are ${names.join(', ') || 'none'}`,
        fix: 'remove it from { public }, or write it as the router has it: method, space, pattern',
      })),
  ]
}
