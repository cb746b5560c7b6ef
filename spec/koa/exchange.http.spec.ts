/** What is known of one request is in one record, on its context and its response. */
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { apiApp, authSettings, httpBasicAuth, httpBearer, sessionAuth, throttled, withAuth } from 'koa-with-auth'
import { on } from 'koa-with-auth/events'
import { sessions } from 'koa-with-auth/sessions'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pollute } from '../support/runs/pollute.js'
import { listen } from '../support/servers/server.js'
import { sendLines } from '../support/sites/guardedApp.js'

const marksOn = (...carriers: ReadonlyArray<object>): ReadonlyArray<string> =>
  carriers
    .flatMap((carrier) => Object.getOwnPropertySymbols(carrier))
    .map(({ description = '' }) => description)
    .filter((description) => description.startsWith('koa-with-auth') || description.includes('visit'))

describe('the record of a request', () => {
  test('is the only symbol of this package on ctx, req and res, whatever the request passes', async () => {
    const seen: string[][] = []
    const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
    const app = new Koa({ keys: ['a signing key of at least 32 characters'] })
    app.silent = true
    onTestFinished(on('decision', () => {}))
    app.use(async (ctx: Context, next) => {
      await next()
      seen.push([...marksOn(ctx, ctx.req, ctx.res)])
    })
    app.use(authSettings({ realm: 'pets' }))
    const { logIn } = sessions(app, { name: 'exchange', loadUser: (id) => ({ username: id }) })
    const api = apiApp({ auth: [bearer, sessionAuth()], docs: false, then: [(_ctx, next) => next()] })
    class Broken extends Error {}
    api.onError(Broken, () => ({ status: 409, body: {} }))
    api.get('/me', (ctx) => void (ctx.body = ctx.request.auth))
    api.get('/broken', () => {
      throw new Broken()
    })
    api.post('/in', withAuth(null), async (ctx) => {
      await logIn(ctx, { username: 'anna' })
      ctx.body = 'in'
    })
    app.use(new Router().use(api.routes()).routes())
    const { url } = await listen(app)
    const headers = { authorization: 'Bearer good' }
    const asked: ReadonlyArray<readonly [string, RequestInit, number]> = [
      ['/me', {}, 401],
      ['/me', { headers }, 200],
      ['/broken', { headers }, 409],
      ['/in', { method: 'POST' }, 200],
    ]
    for (const [path, init, status] of asked) expect((await fetch(url + path, init)).status).toBe(status)
    expect(new Set(seen.flat())).toEqual(new Set(['koa-with-auth/exchange']))
    // once on the context, once on the response
    expect(seen.map(({ length }) => length)).toEqual([2, 2, 2, 2])
  })

  test('has no field that every object inherits: each guess counts, and the response has its own fields', async () => {
    const limiter = new RateLimiterMemory({ points: 1, duration: 60 })
    const guard = throttled({ limiter })(httpBasicAuth({ authenticate: () => false }))
    const app = new Koa()
    app.silent = true
    const { port } = await listen(app.use(new Router().get('/x', withAuth(guard), () => {}).routes()))
    pollute({ isUncounted: true, isRecovered: true, guesses: [], fields: { 'X-Evil': '1' } })
    for (const status of [401, 429]) {
      const answer = await sendLines(port, 'GET /x', ['Authorization: Basic YTpi'])
      expect(answer.status).toBe(status)
      expect(answer.headers.map(([name]) => name)).not.toContain('x-evil')
    }
  })
})
