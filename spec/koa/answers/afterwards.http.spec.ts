/**
 * What happens to a response after its operation: upstream middleware throws after a refusal, a store fails when the
 * session is saved, or a handler answers 401 itself. Koa then removes all headers; the status, the caching fields and
 * the challenges must stay.
 */
import { PassThrough } from 'node:stream'
import { either as E } from 'fp-ts'
import Router from '@koa/router'
import createError from 'http-errors'
import type { Context, Middleware } from 'koa'
import { apiKeyHeader, AuthError, httpBearer, withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, crossSite, operation, running, type Answer, type Sending } from '../../support/models/behavior.js'
import { sendLines } from '../../support/sites/guardedApp.js'
import { valuesOf } from '../../support/servers/rawSocket.js'

const key = apiKeyHeader({ paramName: 'X-Key', authenticate: () => false })
const answering = (answer: unknown) => httpBearer({ authenticate: () => answer })
const cookieLike = (request: { get: (name: string) => string }) => request.get('Cookie') !== '' && { by: 'cookie' }

const throwing =
  (thrown: () => unknown): Middleware =>
  async (ctx, next) => {
    ctx.set({ 'Access-Control-Allow-Origin': '*', Vary: 'Origin' })
    await next()
    throw thrown()
  }
const fields = ({ headers: { vary, 'cache-control': caching }, challenges }: Answer) => ({ caching, vary, challenges })

describe('when upstream middleware throws after a refusal', () => {
  const denials: ReadonlyArray<readonly [what: string, auth: unknown, sent: string, vary: string]> = [
    ['no credential', [answering(false), key], '', 'Authorization, X-Key'],
    ['a wrong credential', [answering(false), key], 't', 'Authorization, X-Key'],
    ['not allowed', answering(E.left(AuthError.insufficient())), 't', 'Authorization'],
    ['an outage', answering(E.left(AuthError.unavailable())), 't', 'Authorization'],
    ['an exception', httpBearer({ authenticate: (): boolean => JSON.parse('{') as never }), 't', 'Authorization'],
    ['a plain function', () => false, 't', '*'],
  ]
  const challengesOf = (auth: unknown) =>
    Array.isArray(auth)
      ? ['Bearer realm="api"', 'ApiKey realm="api", in="header", name="X-Key"']
      : auth instanceof Function && 'evaluate' in auth
        ? ['Bearer realm="api"']
        : ['Custom realm="api"']

  test.each(denials)(
    '%s: it is not stored, Vary is right, and a 401 has challenges',
    async (what, auth, sent, vary) => {
      // 500: the authenticator itself has thrown
      const status = what === 'an exception' ? 500 : 401
      for (const [thrown, seen, challenges] of [
        [new Error('afterwards'), 500, []],
        [createError(401), status, status === 401 ? challengesOf(auth) : []],
      ] as const) {
        const above = throwing(() => thrown)
        const { ask } = await operation(withAuth(auth as AuthenticatorLike), (app) => void app.use(above))
        const answer = await ask('/x', sent === '' ? {} : bearer(sent))
        expect(answer).toMatchObject({ status: seen, seen: [] })
        expect(fields(answer)).toEqual({ caching: 'no-store', vary, challenges })
      }
    },
  )

  test('a refused write from another site has no challenges and is not stored', async () => {
    const { ask } = await operation(withAuth(cookieLike), (app) => void app.use(throwing(() => createError(418))))
    const answer = await ask('/x', { ...crossSite, headers: { ...crossSite.headers, Cookie: 'a=1' } })
    expect(answer).toMatchObject({ status: 418, seen: [] })
    expect(fields(answer)).toEqual({ caching: 'no-store', vary: '*', challenges: [] })
  })

  test('A-24 a request with too many header lines gets a 431, or a 500 if upstream middleware throws afterwards', async () => {
    // With Host and Connection, these are as many lines as Node keeps. Newer versions of Node refuse more themselves.
    const lines = Array.from({ length: 998 }, () => 'a:')
    for (const [thrown, status] of [
      [undefined, 431],
      [new Error('afterwards'), 500],
    ] as const) {
      const { port } = await operation(withAuth(answering({ user: 'anna' })), (app) => {
        if (thrown !== undefined) app.use(throwing(() => thrown))
      })
      const answer = await sendLines(port, 'GET /x', lines)
      expect(answer.status).toBe(status)
      expect(valuesOf(answer, 'Cache-Control')).toEqual(['no-store'])
      expect(valuesOf(answer, 'Vary')).toEqual(['Authorization'])
    }
  })
})

describe('when a handler of an admitted request answers 401', () => {
  const list = [answering({ user: 'anna' }), key]
  const offered = ['Bearer realm="api"', 'ApiKey realm="api", in="header", name="X-Key"']
  const handled = async (auth: unknown, handle: (ctx: Context) => unknown, sent: Sending = bearer('t')) => {
    const { ask } = await running((app) => {
      app.on('error', () => undefined)
      // Safe: the router asks for its own context type
      const layer = withAuth(auth as AuthenticatorLike) as unknown as Middleware
      app.use(new Router().all('/x', layer as never, handle as never).routes())
    })
    return ask('/x', sent)
  }

  const own = (write: (res: Context['res']) => unknown) => (ctx: Context) => {
    ctx.respond = false
    write(ctx.res)
  }
  test.each<[string, (ctx: Context) => unknown]>([
    ['ctx.throw(401)', (ctx) => ctx.throw(401)],
    ['an http-errors 401', () => Promise.reject(createError(401, 'no'))],
    ['an error with status 401', () => Promise.reject(Object.assign(new Error('no'), { status: 401 }))],
    ['a status', (ctx) => (ctx.status = 401)],
    ['a status and a body', (ctx) => Object.assign(ctx, { status: 401, body: { detail: 'no' } })],
    ['a status and a stream', (ctx) => Object.assign(ctx, { status: 401, body: new PassThrough().end('no') })],
    ['its own head', own((res) => res.writeHead(401, { 'Content-Type': 'text/plain' }).end('no'))],
    ['the response itself', own((res) => Object.assign(res, { statusCode: 401 }).end('no'))],
  ])('%s: the 401 gets the operation’s challenges', async (_what, handle) => {
    const answer = await handled(list, handle)
    expect(answer.status).toBe(401)
    expect(fields(answer)).toEqual({ caching: 'private, no-store', vary: 'Authorization, X-Key', challenges: offered })
    expect(fields(await handled(list, handle, { ...bearer('t'), method: 'HEAD' })).challenges).toEqual(offered)
  })

  test.each<[string, (ctx: Context) => unknown]>([
    ['thrown', (ctx) => ctx.throw(401, 'no', { headers: { 'WWW-Authenticate': 'Own' } })],
    ['set', (ctx) => Object.assign(ctx, { status: 401 }).set('www-authenticate', 'Own')],
  ])('a challenge that the handler set itself is kept: %s', async (_what, handle) => {
    expect((await handled(list, handle)).challenges).toEqual(['Own'])
  })

  test('other statuses and public operations get no challenges', async () => {
    expect((await handled(list, (ctx) => ctx.throw(403))).challenges).toEqual([])
    expect(fields(await handled(null, (ctx) => ctx.throw(401)))).toEqual({ challenges: [] })
  })
})
