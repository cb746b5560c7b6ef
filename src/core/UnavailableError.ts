/**
 * An exception that says "it cannot be decided now": thrown anywhere inside a hook it is an outage, a 503, and not a bug, a 500.
 *
 * So a helper that a hook awaits can report an outage through code that knows nothing of this layer, as
 * `(await verify(stored, password)) && user`. It is recognized by a mark, so two copies of the package know each other's.
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
  /** What Koa answers where a handler throws it. */
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

/** @internal The failure that an exception comes to: `unavailable` where it is marked so, else `raised`. Never throws. */
export const failureOf = (error: unknown): AuthError => {
  try {
    if (!isUnavailableError(error)) return raised(error)
    return unavailable(typeof error.retryAfter === 'number' ? error.retryAfter : undefined)
  } catch {
    // a proxy, or a getter, that throws
    return raised(error)
  }
}
