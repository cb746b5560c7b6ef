/** An exception that means an outage: wherever a hook throws it, the response is a 503. */
import { either as E } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { AuthError, authorize, httpBearer, UnavailableError, type AuthenticatorLike } from 'koa-with-auth'
import { fromFunction, flatMap, recoverUnavailable } from 'koa-with-auth/fp'
import { failureOf } from '../../src/core/Result.js'
import { row } from '../support/models/row.js'
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
    row('a hook that throws', bearer(thrown)),
    row(
      'a hook that rejects',
      bearer(() => Promise.reject(error)),
    ),
    row(
      'an async hook that throws after an await',
      bearer(async () => (await Promise.reject(error)) && { user: 'anna' }),
    ),
    row(
      'a Task that rejects',
      bearer(() => () => Promise.reject(error)),
    ),
    row(
      'a thenable that throws',
      bearer(() => ({ then: thrown })),
    ),
    row('a plain function', thrown),
    row('map', pipe(passing, flatMap(thrown))),
    row('authorize', pipe(passing, authorize(thrown))),
    row(
      'authorize that rejects',
      pipe(
        passing,
        authorize(() => Promise.reject(error)),
      ),
    ),
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
    row('another error', 1, AuthError.raised(1)),
    row('null', null, AuthError.raised(null)),
    row('an error of another copy of the package', { [mark]: true }, AuthError.unavailable()),
    row('an error with another mark', { [mark]: 1 }, AuthError.raised({ [mark]: 1 })),
    row('an error with a time', new UnavailableError('x', { retryAfter: 7 }), AuthError.unavailable(7)),
    row('an error with an invalid time', { [mark]: true, retryAfter: '7' }, AuthError.unavailable()),
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

it('of a handler is a 503 that does not show its message', async () => {
  const app = new Koa().use(thrown)
  app.silent = true
  const { url } = await listen(app)
  const { status, text } = await ask(url)
  expect([status, text.includes('directory')]).toEqual([503, false])
})
