/** What is sent of the result of a mapper or a handler, and what is not sent of the response before it. */
import Router from '@koa/router'
import { either as E } from 'fp-ts'
import type Koa from 'koa'
import {
  AuthError,
  authSettings,
  httpBearer,
  onError,
  withAuth,
  type AuthResponse,
  type AuthSettings,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { bearer, expectCrashed, operation, running } from '../support/models/behavior.js'

const refusing = withAuth(httpBearer({ authenticate: () => false }))
const invalid = 'Bearer realm="api", error="invalid_token"'

const mapping =
  (answer: AuthResponse, above?: Koa.Middleware) =>
  (app: Koa): void => {
    if (above !== undefined) app.use(above)
    app.use(authSettings({ errorMapper: () => answer }))
  }

describe('the response of an error mapper', () => {
  it('with its own headers keeps the challenges, unless it sets them', async () => {
    const other = await operation(refusing, mapping({ status: 401, headers: { 'X-A': 'a' } }))
    expect((await other.ask('/x', bearer('t'))).challenges).toStrictEqual([invalid])
    const headers = { 'X-A': 'a', 'www-Authenticate': 'Own', 'X-B': 'b' }
    const own = await operation(refusing, mapping({ status: 401, headers }))
    expect((await own.ask('/x', bearer('t'))).challenges).toStrictEqual(['Own'])
  })

  it.each([null, undefined])('without a body (%s) has none, and keeps its status', async (body) => {
    const answer: AuthResponse = body === null ? { status: 401, body } : { status: 401 }
    const { ask } = await operation(refusing, mapping(answer))
    expect(await ask('/x', bearer('t'))).toMatchObject({ status: 401, body: '', challenges: [invalid] })
  })

  it.each(['text', Buffer.from('text')])(
    'with a body that is not an object has the media type of Koa: %o',
    async (body) => {
      const { ask } = await operation(
        refusing,
        mapping({ status: 401, body }, (ctx, next) => {
          ctx.type = 'application/pdf'
          return next()
        }),
      )
      const { headers } = await ask('/x', bearer('t'))
      expect(headers['content-type']).toMatch(typeof body === 'string' ? /^text\/plain/ : 'application/octet-stream')
    },
  )

  it('may leave a header undefined', async () => {
    // Safe: a program without types could write this
    const headers = { 'X-A': undefined, 'X-B': 'b' } as never
    const { ask } = await operation(refusing, mapping({ status: 401, headers }))
    const answer = await ask('/x', bearer('t'))
    expect([answer.status, answer.headers['x-a'], answer.headers['x-b']]).toStrictEqual([401, undefined, 'b'])
  })

  it('does not change if upstream middleware changes the fields', async () => {
    const lines = ['a']
    const { ask } = await operation(
      refusing,
      mapping({ status: 401, headers: { 'X-Lines': lines } }, async ({ res }, next) => {
        await next()
        res.appendHeader('X-Lines', 'b')
      }),
    )
    expect((await ask('/x', bearer('t'))).headers['x-lines']).toBe('a, b')
    expect((await ask('/x', bearer('t'))).headers['x-lines']).toBe('a, b')
    expect(lines).toStrictEqual(['a'])
  })

  it('that is a promise is an error that says so', async () => {
    const errorMapper = (() => Promise.reject(new Error('late'))) as never
    const { ask, errors } = await operation(refusing, (app) => void app.use(authSettings({ errorMapper })))
    expectCrashed(await ask('/x', bearer('t')))
    expect(errors).toMatchObject([{ message: 'an errorMapper must be sync; it returned a promise' }])
  })

  it.each([[undefined], [null], ['no'], [{}], [{ body: 'no' }]])(
    'that is %j is an error that names the setting',
    async (returned) => {
      const errorMapper = (() => returned) as never
      const { ask, errors } = await operation(refusing, (app) => void app.use(authSettings({ errorMapper })))
      expectCrashed(await ask('/x', bearer('t')))
      expect(errors).toMatchObject([{ message: 'authSettings({ errorMapper }): it must return { status, body }' }])
    },
  )
})

describe('the challenges of a failure, as upstream middleware reads them', () => {
  const fieldOf = async (error: AuthError) => {
    const seen: unknown[] = []
    const { ask } = await operation(withAuth(httpBearer({ authenticate: () => E.left(error) })), (app) =>
      app.use(async ({ res }, next) => {
        await next()
        seen.push(res.getHeader('WWW-Authenticate'))
      }),
    )
    await ask('/x', bearer('t'))
    return seen
  }

  it('are a string if there is one', async () => {
    expect(await fieldOf(AuthError.invalid)).toStrictEqual([invalid])
  })

  it('are undefined if there is none', async () => {
    expect(await fieldOf(AuthError.unavailable())).toStrictEqual([undefined])
  })

  it('have the realm of the application, even if the authenticator is the same', async () => {
    for (const realm of ['pets', 'shops', 'pets']) {
      const { ask } = await operation(refusing, (app) => void app.use(authSettings({ realm })))
      expect((await ask('/x', bearer('t'))).challenges).toStrictEqual([
        `Bearer realm="${realm}", error="invalid_token"`,
      ])
    }
  })
})

describe('the response of an exception handler', () => {
  class Gone extends Error {}
  const leaving = async (
    answer: AuthResponse,
    guard: unknown = withAuth(httpBearer({ authenticate: () => 'anna' })),
  ) => {
    const settings: AuthSettings = { onError: [onError(Gone, () => answer)] }
    const { ask } = await running((app) => {
      app.use(authSettings(settings))
      const fail = (ctx: Koa.Context) => {
        ctx.set({ ETag: '"a"', 'Content-Encoding': 'identity', 'Last-Modified': 'x', 'Cache-Control': 'public' })
        throw new Gone()
      }
      // Safe: a guard is middleware
      app.use(new Router().get('/x', guard as never, fail as never).routes())
    })
    const { status, headers, challenges } = await ask('/x', bearer('t'))
    const { etag, 'content-encoding': encoding, 'last-modified': modified, 'cache-control': caching } = headers
    return { status, challenges, caching, of: [etag, encoding, modified] }
  }
  const nothing = [undefined, undefined, undefined]

  it('has no field of the response that it replaces, and is not cached', async () => {
    expect(await leaving({ status: 410 })).toStrictEqual({
      status: 410,
      challenges: [],
      caching: 'no-store',
      of: nothing,
    })
    expect(await leaving({ status: 410, headers: { 'X-A': 'a' } })).toMatchObject({ caching: 'no-store' })
  })

  it('may set Cache-Control itself', async () => {
    const headers = { 'X-A': 'a', 'cache-Control': 'max-age=5', 'X-B': 'b' }
    expect(await leaving({ status: 410, headers })).toMatchObject({ caching: 'max-age=5' })
  })

  it('with status 401 offers the challenge of the operation', async () => {
    expect(await leaving({ status: 401 })).toMatchObject({ status: 401, challenges: ['Bearer realm="api"'] })
  })
})

it('the response of an operation has these fields, and no others', async () => {
  const { ask } = await operation(withAuth(httpBearer({ authenticate: () => 'anna' })))
  const usual = ['connection', 'content-length', 'content-type', 'date', 'keep-alive']
  const { headers } = await ask('/x', bearer('t'))
  expect(Object.keys(headers).filter((name) => !usual.includes(name))).toStrictEqual(['vary', 'cache-control'])
})
