/**
 * Sessions of koa-session: who is logged in (spec 5.4). With `koa-with-auth/sessions`, the user is the one who was signed in. With
 * a plain koa-session, it is `ctx.session.user`. With the option `loadUser`, it is the user that it loads. Prefer `loadUser`: a
 * deactivated user or a lost right then counts at the next request.
 *
 * It does not sign anybody in. A session without the rights asked for is refused with 401, as the spec's section 7 says, unless
 * `refuse: 'insufficient'` makes it a 403. Signing keys that could be guessed are a 500 at the first request that meets a session
 * authenticator.
 */
import type { Authenticator } from '../core/Authenticator.js'
import { token } from '../core/fieldSyntax.js'
import { declareFactory } from '../core/hooks.js'
import { bare, checkOptions, hook, maybe, nameLike } from '../core/options.js'
import type { PrincipalFromAnswer } from '../core/PrincipalFromAnswer.js'
import {
  anyUser,
  sessionKind,
  staff,
  superuser,
  type Demanded,
  type RefuseOptions,
  type SessionKindOptions,
} from '../core/session/sessionKind.js'
import { SessionUser, type LoadsUsers } from '../core/session/SessionUser.js'

// -------------------------------------------------------------------------------------
// model
// -------------------------------------------------------------------------------------

export { SessionUser }
export type { RefuseOptions }

/** The data of a session. */
export type SessionData = Readonly<Record<string, unknown>>

/** Where the user comes from. */
export interface SessionAuthOptions<R> extends SessionKindOptions {
  /** The cookie's name, for the documentation. Default: the one that koa-session was given. */
  readonly cookieName?: string | undefined
  /**
   * Loads the user of a session. If it returns nothing, or a user that cannot be read, the request is refused. Default: the user
   * whom `koa-with-auth/sessions` signed in; with a plain koa-session, `session.user`.
   */
  readonly loadUser?: ((session: SessionData) => R) | undefined
}

/** The user that a session authenticator lets in. */
export type UserOf<R> = unknown extends R ? SessionUser : PrincipalFromAnswer<R> & SessionUser

// -------------------------------------------------------------------------------------
// constructors
// -------------------------------------------------------------------------------------

type Given = SessionAuthOptions<unknown> & RefuseOptions

const own = { cookieName: maybe(nameLike(token)), loadUser: maybe(hook(1)) }

const kindOf = (demanded: Demanded, given: Given | undefined) => {
  const { cookieName, loadUser, ...options }: Given = checkOptions<SessionAuthOptions<unknown>>(
    demanded.name,
    given === undefined ? {} : given,
    { ...own, ...demanded.checks },
  )
  return sessionKind(demanded, { cookieName, loadUser, needsUsername: true }, bare(options))
}

/**
 * Passes for a logged-in user. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { sessionAuth } from 'koa-with-auth'
 *
 * const users = new Map([['1', { username: 'anna', isActive: true }]])
 * const user = sessionAuth({ loadUser: async (session) => users.get(String(session['userId'])) })
 */
export const sessionAuth = <R = unknown>(options?: SessionAuthOptions<R> & LoadsUsers<R>): Authenticator<UserOf<R>> =>
  // Safe: a principal that passed is a SessionUser, and was loaded by `loadUser`
  kindOf(anyUser, options) as Authenticator<UserOf<R>>

/**
 * Passes for a superuser. Others get 401, or 403 if `refuse` says so.
 *
 * @example
 * import { sessionAuthSuperUser } from 'koa-with-auth'
 *
 * const superuser = sessionAuthSuperUser()
 */
export const sessionAuthSuperUser = <R = unknown>(
  options?: SessionAuthOptions<R> & RefuseOptions & LoadsUsers<R>,
): Authenticator<UserOf<R>> =>
  // Safe: see `sessionAuth`
  kindOf(superuser, options) as Authenticator<UserOf<R>>

/**
 * Passes for a superuser or a staff member. Others get 401, or 403 if `refuse` says so.
 *
 * @example
 * import { sessionAuthIsStaff } from 'koa-with-auth'
 *
 * const staff = sessionAuthIsStaff({ refuse: 'insufficient' }) // 403 for a user who is signed in, 401 for a stranger
 */
export const sessionAuthIsStaff = <R = unknown>(
  options?: SessionAuthOptions<R> & RefuseOptions & LoadsUsers<R>,
): Authenticator<UserOf<R>> =>
  // Safe: see `sessionAuth`
  kindOf(staff, options) as Authenticator<UserOf<R>>

/** `sessionAuth()`, ready-made. */
export const sessionLoginAuth: Authenticator<SessionUser> = sessionAuth()

/** `sessionAuthSuperUser()`, ready-made. */
export const sessionLoginAuthSuperuser: Authenticator<SessionUser> = sessionAuthSuperUser()

declareFactory('sessionAuth', sessionAuth)
declareFactory('sessionAuthSuperUser', sessionAuthSuperUser)
declareFactory('sessionAuthIsStaff', sessionAuthIsStaff)
