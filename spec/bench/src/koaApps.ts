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
import { apiKeyHeader, constantTimeEqual, httpBearer, withAuth, type Authenticator } from '../../../dist/index.js'
import { accept, deny, once, tokenOf } from './byHand.js'

interface User {
  readonly user: string
}

/** The application of a router, as Node calls it. */
export const listenerOf = (...routers: ReadonlyArray<Router>): RequestListener => {
  const app = new Koa()
  app.silent = true
  for (const router of routers) app.use(router.routes())
  return app.callback()
}

const anna: User = { user: 'anna' }
const hook = (_request: unknown, secret: string) => constantTimeEqual(secret, 'supersecret') && anna
const slowHook = (_request: unknown, secret: string) => Promise.resolve(hook(_request, secret))

const answer: RouterMiddleware = (ctx) => {
  ctx.body = Reflect.get(ctx.request, 'auth')
}
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

const realm = 'realm="api"'
const invalid = `Bearer ${realm}, error="invalid_token"`

const concluded = (ctx: Context, token: string | undefined, user: User | false): boolean => {
  if (user === false) {
    deny(ctx, token === undefined ? `Bearer ${realm}` : invalid, 'Authorization')
    return false
  }
  accept(ctx, user, 'Authorization')
  return true
}

const byHand = (ctx: Context) => {
  const token = tokenOf(ctx)
  return concluded(ctx, token, token !== undefined && hook(ctx.request, token))
}
/** Names of header keys, for lists of any length. */
export const keyNames = (length: number): ReadonlyArray<string> => Array.from({ length }, (_, at) => `X-Key-${at + 1}`)

const byHandKeys = (length: number) => {
  const names = keyNames(length)
  const fields = names.map((name) => name.toLowerCase())
  const vary = names.join(', ')
  return (ctx: Context) => {
    for (const field of fields) {
      const key = once(ctx, field)
      const user = key !== undefined && key !== '' && hook(ctx.request, key)
      if (user !== false) {
        accept(ctx, user, vary)
        return true
      }
    }
    deny(
      ctx,
      names.map((name) => `ApiKey ${realm}, in="header", name="${name}"`),
      vary,
    )
    return false
  }
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
  if (E.isLeft(result)) deny(ctx, invalid, vary)
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

const levelled = (depth: number) => {
  const router = new Router()
  router.get('/x', answer)
  let outer = withAuth(bearer)(router)
  for (let level = 1; level < depth; level++) outer = withAuth(bearer)(new Router().use(outer.routes()) as Router)
  return listenerOf(outer as unknown as Router)
}
const nested = (depth: number) => {
  let outer = new Router().get('/x', handler(byHand))
  for (let level = 1; level < depth; level++) outer = new Router().use(outer.routes()) as Router
  return listenerOf(outer)
}

/** Made by name, so that a figure shows where it comes from. */
export const koaApps = {
  bare: () => operation((ctx, next) => (Object.assign(ctx.request, { auth: anna }), answer(ctx, next))),
  'by hand': () => operation(handler(byHand)),
  'by hand, in middleware': () => operation((ctx, next) => (byHand(ctx) ? next() : undefined), answer),
  ours: () => operation(withAuth(bearer) as unknown as RouterMiddleware, answer),
  'ours, async': () =>
    operation(withAuth(httpBearer({ authenticate: slowHook })) as unknown as RouterMiddleware, answer),
  naive: () => operation(handler(naively(naive('authorization'), 'Authorization'))),
  passport: () =>
    operation(passport.authenticate('bearer', { session: false }) as RouterMiddleware, (ctx) => {
      ctx.body = Reflect.get(ctx.state, 'user')
    }),
  'koa-jwt': () =>
    operation(koaJwt({ secret }) as unknown as RouterMiddleware, (ctx) => {
      ctx.body = Reflect.get(ctx.state, 'user')
    }),
  'ours, JWT': () => operation(withAuth(httpBearer({ authenticate: verified })) as unknown as RouterMiddleware, answer),
} satisfies Readonly<Record<string, () => RequestListener>>

/** Lists of header keys; the last key passes. */
export const koaLists = {
  'by hand': (length: number) => operation(handler(byHandKeys(length))),
  ours: (length: number) => operation(withAuth(keys(length)) as unknown as RouterMiddleware, answer),
  naive: (length: number) => {
    const all = keyNames(length).map((name) => naive(name.toLowerCase()))
    return operation(
      handler(
        naively(
          all.reduce((some, one) => RTE.alt(() => one)(some)),
          keyNames(length).join(', '),
        ),
      ),
    )
  },
}

/** The same check for nested routers, each with a guard. */
export const koaLevels = { 'by hand': nested, ours: levelled }

/** An application with many routes; `/r<n>` is the last. */
export const koaRoutes = {
  bare: (routes: number) => listenerOf(filled(new Router(), routes)),
  'by hand': (routes: number) => listenerOf(filled(new Router(), routes, handler(byHand))),
  ours: (routes: number) => listenerOf(filled(withAuth(bearer)(new Router()) as unknown as Router, routes)),
}

const filled = (router: Router, routes: number, last?: RouterMiddleware): Router => {
  for (let at = 1; at <= routes; at++) router.get(`/r${at}`, last ?? ((ctx) => void (ctx.body = anna)))
  return router
}

/** Many routes under levels, and the same without a guard. */
export const registered = (routes: number, guarded: boolean, levels = 3): RequestListener => {
  const at = (router: Router): Router => (guarded ? (withAuth(bearer)(router) as unknown as Router) : router)
  let outer = at(filled(new Router(), routes))
  for (let level = 1; level < levels; level++) outer = at(new Router().use(outer.routes()) as Router)
  return listenerOf(outer)
}
