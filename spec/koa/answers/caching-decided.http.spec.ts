/** The decision "authenticated responses": what caches may keep. */
import Router from '@koa/router'
import type Koa from 'koa'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  httpBasicAuth,
  httpBearer,
  sessionAuth,
  withAuth,
  type Guard,
} from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, running } from '../../support/models/behavior.js'
import { withSessions } from '../../support/models/behaviorSession.js'

describe('authenticated responses', () => {
  const authenticate = (_request: unknown, sent: string) => sent === 't'
  const token = httpBearer({ authenticate })
  const session = sessionAuth()

  const handling = <P>(guard: Guard<P>, handler: (ctx: Koa.Context) => void) =>
    running((app) => {
      withSessions()(app)
      app.use(new Router().get('/x', guard, (ctx) => handler(ctx)).routes())
    })
  const write = (ctx: Koa.Context) => {
    ctx.body = 'mine'
  }

  test('authenticated responses: they have `Cache-Control: private, no-store`, unless the handler sets the field', async () => {
    const byDefault = await handling(withAuth(token), write)
    const answer = await byDefault.ask('/x', bearer('t'))
    expect(answer).toMatchObject({ status: 200, challenges: [], body: 'mine' })
    expect(answer.headers['cache-control']).toBe('private, no-store')
    const own = await handling(withAuth(token), (ctx) => {
      ctx.set('Cache-Control', 'private, max-age=60')
      write(ctx)
    })
    const cached = await own.ask('/x', bearer('t'))
    expect(cached.headers).toMatchObject({ 'cache-control': 'private, max-age=60', vary: 'Authorization' })
  })

  const varying: ReadonlyArray<
    readonly [what: string, serve: () => ReturnType<typeof handling>, vary: string | undefined]
  > = [
    ['a bearer token', () => handling(withAuth(token), write), 'Authorization'],
    ['Basic', () => handling(withAuth(httpBasicAuth({ authenticate: () => true })), write), 'Authorization'],
    [
      'a header key',
      () => handling(withAuth(apiKeyHeader({ paramName: 'X-API-Key', authenticate })), write),
      'X-API-Key',
    ],
    ['a cookie key', () => handling(withAuth(apiKeyCookie({ authenticate })), write), 'Cookie'],
    ['a session', () => handling(withAuth(session), write), 'Cookie'],
    [
      'a query key, which is part of the URL',
      () => handling(withAuth(apiKeyQuery({ authenticate })), write),
      undefined,
    ],
    [
      'a function, which may read anything',
      () =>
        handling(
          withAuth(() => true),
          write,
        ),
      '*',
    ],
    [
      'a list: the fields that its members read, each once',
      () =>
        handling(
          withAuth([
            apiKeyHeader({ paramName: 'X-API-Key', authenticate }),
            session,
            apiKeyQuery({ authenticate }),
            token,
            apiKeyCookie({ authenticate }),
            apiKeyHeader({ paramName: 'x-api-key', authenticate }),
          ]),
          write,
        ),
      'X-API-Key, Cookie, Authorization',
    ],
  ]
  const named = (vary: string | undefined) => vary?.toLowerCase().split(', ').sort()
  test.each(varying)(
    'authenticated responses: Vary for %s, whether the request passed or was refused',
    async (_what, serve, vary) => {
      const { ask } = await serve()
      const credentials = { ...bearer('t').headers, Cookie: 'key=t', key: 't', 'X-API-Key': 't' }
      for (const answer of [await ask('/x?key=t', { headers: credentials }), await ask()]) {
        expect(named(answer.headers['vary'])).toEqual(named(vary))
      }
    },
  )

  test('authenticated responses: Vary is added to what upstream middleware and the handler set', async () => {
    const { ask } = await handling(withAuth(token), (ctx) => {
      ctx.set('Vary', 'Accept')
      write(ctx)
    })
    expect((await ask('/x', bearer('t'))).headers['vary']).toBe('Accept, Authorization')
  })

  const errors: ReadonlyArray<readonly [what: string, status: number, handler: (ctx: Koa.Context) => void]> = [
    ['ctx.throw(404)', 404, (ctx) => ctx.throw(404)],
    ['ctx.throw(409) with its own fields', 409, (ctx) => ctx.throw(409, 'busy', { headers: { 'X-Own': 'yes' } })],
    [
      'any error',
      500,
      () => {
        throw new Error('the handler fails')
      },
    ],
  ]
  test.each(errors)(
    'authenticated responses: an error that a guarded handler throws has the fields, too: %s',
    async (...row) => {
      const [, status, handler] = row
      const { ask } = await handling(withAuth(token), handler)
      const answer = await ask('/x', bearer('t'))
      expect(answer).toMatchObject({ status, challenges: [] })
      expect(answer.headers).toMatchObject({ 'cache-control': 'private, no-store', vary: 'Authorization' })
      if (status === 409) expect(answer.headers['x-own']).toBe('yes')
    },
  )

  test('authenticated responses: a public operation has none of these fields', async () => {
    const { ask } = await handling(withAuth(null), write)
    const { headers } = await ask('/x', bearer('t'))
    expect([headers['cache-control'], headers['vary'], headers['referrer-policy']]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('A-28 responses of an operation with a query key have Referrer-Policy: same-origin', async () => {
    const { ask } = await handling(withAuth([token, apiKeyQuery({ authenticate })]), write)
    for (const answer of [await ask('/x?key=t'), await ask('/x?key=bad'), await ask()]) {
      expect(answer.headers['referrer-policy']).toBe('same-origin')
    }
  })
})
