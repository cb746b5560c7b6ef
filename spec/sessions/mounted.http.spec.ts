/** R01: an application with sessions that is mounted inside another one never uses the session of the other. */
import Router from '@koa/router'
import Koa, { type Context, type Middleware, type Next } from 'koa'
import compose from 'koa-compose'
import mount from 'koa-mount'
import { sessionAuth, sessionAuthSuperUser, withAuth } from 'koa-with-auth'
import { sessions, type Signing } from 'koa-with-auth/sessions'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { listen } from '../support/servers/server.js'
import { visitorOf } from '../support/sites/sessionsApp.js'

interface User {
  readonly username: string
  readonly isSuperuser?: boolean
}

interface Site {
  readonly app: Koa
  readonly signing: Signing<User>
  /** How often a user was loaded, and a guarded handler ran. */
  readonly counts: { loaded: number; ran: number }
}

// Each has its own users, keys, store and cookie
const site = (name: string, users: Map<string, User>): Site => {
  const app = new Koa({ keys: [name.repeat(40)] })
  const counts = { loaded: 0, ran: 0 }
  const loadUser = (id: string) => {
    counts.loaded++
    return users.get(id)
  }
  const signing = sessions(app, { loadUser, store: memoryStore(), cookieName: name })
  const router = new Router()
  router.post('/register/:name', withAuth(null), async (ctx) => {
    const user = { username: String(ctx.params['name']) }
    users.set(user.username, user)
    await signing.logIn(ctx, user)
    ctx.status = 204
  })
  router.post('/out/:name', withAuth(null), async (ctx) => {
    await signing.logOutEverywhere(String(ctx.params['name']))
    ctx.status = 204
  })
  for (const [path, guard] of [
    ['/me', withAuth(sessionAuth())],
    ['/root', withAuth(sessionAuthSuperUser())],
  ] as const) {
    router.get(path, guard, (ctx) => {
      counts.ran++
      ctx.body = ctx.request.auth.username
    })
  }
  app.use(router.routes())
  return { app, signing, counts }
}

const admins = () => new Map([['root', { username: 'root', isSuperuser: true }]])

const within: Readonly<Record<string, (inner: Koa) => Middleware>> = {
  'koa-mount': (inner) => mount('/admin', inner),
  'a composition of its middleware': (inner) => {
    const run = compose(inner.middleware) as Middleware
    return async (ctx: Context, next: Next) => {
      if (!ctx.path.startsWith('/admin')) return next()
      ctx.path = ctx.path.slice('/admin'.length)
      return run(ctx, next)
    }
  },
}

describe.each(Object.entries(within))('R01 mounted by %s', (_how, into) => {
  const start = async () => {
    const [shop, admin] = [site('shop', new Map()), site('admin', admins())]
    shop.app.silent = true
    shop.app.use(into(admin.app))
    const served = await listen(shop.app)
    return { shop, admin, served, one: visitorOf(served.port) }
  }

  it('a customer with the name root is not an administrator: 500, and the inner loadUser is not called', async () => {
    const { admin, served, one } = await start()
    expect((await one.post('/register/root')).status).toBe(204)
    for (const path of ['/admin/root', '/admin/me']) {
      const answer = await one.ask(path)
      expect([answer.status, answer.body, answer.headers['set-cookie']]).toEqual([
        500,
        'Internal Server Error',
        undefined,
      ])
    }
    expect(admin.counts).toEqual({ loaded: 0, ran: 0 })
    for (const error of served.errors)
      expect(String(error)).toMatch(/koa-mount.*Mount routers instead.*app\.callback\(\)/)
  })

  it('an administrator is not signed in to the shop, and logOutEverywhere inside is an error that says so', async () => {
    const { shop, one } = await start()
    expect((await one.post('/admin/register/anna')).status).toBe(500)
    expect((await one.ask('/me')).status).toBe(401)
    await one.post('/register/root')
    expect((await one.post('/admin/out/root')).status).toBe(500)
    // The outer application still works
    expect((await one.ask('/me')).body).toBe('root')
    expect(shop.counts.ran).toBe(1)
    expect((await one.post('/out/root')).status).toBe(204)
    expect((await one.ask('/me')).status).toBe(401)
  })
})

it('R01 two applications side by side have their own sessions', async () => {
  const [shop, admin] = [site('shop', new Map()), site('admin', admins())]
  const inner = admin.app.callback()
  shop.app.middleware.unshift(async (ctx: Context, next: Next) => {
    if (!ctx.path.startsWith('/admin')) return next()
    ctx.respond = false
    ctx.req.url = ctx.url.slice('/admin'.length)
    return inner(ctx.req, ctx.res)
  })
  const served = await listen(shop.app)
  const one = visitorOf(served.port)
  await one.post('/register/root')
  expect((await one.ask('/admin/me')).status).toBe(401)
  expect((await one.ask('/me')).body).toBe('root')
})
