/**
 * The error that `logIn` and `logOut` throw if they must refuse. The middleware of the sessions answers it like a
 * guard.
 */
import * as AuthErrors from '../core/AuthError.js'
import type { AuthError } from '../core/AuthError.js'

/** Signing in or out was refused: another site made the browser ask (403), or the store cannot be asked now (503). */
export class SignInRefused extends Error {
  override readonly name = 'SignInRefused'
  readonly failure: AuthError
  constructor(failure: AuthError, options?: ErrorOptions) {
    super(`the session could not be changed: ${failure._tag}`, options)
    this.failure = failure
  }
}

/** Another site made the browser ask. */
export const forged = (): SignInRefused => new SignInRefused(AuthErrors.forged)

/** The store failed, or did not answer in time. */
export const unavailable = (cause: unknown): SignInRefused => new SignInRefused(AuthErrors.unavailable(), { cause })
