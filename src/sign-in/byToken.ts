/** Routes with `as: 'bearer'`: their sign-ins are carried by a token, and they neither read nor set a cookie. */
import * as E from 'fp-ts/lib/Either.js'
import type { Context } from 'koa'
import * as is from '../core/checks.js'
import type { RequestSession } from '../sessions/RequestSession.js'
import { bearerFix, SignInRefused, type BearerSignIn, type OwnLogInOptions } from '../sessions/SignIn.js'
import type { Carried } from './Kind.js'

export const carried = is.maybe(is.oneOf('bearer'))

/** Throws a TypeError for a route with `as: 'bearer'` whose application has no tokens. */
export const checkCarried = (caller: string, as: Carried, { host }: RequestSession): void => {
  if (as === 'bearer' && host?.hasTokens !== true) throw new TypeError(`${caller}, { as: 'bearer' }: ${bearerFix}`)
}

/**
 * Throws `SignInRefused` for a sign-in without the proof that its token needs (DPoP): before a code is used up, because every client begins
 * without a nonce.
 */
export const checkTokenProof = async (as: Carried, { carrier, token }: RequestSession, ctx: Context): Promise<void> => {
  if (as !== 'bearer' || token || carrier?.proofs === undefined) return
  const proof = await carrier.proofs.ofIssuing(ctx.request)
  if (E.isLeft(proof)) throw new SignInRefused(proof.left)
}

/** The user who began, or who answers, by the session of the request that the route is for. */
export const presentBy = (as: Carried, session: RequestSession, ctx: Context): string | undefined =>
  as === 'bearer' && !session.token ? undefined : session.present(ctx)?.id

export const signInBy = async (
  as: Carried,
  session: RequestSession,
  ctx: Context,
  user: unknown,
  { keep, ...options }: OwnLogInOptions,
): Promise<BearerSignIn | undefined> => {
  // Safe, both: `identify` of the application refuses what it cannot identify
  if (as === 'bearer') return session.signing?.logIn(ctx, user as never, { ...options, as })
  await session.signing?.logIn(ctx, user as never, { keep, ...options, as: undefined })
  return undefined
}

/** Answers with the token (RFC 6749 §5.1), whatever a hook has written; without one, the session of the request was changed. */
export const respondToken = (ctx: Context, made: BearerSignIn | undefined): void => {
  ctx.remove('Location')
  ctx.status = made === undefined ? 204 : 200
  if (made !== undefined)
    ctx.body = { access_token: made.token, token_type: made.tokenType, expires_in: made.expiresIn }
  ctx.set('Cache-Control', 'no-store')
}
