/** What a router of @koa/router is, for functions that take one. */
import type { DefaultContext, DefaultState } from 'koa'
import type { RouterInstance } from './routerTypes.js'

/** Whether a value has what the routers of @koa/router have. */
export const isRouter = (u: unknown): u is RouterInstance =>
  typeof u === 'object' && u !== null && 'stack' in u && Array.isArray(u.stack) && 'register' in u && 'routes' in u

// What `routes()` returned names its router; a guard has a getter there, which throws
const isRoutes = (u: unknown): boolean =>
  typeof u === 'function' && isRouter(Object.getOwnPropertyDescriptor(u, 'router')?.value)

/**
 * A value that is a router. TypeError for anything else; `place` is the call, such as `audit(router)`; `fix` is what to write
 * where it is the router's `routes()`.
 */
export const checkRouter = <S = DefaultState, C = DefaultContext>(
  place: string,
  u: unknown,
  fix = place.replace('router', 'routes.router'),
): RouterInstance<S, C> => {
  // Safe: it is a router, and nothing is asked of its types
  if (isRouter(u)) return u as unknown as RouterInstance<S, C>
  if (!isRoutes(u)) throw new TypeError(`${place} takes a router of @koa/router`)
  throw new TypeError(`${place} takes the router itself, not its routes(): write ${fix}`)
}
