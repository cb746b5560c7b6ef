/**
 * Exceptions of authenticators and of operations. The registered handler answers. Without one, Koa answers with a 500
 * that reveals nothing.
 */
import type { Context } from 'koa'
import { is as isAuthError } from '../core/AuthError.js'
import { handlerOf } from '../core/ExceptionHandler.js'
import { named } from '../core/hooks.js'
import type { Settings } from '../core/Settings.js'
import type { AuthResponse } from '../core/ErrorMapper.js'
import { policyOf } from './responseHeaders.js'
import { respondException } from './respond.js'

const thrown = Symbol.for('koa-with-auth/thrown')

/** Marks a request whose operation threw. Its session is not saved, even if a handler answers the exception. */
export const markThrown = (ctx: Context): void => {
  ctx[thrown] = true
}

/** Whether the operation threw. */
export const hasThrown = (ctx: Context): boolean => ctx[thrown] === true

/** Lets the registered handler answer. Rejects with the exception if there is none. */
export const answerException = async (ctx: Context, error: unknown, settings: Settings): Promise<void> => {
  markThrown(ctx)
  const answer = handlerOf(settings.exceptionHandlers, error)
  // after the head was sent, no other response is possible
  if (answer === undefined || ctx.headerSent) throw error
  try {
    const response = await answer(ctx.request, error)
    if (!isResponse(response)) {
      throw new TypeError('an onError handler must return { status, body } with a status from 200 to 599')
    }
    respondException(ctx, response, policyOf(ctx.res) !== undefined)
  } catch (raised) {
    throw serverError(raised)
  }
}

const isResponse = (u: unknown): u is AuthResponse =>
  typeof u === 'object' &&
  u !== null &&
  'status' in u &&
  typeof u.status === 'number' &&
  Number.isInteger(u.status) &&
  u.status >= 200 &&
  u.status <= 599

interface ErrorProperties extends Error {
  readonly status?: unknown
  readonly statusCode?: unknown
  readonly expose?: unknown
  readonly headers?: unknown
  readonly code?: unknown
}

/**
 * An error that Koa answers with a 500. Koa obeys an error's status even if it is a success, and sends its headers. It
 * never answers an error that is `null` or cannot take a status. These are wrapped, others are returned as they
 * are.
 */
export const serverError = (error: unknown): Error => {
  try {
    if (error instanceof Error && isServerError(error) && takesStatus(error) && tellsNothing(error)) return error
  } catch {
    // a property throws when it is read, and Koa reads it, too
  }
  return new Error(`a value was thrown that is not a server error: ${thrownAs(error)}`, { cause: error })
}

// Koa logs the stack of an error, but not its cause
const thrownAs = (error: unknown): string => {
  try {
    if (isAuthError(error)) return `the AuthError "${error._tag}"; return it instead`
    if (error instanceof Error) return `${error.name}: ${error.message}`
  } catch {
    // a property throws when it is read, or is a symbol
  }
  return named(error)
}

// Koa 2 answers ENOENT with a 404, but here a file of a hook is missing
const isServerError = ({ status, statusCode, expose, code }: ErrorProperties): boolean => {
  const answered = status || statusCode
  const isServers = answered === undefined || (typeof answered === 'number' && answered >= 500)
  return isServers && expose !== true && code !== 'ENOENT'
}

// Koa writes the status that it answered onto the error
const takesStatus = (error: Error): boolean => {
  for (let at: unknown = error; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at)) {
    const property = Object.getOwnPropertyDescriptor(at, 'status')
    if (property !== undefined) return property.writable === true || property.set !== undefined
  }
  return Object.isExtensible(error)
}

// Koa sends an error's headers as they are. One may be a credential or a cookie. One that Node refuses ends the process
const tellsNothing = ({ headers, stack, message }: ErrorProperties): boolean =>
  headers === undefined && typeof stack === 'string' && typeof message === 'string'
