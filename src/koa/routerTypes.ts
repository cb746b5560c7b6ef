/**
 * The types of @koa/router, in a form that all versions of the peer range declare. Version 15 has its own declarations.
 * Before that, they come from @types/koa__router. Only the router itself and `RouterContext` have the same name in
 * both.
 */
import type Router from '@koa/router'
import type { RouterContext } from '@koa/router'
import type { DefaultContext, DefaultState } from 'koa'

export type { RouterContext }

/** A router of @koa/router. */
export type RouterInstance<S = DefaultState, C = DefaultContext> = Router<S, C>

/** Middleware of a router: what its `register` takes, without the list of them. */
export type RouterMiddleware<S = DefaultState, C = DefaultContext> = Exclude<
  Parameters<RouterInstance<S, C>['register']>[2],
  readonly unknown[]
>

/** A layer of a router of @koa/router. */
export type Layer<S = DefaultState, C = DefaultContext> = RouterInstance<S, C>['stack'][number]
