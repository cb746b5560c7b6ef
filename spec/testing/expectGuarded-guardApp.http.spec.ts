/** `expectGuarded` of an application with guards of its own (`guardApp`). */
import Router from '@koa/router'
import Koa from 'koa'
import { apiKeyCookie, guardApp, httpBearer, optional, withAuth, type Authenticator } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { expectGuarded } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const cookie = apiKeyCookie({ authenticate: (_request, key) => key === 'good' && { user: 'anna' } })

const mounted = (outer: Authenticator<unknown>, inner: Authenticator<unknown> | null | undefined) => {
  const calls = { handler: 0 }
  const handle = (ctx: Koa.Context) => {
    calls.handler++
    ctx.body = 'done'
  }
  const router = new Router()
  if (inner === undefined) router.get('/x', handle)
  else router.get('/x', (inner === null ? withAuth(null) : withAuth(inner)) as never, handle)
  const app: Koa = guardApp(outer)(new Koa()) as never
  app.silent = true
  return { app: app.use(router.routes()), router, calls }
}

describe('expectGuarded below guardApp', () => {
  it.each<[string, Authenticator<unknown> | null | undefined]>([
    ['without a guard of its own', undefined],
    ['that everyone may call', null],
    ['with the same guard', bearer],
    ['with another guard', cookie],
  ])('passes an operation %s', async (_what, inner) => {
    const { app, router, calls } = mounted(bearer, inner)
    expect(await expectGuarded(app, router)).toMatchObject([{ operation: 'GET /x', protection: 'guarded' }])
    expect(await expectGuarded(seal(app), router)).toHaveLength(1)
    expect(calls.handler).toBe(0)
  })

  it('refuses an operation that a careless guardApp opens', async () => {
    const careless = httpBearer({ authenticate: (_request, token) => token.length > 3 && { token } })
    const { app, router, calls } = mounted(careless, null)
    await expect(expectGuarded(app, router)).rejects.toThrow('GET /x: a handler ran without authentication')
    expect(calls.handler).toBe(0)
  })

  it('refuses an operation for everyone below an optional one, unless it is listed', async () => {
    const { app, router } = mounted(optional(bearer), null)
    await expect(expectGuarded(app, router)).rejects.toThrow('GET /x: public, but not listed')
    expect(await expectGuarded(app, router, { public: ['GET /x'] })).toMatchObject([{ protection: 'optional' }])
  })

  it('refuses a list that calls it public', async () => {
    const { app, router } = mounted(bearer, null)
    await expect(expectGuarded(app, router, { public: ['GET /x'] })).rejects.toThrow('listed as public, but it is not')
  })

  it('does not count a guard that comes after the router', async () => {
    const router = new Router().get('/x', withAuth(null), () => {})
    const routes = router.routes()
    const app: Koa = guardApp(bearer, { middleware: [routes] })(new Koa().use(routes)) as never
    await expect(expectGuarded(app, router)).rejects.toThrow('GET /x: public, but not listed')
  })
})
