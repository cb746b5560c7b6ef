/** Express, Fastify and node:http, guarded by the helpers of the guide: each decision and each refusal is that of Koa. */
import { once } from 'node:events'
import { connect } from 'node:http2'
import { pipe } from 'fp-ts/lib/function.js'
import Router from '@koa/router'
import Koa from 'koa'
import {
  apiKeyHeader,
  authSettings,
  constantTimeEqual,
  httpBearer,
  owned,
  sessionAuth,
  UnavailableError,
  withAuth,
} from 'koa-with-auth'
import { on, type Decision } from 'koa-with-auth/events'
import { httpJwt } from 'koa-with-auth/jwt'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { sessions } from 'koa-with-auth/sessions'
import { testIssuer } from 'koa-with-auth/testing'
import { guardRequest } from 'koa-with-auth/upgrades'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { corpus, send, violationsOf, type CorpusCase, type Macros } from '../support/models/corpus.js'
import { corpusApp, macrosFor, operations as corpusOperations } from '../support/sites/corpusApp.js'
import {
  frameworks,
  makeHttp2,
  started,
  type Auth,
  type Framework,
  type Operation,
} from '../support/servers/otherFrameworks.js'
import { listen } from '../support/servers/server.js'
import { valuesOf, type RawAnswer } from '../support/servers/rawSocket.js'

// --- hostile requests

// what only a router, a document or a form has
const asked = corpus.cases.filter(
  ({ target, request: { path } }) =>
    !['path', 'docs', 'form'].includes(target) &&
    corpusOperations.some(([, of]) => typeof path !== 'string' || path.split('?')[0] === `/api${of}`),
)

const said = (answer: RawAnswer, isRefused: boolean) => ({
  status: answer.status,
  challenges: valuesOf(answer, 'WWW-Authenticate'),
  caching: valuesOf(answer, 'Cache-Control'),
  vary: valuesOf(answer, 'Vary'),
  type: isRefused ? valuesOf(answer, 'Content-Type') : [],
  body: isRefused ? answer.body : '',
})

const neverIn = [400, 404, 405, 414, 431, 'closed']

const isRefusal = ({ status }: RawAnswer) => typeof status === 'number' && status >= 400

describe.each(frameworks)('hostile requests at $name', ({ make }) => {
  const { app } = corpusApp()
  let calls = 0
  let koa: Awaited<ReturnType<typeof listen>>
  let site: Awaited<ReturnType<typeof started>>
  let macros: Macros

  beforeAll(async () => {
    koa = await listen(app)
    macros = await macrosFor(koa.url)
    const operations = corpusOperations.map(([method, path, auth]): Operation => ({
      method: method.toUpperCase(),
      path: `/api${path}`,
      guards: [auth],
      answer: ({ principal }, response) => {
        calls++
        response.end(JSON.stringify({ auth: principal }))
      },
    }))
    site = await started(await make(app, operations))
  })
  afterAll(() => Promise.all([koa.close(), site.close()]))

  it.each(asked.map((kase) => [kase.id, kase.why, kase] as const))('%s %s', async (_id, _why, kase: CorpusCase) => {
    const ofKoa = await send({ port: koa.port, macros, calls: () => 0 }, kase.request)
    const ground = { port: site.port, macros: { ...macros, host: `127.0.0.1:${site.port}` }, calls: () => calls }
    const answer = await send(ground, kase.request)
    // what no guard has answered is the affair of Node, or of the framework's router
    const isGuards = valuesOf(ofKoa, 'Cache-Control').length > 0 && ofKoa.status !== 404
    if (!isGuards) return expect([...neverIn, ofKoa.status]).toContain(answer.status)
    const isRefused = isRefusal(ofKoa)
    expect(said(answer, isRefused)).toEqual(said(ofKoa, isRefused))
    expect(await violationsOf(ground, { ...kase, expect: String(ofKoa.status) })).toEqual([])
  })
})

// --- the same decisions

const outcome = (name: string) =>
  apiKeyHeader({
    paramName: name,
    authenticate: (_request, said) => {
      if (said === 'down') throw new UnavailableError('down', { retryAfter: 7 })
      if (said === 'bug') throw new Error('bug')
      return said === 'good' && { by: name }
    },
  })
const list: Auth = [outcome('X-A'), outcome('X-B'), outcome('X-C')]

const outcomes = [undefined, 'bad', 'good', 'down', 'bug']
const table = outcomes.flatMap((a) => outcomes.flatMap((b) => outcomes.map((c) => ({ 'X-A': a, 'X-B': b, 'X-C': c }))))

const bearer = httpBearer({
  authenticate: (_request, token) => constantTimeEqual(token, 'supersecret') && { user: 'anna' },
})
const note = owned('note', {
  param: 'id',
  find: (id: string) => ({ id, owner: id === 'n1' ? 'anna' : 'bert' }),
  allow: ({ owner }, { user }: { user: string }) => owner === user,
})
const good = { authorization: 'Bearer supersecret' }

const served = async ({ make }: Framework, app: Koa, operations: ReadonlyArray<Operation>, before?: Fields) => {
  const site = await started(await make(app, operations, before))
  onTestFinished(site.close)
  const ask = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
    fetch(site.url + path, { headers, ...init })
  return { ...site, ask }
}
type Fields = Readonly<Record<string, string>>

const silent = () => {
  const app = new Koa({ keys: ['k'.repeat(32)] })
  app.silent = true
  return app
}
const get = (path: string, ...guards: Auth[]): Operation => ({ method: 'GET', path, guards })

describe.each(frameworks)('$name, guarded by guardRequest', (framework) => {
  it('decides about a list as Koa does, whatever its members say', async () => {
    const app = silent()
    app.use(authSettings({ realm: 'pets' }))
    const router = new Router()
    router.get('/api/list', withAuth(list), (ctx) => void (ctx.body = { auth: ctx.request.auth }))
    app.use(router.routes())
    const koa = await listen(app)
    onTestFinished(koa.close)
    const { ask } = await served(framework, app, [get('/api/list', list)])
    for (const sent of table) {
      const headers = JSON.parse(JSON.stringify(sent)) as Record<string, string>
      const [ofKoa, answer] = await Promise.all([fetch(`${koa.url}/api/list`, { headers }), ask('/api/list', headers)])
      const facts = async (one: Response) => {
        const names = ['www-authenticate', 'cache-control', 'vary', 'retry-after', 'content-length']
        const text = one.status === 200 ? (JSON.parse(await one.text()) as unknown) : await one.text()
        return [
          one.status,
          text,
          ...(one.status === 200 ? names.slice(0, 3) : names).map((name) => one.headers.get(name)),
        ]
      }
      expect(await facts(answer), JSON.stringify(sent)).toEqual(await facts(ofKoa))
    }
  })

  it('asks guards in the order of the helper, and the last principal counts', async () => {
    const { ask } = await served(framework, silent(), [get('/api/two', outcome('X-A'), bearer)])
    expect(await (await ask('/api/two', { ...good, 'X-A': 'good' })).json()).toEqual({ auth: { user: 'anna' } })
    const none = await ask('/api/two')
    expect([none.status, none.headers.get('www-authenticate')]).toEqual([
      401,
      'ApiKey realm="api", in="header", name="X-A"',
    ])
    expect((await ask('/api/two', { 'X-A': 'good' })).headers.get('www-authenticate')).toContain('Bearer')
    expect((await ask('/api/two', good)).status).toBe(401)
  })

  it('a hook that throws is the 500 of Koa, of which the application hears', async () => {
    const app = silent()
    const errors: unknown[] = []
    app.on('error', (error: Error) => errors.push(error.message))
    const { ask } = await served(framework, app, [get('/api/a', outcome('X-A'))])
    const answer = await ask('/api/a', { 'X-A': 'bug' })
    expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
      500,
      'text/plain; charset=utf-8',
      'Internal Server Error',
    ])
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(errors).toEqual(['bug'])
  })

  it('keeps the fields that were set before, and joins Vary', async () => {
    const before = { 'Access-Control-Allow-Origin': 'https://app.example', Vary: 'Origin', 'X-Request-Id': 'r1' }
    const { ask } = await served(framework, silent(), [get('/api/a', outcome('X-A'))], before)
    for (const headers of [{}, { 'X-A': 'bug' }] as const) {
      const answer = await ask('/api/a', headers)
      expect(answer.headers.get('vary')).toBe('Origin, X-A')
      expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example')
      expect(answer.headers.get('x-request-id')).toBe('r1')
    }
    const fine = await ask('/api/a', { 'X-A': 'good' })
    expect([fine.status, fine.headers.get('cache-control')]).toEqual([200, 'private, no-store'])
  })

  it('reads sessions: GET passes from another site, POST does not, and a sign-out ends it', async () => {
    const app = silent()
    app.use(authSettings({ trustedOrigins: ['https://app.example'] }))
    const { logIn, logOut } = sessions(app, { loadUser: (username) => ({ username }) })
    const router = new Router()
    router.post('/in', withAuth(null), async (ctx) => {
      await logIn(ctx, { username: 'anna' })
      ctx.body = 'ok'
    })
    router.post('/out', withAuth(sessionAuth()), async (ctx) => {
      await logOut(ctx)
      ctx.body = 'ok'
    })
    app.use(router.routes())
    const koa = await listen(app)
    onTestFinished(koa.close)
    const { headers } = await fetch(`${koa.url}/in`, { method: 'POST' })
    const cookie = headers
      .getSetCookie()
      .map((one) => one.split(';')[0])
      .join('; ')
    const operations = [get('/api/me', sessionAuth()), { ...get('/api/do', sessionAuth()), method: 'POST' }]
    const { ask } = await served(framework, app, operations)
    const evil = { origin: 'https://evil.example' }
    const me = await ask('/api/me', { cookie, ...evil })
    expect([me.status, me.headers.getSetCookie(), await me.json()]).toEqual([200, [], { auth: { username: 'anna' } }])
    const post = (more: Record<string, string>) => ask('/api/do', { cookie, ...more }, { method: 'POST' })
    expect((await post(evil)).status).toBe(403)
    expect((await post({ origin: 'https://app.example' })).status).toBe(200)
    expect((await post({ cookie: 'x=y' })).status).toBe(401)
    expect((await fetch(`${koa.url}/out`, { method: 'POST', headers: { cookie } })).status).toBe(200)
    expect((await ask('/api/me', { cookie })).status).toBe(401)
  })

  it('passes the parameters of the path to owned', async () => {
    const user = pipe(bearer, note)
    const { ask } = await served(framework, silent(), [get('/notes/:id', user)])
    if (framework.name === 'node:http') return
    expect(await (await ask('/notes/n1', good)).json()).toMatchObject({ objects: { note: { id: 'n1' } } })
    expect((await ask('/notes/n2', good)).status).toBe(404)
    expect((await ask('/notes/n1')).status).toBe(401)
  })

  it('ends what is open with its credential: a stream of a key that is revoked', async () => {
    const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
    const { key, id } = await keys.issue({ owner: 'anna' })
    const stream: Operation = {
      method: 'GET',
      path: '/api/stream',
      guards: [httpBearer({ authenticate: keys.authenticate })],
      answer: ({ signal }, response) => {
        signal.addEventListener('abort', () => response.end(String(signal.reason)))
        response.write('open ')
      },
    }
    const { ask } = await served(framework, silent(), [stream])
    const answer = await ask('/api/stream', { authorization: `Bearer ${key}` })
    expect(answer.status).toBe(200)
    await keys.revoke(id)
    expect(await answer.text()).toMatch(/^open AuthEndedError: .*revoked/)
    expect((await ask('/api/stream', { authorization: `Bearer ${key}` })).status).toBe(401)
  })

  it('takes a JWT, and a refusal names its scope', async () => {
    const { issuer, token, stop } = await testIssuer()
    onTestFinished(stop)
    const audience = 'https://api.example'
    const jwt = httpJwt({ issuer, audience })
    const { ask } = await served(framework, silent(), [get('/api/jwt', jwt)])
    const with_ = (text: string) => ask('/api/jwt', { authorization: `Bearer ${text}` })
    expect((await with_(token({ aud: audience, sub: 'anna' }))).status).toBe(200)
    expect((await with_(token({ aud: 'https://other.example' }))).headers.get('www-authenticate')).toContain(
      'error="invalid_token"',
    )
  })

  it('records a decision with the status that the client got, once', async () => {
    const records: Decision[] = []
    onTestFinished(on('decision', (record) => void records.push(record)))
    const teapot: Operation = {
      ...get('/api/a', outcome('X-A')),
      answer: (_admitted, response) => {
        response.statusCode = 418
        response.end()
      },
    }
    const { ask } = await served(framework, silent(), [teapot])
    await ask('/api/a')
    await ask('/api/a', { 'X-A': 'good' })
    await expect
      .poll(() => records.map(({ outcome, level, status }) => [outcome, level, status]))
      .toEqual([
        ['refused', 'request', 401],
        ['accepted', 'request', 418],
      ])
  })
})

// --- what only one of them has

describe('node:http2', () => {
  it('is guarded alike, and a refusal is written to its response', async () => {
    const app = silent()
    app.use(authSettings({ realm: 'pets' }))
    const site = await makeHttp2(app, [outcome('X-A'), bearer])
    const client = connect(site.url)
    onTestFinished(async () => {
      client.destroy()
      await site.close()
    })
    const ask = async (headers: Record<string, string>) => {
      const stream = client.request({ ':path': '/me', ...headers })
      const [fields] = (await once(stream, 'response')) as [Record<string, unknown>]
      let body = ''
      for await (const chunk of stream) body += String(chunk)
      return { status: fields[':status'], challenges: fields['www-authenticate'], vary: fields['vary'], body }
    }
    expect(await ask(good)).toMatchObject({ status: 200, body: '{"user":"anna"}', vary: 'x, X-A, Authorization' })
    expect(await ask({})).toMatchObject({
      status: 401,
      challenges: 'ApiKey realm="pets", in="header", name="X-A", Bearer realm="pets"',
      vary: 'x, X-A, Authorization',
    })
    expect(await ask({ 'x-a': 'bug' })).toMatchObject({ status: 500, body: 'Internal Server Error' })
  })
})

it('an option that is none, and a wrong one, are TypeErrors that name it', () => {
  expect(() => guardRequest(new Koa(), bearer, { methods: 'some' as 'all' })).toThrow(
    "guardRequest(app, a, { methods }) must be 'all' or 'sockets'",
  )
})
