/** Express, Fastify, node:http and node:http2, guarded by the helpers of the guide: each decision and each refusal is that of Koa. */
import { createServer, type RequestListener } from 'node:http'
import Router from '@koa/router'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { guardRequest } from 'koa-with-auth/upgrades'
import { expect, it } from 'vitest'
import { describeDecisions, describeHostile } from '../support/servers/frameworkCases.js'
import { frameworks, loaded, ofHttp2 } from '../support/servers/otherFrameworks.js'
import { cookiesIn, listening } from '../support/servers/server.js'

// their bytes are those of HTTP/1
frameworks.forEach(describeHostile)
;[...frameworks, ofHttp2].forEach(describeDecisions)

it('an option that is none, and a wrong one, are TypeErrors that name it', () => {
  expect(() => guardRequest(new Koa(), () => true, { methods: 'some' as 'all' })).toThrow(
    "guardRequest(app, a, { methods }) must be 'all' or 'sockets'",
  )
})

const whole = async (app: Koa, user: Parameters<typeof guardRequest>[1]) => {
  const site = express().use('/auth', (await loaded('koaInExpress'))(app))
  site.get('/me', (await loaded('forExpress'))(app, user), (_req, res) => void res.json('in'))
  const other = fastify().decorateRequest('auth', null)
  other.all('/auth/*', { onRequest: (await loaded('koaInFastify'))(app) }, () => undefined)
  other.get('/me', { onRequest: (await loaded('forFastify'))(app, user) }, async () => 'in')
  await other.ready()
  return { Express: site as RequestListener, Fastify: other.routing }
}

it.each(['Express', 'Fastify'] as const)(
  '%s serves the routes of Koa that sign in, and reads their sessions',
  async (name) => {
    const app = new Koa({ keys: ['a key of at least 32 characters, for tests'] })
    const { sessionAuth, logIn } = sessions(app, { loadUser: (username) => ({ username }) })
    const router = new Router({ prefix: '/auth' })
    router.post('/sign-in', withAuth(null), async (ctx) => {
      const [chunk] = (await ctx.req.toArray()) as Buffer[]
      await logIn(ctx, { username: String(chunk) })
      ctx.status = 204
    })
    app.use(router.routes())
    const server = createServer((await whole(app, sessionAuth()))[name])
    const url = `http://127.0.0.1:${await listening(server)}`
    const headers = { 'Content-Type': 'application/json' }
    const made = await fetch(`${url}/auth/sign-in`, { method: 'POST', headers, body: 'anna' })
    const cookie = cookiesIn(made.headers)
    const me = async (more = {}) => (await fetch(`${url}/me`, { headers: more })).status
    expect([made.status, await me({ cookie }), await me()]).toEqual([204, 200, 401])
  },
)
