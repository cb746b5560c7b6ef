'use strict'
// The same application with a mistake: the router is not guarded. Its tests find this.
const Koa = require('koa')
const Router = require('@koa/router')
const jsonwebtoken = require('jsonwebtoken')
const { constantTimeEqual, httpBearer, withAuth } = require('koa-with-auth')

const secret = 'a secret of at least thirty-two bytes'
const passwords = new Map([
  ['anna', 'anna-secret'],
  ['sam', 'sam-secret'],
])

const user = httpBearer({
  bearerFormat: 'JWT',
  authenticate: (_request, token) => {
    try {
      return jsonwebtoken.verify(token, secret, { algorithms: ['HS256'] })
    } catch {
      return false
    }
  },
})

const makeApp = () => {
  const app = new Koa()
  const tasks = new Map([['anna', ['water the plants']]])

  const router = new Router()
  router.get('/health', withAuth(null), (ctx) => {
    ctx.body = { ok: true }
  })
  router.post('/login', withAuth(null), async (ctx) => {
    const { username, password } = await bodyOf(ctx)
    const expected = passwords.get(username)
    if (expected === undefined || !constantTimeEqual(expected, String(password))) ctx.throw(401, 'Unauthorized')
    ctx.body = { token: jsonwebtoken.sign({ name: username }, secret, { subject: username, expiresIn: '1h' }) }
  })
  router.get('/tasks', (ctx) => {
    ctx.body = tasks.get(ctx.request.auth?.name) ?? []
  })
  router.post('/tasks', async (ctx) => {
    const { task } = await bodyOf(ctx)
    const { name } = ctx.request.auth ?? {}
    tasks.set(name, [...(tasks.get(name) ?? []), task])
    ctx.status = 201
    ctx.body = tasks.get(name)
  })

  app.use(router.routes()).use(router.allowedMethods())
  return app
}

const bodyOf = async (ctx) => {
  let text = ''
  for await (const chunk of ctx.req) text += chunk
  return JSON.parse(text || '{}')
}

module.exports = { makeApp, secret }
