/**
 * The session of a request, which koa-session put on the context, and warnings about how it was set up.
 */
import * as O from 'fp-ts/lib/Option.js'
import type Koa from 'koa'
import type { Context } from 'koa'
import { warnedMark } from '../marks.js'
import { fromCookie } from '../RequestFields.js'
import { declaredSessionCookie } from './sessionCookie.js'
import { hasData, sessionField } from './sessionFields.js'
import { sourceOf } from './SessionSource.js'
import { weaknessesOf } from './sessionWeaknesses.js'
import { keysFix, shortKeyWarning, strengthOf } from './signingKeys.js'

/**
 * The session of a caller who may be signed in. None: the caller is anonymous. `isUserInSession`: the session itself
 * says who the user is.
 *
 * Two cookies of the session's name may be a forgery (RFC 6265bis §8.6), because koa-session takes one of them by their
 * order. So both are returned as an array, which no codec accepts.
 */
export const sessionOf = (factory: string, ctx: Context, isUserInSession: boolean): O.Option<unknown> => {
  if ('session' in ctx) checkKeys(factory, ctx.app)
  const session: unknown = ctx['session']
  if (session === undefined) throw new Error(`${factory}: ${noSession}`)
  if (typeof session !== 'object' || session === null) return O.none
  const sent = fromCookie(cookieNameOf(ctx))(ctx.request)
  if (O.isSome(sent) && typeof sent.value !== 'string') return sent
  warnOnce(ctx)
  const source = sourceOf(ctx)
  if (source?.isUnavailable() === true) return O.some(session)
  if ('populated' in session && (session.populated === false || !hasData(session))) return O.none
  if (!isUserInSession) return O.some(session)
  const isSignedIn =
    source === undefined ? (sessionField(session, 'user') ?? undefined) !== undefined : source.isSignedIn(session)
  return isSignedIn ? O.some(session) : O.none
}

const noSession =
  'the request has no session; call sessions(app, { loadUser }) of koa-with-auth/sessions before the routers are mounted, or mount your own koa-session above them'

/** What koa-session calls the cookie. */
export const cookieNameOf = (ctx: Context): string => {
  const options: unknown = ctx['sessionOptions']
  return typeof options === 'object' && options !== null && 'key' in options && typeof options.key === 'string'
    ? options.key
    : declaredSessionCookie()
}

// Whoever guesses a signing key can make any session. Checked for every request, because keys are rotated in
// place.
const checkKeys = (factory: string, app: Koa): void => {
  const strength = strengthOf(app.keys)
  if (strength === 'weak') throw new Error(`${factory}: ${keysFix}`)
  if (strength === 'older short') warnOfShortKey(app)
}

interface Warned {
  [warnedMark]?: { readonly ofOptions?: true; readonly ofKeys?: true }
}

const isFirst = (app: object, warning: 'ofOptions' | 'ofKeys'): boolean => {
  const carrying: Warned = app
  const before = carrying[warnedMark]
  if (before?.[warning] === true) return false
  carrying[warnedMark] = { ...before, [warning]: true }
  return true
}

/** Warns, once for an application, that an older key can be guessed. */
export const warnOfShortKey = (app: Koa): void => {
  if (isFirst(app, 'ofKeys')) process.emitWarning(shortKeyWarning, 'SessionWarning')
}

// Only a warning, so that a koa-session that was set up by hand keeps working
const warnOnce = (ctx: Context): void => {
  const options: unknown = ctx['sessionOptions']
  if (sourceOf(ctx) !== undefined || !isFirst(ctx.app, 'ofOptions')) return
  if (typeof options !== 'object' || options === null) return
  for (const weakness of weaknessesOf({ ...options }, ctx.app.env === 'production')) {
    process.emitWarning(`koa-session: ${weakness}; or set it up with koa-with-auth/sessions`, 'SessionWarning')
  }
}
