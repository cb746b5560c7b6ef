import Router from '@koa/router'
import { httpBearer, withAuth } from 'koa-with-auth'

const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { name: 'anna' } })
withAuth(user)(new Router()).get('/me', (ctx) => {
  const one: Shown = ctx.request.auth
  ctx.body = one
})
