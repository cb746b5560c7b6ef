/**
 * `sessions`: sets koa-session up so that it holds in production, and makes the functions that sign in and out.
 *
 * koa-session finds the cookie, and loads and keeps the data. What it leaves to its users is done here: when a session is
 * kept, what an outage of the store means, when a session is over, and what a sign-in changes.
 */
import { randomBytes } from 'node:crypto'
import type Koa from 'koa'
import type { Context, Next } from 'koa'
import koaSession from 'koa-session'
import type { PrincipalOf } from '../core/Answer.js'
import { declareFactory } from '../core/misuse.js'
import { carrySource, type SessionSource } from '../core/SessionSource.js'
import { settingsOf } from '../core/Settings.js'
import { claim, operationOf } from '../koa/head.js'
import { respondFailure } from '../koa/respond.js'
import { restore, take } from '../koa/ResponseSnapshot.js'
import { commit } from './commit.js'
import { decided, type SessionsOptions } from './options.js'
import { koaSessionStore, type KoaSessionStore, type SessionStore } from './SessionStore.js'
import { signedIn } from './SignedIn.js'
import { signing, type Signing } from './signing.js'
import { SignInRefused } from './SignInRefused.js'
import { timedStore } from './timedStore.js'
import { sessionOf, textOf, visitOf } from './Visit.js'

// Signing in and out is for anybody
const anybody = operationOf({ _tag: 'AnyOf', members: [] })

const apps = new WeakSet<object>()

// What holds above the sessions, where everybody would be anonymous (SECURITY D-S12)
const misplaced: SessionSource = {
  isUnavailable: () => {
    throw new Error('sessions(app, ...) must be called before the routers are mounted')
  },
  isSignedIn: () => false,
  load: () => false,
}

/**
 * Mounts sessions on an application, above what is mounted later, and returns the functions that sign in and out. The
 * session kinds (`sessionAuth()` and the others) then load their user by `loadUser` at each request. TypeError for what is
 * weak or cannot work: short signing keys, production without a store, a second call.
 *
 * @example
 * import { randomBytes } from 'node:crypto'
 * import Koa from 'koa'
 * import Router from '@koa/router'
 * import { sessionAuth, withAuth } from 'koa-with-auth'
 * import { sessions } from 'koa-with-auth/sessions'
 *
 * const users = new Map([['anna', { username: 'anna', isActive: true }]])
 *
 * const app = new Koa({ keys: [randomBytes(32).toString('hex')] })
 * const { logIn, logOut } = sessions(app, { loadUser: (id) => users.get(id) })
 *
 * const router = new Router()
 * router.post('/login', withAuth(null), async (ctx) => {
 *   await logIn(ctx, { username: 'anna', isActive: true }) // once the password is verified
 *   ctx.status = 204
 * })
 * router.post('/logout', withAuth(null), async (ctx) => {
 *   await logOut(ctx)
 *   ctx.status = 204
 * })
 * router.get('/me', withAuth(sessionAuth()), (ctx) => {
 *   ctx.body = ctx.request.auth.username
 * })
 * app.use(router.routes())
 */
export const sessions = <R>(app: Koa, options: SessionsOptions<R>): Signing<PrincipalOf<R>> => {
  const { loadUser, identify, idle, absolute, timeout, https, cookieName, sameSite, maxLength, ...given } = decided(
    app,
    options,
  )
  if (apps.has(app) || 'session' in app.context) {
    throw new TypeError('sessions(app): the application has sessions already; a second koa-session would not be used')
  }
  apps.add(app)
  const store = timedStore(given.store, timeout)
  const source: SessionSource = {
    isUnavailable: () => false,
    isSignedIn: (session) => signedIn(session) !== undefined,
    load: (session) => {
      const auth = signedIn(session)
      return auth !== undefined && loadUser(auth.id)
    },
  }
  const isDown: SessionSource = { ...source, isUnavailable: () => true }
  // Safe: it is the prototype of every context; a request that comes by the sessions carries its own
  carrySource(app.context as Context, misplaced)
  const run = koaSession(
    {
      key: cookieName,
      maxAge: idle,
      signed: true,
      httpOnly: true,
      secure: https,
      sameSite,
      autoCommit: false,
      genid: () => randomBytes(32).toString('base64url'),
      store: watched(koaSessionStore(store, { lifetime: absolute, maxLength }), store, absolute),
    },
    app,
  )
  app.use(async (ctx: Context, next: Next) => {
    const before = take(ctx.response)
    try {
      await run(ctx, async () => {
        const visit = visitOf(ctx)
        const session = sessionOf(ctx)
        if (session !== null) visit.handle = session
        visit.kept = textOf(session)
        carrySource(ctx, visit.fault === undefined ? source : isDown)
        await next()
        await commit(ctx, visit, { https, idle })
      })
    } catch (error) {
      if (!(error instanceof SignInRefused) || ctx.headerSent) throw error
      // closes a stream that nobody will read
      ctx.body = null
      restore(ctx.response, before)
      claim(ctx, anybody, anybody.refused)
      respondFailure(ctx, error.failure, settingsOf(ctx.request), anybody)
    }
  })
  return signing({ identify, store, https, absolute })
}

// A store for koa-session that answers nothing in an outage, and nothing for a session that is over
const watched = (kept: KoaSessionStore, store: SessionStore, absolute: number): KoaSessionStore => {
  const isOver = async (data: object): Promise<boolean> => {
    const auth = signedIn(data)
    if (auth === undefined) return false
    return auth.at + absolute <= Date.now() || (await store.markOf(auth.id)) !== auth.mark
  }
  return {
    ...kept,
    get: async (id, maxAge, options) => {
      try {
        const data = await kept.get(id, maxAge, options)
        return typeof data === 'object' && data !== null && !(await isOver(data)) ? data : undefined
      } catch (error) {
        if (options.ctx !== undefined) visitOf(options.ctx).fault = error
        return undefined
      }
    },
  }
}

declareFactory('sessions', sessions)
