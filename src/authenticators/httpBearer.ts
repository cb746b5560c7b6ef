/**
 * `Authorization: Bearer <token>` (RFC 6750). The hook gets the token and decides; verifying a JWT is its business.
 *
 * The token travels in the Authorization header alone: not in a form, not in the query (RFC 9700 §4.3.2).
 */
import type { Request } from 'koa'
import type { PrincipalOf } from '../core/Answer.js'
import { authenticator, type Authenticator } from '../core/Authenticator.js'
import type { AuthError } from '../core/AuthError.js'
import * as Challenge from '../core/Challenge.js'
import { BearerToken } from '../core/Credentials.js'
import { documentation, documented } from '../core/documented.js'
import { checkCredential, checkHook, checkOptions, declareFactory } from '../core/misuse.js'
import { authorization } from '../core/RequestFields.js'
import type { HttpScheme } from '../core/SecurityScheme.js'

/** What a bearer authenticator is made of. */
export interface HttpBearerOptions<R> {
  /** Decides about a token. */
  readonly authenticate: (request: Request, token: string) => R
  /** The protection space; default: the application's. */
  readonly realm?: string
  /** What the token looks like, for the documentation, as "JWT". */
  readonly bearerFormat?: string
  /** The longest credentials, scheme included, in characters. Default 8192. */
  readonly maxLength?: number
  /** What OpenAPI calls it; without it a name is derived. */
  readonly schemeName?: string
  /** What OpenAPI tells about it, as how to get one; CommonMark. */
  readonly description?: string
}

/**
 * A bearer token. 401 without `error` when none was sent, `error="invalid_token"` when it was refused (RFC 6750 §3),
 * 403 `error="insufficient_scope"` when the hook answers `AuthError.insufficient`. TypeError for a hook that cannot work.
 *
 * @example
 * import { constantTimeEqual, httpBearer } from 'koa-with-auth'
 *
 * const bearer = httpBearer({
 *   authenticate: (_request, token) => constantTimeEqual(token, 'supersecret') && { token },
 * })
 */
export const httpBearer = <R>(options: HttpBearerOptions<R>): Authenticator<PrincipalOf<R>> => {
  checkOptions('httpBearer', options, ['authenticate', 'realm', 'bearerFormat', 'maxLength', ...documentation])
  const { authenticate, realm, bearerFormat, maxLength } = options
  checkHook('httpBearer({ authenticate })', authenticate, 2)
  checkCredential('httpBearer', options)
  if (bearerFormat !== undefined && typeof bearerFormat !== 'string') {
    throw new TypeError('httpBearer({ bearerFormat }) must be a text')
  }
  const scheme: HttpScheme = { type: 'http', scheme: 'bearer', ...(bearerFormat !== undefined && { bearerFormat }) }
  const own = realm === undefined ? {} : { realm }
  const bare = Challenge.make('Bearer', own)
  const invalid = Challenge.make('Bearer', { ...own, error: 'invalid_token' })
  const challenge = (error: AuthError): Challenge.Challenge => {
    switch (error._tag) {
      case 'malformed':
      case 'invalid':
      case 'expired':
        return invalid
      case 'insufficient':
        return Challenge.make('Bearer', {
          ...own,
          error: 'insufficient_scope',
          ...(error.scope !== undefined && { scope: error.scope.join(' ') }),
        })
      default:
        return bare
    }
  }
  return authenticator({
    ...documented('httpBearer', scheme, options),
    challenge,
    ambient: false,
    extract: authorization('Bearer'),
    credentials: BearerToken,
    maxLength,
    authenticate: (request, token) => authenticate(request, token),
  })
}

declareFactory('httpBearer', httpBearer)
