/**
 * `endSession` and `signedOut`: signing out here and at the provider (OpenID Connect RP-Initiated Logout 1.0).
 *
 * The way to the provider and back is a ceremony: `state` is its handle, so it is sealed, is spent, and knows where the
 * user goes afterwards. It is bound to no browser, and does nothing when it is finished.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Middleware } from 'koa'
import { isSafe } from '../../core/CrossOrigin.js'
import { checkOptions, declareFactory, maybe } from '../../core/options.js'
import { markCeremony } from '../../koa/callbacks.js'
import { logOut } from '../../sessions/signing.js'
import type { Kind } from '../Kind.js'
import { leadTo } from '../response.js'
import { begin, finish } from '../signIn.js'
import { callbackPath } from './AuthorizationRequest.js'
import { relyingPartyOf, type OidcKind, type RelyingParty } from './oidc.js'
import { openidClient } from './openidClient.js'

/** How a user signs out at the provider, too. */
export interface EndSessionOptions {
  /**
   * The path of the route that has `signedOut(kind)`. With the application's `origin` it is the post-logout redirect URI to
   * register. Default: it is found in the routers that `app.use` mounts; `app.callback()` throws a TypeError if no route has
   * it, or several.
   */
  readonly callback?: string | undefined
}

type WayOut = Kind<never, null, null>

const LIFETIME = 15 * 60_000

const wayOutAt = ({ provider, issuer }: RelyingParty, callback: string): WayOut => ({
  name: `endSession:${issuer} ${callback}`,
  lifetime: LIFETIME,
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

// One for each provider, so that the route of its `signedOut` is found
const found = new WeakMap<RelyingParty, WayOut>()

const foundFor = (party: RelyingParty): WayOut => {
  const known = found.get(party) ?? {
    ...wayOutAt(party, ''),
    name: `endSession:${party.issuer}`,
    at: (callback: string) => wayOutAt(party, callback),
    routes: ['endSession(kind)', 'signedOut(kind)'],
  }
  found.set(party, known)
  return known
}

const wayOut = (caller: string, party: RelyingParty, options: EndSessionOptions | undefined): WayOut => {
  const { callback } = checkOptions(caller, options ?? {}, { callback: maybe(callbackPath) })
  return callback === undefined ? foundFor(party) : wayOutAt(party, callback)
}

/**
 * Middleware of a POST that signs out. It ends the session here first, then redirects to the provider (303), where the
 * user signs out, too. If the provider is down or has no such endpoint, it redirects to `returnTo` of the query or body
 * (a path of this origin, else `/`). A POST of another site is a 403, another method a 405; both end nothing.
 *
 * @example
 * import Router from '@koa/router'
 * import { withAuth } from 'koa-with-auth'
 * import { endSession, oidc, signedOut } from 'koa-with-auth/sign-in/oidc'
 *
 * const google = oidc({
 *   issuer: 'https://provider.example',
 *   client: { id: 'shop', secret: 'a secret of the client' },
 *   callback: '/sign-in/callback',
 * })
 * const router = new Router()
 * router.post('/sign-out', withAuth(null), endSession(google))
 * router.get('/signed-out', withAuth(null), signedOut(google))
 */
export const endSession = (kind: OidcKind, options?: EndSessionOptions): Middleware => {
  const caller = 'endSession(kind, options)'
  const way = wayOut(caller, relyingPartyOf(caller, kind), options)
  const leave = begin(way)
  const run: Middleware = async (ctx, next) => {
    if (isSafe(ctx.method)) {
      ctx.status = 405
      ctx.set('Allow', 'POST')
      return
    }
    await logOut(ctx)
    await leave(ctx, next)
  }
  return way.at === undefined ? run : markCeremony(run, way, 'begin')
}

/**
 * Middleware of the page to which the provider leads back. It spends `state`, and redirects (303) to where the sign-out
 * began to lead, or else to `/`. It ends no session, whatever it gets.
 */
export const signedOut = (kind: OidcKind, options?: EndSessionOptions): Middleware => {
  const caller = 'signedOut(kind, options)'
  const party = relyingPartyOf(caller, kind)
  const arrived = new WeakSet<Context>()
  const arrive = finish(wayOut(caller, party, options), (ctx) => arrived.add(ctx))
  const run: Middleware = async (ctx, next) => {
    await arrive(ctx, next)
    // an error mapper may answer failures with redirects of its own
    if (!arrived.has(ctx)) leadTo(ctx, '/')
  }
  return markCeremony(run, foundFor(party), 'finish')
}

declareFactory('endSession', endSession)
declareFactory('signedOut', signedOut)
