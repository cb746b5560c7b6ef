/**
 * `NODE_DEBUG=koa-with-auth`: prints to stderr what each router requires, and each decision. It prints no credential
 * and no principal.
 *
 * Routes may be added at any time. So a router that `withAuth` returned is printed after the code is done that called
 * its `routes()`. Any other router is printed when its first request is decided. Both are printed again if their routes
 * have changed. Without the variable, guards and routers are not changed.
 */
import { debuglog } from 'node:util'
import type { Context, Next } from 'koa'
import { alternativesOf, schemeNameOf } from '../core/Description.js'
import { effective, type Requirement } from '../core/Requirement.js'
import { copiesMark, printedMark, usedMark } from '../core/data.js'
import { decisions, type Decision } from '../core/events.js'
import type { RouterInstance } from './AuthRouter.js'
import { operationsOf, type AnyRouter, type RoutedOperation } from './operations.js'

/*
 * Warns if the result of `withAuth(a)(router)` is thrown away, and the router itself is served without that guard.
 *
 * The sign of that: `routes()` was called on the router, and a second later still not on the copy. Requests are not
 * slower. In production nothing is watched.
 */

// Long enough for a start that waits for a database between two mounts
const WAIT = 1000

interface Watched {
  [copiesMark]?: object[]
  [usedMark]?: boolean
}

/** Watches whether the copy is used if the router is. Returns the copy. */
export const watchCopy = <R extends object>(router: RouterInstance<never, never>, copy: R): R => {
  if (process.env['NODE_ENV'] === 'production' || !Object.isExtensible(router)) return copy
  const original: Watched & RouterInstance<never, never> = router
  // a router of which a copy is made counts as used
  markUsed(original)
  onRoutes(copy, () => markUsed(copy))
  const copies = original[copiesMark]
  if (copies !== undefined) {
    copies.push(copy)
    return copy
  }
  hide(original, copiesMark, [copy])
  onRoutes(original, () => setTimeout(() => warnAbout(original), WAIT).unref())
  return copy
}

const hide = (target: object, key: PropertyKey, value: unknown): void => {
  Object.defineProperty(target, key, { value, writable: true, configurable: true, enumerable: false })
}

const markUsed = (router: object): void => hide(router, usedMark, true)

const isUsed = (copy: object): boolean => Reflect.get(copy, usedMark) === true

/**
 * Calls `notice` when `routes()` of a router is called. It is not enumerable, so a copy of the router is not watched by
 * it.
 */
const onRoutes = (router: object, notice: () => void): void => {
  for (const name of ['routes', 'middleware'] as const) {
    const original: unknown = Reflect.get(router, name)
    if (typeof original !== 'function') continue
    hide(router, name, function (this: unknown, ...args: unknown[]): unknown {
      notice()
      return Reflect.apply(original, this, args)
    })
  }
}

const warnAbout = (router: Watched & RouterInstance<never, never>): void => {
  const copies = router[copiesMark] ?? []
  // one warning for each router
  router[copiesMark] = []
  if (copies.length === 0 || copies.every(isUsed)) return
  const [first] = router.stack
  const which = router.opts.prefix ?? (first === undefined ? '' : String(first.path))
  process.emitWarning(
    `withAuth(a)(router)${which === '' ? '' : ` of ${which}`}: the guarded copy that it returned is not mounted, but the router itself is, without that guard; mount withAuth(a)(router).routes()`,
    'UnusedGuardWarning',
  )
}

const log = debuglog('koa-with-auth')

type Run = (ctx: Context, next: Next) => Promise<unknown>

/** Prints decisions if the variable asks for it. Further calls do nothing. */
export const debugDecisions = (): void => {
  if (log.enabled) printDecisions()
}

/** The same guard. If decisions are printed, it prints its router first. */
export const debugged = (run: Run): Run => {
  if (!log.enabled) return run
  printDecisions()
  return (ctx, next) => {
    const router: unknown = ctx['router']
    if (isRouter(router)) printRouter(router)
    return run(ctx, next)
  }
}

/** The same router. If decisions are printed, it is printed once it is mounted. */
export const debuggedRouter = <R extends AnyRouter>(router: R): R => {
  if (log.enabled) onRoutes(router, () => queueMicrotask(() => printRouter(router)))
  return router
}

interface Printed {
  [printedMark]?: unknown
}

// The process has one channel, but may have two copies of the package
const printDecisions = (): void => {
  const printed: typeof decisions & Printed = decisions
  if (printed[printedMark] === true) return
  printed[printedMark] = true
  // Safe: only decisions are published on this channel
  decisions.subscribe((record) => log('%s', decisionInWords(record as Decision)))
}

const isRouter = (u: unknown): u is AnyRouter & Printed => typeof u === 'object' && u !== null && 'stack' in u

const printRouter = (router: AnyRouter & Printed): void => {
  const lines = operationsOf(router).map((operation) => `  ${operationInWords(operation)}`)
  const text = [`a router of ${lines.length} operations`, ...lines].join('\n')
  if (router[printedMark] === text) return
  // not enumerable, so that a copy of the router is printed, too
  Object.defineProperty(router, printedMark, { value: text, writable: true, configurable: true })
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

const decisionInWords = (decision: Decision): string => {
  const { method, route, status, outcome, failure, scheme, branches = [], level, durationMs } = decision
  const why = failure === undefined || failure === outcome ? '' : ` (${failure})`
  const by = scheme === undefined ? '' : ` by ${scheme}`
  const tried = branches.map((branch) => `${branch.scheme} ${branch.skipped === true ? 'skipped' : branch.failure}`)
  const each = tried.length === 0 ? '' : `: ${tried.join(', ')}`
  return `${method} ${route} ${status} ${outcome}${why}${by}${each}; ${level}, ${durationMs.toFixed(2)} ms`
}
