/**
 * Two applications with the same answers: one with checks by hand, written as middleware, one with this library. Each has all kinds of
 * authenticators, as in real applications, so that the code which the kinds share is compiled for all of them.
 */
import type { RequestListener } from 'node:http'
import Router, { type RouterMiddleware } from '@koa/router'
import Koa, { type Context, type Middleware, type Next, type Request } from 'koa'
import Keygrip from 'keygrip'
import session from 'koa-session'
import * as built from '../../../dist/index.js'
import type { Authenticator, Guard } from '../../../dist/index.js'
import { accept, basicOf, deny, giveUp, once, tokenOf } from './byHand.js'

interface User {
  readonly user: string
}

/** How the applications are set up; both take the same. */
export interface Setting {
  /** Milliseconds that a hook may take. Default: ten seconds, like koa-with-auth. */
  readonly limit?: number
  /** Runs before all routes. */
  readonly before?: Middleware
}

/** Nested routers, each of which guards. */
const LEVELS = 8

const { constantTimeEqual } = built
const anna: User = { user: 'anna' }
const hook = (_request: Request, secret: string): User | false => constantTimeEqual(secret, 'supersecret') && anna
const lateHook = async (request: Request, secret: string): Promise<User | false> =>
  secret === 'hangs' ? new Promise(() => {}) : hook(request, secret)
const pairHook = (_request: Request, name: string, password: string): User | false =>
  constantTimeEqual(`${name}:${password}`, 'anna:supersecret') && anna

const sessionKeys = ['a signing key of at least 32 characters']
/** The cookie of a signed-in user. */
export const cookieOf = (id: string): string =>
  `koa.sess=${id}; koa.sess.sig=${new Keygrip(sessionKeys).sign(`koa.sess=${id}`)}`

const answer = (ctx: Context): void => {
  ctx.body = Reflect.get(ctx.request, 'auth')
}

interface Begun {
  readonly app: Koa
  readonly router: Router
  /** koa-session, for the routes that read the session. */
  readonly sessions: Middleware
}

const begin = ({ before }: Setting): Begun => {
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

// -------------------------------------------------------------------------------------
// By hand
// -------------------------------------------------------------------------------------

const realm = 'realm="api"'
const keyNames = ['X-Key-1', 'X-Key-2', 'X-Key-3']

// RFC 6750 §3.1: no error code for a request without a token
const deniedBearer = (ctx: Context, token: string | undefined): void => {
  const isSent = token !== undefined || /^Bearer(?: |$)/i.test(ctx.req.headers.authorization ?? '')
  deny(ctx, isSent ? `Bearer ${realm}, error="invalid_token"` : `Bearer ${realm}`, 'Authorization')
}

const bearerByHand = (ctx: Context, next: Next): unknown => {
  const token = tokenOf(ctx)
  const user = token !== undefined && hook(ctx.request, token)
  if (user === false) return deniedBearer(ctx, token)
  accept(ctx, user, 'Authorization')
  return next()
}

const tooLate = Symbol('too late')
const within = <A>(promise: Promise<A>, ms: number): Promise<A | typeof tooLate> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms, tooLate)
    promise.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })

const lateByHand =
  (limit: number) =>
  async (ctx: Context, next: Next): Promise<unknown> => {
    const token = tokenOf(ctx)
    const user = token !== undefined && (await within(lateHook(ctx.request, token), limit))
    if (user === tooLate) return giveUp(ctx, 'Authorization')
    if (user === false) return deniedBearer(ctx, token)
    accept(ctx, user, 'Authorization')
    return next()
  }

const basicByHand = (ctx: Context, next: Next): unknown => {
  const sent = basicOf(ctx)
  const user = sent !== undefined && pairHook(ctx.request, sent[0], sent[1])
  if (user === false) return deny(ctx, `Basic ${realm}, charset="UTF-8"`, 'Authorization')
  accept(ctx, user, 'Authorization')
  return next()
}

const listByHand = (): ((ctx: Context, next: Next) => unknown) => {
  const fields = keyNames.map((name) => name.toLowerCase())
  const vary = keyNames.join(', ')
  const challenges = keyNames.map((name) => `ApiKey ${realm}, in="header", name="${name}"`)
  return (ctx, next) => {
    for (const field of fields) {
      const key = once(ctx, field)
      const user = key !== undefined && key !== '' && hook(ctx.request, key)
      if (user === false) continue
      accept(ctx, user, vary)
      return next()
    }
    return deny(ctx, challenges, vary)
  }
}

const sessionByHand = (ctx: Context, next: Next): unknown => {
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

// -------------------------------------------------------------------------------------
// By this layer
// -------------------------------------------------------------------------------------

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
  const handler: RouterMiddleware = answer
  const bearer = httpBearer({ authenticate: hook })
  const keys = keyNames.map((paramName) => apiKeyHeader({ paramName, authenticate: hook }))
  let levels: Router = new Router().get('/levels', handler)
  // Safe: as above
  for (let level = 1; level < LEVELS; level++) levels = nested(withAuth(bearer)(levels) as unknown as Router)
  router.get('/bearer', guard(bearer), handler)
  router.get('/late', guard(httpBearer({ authenticate: lateHook })), handler)
  router.get('/basic', guard(httpBasicAuth({ authenticate: pairHook })), handler)
  // Safe: there are three
  router.get('/list', withAuth(keys as [Authenticator<User>]) as unknown as RouterMiddleware, handler)
  // Safe: it reads the context of Koa alone
  router.get('/session', sessions as RouterMiddleware, guard(sessionAuth()), handler)
  router.use((withAuth(bearer)(levels) as unknown as Router).routes())
  if (setting.limit !== undefined) app.use(authSettings({ timeout: setting.limit }))
  return app.use(router.routes()).callback()
}

/** Made by name. */
export const twoApps = { 'by hand': byHand, ours: (setting: Setting) => guardedBy(built, setting) } as const
