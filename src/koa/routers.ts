/** Checks for functions that take a router of @koa/router. */
import type { DefaultContext, DefaultState } from 'koa'
import type { RouterInstance } from './routerTypes.js'

/** Whether a value has the properties of a router of @koa/router. */
export const isRouter = (u: unknown): u is RouterInstance =>
  typeof u === 'object' && u !== null && 'stack' in u && Array.isArray(u.stack) && 'register' in u && 'routes' in u

// The result of `routes()` has its router as a property. A guard has a getter there, which throws
const isRoutes = (u: unknown): boolean =>
  typeof u === 'function' && isRouter(Object.getOwnPropertyDescriptor(u, 'router')?.value)

/**
 * Returns a value that is a router. Throws a TypeError for anything else. `place` is the call, such as `audit(router)`.
 * `fix` is what to write instead of the router's `routes()`.
 */
export const checkRouter = <S = DefaultState, C = DefaultContext>(
  place: string,
  u: unknown,
  fix = place.replace('router', 'routes.router'),
): RouterInstance<S, C> => {
  // Safe: it is a router, and its type parameters do not matter here
  if (isRouter(u)) return u as unknown as RouterInstance<S, C>
  if (!isRoutes(u)) throw new TypeError(`${place} takes a router of @koa/router`)
  throw new TypeError(`${place} takes the router itself, not its routes(): write ${fix}`)
}
