/**
 * The token that let a request in, for handlers. It is on the Koa context.
 */
import type { Context, Request } from 'koa'
import type { Json } from './claims.js'
import type { ProtectedResource } from './protectedResource.js'

/** A token that was accepted. */
export interface Presented {
  readonly token: string
  /** The claims, or the answer of introspection: a new copy for each reader. */
  readonly claims: () => Json
  readonly resource: ProtectedResource | undefined
}

const key = Symbol.for('koa-with-auth/token')

/** Puts the token of a request on its context, or removes it. */
export const carryToken = (request: Request, presented: Presented | undefined): void => {
  request.ctx[key] = presented
}

/** The token that a request presented. */
export const tokenOf = (ctx: Context): Presented | undefined => ctx[key]
