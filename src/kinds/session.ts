/**
 * Sessions of koa-session: the user who is logged in (spec 5.4). With `koa-with-auth/sessions`, `logIn` signed this user in. With
 * a plain koa-session, it is `ctx.session.user`. With the option `loadUser`, it is the user that it loads. Prefer `loadUser`: a
 * deactivated user or a lost right then counts at the next request.
 *
 * It does not sign anybody in. A session without the rights asked for is refused with 401, as the spec's section 7 says, unless
 * `refuse: 'insufficient'` makes it a 403. Signing keys that could be guessed are a 500 at the first request that meets a session
 * authenticator.
 *
 * The exports of `koa-with-auth` work with any application. Those that `sessions(app, ...)` returns work only with that
 * one.
 *
 * A session leads to a user in two steps. The first finds the signed-in user, and loads it. The second asks whether
 * the user is active, and has the right that the kind demands.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import { pipe } from 'fp-ts/lib/function.js'
import * as t from 'io-ts'
import type { Context, Request } from '../core/Request.js'
import * as AuthErrors from '../core/AuthError.js'
import { kindOf, type Authenticator } from '../core/Authenticator.js'
import * as Challenge from '../core/Challenge.js'
import { constantFailure, documented, kindChecks, withChallenges } from '../core/Description.js'
import type { KindOptions, ApiKeyScheme } from '../core/Description.js'
import { failureOf, type PrincipalFromAnswer, type Result } from '../core/Result.js'
import { authorize } from '../core/authorize.js'
import { ofThisPackage } from '../core/functionName.js'
import { ageInWords, isProven, neededBy, type ProofDemand } from '../core/Proof.js'
import { ownOrGetter } from '../core/data.js'
import { alt } from '../core/lists.js'
import { onSuccess } from '../core/map.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactories, declareFactory, token, type Check, type Checks } from '../core/options.js'
import { cookieNameOf, sessionData, sessionField, sessionOf } from './plainSession.js'
import { carrierFor, declaredSessionCookie, DEFAULT_COOKIE, rightsByFlags, sourceOf } from './sessionUser.js'
import type { Rights } from './sessionUser.js'
import { ofSession, refusedToken, sessionTokenKind, tokenScheme, type Carrier } from './sessionToken.js'

export interface SessionKindOptions extends KindOptions {
  /**
   * The proof that the user must have given in this session, besides signing in: by one of `methods`, at most `maxAge`
   * milliseconds ago. Otherwise the request is refused with 403 and says which proof is needed. Needs
   * `koa-with-auth/sessions`.
   */
  readonly proof?: ProofDemand | undefined
}

export interface RefuseOptions {
  /**
   * The failure of a user who is signed in and lacks the right: `invalid` (the default) is a 401, as for an anonymous caller;
   * `insufficient` is a 403.
   */
  readonly refuse?: 'invalid' | 'insufficient' | undefined
}

const method = is.listOf(is.isFilled, "must be an array of methods, such as ['passkey', 'totp']", 1)

const proof: Check = (where, value) => {
  // Safe: anything but an object is refused
  const demand = checkOptions(where, value as ProofDemand, { methods: is.maybe(method), maxAge: is.maybe(is.positive) })
  if (Object.keys(demand).length === 0) throw new TypeError(`${where} must have methods or maxAge`)
}

const checks: Checks<SessionKindOptions> = {
  ...kindChecks,
  proof: is.maybe(proof),
}
const checksWithRefuse = { ...checks, refuse: is.maybe(is.oneOf('invalid', 'insufficient')) }

/** The right that a kind demands. The user must also be active. */
interface SessionRight {
  readonly name: 'sessionAuth' | 'sessionAuthIsStaff' | 'sessionAuthSuperUser'
  /** The demand in the audit, such as `a superuser`. */
  readonly demands?: string
  readonly holds: (user: object, rights: Rights) => boolean
  readonly checks: Checks<SessionKindOptions>
}

const anyUser: SessionRight = { name: 'sessionAuth', holds: () => true, checks }
const staff: SessionRight = {
  name: 'sessionAuthIsStaff',
  demands: 'a superuser or staff member',
  holds: (user, { isSuperuser, isStaff }) => isSuperuser(user) || isStaff(user),
  checks: checksWithRefuse,
}
const superuser: SessionRight = {
  name: 'sessionAuthSuperUser',
  demands: 'a superuser',
  holds: (user, { isSuperuser }) => isSuperuser(user),
  checks: checksWithRefuse,
}

/** Which sessions a kind accepts, and where the user comes from. */
interface Users {
  readonly cookieName?: string | undefined
  /** Loads the user from the session's data, instead of the application's own `loadUser`. */
  readonly loadUser?: ((session: Readonly<Record<string, unknown>>) => unknown) | undefined
  /** The call of `sessions` whose users it lets in; left out: any. */
  readonly owner?: object
  readonly needsUsername: boolean
  /** How its tokens are sent; left out: the cookie alone carries sessions. */
  readonly bearer?: Carrier | undefined
}

const cookieScheme: Omit<ApiKeyScheme, 'name'> = {
  type: 'apiKey',
  in: 'cookie',
  description: 'The session of the user who is signed in. Browsers send its cookie by themselves.',
}

type KindSettings = SessionKindOptions & RefuseOptions

// Where the user of a session comes from, by the cookie, and by a token as well
const sessionKind = (right: SessionRight, users: Users, options: KindSettings): Authenticator<unknown> => {
  const byCookie = permittedKind(right, users, options, cookieKind(right, users, options))
  const { bearer } = users
  if (bearer === undefined) return byCookie
  const byToken = sessionTokenKind(bearer, options, {
    demands: demandsOf(right.demands, options.proof),
    by: users.loadUser ?? applications,
    checkOwner: (ctx) => checkOwner(right.name, ctx, users.owner),
  })
  return alt(() => permittedKind(right, users, options, byToken))(byCookie)
}

// The kinds of `koa-with-auth`, which know of no application, take its tokens, too. A wrong token is not an absent token
const isTokenRefused = (ctx: Context): boolean => {
  const source = sourceOf(ctx)
  return source?.isTokenWrong === true || (source?.token ?? '') !== ''
}

const tokenSchemeFor = (request?: Request) => {
  const carrier = carrierFor(request)
  return carrier && tokenScheme(carrier)
}

const cookieKind = (
  { name: factory, demands: right }: SessionRight,
  users: Users,
  options: KindSettings,
): Authenticator<unknown> => {
  const { realm, proof } = options
  const demands = demandsOf(right, proof)
  const { cookieName } = users
  const { scheme, ...named } = documented({ ...cookieScheme, name: cookieName ?? DEFAULT_COOKIE }, options)
  const { loadUser = applications } = users
  return kindOf({
    scheme,
    ...named,
    demands,
    ...(cookieName === undefined && {
      // a router can be documented without a request, before the application has its sessions
      schemeFor: (request?: Request) => ({
        ...scheme,
        name: request === undefined ? declaredSessionCookie() : cookieNameOf(request.ctx),
      }),
    }),
    challenge: Challenge.make('Session', realm === undefined ? {} : { realm }),
    ambient: true,
    extract: ({ ctx }: Request) => {
      checkOwner(factory, ctx, users.owner)
      // with a field `Authorization`, the cookie does not count
      if (users.bearer !== undefined && sourceOf(ctx)?.token !== undefined) return O.none
      const found = sessionOf(factory, ctx, users.loadUser === undefined)
      return O.isNone(found) && isTokenRefused(ctx) ? O.some({}) : found
    },
    credentials: t.UnknownRecord,
    authenticate: ({ ctx }, data): unknown => sessionUserOf(ctx, data, users),
    leaf: {
      ...(proof !== undefined && { proof: neededBy(proof) }),
      ...(users.owner === undefined && { alsoFor: tokenSchemeFor }),
    },
    notes: { by: loadUser, fact: { part: 'session' } },
    evidence: ofSession,
  })
}

// Lets in the users of sessions who are active, and have the right and the proof that the kind demands
const permittedKind = (
  { name: factory, demands: right, holds }: SessionRight,
  users: Users,
  { refuse, proof }: KindSettings,
  session: Authenticator<unknown>,
): Authenticator<unknown> => {
  const { needsUsername } = users
  const { description } = session
  const gone = constantFailure(description, AuthErrors.because(AuthErrors.invalid, 'user'))
  const invalid = constantFailure(description, AuthErrors.because(AuthErrors.invalid, 'right'))
  const unproven =
    proof === undefined ? invalid : E.left(withChallenges(description, AuthErrors.unproven(neededBy(proof))))
  // Safe: `notAUser` has refused anything but an object
  const isAllowed = (user: unknown, rights: Rights): boolean => holds(user as object, rights)
  const check = (result: E.Right<unknown>, request: Request): Result<unknown> => {
    try {
      const { right: user } = result
      const rights = rightsFor(request.ctx, users)
      const mistake = notAUser(user, rights, needsUsername)
      if (mistake !== undefined) throw new TypeError(`${factory}, loadUser: ${mistake}`)
      // Safe: see `isAllowed`
      const isActive =
        !(needsUsername && ownOrGetter(user as object, 'username') === '') && rights.isActive(user as object)
      if (!isActive) return gone
      if (refuse !== 'insufficient' && !isAllowed(user, rights)) return invalid
      return proof === undefined || isProvenIn(factory, request.ctx, proof) ? result : unproven
    } catch (error) {
      return E.left(withChallenges(description, failureOf(error)))
    }
  }
  // a user whom `loadUser` refuses with a reason is refused, also behind `optional`
  const user = onSuccess(session, check, (failed) => (isBare(failed.left) ? gone : failed))
  if (refuse !== 'insufficient') return user
  const hasRight = (one: unknown, { ctx }: Request): boolean => isAllowed(one, rightsFor(ctx, users))
  return pipe(user, authorize(ofThisPackage(hasRight), { name: right ?? factory }))
}

const isBare = ({ _tag, why, detail, code }: AuthErrors.AuthError): boolean =>
  _tag === 'invalid' && (why ?? detail ?? code) === undefined

// The users of the application: kinds without a `loadUser` let in the same users
const applications = Symbol('users of the application')

// The demand on the caller, in words for the audit
const demandsOf = (right: string | undefined, proof: ProofDemand | undefined): string | undefined => {
  if (proof === undefined) return right
  const by = proof.methods === undefined ? '' : ` by ${proof.methods.join(' or ')}`
  const within = proof.maxAge === undefined ? '' : `, at most ${ageInWords(proof.maxAge)} old`
  return `${right ?? 'a user'} with a proof${by}${within}`
}

const isProvenIn = (factory: string, ctx: Context, demand: ProofDemand): boolean => {
  const source = sourceOf(ctx)
  if (source?.proofs === undefined) {
    throw new Error(`${factory}({ proof }): only sessions(app, ...) of koa-with-auth/sessions keep proofs`)
  }
  // Safe: a user was let in by it
  return isProven(source.proofs(source.sessionOf(ctx) as object), demand, Date.now())
}

const unavailableStore = AuthErrors.unavailable()

const sessionUserOf = (ctx: Context, data: Readonly<Record<string, unknown>>, { loadUser }: Users): unknown => {
  const source = sourceOf(ctx)
  // during an outage, no caller counts as anonymous
  if (source?.isUnavailable() === true) return unavailableStore
  // of the kinds of the root, which read the cookie and the token alike
  if (source !== undefined && isTokenRefused(ctx) && !source.isSignedIn(data)) return source.refusal ?? refusedToken
  // the hook may change its argument, so it gets a copy
  if (loadUser !== undefined) return loadUser(sessionData(source === undefined ? data : (ctx['session'] as object)))
  if (source !== undefined) return source.load(data)
  // this is data of a session, not the result of a program: if it is no user, the caller is not signed in
  const user = sessionField(data, 'user')
  return notAUser(user, rightsByFlags, true) === undefined && user
}

// A kind with its own `loadUser` has other users than the application
const rightsFor = (ctx: Context, { loadUser }: Users): Rights =>
  (loadUser === undefined ? sourceOf(ctx)?.rights : undefined) ?? rightsByFlags

// --- whose it is

const checkOwner = (factory: string, ctx: Context, owner: object | undefined): void => {
  if (owner === undefined) return
  const source = sourceOf(ctx)
  if (source?.owner === owner) return
  throw new Error(
    source === undefined
      ? `${factory}: it belongs to a call of sessions(app, ...), which this request did not pass; mount the router on that application, after the call`
      : `${factory}: it belongs to the sessions of another application; use the kind that sessions(app, ...) returned for this application, or sessionAuth of koa-with-auth, which accepts the users of every application`,
  )
}

const flagType = t.union([t.boolean, t.null, t.undefined])

/** A logged-in user. Only `true` grants a right; `isActive: false` and `null` refuse. */
export const SessionUser = Object.freeze(
  t.intersection([
    t.type({ username: t.string }),
    t.partial({ isSuperuser: flagType, isStaff: flagType, isActive: flagType }),
  ]),
)

/** A signed-in user, as the codec `SessionUser` decodes it. */
export type SessionUser = t.TypeOf<typeof SessionUser>

/** Intersected with the type of options: adds nothing if they load users. Otherwise they do not compile. */
type LoadsUsers<R> = LoadsUsersAsInferred<[R][R extends unknown ? 0 : never]>

type LoadsUsersAsInferred<R> =
  unknown extends PrincipalFromAnswer<R>
    ? unknown
    : [PrincipalFromAnswer<R>] extends [SessionUser]
      ? unknown
      : {
          readonly loadUser: (
            ...args: never[]
          ) => 'a user has username: string; isActive, isSuperuser and isStaff are boolean, null or left out'
        }

/** Why a loaded value is no user, and the fix; `undefined` for a user. Never prints a value. */
const notAUser = (u: unknown, rights: Rights, needsUsername: boolean): string | undefined => {
  if (typeof u !== 'object' || u === null || Array.isArray(u)) {
    return `loadUser must load an object${needsUsername ? ' with a username' : ''}, or undefined where there is no such user`
  }
  return needsUsername && typeof ownOrGetter(u, 'username') !== 'string' ? noUsername : rights.mistakeOf(u)
}

const noUsername =
  'the loaded user has no username that is a string; load { ...user, username: user.email }, for example, or use the kinds that sessions(app, { identify }) returns'

/** The data of a session. */
export type SessionData = Readonly<Record<string, unknown>>

/** Where the user comes from. */
export interface SessionAuthOptions<R> extends SessionKindOptions {
  /** The cookie's name, for the documentation. Default: the name in the options of koa-session. */
  readonly cookieName?: string | undefined
  /**
   * Loads the user of a session. If it returns nothing, or a user that cannot be read, the request is refused. Default: the user
   * whom `koa-with-auth/sessions` signed in; with a plain koa-session, `session.user`.
   */
  readonly loadUser?: ((session: SessionData) => R) | undefined
}

/** The user that a session authenticator lets in. */
export type UserOf<R> = unknown extends R ? SessionUser : PrincipalFromAnswer<R> & SessionUser

type KindGiven = SessionAuthOptions<unknown> & RefuseOptions

const userChecks = { cookieName: is.maybe(is.nameLike(token)), loadUser: is.maybe(is.hook(1)) }

const kindWith = (demanded: SessionRight, given: KindGiven = {}) => {
  const all: Checks<SessionAuthOptions<unknown>> = { ...userChecks, ...demanded.checks }
  const { cookieName, loadUser, ...options }: KindGiven = checkOptions<SessionAuthOptions<unknown>>(
    demanded.name,
    given,
    all,
  )
  return sessionKind(demanded, { cookieName, loadUser, needsUsername: true }, options)
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
  kindWith(anyUser, options) as Authenticator<UserOf<R>>

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
  kindWith(superuser, options) as Authenticator<UserOf<R>>

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
  kindWith(staff, options) as Authenticator<UserOf<R>>

/** `sessionAuth()`, ready-made. */
export const sessionLoginAuth: Authenticator<SessionUser> = sessionAuth()

/** `sessionAuthSuperUser()`, ready-made. */
export const sessionLoginAuthSuperuser: Authenticator<SessionUser> = sessionAuthSuperUser()

declareFactories({ sessionAuth, sessionAuthSuperUser, sessionAuthIsStaff })

/**
 * The same factories as those of `koa-with-auth`, with the application's own users as principals. They let in the users
 * that its `loadUser` loads, and no user of another application.
 */
export interface SessionKinds<U> {
  /** Passes for a user who is signed in and active. Throws a TypeError for options that cannot work. */
  readonly sessionAuth: (options?: SessionKindOptions) => Authenticator<U>
  /** Passes for a superuser or a staff member. Others get 401, or 403 if `refuse` says so. */
  readonly sessionAuthIsStaff: (options?: SessionKindOptions & RefuseOptions) => Authenticator<U>
  /** Passes for a superuser. Others get 401, or 403 if `refuse` says so. */
  readonly sessionAuthSuperUser: (options?: SessionKindOptions & RefuseOptions) => Authenticator<U>
}

export const typedKinds = <U>(users: Users): SessionKinds<U> => {
  const factory = (demanded: SessionRight) =>
    declareFactory(demanded.name, (options: SessionKindOptions & RefuseOptions = {}): Authenticator<U> => {
      const given = checkOptions<SessionKindOptions>(demanded.name, options, demanded.checks)
      // Safe: it lets in the user that `loadUser` loads
      return sessionKind(demanded, users, given) as Authenticator<U>
    })
  return {
    sessionAuth: factory(anyUser),
    sessionAuthIsStaff: factory(staff),
    sessionAuthSuperUser: factory(superuser),
  }
}
