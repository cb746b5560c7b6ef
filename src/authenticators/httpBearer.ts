/**
 * `Authorization: Bearer <token>` (RFC 6750). The hook gets the token, and decides. `koa-with-auth/jwt` verifies JWTs.
 *
 * The token is read only from the Authorization header, not from a form or the query (RFC 9700 §4.3.2).
 */
import type { Request } from 'koa'
import type { PrincipalFromAnswer } from '../core/PrincipalFromAnswer.js'
import { alt } from '../core/alt.js'
import { authenticator, type Authenticator } from '../core/Authenticator.js'
import { bearerChallenge, checkChallengeParameters } from '../core/bearerChallenge.js'
import { token } from '../core/fieldSyntax.js'
import { credentialHook } from '../core/credentialHook.js'
import { tokenOf } from '../core/Credentials.js'
import { documentation, documented } from '../core/documented.js'
import { declareFactory } from '../core/hooks.js'
import { checkOptions, credential, maybe, string, type Check, type Checks } from '../core/options.js'
import { fromAuthorization } from '../core/RequestFields.js'
import type { HttpScheme } from '../core/SecurityScheme.js'

/** The options of a bearer authenticator. */
export interface HttpBearerOptions<R> {
  /** Decides about a token. */
  readonly authenticate: (request: Request, token: string) => R
  /** The protection space; default: the application's. */
  readonly realm?: string | undefined
  /** Further parameters of every challenge, such as `resource_metadata` (RFC 9728 §5.1). */
  readonly challenge?: Readonly<Record<string, string>> | undefined
  /**
   * The authentication schemes that are accepted, such as `['Bearer', 'Token']` for clients that send `Authorization: Token x`.
   * The challenge of a 401 names each. Default `['Bearer']`.
   */
  readonly schemes?: readonly [string, ...string[]] | undefined
  /** The format of the token, for the documentation, such as "JWT". */
  readonly bearerFormat?: string | undefined
  /** The longest credentials, scheme included, in characters. Default 8192. */
  readonly maxLength?: number | undefined
  /** What OpenAPI calls it; without it a name is derived. */
  readonly schemeName?: string | undefined
  /** The description in OpenAPI, such as how to get one; CommonMark. */
  readonly description?: string | undefined
}

/**
 * A bearer token. 401 without `error` when none was sent, `error="invalid_token"` when it was refused (RFC 6750 §3),
 * 403 `error="insufficient_scope"` when the hook returns `AuthError.insufficient`. Throws a TypeError for a hook that
 * cannot work.
 *
 * @example
 * import { constantTimeEqual, httpBearer } from 'koa-with-auth'
 *
 * const bearer = httpBearer({
 *   authenticate: (_request, token) => constantTimeEqual(token, 'supersecret') && { token },
 * })
 */
export const httpBearer = <R>(options: HttpBearerOptions<R>): Authenticator<PrincipalFromAnswer<R>> => {
  const given = checkOptions('httpBearer', options, checks)
  const { authenticate, realm, challenge = {}, schemes = ['Bearer'], bearerFormat, maxLength } = given
  const parameters = { ...(realm !== undefined && { realm }), ...challenge }
  const ofScheme = (name: string): Authenticator<PrincipalFromAnswer<R>> => {
    const isBearer = name.toLowerCase() === 'bearer'
    const scheme: HttpScheme = {
      type: 'http',
      scheme: name.toLowerCase(),
      ...(isBearer && bearerFormat !== undefined && { bearerFormat }),
    }
    const { schemeName } = given
    // OpenAPI lists each scheme under another name
    const named = name === schemes[0] || schemeName === undefined ? given : { ...given, schemeName: schemeName + name }
    return authenticator({
      ...documented(scheme, named),
      challenge: bearerChallenge(parameters, {}, name),
      ambient: false,
      extract: fromAuthorization(name),
      credentials: tokenOf(name),
      maxLength,
      authenticate: (request, token) => authenticate(request, token),
    })
  }
  const [first, ...others] = schemes
  return others.reduce((before, name) => alt(() => ofScheme(name))(before), ofScheme(first))
}

const checkSchemes: Check = (where, schemes) => {
  if (!Array.isArray(schemes) || schemes.length === 0) {
    throw new TypeError(`${where} must be an array of scheme names, such as ['Bearer', 'Token']`)
  }
  const names = schemes.map((name: unknown) => {
    if (typeof name !== 'string' || !token.test(name)) {
      throw new TypeError(`${where}: a scheme is a name such as "Token" (RFC 9110 §11.1), with no blanks`)
    }
    if (name.toLowerCase() === 'basic') throw new TypeError(`${where}: Basic does not carry a token; use httpBasicAuth`)
    return name.toLowerCase()
  })
  if (new Set(names).size < names.length) throw new TypeError(`${where} names a scheme twice`)
}

const checks: Checks<HttpBearerOptions<unknown>> = {
  authenticate: credentialHook(2),
  realm: credential.realm,
  challenge: maybe(checkChallengeParameters),
  schemes: maybe(checkSchemes),
  bearerFormat: maybe(string),
  maxLength: credential.maxLength,
  ...documentation,
}

declareFactory('httpBearer', httpBearer)
