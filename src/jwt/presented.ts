/**
 * The token that let a request in, for what a handler asks about it later. It travels on the Koa context.
 */
import type { Context, Request } from 'koa'
import type { Json } from './claims.js'
import type { ProtectedResource } from './protectedResource.js'

/** A token that was taken. */
export interface Presented {
  readonly token: string
  /** The claims, or what introspection answered, made anew for every reader. */
  readonly claims: () => Json
  readonly resource: ProtectedResource | undefined
}

const key = Symbol.for('koa-with-auth/token')

/** Lets a request carry the token that it presented, or none. */
export const carryToken = (request: Request, presented: Presented | undefined): void => {
  request.ctx[key] = presented
}

/** The token that a request presented. */
export const tokenOf = (ctx: Context): Presented | undefined => ctx[key]
