/**
 * The contestants on Koa. All of them answer the same operation with the principal: `/x`, unless they say otherwise.
 */
import type { RequestListener } from 'node:http'
import Router, { type RouterMiddleware } from '@koa/router'
import { either as E, option as O, readerTaskEither as RTE, taskEither as TE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import jwt from 'jsonwebtoken'
import Koa, { type Context } from 'koa'
import koaJwt from 'koa-jwt'
import passport from 'koa-passport'
import { Strategy } from 'passport-http-bearer'
import { apiKeyHeader, httpBearer, withAuth, type Authenticator } from '../../../dist/index.js'
import {
  accept,
  anna,
  answer,
  bearerPasses,
  deny,
  guard,
  hook,
  keyNames,
  listPasses,
  once,
  type User,
} from './byHand.js'

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

/** Written by a user of fp-ts who does not think about allocations. */
const naive = (name: string): RTE.ReaderTaskEither<Context, string, User> =>
  pipe(
    RTE.ask<Context>(),
    RTE.chainEitherK((ctx) =>
      pipe(
        once(ctx, name),
        O.fromNullable,
        E.fromOption(() => 'absent'),
      ),
    ),
    RTE.chainTaskEitherK((key) =>
      pipe(
        key.replace(/^Bearer +/, ''),
        (secret) => hook(undefined, secret),
        TE.fromPredicate(
          (user): user is User => user !== false,
          () => 'invalid',
        ),
      ),
    ),
  )
const naively = (check: RTE.ReaderTaskEither<Context, string, User>, vary: string) => async (ctx: Context) => {
  const result = await check(ctx)()
  if (E.isLeft(result)) deny(ctx, 'Bearer realm="api", error="invalid_token"', vary)
  else accept(ctx, result.right, vary)
  return E.isRight(result)
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
  'ours, async': () => operation(guard(httpBearer({ authenticate: slowHook })), answer),
  naive: () => operation(handler(naively(naive('authorization'), 'Authorization'))),
  passport: () => operation(passport.authenticate('bearer', { session: false }) as RouterMiddleware, answerOfState),
  'koa-jwt': () => operation(koaJwt({ secret }) as unknown as RouterMiddleware, answerOfState),
  'ours, JWT': () => operation(guard(httpBearer({ authenticate: verified })), answer),
} satisfies Readonly<Record<string, () => RequestListener>>

/** Lists of header keys; the last key passes. */
export const koaLists = {
  'by hand': (length: number) => operation(handler(listPasses(length))),
  ours: (length: number) => operation(guard(keys(length)), answer),
  naive: (length: number) => {
    const all = keyNames(length).map((name) => naive(name.toLowerCase()))
    const either = all.reduce((some, one) => RTE.alt(() => one)(some))
    return operation(handler(naively(either, keyNames(length).join(', '))))
  },
}

/** The same check for nested routers, each with a guard. */
export const koaLevels = {
  'by hand': (depth: number) => levelsOf(depth, new Router().get('/x', handler(bearerPasses)), bare),
  ours: (depth: number) => levelsOf(depth, new Router().get('/x', answer), guarded),
}

/** An application with many routes; `/r<n>` is the last. */
export const koaRoutes = {
  bare: (routes: number) => listenerOf(filled(new Router(), routes)),
  'by hand': (routes: number) => listenerOf(filled(new Router(), routes, handler(bearerPasses))),
  ours: (routes: number) => listenerOf(filled(guarded(new Router()), routes)),
}

const filled = (router: Router, routes: number, last?: RouterMiddleware): Router => {
  for (let at = 1; at <= routes; at++) router.get(`/r${at}`, last ?? ((ctx) => void (ctx.body = anna)))
  return router
}

/** Many routes under levels, and the same without a guard. */
export const registered = (routes: number, isGuarded: boolean, levels = 3): RequestListener =>
  levelsOf(levels, filled(new Router(), routes), isGuarded ? guarded : bare)
