/** Decisions as records: each guarded request has one, which agrees with its response and contains no credential. */
import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import { Readable } from 'node:stream'
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import Koa from 'koa'
import session from 'koa-session'
import {
  allOf,
  also,
  anyOf,
  apiApp,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  AuthError,
  authorize,
  authSettings,
  Challenge,
  httpBasicAuth,
  cached,
  httpBearer,
  onError,
  optional,
  owned,
  sessionAuth,
  throttled,
  withAuth,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { firstPresent, map } from 'koa-with-auth/fp'
import { on, type Decision } from 'koa-with-auth/events'
import { httpJwt } from 'koa-with-auth/jwt'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { listen } from '../support/servers/server.js'
import { sendLines } from '../support/sites/guardedApp.js'
import { recordPublic } from '../../src/koa/watching.js'
import { schemaOf } from '../support/runs/eventRecords.js'
import { stoppedClock } from '../support/runs/clock.js'

const SECRET = 's3cr3t-cr3d3nt1al'

class Broken extends Error {}
class Handled extends Error {}

const bearer = httpBearer({
  schemeName: 'userToken',
  authenticate: (_request, token) => {
    if (token.endsWith('down')) return E.left(AuthError.unavailable(7))
    if (token.endsWith('old')) return E.left(AuthError.expired)
    if (token.endsWith('bug')) throw new Broken(token)
    if (token.endsWith('handled')) throw new Handled(token)
    return token.endsWith('good') && { user: 'anna', token }
  },
})
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => sent.endsWith('k1') && { client: 7 } })
const cookie = apiKeyCookie({ paramName: 'id', authenticate: () => ({ user: 'anna' }) })
// Says that it was asked, and answers after that
let asked = async (_response: ServerResponse): Promise<unknown> => undefined
const slow = httpBearer({ authenticate: (request) => asked(request.ctx.res).then(() => ({ user: 'anna' })) })
const hangs = httpBearer({ authenticate: () => new Promise(() => {}) })
const basic = httpBasicAuth({ authenticate: () => false })
const full = { consume: () => Promise.reject({ msBeforeNext: 9000 }), reward: async () => undefined }

const routes: Readonly<Record<string, AuthenticatorLike | [AuthenticatorLike, ...AuthenticatorLike[]]>> = {
  '/bearer/:id': bearer,
  '/any': anyOf({ user: bearer, client: key }),
  '/first': firstPresent([key, bearer]),
  '/all': allOf([key, bearer]),
  '/either': anyOf([allOf([key, basic]), bearer]),
  '/pairs': anyOf([allOf([cookie, key]), allOf([bearer, key])]),
  '/two': [
    httpBearer({ schemeName: 'one', authenticate: () => false }),
    httpBearer({ schemeName: 'other', authenticate: () => E.left(AuthError.expired) }),
  ],
  '/optional': optional(bearer),
  '/scoped': authorize(() => false)(bearer),
  '/cookie': cookie,
  '/slow': slow,
  '/hangs': hangs,
  '/throttled': throttled({ limiter: full })(basic),
  '/cached': httpBearer({
    authenticate: cached((_request, token: string) => token.endsWith('good') && { user: 'anna' }, { maxAge: 60_000 }),
  }),
  '/mapped': map(() => 'somebody')(bearer),
  '/query': apiKeyQuery({ authenticate: () => false }),
  '/pair': httpBasicAuth({ authenticate: (_request, name) => ({ name }) }),
  '/own': authenticator({
    schemeName: 'ownKind',
    challenge: Challenge.make('Own'),
    ambient: false,
    scheme: { type: 'apiKey', in: 'header', name: 'X-Own' },
    extract: (request) => O.fromNullable(request.get('X-Own') || undefined),
    authenticate: (_request, value) => ({ value }),
  }),
  '/session': sessionAuth(),
  '/jwt': httpJwt({ issuer: { issuer: 'https://login.example', secret: 's'.repeat(32) }, audience: 'api' }),
  '/function': (request) => request.get('X-Key') !== '',
  '/acting': httpBearer({ authenticate: () => ({ user: 'anna', act: { sub: '', client_id: 'agent' } }) }),
  '/assisted': httpBearer({ authenticate: () => ({ user: 'anna', act: 'carl' }) }),
  '/via': anyOf([map(() => ({ via: 'a proxy' }))(bearer), key]),
  '/notes/:id': owned('note', { param: 'id', find: (id) => id !== 'n0' && id, allow: (id) => id === 'n2' })(bearer),
}

const make = (subject?: (principal: never) => string) => {
  const router = new Router()
  const enter = (ctx: Koa.Context) => void (ctx.body = 'in')
  for (const [path, auth] of Object.entries(routes))
    router.all(path, Array.isArray(auth) ? withAuth(auth) : withAuth(auth), enter)
  router.get('/stream', withAuth(bearer), (ctx) => void (ctx.body = Readable.from(['a', 'b'])))
  router.get('/takes-an-hour', withAuth(bearer), (ctx) => {
    vi.advanceTimersByTime(3_600_000)
    ctx.body = 'in'
  })
  router.get('/throws', withAuth(bearer), () => {
    throw new Error('handler')
  })
  const failing = async function* () {
    yield await Promise.resolve('a')
    throw new Error('stream')
  }
  router.get('/broken', withAuth(bearer), (ctx) => void (ctx.body = Readable.from(failing())))
  router.get('/raw', withAuth(bearer), (ctx) => {
    ctx.respond = false
    ctx.res.writeHead(207).end('in')
  })
  router.get('/never', withAuth(bearer), ({ res }) => {
    void asked(res)
    return new Promise(() => {})
  })
  router.get('/public', withAuth(null), enter).get('/undecided', enter)
  const inner = withAuth(bearer)(new Router({ prefix: '/inner' }))
  inner.get('/x', enter).get('/both', withAuth(also(key)), enter)
  router.use(inner.routes())
  const app = new Koa()
  app.silent = true
  const handlers = [onError(Handled, () => ({ status: 418, body: {} }))]
  app.use(authSettings({ timeout: 2000, onError: handlers, ...(subject !== undefined && { events: { subject } }) }))
  // Only these operations have koa-session, so that its failure affects no other
  app.keys = ['a signing key of at least 32 characters']
  const withSession = session({ sameSite: 'lax' }, app)
  app.use((ctx, next) => (ctx.path === '/session' ? withSession(ctx, next) : next()))
  app.use(router.routes())
  return app
}

let records: Decision[] = []
let end = () => {}
beforeEach(() => {
  records = []
  end = on('decision', (record) => records.push(record))
})
afterEach(() => end())

const authorization = (token: string) => `Authorization: Bearer ${SECRET}${token}`
const validate = schemaOf('decision')

/** Sends one request, and reads its record. */
const recordOf = async (target: string, lines: ReadonlyArray<string> = [], app = make()) => {
  const answer = await sendLines((await listen(app)).port, target, lines)
  await expect.poll(() => records.length).toBe(1)
  return { answer, record: records[0]! }
}
const good = [authorization('good')]

const outage = 'unavailable'
const both = 'userToken + apiKeyHeader_X-Key'
const withBoth = [`X-Key: ${SECRET}k1`, authorization('good')]
const failed = (scheme: string, failure = 'invalid') => ({ scheme, failure })
const forged = ['Cookie: id=1', 'Sec-Fetch-Site: cross-site']
const byKey = [authorization('wrong'), `X-Key: ${SECRET}k1`]
const firstOnly = [failed('apiKeyHeader_X-Key'), { ...failed('userToken', 'absent'), skipped: true }]
const refusedByBoth = [failed('userToken', 'absent'), failed('apiKeyHeader_X-Key', 'absent')]
const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>, object]> = [
  ['GET /bearer/1', good, { outcome: 'accepted', scheme: 'userToken', status: 200 }],
  ['GET /bearer/1', [], { outcome: 'refused', failure: 'absent', scheme: 'userToken', status: 401 }],
  ['GET /bearer/1', ['Authorization: Bearer ?'], { outcome: 'refused', failure: 'malformed', status: 401 }],
  ['GET /bearer/1', [authorization('wrong')], { outcome: 'refused', failure: 'invalid', status: 401 }],
  ['GET /bearer/1', [authorization('old')], { outcome: 'refused', failure: 'expired', status: 401 }],
  ['GET /bearer/1', [authorization('down')], { failure: 'unavailable', retryAfter: 7, status: 503, outcome: outage }],
  ['GET /bearer/1', [authorization('bug')], { outcome: 'raised', failure: 'raised', status: 500 }],
  ['GET /bearer/1', [authorization('handled')], { outcome: 'raised', failure: 'raised', status: 418 }],
  ['GET /scoped', good, { outcome: 'forbidden', failure: 'insufficient', status: 403 }],
  ['POST /cookie', forged, { outcome: 'forbidden', failure: 'forged', scheme: 'cookie_id', status: 403 }],
  ['GET /throttled', ['Authorization: Basic YTpi'], { outcome: 'throttled', retryAfter: 9, status: 429 }],
  ['GET /optional', [], { outcome: 'anonymous', status: 200 }],
  ['GET /optional', good, { outcome: 'accepted', status: 200 }],
  ['GET /any', [], { outcome: 'refused', failure: 'absent', branches: refusedByBoth, status: 401 }],
  ['GET /any', byKey, { outcome: 'accepted', scheme: 'apiKeyHeader_X-Key', via: 'client', status: 200 }],
  ['GET /first', [`X-Key: ${SECRET}`, authorization('good')], { failure: 'invalid', branches: firstOnly }],
  ['GET /all', withBoth, { outcome: 'accepted', scheme: 'apiKeyHeader_X-Key + userToken' }],
  ['GET /either', withBoth, { outcome: 'accepted', scheme: 'userToken' }],
  ['GET /pairs', withBoth, { outcome: 'accepted', scheme: both }],
  ['GET /two', [authorization('x')], { failure: 'expired', branches: [failed('one'), failed('other', 'expired')] }],
  ['GET /mapped', good, { outcome: 'accepted', scheme: 'userToken' }],
  ['GET /function', ['X-Key: 1'], { outcome: 'accepted', scheme: 'custom' }],
  ['GET /hangs', good, { outcome: 'unavailable', status: 503 }],
  ['GET /public', [], { outcome: 'public', status: 200 }],
  ['GET /stream', good, { outcome: 'accepted', status: 200 }],
  ['GET /throws', good, { outcome: 'accepted', status: 500 }],
  ['GET /broken', good, { outcome: 'accepted', status: 200 }],
  ['GET /raw', good, { outcome: 'accepted', status: 207 }],
  ['HEAD /bearer/1', good, { outcome: 'accepted', method: 'HEAD', status: 200 }],
  ['HEAD /bearer/1', [], { outcome: 'refused', method: 'HEAD', status: 401 }],
  ['GET /inner/x', good, { outcome: 'accepted', level: 'router /inner', route: '/inner/x' }],
  ['GET /inner/both', withBoth, { outcome: 'accepted', scheme: both, level: 'router /inner + operation' }],
  ['GET /query', [], { outcome: 'refused', failure: 'absent', scheme: 'apiKeyQuery_key', level: 'operation' }],
  ['GET /pair', ['Authorization: Basic YTpi'], { outcome: 'accepted', scheme: 'basic', level: 'operation' }],
  ['GET /own', ['X-Own: 1'], { outcome: 'accepted', scheme: 'ownKind', level: 'operation' }],
  ['GET /session', [], { outcome: 'refused', failure: 'absent', scheme: 'cookie_koa.sess', level: 'operation' }],
  ['GET /jwt', [authorization('x')], { outcome: 'refused', failure: 'malformed', scheme: 'bearer_JWT', status: 401 }],
]

describe('one record for each guarded request', () => {
  it.each(cases)('%s %j: %j', async (target, lines, expected) => {
    const { answer, record } = await recordOf(`${target}?secret=${SECRET}`, lines)
    expect(record).toMatchObject(expected)
    // The record agrees with the response
    expect(record.status).toBe(answer.status)
    expect(record.method).toBe(target.split(' ')[0])
    // The pattern of the route, never the path
    expect(record.route).toBe(target.split(' ')[1]!.replace('/bearer/1', '/bearer/:id'))
    expect(record.durationMs).toBeGreaterThanOrEqual(0)
    // No byte of a credential is in the record, and it fits the schema
    expect(JSON.stringify(record)).not.toContain(SECRET)
    expect(validate(record), JSON.stringify(validate.errors)).toBe(true)
    expect(Object.isFrozen(record)).toBe(true)
    for (const branch of record.branches ?? []) expect(Object.isFrozen(branch)).toBe(true)
    expect(Object.isFrozen(record.branches ?? Object.freeze([]))).toBe(true)
  })

  it('a request whose response has ended has no other record, although it goes on to another guard', () => {
    const request = new IncomingMessage(new Socket())
    const ctx = new Koa().createContext(request, new ServerResponse(request))
    recordPublic(ctx, ['operation'])
    ctx.res.emit('finish')
    recordPublic(ctx, ['operation'])
    ctx.res.emit('close')
    expect(records).toMatchObject([{ outcome: 'public', level: 'operation' }])
  })

  it('a principal that only looks like a member of a list has none in its record', async () => {
    const { record } = await recordOf('GET /via', good)
    expect(record).toMatchObject({ outcome: 'accepted', status: 200 })
    expect(record).not.toHaveProperty('via')
  })

  it('a record says of an object that refused whether it was found', async () => {
    const said: unknown[] = []
    for (const id of ['n0', 'n1', 'n2']) {
      const { record } = await recordOf(`GET /notes/${id}`, good)
      said.push([record.status, record.object, record.found])
      records = []
    }
    expect(said).toStrictEqual([
      [404, 'note', undefined],
      [404, 'note', true],
      [200, undefined, undefined],
    ])
  })

  it('each guarded request of a keep-alive connection has one record; undecided routes and unknown paths have none', async () => {
    const { url } = await listen(make())
    for (const path of ['/bearer/1', '/undecided', '/nowhere', '/bearer/2']) await fetch(url + path)
    await expect.poll(() => records.length).toBe(2)
    expect(records.map(({ status }) => status)).toStrictEqual([401, 401])
  })

  it.each(['/slow', '/never'])('a request whose client leaves has one record, of status 499: %s', async (path) => {
    const socket = connect((await listen(make())).port, '127.0.0.1')
    asked = (response) => {
      socket.destroy()
      return once(response, 'close')
    }
    onTestFinished(() => void (asked = async () => undefined))
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization('good')}\r\n\r\n`)
    await expect.poll(() => records.length).toBe(1)
    expect(records).toMatchObject([{ outcome: 'accepted', route: path, status: 499 }])
  })

  it('a request with as many header lines as Node keeps has a record: refused, 431', async () => {
    // 1000 with Host and Connection. Newer versions of Node refuse more themselves, before any application.
    const lines = Array.from({ length: 998 }, (_, at) => `X-${at}: 1`)
    const { record } = await recordOf('GET /bearer/1', lines)
    expect(record).toMatchObject({ outcome: 'refused', failure: 'malformed', status: 431 })
  })

  it('the record of a verification that was kept says so, from the second request on', async () => {
    const { port } = await listen(make())
    for (let at = 0; at < 2; at++) await sendLines(port, 'GET /cached', good)
    await expect.poll(() => records.length).toBe(2)
    expect(records.map(({ cached }) => cached)).toStrictEqual([undefined, true])
  })

  it('the duration is that of the decision, not of the handler', async () => {
    const clock = stoppedClock()
    asked = async () => clock.move(70.5)
    onTestFinished(() => void (asked = async () => undefined))
    const { record } = await recordOf('GET /slow', good)
    expect(record.durationMs).toBe(70.5)
    records = []
    const { record: quick } = await recordOf('GET /takes-an-hour', good)
    expect(quick).toMatchObject({ durationMs: 0, status: 200 })
  })

  it('the level of an apiApp is the application', async () => {
    const api = apiApp({ title: 'x', version: '1', auth: bearer })
    api.get('/x', (ctx) => void (ctx.body = 'in'))
    const app = new Koa()
    app.use(api.routes())
    const { record } = await recordOf('GET /x', good, app)
    expect(record).toMatchObject({ level: 'application', route: '/x', status: 200 })
  })
})

describe('the subject of a record', () => {
  const subject = ({ user }: { user: string }) => user
  it('is left out by default', async () => {
    const { record } = await recordOf('GET /bearer/1', good)
    expect(JSON.stringify(record)).not.toContain('anna')
  })

  it('is what the setting returns for the principal', async () => {
    const { record } = await recordOf('GET /bearer/1', good, make(subject))
    expect(record).toMatchObject({ subject: 'anna' })
  })

  it.each(Object.entries({ '/acting': 'agent', '/assisted': 'carl' }))(
    'comes with its actor: %s',
    async (path, actor) => {
      const { record } = await recordOf(`GET ${path}`, good, make(subject))
      expect(record).toMatchObject({ subject: 'anna', actor })
    },
  )

  it('is left out for anonymous callers: the setting is not asked', async () => {
    const app = make(() => 'somebody')
    const { record } = await recordOf('GET /optional', [], app)
    expect(record).toMatchObject({ outcome: 'anonymous', status: 200 })
    expect(record).not.toHaveProperty('scheme')
    expect(record).not.toHaveProperty('subject')
  })

  it.each<[string, (principal: never) => string]>([
    ['throws', () => raise()],
    ['returns a number', () => 7 as never],
  ])('is left out if the setting %s, and the response stays the same', async (_name, subject) => {
    const { answer, record } = await recordOf('GET /bearer/1', good, make(subject))
    expect(answer.status).toBe(200)
    expect(record).not.toHaveProperty('subject')
  })
  const raise = (): never => {
    throw new Error('subject')
  }

  it.each([
    [{ events: 7 }, /authSettings\({ events }\)/],
    [{ events: { who: () => '' } }, /no option "who"/],
    [{ events: {} }, /authSettings\({ events: { subject } }\) must be a function/],
    [{ events: { subject: () => '', actor: 'sam' } }, /authSettings\({ events: { actor } }\) must be a function/],
  ])('is a TypeError for the setting %j', (options, expected) => {
    expect(() => authSettings(options as never)).toThrow(expected)
  })
})
