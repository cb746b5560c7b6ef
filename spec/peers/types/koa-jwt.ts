import Router from '@koa/router'
import jwt from 'koa-jwt'

new Router().get('/me', jwt({ secret: 'supersecret' }), (ctx) => {
  const one: Shown = ctx.state.user
  ctx.body = one
})
