/**
 * Sessions of koa-session: who is logged in (spec 5.4). The user is `ctx.session.user`, or what `loadUser` loads; prefer
 * the latter, so that a deactivated user or a lost right counts at the next request.
 *
 * It does not sign anybody in. A session without the rights asked for is refused with 401, as the spec's section 7 says.
 * Signing keys that could be guessed are a 500 at the first request that meets a session authenticator.
 */
import * as O from 'fp-ts/lib/Option.js'
import { pipe } from 'fp-ts/lib/function.js'
import * as t from 'io-ts'
import type { Context, Request } from 'koa'
import type { PrincipalFromAnswer } from '../core/PrincipalFromAnswer.js'
import * as AuthErrors from '../core/AuthError.js'
import { authenticator, type Authenticator } from '../core/Authenticator.js'
import { flatMap } from '../core/map.js'
import * as Challenge from '../core/Challenge.js'
import { documentation, documented } from '../core/documented.js'
import { token } from '../core/fieldSyntax.js'
import { declareFactory } from '../core/hooks.js'
import { checkOptions, credential, hook, maybe, nameLike, type Checks } from '../core/options.js'
import { fromCookie } from '../core/RequestFields.js'
import type { ApiKeyScheme } from '../core/SecurityScheme.js'
import { sourceOf } from '../core/session/SessionSource.js'
import { weaknessesOf } from '../core/session/sessionWeaknesses.js'
import { hasData, sessionField, sessionData } from '../core/session/sessionFields.js'
import { declaredSessionCookie, DEFAULT_COOKIE } from '../core/session/sessionCookie.js'
import { notAUser, SessionUser, userFields, type LoadsUsers, type UserFields } from '../core/session/SessionUser.js'
import { areStrong, keysFix } from '../core/session/signingKeys.js'

// -------------------------------------------------------------------------------------
// model
// -------------------------------------------------------------------------------------

export { SessionUser }

/** What a session holds, as far as this layer knows. */
export type SessionData = Readonly<Record<string, unknown>>

/** Where the user comes from. */
export interface SessionAuthOptions<R> {
  /** The cookie's name, for the documentation. Default: the one that koa-session was given. */
  readonly cookieName?: string
  /**
   * Loads the user of a session; nothing, or a user that cannot be read, is refused. Default: whom `koa-with-auth/sessions`
   * signed in, with a plain koa-session `session.user`.
   */
  readonly loadUser?: (session: SessionData) => R
  /** The protection space; default: the application's. */
  readonly realm?: string
  /** What OpenAPI calls it; without it a name is derived. */
  readonly schemeName?: string
  /** What OpenAPI tells about it, as how to get one; CommonMark. */
  readonly description?: string
}

/** The user that a session authenticator lets in. */
export type UserOf<R> = unknown extends R ? SessionUser : PrincipalFromAnswer<R> & SessionUser

// -------------------------------------------------------------------------------------
// constructors
// -------------------------------------------------------------------------------------

const isActive = ({ isActive }: UserFields): boolean => isActive === undefined || isActive === true

const unavailable = AuthErrors.unavailable()

const cookieScheme: Omit<ApiKeyScheme, 'name'> = {
  type: 'apiKey',
  in: 'cookie',
  description: 'The session of who is signed in; browsers send its cookie by themselves.',
}

const checks: Checks<SessionAuthOptions<unknown>> = {
  cookieName: maybe(nameLike(token)),
  loadUser: maybe(hook(1)),
  realm: credential.realm,
  ...documentation,
}

const sessionKind = (factory: string, demands: string | undefined, qualifies: (user: UserFields) => boolean) => {
  const make = <R = unknown>(given?: SessionAuthOptions<R> & LoadsUsers<R>): Authenticator<UserOf<R>> => {
    const options: SessionAuthOptions<R> = given === undefined ? {} : given
    const { cookieName, loadUser, realm, ...rest } = checkOptions(factory, options, checks)
    const name = cookieName ?? DEFAULT_COOKIE
    const { scheme, ...named } = documented({ ...cookieScheme, name }, rest)
    const session = authenticator({
      scheme,
      ...named,
      ...(demands !== undefined && { demands }),
      ...(cookieName === undefined && {
        // a router is documented without a request, too, and before the application has its sessions
        schemeFor: (request?: Request) => ({
          ...scheme,
          name: request === undefined ? declaredSessionCookie() : cookieNameOf(request.ctx),
        }),
      }),
      challenge: Challenge.make('Session', realm === undefined ? {} : { realm }),
      ambient: true,
      extract: ({ ctx }: Request) => sessionOf(factory, ctx, loadUser === undefined),
      credentials: t.UnknownRecord,
      authenticate: ({ ctx }, data): unknown => {
        const source = sourceOf(ctx)
        // an outage makes no caller anonymous
        if (source?.isUnavailable() === true) return unavailable
        if (loadUser !== undefined) return loadUser(sessionData(data))
        if (source !== undefined) return source.load(data)
        // data of the session, not what a program loads: what is no user is not logged in
        const user = sessionField(data, 'user')
        return notAUser(user) === undefined && user
      },
    })
    const user = pipe(
      session,
      flatMap((u) => {
        const mistake = notAUser(u)
        if (mistake !== undefined) throw new TypeError(`${factory}, loadUser: ${mistake}`)
        // Safe: what is no object is a mistake
        const fields = userFields(u as object)
        return fields.username !== '' && isActive(fields) && qualifies(fields) && u
      }),
    )
    // Safe: what passed is a SessionUser, and it is what `loadUser` answered
    return user as Authenticator<UserOf<R>>
  }
  return declareFactory(factory, make)
}

/**
 * Passes for a logged-in user. TypeError for options that cannot work.
 *
 * @example
 * import { sessionAuth } from 'koa-with-auth'
 *
 * const users = new Map([['1', { username: 'anna', isActive: true }]])
 * const user = sessionAuth({ loadUser: async (session) => users.get(String(session['userId'])) })
 */
export const sessionAuth = sessionKind('sessionAuth', undefined, () => true)

/**
 * Passes for a superuser; for others 401.
 *
 * @example
 * import { sessionAuthSuperUser } from 'koa-with-auth'
 *
 * const superuser = sessionAuthSuperUser()
 */
export const sessionAuthSuperUser = sessionKind(
  'sessionAuthSuperUser',
  'a superuser',
  ({ isSuperuser }) => isSuperuser === true,
)

/**
 * Passes for a superuser or a staff member; for others 401.
 *
 * @example
 * import { sessionAuthIsStaff } from 'koa-with-auth'
 *
 * const staff = sessionAuthIsStaff()
 */
export const sessionAuthIsStaff = sessionKind(
  'sessionAuthIsStaff',
  'a superuser or staff member',
  ({ isSuperuser, isStaff }) => isSuperuser === true || isStaff === true,
)

/** `sessionAuth()`, ready-made. */
export const sessionLoginAuth: Authenticator<SessionUser> = sessionAuth()

/** `sessionAuthSuperUser()`, ready-made. */
export const sessionLoginAuthSuperuser: Authenticator<SessionUser> = sessionAuthSuperUser()

// -------------------------------------------------------------------------------------
// koa-session
// -------------------------------------------------------------------------------------

// None: anonymous. Two cookies of the session's name are as good as a forgery (RFC 6265bis §8.6): which one
// koa-session took depends on their order, so both are given on, and no codec takes an array.
const sessionOf = (factory: string, ctx: Context, userInSession: boolean): O.Option<unknown> => {
  checkKeys(factory, ctx)
  const session: unknown = ctx['session']
  if (session === undefined) {
    throw new Error(`${factory}: no session on the context; mount koa-session above the router: app.use(session(app))`)
  }
  if (typeof session !== 'object' || session === null) return O.none
  const sent = fromCookie(cookieNameOf(ctx))(ctx.request)
  if (O.isSome(sent) && typeof sent.value !== 'string') return sent
  warnOnce(ctx)
  const source = sourceOf(ctx)
  if (source?.isUnavailable() === true) return O.some(session)
  if ('populated' in session && (session.populated === false || !hasData(session))) return O.none
  if (!userInSession) return O.some(session)
  const isSignedIn =
    source === undefined ? (sessionField(session, 'user') ?? undefined) !== undefined : source.isSignedIn(session)
  return isSignedIn ? O.some(session) : O.none
}

const cookieNameOf = (ctx: Context): string => {
  const options: unknown = ctx['sessionOptions']
  return typeof options === 'object' && options !== null && 'key' in options && typeof options.key === 'string'
    ? options.key
    : declaredSessionCookie()
}

// Whoever guesses a signing key makes himself any session (SECURITY A-33). Looked at every time, because keys are rotated
// in place.
const checkKeys = (factory: string, { app }: Context): void => {
  if (!areStrong(app.keys)) throw new Error(`${factory}: ${keysFix}`)
}

const warned = new WeakSet<object>()

// Once for an application: a koa-session that was set up by hand keeps working
const warnOnce = (ctx: Context): void => {
  if (warned.has(ctx.app)) return
  warned.add(ctx.app)
  const options: unknown = ctx['sessionOptions']
  if (sourceOf(ctx) !== undefined || typeof options !== 'object' || options === null) return
  for (const weakness of weaknessesOf({ ...options }, ctx.app.env === 'production')) {
    process.emitWarning(`koa-session: ${weakness}; or set it up with koa-with-auth/sessions`, 'SessionWarning')
  }
}
