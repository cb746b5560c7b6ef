/**
 * The contestants on Koa. All of them answer the same operation with the principal: `/x`, unless they say otherwise.
 */
import type { RequestListener } from 'node:http'
import Router, { type RouterMiddleware } from '@koa/router'
import jwt from 'jsonwebtoken'
import Koa, { type Context } from 'koa'
import koaJwt from 'koa-jwt'
import passport from 'koa-passport'
import { Strategy } from 'passport-http-bearer'
import { apiKeyHeader, httpBearer, withAuth, type Authenticator } from '../../../dist/index.js'
import { anna, answer, bearerPasses, guard, hook, keyNames, type User } from './byHand.js'

/** The application of a router, as Node calls it. */
export const listenerOf = (...routers: ReadonlyArray<Router>): RequestListener => {
  const app = new Koa()
  app.silent = true
  for (const router of routers) app.use(router.routes())
  return app.callback()
}

const slowHook = (_request: unknown, secret: string) => Promise.resolve(hook(_request, secret))

/** One operation of these functions at `/x`. */
export const operation = (...functions: ReadonlyArray<RouterMiddleware>) =>
  listenerOf(new Router().get('/x', ...(functions as [RouterMiddleware])))
const handler =
  (check: (ctx: Context) => unknown): RouterMiddleware =>
  (ctx, next) => {
    const allowed = check(ctx)
    if (allowed instanceof Promise) return allowed.then((late) => late === true && answer(ctx, next))
    return allowed === true ? answer(ctx, next) : undefined
  }

const bearer = httpBearer({ authenticate: hook })
const keys = (length: number) =>
  keyNames(length).map((paramName) => apiKeyHeader({ paramName, authenticate: hook })) as [Authenticator<User>]

passport.use(new Strategy((token, done) => done(null, hook(undefined, token))))

const secret = 'a signing secret of at least 32 characters'
/** A valid token. */
export const signedToken = jwt.sign({ sub: 'anna' }, secret)
const verified = (_request: unknown, token: string) => jwt.verify(token, secret)

const guarded = (router: Router): Router =>
  // Safe: the handlers here read no principal of the context
  withAuth(bearer)(router) as unknown as Router
const bare = (router: Router): Router => router
const levelsOf = (depth: number, inner: Router, at: (router: Router) => Router): RequestListener => {
  let outer = at(inner)
  for (let level = 1; level < depth; level++) outer = at(new Router().use(outer.routes()) as Router)
  return listenerOf(outer)
}

const answerOfState: RouterMiddleware = (ctx) => {
  ctx.body = Reflect.get(ctx.state, 'user')
}

/** Made by name, so that a figure shows where it comes from. */
export const koaApps = {
  bare: () => operation((ctx, next) => (Object.assign(ctx.request, { auth: anna }), answer(ctx, next))),
  'by hand': () => operation(handler(bearerPasses)),
  'by hand, in middleware': () => operation((ctx, next) => (bearerPasses(ctx) ? next() : undefined), answer),
  ours: () => operation(guard(bearer), answer),
  'ours, list': () => operation(guard(keys(3)), answer),
  'ours, async': () => operation(guard(httpBearer({ authenticate: slowHook })), answer),
  passport: () => operation(passport.authenticate('bearer', { session: false }) as RouterMiddleware, answerOfState),
  'koa-jwt': () => operation(koaJwt({ secret }) as unknown as RouterMiddleware, answerOfState),
  'ours, JWT': () => operation(guard(httpBearer({ authenticate: verified })), answer),
} satisfies Readonly<Record<string, () => RequestListener>>

const filled = (router: Router, routes: number): Router => {
  for (let at = 1; at <= routes; at++) router.get(`/r${at}`, (ctx) => void (ctx.body = anna))
  return router
}

/** Many routes under levels, and the same without a guard. */
export const registered = (routes: number, isGuarded: boolean, levels = 3): RequestListener =>
  levelsOf(levels, filled(new Router(), routes), isGuarded ? guarded : bare)
