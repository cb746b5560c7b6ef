/**
 * `sessions` sets koa-session up for production, and makes the functions that sign in and out.
 *
 * koa-session finds the cookie, and loads and keeps the data. The rest is done here: when a session is kept, what an outage of the
 * store means, when a session ends, and what a sign-in changes.
 */
import type Koa from 'koa'
import type { Context, Next, Request } from 'koa'
import koaSession from 'koa-session'
import type { PrincipalFromAnswer } from '../core/Result.js'
import { exchangeOf, settingsOf } from '../core/Exchange.js'
import { notWrapped, ownOrGetter, upgradeMark } from '../core/data.js'
import {
  checkOptions,
  declareFactory,
  flag,
  hook,
  maybe,
  nameLike,
  nonEmpty,
  oneOf,
  positive,
  token,
  withMethods,
  type Check,
  type Checks,
  duration,
} from '../core/options.js'
import { keysFix, strengthOf, warnOfShortKey } from '../kinds/plainSession.js'
import { typedKinds, type SessionKinds } from '../kinds/session.js'
import {
  declareSessions,
  rightsChecks,
  rightsFrom,
  type RightsOptions,
  type SessionSource,
} from '../kinds/sessionUser.js'
import { respondFailure, restore, take } from '../koa/respond.js'
import { applyHeaders, guardHeadersOf } from '../koa/responseHeaders.js'
import { textsByLanguage, type Pages, type PageTexts } from './Page.js'
import type { NeedsOf } from './NeededOptions.js'
import { requestSessionOf, type SessionOwner } from './RequestSession.js'
import {
  checkSameSite,
  domainName,
  lockAge,
  publicOrigin,
  unpolluted,
  warnOfHttp,
  sessionCookieOf,
} from './SessionCookie.js'
import { defaultStore, timedStore, type SessionStore } from './SessionStore.js'
import { sessionIds, SignInRefused, SignInReports, type Signing } from './SignIn.js'
import { signInList, type SessionHost } from './SignInList.js'
import { programName } from './programName.js'
import { commit, giveAtHead, keepUncached, takeBack } from './commit.js'
import { connected, signalsLike, type Signals } from '../stores/signals.js'
import { sessionEnds } from './SessionEnds.js'
import { koaSessionStore, recognizing } from './koaSessionStore.js'
import { MARK_LIFETIMES, signing } from './signing.js'

/** How an application keeps its sessions. All times are in milliseconds. */
export interface SessionsOptions<R> extends RightsOptions<PrincipalFromAnswer<R>> {
  /**
   * Loads a user by the identifier in the session, at each request that needs to know who is signed in. It returns a value, a
   * promise, an Option, an Either or a TaskEither. The result is the principal; `undefined` refuses. A user that can never sign in
   * (no `username` and no `identify`, or an `isActive` that is not a boolean and no option `isActive`) does not compile, and is a
   * 500 that names the field.
   */
  readonly loadUser: (id: string) => R
  /** Returns the identifier of a user, which the session holds and `loadUser` gets. Default: the user's `username`. */
  readonly identify?: ((user: PrincipalFromAnswer<R>) => string) | undefined
  /**
   * The name of the application. Its sessions do not work in an application with another name, even with the same signing keys and
   * the same store. If you change it, every user is signed out. Default: the name in the package.json of the program that runs. So
   * if one package has applications with different users, give each a name.
   */
  readonly name?: string | undefined
  /** Where sessions are kept. Default: in memory. If NODE_ENV is `production`, there is no default. */
  readonly store?: SessionStore | undefined
  /** How long an unused session lasts. Default 24 hours. */
  readonly idle?: number | undefined
  /** How long a session lasts after signing in, used or not. Default 7 days. */
  readonly absolute?: number | undefined
  /** The time limit of the store. Beyond it, the store counts as unavailable. Default 2 seconds. */
  readonly timeout?: number | undefined
  /**
   * Whether browsers use only https. `true`: the cookie is always `Secure`, its name begins with `__Host-`, and a session over http
   * is a 500. `false`: the cookie is never `Secure`, and there is a warning. Default: `true` if NODE_ENV is `production`; otherwise
   * the cookie is `Secure` if the request is.
   */
  readonly https?: boolean | undefined
  /** The cookie's name. Default `session`; with `https: true` `__Host-session`, and `__Secure-session` if there is a `domain`. */
  readonly cookieName?: string | undefined
  /**
   * The host name, such as `shop.example`, whose subdomains get the cookie, too. Leave it out if one host serves all. Its price: each
   * subdomain can read the cookie, and so act as the user. Each can write one, and so sign a visitor in as somebody else, or lock him
   * out (cookie tossing). So no subdomain may be run by others. If you change it, change `cookieName`, because browsers keep both.
   */
  readonly domain?: string | undefined
  /**
   * Whether the cookie is sent when a link on another site is followed (`lax`, the default) or not (`strict`). `none`: also in frames
   * and for front ends of other sites. It needs `https: true`, and `authSettings({ trustedOrigins })` mounted before.
   */
  readonly sameSite?: 'lax' | 'strict' | 'none' | undefined
  /** Whether browsers keep it apart for each site that frames the application (CHIPS), with `sameSite: 'none'`. Default `false`. */
  readonly partitioned?: boolean | undefined
  /** The longest session, in characters of its JSON. Default 16384. */
  readonly maxLength?: number | undefined
  /**
   * The public origin of the application, such as `https://shop.example`, for links in mails and redirects of
   * `koa-with-auth/sign-in`. It is never read from the Host field. Without it, signing in by `begin` is a 500, except on
   * loopback in development.
   */
  readonly origin?: string | undefined
  /**
   * Whether the sessions of a user can be listed and ended one by one (`listSessions`, `endSession`). It costs a read of
   * the store at each request of a user who is signed in. `label` says what the list calls a session; by default it has no
   * label, because user agent and address are personal data. Default `false`.
   */
  readonly list?: boolean | { readonly label: (request: Request) => string | undefined } | undefined
  /** Sends sign-outs to other processes, so that what a session has open ends there at once, too (`endOf`). Default: only here. */
  readonly signals?: Signals | undefined
  /**
   * Makes the pages of `koa-with-auth/sign-in`, for browsers that ask for one. It is called with a page as data, and returns the HTML,
   * a promise of it, or `undefined` after `ctx.render`. Default: plain pages of the library, which work without scripts; failures
   * are then those of your `errorMapper`, if there is one.
   */
  readonly pages?: Pages | undefined
  /** What the library's own pages say, by language: `{ de: { begin: 'Anmelden' } }`. The request chooses. Default: English. */
  readonly texts?: Readonly<Record<string, PageTexts>> | undefined
}

const HOUR = 3_600_000

const listed: Check = (where, value) => {
  if (typeof value === 'boolean') return
  // Safe: anything but an object is refused
  checkOptions(where, value as object, { label: hook(1) })
}

const sessionStore = withMethods(['read', 'insert', 'update', 'end', 'markOf', 'mark'], 'see SessionStore')

const checks: Checks<SessionsOptions<unknown>> = {
  loadUser: hook(1),
  identify: maybe(hook(1)),
  ...rightsChecks,
  name: maybe(nonEmpty),
  store: maybe(sessionStore),
  idle: maybe(duration),
  absolute: maybe(duration),
  timeout: maybe(positive),
  https: maybe(flag),
  cookieName: maybe(nameLike(token)),
  domain: maybe(domainName),
  sameSite: maybe(oneOf('lax', 'strict', 'none')),
  partitioned: maybe(flag),
  maxLength: maybe(positive),
  origin: maybe(publicOrigin),
  list: maybe(listed),
  signals: maybe(signalsLike),
  pages: maybe(hook(2)),
  texts: maybe(textsByLanguage),
}

const usernameOf = (user: unknown): unknown =>
  typeof user === 'object' && user !== null ? ownOrGetter(user, 'username') : undefined

/** Checks the application and the options. Throws a TypeError for what is weak, or cannot work. */
const resolveOptions = <R>(app: Koa, options: SessionsOptions<R>) => {
  if (typeof app !== 'object' || app === null || typeof app.callback !== 'function') {
    throw new TypeError('sessions(app, options): app must be a Koa application, not a router or an apiApp')
  }
  const given = checkOptions('sessions(app, options)', options, checks)
  const isProduction = app.env === 'production'
  const { loadUser, identify = usernameOf, name, https = isProduction || undefined } = given
  const cookie = sessionCookieOf(given.cookieName, given.domain, https)
  const { idle = 24 * HOUR, absolute = 7 * 24 * HOUR, timeout = 2000, maxLength = 16_384 } = given
  if (idle > absolute) throw new TypeError('sessions(app, { idle, absolute }): idle must not be longer than absolute')
  const { sameSite = 'lax', partitioned = false } = given
  checkSameSite(app, { sameSite, partitioned, https, origin: given.origin })
  const strength = strengthOf(app.keys)
  if (strength === 'weak') throw new TypeError(`sessions(app): ${keysFix}`)
  if (strength === 'older short') warnOfShortKey(app)
  const store = given.store ?? defaultStore(isProduction)
  if (https === false) warnOfHttp()
  return {
    loadUser,
    identify,
    // users without `identify` are known by their `username`
    needsUsername: given.identify === undefined,
    rights: rightsFrom('sessions(app, { ... })', given),
    name: name ?? programName(isProduction),
    store,
    idle,
    absolute,
    timeout,
    https,
    cookie,
    sameSite,
    partitioned,
    maxLength,
    origin: given.origin,
    isProduction,
    list: given.list !== undefined && given.list !== false,
    signals: given.signals,
    label: typeof given.list === 'object' ? given.list.label : undefined,
    pages: given.pages,
    texts: { ...given.texts },
  }
}

// Anonymous callers can sign in, so there is no challenge
const anonymous = guardHeadersOf({ _tag: 'AnyOf', members: [] }).whenRefused

const apps = new WeakSet<object>()

// A router that is mounted above the sessions throws, because every caller would be anonymous there (D-S12)
const misplaced = (owner: SessionOwner): SessionSource => ({
  owner,
  rights: owner.rights,
  isUnavailable: () => {
    throw new Error('sessions(app, ...) must be called before the routers are mounted')
  },
  isSignedIn: () => false,
  load: () => false,
  digests: () => undefined,
})

/** What `sessions` returns: functions that sign in and out, and session kinds, for users of type `U`. */
export interface Sessions<U> extends Signing<U>, SessionKinds<U> {}

/**
 * Mounts sessions on an application, above everything that is mounted later. It returns the functions that sign in and out, and the
 * session kinds of this application. Their principal is the user that `loadUser` loads at each request. The session kinds of
 * `koa-with-auth` also use `loadUser`, for users with a `username`. Throws a TypeError if something is weak or cannot work: a short
 * first signing key, production without a store, a second call.
 *
 * @example
 * import { randomBytes } from 'node:crypto'
 * import Koa from 'koa'
 * import Router from '@koa/router'
 * import { withAuth } from 'koa-with-auth'
 * import { sessions } from 'koa-with-auth/sessions'
 *
 * const users = new Map([['anna', { username: 'anna' }]])
 * const app = new Koa({ keys: [randomBytes(32).toString('hex')] })
 * const { sessionAuth, logIn } = sessions(app, { loadUser: (id) => users.get(id) })
 *
 * const router = new Router()
 * router.post('/login', withAuth(null), async (ctx) => {
 *   await logIn(ctx, { username: 'anna' }) // once the password is verified
 *   ctx.status = 204
 * })
 * router.get('/me', withAuth(sessionAuth()), (ctx) => {
 *   ctx.body = ctx.request.auth.username // the type is that of a user
 * })
 * app.use(router.routes())
 */
export const sessions = <R>(app: Koa, options: SessionsOptions<R> & NeedsOf<R>): Sessions<PrincipalFromAnswer<R>> => {
  const settled = resolveOptions(app, options)
  const { name, rights, idle, absolute, https, cookie } = settled
  const cookieName = cookie.name
  if (apps.has(app) || 'session' in app.context) {
    throw new TypeError('sessions(app): the application has sessions already; a second koa-session would not be used')
  }
  apps.add(app)
  const store = timedStore(settled.store, settled.timeout)
  const keys = () => app.keys
  const ids = sessionIds(keys)
  const { loadUser } = settled
  const longest = absolute * MARK_LIFETIMES
  const reports = new SignInReports(name)
  const ended = (user: string, id: string, session: string | undefined): void => {
    if (session !== undefined) reports.endedByList(session, user)
    signInEnds.listedOver(user, id)
  }
  const list = settled.list ? signInList({ name, store, idle, longest, ended }) : undefined
  const host: SessionHost = {
    list,
    label: settled.label,
    pages: settled.pages,
    texts: settled.texts,
    finished: new Map(),
    keys,
    name,
    store,
    origin: settled.origin,
    isProduction: settled.isProduction,
    https,
    identify: (user) => {
      // Safe: `identify` takes what `loadUser` loads
      const id = settled.identify(user as never)
      if (typeof id === 'string' && id !== '') return id
      throw new TypeError(
        'logIn(ctx, user): the id of the user must be a string that is not empty; it is user.username, or what the option identify of sessions(...) returns',
      )
    },
  }
  const tell = connected(settled.signals)
  const signInEnds = sessionEnds({ name, store, idle, absolute, longest, list, tell })
  const owner: SessionOwner = {
    keys,
    name,
    ids,
    loadUser,
    rights,
    reports,
    ends: signInEnds,
    signing: () => signs,
    host,
  }
  const limits = { idle, lifetime: absolute, maxLength: settled.maxLength }
  const toTakeBack = { store, cookieName, idle, absolute }
  const toCommit = { https: https === true, cookieName, idle }
  // a request that passes the sessions carries its own source
  declareSessions(app, misplaced(owner), cookieName)
  const run = koaSession(
    {
      ...unpolluted,
      // koa-session hands it to koa's cookies; its types do not know it
      ...{ domain: cookie.domain },
      key: cookieName,
      maxAge: idle,
      signed: true,
      httpOnly: true,
      // left out: as secure as the request
      ...(https !== undefined && { secure: https }),
      sameSite: settled.sameSite,
      ...(settled.partitioned && { partitioned: true }),
      autoCommit: false,
      genid: (ctx: Context) => requestSessionOf(ctx).assignId(ctx),
      store: recognizing(koaSessionStore(store, limits), store, { absolute, longest }, ids, list),
    },
    app,
  )
  const begin = (ctx: Context) => {
    if (ctx.app !== app) throw new Error(mounted)
    const session = requestSessionOf(ctx)
    session.attach(owner)
    exchangeOf(ctx).source = session
    return session
  }
  // the session is only read: nothing can sign in or out, because no response could carry the cookie
  const atUpgrade = (ctx: Context, next: Next): Promise<void> => {
    begin(ctx)
    return run(ctx, next)
  }
  const atRequest = async (ctx: Context, next: Next): Promise<void> => {
    const session = begin(ctx)
    let isSettled = false
    keepUncached(ctx.res, cookie, (status) => {
      if (!isSettled) giveAtHead(ctx, session, status, toCommit)
    })
    const before = take(ctx.response)
    try {
      await run(ctx, async () => {
        session.open(ctx)
        lockAge(ctx)
        await next()
        const { misplaced, hasThrown } = exchangeOf(ctx)
        if (misplaced !== undefined) throw misplaced
        isSettled = true
        if (hasThrown) await takeBack(ctx, session, toTakeBack)
        else {
          await commit(ctx, session, toCommit)
          session.kept()
        }
      })
    } catch (thrown) {
      if (isSettled && ctx.headerSent) {
        // the operation has succeeded, and its response must still end
        await takeBack(ctx, session, toTakeBack)
        app.emit('error', thrown, ctx)
        return
      }
      isSettled = true
      const error = exchangeOf(ctx).misplaced ?? thrown
      await takeBack(ctx, session, toTakeBack)
      if (!(error instanceof SignInRefused) || ctx.headerSent) throw error
      // closes a stream that nothing will read
      ctx.body = null
      restore(ctx.response, before)
      applyHeaders(ctx, exchangeOf(ctx), anonymous)
      await respondFailure(ctx, error.failure, settingsOf(ctx.request), anonymous)
    }
  }
  // the name that the audit of an application shows
  Object.defineProperty(atRequest, 'name', { value: 'sessions' })
  app.use(notWrapped(Object.assign(atRequest, { [upgradeMark]: atUpgrade })))
  const signs = signing<PrincipalFromAnswer<R>>({
    owner,
    store,
    https: https === true,
    idle,
    absolute,
  })
  return {
    ...signs,
    ...typedKinds<PrincipalFromAnswer<R>>({ owner, cookieName, needsUsername: settled.needsUsername }),
  }
}

// koa-mount runs this middleware on a context of the outer application, so it would use the session of that one
const mounted =
  'sessions(app): this application is mounted in another one (koa-mount), so the request and its session belong to the outer one. Mount routers instead, and call sessions once, for the outer application; or serve this application by its own app.callback()'

declareFactory('sessions', sessions)
