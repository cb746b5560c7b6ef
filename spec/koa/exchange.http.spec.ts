/** What is known of one request is in one record, on its context and its response. */
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { apiApp, authSettings, httpBearer, sessionAuth, withAuth } from 'koa-with-auth'
import { on } from 'koa-with-auth/events'
import { sessions } from 'koa-with-auth/sessions'
import { describe, expect, test } from 'vitest'
import { listen } from '../support/servers/server.js'

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
    const stop = on('decision', () => {})
    app.use(async (ctx: Context, next) => {
      await next()
      seen.push([...marksOn(ctx, ctx.req, ctx.res)])
    })
    app.use(authSettings({ realm: 'pets' }))
    const { logIn } = sessions(app, { name: 'exchange', loadUser: (id) => ({ username: id }) })
    const api = apiApp({
      auth: [bearer, sessionAuth()],
      docs: false,
      then: [(_ctx, next) => next()],
    })
    class Broken extends Error {}
    api.onError(Broken, () => ({ status: 409, body: {} }))
    api.get('/me', (ctx) => {
      ctx.body = ctx.request.auth
    })
    api.get('/broken', () => {
      throw new Broken()
    })
    api.post('/in', withAuth(null), async (ctx) => {
      await logIn(ctx, { username: 'anna' })
      ctx.body = 'in'
    })
    app.use(new Router().use(api.routes()).routes())
    const served = await listen(app)
    try {
      const ask = async (path: string, init: RequestInit = {}) =>
        (await fetch(`http://127.0.0.1:${served.port}${path}`, init)).status
      const headers = { authorization: 'Bearer good' }
      expect(await ask('/me')).toBe(401)
      expect(await ask('/me', { headers })).toBe(200)
      expect(await ask('/broken', { headers })).toBe(409)
      expect(await ask('/in', { method: 'POST' })).toBe(200)
      expect(new Set(seen.flat())).toEqual(new Set(['koa-with-auth/exchange']))
      // once on the context, once on the response
      expect(seen.map(({ length }) => length)).toEqual([2, 2, 2, 2])
    } finally {
      stop()
      await served.close()
    }
  })
})
