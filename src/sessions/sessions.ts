/**
 * `sessions` sets koa-session up for production, and makes the functions that sign in and out.
 *
 * koa-session finds the cookie, and loads and keeps the data. The rest is done here: when a session is kept, what an outage of the
 * store means, when a session ends, and what a sign-in changes.
 */
import type Koa from 'koa'
import type { Context, Next } from 'koa'
import koaSession from 'koa-session'
import type { PrincipalFromAnswer } from '../core/PrincipalFromAnswer.js'
import { upgradeMark } from '../core/marks.js'
import { declareFactory } from '../core/hooks.js'
import { carrySource, type SessionSource } from '../core/session/SessionSource.js'
import { declareSessionCookie } from '../core/session/sessionCookie.js'
import { settingsOf } from '../core/Settings.js'
import { hasThrown } from '../koa/exceptions.js'
import { notWrapped } from '../koa/notWrapped.js'
import { applyPolicy, headerPolicyOf } from '../koa/responseHeaders.js'
import { respondFailure } from '../koa/respond.js'
import { restore, take } from '../koa/ResponseSnapshot.js'
import { commit } from './commit.js'
import { koaSessionStore } from './koaSessionStore.js'
import { decided, type NeedsOf, type SessionsOptions } from './options.js'
import { requestSessionOf } from './RequestSession.js'
import { recognizing } from './recognizing.js'
import { sessionIds } from './sessionIds.js'
import type { SessionOwner } from './SessionOwner.js'
import { unpolluted } from './unpolluted.js'
import { signing } from './signing.js'
import type { Signing } from './SignInFunctions.js'
import { typedKinds, type SessionKinds } from './typedKinds.js'
import { rememberedEnds } from './SignInReports.js'
import { SignInRefused } from './SignInRefused.js'
import { takeBack } from './takeBack.js'
import { timedStore } from './timedStore.js'
import { keepUncached } from './uncached.js'

// Anonymous callers can sign in, so there is no challenge
const anonymous = headerPolicyOf({ _tag: 'AnyOf', members: [] })

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
 * interface User {
 *   readonly id: number
 *   readonly role: 'admin' | 'editor'
 * }
 * const users = new Map<string, User>([['7', { id: 7, role: 'editor' }]])
 *
 * const app = new Koa({ keys: [randomBytes(32).toString('hex')] })
 * const { sessionAuth, sessionAuthSuperUser, logIn, logOut } = sessions(app, {
 *   loadUser: (id) => users.get(id),
 *   identify: (user) => String(user.id),
 *   isSuperuser: (user) => user.role === 'admin',
 * })
 *
 * const router = new Router()
 * router.post('/login', withAuth(null), async (ctx) => {
 *   await logIn(ctx, { id: 7, role: 'editor' }) // once the password is verified
 *   ctx.status = 204
 * })
 * router.post('/logout', withAuth(null), async (ctx) => {
 *   await logOut(ctx)
 *   ctx.status = 204
 * })
 * router.get('/me', withAuth(sessionAuth()), (ctx) => {
 *   ctx.body = ctx.request.auth.role // the type is that of a user
 * })
 * router.delete('/users', withAuth(sessionAuthSuperUser({ refuse: 'insufficient' })), () => {})
 * app.use(router.routes())
 */
export const sessions = <R>(app: Koa, options: SessionsOptions<R> & NeedsOf<R>): Sessions<PrincipalFromAnswer<R>> => {
  const settled = decided(app, options)
  const { name, rights, idle, absolute, https, cookieName } = settled
  if (apps.has(app) || 'session' in app.context) {
    throw new TypeError('sessions(app): the application has sessions already; a second koa-session would not be used')
  }
  apps.add(app)
  declareSessionCookie(cookieName)
  const store = timedStore(settled.store, settled.timeout)
  const keys = () => app.keys
  const ids = sessionIds(keys)
  const { loadUser } = settled
  const owner: SessionOwner = { keys, name, ids, loadUser, rights, ended: rememberedEnds(), signing: () => signs }
  const limits = { idle, lifetime: absolute, maxLength: settled.maxLength }
  const toTakeBack = { store, cookieName, idle, absolute }
  // Safe: it is the prototype of every context. A request that passes the sessions gets its own source
  carrySource(app.context as Context, misplaced(owner))
  const run = koaSession(
    {
      ...unpolluted,
      key: cookieName,
      maxAge: idle,
      signed: true,
      httpOnly: true,
      // left out: as secure as the request
      ...(https !== undefined && { secure: https }),
      sameSite: settled.sameSite,
      autoCommit: false,
      genid: (ctx: Context) => requestSessionOf(ctx).renamed(ctx),
      store: recognizing(koaSessionStore(store, limits), store, absolute, ids),
    },
    app,
  )
  const begin = (ctx: Context) => {
    if (ctx.app !== app) throw new Error(mounted)
    const session = requestSessionOf(ctx)
    session.takenOn(owner)
    carrySource(ctx, session)
    return session
  }
  // the session is only read: nothing can sign in or out, because no response could carry the cookie
  const atUpgrade = (ctx: Context, next: Next): Promise<void> => {
    begin(ctx)
    return run(ctx, next)
  }
  const atRequest = async (ctx: Context, next: Next): Promise<void> => {
    const session = begin(ctx)
    keepUncached(ctx.res, cookieName)
    const before = take(ctx.response)
    try {
      await run(ctx, async () => {
        session.opened(ctx)
        await next()
        if (hasThrown(ctx)) await takeBack(ctx, session, toTakeBack)
        else {
          await commit(ctx, session, { https: https === true, cookieName, idle })
          session.kept()
        }
      })
    } catch (error) {
      await takeBack(ctx, session, toTakeBack)
      if (!(error instanceof SignInRefused) || ctx.headerSent) throw error
      // closes a stream that nothing will read
      ctx.body = null
      restore(ctx.response, before)
      applyPolicy(ctx, anonymous, anonymous.whenRefused)
      respondFailure(ctx, error.failure, settingsOf(ctx.request), anonymous)
    }
  }
  // the name that the audit of an application shows
  Object.defineProperty(atRequest, 'name', { value: 'sessions' })
  app.use(notWrapped(Object.assign(atRequest, { [upgradeMark]: atUpgrade })))
  const signs = signing<PrincipalFromAnswer<R>>({
    owner,
    identify: settled.identify,
    store,
    https: https === true,
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
