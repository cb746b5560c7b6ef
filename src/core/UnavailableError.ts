/**
 * An exception that means "it cannot be decided now". Thrown in a hook, it is an outage (503), not a bug (500).
 *
 * A helper can throw it, even if a hook calls the helper through code that does not know this library, such as `(await
 * verify(stored, password)) && user`. It is recognized by a mark, so two copies of the package know each other's.
 */
import { raised, unavailable, type AuthError } from './AuthError.js'
import { positive } from './options.js'

const mark = Symbol.for('koa-with-auth/unavailable')

/**
 * The decision cannot be made now. In a hook it becomes `unavailable`; in a handler Koa answers 503. `retryAfter` is in
 * seconds. The message is for the log: the client does not see it. Never put a credential in it.
 *
 * @example
 * import { httpBearer, UnavailableError } from 'koa-with-auth'
 *
 * const directory = {
 *   ownerOf: async (_token: string): Promise<{ user: string } | undefined> => {
 *     throw new UnavailableError('the directory is down', { retryAfter: 30 })
 *   },
 * }
 * const bearer = httpBearer({ authenticate: (_request, token) => directory.ownerOf(token) }) // 503, Retry-After: 30
 */
export class UnavailableError extends Error {
  override readonly name: string = 'UnavailableError'
  /** What Koa answers if a handler throws it. */
  readonly status = 503
  readonly retryAfter?: number | undefined
  readonly [mark] = true
  constructor(message: string, options: ErrorOptions & { readonly retryAfter?: number | undefined } = {}) {
    super(message, options)
    if (options.retryAfter === undefined) return
    positive('new UnavailableError(message, { retryAfter })', options.retryAfter)
    this.retryAfter = options.retryAfter
  }
}

const isUnavailableError = (u: unknown): u is { readonly retryAfter?: unknown } =>
  typeof u === 'object' && u !== null && mark in u && u[mark] === true

/**
 * @internal The failure for an exception: `unavailable` if it is an UnavailableError, otherwise `raised`. Never throws.
 */
export const failureOf = (error: unknown): AuthError => {
  try {
    if (!isUnavailableError(error)) return raised(error)
    return unavailable(typeof error.retryAfter === 'number' ? error.retryAfter : undefined)
  } catch {
    // a proxy, or a getter, that throws
    return raised(error)
  }
}
