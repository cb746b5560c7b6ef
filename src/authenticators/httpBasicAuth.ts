/**
 * `Authorization: Basic <base64>` (RFC 7617). The hook gets the user name and password as they were sent, and decides.
 *
 * Nothing is normalized, truncated or percent-decoded. Browsers remember Basic credentials and send them by themselves,
 * so writes from other sites are refused (CSRF).
 */
import type { Request } from 'koa'
import type { PrincipalFromAnswer } from '../core/PrincipalFromAnswer.js'
import { authenticator, type Authenticator } from '../core/Authenticator.js'
import * as Challenge from '../core/Challenge.js'
import { credentialHook } from '../core/credentialHook.js'
import { BasicCredentials } from '../core/Credentials.js'
import { documentation, documented } from '../core/documented.js'
import { declareFactory } from '../core/hooks.js'
import { checkOptions, credential, type Checks } from '../core/options.js'
import { fromAuthorization } from '../core/RequestFields.js'

/** The options of a Basic authenticator. */
export interface HttpBasicAuthOptions<R> {
  /** Decides about a pair; either part may be empty. Do the same work for an unknown user as for a wrong password. */
  readonly authenticate: (request: Request, username: string, password: string) => R
  /** The protection space that a browser's prompt names; default: the application's. */
  readonly realm?: string | undefined
  /** The longest credentials, scheme included, in characters. Default 8192. */
  readonly maxLength?: number | undefined
  /** What OpenAPI calls it; without it a name is derived. */
  readonly schemeName?: string | undefined
  /** The description in OpenAPI, such as how to get one; CommonMark. */
  readonly description?: string | undefined
}

const checks: Checks<HttpBasicAuthOptions<unknown>> = {
  authenticate: credentialHook(3),
  ...credential,
  ...documentation,
}

/**
 * User name and password. Throws a TypeError for a hook that cannot work.
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
  const { authenticate, realm, maxLength, ...rest } = checkOptions('httpBasicAuth', options, checks)
  return authenticator({
    ...documented({ type: 'http', scheme: 'basic' }, rest),
    // RFC 7617 §2.1: the challenge asks the client for UTF-8
    challenge: Challenge.make('Basic', { ...(realm !== undefined && { realm }), charset: 'UTF-8' }),
    ambient: true,
    extract: fromAuthorization('Basic'),
    credentials: BasicCredentials,
    maxLength,
    authenticate: (request, { username, password }) => authenticate(request, username, password),
  })
}

declareFactory('httpBasicAuth', httpBasicAuth)
