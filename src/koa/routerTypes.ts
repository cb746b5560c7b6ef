/**
 * The types of @koa/router that this layer names, in a form that both ends of the peer range declare.
 *
 * @koa/router brings its own declarations from 15 on; before that they come from @types/koa__router. Only the default export
 * and `RouterContext` are in both.
 */
import type Router from '@koa/router'
import type { RouterContext } from '@koa/router'
import type { DefaultContext, DefaultState, Middleware } from 'koa'

export type { RouterContext }

/** A router of @koa/router. */
export type RouterInstance<S = DefaultState, C = DefaultContext> = Router<S, C>

/** Middleware of a router. */
export type RouterMiddleware<S = DefaultState, C = DefaultContext> = Middleware<S, RouterContext<S, C>>

/** A layer of a router of @koa/router. */
export type Layer<S = DefaultState, C = DefaultContext> = RouterInstance<S, C>['stack'][number]
