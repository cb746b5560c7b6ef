/** Opaque tokens: it asks the authorization server about them (RFC 7662). Answers are kept for a short time, and a refusal never. */
import * as E from 'fp-ts/lib/Either.js'
import { because, expired, invalid, unavailable } from '../core/AuthError.js'
import type { Authenticator } from '../core/Authenticator.js'
import { isToken } from '../core/Credentials.js'
import type { PrincipalFromAnswer, Result } from '../core/Result.js'
import { ownFields, thisMoment } from '../core/data.js'
import { ends } from '../ends/ends.js'
import { report } from '../core/events.js'
import { optionWords } from '../core/functionName.js'
import { fromNow, memory, watchOutages, type Memory } from '../core/memory.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { refusalByTime, refusalOfIntrospection, type ClaimRules, type Json, type TokenClaims } from './claims.js'
import { checkAddress, checkUrl, discovering, fetchJson, Outage, withinTime } from './fetching.js'
import { cachePolicyOf, type CacheOptions } from './keySet.js'
import { audiencesOf, auditNote, partiesOf, tokenChecks, tokenKind, type TokenOptions } from './tokenKind.js'
import { cacheKey, malformedToken, type ValidToken } from './verifier.js'

const DISCOVERY_AGE = 600_000

// RFC 6749 §2.3.1: form-encoded before they are joined
const formEncoded = (value: string): string => new URLSearchParams({ '': value }).toString().slice(1)

// The Authorization field
const basicOf = ({ id, secret }: { readonly id: string; readonly secret: string }): string =>
  `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')}`

// Asks about a token (RFC 7662 §2.1). Rejects with an Outage for anything but a 200 with a JSON object. The address is the endpoint, or
// the issuer whose discovery document names it.
const introspectionAt = (address: string, isEndpoint: boolean, basic: string) => {
  if (isEndpoint) checkAddress('httpIntrospection({ endpoint })', address)
  else checkUrl('httpIntrospection({ issuer })', address)
  const at = discovering(address, 'introspection_endpoint', DISCOVERY_AGE)
  return (token: string, signal: AbortSignal): Promise<Json> => {
    const question = (url: string): Promise<Json> =>
      fetchJson(url, {
        method: 'POST',
        signal,
        headers: { Authorization: basic, Accept: 'application/json' },
        body: new URLSearchParams({ token, token_type_hint: 'access_token' }),
      })
    return isEndpoint ? question(address) : at(signal, question)
  }
}

/** The answer of introspection for an active token. */
export interface IntrospectionClaims extends TokenClaims {
  readonly active: true
  readonly iss?: string
  /** When it expires, in seconds since 1970. */
  readonly exp?: number
  readonly username?: string
  readonly scope?: string
}

export type HttpIntrospectionOptions<C, R> = TokenOptions<C, R> & {
  /** The resource server's own credentials, sent as Basic. */
  readonly client: { readonly id: string; readonly secret: string }
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

/**
 * Opaque tokens. 401 `error="invalid_token"` for a token that is not active or not for this audience; 503 for anything but
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
): Authenticator<PrincipalFromAnswer<R>> => {
  const caller = 'httpIntrospection'
  const options = checkOptions(caller, given, checks)
  const audiences = audiencesOf(caller, options)
  const { endpoint, issuer, client, timeout = DEFAULT_TIMEOUT } = options
  if ((endpoint === undefined) === (issuer === undefined)) {
    throw new TypeError(`${caller} needs exactly one of endpoint and issuer`)
  }
  const checkedClient = checkOptions(`${caller}({ client })`, client, { id: is.nonEmpty, secret: is.nonEmpty })
  const policy = cachePolicyOf(`${caller}({ cache })`, options.cache, DEFAULT_AGE)
  const server = endpoint ?? issuer ?? ''
  const self: Introspection = {
    issuer,
    audiences,
    timeout,
    ask: introspectionAt(server, endpoint !== undefined, basicOf(checkedClient)),
    rules: {
      profile: 'any',
      clockTolerance: 5,
      maxTokenAge: undefined,
      authorizedParties: partiesOf(caller, options.authorizedParties),
      confirmations: [],
      isBindingRequired: false,
    },
    cache: policy && memory<string>({ ...policy, dropsFirst: 'oldest' }),
    revoked: memory<true>({ size: 1000, maxAge: Infinity, dropsFirst: 'oldest' }),
    pending: new Map(),
    outages: introspectionOutages(server),
  }
  const notes = [
    ...auditNote('endpoint', endpoint),
    ...auditNote('issuer', issuer),
    ...optionWords({ cache: options.cache }),
    ...auditNote('audience', audiences || undefined),
    ...auditNote('authorizedParties', options.authorizedParties),
  ]
  const scheme = { scheme: { type: 'http', scheme: 'bearer' } as const, notes }
  // Safe: it lets in the result of the hook; without a hook, `R` is the server's answer
  return tokenKind(scheme, options, (token) => checkToken(self, token)) as Authenticator<PrincipalFromAnswer<R>>
}

type TokenResult = Result<ValidToken>

interface Introspection {
  readonly issuer: string | undefined
  readonly audiences: ReturnType<typeof audiencesOf>
  readonly timeout: number
  readonly ask: ReturnType<typeof introspectionAt>
  readonly rules: ClaimRules
  readonly cache: Memory<string> | undefined
  /** For requests that were let in before, and ask for their end only now. */
  readonly revoked: Memory<true>
  readonly pending: Map<string, Promise<TokenResult>>
  readonly outages: ReturnType<typeof introspectionOutages>
}

const checkToken = (self: Introspection, token: string): TokenResult | Promise<TokenResult> => {
  const { cache, rules, pending } = self
  if (!isToken(token)) return malformedToken
  const key = cacheKey(token)
  const kept = cache?.get(key)
  if (kept !== undefined) {
    const valid = validOf(self, kept, key)
    if (refusalByTime(ownFields(valid.claims), rules, Date.now() / 1000, false) === undefined) return E.right(valid)
  }
  const before = pending.get(key)
  if (before !== undefined) return before.then(ownCopy)
  const now = introspect(self, token, key).finally(() => pending.delete(key))
  pending.set(key, now)
  return now
}

const validOf = ({ revoked }: Introspection, payload: string, name: string): ValidToken => ({
  payload,
  // Safe: the payload was made from a JSON object
  claims: JSON.parse(payload) as object,
  ending: { name, isRevoked: () => revoked.get(name) === true },
})

const introspect = async (self: Introspection, token: string, key: string): Promise<TokenResult> => {
  const { issuer, audiences, timeout, ask, rules, cache, revoked, outages } = self
  const begun = thisMoment()
  const question = outages.ask()
  try {
    const claims = await withinTime(timeout, (signal) => ask(token, signal))
    outages.answered(question)
    const cause = refusalOfIntrospection(issuer, { claims, audiences, rules }, Date.now() / 1000)
    if (cause === 'revoked') {
      revoked.set(key, fromNow(true))
      ends().end(key, () => 'revoked')
    }
    if (cause !== undefined) return E.left(because(cause === 'expired' ? expired : invalid, cause))
    const payload = JSON.stringify(claims)
    // Safe: `refusalByTime` refuses an `exp` that is not a number
    const expiresAt = ((claims['exp'] as number | undefined) ?? Infinity) * 1000
    cache?.set(key, { value: payload, since: begun, expiresAt })
    revoked.delete(key)
    return E.right(validOf(self, payload, key))
  } catch (error) {
    outages.failed(question, error instanceof Outage ? error.message : 'cannot be asked')
    return E.left(unavailable())
  }
}

// A copy, because the hook of one request must not change the claims of another
const ownCopy = (result: TokenResult): TokenResult =>
  E.isLeft(result) ? result : E.right({ ...result.right, claims: JSON.parse(result.right.payload) as object })

const introspectionOutages = (url: string) => {
  // A query may contain a key, which must not be in a log
  const server = url.replace(/\?.*$/s, '')
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
