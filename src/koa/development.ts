/**
 * Help for developers. It listens to what guards and levels report; they know nothing of it.
 *
 * `NODE_DEBUG=koa-with-auth` prints to stderr what each router requires, and each decision. It prints no credential and no
 * principal. Routes may be added at any time. So a router that `withAuth` returned is printed after the code is done
 * that called `withAuth`. Any other router is printed when its first request is decided. Both are printed again if
 * their routes have changed.
 */
import { debuglog } from 'node:util'
import { schemeNameOf } from '../core/Description.js'
import { alternativesOf } from '../core/Alternative.js'
import { foreignOrigins } from '../core/CrossOrigin.js'
import { effective, type Requirement } from '../core/Requirement.js'
import { decisions, type Decision } from '../core/events.js'
import { operationsOf, type RoutedOperation } from './operations.js'
import type { AnyRouter } from './layer.js'
import { askedRouters, copiedRouters } from './watching.js'

const log = debuglog('koa-with-auth')

const isRouter = (u: unknown): u is AnyRouter => typeof u === 'object' && u !== null && 'stack' in u

// What was printed about a router
const printed = new WeakMap<AnyRouter, string>()

const printRouter = (router: unknown): void => {
  if (!isRouter(router)) return
  const lines = operationsOf(router).map((operation) => `  ${operationInWords(operation)}`)
  const text = [`a router of ${lines.length} operations`, ...lines].join('\n')
  if (printed.get(router) === text) return
  printed.set(router, text)
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

const listeningMark: unique symbol = Symbol.for('koa-with-auth/development')

const listen = (): void => {
  // Safe: only decisions are published on this channel
  decisions.subscribe((record) => log('%s', decisionInWords(record as Decision)))
  askedRouters.subscribe(printRouter)
  copiedRouters.subscribe((copy) => queueMicrotask(() => printRouter(copy)))
  // Both are shown as strings, because a client has chosen them
  foreignOrigins.subscribe((compared) => log('refused as the request of another site: %j', compared))
}

// The process has one channel, but may have two copies of the package
const listened: typeof copiedRouters & { [listeningMark]?: true } = copiedRouters
if (log.enabled && listened[listeningMark] === undefined) {
  listened[listeningMark] = true
  listen()
}
