/** Section 1 of the requirements: what the layer does. */
import Router from '@koa/router'
import { httpBearer, withAuth } from 'koa-with-auth'
import { expect, test, vi } from 'vitest'
import {
  bearer,
  bearerOf,
  challenge,
  expectDenied,
  expectPassed,
  operation,
  running,
} from '../support/models/behavior.js'

test('1.1 an operation is a method with a path, and has its own authenticator', async () => {
  const { ask } = await running((app, answering) => {
    const router = new Router()
    router.get('/pets', withAuth(bearerOf('reader')), answering)
    router.post('/pets', withAuth(bearerOf('writer')), answering)
    router.get('/shops', answering)
    app.use(router.routes())
  })
  expectPassed(await ask('/pets', bearer('reader')), { via: 'reader' })
  expectDenied(await ask('/pets', { method: 'POST', ...bearer('reader') }), 401, [
    'Bearer realm="writer", error="invalid_token"',
  ])
  expectPassed(await ask('/pets', { method: 'POST', ...bearer('writer') }), { via: 'writer' })
  expectDenied(await ask('/pets', bearer('writer')), 401, ['Bearer realm="reader", error="invalid_token"'])
  expectPassed(await ask('/shops'), undefined)
})

test('1.2 the authenticator is evaluated once, before the operation; if it passes, the operation runs', async () => {
  const order: string[] = []
  const { ask } = await running((app) => {
    const authenticate = async (_request: unknown, token: string) => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      order.push('authenticated')
      return token
    }
    const router = new Router().get('/x', withAuth(httpBearer({ authenticate })), (ctx) => {
      order.push('ran')
      ctx.body = 'done'
    })
    app.use(router.routes())
  })
  expect(await ask('/x', bearer('t'))).toMatchObject({ status: 200, challenges: [], body: 'done' })
  expect(order).toEqual(['authenticated', 'ran'])
})

test('1.2 if the authenticator fails, the operation does not run, and an error response is returned', async () => {
  const authenticate = vi.fn(() => false)
  const { ask } = await operation(withAuth(httpBearer({ authenticate })))
  expectDenied(await ask('/x', bearer('t')), 401, [challenge.refusedBearer])
  expect(authenticate).toHaveBeenCalledTimes(1)
})

test('1.2 if the operation fails, its error is not an authentication failure', async () => {
  const handler = vi.fn(() => {
    throw new Error('the handler fails')
  })
  const { ask } = await running((app) => {
    app.use(new Router().get('/x', withAuth(bearerOf('t')), handler).routes())
  })
  expect(await ask('/x', bearer('t'))).toMatchObject({ status: 500, challenges: [], body: 'Internal Server Error' })
  expect(handler).toHaveBeenCalledTimes(1)
})

test('1.3 request.auth is the same value that the authenticator returned, not a copy', async () => {
  const client = { name: 'Acme' }
  const { ask } = await operation(withAuth(httpBearer({ authenticate: () => client })))
  const answer = await ask('/x', bearer('t'))
  expectPassed(answer, client)
  expect(answer.seen[0]).toBe(client)
})

test('1.4 authenticators can be set on the application, a router and one operation', async () => {
  const { ask } = await running((app, answering) => {
    const inner = withAuth(bearerOf('router'))(new Router())
    inner.get('/router', answering)
    inner.get('/operation', withAuth(bearerOf('operation')), answering)
    const api = withAuth(bearerOf('application'))(new Router())
    api.get('/application', answering)
    api.use(inner.routes())
    app.use(api.routes())
  })
  for (const level of ['application', 'router', 'operation']) {
    expectPassed(await ask(`/${level}`, bearer(level)), { via: level })
    expectDenied(await ask(`/${level}`), 401, [`Bearer realm="${level}"`])
    for (const other of ['application', 'router', 'operation'].filter((name) => name !== level)) {
      expectDenied(await ask(`/${level}`, bearer(other)), 401, [`Bearer realm="${level}", error="invalid_token"`])
    }
  }
})
