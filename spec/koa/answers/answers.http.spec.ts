/**
 * Decisions of spec/requirements.md: what guarded and public operations answer. Titles begin with the question of the
 * row.
 */
import { inspect } from 'node:util'
import Router from '@koa/router'
import { either as E } from 'fp-ts'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, sessionAuth, withAuth } from 'koa-with-auth'
import { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from 'koa-with-auth/fp'
import { describe, expect, test, vi } from 'vitest'
import {
  bearer,
  bearerOf,
  challenge,
  expectDenied,
  expectPassed,
  operation,
  running,
  type Answer,
} from '../../support/models/behavior.js'
import { kinds } from '../../support/models/behaviorKinds.js'
import { withSessions } from '../../support/models/behaviorSession.js'

describe('`request.auth` on a public operation', () => {
  test('`request.auth` on a public operation: it is undefined, whatever credentials are sent', async () => {
    const { ask } = await running((app, answering) => {
      const router = withAuth(bearerOf('t'))(new Router())
      app.use(router.get('/open', withAuth(null), answering).routes())
    })
    expectPassed(await ask('/open'), undefined)
    expectPassed(await ask('/open', bearer('t')), undefined)
  })

  test('`request.auth` on a public operation: it is undefined, even if upstream middleware set it (A-38)', async () => {
    const { ask } = await operation(withAuth(null), (app) => {
      app.use((ctx, next) => {
        Object.assign(ctx.request, { auth: 'somebody' })
        return next()
      })
    })
    expectPassed(await ask(), undefined)
  })
})

describe('HEAD; OPTIONS and 405; unknown path', () => {
  const start = () =>
    running((app, answering) => {
      const router = withAuth(bearerOf('t'))(new Router()).get('/x', answering).post('/x', answering)
      app.use(router.routes()).use(router.allowedMethods())
    })

  test('HEAD is guarded like its GET: it has the same status and fields, and no handler runs', async () => {
    const { ask } = await start()
    for (const sending of [{}, bearer('wrong')]) {
      const get = await ask('/x', sending)
      const head = await ask('/x', { method: 'HEAD', ...sending })
      expect(head).toMatchObject({ status: 401, challenges: get.challenges, body: '', seen: [] })
      for (const name of ['content-type', 'cache-control', 'vary', 'content-length']) {
        expect(head.headers[name]).toBe(get.headers[name])
      }
    }
    expect(await ask('/x', { method: 'HEAD', ...bearer('t') })).toMatchObject({
      status: 200,
      challenges: [],
      seen: [{ via: 't' }],
    })
  })

  test('OPTIONS and 405 need no credentials and run no handler', async () => {
    const { ask } = await start()
    const options = await ask('/x', { method: 'OPTIONS' })
    expect(options).toMatchObject({ status: 200, challenges: [], seen: [] })
    expect(options.headers['allow']).toBe('HEAD, GET, POST')
    const unallowed = await ask('/x', { method: 'DELETE' })
    expect(unallowed).toMatchObject({ status: 405, challenges: [], seen: [] })
    expect(unallowed.headers['allow']).toBe('HEAD, GET, POST')
  })

  test('an unknown path is a 404, with and without credentials', async () => {
    const { ask } = await start()
    for (const sending of [{}, bearer('t'), bearer('wrong')]) {
      expect(await ask('/y', sending)).toMatchObject({ status: 404, challenges: [], seen: [] })
    }
  })
})

describe('challenge of an API key or a session', () => {
  test('challenge of an API key or a session: every 401 names the scheme of the kind, never Basic', async () => {
    const refusing = { authenticate: () => false }
    const api = await operation(
      withAuth([
        apiKeyQuery({ paramName: 'api_key', ...refusing }),
        apiKeyHeader({ paramName: 'X-API-Key', ...refusing }),
        apiKeyCookie({ paramName: 'sid', realm: 'shop', ...refusing }),
        sessionAuth(),
      ]),
      withSessions(),
    )
    const reported = [
      challenge.key('query', 'api_key'),
      challenge.key('header', 'X-API-Key'),
      'ApiKey realm="shop", in="cookie", name="sid"',
      challenge.session,
    ]
    expectDenied(await api.ask(), 401, reported)
    expectDenied(await api.ask('/x?api_key=k', { headers: { 'X-API-Key': 'k', Cookie: 'sid=k' } }), 401, reported)
  })
})

describe('log lines and errors never hold a credential', () => {
  const marker = 's3cret'
  const reported = (answer: Answer, errors: ReadonlyArray<unknown>) =>
    `${JSON.stringify(answer)} ${inspect(errors, { depth: null, showHidden: true, getters: true })}`

  const hooks: ReadonlyArray<readonly [what: string, hook: (request: unknown, ...credentials: string[]) => unknown]> = [
    ['refuses', () => false],
    [
      'throws',
      () => {
        throw new Error('down')
      },
    ],
    [
      'throws null',
      () => {
        throw null
      },
    ],
    ['rejects', () => Promise.reject(new Error('down'))],
    [
      'returns a function of the credential',
      (_request, ...credentials) =>
        () =>
          credentials,
    ],
    ['returns a Left with the credential', (_request, ...credentials) => E.left(credentials)],
  ]
  test.each(hooks)('log lines and errors never hold a credential: when a hook %s', async (_what, hook) => {
    const consoles = (['log', 'info', 'warn', 'error', 'debug'] as const).map((name) => vi.spyOn(console, name))
    try {
      for (const { make, carrying, credentials } of kinds) {
        const { ask, errors } = await operation(withAuth(make(hook)))
        const answer = await ask(...carrying)
        expect(answer.seen).toEqual([])
        const text = reported(answer, errors)
        for (const secret of [marker, credentials.join(':'), btoa(credentials.join(':'))])
          expect(text).not.toContain(secret)
      }
      for (const spy of consoles) expect(spy).not.toHaveBeenCalled()
    } finally {
      for (const spy of consoles) spy.mockRestore()
    }
  })

  test('422 and io-ts errors: a codec that refuses a credential does not put it into its error', () => {
    const bad = `${marker}\r\n`
    for (const codec of [BasicCredentials, BearerToken, CookieKey, HeaderKey]) {
      for (const value of [bad, [marker, marker], { marker }]) {
        const decoded = codec.validate(value, [])
        expect(decoded._tag).toBe('Left')
        expect(inspect(decoded, { depth: null })).not.toContain(marker)
      }
    }
    expect(inspect(QueryKey.validate([marker, marker], []), { depth: null })).not.toContain(marker)
  })
})
