/**
 * The session of a signed-in user: what users of this library run, beside koa-session with the same work by hand, and beside what others
 * run, each on its own framework. `/in` signs in, `/out` signs out, `/me` answers with the user, and `/open` answers everybody.
 */
import type { RequestListener } from 'node:http'
import fastifyCookie from '@fastify/cookie'
import fastifySecureSession from '@fastify/secure-session'
import fastifySession from '@fastify/session'
import Router, { type RouterMiddleware } from '@koa/router'
import type { Client } from '@libsql/client'
import express from 'express'
import expressSession from 'express-session'
import fastify, { type FastifyInstance } from 'fastify'
import { H3, toNodeHandler, useSession, type H3Event } from 'h3'
import Koa, { type Context, type Middleware } from 'koa'
import passport from 'koa-passport'
import session from 'koa-session'
import type { Pool } from 'pg'
import { withAuth } from '../../../dist/index.js'
import { sessions } from '../../../dist/sessions.js'
import { memoryStore, type Store } from '../../../dist/stores.js'
import { accept, answer, deny, guard } from './byHand.js'
import { listenerOfFastify } from './contestants.js'
import { answerOf, cookiesIn, headersOf, type Headers } from './stub.js'

const DAY = 86_400_000
const keys = ['a signing key of at least 32 characters']

interface User {
  readonly username: string
  readonly isActive: boolean
}
const anna: User = { username: 'anna', isActive: true }
const users = new Map([['anna', anna]])

const open = (ctx: Context): void => {
  ctx.body = anna
}

const listenerOf = (app: Koa, router: Router): RequestListener => {
  app.silent = true
  return app.use(router.get('/open', open).routes()).callback()
}

/** With this library. Default: in memory. */
export const ours = (store: Store = memoryStore()): RequestListener => {
  const app = new Koa({ keys })
  const options = { loadUser: (id: string) => users.get(id), store, name: 'bench' }
  const { logIn, logOut, sessionAuth } = sessions(app, options)
  const router = new Router()
  const changing =
    (change: (ctx: Context) => Promise<void>): RouterMiddleware =>
    async (ctx) => {
      await change(ctx)
      ctx.status = 204
    }
  // Safe: the router here knows no principals
  const open = withAuth(null) as unknown as RouterMiddleware
  const logsIn = changing((ctx) => logIn(ctx, anna))
  const logsOut = changing((ctx) => logOut(ctx))
  router.get('/in', open, logsIn).get('/out', open, logsOut)
  router.get('/me', guard(sessionAuth()), answer)
  return listenerOf(app, router)
}

/** koa-session's interface of a store. */
export interface KoaStore {
  readonly get: (id: string) => Promise<unknown>
  readonly set: (id: string, data: unknown, maxAge: number) => Promise<void>
  readonly destroy: (id: string) => Promise<void>
}

/** In memory, as JSON, with an end. */
export const inMemory = (): KoaStore => {
  const kept = new Map<string, { readonly text: string; readonly until: number }>()
  return {
    get: async (id) => {
      const found = kept.get(id)
      return found !== undefined && found.until > Date.now() ? JSON.parse(found.text) : undefined
    },
    set: async (id, data, maxAge) => void kept.set(id, { text: JSON.stringify(data), until: Date.now() + maxAge }),
    destroy: async (id) => void kept.delete(id),
  }
}

/** In an SQLite file, by the client whose engine this library uses. */
export const inSqlite = async (client: Client): Promise<KoaStore> => {
  await client.executeMultiple('create table by_hand (id text primary key, text text, until integer) without rowid')
  const run = async (sql: string, ...args: (string | number)[]) => (await client.execute({ sql, args })).rows[0]
  return {
    get: async (id) => {
      const row = await run('select text from by_hand where id = ? and until > ?', id, Date.now())
      return row === undefined ? undefined : JSON.parse(String(row['text']))
    },
    set: async (id, data, maxAge) => {
      await run('insert or replace into by_hand values (?, ?, ?)', id, JSON.stringify(data), Date.now() + maxAge)
    },
    destroy: async (id) => void (await run('delete from by_hand where id = ?', id)),
  }
}

/** In Redis. */
export const inRedis = (command: (args: string[]) => Promise<unknown>): KoaStore => ({
  get: async (id) => {
    const text = await command(['GET', `by-hand:${id}`])
    return typeof text === 'string' ? JSON.parse(text) : undefined
  },
  set: async (id, data, maxAge) =>
    void (await command(['SET', `by-hand:${id}`, JSON.stringify(data), 'PX', String(maxAge)])),
  destroy: async (id) => void (await command(['DEL', `by-hand:${id}`])),
})

/** In PostgreSQL, by the statements of connect-pg-simple. */
export const inPostgres = async (pool: Pool): Promise<KoaStore> => {
  await pool.query(
    'create table if not exists by_hand (sid varchar primary key, sess json not null, expire timestamp(6) not null)',
  )
  const run = async (sql: string, ...values: unknown[]) => (await pool.query<{ sess: unknown }>(sql, values)).rows[0]
  return {
    get: async (id) =>
      (await run('SELECT sess FROM by_hand WHERE sid = $1 AND expire >= to_timestamp($2)', id, Date.now() / 1000))
        ?.sess,
    set: async (id, data, maxAge) =>
      void (await run(
        'INSERT INTO by_hand (sess, expire, sid) SELECT $1, to_timestamp($2), $3 ON CONFLICT (sid) DO UPDATE SET sess=$1, expire=to_timestamp($2)',
        JSON.stringify(data),
        (Date.now() + maxAge) / 1000,
        id,
      )),
    destroy: async (id) => void (await run('DELETE FROM by_hand WHERE sid = $1', id)),
  }
}

const checkByHand: RouterMiddleware = (ctx, next) => {
  const id: unknown = ctx['session']?.user
  const user = typeof id === 'string' ? users.get(id) : undefined
  if (user === undefined || !user.isActive) return deny(ctx, 'Session realm="api"', 'Cookie')
  accept(ctx, user, 'Cookie')
  return next()
}

const koaWith = (store: KoaStore, ...above: ReadonlyArray<Middleware>) => {
  const app = new Koa({ keys })
  app.use(session({ sameSite: 'lax', maxAge: DAY, store } as never, app))
  for (const one of above) app.use(one)
  return app
}

/** koa-session, a look-up of the user, and a check. */
export const byHand = (store = inMemory()): RequestListener => {
  const router = new Router()
  const changing =
    (data: unknown): RouterMiddleware =>
    (ctx) => {
      ctx['session'] = data
      ctx.status = 204
    }
  router.get('/in', changing({ user: 'anna' })).get('/out', changing(null))
  return listenerOf(koaWith(store), router.get('/me', checkByHand, answer))
}

passport.serializeUser((user, done) => done(null, (user as User).username))
passport.deserializeUser((id: string, done) => done(null, users.get(id) ?? false))

/** koa-passport with koa-session. */
const withPassport = (): RequestListener => {
  // Safe: koa-passport adds these to the context, and is older than Koa's types
  const given = (ctx: object) => ctx as { login: (user: User) => Promise<void>; isAuthenticated: () => boolean }
  const app = koaWith(inMemory(), passport.initialize() as never, passport.session() as never)
  const router = new Router()
  router.get('/in', async (ctx) => {
    await given(ctx).login(anna)
    ctx.status = 204
  })
  router.get('/me', (ctx, next) => {
    if (!given(ctx).isAuthenticated()) return deny(ctx, 'Session realm="api"', 'Cookie')
    accept(ctx, ctx.state['user'], 'Cookie')
    return answer(ctx, next)
  })
  return listenerOf(app, router)
}

/** express-session, which keeps sessions in memory as JSON. */
const withExpress = (): RequestListener => {
  const app = express()
  app.use(expressSession({ secret: keys, resave: false, saveUninitialized: false, cookie: { maxAge: DAY } }))
  app.get('/in', (request, response) => {
    Object.assign(request.session, { user: 'anna' })
    response.sendStatus(204)
  })
  app.get('/me', (request, response) => {
    const user = users.get(String(Reflect.get(request.session, 'user')))
    if (user === undefined || !user.isActive) response.status(401)
    else response.set('Cache-Control', 'private, no-store').vary('Cookie').json(user)
  })
  // Safe: an application of Express is a listener
  return app as unknown as RequestListener
}

// Safe: each plugin puts the session there
const sessionOn = (request: object) => Reflect.get(request, 'session') as Record<string, unknown>

const withFastify = async (add: (app: FastifyInstance) => unknown): Promise<RequestListener> => {
  const app = fastify()
  await app.register(fastifyCookie)
  await add(app)
  app.get('/in', (request, reply) => {
    sessionOn(request)['user'] = 'anna'
    return reply.code(204).send()
  })
  app.get('/me', (request, reply) => {
    const user = users.get(String(sessionOn(request)['user']))
    if (user === undefined || !user.isActive) return reply.code(401).send()
    return reply.header('Cache-Control', 'private, no-store').header('Vary', 'Cookie').send(user)
  })
  await app.ready()
  return listenerOfFastify(app)
}

/** @fastify/session, which keeps sessions in memory as objects. */
const withFastifySession = () =>
  withFastify((app) =>
    app.register(fastifySession, { secret: keys, saveUninitialized: false, cookie: { maxAge: DAY, secure: false } }),
  )

/** @fastify/secure-session, which keeps sessions in the cookie, encrypted by libsodium. */
const withSecureSession = () =>
  withFastify((app) => app.register(fastifySecureSession, { key: Buffer.alloc(32, 7), cookie: { path: '/' } }))

/** The sessions of h3, which are in the cookie, encrypted by a key that is derived from a password each time. */
const withH3 = async (): Promise<RequestListener> => {
  const sessionOf = (event: H3Event) => useSession<{ user?: string }>(event, { password: keys[0] ?? '' })
  const app = new H3()
  app.get('/in', async (event) => {
    await (await sessionOf(event)).update({ user: 'anna' })
    return ''
  })
  app.get('/me', async (event) => {
    const user = users.get((await sessionOf(event)).data.user ?? '')
    event.res.headers.set('Cache-Control', 'private, no-store')
    event.res.headers.set('Vary', 'Cookie')
    if (user === undefined || !user.isActive) event.res.status = 401
    return user ?? ''
  })
  return toNodeHandler(app) as RequestListener
}

/** Made by name, all in memory. */
export const sessionApps = {
  'by hand': async () => byHand(),
  ours: async () => ours(),
  'koa-passport': async () => withPassport(),
  'express-session': async () => withExpress(),
  '@fastify/session': withFastifySession,
  '@fastify/secure-session': withSecureSession,
  h3: withH3,
} satisfies Readonly<Record<string, () => Promise<RequestListener>>>

// Fastify and h3 hand all headers to `writeHead`, which does not keep them
const keepingHead =
  (listener: RequestListener): RequestListener =>
  (request, response) => {
    const writeHead = response.writeHead.bind(response) as (status: number) => typeof response
    Reflect.set(response, 'writeHead', (status: number, ...rest: ReadonlyArray<unknown>) => {
      const given = rest.at(-1) ?? {}
      const pairs = Array.isArray(given) ? given.flat() : Object.entries(given).flat()
      for (let at = 0; at < pairs.length; at += 2) response.setHeader(pairs[at], pairs[at + 1])
      return writeHead(status)
    })
    listener(request, response)
  }

/** The header lines of a visitor who has signed in, and perhaps out again elsewhere. */
export const visitorOf = async (listener: RequestListener, isOver = false): Promise<Headers> => {
  const { headers } = await answerOf(keepingHead(listener), '/in', headersOf({}))
  const Cookie = cookiesIn(headers['set-cookie'])
  if (Cookie === '') throw new Error('no user was signed in')
  const visitor = headersOf({ Cookie })
  if (isOver) await answerOf(listener, '/out', visitor)
  return visitor
}
