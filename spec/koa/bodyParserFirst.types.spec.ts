/** The most usual line of a Koa application compiles: a body parser, then a guard, on a plain router. */
import { bodyParser } from '@koa/bodyparser'
import Router from '@koa/router'
import { httpBearer, withAuth } from 'koa-with-auth'
import { expect, it } from 'vitest'

const a = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: token } })

it('the handler after both sees the principal', () => {
  const router = new Router()
  router.post('/', bodyParser(), withAuth(a), (ctx) => {
    ctx.body = ctx.request.auth.user satisfies string
  })
  router.all('/list', bodyParser(), withAuth([a]), (ctx) => {
    ctx.body = ctx.request.auth.user satisfies string
  })
  router.delete('/public', bodyParser(), withAuth(null), (ctx) => {
    ctx.body = ctx.request.auth satisfies undefined
  })
  expect(router.stack).toHaveLength(3)
})
