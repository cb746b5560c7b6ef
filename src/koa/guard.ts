/**
 * The guard: Koa middleware that enforces one requirement on the operation behind it.
 *
 * It asks the authenticator, folds the Either, and only then calls `next()`: a failing handler can never look like
 * failing authentication. It is in the layer of the route that it protects, so no path is matched again.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Next } from 'koa'
import type { Authenticator } from '../core/Authenticator.js'
import type { AuthError } from '../core/AuthError.js'
import { httpStatusOf } from '../core/ErrorMapper.js'
import { handlerOf } from '../core/ExceptionHandler.js'
import { inTime } from '../core/outage.js'
import { effective, type Requirement } from '../core/Requirement.js'
import { sourceOf } from '../core/session/SessionSource.js'
import { settingsOf } from '../core/Settings.js'
import { answerException, markThrown, serverError } from './exceptions.js'
import { markGuard, type Marked, type Origin } from './guardMark.js'
import { admittedBefore, claim, operationOf } from './head.js'
import { inItsOperation } from './placement.js'
import { respondFailure, respondTooManyFields } from './respond.js'
import { restore, take, type ResponseSnapshot } from './ResponseSnapshot.js'

/** Middleware that enforces a requirement. */
export type Enforce = (ctx: Context, next: Next) => Promise<unknown>

/** Middleware for a requirement. */
export const enforce = (requirement: Requirement): Enforce => {
  const authenticator = effective(requirement)
  return authenticator === undefined ? admitAnyone : enforceAuthenticator(authenticator)
}

/** A guard for the layer of a route; it guards no routers. */
export const guardFor = (requirement: Requirement, origin: Origin): Enforce & Marked => {
  const run = enforce(requirement)
  return markGuard((ctx: Context, next: Next) => run(ctx, next), requirement, origin)
}

const admitAnyone: Enforce = (ctx, next) => {
  inItsOperation(ctx)
  return goOn(ctx, next, undefined)
}

const enforceAuthenticator = (authenticator: Authenticator<unknown>): Enforce => {
  const operation = operationOf(authenticator.description)

  const deny = (ctx: Context, error: AuthError): void | Promise<void> => {
    requestOf(ctx).auth = undefined
    const settings = settingsOf(ctx.request)
    claim(ctx, operation, operation.refused)
    if (error._tag === 'raised') {
      if (handlerOf(settings.exceptionHandlers, error.error) !== undefined) {
        return answerException(ctx, error.error, settings)
      }
      if (httpStatusOf(error.error) === undefined) throw serverError(error.error)
    }
    try {
      respondFailure(ctx, error, settings, operation)
    } catch (raised) {
      throw serverError(raised)
    }
  }
  // who goes on behind `await next()` in an outer layer finds its own principal again
  const denyBehind = async (ctx: Context, outer: unknown, error: AuthError): Promise<void> => {
    try {
      await deny(ctx, error)
    } finally {
      requestOf(ctx).auth = outer
    }
  }
  const settle = (ctx: Context, next: Next, before: ResponseSnapshot, result: Result): Promise<unknown> => {
    restore(ctx.response, before)
    if (E.isLeft(result)) {
      const outer = admittedBefore(ctx.res)
      return outer === undefined ? Promise.resolve(deny(ctx, result.left)) : denyBehind(ctx, outer, result.left)
    }
    if (!E.isRight(result)) throw new TypeError('an authenticator must come to an Either')
    claim(ctx, operation, operation.accepted, result.right)
    return goOn(ctx, next, result.right)
  }
  return (ctx, next) => {
    inItsOperation(ctx)
    if (mayBeCutOff(ctx)) {
      claim(ctx, operation, operation.refused)
      return Promise.resolve(respondTooManyFields(ctx))
    }
    const before = take(ctx.response)
    const result = authenticator.evaluate(ctx.request)
    if (!(result instanceof Promise)) return settle(ctx, next, before, result)
    return inTime(result, settingsOf(ctx.request).timeout).then((late) => settle(ctx, next, before, late))
  }
}

type Result = E.Either<AuthError, unknown>

type Guarded = Context['request'] & { auth?: unknown }

// `auth` is this layer's own property of the request
const requestOf = (ctx: Context): Guarded => ctx.request

// Two layers can match one URL: who goes on behind `await next()` in the first finds its own principal again
const goOn = (ctx: Context, next: Next, principal: unknown): Promise<unknown> => {
  const request = requestOf(ctx)
  if (!('auth' in request)) {
    request.auth = principal
    return nextOf(ctx, next)
  }
  const outer = request.auth
  request.auth = principal
  return nextOf(ctx, next).finally(() => {
    request.auth = outer
  })
}

// With sessions, middleware above that answers the exception must not hide from them that there was one
const nextOf = (ctx: Context, next: Next): Promise<unknown> =>
  sourceOf(ctx) === undefined
    ? next()
    : next().catch((error: unknown) => {
        markThrown(ctx)
        throw error
      })

// Node's own limit where the server sets none
const MAX_HEADER_LINES = 1000

// Node drops header lines past its limit without a word, and a proxy appends its own last
const mayBeCutOff = ({ req }: Context): boolean => {
  // Safe: Node puts the server on every socket that it accepted
  const { server } = req.socket as Socket & { readonly server?: Server | null }
  const limit = server?.maxHeadersCount ?? MAX_HEADER_LINES
  return limit !== 0 && req.rawHeaders.length >= 2 * limit
}
