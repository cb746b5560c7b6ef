/**
 * `httpIntrospection`: opaque tokens. It asks the authorization server about them (RFC 7662).
 *
 * Each token costs a request now and then, so answers are kept for a short time. A refusal is never kept.
 */
import * as E from 'fp-ts/lib/Either.js'
import { because, expired, invalid, unavailable, type AuthError, type Why } from '../core/AuthError.js'
import type { TokenAuthenticator } from '../core/Authenticator.js'
import type { HttpScheme } from '../core/Description.js'
import type { PrincipalFromAnswer } from '../core/Result.js'
import { ownFields, thisMoment } from '../core/data.js'
import { ends } from '../core/ends.js'
import { report, watchOutages } from '../core/events.js'
import { optionWords } from '../core/functionName.js'
import { memory } from '../core/memory.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { nonEmptyStrings } from './Provider.js'
import { refusalByClaims, refusalByTime, type Actor, type ClaimRules, type Json } from './claims.js'
import { checkUrl, discovery, fetchJson, Outage, type Ask } from './fetching.js'
import { cachePolicyOf, type CacheOptions } from './keySet.js'
import { audiencesOf, noteOf, partiesOf, tokenChecks, tokenKind, type TokenOptions } from './tokenKind.js'
import { cacheKey, type ValidToken } from './verifier.js'

/** The resource server's own credentials. */
interface IntrospectionClient {
  readonly id: string
  readonly secret: string
}

const DISCOVERY_AGE = 600_000

// RFC 6749 §2.3.1: form-encoded before they are joined
const formEncoded = (value: string): string => new URLSearchParams({ '': value }).toString().slice(1)

/** The Authorization field for the client. Throws a TypeError for credentials that cannot be a client's. */
const basicOf = (where: string, client: IntrospectionClient): string => {
  const { id, secret } = checkOptions(`${where}({ client })`, client, { id: is.nonEmpty, secret: is.nonEmpty })
  return `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')}`
}

/**
 * Asks about a token (RFC 7662 §2.1). Rejects with an Outage for anything but a 200 with a JSON object. The address is the endpoint, or
 * the issuer whose discovery document names it.
 */
const asking = (address: string, isEndpoint: boolean, basic: string) => {
  checkUrl(`httpIntrospection({ ${isEndpoint ? 'endpoint' : 'issuer'} })`, address, isEndpoint)
  const { find, forget } = discovery(address, 'introspection_endpoint', DISCOVERY_AGE)
  const ask: Ask<string> = isEndpoint ? () => Promise.resolve(address) : find
  return async (token: string, signal: AbortSignal): Promise<Json> => {
    const url = await ask(signal)
    try {
      return await fetchJson(url, {
        method: 'POST',
        signal,
        headers: { Authorization: basic, Accept: 'application/json' },
        body: new URLSearchParams({ token, token_type_hint: 'access_token' }),
      })
    } catch (error) {
      // the address may have changed
      forget()
      throw error
    }
  }
}

/** The answer of introspection for an active token. */
export interface IntrospectionClaims {
  readonly active: true
  readonly aud: string | ReadonlyArray<string>
  readonly iss?: string
  /** When it expires, in seconds since 1970. */
  readonly exp?: number
  readonly sub?: string
  readonly client_id?: string
  readonly username?: string
  readonly scope?: string
  /** The class in which the user authenticated, and when, in seconds since 1970 (RFC 9470 §6.2). */
  readonly acr?: unknown
  readonly auth_time?: unknown
  /** Who acts for `sub` now (RFC 8693 §4.1). */
  readonly act?: Actor
  readonly [claim: string]: unknown
}

export type HttpIntrospectionOptions<C, R> = TokenOptions<C, R> & {
  /** The resource server's own credentials, sent as Basic. */
  readonly client: IntrospectionClient
  /** How answers are kept, by the SHA-256 of the token. Default: 1000 of them, for 30 000 ms. `false`: not at all. */
  readonly cache?: false | CacheOptions | undefined
  /** How long the server may take, discovery included, in milliseconds. Default 2000. */
  readonly timeout?: number | undefined
} & (
    | {
        /** The address of the introspection endpoint. */
        readonly endpoint: string
        readonly issuer?: undefined
      }
    | {
        /** The issuer whose discovery document names the endpoint (RFC 8414, then OpenID Connect). */
        readonly issuer: string
        readonly endpoint?: undefined
      }
  )

const checks = {
  endpoint: is.unchecked,
  issuer: is.unchecked,
  client: is.unchecked,
  cache: is.unchecked,
  timeout: is.maybe(is.positive),
  ...tokenChecks,
}

const DEFAULT_TIMEOUT = 2000
const DEFAULT_AGE = 30_000
const generalRules: ClaimRules = {
  profile: 'any',
  clockTolerance: 5,
  maxTokenAge: undefined,
  authorizedParties: undefined,
  confirmations: [],
  isBindingRequired: false,
}

/**
 * Opaque tokens. 401 `error="invalid_token"` for one that is not active or not for this audience; 503 for anything but
 * a 200 with a JSON object. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { httpIntrospection } from 'koa-with-auth/jwt'
 *
 * const opaque = httpIntrospection({
 *   endpoint: 'https://login.example/introspect',
 *   client: { id: 'api', secret: 'from the environment' },
 *   audience: 'https://api.example',
 * })
 */
export const httpIntrospection = <C = IntrospectionClaims, R = C>(
  given: HttpIntrospectionOptions<C, R>,
): TokenAuthenticator<PrincipalFromAnswer<R>> => {
  const caller = 'httpIntrospection'
  const options = checkOptions(caller, given, checks)
  const audience = audiencesOf(caller, options)
  const audiences = audience === false ? false : nonEmptyStrings(`${caller}({ audience })`, audience)
  const { endpoint, issuer, client, timeout = DEFAULT_TIMEOUT } = options
  if ((endpoint === undefined) === (issuer === undefined)) {
    throw new TypeError(`${caller} needs exactly one of endpoint and issuer`)
  }
  const policy = cachePolicyOf(`${caller}({ cache })`, options.cache, DEFAULT_AGE)
  const cache = policy === undefined ? undefined : memory<string>({ ...policy, dropsFirst: 'oldest' })
  const ask = asking(endpoint ?? issuer ?? '', endpoint !== undefined, basicOf(caller, client))
  const rules = { ...generalRules, authorizedParties: partiesOf(caller, options.authorizedParties) }
  const refusalOf = (claims: Json): Why | undefined => {
    const { active, iss, token_type: type } = claims
    // RFC 7662 §2.2: only `true`. The server says nothing of the cause
    if (active !== true) return 'revoked'
    // RFC 9449 §5: bound to a key, so never accepted as a plain bearer token
    if (type !== undefined && (typeof type !== 'string' || type.toLowerCase() === 'dpop')) return 'binding'
    // RFC 7662 §2.2: `iss` may be left out
    if (issuer !== undefined && iss !== undefined && iss !== issuer) return 'issuer'
    return refusalByClaims(claims, audiences, rules)
  }

  const outages = outagesOf(endpoint ?? issuer ?? '')
  const decide = async (token: string, key: string): Promise<Result> => {
    const begun = thisMoment()
    const question = outages.ask()
    try {
      const claims = await ask(token, AbortSignal.timeout(Math.ceil(timeout)))
      outages.answered(question)
      const cause = refusalOf(claims)
      if (cause === 'revoked') ends().end(key, () => 'revoked')
      if (cause !== undefined) return E.left(because(invalid, cause))
      const refusal = refusalNow(claims)
      if (refusal !== undefined) return E.left(refusal)
      const payload = JSON.stringify(claims)
      // Safe: `refusalNow` refuses an `exp` that is not a number
      const expiresAt = ((claims['exp'] as number | undefined) ?? Infinity) * 1000
      cache?.set(key, { value: payload, since: begun, expiresAt })
      return E.right(validOf(payload, key))
    } catch (error) {
      outages.failed(question, error instanceof Outage ? error.message : 'cannot be asked')
      return E.left(unavailable())
    }
  }

  const pending = new Map<string, Promise<Result>>()
  const check = (token: string): Result | Promise<Result> => {
    const key = cacheKey(token)
    const kept = cache?.get(key)
    if (kept !== undefined) {
      const valid = validOf(kept, key)
      if (refusalNow(ownFields(valid.claims)) === undefined) return E.right(valid)
    }
    const before = pending.get(key)
    if (before !== undefined) return before.then(ownCopy)
    const now = decide(token, key).finally(() => pending.delete(key))
    pending.set(key, now)
    return now
  }
  // Safe: it lets in what the hook returns; without a hook, `R` is the server's answer
  const notes = [
    ...noteOf('endpoint', endpoint),
    ...noteOf('issuer', issuer),
    ...optionWords({ cache: options.cache }),
    ...noteOf('audience', audience === false ? 'any' : audience),
    ...noteOf('authorizedParties', options.authorizedParties),
  ]
  return tokenKind({ scheme: opaqueBearer, notes }, options, check) as TokenAuthenticator<PrincipalFromAnswer<R>>
}

const opaqueBearer: HttpScheme = { type: 'http', scheme: 'bearer' }

type Result = E.Either<AuthError, ValidToken>

// A copy, because the hook of one request must not change the claims of another
const ownCopy = (result: Result): Result =>
  E.isLeft(result) ? result : E.right({ ...result.right, claims: JSON.parse(result.right.payload) as object })

const validOf = (payload: string, name: string): ValidToken =>
  // Safe: the payload was made from a JSON object
  ({ payload, claims: JSON.parse(payload) as object, name })

const refusalNow = (claims: Json): AuthError | undefined => {
  const refusal = refusalByTime(claims, generalRules, Date.now() / 1000, false)
  return refusal && because(refusal === 'expired' ? expired : invalid, refusal)
}

// A query may contain a key, which must not be in a log
const addressOf = (url: string): string => url.replace(/\?.*$/s, '')

const outagesOf = (url: string) => {
  const server = addressOf(url)
  return watchOutages(
    (problem: string) => {
      process.emitWarning(
        `httpIntrospection: ${server} ${problem}. Requests with tokens that are not cached are answered with 503`,
        'ProviderWarning',
      )
      report('introspection-outage')(() => ({ event: 'begun', server, problem }))
    },
    (durationMs) => report('introspection-outage')(() => ({ event: 'over', server, durationMs })),
  )
}

declareFactory('httpIntrospection', httpIntrospection)
