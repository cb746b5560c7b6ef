/** What each framework does that `guardRequest` guards: the same as Koa. */
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
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { authHeaders, corpus, send, violationsOf, type CorpusCase, type Macros } from '../models/corpus.js'
import { corpusApp, macrosFor, operations as corpusOperations } from '../sites/corpusApp.js'
import { started, type Auth, type Framework, type Operation } from './otherFrameworks.js'
import { cookiesIn, listen } from './server.js'
import { valuesOf, type RawAnswer } from './rawSocket.js'

// --- hostile requests

// what only a router, a document or a form has
const asked = corpus.cases.filter(
  ({ target, request: { path } }) =>
    !['path', 'docs', 'form'].includes(target) &&
    corpusOperations.some(([, of]) => typeof path !== 'string' || path.split('?')[0] === `/api${of}`),
)

const said = (answer: RawAnswer, isRefused: boolean) => ({
  ...authHeaders(answer),
  type: isRefused ? valuesOf(answer, 'Content-Type') : [],
  body: isRefused ? answer.body : '',
})

const neverIn = [400, 404, 405, 414, 431, 'closed']

/** Every request of the corpus gets the answer of Koa, over raw sockets. */
export const describeHostile = ({ name, make }: Framework) =>
  describe(`hostile requests at ${name}`, () => {
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
      const isRefused = Number(ofKoa.status) >= 400
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
const note = (refuse?: 403) =>
  owned('note', {
    param: 'id',
    refuse,
    find: (id: string) => id !== 'none' && { id, owner: id === 'n1' ? 'anna' : 'bert' },
    allow: ({ owner }, { user }: { user: string }) => owner === user,
  })
const good = { authorization: 'Bearer supersecret' }

const served = async (
  { make, fetch: sending = fetch }: Framework,
  app: Koa,
  operations: ReadonlyArray<Operation>,
  before?: Fields,
) => {
  const site = await started(await make(app, operations, before))
  onTestFinished(site.close)
  const ask = (path: string, headers: Record<string, string> = {}, init: { method?: string } = {}) =>
    sending(site.url + path, { headers, ...init })
  return { ...site, ask }
}
type Fields = Readonly<Record<string, string>>

const silent = () => {
  const app = new Koa({ keys: ['k'.repeat(32)] })
  app.silent = true
  return app
}
const get = (path: string, ...guards: Auth[]): Operation => ({ method: 'GET', path, guards })

/** Decisions and refusals are those of Koa. */
export const describeDecisions = (framework: Framework) =>
  describe(`${framework.name}, guarded by guardRequest`, () => {
    it('decides about a list as Koa does, whatever its members say', async () => {
      const app = silent()
      app.use(authSettings({ realm: 'pets' }))
      const router = new Router()
      router.get('/api/list', withAuth(list), (ctx) => void (ctx.body = { auth: ctx.request.auth }))
      app.use(router.routes())
      const koa = await listen(app)
      const { ask } = await served(framework, app, [get('/api/list', list)])
      for (const sent of table) {
        const headers = JSON.parse(JSON.stringify(sent)) as Record<string, string>
        const [ofKoa, answer] = await Promise.all([
          fetch(`${koa.url}/api/list`, { headers }),
          ask('/api/list', headers),
        ])
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
      const { headers } = await fetch(`${koa.url}/in`, { method: 'POST' })
      const cookie = cookiesIn(headers)
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

    const parameters = framework.hasNoParameters === true ? [] : ['the path']
    it.each(parameters)('passes the parameters of %s to owned', async () => {
      const operations = [get('/notes/:id', pipe(bearer, note())), get('/open/:id', pipe(bearer, note(403)))]
      const { ask } = await served(framework, silent(), operations)
      expect(await (await ask('/notes/n1', good)).json()).toMatchObject({ objects: { note: { id: 'n1' } } })
      const answers = [
        ['/notes/n1', {}, 401],
        ['/notes/n2', good, 404],
        ['/notes/n%31', good, 200],
        ['/open/n1', {}, 401],
        ['/open/n2', good, 403],
        ['/open/none', good, 404],
      ] as const
      for (const [path, headers, status] of answers)
        expect([path, (await ask(path, headers)).status]).toEqual([path, status])
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
