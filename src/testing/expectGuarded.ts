/** The check of a served application: every operation of a router refuses callers who are not authenticated. */
import { admitsAnonymous, challengesOf, type Description } from '../core/Description.js'
import * as is from '../core/checks.js'
import { checkOptions, type Checks } from '../core/options.js'
import { isEntryOf, listedName, whyMissing } from '../koa/operations.js'
import { checkRouter, type RouterInstance } from '../koa/router.js'
import { valuesAt } from './CredentialLocation.js'
import { throwViolations, type Violation } from './LawViolations.js'
import { blindAttacks, informedAttacks, leaked, type Attack } from './attacks.js'
import { probing, testedOf } from './probing.js'
import type { Application, Filling, HttpResponse, Probe, Tested } from './probing.js'
import { impostors, mergeRequests, printed, type HeaderLine, type RequestSpec } from './requests.js'

type Breach = readonly [law: string, fix: string]

const unreached: Breach = [
  'no request reached it',
  'is this the router that is mounted in the application? Name a path that leads to it in { params } or { paths }, and its host in { fields }',
]

/** Judges an operation that anyone may call: it must be reached, and refuse no request. */
const judgePublic = ({ answer, trace }: Probe, tested: Tested): Breach | undefined => {
  if (trace.ran?.by === tested || (trace.reached[0] ?? tested) !== tested) return undefined
  return answer instanceof Error || (answer.status !== 401 && answer.status !== 403)
    ? unreached
    : ['it is public, but refused', 'a guard or middleware in front of it refuses; it should admit every request']
}

/** Judges an attack on a guarded operation, before which no handler may run. `isLawful`: the rest of the request is let in alone. */
const judgeGuarded = async (
  { answer, trace: { ran, reached } }: Probe,
  tested: Tested,
  { what, secrets }: Attack,
  statuses: ReadonlyArray<number> | undefined,
  isLawful: () => Promise<boolean>,
): Promise<Breach | undefined> => {
  if (ran !== undefined && ran.by !== tested) {
    return [
      `${ran.by.name} answers instead`,
      `register ${tested.name} before ${ran.by.name}, or guard ${ran.by.name}; middleware that only calls next() belongs in router.use`,
    ]
  }
  if (ran !== undefined) {
    if ((isOpenOperation(tested) && ran.auth === undefined) || (await isLawful())) return undefined
    const fix = 'check the authenticator alone: laws.authenticator(a, { valid }).check()'
    return ['a handler ran without authentication', fix]
  }
  if (answer instanceof Error) return ['it gave no answer', 'the authenticator must settle within its time limit']
  if (leaked(JSON.stringify(answer.lines) + answer.body, secrets) !== undefined)
    return ['a credential that was sent is in the answer', 'answer constant strings']
  const isBare = what === noCredential.what
  const { status } = answer
  if (reached.length === 0 && (status === 404 || status === 405)) return unreached
  const isWanted = (statuses ?? [401]).includes(status) || (!isBare && MALFORMED.includes(status))
  if (!isWanted && status >= 500) {
    const fix = 'return false or a Left for a credential that is missing, strange or wrong; throw nothing'
    return ['an error instead of a refusal', fix]
  }
  if (!isWanted) {
    const fix = 'let the error mapper answer 401, or name the other statuses of a refusal in { statuses }'
    return [`it answers ${status} instead of ${(statuses ?? [401]).join(' or ')}`, fix]
  }
  if (status !== 401) return undefined
  // another guarded operation may come first, and offer its own challenge; so does a guard of the application
  const last = reached.at(-1)
  const demanded = last === undefined ? (tested.demandedAbove ?? tested.description) : last.description
  // a group offers only the challenges of members that have not passed
  return judgeChallenges(answer, isBare ? demanded : undefined)
}

const MALFORMED = [400, 403, 431]

const judgeChallenges = ({ lines }: HttpResponse, demanded: Description | undefined): Breach | undefined => {
  const challenges = valuesAt({ in: 'header', name: 'WWW-Authenticate' }, { fields: lines })
  const missing = demanded === undefined ? [] : challengesOf(demanded).map(({ scheme }) => scheme)
  const unnamed = missing.filter((scheme) => !challenges.some((line) => namesScheme(line, scheme.toLowerCase())))
  if (challenges.length > 0 && unnamed.length === 0) return undefined
  return [
    `a 401 without ${unnamed.length === 0 ? 'a challenge' : `the challenge ${unnamed.join(', ')}`}`,
    'leave WWW-Authenticate to the library: remove it from the error mapper and from middleware above',
  ]
}

// Several challenges may be in one line (RFC 9110 §11.6.1)
const namesScheme = (line: string, scheme: string): boolean =>
  line
    .toLowerCase()
    .split(/, */)
    .some((part) => part === scheme || part.startsWith(`${scheme} `))

/** How an application is checked. */
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

const isOpenOperation = ({ description }: Tested): boolean => description === undefined || admitsAnonymous(description)

const noCredential: Attack = { what: 'no credential', spec: {}, secrets: [] }

// One request without a credential for each method. The attacks use one method, because all methods have the same guard
const attacksOnOperation = (
  { methods, locations, description }: Tested,
  target: string,
  { valid = [], fields = [] }: GuardedOptions,
): ReadonlyArray<Attack> => {
  const [method = 'GET'] = methods
  const to = (spec: RequestSpec, by: string): RequestSpec =>
    mergeRequests({ url: target, fields }, spec, { method: by, url: target.split('?', 1)[0] })
  const bare = methods.map((by) => ({ ...noCredential, spec: to({}, by) }))
  if (description === undefined) return bare
  const attacks = [
    ...impostors.map((spec) => ({ ...noCredential, spec })),
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

const REQUESTS_AT_ONCE = 8

const checkOperation = async (
  ask: (spec: RequestSpec) => Promise<Probe>,
  tested: Tested,
  attacks: ReadonlyArray<Attack>,
  statuses: GuardedOptions['statuses'],
): Promise<ReadonlyArray<Violation>> => {
  if (tested.target === undefined) return [unreachable(tested)]
  const violations: Violation[] = []
  const check = async (attack: Attack): Promise<boolean> => {
    const { what, spec, rest } = attack
    const isLawful = async () => rest !== undefined && (await ask(rest)).trace.ran !== undefined
    const probe = await ask(spec)
    const { answer, error } = probe
    const [law, fix = ''] =
      (tested.description === undefined
        ? judgePublic(probe, tested)
        : await judgeGuarded(probe, tested, attack, statuses, isLawful)) ?? []
    const answered = answer instanceof Error ? `no answer: ${answer.message}` : `answered ${answer.status}`
    const thrown = error instanceof Error ? `\n${error.name}: ${error.message}` : ''
    const counterexample = `${what}: ${printed(spec)}\n${answered}${thrown}`
    if (law !== undefined) violations.push({ law: `${tested.name}: ${law}`, counterexample, fix })
    return answer instanceof Error
  }
  for (let at = 0; at < attacks.length; at += REQUESTS_AT_ONCE) {
    const unanswered = await Promise.all(attacks.slice(at, at + REQUESTS_AT_ONCE).map(check))
    // each of the others would take the time limit, too
    if (unanswered.includes(true)) break
  }
  return summed(violations)
}

// The first violation of each law, and the number of others
const summed = (violations: ReadonlyArray<Violation>): ReadonlyArray<Violation> => {
  const firsts = violations.filter(({ law }, at) => violations.findIndex((one) => one.law === law) === at)
  return firsts.map((first) => {
    const more = violations.filter(({ law }) => law === first.law).length - 1
    return more === 0 ? first : { ...first, counterexample: `${first.counterexample}\n(and ${more} more)` }
  })
}

const unreachable = ({ name }: Tested): Violation => ({
  law: `${name}: the path for requests is unknown`,
  counterexample: name,
  fix: `name the path: expectGuarded(app, router, { paths: { ${JSON.stringify(name)}: '/...' } })`,
})

const unlisted = (operations: ReadonlyArray<Tested>, listed: ReadonlyArray<string> = []): ReadonlyArray<Violation> => {
  const open = operations.filter(isOpenOperation)
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

const guardedChecks: Checks<GuardedOptions> = {
  public: is.maybe(is.list),
  valid: is.maybe(is.list),
  fields: is.maybe(is.list),
  statuses: is.maybe(is.list),
  within: is.maybe(is.positive),
  params: is.unchecked,
  paths: is.unchecked,
}

/**
 * Sends requests without a credential, and with hostile, wrong and repeated credentials in all places that its description names, to every
 * operation of a router that is mounted in `app`. It starts the application on a free port, and no handler runs. An answer of
 * `use` middleware is not checked. It resolves to
 * a list of the checked operations. It rejects with `LawViolations`, which lists every violation: a wrong status, a missing challenge, a
 * handler that would have run, a credential in an answer, an operation that is public and not listed. Rejects with a TypeError for
 * options that cannot work.
 *
 * @example
 * import Router from '@koa/router'
 * import Koa from 'koa'
 * import { httpBearer, withAuth } from 'koa-with-auth'
 * import { expectGuarded } from 'koa-with-auth/testing'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const router = withAuth(bearer)(new Router())
 * router.get('/pets/:id', (ctx) => {
 *   ctx.body = 'Rex'
 * })
 * router.get('/health', withAuth(null), (ctx) => {
 *   ctx.body = 'ok'
 * })
 * await expectGuarded(new Koa().use(router.routes()), router, { public: ['GET /health'] })
 */
export const expectGuarded = async (
  app: Application,
  router: { readonly stack: ReadonlyArray<unknown> },
  given: GuardedOptions = {},
): Promise<ReadonlyArray<CheckedOperation>> => {
  const caller = 'expectGuarded(app, router)'
  const options = checkOptions('expectGuarded(app, router, options)', given, guardedChecks)
  const { within = 5000 } = options
  const mounted: RouterInstance = checkRouter(caller, router)
  const operations = testedOf(app, mounted, options)
  if (operations.length === 0) throw new TypeError(`${caller}: the router has no operations; pass the mounted router`)
  const { ask, close } = await probing(app, mounted, operations, within)
  const checked: CheckedOperation[] = []
  const violations: Violation[] = []
  try {
    for (const tested of operations) {
      const attacks = tested.target === undefined ? [] : attacksOnOperation(tested, tested.target, options)
      violations.push(...(await checkOperation(ask, tested, attacks, options.statuses)))
      const protection = tested.description === undefined ? 'public' : isOpenOperation(tested) ? 'optional' : 'guarded'
      checked.push({ operation: tested.name, protection, requests: attacks.length })
    }
  } finally {
    await close()
  }
  throwViolations('an application', [...violations, ...unlisted(operations, options.public)])
  return checked
}
