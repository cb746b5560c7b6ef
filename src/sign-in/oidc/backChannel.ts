/** `backChannel`: the provider says that a user signed out there (OpenID Connect Back-Channel Logout 1.0). */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Middleware } from 'koa'
import * as AuthErrors from '../../core/AuthError.js'
import { checkOptions, declareFactory, hook, type Checks } from '../../core/options.js'
import { requestSessionOf } from '../../sessions/RequestSession.js'
import { spentOver } from '../../sessions/SessionStore.js'
import { bodyOf } from '../body.js'
import { respondUnfinished } from '../signIn.js'
import { logoutTokenIn, REMEMBERED, type LogoutToken } from './LogoutToken.js'
import { relyingPartyOf, type OidcKind } from './oidc.js'

/** Who signed out at the provider. There is a `subject`, a `sid`, or both. */
export type SignedOutIdentity = Omit<LogoutToken, 'jti'>

/** How a sign-out at the provider ends sessions here. */
export interface BackChannelOptions {
  /**
   * The identifier of the user who has this identity, as sessions know it; a falsy value if no user has it. Without a
   * `subject`, the application must know the `sid`.
   */
  readonly user: (identity: SignedOutIdentity) => string | undefined | Promise<string | undefined>
}

const checks: Checks<BackChannelOptions> = { user: hook(1) }

// §2.8
const refuse = (ctx: Context): void => {
  ctx.status = 400
  ctx.body = { error: 'invalid_request' }
}

/**
 * Middleware of the POST with which the provider says that a user signed out there. It verifies the logout token (its
 * signature, `typ`, `iss`, `aud`, `iat`, `events`, no `nonce`), spends its `jti`, and ends the session that its `sid`
 * names. Without a `sid`, and without `sessions(app, { list: true })`, it ends all sessions of the user. It answers 200, also for an identity that is unknown, 400 for a token
 * that is wrong or was sent before, and 503 if the store or the provider's keys cannot be asked.
 *
 * The request comes from the provider, not from a browser. No cookie counts, and it is no request of another site.
 *
 * @example
 * import Router from '@koa/router'
 * import { withAuth } from 'koa-with-auth'
 * import { backChannel, type OidcKind } from 'koa-with-auth/sign-in/oidc'
 *
 * declare const provider: OidcKind
 * declare const accounts: { of: (issuer: string, subject?: string) => string | undefined }
 * const routes = (router: Router) =>
 *   router.post(
 *     '/sign-out/backchannel',
 *     withAuth(null),
 *     backChannel(provider, { user: ({ issuer, subject }) => accounts.of(issuer, subject) }),
 *   )
 */
export const backChannel = (kind: OidcKind, options: BackChannelOptions): Middleware => {
  const party = relyingPartyOf('backChannel(kind, options)', kind)
  const { user } = checkOptions('backChannel(kind, options)', options, checks)
  return async (ctx) => {
    ctx.set('Cache-Control', 'no-store')
    const { host, signing } = requestSessionOf(ctx)
    if (host === undefined || signing === undefined)
      throw new Error('backChannel(kind, options): call sessions(app, ...) before the routers are mounted')
    const sent = ctx.method === 'POST' ? (await bodyOf(ctx))['logout_token'] : undefined
    if (typeof sent !== 'string') return refuse(ctx)
    const token = await logoutTokenIn(sent, party)
    if (E.isLeft(token)) return token.left._tag === 'invalid' ? refuse(ctx) : respondUnfinished(ctx, token.left)
    const { jti, ...identity } = token.right
    try {
      const id = JSON.stringify([host.name, 'backChannel', party.clientId, identity.issuer, jti])
      if (!(await spentOver(host.store).spend(id, REMEMBERED))) return refuse(ctx)
    } catch {
      return respondUnfinished(ctx, AuthErrors.unavailable())
    }
    const found = await user(identity)
    if (typeof found === 'string' && found !== '') {
      const { issuer, sid } = identity
      try {
        if (sid === undefined || host.list === undefined) await signing.logOutEverywhere(found)
        else await host.list.endAt(found, issuer, sid)
      } catch {
        // the provider sends another token
        return respondUnfinished(ctx, AuthErrors.unavailable())
      }
    }
    ctx.status = 200
    ctx.body = ''
  }
}

declareFactory('backChannel', backChannel)
