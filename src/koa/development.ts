/**
 * Help for developers. It listens to what guards and levels report; they know nothing of it.
 *
 * - `NODE_DEBUG=koa-with-auth` prints to stderr what each router requires, and each decision. It prints no credential and no
 *   principal. Routes may be added at any time. So a router that `withAuth` returned is printed after the code is done
 *   that called its `routes()`. Any other router is printed when its first request is decided. Both are printed again if
 *   their routes have changed.
 * - A warning says that the result of `withAuth(a)(router)` is thrown away, and that the router itself is served without
 *   that guard. It is a guess: `routes()` of the router was called, and that of no copy within a second. In production
 *   nothing is watched.
 */
import { debuglog } from 'node:util'
import { alternativesOf, schemeNameOf } from '../core/Description.js'
import { foreignOrigins } from '../core/CrossOrigin.js'
import { effective, type Requirement } from '../core/Requirement.js'
import { decisions, type Decision } from '../core/events.js'
import type { RouterInstance } from './router.js'
import { operationsOf, type RoutedOperation } from './operations.js'
import type { AnyRouter } from './layer.js'
import { askedRouters, copiedRouters, type CopiedRouter } from './watching.js'

// Long enough for a start that waits for a database between two mounts
const WAIT = 1000

/**
 * On a router: what development help knows of it. On the channel of copied routers: that development help listens.
 */
const developmentMark: unique symbol = Symbol.for('koa-with-auth/development')

/** What is known of a router. */
interface Known {
  /** The copies that `withAuth` made of it; `undefined` before the first one, empty after the warning. */
  copies?: Known[]
  /** Whether its `routes()` was called. */
  isUsed?: boolean
  /** What was printed about it. */
  printed?: string
}

interface WithNotes {
  readonly [developmentMark]?: Known
}

// Not enumerable, so that a copy of a router has a record of its own
const knownOf = (object: object): Known => {
  const { [developmentMark]: record = {} }: WithNotes = object
  hide(object, developmentMark, record)
  return record
}

// Watches whether the copy is used if the router is
const warnIfUnused = (router: RouterInstance<never, never>, copy: object): void => {
  if (process.env['NODE_ENV'] === 'production' || !Object.isExtensible(router)) return
  const record = knownOf(router)
  const ofCopy = knownOf(copy)
  // a router of which a copy is made counts as used
  record.isUsed = true
  onRoutes(copy, () => {
    ofCopy.isUsed = true
  })
  if (record.copies !== undefined) {
    record.copies.push(ofCopy)
    return
  }
  record.copies = [ofCopy]
  onRoutes(router, () => setTimeout(() => warnAbout(router, record), WAIT).unref())
}

const hide = (target: object, key: PropertyKey, value: unknown): void => {
  Object.defineProperty(target, key, { value, writable: true, configurable: true, enumerable: false })
}

/**
 * Calls `notice` when `routes()` of a router is called. It is not enumerable, so a copy of the router is not watched by
 * it.
 */
const onRoutes = (router: object, onCall: () => void): void => {
  for (const name of ['routes', 'middleware'] as const) {
    const original: unknown = Reflect.get(router, name)
    if (typeof original !== 'function') continue
    hide(router, name, function (this: unknown, ...args: unknown[]): unknown {
      onCall()
      return Reflect.apply(original, this, args)
    })
  }
}

const warnAbout = (router: RouterInstance<never, never>, record: Known): void => {
  const { copies = [] } = record
  // one warning for each router
  record.copies = []
  if (copies.length === 0 || copies.every(({ isUsed }) => isUsed)) return
  const [first] = router.stack
  const which = router.opts.prefix ?? (first === undefined ? '' : String(first.path))
  process.emitWarning(
    `withAuth(a)(router)${which === '' ? '' : ` of ${which}`}: the guarded copy that it returned is not mounted, but the router itself is, without that guard; mount withAuth(a)(router).routes()`,
    'UnusedGuardWarning',
  )
}

const log = debuglog('koa-with-auth')

const isRouter = (u: unknown): u is AnyRouter & WithNotes => typeof u === 'object' && u !== null && 'stack' in u

const printRouter = (router: AnyRouter & WithNotes): void => {
  const lines = operationsOf(router).map((operation) => `  ${operationInWords(operation)}`)
  const text = [`a router of ${lines.length} operations`, ...lines].join('\n')
  const record = knownOf(router)
  if (record.printed === text) return
  record.printed = text
  log('%s', text)
}

const operationInWords = ({ name, guard, requirement, levels }: RoutedOperation): string =>
  guard === undefined ? `${name}: no guard` : `${name}: ${schemesOf(requirement)}, by ${levels.join(' + ')}`

const schemesOf = (requirement: Requirement): string => {
  const authenticator = effective(requirement)
  if (authenticator === undefined) return 'public'
  const alternatives = alternativesOf(authenticator.description).map(({ demands }) =>
    demands.map(({ leaf }) => schemeNameOf(leaf) ?? 'custom').join(' + '),
  )
  return alternatives.map((one) => (one === '' ? 'anonymous' : one)).join(', or ')
}

const withCause = (failure: string, why: string | undefined): string =>
  why === undefined || why === failure ? failure : `${failure}: ${why}`

const decisionInWords = (decision: Decision): string => {
  const { method, route, status, outcome, failure, why: cause, scheme, branches = [], level, durationMs } = decision
  const why = failure === undefined || failure === outcome ? '' : ` (${withCause(failure, cause)})`
  const by = scheme === undefined ? '' : ` by ${scheme}`
  const tried = branches.map(
    (branch) => `${branch.scheme} ${branch.skipped === true ? 'skipped' : withCause(branch.failure, branch.why)}`,
  )
  const each = tried.length === 0 ? '' : `: ${tried.join(', ')}`
  return `${method} ${route} ${status} ${outcome}${why}${by}${each}; ${level}, ${durationMs.toFixed(2)} ms`
}

// -------------------------------------------------------------------------------------
// listening
// -------------------------------------------------------------------------------------

const printDecisions = (): void => {
  // Safe: only decisions are published on this channel
  decisions.subscribe((record) => log('%s', decisionInWords(record as Decision)))
  askedRouters.subscribe((router) => {
    if (isRouter(router)) printRouter(router)
  })
  // Both are shown as strings, because a client has chosen them
  foreignOrigins.subscribe((compared) => log('refused as the request of another site: %j', compared))
}

const listen = (): void => {
  copiedRouters.subscribe((message) => {
    // Safe: only copies of routers are published on this channel
    const { router, copy } = message as CopiedRouter
    if (log.enabled && isRouter(copy)) onRoutes(copy, () => queueMicrotask(() => printRouter(copy)))
    // Safe: levels copy routers of @koa/router alone
    warnIfUnused(router as RouterInstance<never, never>, copy)
  })
  if (log.enabled) printDecisions()
}

// The process has one channel, but may have two copies of the package
const listened: typeof copiedRouters & WithNotes = copiedRouters
if (listened[developmentMark] === undefined) {
  knownOf(listened)
  listen()
}
