/**
 * `Authorization: Bearer <token>` (RFC 6750). The hook gets the token and decides; verifying a JWT is its business.
 *
 * The token travels in the Authorization header alone: not in a form, not in the query (RFC 9700 §4.3.2).
 */
import type { Request } from 'koa'
import type { PrincipalFromAnswer } from '../core/Answer.js'
import { authenticator, type Authenticator } from '../core/Authenticator.js'
import { bearerChallenge, checkChallengeParameters } from '../core/bearerChallenge.js'
import { BearerToken } from '../core/Credentials.js'
import { documentation, documented } from '../core/documented.js'
import { checkCredential, checkHook, checkOptions, declareFactory } from '../core/misuse.js'
import { fromAuthorization } from '../core/RequestFields.js'
import type { HttpScheme } from '../core/SecurityScheme.js'

/** What a bearer authenticator is made of. */
export interface HttpBearerOptions<R> {
  /** Decides about a token. */
  readonly authenticate: (request: Request, token: string) => R
  /** The protection space; default: the application's. */
  readonly realm?: string
  /** Further parameters of every challenge, such as `resource_metadata` (RFC 9728 §5.1). */
  readonly challenge?: Readonly<Record<string, string>>
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
export const httpBearer = <R>(options: HttpBearerOptions<R>): Authenticator<PrincipalFromAnswer<R>> => {
  checkOptions('httpBearer', options, [
    'authenticate',
    'realm',
    'challenge',
    'bearerFormat',
    'maxLength',
    ...documentation,
  ])
  const { authenticate, realm, challenge = {}, bearerFormat, maxLength } = options
  checkHook('httpBearer({ authenticate })', authenticate, 2)
  checkCredential('httpBearer', options)
  checkChallengeParameters('httpBearer({ challenge })', challenge)
  if (bearerFormat !== undefined && typeof bearerFormat !== 'string') {
    throw new TypeError('httpBearer({ bearerFormat }) must be a text')
  }
  const scheme: HttpScheme = { type: 'http', scheme: 'bearer', ...(bearerFormat !== undefined && { bearerFormat }) }
  return authenticator({
    ...documented('httpBearer', scheme, options),
    challenge: bearerChallenge({ ...(realm !== undefined && { realm }), ...challenge }),
    ambient: false,
    extract: fromAuthorization('Bearer'),
    credentials: BearerToken,
    maxLength,
    authenticate: (request, token) => authenticate(request, token),
  })
}

declareFactory('httpBearer', httpBearer)
