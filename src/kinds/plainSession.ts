/** The session of a request, which koa-session put on the context, and warnings about how it was set up. */
import * as O from 'fp-ts/lib/Option.js'
import type { Context, HostApplication } from '../core/Request.js'
import { fromCookie } from '../core/RequestFields.js'
import { ownField } from '../core/data.js'
import { isAsync } from '../core/options.js'
import { keysFix, MIN_KEY_LENGTH, strengthOf } from '../crypto/appKeys.js'
import { DEFAULT_COOKIE, declaredSessionCookie, isFirstWarning, sourceOf } from './sessionUser.js'

/**
 * The value of an own field; `undefined` if there is none, or if `Object.prototype` was polluted with the value. Copies
 * of inherited values do not count either: koa-session loops over inherited keys when it makes a session, and when it
 * writes one. See `core/data.ts`.
 */
export const sessionField = (session: object, name: string): unknown => {
  const value = ownField(session, name)
  if (!(name in Object.prototype)) return value
  return JSON.stringify(value) === JSON.stringify(Reflect.get(Object.prototype, name)) ? undefined : value
}

/** A copy of the own fields of a session, without a prototype, and without the fields that koa-session uses itself. */
export const sessionData = (session: object): Record<string, unknown> => {
  // Safe: an object without a prototype has no fields yet
  const data = Object.create(null) as Record<string, unknown>
  for (const name of Object.keys(session)) {
    const value = dataField(session, name)
    if (value !== undefined) data[name] = value
  }
  return data
}

// koa-session's own rule for data (lib/session.js, toJSON)
const dataField = (session: object, name: string): unknown => {
  if (name === 'isNew' || name.startsWith('_')) return undefined
  const value = sessionField(session, name)
  return typeof value === 'function' ? undefined : value
}

export const hasData = (session: object): boolean =>
  Object.keys(session).some((name) => dataField(session, name) !== undefined)

/** One sentence for each weakness of a koa-session that was set up by hand, with its fix (D-S3, D-S7, D-S12). */
const weaknessesOf = (
  { store, ContextStore, signed, httpOnly, sameSite, secure, maxAge, valid }: Readonly<Record<string, unknown>>,
  isProduction: boolean,
): ReadonlyArray<string> => {
  const all = {
    'without a store the session is in the cookie, readable, and signing out cannot end it; set `store`':
      store === undefined && ContextStore === undefined,
    'unsigned cookies can be written by anybody; remove `signed: false`': signed === false,
    'scripts can read the cookie; remove `httpOnly: false`': httpOnly === false,
    "browsers send the cookie along from other sites; set `sameSite: 'lax'`":
      sameSite !== true && !/^(?:lax|strict)$/i.test(String(sameSite)),
    'the cookie can travel unencrypted; set `secure: true`': isProduction && secure !== true,
    'a stolen cookie works for ever; set `maxAge` to milliseconds': maxAge === 'session',
    '`valid` is async, so every session counts as valid; make it sync, or use `loadUser`': isAsync(valid),
  }
  return Object.entries(all).flatMap(([warning, isWeak]) => (isWeak ? [warning] : []))
}

const shortKeyWarning = `app.keys: an older key has fewer than ${MIN_KEY_LENGTH} characters. It still verifies cookies, and anyone who guesses it can sign them; take it out as soon as the sessions from before the rotation are over`

/**
 * The session of a caller who may be signed in. None: the caller is anonymous. `isUserInSession`: the session itself
 * identifies the user.
 *
 * Two cookies of the session's name may be a forgery (RFC 6265bis §8.6), because koa-session takes one of them by their
 * order. So both are returned as an array, which no codec accepts.
 */
export const sessionOf = (factory: string, ctx: Context, isUserInSession: boolean): O.Option<unknown> => {
  if ('session' in ctx) checkKeys(factory, ctx.app)
  const source = sourceOf(ctx)
  const session: unknown = source === undefined ? ctx['session'] : source.sessionOf(ctx)
  if (session === undefined) throw new Error(`${factory}: ${noSession}`)
  if (typeof session !== 'object' || session === null) return O.none
  const sent = source === undefined ? cookieReader(cookieNameOf(ctx))(ctx.request) : source.sent(ctx)
  if (O.isSome(sent) && typeof sent.value !== 'string') return sent
  if (source === undefined) warnOnce(ctx)
  else if (source.isUnavailable()) return O.some(session)
  else if (isUserInSession) return source.isSignedIn(session) ? O.some(session) : O.none
  if (isUserInSession) {
    // a user is data, so koa-session need not copy its data to say whether there are some
    const isMissing = (sessionField(session, 'user') ?? undefined) === undefined
    return isMissing || ownField(session, 'populated') === false ? O.none : O.some(session)
  }
  return 'populated' in session && (session.populated === false || !hasData(session)) ? O.none : O.some(session)
}

// Made once, because the sessions of a process have one cookie, as a rule
let latestReader = fromCookie(DEFAULT_COOKIE)
const cookieReader = (name: string): typeof latestReader => {
  if (latestReader.location.name !== name) latestReader = fromCookie(name)
  return latestReader
}

const noSession =
  'the request has no session; call sessions(app, { loadUser }) of koa-with-auth/sessions before the routers are mounted, or mount your own koa-session above them'

export const cookieNameOf = (ctx: Context): string => {
  const options: unknown = ctx['sessionOptions']
  return typeof options === 'object' && options !== null && 'key' in options && typeof options.key === 'string'
    ? options.key
    : declaredSessionCookie()
}

// Whoever guesses a signing key can make any session. Checked for every request, because keys are rotated in
// place.
const checkKeys = (factory: string, app: HostApplication): void => {
  const strength = strengthOf(app.keys)
  if (strength === 'weak') throw new Error(`${factory}: ${keysFix}`)
  if (strength === 'older short') warnOfShortKey(app)
}

/** Warns, once for an application, that an older key can be guessed. */
export const warnOfShortKey = (app: HostApplication): void => {
  if (isFirstWarning(app, 'ofKeys')) process.emitWarning(shortKeyWarning, 'SessionWarning')
}

// Only a warning, so that a koa-session that was set up by hand keeps working
const warnOnce = (ctx: Context): void => {
  if (!isFirstWarning(ctx.app, 'ofOptions')) return
  const options: unknown = ctx['sessionOptions']
  if (typeof options !== 'object' || options === null) return
  for (const weakness of weaknessesOf({ ...options }, ctx.app.env === 'production')) {
    process.emitWarning(`koa-session: ${weakness}; or set it up with koa-with-auth/sessions`, 'SessionWarning')
  }
}
