/** How a failure is answered: what is restored, what is written, and what is explained in development. */
import { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa, { type Response } from 'koa'
import { describe, expect, it, test, onTestFinished, vi } from 'vitest'
import Router from '@koa/router'
import { either as E } from 'fp-ts'
import {
  AuthError,
  authSettings,
  httpBearer,
  onError,
  withAuth,
  type AuthResponse,
  type AuthSettings,
  allOf,
  anyOf,
  apiKeyHeader,
  apiKeyQuery,
  defaultErrorMapper,
  type ErrorMapper,
} from 'koa-with-auth'
import { firstPresent } from 'koa-with-auth/fp'
import { restore, take } from '../../src/koa/respond.js'
import { bearer, expectCrashed, operation, running } from '../support/models/behavior.js'
import { explained } from '../support/models/explained.js'
import { guardedApp, sendCounted } from '../support/sites/guardedApp.js'
import { listen } from '../support/servers/server.js'

// A-39 a response is restored, whatever was done to it since the snapshot.

const app = new Koa()

// With HTTP/2, Koa sets no message beside the status
const responseOf = (httpVersionMajor: 1 | 2): Response => {
  const req = Object.assign(new IncomingMessage(new Socket()), { httpVersionMajor })
  const { response } = app.createContext(req, new ServerResponse(req))
  // As Koa does before the first middleware
  response.res.statusCode = 404
  return response
}

const state = (response: Response) => ({
  status: response.res.statusCode,
  message: response.req.httpVersionMajor === 1 ? response.res.statusMessage : undefined,
  // Safe: Koa's response has these properties
  ...(({ _body, _explicitStatus, _explicitNullBody }) => ({ _body, _explicitStatus, _explicitNullBody }))(
    response as unknown as Record<string, unknown>,
  ),
  headers: structuredClone({ ...response.res.getHeaders() }),
})

const changes: ReadonlyArray<readonly [string, (response: Response) => void]> = [
  ['nothing', () => {}],
  ['the current status, set explicitly', (response) => (response.status = 404)],
  ['another status', (response) => (response.status = 202)],
  ['a status set on Node’s response', ({ res }) => (res.statusCode = 500)],
  ['a message', ({ res }) => (res.statusMessage = 'Own')],
  ['a string', (response) => (response.body = 'text')],
  ['no body', (response) => (response.body = null)],
  ['a header', ({ res }) => res.setHeader('X-A', 'a')],
  ['another header', ({ res }) => res.setHeader('X-B', ['b', 'c'])],
  ['a cookie', ({ res }) => res.appendHeader('Set-Cookie', 'a=b')],
  ['no header', ({ res }) => res.getHeaderNames().forEach((name) => res.removeHeader(name))],
]

describe.each([1, 2] as const)('with HTTP/%i', (version) => {
  describe.each(changes)('before the snapshot: %s', (_before, change) => {
    test.each(changes)('after the snapshot: %s', (_between, changeAgain) => {
      const response = responseOf(version)
      change(response)
      change(response)
      const before = state(response)
      const snapshot = take(response)
      changeAgain(response)
      restore(response, snapshot)
      expect(state(response)).toStrictEqual(before)
    })
  })
})

it('HTTP/2 has no message, and Node warns of whoever reads or writes it', () => {
  const response = responseOf(2)
  const refuse = (): never => expect.fail('it was read or written')
  Object.defineProperty(response.res, 'statusMessage', { get: refuse, set: refuse })
  for (const status of [404, 202]) {
    response.status = status
    const snapshot = take(response)
    response.res.statusCode = 500
    restore(response, snapshot)
    expect(response.status).toBe(status)
  }
})

it('restoring does not change unchanged fields: their names keep their letter case', () => {
  const response = responseOf(1)
  response.res.setHeader('X-A', 'a')
  const snapshot = take(response)
  response.res.setHeader('X-B', 'b')
  restore(response, snapshot)
  // Every outgoing message has it, although the types have it for those of clients only
  expect(Reflect.apply(ClientRequest.prototype.getRawHeaderNames, response.res, [])).toStrictEqual(['X-A'])
})

it('restoring removes a cookie that was added to the list of cookies', () => {
  const response = responseOf(1)
  const cookies = ['a=b']
  response.res.setHeader('Set-Cookie', cookies)
  const snapshot = take(response)
  cookies.push('c=d')
  restore(response, snapshot)
  expect(response.res.getHeader('Set-Cookie')).toStrictEqual(['a=b'])
})

it('restoring does nothing if the head was sent', () => {
  const response = responseOf(1)
  const snapshot = take(response)
  response.res.setHeader('X-A', 'a')
  response.res.writeHead(200)
  restore(response, snapshot)
  expect([response.res.statusCode, response.res.getHeader('X-A')]).toStrictEqual([200, 'a'])
})

// What is sent of the result of a mapper or a handler, and what is not sent of the response before it.

const refusing = withAuth(httpBearer({ authenticate: () => false }))
const invalid = 'Bearer realm="api", error="invalid_token"'

const mapping =
  (answer: AuthResponse, above?: Koa.Middleware) =>
  (app: Koa): void => {
    if (above !== undefined) app.use(above)
    app.use(authSettings({ errorMapper: () => answer }))
  }

describe('the response of an error mapper', () => {
  it('that is a promise leaves no timer behind', async () => {
    const set = vi.spyOn(globalThis, 'setTimeout')
    const cleared = vi.spyOn(globalThis, 'clearTimeout')
    onTestFinished(() => void vi.restoreAllMocks())
    const errorMapper = async () => Promise.resolve({ status: 418 })
    const { ask } = await operation(refusing, (app) => void app.use(authSettings({ errorMapper, timeout: 54_321 })))
    expect((await ask('/x', bearer('t'))).status).toBe(418)
    const timers = set.mock.results.filter((_one, at) => set.mock.calls[at]?.[1] === 54_321)
    expect(timers.length).toBeGreaterThan(0)
    for (const { value } of timers) expect(cleared).toHaveBeenCalledWith(value)
  })

  it('is asked once, with the failure, every branch of a list, and the request', async () => {
    const errorMapper = vi.fn<ErrorMapper>((error, request) => ({
      status: 418,
      headers: { 'X-Why': error._tag, 'X-Lines': ['a', 'b'] },
      body: `no tea for ${request.path}`,
    }))
    const failing = [apiKeyQuery({ authenticate: () => false }), httpBearer({ authenticate: () => false })] as const
    const { ask } = await operation(withAuth(failing), (app) => void app.use(authSettings({ errorMapper })))
    const caching = { vary: 'Authorization', 'cache-control': 'no-store' }
    expect(await ask('/x?key=k')).toMatchObject({
      status: 418,
      challenges: [],
      body: 'no tea for /x',
      headers: { ...caching, 'x-why': 'invalid', 'x-lines': 'a, b', 'content-type': 'text/plain; charset=utf-8' },
      seen: [],
    })
    expect(errorMapper).toHaveBeenCalledTimes(1)
    const [[error] = []] = errorMapper.mock.calls
    expect(error && AuthError.branchesOf(error).map(({ _tag }) => _tag)).toEqual(['invalid', 'absent'])
  })

  it.each<[what: string, answer: AuthResponse, failure: AuthError, expected: object]>([
    ['that is no 401 or 403 offers no challenge', { status: 404 }, AuthError.invalid, { status: 404, challenges: [] }],
    ['nor one for scopes', { status: 404 }, AuthError.insufficient(['a']), { status: 404, challenges: [] }],
    [
      'may redirect',
      { status: 302, headers: { Location: '/sign-in' } },
      AuthError.invalid,
      { status: 302, challenges: [], body: '', headers: { location: '/sign-in', 'cache-control': 'no-store' } },
    ],
    ['B-01 that makes a 401 of a 403', { status: 401 }, AuthError.forged, { challenges: ['Bearer realm="api"'] }],
    [
      'has another type than problem+json if it says so',
      { status: 401, headers: { 'content-type': 'application/json' }, body: { detail: 'no' } },
      AuthError.expired,
      { body: { detail: 'no' }, headers: { 'content-type': 'application/json' }, challenges: [invalid] },
    ],
  ])('%s', async (_what, answer, failure, expected) => {
    const guard = withAuth(httpBearer({ authenticate: () => E.left(failure) }))
    const { ask } = await operation(guard, mapping(answer))
    expect(await ask('/x', bearer('t'))).toMatchObject({ ...expected, seen: [] })
  })

  it('with its own headers keeps the challenges, unless it sets them', async () => {
    const other = await operation(refusing, mapping({ status: 401, headers: { 'X-A': 'a' } }))
    expect((await other.ask('/x', bearer('t'))).challenges).toStrictEqual([invalid])
    const headers = { 'X-A': 'a', 'www-Authenticate': 'Own', 'X-B': 'b' }
    const own = await operation(refusing, mapping({ status: 401, headers }))
    expect((await own.ask('/x', bearer('t'))).challenges).toStrictEqual(['Own'])
  })

  it('has no challenge that middleware above has set', async () => {
    const above: Koa.Middleware = (ctx, next) => (ctx.set('WWW-Authenticate', 'Old'), next())
    const { ask } = await operation(refusing, mapping({ status: 404 }, above))
    expect((await ask('/x', bearer('t'))).challenges).toStrictEqual([])
  })

  it.each([null, undefined])('without a body (%s) has none, and keeps its status', async (body) => {
    const answer: AuthResponse = body === null ? { status: 401, body } : { status: 401 }
    const { ask } = await operation(refusing, mapping(answer))
    expect(await ask('/x', bearer('t'))).toMatchObject({ status: 401, body: '', challenges: [invalid] })
  })

  it.each(['text', Buffer.from('text')])('with a body that is no object has the type of Koa: %o', async (body) => {
    const pdf: Koa.Middleware = (ctx, next) => ((ctx.type = 'application/pdf'), next())
    const { ask } = await operation(refusing, mapping({ status: 401, body }, pdf))
    const { headers } = await ask('/x', bearer('t'))
    expect(headers['content-type']).toMatch(typeof body === 'string' ? /^text\/plain/ : 'application/octet-stream')
  })

  it('may leave a header undefined', async () => {
    // Safe: a program without types could write this
    const headers = { 'X-A': undefined, 'X-B': 'b' } as never
    const { ask } = await operation(refusing, mapping({ status: 401, headers }))
    const answer = await ask('/x', bearer('t'))
    expect([answer.status, answer.headers['x-a'], answer.headers['x-b']]).toStrictEqual([401, undefined, 'b'])
  })

  it('does not change if upstream middleware changes the fields', async () => {
    const lines = ['a']
    const more: Koa.Middleware = ({ res }, next) => next().then(() => void res.appendHeader('X-Lines', 'b'))
    const { ask } = await operation(refusing, mapping({ status: 401, headers: { 'X-Lines': lines } }, more))
    expect((await ask('/x', bearer('t'))).headers['x-lines']).toBe('a, b')
    expect((await ask('/x', bearer('t'))).headers['x-lines']).toBe('a, b')
    expect(lines).toStrictEqual(['a'])
  })

  it('may be a promise: a page that the context has rendered, with the challenges', async () => {
    const { ask } = await operation(refusing, (app) => {
      const render = (name: string) => Promise.resolve(`<h1>${name}</h1>`)
      const errorMapper: ErrorMapper = async (error, { ctx }) => {
        ctx.body = await render(error._tag)
        ctx.set('X-Rendered', 'yes')
        return { status: 401, body: ctx.body as string }
      }
      app.use(authSettings({ errorMapper }))
    })
    expect(await ask('/x', bearer('t'))).toMatchObject({
      status: 401,
      body: '<h1>invalid</h1>',
      challenges: [invalid],
      headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', 'x-rendered': 'yes' },
    })
  })

  const success = () => Object.assign(new Error('x'), { status: 200, expose: true })
  const throwing = (): never => {
    throw success()
  }
  // Safe: an asymmetric matcher
  const wrapped = expect.stringContaining('not a server error') as string
  it.each([
    ['that rejects', () => Promise.reject(new Error('no template')), 'no template'],
    ['never made, with a 200', throwing, wrapped],
    ['that rejects with a 200', () => Promise.reject(success()), wrapped],
    ['of no response', () => Promise.resolve('403'), 'authSettings({ errorMapper }): it must return { status, body }'],
  ])('is a 500 if it is a promise %s', async (_name, mapper, message) => {
    const errorMapper = mapper as never
    const { ask, errors } = await operation(refusing, (app) => void app.use(authSettings({ errorMapper })))
    expectCrashed(await ask('/x', bearer('t')))
    expect(errors).toMatchObject([{ message }])
  })

  it('is a 503 if it is a promise that does not settle within the timeout', async () => {
    const errorMapper: ErrorMapper = () => new Promise(() => {})
    const { ask } = await operation(refusing, (app) => void app.use(authSettings({ errorMapper, timeout: 5 })))
    const answer = await ask('/x', bearer('t'))
    expect([answer.status, answer.headers['retry-after'], answer.body]).toMatchObject([503, '5', { status: 503 }])
  })

  it.each([undefined, null, 'no', {}, { body: 'no' }])('that is %j is an error that names it', async (returned) => {
    const errorMapper = (() => returned) as never
    const { ask, errors } = await operation(refusing, (app) => void app.use(authSettings({ errorMapper })))
    expectCrashed(await ask('/x', bearer('t')))
    expect(errors).toMatchObject([{ message: 'authSettings({ errorMapper }): it must return { status, body }' }])
  })
})

describe('the challenges of a failure, as upstream middleware reads them', () => {
  const fieldOf = async (error: AuthError) => {
    const seen: unknown[] = []
    const guard = withAuth(httpBearer({ authenticate: () => E.left(error) }))
    const noting: Koa.Middleware = ({ res }, next) => next().then(() => seen.push(res.getHeader('WWW-Authenticate')))
    const { ask } = await operation(guard, (app) => app.use(noting))
    await ask('/x', bearer('t'))
    return seen
  }

  it('are a string if there is one, and undefined if there is none', async () => {
    expect(await fieldOf(AuthError.invalid)).toStrictEqual([invalid])
    expect(await fieldOf(AuthError.unavailable())).toStrictEqual([undefined])
  })

  it('have the realm of the application, even if the authenticator is the same', async () => {
    for (const realm of ['pets', 'shops', 'pets']) {
      const { ask } = await operation(refusing, (app) => void app.use(authSettings({ realm })))
      expect((await ask('/x', bearer('t'))).challenges).toStrictEqual([invalid.replace('api', realm)])
    }
  })
})

describe('the response of an exception handler', () => {
  class Gone extends Error {}
  const guard = withAuth(httpBearer({ authenticate: () => 'anna' }))
  const leaving = async (answer: AuthResponse) => {
    const { ask } = await running((app) => {
      app.use(authSettings({ onError: [onError(Gone, () => answer)] }))
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
    const answer = { status: 410, challenges: [], caching: 'no-store', of: nothing }
    expect(await leaving({ status: 410 })).toStrictEqual(answer)
    expect(await leaving({ status: 410, headers: { 'X-A': 'a' } })).toMatchObject({ caching: 'no-store' })
  })

  it('may set Cache-Control itself', async () => {
    const headers = { 'X-A': 'a', 'cache-Control': 'max-age=5', 'X-B': 'b' }
    expect(await leaving({ status: 410, headers })).toMatchObject({ caching: 'max-age=5' })
  })
})

it('the response of an operation has these fields, and no others', async () => {
  const { ask } = await operation(withAuth(httpBearer({ authenticate: () => 'anna' })))
  const usual = ['connection', 'content-length', 'content-type', 'date', 'keep-alive']
  const { headers } = await ask('/x', bearer('t'))
  expect(Object.keys(headers).filter((name) => !usual.includes(name))).toStrictEqual(['vary', 'cache-control'])
})

// `explain`: the body of a failure says what was tried and why each branch failed, and contains nothing that was sent.
describe('explanations', () => {
  const token = 's3cr3t-token-of-anna'
  const failing = (sent: string) => E.left(sent === 'down' ? AuthError.unavailable() : AuthError.expired)
  const bearer = httpBearer({ authenticate: (_request, sent) => failing(sent) })
  const named = { paramName: 'X-Key', realm: 'own' }
  const key = apiKeyHeader({ ...named, authenticate: (_request, sent) => sent === 'k1' && sent })
  const query = apiKeyQuery({ authenticate: () => false })
  const routes = {
    '/any': anyOf([bearer, key]),
    '/all': allOf([key, bearer, query]),
    '/first': firstPresent([query, bearer, key]),
    '/after': anyOf([query, bearer]),
  }
  const asking = async (settings: AuthSettings, path: string, lines: ReadonlyArray<string> = []) => {
    const guarded = guardedApp(routes, { above: () => [authSettings({ realm: 'pets', ...settings })] })
    const { port } = await listen(guarded.app)
    const answer = await sendCounted(guarded, port, `GET ${path}`, lines)
    expect(answer.ran).toBe(0)
    return { ...answer, json: JSON.parse(answer.body) as Record<string, unknown> }
  }
  const sent = [`Authorization: Bearer ${token}`]

  const ofKey = 'ApiKey realm="own", in="header", name="X-Key"'
  const ofQuery = 'ApiKey realm="pets", in="query", name="key"'
  const none = (challenge: string) => ({ challenge, failure: 'absent', reason: 'no credential of this kind was sent' })
  const skipped = (challenge: string) => ({ challenge, failure: 'not asked', reason: 'another one had decided' })
  const old = { failure: 'expired', reason: 'the credential is no longer good', why: 'expired' }
  const expired = { challenge: 'Bearer realm="pets", error="invalid_token"', ...old }
  const late = 'it cannot be decided now, or was not in time'
  const down = { challenge: 'Bearer realm="pets"', failure: 'unavailable', reason: late }

  it.each<[what: string, path: string, lines: ReadonlyArray<string>, status: number, tried: unknown]>([
    ['every alternative, and why it failed', '/any', sent, 401, [expired, none(ofKey)]],
    ['the members of a group that were not tried', '/all', ['X-Key: k1', ...sent], 401, [expired, skipped(ofQuery)]],
    ['those that were not the first to be present', '/first', sent, 401, [none(ofQuery), expired, skipped(ofKey)]],
    ['what was tried before an outage', '/after', ['Authorization: Bearer down'], 503, [none(ofQuery), down]],
    ['the same of the first that is present', '/first', ['Authorization: Bearer down'], 503, [none(ofQuery), down]],
  ])('list %s, beside the problem itself', async (_what, path, lines, status, tried) => {
    const { json } = await asking({ explain: true }, path, lines)
    const title = status === 401 ? 'Unauthorized' : 'Service Unavailable'
    expect(json).toStrictEqual({ type: 'about:blank', title, status, detail: title, tried })
  })

  it('A-37 never contain what was sent', async () => {
    for (const path of Object.keys(routes)) {
      for (const line of [...sent, `X-Key: ${token}`]) {
        const answer = await asking({ explain: true }, `${path}?key=${token}`, [line, `Cookie: key=${token}`])
        expect(answer.body + JSON.stringify(answer.headers)).not.toContain(token)
      }
    }
  })

  it('change only the body: the status and the header lines stay the same', async () => {
    const loud = await asking({ explain: true }, '/any', sent)
    const quiet = await asking({ explain: false }, '/any', sent)
    const fields = ({ headers }: typeof loud) => headers.filter(([name]) => !['date', 'content-length'].includes(name))
    expect([loud.status, fields(loud)]).toStrictEqual([quiet.status, fields(quiet)])
    expect(quiet.json).not.toHaveProperty('tried')
  })

  it('are not added to what another mapper answers', async () => {
    const errorMapper: ErrorMapper = (error, request) => defaultErrorMapper(error, request)
    expect((await asking({ explain: true, errorMapper }, '/any', sent)).json).not.toHaveProperty('tried')
  })

  it.each([
    [AuthError.absent, 'no credential of this kind was sent'],
    [AuthError.malformed, 'the credential cannot be read'],
    [AuthError.invalid, 'the credential was refused', 'hook'],
    [AuthError.expired, 'the credential is no longer good', 'expired'],
    [AuthError.forged, 'another site made the browser send it (Sec-Fetch-Site, Origin)', 'origin'],
    [AuthError.insufficient(), 'authenticated, but not allowed'],
    [AuthError.throttled(), 'too many guesses were made, so the credential was not looked at'],
    [AuthError.unavailable(), late],
    [AuthError.raised(new Error(token)), 'the hook threw'],
  ])('have a text for each failure: $_tag', (error: AuthError, reason: string, why?: string) => {
    const branch = { failure: error._tag, reason, ...(why !== undefined && { why }) }
    expect(explained(error)['tried']).toStrictEqual([branch])
  })
})

describe('explain, if it is not set', () => {
  const inEnvironment = async (environment: string | undefined, options?: AuthSettings) => {
    vi.resetModules()
    vi.stubEnv('NODE_ENV', environment)
    onTestFinished(() => void vi.unstubAllEnvs().resetModules())
    const layer = await import('koa-with-auth')
    const guard = layer.withAuth(layer.httpBearer({ authenticate: (): boolean => false }))
    const { ask } = await operation(guard, (app) => void (options && app.use(layer.authSettings(options))))
    return Object.hasOwn(Object((await ask('/x')).body), 'tried')
  }

  it.each([
    ['development', true],
    ...['production', 'test', 'staging', 'Development', '', undefined].map((name) => [name, false] as const),
  ] as const)('is as in NODE_ENV=%s: %s', async (environment, explains) => {
    expect(await inEnvironment(environment)).toBe(explains)
    expect(await inEnvironment(environment, { realm: 'pets' })).toBe(explains)
    expect(await inEnvironment(environment, { explain: !explains })).toBe(!explains)
  })
})
