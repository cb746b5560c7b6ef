/**
 * What protects each operation of a Koa application: those of the routers that it mounts with `app.use`, in this order.
 *
 * Its other middleware is listed as functions that run unguarded. The audit cannot see what such a function mounts
 * inside itself (koa-mount).
 */
import { defaults, type Settings } from '../core/Settings.js'
import { additionOf } from '../koa/authSettings.js'
import type { AnyRouter } from '../koa/RoutedOperation.js'
import { auditOf, readingOf, withTable } from './auditRouter.js'
import type { Audit } from './Audit.js'
import { middlewareName } from './middleware.js'
import type { Route } from './Route.js'

/** A Koa application, of any copy of Koa. */
export interface AnyApplication {
  readonly middleware: ReadonlyArray<Function>
}

/** Whether a value is a Koa application. */
export const isApplication = (u: unknown): u is AnyApplication =>
  typeof u === 'object' &&
  u !== null &&
  'middleware' in u &&
  Array.isArray(u.middleware) &&
  'callback' in u &&
  typeof u.callback === 'function'

/** The router whose `routes()` returned a function; `undefined` for another function. */
export const routerOf = (f: Function): AnyRouter | undefined => {
  // a guard has a getter there, which throws
  const router: unknown = Object.getOwnPropertyDescriptor(f, 'router')?.value
  // Safe: it has a stack of layers; reading the router refuses anything else
  return typeof router === 'object' && router !== null && 'stack' in router ? (router as AnyRouter) : undefined
}

/** The routers that an application mounts, in the order in which requests reach them. */
export const routersOf = ({ middleware }: AnyApplication): ReadonlyArray<AnyRouter> =>
  middleware.flatMap((f) => routerOf(f) ?? [])

/** The audit of an application; `undefined` if it mounts no router. */
export const auditApplication = ({ middleware }: AnyApplication): Audit | undefined => {
  if (routersOf({ middleware }).length === 0) return undefined
  const audits: Audit[] = []
  let settings: Settings = defaults
  let before: ReadonlyArray<Route> = []
  for (const f of middleware) {
    const router = routerOf(f)
    if (router === undefined) {
      settings = additionOf(f)?.(settings) ?? settings
      audits.push({ operations: [], middleware: [{ path: '/*', functions: [middlewareName(f)], guarded: 'no' }] })
      continue
    }
    const reading = readingOf('audit(router)', router, settings)
    audits.push(auditOf(reading, before))
    before = [...before, ...reading.routes]
  }
  return withTable({
    operations: audits.flatMap(({ operations }) => operations),
    middleware: audits.flatMap((audit) => audit.middleware),
  })
}
