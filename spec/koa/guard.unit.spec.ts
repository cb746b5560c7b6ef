/** What a guard does with authenticators that keep no promise, and what it leaves behind it. */
import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import Router from '@koa/router'
import { either as E } from 'fp-ts'
import createError from 'http-errors'
import Koa from 'koa'
import { apiApp, AuthError, authSettings, httpBearer, onError, withAuth, type Authenticator } from 'koa-with-auth'
import { expect, test } from 'vitest'
import { bearer, expectCrashed, operation, running } from '../support/behavior.js'

const anna = { user: 'anna' }
const token = httpBearer({ authenticate: () => anna })

// Safe: what somebody without types could make of an authenticator
const evaluating = (evaluate: () => unknown): Authenticator<unknown> =>
  Object.assign(() => () => Promise.resolve(E.right(anna)), { description: token.description, evaluate }) as never

test.each<[string, unknown]>([
  ['neither left nor right', { _tag: 'Both' }],
  ['nothing', {}],
  ['a promise of nothing', Promise.resolve({})],
])('an authenticator that comes to %s lets no request in', async (_, result) => {
  const { ask, errors } = await operation(withAuth(evaluating(() => result)))
  expectCrashed(await ask('/x', bearer('t')))
  expect(errors).toMatchObject([new TypeError('an authenticator must return an Either')])
})

test('an evaluation that rejects, as none may, is an exception like any other', async () => {
  const { ask, errors } = await operation(withAuth(evaluating(() => Promise.reject(new Error('late')))))
  expectCrashed(await ask('/x', bearer('t')))
  expect(errors).toMatchObject([new Error('late')])
})

test('a failure that names no challenge gets the operation’s', async () => {
  const { ask } = await operation(withAuth(evaluating(() => E.left(AuthError.invalid))))
  expect(await ask('/x', bearer('t'))).toMatchObject({ status: 401, challenges: ['Bearer realm="api"'], seen: [] })
})

test('an HTTP error of a hook is answered by its exception handler, where there is one', async () => {
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

test('upstream middleware sees afterwards who was let in, as for its log', async () => {
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

test('no server is needed behind the socket: its limit of lines is Node’s', async () => {
  const app = new Koa()
  app.use(authSettings({}))
  app.use(new Router().get('/x', withAuth(token), (ctx) => void (ctx.body = ctx.request.auth)).routes())
  const answered = async (...lines: ReadonlyArray<readonly [string, string]>) => {
    // Safe: Node asks of it what a stream has
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
