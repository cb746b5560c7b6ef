/**
 * `sessions` sets koa-session up for production, and makes the functions that sign in and out.
 *
 * koa-session finds the cookie, and loads and keeps the data. The rest is done here: when a session is kept, the answer to an outage of the
 * store, the end of a session, and the changes by a sign-in.
 */
import type { SetOption } from 'cookies'
import type Koa from 'koa'
import type { Context, Next } from 'koa'
import koaSession from 'koa-session'
import type { PrincipalFromAnswer } from '../core/Result.js'
import { exchangeOf, settingsOf } from '../core/Exchange.js'
import { notWrapped, stating, unawaited, upgradeMark } from '../core/data.js'
import { declareFactory } from '../core/options.js'
import { typedKinds, type SessionKinds } from '../kinds/session.js'
import { declareSessions, type SessionSource } from '../kinds/sessionUser.js'
import { respondFailure, restore, take } from '../koa/respond.js'
import { applyHeaders, headersOfRefusal } from '../koa/responseHeaders.js'
import { connected } from '../signals/signals.js'
import { timedStore } from '../stores/Store.js'
import { endGrants, grantKeepersOf } from './grants.js'
import { noteReadings, requestSessionOf, type RequestSession, type SessionOwner } from './RequestSession.js'
import { SealedCookie, koaSessionDefaults } from './SessionCookie.js'
import { checkSessionsOptions, type NeedsOf, type SessionsOptions } from './SessionsOptions.js'
import { STAMP_LIFETIMES, type SessionRecords } from './SessionRecords.js'
import { SignInRefused, SignInReports, verifier, type Signing } from './SignIn.js'
import type { SessionHost } from './SignInList.js'
import { commit, headWatcher, isKept, undoRequest, type Saving } from './commit.js'
import { listedOver, sessionEnds } from './SessionEnds.js'
import type { KoaSession } from './StoredSession.js'
import { koaSessionStore } from './koaSessionStore.js'
import { signing } from './signing.js'

const apps = new WeakSet<object>()

const above = (): never => {
  throw new Error('sessions(app, ...) must be called before the routers are mounted')
}

// A router that is mounted above the sessions throws, because every caller would be anonymous there (D-S12)
const misplacedSource = (owner: SessionOwner): SessionSource => ({
  owner,
  rights: owner.rights,
  carrier: owner.bearer,
  sessionOf: (ctx) => ctx['session'] as unknown,
  sent: above,
  isUnavailable: above,
  isSignedIn: () => false,
  load: () => false,
  digests: () => undefined,
})

/** The result of `sessions`: functions that sign in and out, and session kinds, for users of type `U`. */
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
  const settled = checkSessionsOptions(app, options)
  if (apps.has(app) || 'session' in app.context) {
    throw new TypeError('sessions(app): the application has sessions already; a second koa-session would not be used')
  }
  apps.add(app)
  const { name, idle, absolute, cookie } = settled
  const store = timedStore('sessions', settled.store, settled.timeout)
  const records: SessionRecords = { name, store, idle, absolute, longest: absolute * STAMP_LIFETIMES }
  const owner = sessionOwner(app, settled, records)
  // a request that passes the sessions carries its own source
  declareSessions(app, misplacedSource(owner), cookie.name)
  const isSecure = settled.https === true
  const saving: Saving = { ...records, isSecure, cookieName: cookie.name }
  const run = mountedKoaSession(app, settled, owner)
  const self: Serving = { app, owner, saving, run, watchHead: headWatcher(cookie, saving) }
  const atRequest = (ctx: Context, next: Next): Promise<void> => serveRequest(self, ctx, next)
  // the session is only read: nothing can sign in or out, because no response could carry the cookie
  const atUpgrade = (ctx: Context, next: Next): Promise<void> => {
    beginRequest(self, ctx)
    return run(ctx, next)
  }
  // the name that the audit of an application shows, with the functions that decide about its users
  Object.defineProperty(atRequest, 'name', { value: ['sessions', ...settled.rightsLabels].join(' ') })
  stating(atRequest, { part: 'sessions', idle, absolute })
  app.use(notWrapped(Object.assign(atRequest, { [upgradeMark]: atUpgrade })))
  const { needsUsername } = settled
  return {
    ...(owner.signing() as Signing<PrincipalFromAnswer<R>>),
    ...typedKinds<PrincipalFromAnswer<R>>({
      owner,
      cookieName: cookie.name,
      needsUsername,
      bearer: settled.bearer,
    }),
  }
}

type SettledOptions<R> = ReturnType<typeof checkSessionsOptions<R>>

// The data that the parts of an application's sessions share
const sessionOwner = <R>(app: Koa, settled: SettledOptions<R>, records: SessionRecords): Owner => {
  const { name, https, loadUser, rights } = settled
  const reports = new SignInReports(name)
  const ended = (user: string, id: string, session: string | undefined): void => {
    if (session !== undefined) reports.endedByList(session, user)
    listedOver(owner.ends, user, id)
  }
  const endGrantsOf = (user: string, listed: string): Promise<void> => endGrants(host, user, { listed })
  const list = settled.list ? { ...records, ended, endGrants: endGrantsOf } : undefined
  const keys = () => app.keys
  const host: SessionHost = {
    ...settled,
    ...records,
    hasTokens: settled.bearer !== undefined,
    list,
    keys,
    finished: new Map(),
    grants: grantKeepersOf(app),
    identify: (user) => identified(settled, user),
  }
  const owner: Owner = {
    cookie: new SealedCookie(settled.cookie.name, name, keys),
    bearer: settled.bearer,
    koaSessionOf: () => null,
    optionsOf: () => ({}),
    loadUser,
    rights,
    reports,
    verify: verifier(),
    ends: sessionEnds({ ...records, list, tell: connected(settled.signals) }),
    signing: () => signs,
    host,
  }
  const signs = signing<never>({ ...records, owner, isSecure: https === true })
  return owner
}

// Koa-session's accessors are known once it is mounted
interface Owner extends SessionOwner {
  koaSessionOf: SessionOwner['koaSessionOf']
  optionsOf: SessionOwner['optionsOf']
}

const identified = <R>({ identify }: SettledOptions<R>, user: unknown): string => {
  // Safe: `identify` takes a user of `loadUser`
  const id = unawaited(identify(user as never))
  if (typeof id === 'string' && id !== '') return id
  throw new TypeError(
    'logIn(ctx, user): the id of the user must be a string that is not empty; it is user.username, or the result of the option identify of sessions(...), such as String(user.id)',
  )
}

// Koa-session is given a context of its own, so that reading a session is noted
const mountedKoaSession = <R>(app: Koa, settled: SettledOptions<R>, owner: Owner): ReturnType<typeof koaSession> => {
  const { https, cookie, partitioned, maxLength, idle, sameSite } = settled
  const own = {}
  const run = koaSession(
    {
      // in this order: koa-session copies them at each request, which V8 does slowly if many are spread before the others
      key: cookie.name,
      maxAge: idle,
      // the id is sealed
      signed: false,
      httpOnly: true,
      sameSite,
      autoCommit: false,
      ...koaSessionStore({ ...owner.host, maxLength, bearer: owner.bearer }),
      // left out: as secure as the request
      ...(https !== undefined && { secure: https }),
      ...(partitioned && { partitioned: true }),
      // koa-session hands it to koa's cookies; its types do not know it
      ...{ domain: cookie.domain },
      ...koaSessionDefaults,
    },
    // Safe: koa-session uses nothing else of an application
    { use: app.use, context: own } as Koa,
  )
  const unnoted = noteReadings(own, app.context)
  const [sessionOf, optionsOf] = [unnoted('session'), unnoted('sessionOptions')]
  owner.koaSessionOf = (ctx) => sessionOf(ctx) as KoaSession | null
  owner.optionsOf = (ctx) => optionsOf(ctx) as SetOption
  return run
}

interface Serving {
  readonly app: Koa
  readonly owner: SessionOwner
  readonly saving: Saving
  readonly run: ReturnType<typeof koaSession>
  readonly watchHead: ReturnType<typeof headWatcher>
}

const beginRequest = ({ app, owner }: Serving, ctx: Context): RequestSession => {
  // koa-mount runs this middleware on a context of the outer application, so it would use the session of that application
  if (ctx.app !== app) {
    throw new Error(
      'sessions(app): this application is mounted in another one (koa-mount), so the request and its session belong to the outer one. Mount routers instead, and call sessions once, for the outer application; or serve this application by its own app.callback()',
    )
  }
  const session = requestSessionOf(ctx)
  session.attach(owner)
  exchangeOf(ctx).source = session
  return session
}

const serveRequest = async (self: Serving, ctx: Context, next: Next): Promise<void> => {
  const { saving } = self
  const session = beginRequest(self, ctx)
  self.watchHead(ctx, session)
  const before = take(ctx.response)
  const exchange = exchangeOf(ctx)
  try {
    await self.run(ctx, () => {
      session.open(ctx)
      return next()
    })
    if (exchange.misplaced !== undefined) throw exchange.misplaced
    session.isSettled = true
    if (exchange.hasThrown) await undoRequest(ctx, session, saving)
    else {
      if (!isKept(ctx, session, saving)) await commit(ctx, session, saving)
      session.kept()
    }
  } catch (thrown) {
    if (session.isSettled && ctx.headerSent) {
      // the operation has succeeded, and its response must still end
      await undoRequest(ctx, session, saving)
      self.app.emit('error', thrown, ctx)
      return
    }
    session.isSettled = true
    const error = exchange.misplaced ?? thrown
    await undoRequest(ctx, session, saving)
    if (!(error instanceof SignInRefused) || ctx.headerSent) throw error
    restore(ctx.response, before)
    applyHeaders(ctx, exchange, headersOfRefusal)
    await respondFailure(ctx, error.failure, settingsOf(ctx.request), headersOfRefusal)
    session.giveNonce(ctx)
  }
}

declareFactory('sessions', sessions)
