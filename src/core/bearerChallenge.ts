/**
 * The challenges of the Bearer scheme (RFC 6750 §3), with the parameters for each failure.
 *
 * Parameters that a kind adds, such as `resource_metadata` (RFC 9728 §5.1), are in every one of them.
 */
import type { AuthError } from './AuthError.js'
import { make, type Challenge } from './Challenge.js'

// What this module, the application's realm or `requireScopes` writes
const reserved = ['realm', 'scope', 'error', 'error_description', 'error_uri']

/**
 * Checks further parameters of a challenge. Throws a TypeError for a value that does not fit a header, and for a
 * parameter that the library writes itself.
 */
export const checkChallengeParameters = (place: string, parameters: unknown): void => {
  if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters)) {
    throw new TypeError(`${place} must be an object of strings, such as { resource_metadata: 'https://...' }`)
  }
  for (const name of Object.keys(parameters)) {
    if (reserved.includes(name.toLowerCase())) {
      throw new TypeError(`${place}: "${name}" is written by the library itself; remove it`)
    }
  }
  // Safe: `make` refuses every value that is no string
  make('Bearer', parameters as Readonly<Record<string, string>>)
}

/** The parameters which say that the token has expired (RFC 6750 §3). */
export const tokenExpired = { error_description: 'The access token expired' }

/** Returns the challenge for each failure. `own` is in all of them, `expired` in that of an expired token. */
export const bearerChallenge = (
  own: Readonly<Record<string, string>>,
  expired: Readonly<Record<string, string>> = {},
  scheme = 'Bearer',
): ((error: AuthError) => Challenge) => {
  const bare = make(scheme, own)
  const invalid = make(scheme, { ...own, error: 'invalid_token' })
  const over = make(scheme, { ...own, error: 'invalid_token', ...expired })
  return (error) => {
    switch (error._tag) {
      case 'malformed':
      case 'invalid':
        return invalid
      case 'expired':
        return over
      case 'insufficient':
        return make(scheme, {
          ...own,
          error: 'insufficient_scope',
          ...(error.scope !== undefined && { scope: error.scope.join(' ') }),
        })
      default:
        return bare
    }
  }
}
