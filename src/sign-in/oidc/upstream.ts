/**
 * Calls upstream: the tokens that a provider gave at a sign-in are kept, refreshed, and sent to one resource server. `Grant.ts` keeps them,
 * and refreshes once.
 */
import * as E from 'fp-ts/lib/Either.js'
import type Koa from 'koa'
import type { Middleware } from 'koa'
import * as is from '../../core/checks.js'
import { isSafe } from '../../core/CrossOrigin.js'
import { isInstance, type ErrorCode } from '../../core/data.js'
import { report, recordDigest, type UpstreamEvent } from '../../core/events.js'
import { checkHook, checkOptions, declareFactory, isScope, typeName, type Checks } from '../../core/options.js'
import { UnavailableError } from '../../core/Result.js'
import { digest } from '../../crypto/secrets.js'
import { checkAddress } from '../../jwt/fetching.js'
import { expectGone, goneMark, type Gone } from '../../koa/gone.js'
import { grantHolder, grantKeepersOf, type GrantHolder, type GrantKeeper } from '../../sessions/grants.js'
import { requestSessionOf } from '../../sessions/RequestSession.js'
import { contextOf, type WithRequest } from '../../sessions/SignIn.js'
import type { OidcKind } from './oidc.js'
import type { OAuth2Kind } from './oauth2.js'
import { goodTokens, GrantEnded, keepGrant, systemClock, takeGrant, tokensAfter } from './Grant.js'
import type { GrantPlace, Grants, Tokens } from './Grant.js'
import { providerAnswer } from './ProviderAnswer.js'
import { openidClient } from './openidClient.js'
import { askedForTokens, grantedTokens, tokenClientOf, type TokenClient } from './TokenClient.js'

/**
 * The provider has ended the grant of this user, or there is none: `token(ctx)` and `fetch(ctx, ...)` of `upstream` reject with it. The
 * session goes on. A guard answers it as 401 with `why: 'upstream'`, or by `onGone`, unless the handler catches it.
 *
 * @example
 * import { UpstreamGone, type Upstream } from 'koa-with-auth/sign-in/oidc'
 * import type { Context } from 'koa'
 *
 * declare const github: Upstream
 * const repositories = async (ctx: Context) => {
 *   try {
 *     ctx.body = await (await github.fetch(ctx, '/repos')).json()
 *   } catch (error) {
 *     if (!(error instanceof UpstreamGone)) throw error
 *     ctx.body = [] // the user has taken the permission back
 *   }
 * }
 */
export class UpstreamGone extends Error implements Gone {
  override readonly name = 'UpstreamGone'
  readonly code = 'ERR_UPSTREAM_GONE' satisfies ErrorCode
  readonly [goneMark]: Gone[typeof goneMark]

  /** @internal Also an error of another copy of this package, such as that of `require` beside that of `import`. */
  static override [Symbol.hasInstance](u: unknown): boolean {
    return isInstance(this, UpstreamGone, u, 'ERR_UPSTREAM_GONE')
  }

  constructor(message: string, onGone?: Middleware) {
    super(message)
    this[goneMark] = { onGone }
    // a log of the error shows no function
    Object.defineProperty(this, goneMark, { enumerable: false })
  }
}

/** Where the tokens of a provider are sent, and whose they are. */
export interface UpstreamOptions {
  /** The value of `oidc(...)` or `oauth2(...)`. */
  readonly provider: OidcKind | OAuth2Kind
  /** The URL of the resource server. A token is sent there, and nowhere else. */
  readonly resource: string
  /** The scopes that calls need. Sign-ins with the provider ask for them, too. */
  readonly scope?: ReadonlyArray<string> | undefined
  /** Whether a grant belongs to the session, and goes with it, or to the user. Default `'session'`. */
  readonly per?: 'session' | 'user' | undefined
  /**
   * Whether tokens are revoked at the provider (RFC 7009) when their session ends. Nothing waits for it. Default `false`, because some
   * providers, such as Google, then end the grants of the user's other sessions, too.
   */
  readonly revoke?: boolean | undefined
  /** Answers a request whose grant has ended, where the handler does not: `begin(provider)(ctx, next)` begins again. */
  readonly onGone?: Middleware | undefined
}

/** Calls to one resource server, as the user of a request. */
export interface Upstream {
  /**
   * An access token that is good for at least ten seconds. Rejects with `UpstreamGone` if the provider has ended the grant or there is
   * none, and with an `UnavailableError` (503) if the provider or the store cannot be asked.
   */
  readonly token: (ctx: WithRequest) => Promise<string>
  /**
   * `fetch` with the token, of a path or URL of the resource. Another origin is a TypeError. After a 401 it refreshes, and sends once more
   * if the body can be sent again, but no write that was redirected, because it may be done. Rejects as `token` and `fetch` do.
   */
  readonly fetch: (ctx: WithRequest, address: string | URL, init?: RequestInit) => Promise<Response>
}

const checks: Checks<UpstreamOptions> = {
  provider: is.unchecked,
  resource: (where, value) => checkAddress(where, value, false),
  scope: is.maybe(is.listOf(isScope, 'must be an array of scopes')),
  per: is.maybe(is.oneOf('session', 'user')),
  revoke: is.maybe(is.flag),
  onGone: is.maybe((where, value) => checkHook(where, value, 2)),
}

/** The grants of one application at one provider. Upstreams of the same provider share them. */
interface ProviderGrants extends GrantKeeper {
  readonly client: TokenClient
  readonly per: 'session' | 'user'
  revokes: boolean
  readonly grants: (holder: GrantHolder) => Grants
}

const GRANT_MINUTE = 60_000

/** How long a second factor may take, in milliseconds. */
const PENDING = 30 * GRANT_MINUTE

/** How long a request that keeps a grant may take after its session has ended, in milliseconds. */
const OVER = 5 * GRANT_MINUTE

/** How long the grant of a user is kept after it was used last, in milliseconds: a year. */
const LASTING = 365 * 24 * 60 * GRANT_MINUTE

const grantKey = ({ application, user }: GrantHolder, kind: string, ...of: ReadonlyArray<unknown>): string =>
  `koa-with-auth/upstream/${digest(JSON.stringify([application, kind, user, ...of]))}`

const placeFor = ({ per }: Pick<ProviderGrants, 'per'>, kind: string, holder: GrantHolder): GrantPlace | undefined => {
  const { user, grant, lifetime } = holder
  if (per === 'user') return { key: grantKey(holder, kind), lifetime: LASTING, user }
  return grant === undefined ? undefined : { key: grantKey(holder, kind, 'session', grant), lifetime, user }
}

const pendingOf = (kind: string, holder: GrantHolder, proof: object): GrantPlace => {
  // Safe: each may be missing, and is a part of the key alone
  const { issuer, subject, at } = proof as { issuer?: unknown; subject?: unknown; at?: unknown }
  return { key: grantKey(holder, kind, 'pending', issuer, subject, at), lifetime: PENDING, user: holder.user }
}

// The pending grants of a session at the provider. Without a user, those of all users
const pendingAt = (holder: GrantHolder, kind: string, issuer: unknown, sid: unknown): string =>
  grantKey(holder, kind, 'pending at', issuer, sid)

const notify = ({ issuer }: TokenClient, application: string, user: string, event: UpstreamEvent['event']): void =>
  report('upstream')(() => ({ event, application, issuer, user: recordDigest('user', application, user) }))

// Is live for a while after the session of a grant has ended
const overKey = ({ key }: Pick<GrantPlace, 'key'>): string => `${key} over`

// The grants of all sessions of a user, and those that wait for a second factor
const grantsOfUser = (holder: GrantHolder, kind: string): string => grantKey(holder, kind, 'all')

const providerGrants = (
  kind: UpstreamOptions['provider'],
  client: TokenClient,
  per: 'session' | 'user',
): ProviderGrants => {
  // nothing waits for it, and no failure counts: the tokens are gone from the store already
  const dropped = (tokens: Tokens): void => {
    if (self.revokes) revoke(client, tokens).catch(() => undefined)
  }
  const grants = grantsOnce(client, dropped)
  const ended = async (holder: GrantHolder, key: string): Promise<void> => {
    const tokens = await takeGrant(grants(holder), { key })
    if (tokens !== undefined) dropped(tokens)
  }
  const keepAt = async (holder: GrantHolder, place: GrantPlace | undefined, tokens: Tokens): Promise<void> => {
    if (place === undefined) return
    await keepGrant(grants(holder), place, tokens)
    await holder.store.add(grantsOfUser(holder, kind.name), place.key, place.lifetime)
    const [over] = await holder.store.get([overKey(place)])
    if (over !== undefined) await ended(holder, place.key)
  }
  const self: ProviderGrants = {
    kind: kind.name,
    upstreams: [],
    client,
    per,
    revokes: false,
    grants,
    keep: async (holder, proof, isPending) => {
      const answer = providerAnswer(proof)
      if (answer === undefined) return
      const place = isPending ? pendingOf(kind.name, holder, proof) : placeFor(self, kind.name, holder)
      if (place !== undefined && isPending && 'issuer' in proof && 'sid' in proof) {
        for (const user of [holder.user, '']) {
          const set = pendingAt({ ...holder, user }, kind.name, proof.issuer, proof.sid)
          await holder.store.add(set, place.key, PENDING)
        }
      }
      await keepAt(holder, place, grantedTokens(answer.tokens))
    },
    adopt: async (holder, proof) => {
      if (!('issuer' in proof)) return
      const tokens = await takeGrant(grants(holder), pendingOf(kind.name, holder, proof))
      if (tokens !== undefined) await keepAt(holder, placeFor(self, kind.name, holder), tokens)
    },
    endPending: async (holder, issuer, sid) => {
      const keys = await holder.store.members(pendingAt(holder, kind.name, issuer, sid))
      await Promise.all(keys.map((key) => ended(holder, key)))
    },
    end: async (holder, isEverywhere) => {
      const place = placeFor(self, kind.name, holder)
      // before the grant is looked for, so that of an end and a keeping at once, either finds the other
      if (place !== undefined && per === 'session') await holder.store.insert(overKey(place), 'over', OVER)
      if (place !== undefined && (per === 'session' || isEverywhere)) await ended(holder, place.key)
      const all = isEverywhere ? await holder.store.members(grantsOfUser(holder, kind.name)) : []
      await Promise.all(all.map((key) => ended(holder, key)))
    },
  }
  return self
}

// An application has one store
const grantsOnce = (client: TokenClient, dropped: Grants['dropped']): ProviderGrants['grants'] => {
  let own: Grants | undefined
  return ({ application, store, keys }) =>
    (own ??= {
      store,
      keys,
      refresh: async (tokens, { user }) => {
        const next = await refreshed(client, tokens)
        notify(client, application, user, 'refreshed')
        return next
      },
      dropped,
      clock: systemClock,
      flights: new Map(),
      unwritten: new Set(),
    })
}

// An ID token of another subject is garbage (OpenID Connect Core §12.2)
const refreshed = async (client: TokenClient, { refresh = '', subject }: Tokens): Promise<Tokens> => {
  const next = await askedForTokens(client, (configuration) => openidClient().refreshTokenGrant(configuration, refresh))
  if (subject === undefined || next.subject === undefined || next.subject === subject) return next
  throw new UnavailableError('the provider answered with tokens of another user')
}

// RFC 7009: the refresh token, else the access token
const revoke = async (client: TokenClient, { refresh, access }: Tokens): Promise<void> => {
  const configured = await client.configured()
  if (E.isLeft(configured) || configured.right.serverMetadata().revocation_endpoint === undefined) return
  const hint = refresh === undefined ? 'access_token' : 'refresh_token'
  await openidClient().tokenRevocation(configured.right, refresh ?? access, { token_type_hint: hint })
}

// A provider gives one refresh token, so upstreams of one provider keep one grant
const grantsFor = (app: Koa, kind: UpstreamOptions['provider'], per: 'session' | 'user'): ProviderGrants => {
  const keepers = grantKeepersOf(app)
  // Safe: only this function adds keepers
  const known = keepers.get(kind) as ProviderGrants | undefined
  if (known !== undefined && known.per !== per) {
    throw new TypeError(
      `upstream(app, { per }): another upstream of this provider has '${known.per}'; write the same in both`,
    )
  }
  const made = known ?? providerGrants(kind, tokenClientOf('upstream(app, { provider })', kind), per)
  keepers.set(kind, made)
  return made
}

interface Calls {
  readonly provider: UpstreamOptions['provider']
  readonly resource: string
  readonly onGone: Middleware | undefined
  readonly made: ProviderGrants
}

type AskForTokens = (grants: Grants, place: GrantPlace) => Promise<Tokens>

// Asks for the tokens of the user of a request, and publishes a record of the result
const askForToken = async (self: Calls, where: string, given: WithRequest, ask: AskForTokens): Promise<string> => {
  const ctx = contextOf(where, given)
  const session = requestSessionOf(ctx)
  const { host } = session
  if (host?.grants.has(self.provider) !== true) {
    throw new Error(`${where}: write upstream(app, ...) and sessions(app, ...) with the application of the request`)
  }
  const present = session.present(ctx)
  if (present === undefined && session.isUnavailable()) throw new UnavailableError('the session store')
  const holder = present && grantHolder(host, present.id, session.details(ctx))
  const place = holder && placeFor(self.made, self.provider.name, holder)
  if (holder === undefined || place === undefined)
    throw new UpstreamGone('no provider has granted anything', self.onGone)
  const grants = self.made.grants(holder)
  try {
    return (await ask(grants, place)).access
  } catch (error) {
    if (error instanceof GrantEnded) {
      notify(self.made.client, holder.application, holder.user, 'gone')
      throw new UpstreamGone(error.message, self.onGone)
    }
    if (error instanceof UnavailableError) notify(self.made.client, holder.application, holder.user, 'outage')
    throw error
  }
}

// --- requests to the resource: a token goes there and nowhere else

const FETCH = 'fetch(ctx, address, init)'

// A path is one of the resource's origin, below the resource's own path. Throws a TypeError for an address that is not at the resource
const addressAt = (resource: string, given: unknown): URL => {
  if (typeof given !== 'string' && !(given instanceof URL)) {
    throw new TypeError(`${FETCH}: the address must be a path or a URL, not ${typeName(given)}`)
  }
  const base = new URL(resource)
  const below = base.pathname.replace(/\/$/, '')
  const text = String(given)
  // an address that begins with two slashes, or with a backslash, could be meant for another host
  const isPath = /^\/(?![/\\])/.test(text)
  if (!isPath && !URL.canParse(text)) {
    throw new TypeError(`${FETCH}: the address must be a path that begins with /, or a URL`)
  }
  const url = new URL(isPath ? `${base.origin}${below}${text}` : text)
  const isBelow = below === '' || url.pathname === below || url.pathname.startsWith(`${below}/`)
  if (url.origin === base.origin && url.username === '' && url.password === '' && isBelow) return url
  throw new TypeError(
    `${FETCH}: the address: a token of ${resource} goes there and nowhere else; take fetch itself for another address`,
  )
}

// A body that is read while it is sent cannot be sent again
const canBeSentAgain = ({ body }: RequestInit): boolean =>
  typeof body !== 'object' || body === null || !(Symbol.asyncIterator in body)

// Whether the resource refused the token. After a redirect, a write may have been done: a 303 says so
const isTokenRefused = (response: Response, { origin }: URL, { method = 'GET' }: RequestInit): boolean =>
  response.status === 401 &&
  (response.url === '' || new URL(response.url).origin === origin) &&
  (!response.redirected || isSafe(method.toUpperCase()))

// A redirect to another origin is followed without the token (Fetch §4.4)
const fetchAt = async (self: Calls, ctx: WithRequest, address: unknown, init: RequestInit = {}): Promise<Response> => {
  const url = addressAt(self.resource, address)
  const headers = new Headers(init.headers)
  if (headers.has('Authorization')) {
    throw new TypeError(`${FETCH}: the field Authorization is that of the token; leave it out`)
  }
  const send = (token: string): Promise<Response> => {
    const sent = new Headers(headers)
    sent.set('Authorization', `Bearer ${token}`)
    return fetch(url, { ...init, headers: sent })
  }
  const token = await askForToken(self, FETCH, ctx, goodTokens)
  const response = await send(token)
  if (!isTokenRefused(response, url, init)) return response
  const next = await askForToken(self, FETCH, ctx, (grants, place) => tokensAfter(grants, place, token))
  if (!canBeSentAgain(init)) return response
  // an unread body would keep its connection
  await response.body?.cancel().catch(() => undefined)
  return send(next)
}

/**
 * Calls a resource server as the user of a request, by the tokens that a provider gave at the sign-in. They are kept in the store of
 * `sessions(app, ...)`, encrypted by a key of `app.keys`, and go with the session. A token is refreshed once for all requests that need
 * it, in all processes. It is in no cookie, record or error.
 *
 * Throws a TypeError for options that cannot work. Call it before the first request.
 *
 * @example
 * import Koa from 'koa'
 * import { oidc, upstream } from 'koa-with-auth/sign-in/oidc'
 *
 * const app = new Koa()
 * const provider = oidc({
 *   issuer: 'https://login.example',
 *   client: { id: 'shop', secret: 'a secret of the client' },
 *   callback: '/sign-in/callback',
 *   scope: ['openid', 'offline_access'],
 * })
 * const orders = upstream(app, { provider, resource: 'https://api.example', scope: ['orders'] })
 * // in an operation: const answer = await orders.fetch(ctx, '/orders')
 * assert.strictEqual(typeof orders.fetch, 'function')
 */
export const upstream = (app: Koa, options: UpstreamOptions): Upstream => {
  is.withMethods(['use', 'callback'], 'pass the Koa application')('upstream(app, options): app', app)
  const given = checkOptions('upstream(app, options)', options, checks)
  const { provider, resource, scope = [], per = 'session', revoke = false, onGone } = given
  const made = grantsFor(app, provider, per)
  expectGone()
  for (const one of scope) made.client.scopes.add(one)
  made.revokes ||= revoke
  made.upstreams.push({ resource, provider: made.client.issuer, scope: [...scope], per })
  const self: Calls = { provider, resource, onGone, made }
  return {
    token: (ctx) => askForToken(self, 'token(ctx)', ctx, goodTokens),
    fetch: (ctx, address, init) => fetchAt(self, ctx, address, init),
  }
}

declareFactory('upstream', upstream)
