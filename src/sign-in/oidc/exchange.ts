/** Exchanges the token of a caller for a token of the next service (RFC 8693). Nothing is stored: this process keeps it while it is good. */
import * as E from 'fp-ts/lib/Either.js'
import { ownField } from '../../core/data.js'
import * as is from '../../core/checks.js'
import { fromNow, memory, type Memory } from '../../core/memory.js'
import { checkOptions, declareFactory, isScope, withoutUndefined, type Checks } from '../../core/options.js'
import { UnavailableError } from '../../core/Result.js'
import { digest } from '../../crypto/secrets.js'
import { checkAddress, checkUrl } from '../../jwt/fetching.js'
import { expectGone } from '../../koa/gone.js'
import { acceptedTokenOf } from '../../jwt/tokenKind.js'
import { contextOf, type WithRequest } from '../../sessions/SignIn.js'
import { registeredClient, type Client } from './Client.js'
import { GrantEnded, SPARE, type Tokens } from './Grant.js'
import type { OAuth2Kind } from './oauth2.js'
import type { OidcKind } from './oidc.js'
import { openidClient } from './openidClient.js'
import { plainConfiguration } from './ProviderRequest.js'
import { askedForTokens, tokenClientOf, type TokenClient } from './TokenClient.js'
import { UpstreamGone } from './upstream.js'

/** At which token endpoint tokens are exchanged, and for which service. */
export interface ExchangeOptions {
  /** The value of `oidc(...)` or `oauth2(...)`. Left out: `tokenEndpoint` and `client`. */
  readonly provider?: OidcKind | OAuth2Kind | undefined
  /** The URL of the token endpoint. */
  readonly tokenEndpoint?: string | undefined
  /** The registration of the application there. */
  readonly client?: Client | undefined
  /** The name of the next service, as the provider knows it. Write this, or `resource`. */
  readonly audience?: string | undefined
  /** The URL of the next service (RFC 8707). */
  readonly resource?: string | undefined
  /** The scopes of the new token. Default: as the provider decides. `undefined` is a TypeError. */
  readonly scope?: ReadonlyArray<string>
  /** The time limit of a request to `tokenEndpoint`, in milliseconds. Default 5000. */
  readonly timeout?: number | undefined
}

/** Exchanges the token of a request. */
export interface TokenExchange {
  /**
   * An access token of the next service for the caller of this request, whom `httpJwt` or `httpIntrospection` has let in. Rejects with
   * `UpstreamGone` (401) if the provider refuses the caller's token, and with an `UnavailableError` (503) if it cannot be asked.
   */
  readonly token: (ctx: WithRequest) => Promise<string>
}

const checks: Checks<ExchangeOptions> = {
  provider: is.unchecked,
  tokenEndpoint: is.maybe(checkAddress),
  client: is.unchecked,
  audience: is.maybe(is.nonEmpty),
  resource: is.maybe((where, value) => checkUrl(where, value, true)),
  scope: is.ifWritten(is.listOf(isScope, 'must be an array of scopes')),
  timeout: is.maybe(is.positive),
}

const TIMEOUT = 5000
const MAX_TOKENS = 1000
// How long a token is kept whose end the provider did not name, in milliseconds
const UNSAID = 60_000

const where = 'exchange(options)'

const endpointClient = (tokenEndpoint: string, client: unknown, timeout: number): TokenClient => {
  const registered = registeredClient('exchange({ client })', client)
  const { origin } = new URL(tokenEndpoint)
  const configured = plainConfiguration({ issuer: origin, token_endpoint: tokenEndpoint }, registered, timeout)
  return { issuer: origin, configured: () => Promise.resolve(E.right(configured())), scopes: new Set() }
}

const clientFrom = ({ provider, tokenEndpoint, client, timeout = TIMEOUT }: ExchangeOptions): TokenClient => {
  if ((provider === undefined) === (tokenEndpoint === undefined))
    throw new TypeError(`${where}: write { provider }, or { tokenEndpoint, client }`)
  if (tokenEndpoint !== undefined) return endpointClient(tokenEndpoint, client, timeout)
  if (client !== undefined) throw new TypeError(`${where}: a provider has its client; leave client out`)
  return tokenClientOf('exchange({ provider })', provider)
}

interface Exchanging {
  readonly client: TokenClient
  readonly asked: Readonly<Record<string, string>>
  readonly kept: Memory<string>
  readonly flights: Map<string, Promise<string>>
}

/** RFC 8693 §3. */
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

type AcceptedToken = NonNullable<ReturnType<typeof acceptedTokenOf>>

const exchanged = async (self: Exchanging, accepted: AcceptedToken, key: string): Promise<string> => {
  const exp = ownField(accepted.claims(), 'exp')
  const ends = typeof exp === 'number' ? exp * 1000 : Infinity
  const parameters = { ...self.asked, subject_token: accepted.token, subject_token_type: ACCESS_TOKEN }
  const tokens: Tokens = await askedForTokens(self.client, (configuration) =>
    openidClient().genericGrantRequest(configuration, TOKEN_EXCHANGE, parameters),
  )
  const until = Math.min(ends, tokens.until ?? Date.now() + UNSAID)
  self.kept.set(key, fromNow(tokens.access, until - SPARE))
  return tokens.access
}

const tokenFor = async (self: Exchanging, given: WithRequest): Promise<string> => {
  const ctx = contextOf('token(ctx)', given)
  const accepted = acceptedTokenOf(ctx)
  if (accepted === undefined) {
    throw new Error(
      'token(ctx) of exchange: put the operation behind httpJwt or httpIntrospection, whose token is exchanged',
    )
  }
  const key = digest(accepted.token)
  const kept = self.kept.get(key)
  if (kept !== undefined) return kept
  const underWay = self.flights.get(key) ?? exchanged(self, accepted, key).finally(() => self.flights.delete(key))
  self.flights.set(key, underWay)
  return underWay.catch((error: unknown) => {
    if (error instanceof GrantEnded) throw new UpstreamGone('the provider does not exchange the token of this caller')
    throw error instanceof UnavailableError
      ? error
      : new UnavailableError('the token was not exchanged', { cause: error })
  })
}

/**
 * Exchanges tokens of callers for tokens of the next service, as the same user (RFC 8693). A token is kept in this process while it and
 * the caller's token are good, and requests with one token share one exchange. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { exchange } from 'koa-with-auth/sign-in/oidc'
 *
 * const billing = exchange({
 *   tokenEndpoint: 'https://login.example/token',
 *   client: { id: 'orders', secret: 'a secret of the client' },
 *   audience: 'billing',
 * })
 * // in an operation behind httpJwt: const token = await billing.token(ctx)
 * assert.strictEqual(typeof billing.token, 'function')
 */
export const exchange = (options: ExchangeOptions): TokenExchange => {
  const given = checkOptions(where, options, checks)
  expectGone()
  const { audience, resource, scope } = given
  const client = clientFrom(given)
  if (audience === undefined && resource === undefined) {
    throw new TypeError(`${where}: write the audience or the resource that the new token is for`)
  }
  const self: Exchanging = {
    client,
    asked: withoutUndefined({
      requested_token_type: ACCESS_TOKEN,
      audience,
      resource,
      scope: scope?.join(' ') || undefined,
    }),
    kept: memory({ size: MAX_TOKENS, maxAge: Infinity, dropsFirst: 'least recently used' }),
    flights: new Map(),
  }
  return { token: (ctx) => tokenFor(self, ctx) }
}

declareFactory('exchange', exchange)
