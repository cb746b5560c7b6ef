/**
 * The guard: Koa middleware that enforces one requirement on the operation behind it.
 *
 * It asks the authenticator, folds the Either, and only then calls `next()`: a failing handler can never look like
 * failing authentication. It stands in the layer of the route that it protects, so no path is matched again.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { either as E } from 'fp-ts'
import type { Context, Next } from 'koa'
import type { Authenticator } from '../core/Authenticator.js'
import { unavailable, type AuthError } from '../core/AuthError.js'
import { httpStatusOf } from '../core/ErrorMapper.js'
import { handlerOf } from '../core/ExceptionHandler.js'
import type { Requirement } from '../core/Requirement.js'
import { settingsOf } from '../core/Settings.js'
import { inItsOperation } from './placement.js'
import { answerException, serverError } from './exceptions.js'
import { claim, operationOf } from './head.js'
import { respondFailure, respondTooManyFields } from './respond.js'
import { restore, take, type ResponseSnapshot } from './ResponseSnapshot.js'

/** Middleware that enforces a requirement. */
export type Enforce = (ctx: Context, next: Next) => Promise<unknown>

/** Middleware for a requirement. */
export const enforce = (requirement: Requirement): Enforce =>
  requirement._tag === 'Require' ? enforceAuthenticator(requirement.authenticator) : admitAnyone

const admitAnyone: Enforce = (ctx, next) => {
  inItsOperation(ctx)
  setAuth(ctx, undefined)
  return next()
}

const enforceAuthenticator = (authenticator: Authenticator<unknown>): Enforce => {
  const operation = operationOf(authenticator.description)

  const admit = (ctx: Context, next: Next, principal: unknown): Promise<unknown> => {
    setAuth(ctx, principal)
    claim(ctx.res, operation)
    return next()
  }
  const deny = (ctx: Context, error: AuthError): void | Promise<void> => {
    setAuth(ctx, undefined)
    const settings = settingsOf(ctx.request)
    if (error._tag === 'raised') {
      const isHandled = handlerOf(settings.exceptionHandlers, error.error) !== undefined
      if (isHandled || httpStatusOf(error.error) === undefined) {
        claim(ctx.res, operation)
        if (isHandled) return answerException(ctx, error.error, settings)
        throw serverError(error.error)
      }
    }
    try {
      respondFailure(ctx, error, settings, operation)
    } catch (raised) {
      claim(ctx.res, operation)
      throw serverError(raised)
    }
  }
  const settle = (ctx: Context, next: Next, before: ResponseSnapshot, result: Result): Promise<unknown> => {
    restore(ctx.response, before)
    return E.isRight(result) ? admit(ctx, next, result.right) : Promise.resolve(deny(ctx, result.left))
  }
  return (ctx, next) => {
    inItsOperation(ctx)
    if (mayBeCutOff(ctx)) return Promise.resolve(respondTooManyFields(ctx, operation))
    const before = take(ctx.response)
    const result = authenticator.evaluate(ctx.request)
    if (!(result instanceof Promise)) return settle(ctx, next, before, result)
    return inTime(result, settingsOf(ctx.request).timeout).then((late) => settle(ctx, next, before, late))
  }
}

type Result = E.Either<AuthError, unknown>

const setAuth = (ctx: Context, principal: unknown): void => {
  // Safe: `auth` is this layer's own property of the request
  const request = ctx.request as Context['request'] & { auth?: unknown }
  request.auth = principal
}

// Node's own limit where the server sets none
const MAX_HEADER_LINES = 1000

// Node drops header lines past its limit without a word, and a proxy appends its own last (SECURITY A-24)
const mayBeCutOff = ({ req }: Context): boolean => {
  // Safe: Node puts the server on every socket that it accepted
  const { server } = req.socket as Socket & { readonly server?: Server | null }
  const limit = server?.maxHeadersCount ?? MAX_HEADER_LINES
  return limit !== 0 && req.rawHeaders.length >= 2 * limit
}

// For what is asynchronous only; an evaluation never rejects
const inTime = (evaluation: Promise<Result>, timeout: number): Promise<Result> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, timeout, tooSlow)
    void evaluation.then((result) => {
      clearTimeout(timer)
      resolve(result)
    })
  })

const tooSlow: Result = E.left(unavailable())
