/**
 * Two applications with the same answers: one with checks by hand, written as middleware, one with this library. Each has all kinds of
 * authenticators, as in real applications, so that the code which the kinds share is compiled for all of them.
 */
import type { RequestListener } from 'node:http'
import Router, { type RouterMiddleware } from '@koa/router'
import Koa, { type Middleware, type Request } from 'koa'
import Keygrip from 'keygrip'
import session from 'koa-session'
import * as built from '../../../dist/index.js'
import type { Authenticator, Guard } from '../../../dist/index.js'
import {
  accept,
  anna,
  answer,
  basicOf,
  bearerPasses,
  deny,
  denyBearer,
  giveUp,
  hook,
  keyNames,
  listPasses,
  tokenOf,
  tooLate,
  within,
  type User,
} from './byHand.js'

/** How the applications are set up; both take the same. */
export interface Setting {
  /** Milliseconds that a hook may take. Default: ten seconds, like koa-with-auth. */
  readonly limit?: number
  /** Runs before all routes. */
  readonly before?: Middleware
}

/** Nested routers, each of which guards. */
const LEVELS = 8
/** Of the list. */
const KEYS = 3

const { constantTimeEqual } = built
const lateHook = async (request: Request, secret: string): Promise<User | false> =>
  secret === 'hangs' ? new Promise(() => {}) : hook(request, secret)
const pairHook = (_request: Request, name: string, password: string): User | false =>
  constantTimeEqual(`${name}:${password}`, 'anna:supersecret') && anna

const sessionKeys = ['a signing key of at least 32 characters']
/** The cookie of a signed-in user. */
export const cookieOf = (id: string): string =>
  `koa.sess=${id}; koa.sess.sig=${new Keygrip(sessionKeys).sign(`koa.sess=${id}`)}`

// `sessions` is koa-session, for the routes that read the session
const begin = ({ before }: Setting) => {
  const app = new Koa({ keys: sessionKeys })
  app.silent = true
  if (before !== undefined) app.use(before)
  const kept = { user: { username: 'anna' } }
  const store = {
    get: async (id: string) => (id === 'id' ? { ...kept } : undefined),
    set: async () => {},
    destroy: async () => {},
  }
  return { app, router: new Router(), sessions: session({ sameSite: 'lax', store }, app) }
}

// --- By hand

const realm = 'realm="api"'
const bearerByHand: RouterMiddleware = (ctx, next) => (bearerPasses(ctx) ? next() : undefined)

const lateByHand =
  (limit: number): RouterMiddleware =>
  async (ctx, next) => {
    const token = tokenOf(ctx)
    const user = token !== undefined && (await within(lateHook(ctx.request, token), limit))
    if (user === tooLate) return giveUp(ctx, 'Authorization')
    if (user === false) return denyBearer(ctx, token)
    accept(ctx, user, 'Authorization')
    return next()
  }

const basicByHand: RouterMiddleware = (ctx, next) => {
  const sent = basicOf(ctx)
  const user = sent !== undefined && pairHook(ctx.request, sent[0], sent[1])
  if (user === false) return deny(ctx, `Basic ${realm}, charset="UTF-8"`, 'Authorization')
  accept(ctx, user, 'Authorization')
  return next()
}

const listByHand = (): RouterMiddleware => {
  const passes = listPasses(KEYS)
  return (ctx, next) => (passes(ctx) ? next() : undefined)
}

const sessionByHand: RouterMiddleware = (ctx, next) => {
  const user: unknown = ctx['session']?.user
  if (typeof user !== 'object' || user === null || !('username' in user)) return deny(ctx, `Session ${realm}`, 'Cookie')
  accept(ctx, user, 'Cookie')
  return next()
}

const nested = (inner: Router): Router => new Router().use(inner.routes()) as Router

const byHand = (setting: Setting): RequestListener => {
  const { app, router, sessions } = begin(setting)
  let levels = new Router().get('/levels', bearerByHand, answer)
  for (let level = 1; level < LEVELS; level++) levels = nested(levels)
  router.get('/bearer', bearerByHand, answer)
  router.get('/late', lateByHand(setting.limit ?? 10_000), answer)
  router.get('/basic', basicByHand, answer)
  router.get('/list', listByHand(), answer)
  router.get('/session', sessions, sessionByHand, answer)
  router.use(levels.routes())
  return app.use(router.routes()).callback()
}

// --- By this layer

/** What the application uses of this library; each release exports it. */
export type Library = Pick<
  typeof built,
  'apiKeyHeader' | 'authSettings' | 'httpBasicAuth' | 'httpBearer' | 'sessionAuth' | 'withAuth'
>

/** The application with a build of this library. */
export const guardedBy = (library: Library, setting: Setting = {}): RequestListener => {
  const { apiKeyHeader, authSettings, httpBasicAuth, httpBearer, sessionAuth, withAuth } = library
  const { app, router, sessions } = begin(setting)
  // Safe: the router below knows no principals, and the handler reads them as `unknown`
  const guard = (auth: Authenticator<unknown>) => withAuth(auth) as Guard<unknown> as unknown as RouterMiddleware
  const bearer = httpBearer({ authenticate: hook })
  const keys = keyNames(KEYS).map((paramName) => apiKeyHeader({ paramName, authenticate: hook }))
  let levels: Router = new Router().get('/levels', answer)
  // Safe: as above
  for (let level = 1; level < LEVELS; level++) levels = nested(withAuth(bearer)(levels) as unknown as Router)
  router.get('/bearer', guard(bearer), answer)
  router.get('/late', guard(httpBearer({ authenticate: lateHook })), answer)
  router.get('/basic', guard(httpBasicAuth({ authenticate: pairHook })), answer)
  // Safe: there are three
  router.get('/list', withAuth(keys as [Authenticator<User>]) as unknown as RouterMiddleware, answer)
  // Safe: it reads the context of Koa alone
  router.get('/session', sessions as RouterMiddleware, guard(sessionAuth()), answer)
  router.use((withAuth(bearer)(levels) as unknown as Router).routes())
  if (setting.limit !== undefined) app.use(authSettings({ timeout: setting.limit }))
  return app.use(router.routes()).callback()
}

/** Made by name. */
export const twoApps = { 'by hand': byHand, ours: (setting: Setting) => guardedBy(built, setting) } as const
