/**
 * Signing out at the provider, too: `rpLogout` and `afterRpLogout` lead the user there (OpenID Connect RP-Initiated Logout
 * 1.0), and by `backChannelLogout` the provider says that a user signed out there (Back-Channel Logout 1.0).
 *
 * The way to the provider and back is a ceremony: `state` is its handle, so it is sealed, is used once, and knows where the
 * user goes afterwards. It is bound to no browser, and does nothing when it is finished.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Middleware } from 'koa'
import * as AuthErrors from '../../core/AuthError.js'
import type { Result } from '../../core/Result.js'
import { isSafe } from '../../core/CrossOrigin.js'
import * as is from '../../core/checks.js'
import { stating } from '../../core/data.js'
import { checkOptions, declareFactories, typeName, type Checks } from '../../core/options.js'
import { isGoodLogout, isLogout, readCompact } from '../../jwt/claims.js'
import { checkSignature, parseJwks } from '../../jwt/signature.js'
import { requestSessionOf } from '../../sessions/RequestSession.js'
import { endPendingGrants } from '../../sessions/grants.js'
import { endAtProvider, forgetFinished, type SessionHost } from '../../sessions/SignInList.js'
import { idsIn } from '../../stores/oneTimeIds.js'
import type { Signing } from '../../sessions/SignIn.js'
import { logOut } from '../../sessions/signing.js'
import { begin } from '../beginning.js'
import type { Kind } from '../Kind.js'
import { membersSent } from '../request.js'
import { leadTo, respondUnfinished } from '../pages.js'
import { finish } from '../signIn.js'
import { answerOf, HookRaised, SIGN_IN_MS, providerChecks } from './Client.js'
import { relyingPartyOf, type OidcKind, type RelyingParty } from './oidc.js'
import { openidClient } from './openidClient.js'

// --- the user signs out

/** How a user signs out at the provider, too. */
export interface RpLogoutOptions {
  /**
   * The path of the route that has `afterRpLogout(kind, { callback })`, the same in both. With the application's `origin` it is
   * the post-logout redirect URI to register.
   */
  readonly callback: string
}

type WayOut = Kind<never, null, null>

const wayOutAt = ({ provider, issuer }: RelyingParty, callback: string): WayOut => ({
  name: `endSession:${issuer} ${callback}`,
  lifetime: SIGN_IN_MS,
  bound: false,
  intents: ['verify'],
  begin: async (_incoming, { origin, returnTo }) => {
    const configured = await provider.configuration()
    // the user is signed out here, also where the provider has no such endpoint, or is down
    if (E.isLeft(configured) || configured.right.serverMetadata().end_session_endpoint === undefined) {
      return E.right({ kept: null, send: () => ({ redirect: returnTo }) })
    }
    const sent = { post_logout_redirect_uri: origin + callback }
    return E.right({
      kept: null,
      send: (state) => ({ redirect: openidClient().buildEndSessionUrl(configured.right, { ...sent, state }).href }),
    })
  },
  read: ({ query }) => {
    const [state, ...more] = query.getAll('state')
    return state === undefined || more.length > 0 ? undefined : { handle: state, answer: null }
  },
  check: () => E.right({ method: 'other' }),
})

// `rpLogout` and `afterRpLogout` of one path share a kind
const waysOut = new WeakMap<RelyingParty, Map<string, WayOut>>()

const wayOut = (caller: string, kind: OidcKind, options: RpLogoutOptions): WayOut => {
  const party = relyingPartyOf(caller, kind)
  const { callback } = checkOptions(caller, options, { callback: providerChecks.callback })
  const ways = waysOut.get(party) ?? new Map<string, WayOut>()
  const way = ways.get(callback) ?? wayOutAt(party, callback)
  waysOut.set(party, ways.set(callback, way))
  return way
}

/**
 * Middleware of a POST that signs out. It ends the session here first, then redirects to the provider (303), where the
 * user signs out, too. If the provider is down or has no such endpoint, it redirects to `returnTo` of the query or body
 * (a path of this origin, else `/`). A POST of another site is a 403, another method a 405; both end nothing.
 *
 * @example
 * import { rpLogout, type OidcKind } from 'koa-with-auth/sign-in/oidc'
 *
 * const make = (google: OidcKind) => rpLogout(google, { callback: '/signed-out' }) // POST /sign-out, behind withAuth(null)
 */
export const rpLogout = (kind: OidcKind, options: RpLogoutOptions): Middleware => {
  const leave = begin(wayOut('rpLogout(kind, options)', kind, options))
  return async (ctx, next) => {
    if (isSafe(ctx.method)) {
      ctx.status = 405
      ctx.set('Allow', 'POST')
      return
    }
    await logOut(ctx)
    await leave(ctx, next)
  }
}

/**
 * Middleware of the page to which the provider leads back. It uses `state` once, and redirects (303) to where the sign-out
 * began to lead, or else to `/`. It never ends a session.
 */
export const afterRpLogout = (kind: OidcKind, options: RpLogoutOptions): Middleware => {
  const arrived = new WeakSet<Context>()
  const arrive = finish(wayOut('afterRpLogout(kind, options)', kind, options), (ctx) => arrived.add(ctx))
  return async (ctx, next) => {
    await arrive(ctx, next)
    // an error mapper may answer failures with redirects of its own
    if (!arrived.has(ctx)) leadTo(ctx, '/')
  }
}

// --- the provider says that a user signed out

/** The identity that signed out at the provider: a `subject`, a `sid`, or both. */
export type SignedOutIdentity = Omit<LogoutToken, 'jti'>

/** How a sign-out at the provider ends sessions here. */
export interface BackChannelLogoutOptions {
  /**
   * The identifier of the user who has this identity, as sessions know it; a falsy value if no user has it. An identity
   * without a `subject` is that of a session: the list of sessions knows it. Without the list, the application must know the `sid`.
   */
  readonly user: (identity: SignedOutIdentity) => string | undefined | Promise<string | undefined>
}

const checks: Checks<BackChannelLogoutOptions> = { user: is.hook(1) }

// §2.8
const refuseLogout = (ctx: Context): void => {
  ctx.status = 400
  ctx.body = { error: 'invalid_request' }
}

/**
 * Middleware of the POST with which the provider says that a user signed out there. It verifies the logout token (its
 * signature, `typ`, `iss`, `aud`, `iat`, `events`, no `nonce`), uses its `jti` once, and ends the session that its `sid`
 * names. Without a `sid`, and without `sessions(app, { list: true })`, it ends all sessions of the user. It answers 200, also
 * for an identity that is unknown, 400 for a token that is wrong or was sent before, and 503 if the store or the provider's
 * keys cannot be asked; then the same token may come again.
 *
 * The request comes from the provider, not from a browser. No cookie counts, and it is no request of another site.
 *
 * @example
 * import { backChannelLogout, type OidcKind } from 'koa-with-auth/sign-in/oidc'
 *
 * declare const provider: OidcKind
 * declare const accounts: { of: (issuer: string, subject?: string) => string | undefined }
 * const make = () => backChannelLogout(provider, { user: ({ issuer, subject }) => accounts.of(issuer, subject) })
 */
export const backChannelLogout = (kind: OidcKind, options: BackChannelLogoutOptions): Middleware => {
  const party = relyingPartyOf('backChannelLogout(kind, options)', kind)
  const { user } = checkOptions('backChannelLogout(kind, options)', options, checks)
  const handler: Middleware = async (ctx) => {
    ctx.set('Cache-Control', 'no-store')
    const { host, signing } = requestSessionOf(ctx)
    if (host === undefined || signing === undefined)
      throw new Error('backChannelLogout(kind, options): call sessions(app, ...) before the routers are mounted')
    // §2.5: a form
    const isForm = ctx.method === 'POST' && ctx.is('urlencoded') === 'urlencoded'
    const sent = isForm ? (await membersSent(ctx))['logout_token'] : undefined
    if (typeof sent !== 'string') return refuseLogout(ctx)
    const token = await logoutTokenIn(sent, party)
    if (E.isLeft(token)) return token.left._tag === 'invalid' ? refuseLogout(ctx) : respondUnfinished(ctx, token.left)
    const { jti, ...identity } = token.right
    const id = JSON.stringify(['backChannelLogout', party.client.id, identity.issuer, jti])
    const { use, release } = idsIn(host.store, host.name)
    try {
      if (!(await use(id, WORKING))) return refuseLogout(ctx)
    } catch {
      return respondUnfinished(ctx, AuthErrors.unavailable())
    }
    try {
      await endSessions(host, signing, identity, await answerOf(async () => userIn(await user(identity))))
      // from the most distant future to the most distant past in which a token is good
      await release(id, (MAX_LOGOUT_AGE + 2 * party.clockTolerance) * 1000 + LONGER)
    } catch (error) {
      // the provider may send the same token again
      await release(id).catch(() => undefined)
      if (error instanceof HookRaised) throw error.cause
      return respondUnfinished(ctx, AuthErrors.unavailable())
    }
    ctx.status = 200
    ctx.body = ''
  }
  return stating(handler, { part: 'backChannelLogout' })
}

// A number would end no session, and the provider sends a logout token once
const userIn = (answer: unknown): string | undefined => {
  if (!answer) return undefined
  if (typeof answer === 'string') return answer
  throw new TypeError(
    `backChannelLogout(kind, { user }) must return the identifier of the user, a string, or undefined, not ${typeName(answer)}`,
  )
}

const endSessions = async (
  host: SessionHost,
  signing: Signing<never>,
  { issuer, subject, sid }: SignedOutIdentity,
  user: string | undefined,
): Promise<void> => {
  forgetFinished(host, user)
  const isNamed = sid !== undefined && host.list !== undefined
  if (isNamed && (user !== undefined || subject === undefined)) {
    await endAtProvider(host.list, user, issuer, sid)
    await endPendingGrants(host, user, issuer, sid)
  } else if (!isNamed && user !== undefined) await signing.logOutEverywhere(user)
}

/** The claims of a good token (§2.4, §2.6): a session of the provider has ended. There is a `subject`, a `sid`, or both. */
interface LogoutToken {
  readonly issuer: string
  readonly subject: string | undefined
  /** The session at the provider; left out if all sessions of the subject have ended. */
  readonly sid: string | undefined
  readonly jti: string
}

// So old a token may be, in seconds
const MAX_LOGOUT_AGE = 600
// How long an id is used, in milliseconds, while its sessions are being ended: if the process ends meanwhile, it can come again
const WORKING = 30_000
// How long the store keeps the id of a token after the last moment at which its times are good, in milliseconds
const LONGER = 60_000
const MAX_TOKEN = 16_384

const wrongLogout = E.left(AuthErrors.invalid)

/** Verifies a token with the provider's keys, and reads it. `invalid` for one that is wrong. Never rejects. */
const logoutTokenIn = async (
  token: string,
  { provider, client, clockTolerance }: RelyingParty,
): Promise<Result<LogoutToken>> => {
  const compact = token.length > MAX_TOKEN ? undefined : readCompact(token)
  if (compact === undefined) return wrongLogout
  const { header, claims } = compact
  if (!isLogout(header)) return wrongLogout
  const configured = await provider.configuration()
  if (E.isLeft(configured)) return configured
  const { issuer, id_token_signing_alg_values_supported: supported = ['RS256'] } = configured.right.serverMetadata()
  const times = { clockTolerance, maxTokenAge: MAX_LOGOUT_AGE }
  const { alg, kid } = header
  // before the signature: the token of another issuer or client costs no work
  const isRead = isGoodLogout(claims, { issuer, clientId: client.id }, times, Date.now() / 1000)
  // the metadata may have any type
  if (!isRead || !Array.isArray(supported) || !supported.some((one) => one === alg)) return wrongLogout
  const keys = await provider.keysWith(typeof kid === 'string' ? kid : undefined)
  if (E.isLeft(keys)) return keys
  const isGood = (await checkSignature(compact, parseJwks(keys.right))) === 'good'
  const { sub: subject, sid, jti } = claims
  // Safe: `isGoodLogout` refuses other types
  return isGood ? E.right({ issuer, subject, sid, jti } as LogoutToken) : wrongLogout
}

declareFactories({ rpLogout, afterRpLogout, backChannelLogout })
