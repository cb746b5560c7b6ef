/**
 * The schemes of the Authorization field: `httpBearer` (RFC 6750) and `httpBasicAuth` (RFC 7617). Their hooks decide;
 * `koa-with-auth/jwt` verifies JWTs.
 *
 * A token is read only from the Authorization header, not from a form or the query (RFC 9700 §4.3.2).
 */
import { types } from 'node:util'
import type { Request } from '../core/Request.js'
import type { AuthError } from '../core/AuthError.js'
import { authenticator, kindOf, type Authenticator } from '../core/Authenticator.js'
import { make, type Challenge } from '../core/Challenge.js'
import { BasicCredentials, tokenAfter } from '../core/Credentials.js'
import { documented, stringKindChecks, type StringKindOptions, type HttpScheme } from '../core/Description.js'
import { fromAuthorization } from '../core/RequestFields.js'
import type { PrincipalFromAnswer } from '../core/Result.js'
import { alt } from '../core/lists.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactories, token, type Check, type Checks } from '../core/options.js'

// Parameters that this module, the application's realm or `requireScopes` writes
const reservedParameters = ['realm', 'scope', 'error', 'error_description', 'error_uri']

// Checks further parameters of a challenge. Throws a TypeError for a value that does not fit a header, and for a
// parameter that the library writes itself.
const checkChallengeParameters = (where: string, parameters: unknown): void => {
  if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters)) {
    throw new TypeError(`${where} must be an object of strings, such as { resource_metadata: 'https://...' }`)
  }
  for (const name of Object.keys(parameters)) {
    if (reservedParameters.includes(name.toLowerCase())) {
      throw new TypeError(`${where}: "${name}" is written by the library itself; remove it`)
    }
  }
  // Safe: `make` refuses every value that is no string
  make('Bearer', parameters as Readonly<Record<string, string>>)
}

/**
 * The challenge of the Bearer scheme for each failure (RFC 6750 §3). `own` is in all of them, such as
 * `resource_metadata` (RFC 9728 §5.1). `expired` is in that of an expired token.
 */
export const bearerChallenge = (
  own: Readonly<Record<string, string>>,
  expired: Readonly<Record<string, string>> = {},
  scheme = 'Bearer',
): ((error: AuthError) => Challenge) => {
  const bare = make(scheme, own)
  const invalid = make(scheme, { ...own, error: 'invalid_token' })
  const over = make(scheme, { ...own, error: 'invalid_token', ...expired })
  return (error) => {
    if (error._tag === 'malformed' || error._tag === 'invalid') return invalid
    if (error._tag === 'expired') return over
    if (error._tag !== 'insufficient') return bare
    const { scope } = error
    return make(scheme, { ...own, error: 'insufficient_scope', ...(scope !== undefined && { scope: scope.join(' ') }) })
  }
}

export interface HttpBearerOptions<R> extends StringKindOptions {
  /** Decides about a token. */
  readonly authenticate: (request: Request, token: string) => R
  /** Further parameters of every challenge, such as `resource_metadata` (RFC 9728 §5.1). */
  readonly challenge?: Readonly<Record<string, string>> | undefined
  /**
   * The authentication schemes that are accepted, such as `['Bearer', 'Token']` for clients that send `Authorization: Token x`.
   * The challenge of a 401 names each. Default `['Bearer']`.
   */
  readonly schemes?: readonly [string, ...string[]] | undefined
  /**
   * The syntax of a whole token, if it is no b64token (RFC 6750 §2.1), such as `/\d+\|\w+/` for `12|abc`. Blanks and characters
   * outside of ASCII are refused in any case. Write it so that it takes linear time: a stranger chooses its input.
   */
  readonly syntax?: RegExp | undefined
  /** The format of the token, for the documentation, such as "JWT". */
  readonly bearerFormat?: string | undefined
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
  const given = checkOptions('httpBearer', options, bearerChecks)
  const { authenticate, realm, challenge = {}, schemes = ['Bearer'], bearerFormat, maxLength, syntax } = given
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
      credentials: tokenAfter(name, syntax && tokenLike(syntax)),
      maxLength,
      authenticate,
    })
  }
  const [first, ...others] = schemes
  return others.reduce((before, name) => alt(() => ofScheme(name))(before), ofScheme(first))
}

// RFC 9110 §5.5, without blanks: the other characters of a word of a field
const visibleAscii = /^[\x21-\x7e]+$/

const tokenLike = (syntax: RegExp) => {
  const whole = new RegExp(`^(?:${syntax.source})$`, syntax.flags.replaceAll(/[gy]/g, ''))
  return (u: unknown): u is string => typeof u === 'string' && visibleAscii.test(u) && whole.test(u)
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

const bearerChecks: Checks<HttpBearerOptions<unknown>> = {
  authenticate: is.hook(2),
  challenge: is.maybe(checkChallengeParameters),
  schemes: is.maybe(checkSchemes),
  bearerFormat: is.maybe(is.string),
  syntax: is.maybe(is.that(types.isRegExp, 'must be a RegExp, such as /\\d+\\|\\w+/')),
  ...stringKindChecks,
}

export interface HttpBasicAuthOptions<R> extends StringKindOptions {
  /** Decides about a pair; either part may be empty. Do the same work for an unknown user as for a wrong password. */
  readonly authenticate: (request: Request, username: string, password: string) => R
}

const basicChecks: Checks<HttpBasicAuthOptions<unknown>> = {
  authenticate: is.hook(3),
  ...stringKindChecks,
}

/**
 * User name and password. Throws a TypeError for a hook that cannot work.
 *
 * It reads `Authorization: Basic <base64>` (RFC 7617). The hook gets the user name and password as they were sent:
 * nothing is normalized, truncated or percent-decoded. Browsers remember Basic credentials and send them by themselves,
 * so writes from other sites are refused (CSRF).
 *
 * @example
 * import { constantTimeEqual, httpBasicAuth } from 'koa-with-auth'
 *
 * const basic = httpBasicAuth({
 *   realm: 'back office',
 *   authenticate: (_request, username, password) =>
 *     constantTimeEqual(`${username}:${password}`, 'admin:secret') && { username },
 * })
 */
export const httpBasicAuth = <R>(options: HttpBasicAuthOptions<R>): Authenticator<PrincipalFromAnswer<R>> => {
  const { authenticate, realm, maxLength, ...rest } = checkOptions('httpBasicAuth', options, basicChecks)
  return kindOf({
    ...documented({ type: 'http', scheme: 'basic' }, rest),
    // RFC 7617 §2.1: the challenge asks the client for UTF-8
    challenge: make('Basic', { ...(realm !== undefined && { realm }), charset: 'UTF-8' }),
    ambient: true,
    extract: fromAuthorization('Basic'),
    credentials: BasicCredentials,
    maxLength,
    authenticate: (request, { username, password }) => authenticate(request, username, password),
    hook: authenticate,
  })
}

declareFactories({ httpBearer, httpBasicAuth })
