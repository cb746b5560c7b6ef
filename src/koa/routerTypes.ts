/**
 * The types of @koa/router that this layer names, in one place: routers below 15 take theirs from @types/koa__router, which has
 * other names.
 */
import type Router from '@koa/router'
import type { RouterContext, RouterMiddleware } from '@koa/router'
import type { DefaultContext, DefaultState } from 'koa'

export type { RouterContext, RouterMiddleware }

/** A router of @koa/router. */
export type RouterInstance<S = DefaultState, C = DefaultContext> = Router<S, C>

/** A layer of a router of @koa/router. */
export type Layer<S = DefaultState, C = DefaultContext> = RouterInstance<S, C>['stack'][number]
