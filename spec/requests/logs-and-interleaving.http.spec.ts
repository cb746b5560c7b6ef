/** A-37 and A-38: what is logged, and requests that interleave. */
import { randomInt } from 'node:crypto'
import { inspect } from 'node:util'
import Router from '@koa/router'
import { readerTaskEither as RTE } from 'fp-ts'
import Koa from 'koa'
import { createSession } from 'koa-session'
import { apiKeyHeader, authSettings, httpBasicAuth, httpBearer, sessionAuth, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { authOf, guardedApp, rawRequest, sendCounted } from '../support/sites/guardedApp.js'
import { CREDENTIALS, hookedKinds, kinds } from '../support/sites/hookedKinds.js'
import { sendRaw } from '../support/servers/rawSocket.js'
import { ask, cookiesIn, listen, serve } from '../support/servers/server.js'

const KEYS = ['a signing key of at least 32 characters']

describe('A-37 errors that are logged', () => {
  const failures: unknown[] = []
  const { app, send } = hookedKinds(() => [
    authSettings({
      errorMapper: (error) => {
        failures.push(error)
        return { status: 401, body: { detail: 'no' } }
      },
    }),
  ])
  const served = serve(() => app)
  const secrets = CREDENTIALS.flatMap((secret) => [secret, Buffer.from(`admin:${secret}`).toString('base64')])
  const holding = (reported: ReadonlyArray<unknown>) => {
    const text = reported.map((one) => inspect(one, { depth: 12, showHidden: true }) + JSON.stringify(one)).join('\n')
    return secrets.filter((secret) => text.includes(secret))
  }

  it.each(kinds)('A-37 errors of the layer itself contain no credential: %s', async (...kind) => {
    served.errors.length = 0
    await send(served, kind, () => () => 'no Either')
    await send(served, kind, () => Promise.reject(null))
    await send(served, kind, () => {
      throw { status: 200 }
    })
    expect(served.errors.length).toBe(3)
    expect(holding(served.errors)).toEqual([])
  })

  it.each(kinds)(
    'A-37 a refused request is not an error, and its failure contains no credential: %s',
    async (...kind) => {
      served.errors.length = 0
      failures.length = 0
      for (const answer of [() => false, () => Promise.resolve(null)]) await send(served, kind, answer)
      const malformed = kind[2].map((line) => `${line}\u00a0\x01`.replace('\x01', '"'))
      await sendRaw(served.port, rawRequest(served.port, kind[1], malformed))
      expect(served.errors).toEqual([])
      expect(failures.length).toBeGreaterThanOrEqual(2)
      expect(holding(failures)).toEqual([])
    },
  )
})

describe('A-38 interleaved requests', () => {
  const pause = () => new Promise((resolve) => setTimeout(resolve, randomInt(8)))
  const later = httpBearer({
    authenticate: async (_request, token) => {
      await pause()
      return { user: token }
    },
  })
  const auths = {
    '/sync': httpBearer({ authenticate: (_request, token) => ({ user: token }) }),
    '/async': later,
    '/basic': httpBasicAuth({ authenticate: (_request, username) => pause().then(() => ({ user: username })) }),
    '/list': [apiKeyHeader({ authenticate: () => pause().then(() => null) }), later],
    '/rte': RTE.map(({ user }: { user: string }) => ({ user }))(later),
    '/session': sessionAuth({
      loadUser: (session) => pause().then(() => ({ username: String(session['userId']), user: session['userId'] })),
    }),
  }
  const under = guardedApp(auths, {
    handler: async (ctx) => {
      await pause()
      const first = authOf(ctx)
      await pause()
      ctx.body = { first, then: authOf(ctx) }
    },
    above: (app) => {
      app.keys = KEYS
      return [
        createSession(app),
        async (ctx, next) => {
          if (ctx.path === '/sign-in') {
            ctx.session = { userId: ctx.querystring }
            ctx.body = 'ok'
          } else await next()
        },
      ]
    },
  })
  const served = serve(() => under.app)

  it.each(Object.keys(auths))('A-38 200 requests of two users never mix principals: %s', async (path) => {
    const signIn = async (user: string) => cookiesIn((await fetch(`${served.url}/sign-in?${user}`)).headers)
    const cookies = { anna: await signIn('anna'), bert: await signIn('bert') }
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, at) => {
        const user = at % 2 === 0 ? 'anna' : 'bert'
        const authorization =
          path === '/basic' ? `Basic ${Buffer.from(`${user}:x`).toString('base64')}` : `Bearer ${user}`
        const headers = { authorization, cookie: cookies[user], key: user }
        const { status, text } = await ask(served.url + path, { headers })
        const { first, then } = JSON.parse(text) as Record<'first' | 'then', { user: string }>
        return status === 200 && first.user === user && then.user === user
      }),
    )
    expect(answers.filter((right) => !right)).toEqual([])
  })
})

describe('A-38 request.auth', () => {
  const write = (request: Koa.Request) => Object.assign(request, { auth: { username: 'root' } })
  const failing = (request: Koa.Request) => {
    write(request)
    return false
  }
  const failingLate = async (request: Koa.Request) => {
    await Promise.resolve()
    return failing(request)
  }
  const under = guardedApp(
    {
      '/public': null,
      '/list': [failing, failingLate, () => ({ username: 'anna' })],
      '/denied': [failing, failingLate],
    },
    {
      handler: (ctx) => {
        ctx.body = { own: Object.hasOwn(ctx.request, 'auth'), auth: authOf(ctx) ?? 'stranger' }
      },
      above: () => [
        async (ctx, next) => {
          write(ctx.request)
          await next()
          if (ctx.status === 401) ctx.set('X-Auth', String(authOf(ctx)))
        },
      ],
    },
  )
  const served = serve(() => under.app)

  it('A-38 is undefined on a public operation, whatever set it before', async () => {
    const { body, ran } = await sendCounted(under, served.port, 'GET /public')
    expect([JSON.parse(body), ran]).toEqual([{ own: true, auth: 'stranger' }, 1])
  })

  it('A-38 is what the member that passed returned, not what a failed member wrote', async () => {
    const { body, ran } = await sendCounted(under, served.port, 'GET /list')
    expect([JSON.parse(body), ran]).toEqual([{ own: true, auth: { username: 'anna' } }, 1])
  })

  it('A-38 is undefined after a refusal', async () => {
    const { status, headers, ran } = await sendCounted(under, served.port, 'GET /denied')
    expect([status, headers.find(([name]) => name === 'x-auth')?.[1], ran]).toEqual([401, 'undefined', 0])
  })

  it('A-38 is undefined on a public operation after a guarded one of the same URL', async () => {
    const app = new Koa()
    const router = new Router()
    router.get(
      '/:any',
      withAuth(() => ({ username: 'root' })),
      (_ctx, next) => next(),
    )
    router.get('/x', withAuth(null), (ctx) => {
      ctx.body = { auth: Reflect.get(ctx.request, 'auth') ?? 'stranger' }
    })
    app.use(router.routes())
    const own = await listen(app)
    expect((await ask(`${own.url}/x`)).text).toBe('{"auth":"stranger"}')
  })
})
