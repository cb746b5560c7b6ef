// The same application, compiled by ts-jest: the types work in CommonJS, too
import { expect, test } from '@jest/globals'
import { AuthError, httpBearer, withAuth } from 'koa-with-auth'
import Router = require('@koa/router')

test('the principal has its type', () => {
  const user = httpBearer({ authenticate: (_request, token) => token === 'good' && { name: 'anna' } })
  const router = withAuth(user)(new Router())
  router.get('/me', (ctx) => {
    const name: string = ctx.request.auth.name
    // @ts-expect-error the principal has no such field
    ctx.body = name + ctx.request.auth.password
  })
  expect(router.stack).toHaveLength(1)
  expect(AuthError.absent._tag).toBe('absent')
})
