/**
 * Exception handlers: what an exception of an authenticator or of an operation becomes as a response (spec 5.1.5, 7).
 *
 * The handler of the exception's class answers, or else the handler of its nearest ancestor. Without one, Koa answers. Here,
 * handlers are data; `koa/exceptions.ts` runs them.
 */
import type { Request } from 'koa'
import type { AuthResponse } from './ErrorMapper.js'
import { checkHook } from './hooks.js'

/** A class of exceptions. */
export type ExceptionClass<X> = abstract new (...args: never[]) => X

/** Makes the response to an exception. Its body is sent like that of an operation. */
export type Answer<X> = (request: Request, error: X) => AuthResponse | Promise<AuthResponse>

/** A class of exceptions and what answers them. */
export interface ExceptionHandler {
  readonly type: ExceptionClass<unknown>
  readonly answer: (request: Request, error: unknown) => unknown
}

/** The handlers in force, by the prototype of their class. */
export type ExceptionHandlers = ReadonlyMap<unknown, ExceptionHandler['answer']>

/**
 * Makes a handler for a class of exceptions. Throws a TypeError if `type` is not a class, or if the handler cannot work.
 *
 * @example
 * import { authSettings, onError } from 'koa-with-auth'
 *
 * class InvalidToken extends Error {}
 *
 * const settings = authSettings({
 *   onError: [onError(InvalidToken, (_request, error) => ({ status: 401, body: { detail: error.message } }))],
 * })
 */
export const onError = <X>(type: ExceptionClass<X>, answer: Answer<X>): ExceptionHandler => {
  if (typeof type !== 'function' || typeof type.prototype !== 'object' || type.prototype === null) {
    throw new TypeError('onError(Class, handler): the first argument must be a class')
  }
  checkHook(`onError(${type.name}, handler): the handler`, answer, 2)
  // Safe: it is looked up by the prototype of `type`, so it gets only instances of it
  return { type, answer: answer as ExceptionHandler['answer'] }
}

/** Adds handlers to those of an outer level. Throws a TypeError if one level has two handlers for a class. */
export const addHandlers = (outer: ExceptionHandlers, added: ReadonlyArray<ExceptionHandler>): ExceptionHandlers => {
  const own = new Map(added.map(({ type, answer }) => [type.prototype as unknown, answer]))
  if (own.size < added.length) throw new TypeError('onError: there are two handlers for one class; remove one')
  return new Map([...outer, ...own])
}

/** The handler of an exception's class or of its nearest ancestor's. */
export const handlerOf = (handlers: ExceptionHandlers, error: unknown): ExceptionHandler['answer'] | undefined => {
  for (let type: unknown = error; typeof type === 'object' && type !== null; type = Object.getPrototypeOf(type)) {
    const answer = handlers.get(type)
    if (answer !== undefined) return answer
  }
  return undefined
}
