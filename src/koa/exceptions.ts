/**
 * Exceptions of authenticators and of operations: the registered handler answers, else they are Koa's, as a 500 that
 * leaks nothing.
 */
import type { Context } from 'koa'
import { handlerOf } from '../core/ExceptionHandler.js'
import type { Settings } from '../core/Settings.js'
import type { AuthResponse } from '../core/ErrorMapper.js'
import { policyOf } from './responseHeaders.js'
import { respondException } from './respond.js'

const thrown = Symbol.for('koa-with-auth/thrown')

/** Marks a request whose operation threw, whatever answers the exception: nothing of its session is kept. */
export const markThrown = (ctx: Context): void => {
  ctx[thrown] = true
}

/** Whether the operation threw. */
export const hasThrown = (ctx: Context): boolean => ctx[thrown] === true

/** Lets the registered handler answer; rejects with the exception where there is none. */
export const answerException = async (ctx: Context, error: unknown, settings: Settings): Promise<void> => {
  markThrown(ctx)
  const answer = handlerOf(settings.exceptionHandlers, error)
  // once the head is sent there is no other answer
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
 * What Koa makes a 500 of. It obeys an error's status even if that is a success, sends its headers, and never answers one
 * that is `null` or cannot take a status (SECURITY A-30). These are wrapped, others returned as they are.
 */
export const serverError = (error: unknown): Error => {
  try {
    if (error instanceof Error && isServerError(error) && takesStatus(error) && tellsNothing(error)) return error
  } catch {
    // a property that raises when it is read: Koa reads it, too
  }
  return new Error('a value was thrown that is not a server error; see its cause', { cause: error })
}

// Koa 2 makes a 404 of ENOENT, which a hook throws whose file is missing
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

// Koa sends an error's headers as they are: a credential among them, a cookie, or one that Node refuses and the process ends
const tellsNothing = ({ headers, stack, message }: ErrorProperties): boolean =>
  headers === undefined && typeof stack === 'string' && typeof message === 'string'
