'use strict'
// A task list, as many teams have one: koa 2, @koa/router 12, CommonJS, koa-jwt
const Koa = require('koa')
const Router = require('@koa/router')
const jwt = require('koa-jwt')
const jsonwebtoken = require('jsonwebtoken')

const secret = 'a secret of at least thirty-two bytes'
const passwords = { anna: 'anna-secret', sam: 'sam-secret' }

const makeApp = () => {
  const app = new Koa()
  const tasks = new Map([['anna', ['water the plants']]])

  app.use(jwt({ secret }).unless({ path: [/^\/login$/, /^\/health$/] }))

  const router = new Router()
  router.get('/health', (ctx) => {
    ctx.body = { ok: true }
  })
  router.post('/login', async (ctx) => {
    const { username, password } = await bodyOf(ctx)
    if (passwords[username] === undefined || passwords[username] !== password) ctx.throw(401, 'Unauthorized')
    ctx.body = { token: jsonwebtoken.sign({ name: username }, secret, { subject: username, expiresIn: '1h' }) }
  })
  router.get('/tasks', (ctx) => {
    ctx.body = tasks.get(ctx.state.user.name) ?? []
  })
  router.post('/tasks', async (ctx) => {
    const { task } = await bodyOf(ctx)
    const { name } = ctx.state.user
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
