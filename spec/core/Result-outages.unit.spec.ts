/** An exception that means an outage: wherever a hook throws it, the response is a 503. */
import { either as E } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { AuthError, authorize, httpBearer, UnavailableError, withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { fromFunction, flatMap, recoverUnavailable } from 'koa-with-auth/fp'
import Router from '@koa/router'
import Koa from 'koa'
import { failureOf } from '../../src/core/Result.js'
import { ask, listen } from '../support/servers/server.js'

const error = new UnavailableError('the directory is down')
const thrown = (): never => {
  throw error
}
const request = mockRequest({ fields: [['Authorization', 'Bearer t']] })
const bearer = (authenticate: () => unknown) => httpBearer({ authenticate })
const passing = bearer(() => ({ user: 'anna' }))

describe('an UnavailableError that a hook throws is unavailable', () => {
  it.each<{ description: string; input: AuthenticatorLike }>([
    { description: 'a hook that throws', input: bearer(thrown) },
    { description: 'a hook that rejects', input: bearer(() => Promise.reject(error)) },
    {
      description: 'an async hook that throws after an await',
      input: bearer(async () => (await Promise.reject(error)) && { user: 'anna' }),
    },
    { description: 'a Task that rejects', input: bearer(() => () => Promise.reject(error)) },
    { description: 'a thenable that throws', input: bearer(() => ({ then: thrown })) },
    { description: 'a plain function', input: thrown },
    { description: 'map', input: pipe(passing, flatMap(thrown)) },
    { description: 'authorize', input: pipe(passing, authorize(thrown)) },
    {
      description: 'authorize that rejects',
      input: pipe(
        passing,
        authorize(() => Promise.reject(error)),
      ),
    },
  ])('$description', async ({ input }) => {
    const result = await fromFunction(input).evaluate(request)
    expect(result).toMatchObject({ _tag: 'Left', left: { _tag: 'unavailable' } })
  })

  it('stops a list, and recoverUnavailable recovers from it', async () => {
    let calls = 0
    const list = fromFunction(bearer(thrown))
    const recovered = pipe(
      list,
      recoverUnavailable(() => {
        calls++
        return { user: 'cached' }
      }),
    )
    expect(await recovered.evaluate(request)).toEqual(E.right({ user: 'cached' }))
    expect(calls).toBe(1)
  })
})

describe('failureOf', () => {
  const mark = Symbol.for('koa-with-auth/unavailable')
  it.each<{ description: string; input: unknown; expected: AuthError }>([
    { description: 'another error', input: 1, expected: AuthError.raised(1) },
    { description: 'null', input: null, expected: AuthError.raised(null) },
    {
      description: 'an error of another copy of the package',
      input: { [mark]: true },
      expected: AuthError.unavailable(),
    },
    { description: 'an error with another mark', input: { [mark]: 1 }, expected: AuthError.raised({ [mark]: 1 }) },
    {
      description: 'an error with a time',
      input: new UnavailableError('x', { retryAfter: 7 }),
      expected: AuthError.unavailable(7),
    },
    {
      description: 'an error with an invalid time',
      input: { [mark]: true, retryAfter: '7' },
      expected: AuthError.unavailable(),
    },
  ])('$description', ({ input, expected }) => {
    expect(failureOf(input)).toEqual(expected)
  })

  it('a proxy that throws is raised', () => {
    const hostile = new Proxy({}, { has: thrown })
    const failure = failureOf(hostile)
    expect(failure._tag).toBe('raised')
  })
})

it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5'])('an invalid time is a TypeError: %s', (retryAfter) => {
  expect(() => new UnavailableError('x', { retryAfter: retryAfter as number })).toThrow(
    /new UnavailableError\(message, \{ retryAfter \}\)/,
  )
})

it('over HTTP: 503 with Retry-After from a guard, 503 from a handler, and neither shows the message', async () => {
  let calls = 0
  const app = new Koa()
  app.silent = true
  const router = new Router()
  const down = bearer(() => Promise.reject(new UnavailableError('the directory is down', { retryAfter: 7 })))
  router.get('/guarded', withAuth(down), (ctx) => {
    calls++
    ctx.body = 'in'
  })
  router.get('/handler', withAuth(null), () => {
    throw new UnavailableError('the directory is down')
  })
  const server = await listen(app.use(router.routes()))
  const guarded = await ask(`${server.url}/guarded`, { headers: { Authorization: 'Bearer t' } })
  const handler = await ask(`${server.url}/handler`)
  await server.close()
  expect([guarded.status, guarded.headers.get('Retry-After'), guarded.challenge, calls]).toEqual([503, '7', null, 0])
  expect(handler.status).toBe(503)
  for (const { text } of [guarded, handler]) expect(text).not.toContain('directory')
})
