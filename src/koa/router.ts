/** The types of @koa/router, a new router, and checks for functions that take a router. */
import Router from '@koa/router'
import type { DefaultContext, DefaultState } from 'koa'

/*
 * Version 15 of @koa/router has its own declarations. Before that, they come from @types/koa__router. Only the router
 * itself and `RouterContext` have the same name in both. So the other types are taken from the router.
 */

export type RouterInstance<S = DefaultState, C = DefaultContext> = Router<S, C>

export type Layer<S = DefaultState, C = DefaultContext> = RouterInstance<S, C>['stack'][number]

/** A new router, of the class that the application imports: ES modules and CommonJS have different classes. */
export const newRouter = (options: { readonly prefix?: string } = {}): RouterInstance => new Router(options)

export const isRouter = (u: unknown): u is RouterInstance =>
  typeof u === 'object' && u !== null && 'stack' in u && Array.isArray(u.stack) && 'register' in u && 'routes' in u

/** Returns a router, or throws a TypeError. `caller` is the call, such as `audit(router)`; `fix` is the code to write for `routes()`. */
export const checkRouter = <S = DefaultState, C = DefaultContext>(
  caller: string,
  u: unknown,
  fix = caller.replace('router', 'routes.router'),
): RouterInstance<S, C> => {
  // Safe: it is a router, and its type parameters do not matter here
  if (isRouter(u)) return u as unknown as RouterInstance<S, C>
  // the result of `routes()` has its router as a property; a guard has a getter there, which throws
  const isRoutes = typeof u === 'function' && isRouter(Object.getOwnPropertyDescriptor(u, 'router')?.value)
  throw new TypeError(
    `${caller} takes ${isRoutes ? `the router itself, not its routes(): write ${fix}` : 'a router of @koa/router'}`,
  )
}

/** The message about a router that does not say which layer runs, as koa-router 7 and @koa/router 8. */
export const routerTooOld = 'this router is too old to be guarded; install @koa/router 12 or later (or koa-router 12)'

/** Whether a class has a property that a trial shows: forks have other version numbers. `otherwise`: for a value without a class. */
export const shownByTrial = (trial: (type: Function) => boolean, otherwise: boolean): ((one: object) => boolean) => {
  // Only a cache of the answers
  const answers = new WeakMap<object, boolean>()
  return ({ constructor: type }) => {
    if (typeof type !== 'function' || type === Object) return otherwise
    const answer = answers.get(type) ?? trial(type)
    answers.set(type, answer)
    return answer
  }
}
