/**
 * API keys: a token that a client supplies on each call, in the query string, a header or a cookie (spec 5.2).
 *
 * The hook gets the key as it was sent, and decides. A key that is absent, empty, too long or sent twice never reaches
 * it. Keys are ASCII by convention: bytes above 127 in a header or cookie are read as Latin-1. Compare keys with
 * `constantTimeEqual`, or look up a digest of the key.
 */
import type * as O from 'fp-ts/lib/Option.js'
import type * as t from 'io-ts'
import type { Request } from '../core/Request.js'
import { authenticator, type Authenticator } from '../core/Authenticator.js'
import * as Challenge from '../core/Challenge.js'
import { CookieKey, HeaderKey, QueryKey } from '../core/Credentials.js'
import { documented, stringKindChecks, type StringKindOptions } from '../core/Description.js'
import { fromCookie, fromHeader, fromQuery, type Sent } from '../core/RequestFields.js'
import type { PrincipalFromAnswer } from '../core/Result.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, token, type Checks } from '../core/options.js'

export interface ApiKeyOptions<R> extends StringKindOptions {
  /** The name of the query parameter, header or cookie. Default `key`. */
  readonly paramName?: string | undefined
  /** Decides about a key. */
  readonly authenticate: (request: Request, key: string) => R
}

interface KeyLocation {
  readonly in: 'query' | 'header' | 'cookie'
  readonly ambient: boolean
  readonly allowed: RegExp
  readonly credentials: t.Type<string, string, unknown>
  readonly read: (name: string) => (request: Request) => O.Option<Sent>
}

const apiKey = (factory: string, location: KeyLocation) => {
  const checks: Checks<ApiKeyOptions<unknown>> = {
    paramName: is.maybe(is.nameLike(location.allowed)),
    authenticate: is.hook(2),
    ...stringKindChecks,
  }
  const make = <R>(options: ApiKeyOptions<R>): Authenticator<PrincipalFromAnswer<R>> => {
    const { paramName: name = 'key', authenticate, realm, maxLength, ...rest } = checkOptions(factory, options, checks)
    const { scheme, ...named } = documented({ type: 'apiKey', in: location.in, name }, rest)
    return authenticator({
      scheme,
      ...named,
      challenge: Challenge.make('ApiKey', { ...(realm !== undefined && { realm }), in: location.in, name }),
      ambient: location.ambient,
      extract: location.read(name),
      credentials: location.credentials,
      maxLength,
      authenticate,
    })
  }
  return declareFactory(factory, make)
}

/**
 * A key in the query string, `?key=...`. Discouraged: URLs end up in logs, histories and the Referer header (ASVS
 * 14.2.1), so responses carry `Referrer-Policy: same-origin`. Throws a TypeError for a name or hook that cannot work.
 *
 * @example
 * import { apiKeyQuery, constantTimeEqual } from 'koa-with-auth'
 *
 * const key = apiKeyQuery({
 *   paramName: 'api_key',
 *   authenticate: (_request, key) => constantTimeEqual(key, 'supersecret') && { client: 'Acme' },
 * })
 */
export const apiKeyQuery = apiKey('apiKeyQuery', {
  in: 'query',
  ambient: false,
  // the challenge names it in a quoted-string
  allowed: /^[\x21-\x7e]+$/,
  credentials: QueryKey,
  read: fromQuery,
})

/**
 * A key in a header. Throws a TypeError for a name or hook that cannot work.
 *
 * @example
 * import { apiKeyHeader, constantTimeEqual } from 'koa-with-auth'
 *
 * const key = apiKeyHeader({
 *   paramName: 'X-API-Key',
 *   authenticate: (_request, key) => constantTimeEqual(key, 'supersecret') && { client: 'Acme' },
 * })
 */
export const apiKeyHeader = apiKey('apiKeyHeader', {
  in: 'header',
  ambient: false,
  allowed: token,
  credentials: HeaderKey,
  read: fromHeader,
})

/**
 * A key in a cookie. Browsers send it by themselves, so writes from other sites are refused (CSRF). Throws a TypeError
 * for a name or hook that cannot work.
 *
 * @example
 * import { apiKeyCookie, constantTimeEqual } from 'koa-with-auth'
 *
 * const key = apiKeyCookie({
 *   paramName: '__Host-key',
 *   authenticate: (_request, key) => constantTimeEqual(key, 'supersecret') && { client: 'Acme' },
 * })
 */
export const apiKeyCookie = apiKey('apiKeyCookie', {
  in: 'cookie',
  ambient: true,
  allowed: token,
  credentials: CookieKey,
  read: fromCookie,
})
