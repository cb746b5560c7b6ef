/** A guard with authenticators that break their contract, and what it leaves on the request. */
import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { types } from 'node:util'
import Router from '@koa/router'
import { either as E } from 'fp-ts'
import createError from 'http-errors'
import Koa from 'koa'
import {
  apiApp,
  AuthError,
  authSettings,
  httpBearer,
  onError,
  operation as described,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { expect, test } from 'vitest'
import { bearer, expectCrashed, operation, running } from '../support/models/behavior.js'

const anna = { user: 'anna' }
const token = httpBearer({ authenticate: () => anna })

// Safe: a program without types could make this authenticator
const evaluating = (evaluate: () => unknown): Authenticator<unknown> =>
  Object.assign(() => () => Promise.resolve(E.right(anna)), { description: token.description, evaluate }) as never

test.each<[string, unknown]>([
  ['a value that is not an Either', { _tag: 'Both' }],
  ['nothing', {}],
  ['a promise of undefined', Promise.resolve({})],
])('an authenticator that returns %s admits no request', async (_, result) => {
  const { ask, errors } = await operation(withAuth(evaluating(() => result)))
  expectCrashed(await ask('/x', bearer('t')))
  expect(errors).toMatchObject([new TypeError('an authenticator must return an Either')])
})

test('an evaluation that rejects, which none should do, is handled like an exception', async () => {
  const { ask, errors } = await operation(withAuth(evaluating(() => Promise.reject(new Error('late')))))
  expectCrashed(await ask('/x', bearer('t')))
  expect(errors).toMatchObject([new Error('late')])
})

test('a failure without a challenge gets that of the operation', async () => {
  const { ask } = await operation(withAuth(evaluating(() => E.left(AuthError.invalid))))
  expect(await ask('/x', bearer('t'))).toMatchObject({ status: 401, challenges: ['Bearer realm="api"'], seen: [] })
})

test('an HTTP error of a hook gets the response of its exception handler, if there is one', async () => {
  const limited = httpBearer({
    authenticate: () => {
      throw new createError.TooManyRequests()
    },
  })
  const handler = onError(createError.HttpError, () => ({ status: 420, body: { detail: 'calm down' } }))
  const api = apiApp({ onError: [handler], prefix: '/api', docs: false })
  api.get('/x', withAuth(limited), () => {
    throw new Error('no caller may come here')
  })
  const { ask } = await running((app) => app.use(api.routes()))
  expect(await ask('/api/x', bearer('t'))).toMatchObject({ status: 420, body: { detail: 'calm down' } })
  const { ask: bare } = await operation(withAuth(limited))
  expect(await bare('/x', bearer('t'))).toMatchObject({ status: 429, seen: [] })
})

test('upstream middleware reads the principal afterwards, as for a log', async () => {
  const seen: unknown[] = []
  const { ask } = await operation(withAuth(token), (app) =>
    app.use(async ({ request }, next) => {
      await next()
      seen.push(Reflect.get(request, 'auth'))
    }),
  )
  await ask('/x', bearer('t'))
  await ask()
  expect(seen).toStrictEqual([anna, undefined])
})

test('a socket without a server has the default limit of header lines', async () => {
  const app = new Koa()
  app.use(authSettings({}))
  app.use(new Router().get('/x', withAuth(token), (ctx) => void (ctx.body = ctx.request.auth)).routes())
  const answered = async (...lines: ReadonlyArray<readonly [string, string]>) => {
    // Safe: Node only uses the methods of a stream
    const socket = new PassThrough() as unknown as Socket
    const request = new IncomingMessage(socket)
    const headers = Object.fromEntries(lines.map(([name, value]) => [name.toLowerCase(), value]))
    Object.assign(request, { method: 'GET', url: '/x', rawHeaders: lines.flat(), headers })
    const response = new ServerResponse(request)
    response.assignSocket(socket)
    await app.callback()(request, response)
    return response.statusCode
  }
  expect(await answered()).toBe(401)
  expect(await answered(['Authorization', 'Bearer t'])).toBe(200)
  expect(await answered(...Array.from({ length: 1000 }, () => ['A', 'a'] as const))).toBe(431)
})

test('after the first request, no function of a layer inherits a proxy, which is slow at each further one', async () => {
  const router = new Router()
  router.get('/x', described({ summary: 'x' }), withAuth(token), (ctx) => {
    ctx.body = 'x'
  })
  const proxied = () =>
    router.stack.flatMap(({ stack }) => stack.filter((f) => types.isProxy(Object.getPrototypeOf(f)))).length
  const { ask } = await running((app) => app.use(router.routes()))
  expect(proxied()).toBe(2)
  expect(await ask('/x', bearer('t'))).toMatchObject({ status: 200 })
  expect(proxied()).toBe(0)
})
