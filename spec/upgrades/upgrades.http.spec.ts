/**
 * Upgrades follow the rules of operations: who is accepted, and that a refusal is the same as over HTTP, byte for byte.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import Koa, { type Request } from 'koa'
import mount from 'koa-mount'
import {
  anyOf,
  apiKeyCookie,
  AuthError,
  authSettings,
  httpBasicAuth,
  httpBearer,
  onError,
  optional,
  perFailure,
  throttled,
  withAuth,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { on, type Decision } from 'koa-with-auth/events'
import { guardUpgrade, type GuardUpgradeOptions } from 'koa-with-auth/upgrades'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { sendLines } from '../support/sites/guardedApp.js'
import { sendRaw, valuesOf, type RawAnswer } from '../support/servers/rawSocket.js'
import { stopped } from '../support/sites/eventsSite.js'
import { listenWithUpgrades, openUpgrade, sendUpgrade, upgradeBytes } from '../support/servers/upgradeServer.js'

class Handled extends Error {}

let asked: Request[] = []
let records: Decision[] = []
let end = () => {}
beforeEach(() => {
  asked = []
  records = []
  end = on('decision', (record) => records.push(record))
})
afterEach(() => end())

const bearer = httpBearer({
  authenticate: (request, token) => {
    asked.push(request)
    if (token === 'down') return E.left(AuthError.unavailable(7))
    if (token === 'old') return E.left(AuthError.expired)
    if (token === 'scope') return E.left(AuthError.insufficient(['read']))
    if (token === 'bug') throw new Error('a secret of the hook')
    if (token === 'handled') throw new Handled()
    if (token === 'hangs') return new Promise<false>(() => {})
    if (token.startsWith('gone')) {
      return new Promise<false | { user: string }>((resolve) => {
        request.ctx.res.once('close', () => resolve(token === 'gone' && { user: 'anna' }))
      })
    }
    if (token === 'slow') return new Promise<{ user: string }>((resolve) => setTimeout(resolve, 60, { user: 'anna' }))
    return token === 'good' && { user: 'anna' }
  },
})
const cookie = apiKeyCookie({ paramName: 'id', authenticate: (_request, key) => key === 'k1' && { user: 'anna' } })
const full = { consume: () => Promise.reject({ msBeforeNext: 9000 }), reward: async () => undefined }
const limited = throttled({ limiter: full })(httpBasicAuth({ authenticate: () => false }))
const settings = authSettings({
  realm: 'pets',
  timeout: 200,
  trustedOrigins: ['https://app.example'],
  onError: [onError(Handled, () => ({ status: 418, headers: { 'X-Tea': 'pot' }, body: { detail: 'tea' } }))],
  events: { subject: ({ user }: { user: string }) => user },
})

/** An application whose operation and whose upgrades have the same guard. */
const site = async (auth: AuthenticatorLike, options: GuardUpgradeOptions = {}) => {
  let calls = 0
  const app = new Koa().use(settings)
  app.silent = true
  const router = new Router()
  router.all('/live', withAuth(auth), (ctx) => void (ctx.body = `in ${++calls}`))
  app.use(router.routes())
  const guard = guardUpgrade(app, auth, options)
  return { ...(await listenWithUpgrades(app, () => guard)), calls: () => calls }
}

// With the three lines of an upgrade
const asManyAsNodeKeeps = Array<string>(997).fill('X: y')
const authorization = (token: string) => [`Authorization: Bearer ${token}`]
const switched = [
  ['connection', 'Upgrade'],
  ['upgrade', 'websocket'],
]
const comparable = ({ status, headers, body }: RawAnswer) => ({
  status,
  headers: headers.filter(([name]) => name !== 'date').sort(),
  body,
})

describe('an upgrade', () => {
  it('is accepted with the principal; its socket is not used, and what was sent ahead is kept', async () => {
    const { port, admitted, errors, calls } = await site(bearer)
    const answer = await sendUpgrade(port, 'GET /live', authorization('good'), 'sent ahead')
    expect(answer).toMatchObject({ status: 101, headers: switched, body: 'sent ahead' })
    expect({ admitted, errors, calls: calls() }).toEqual({ admitted: [{ user: 'anna' }], errors: [], calls: 0 })
  })

  const twice = [...authorization('good'), ...authorization('good')]
  const [unavailable, forged] = [{ outcome: 'unavailable' }, { outcome: 'forbidden' }] as const
  const late = { outcome: 'throttled', retryAfter: 9 } as const
  const sentBy = (line: string) => ['Cookie: id=k1', line]
  it.each<{
    readonly what: string
    readonly auth?: AuthenticatorLike
    readonly lines?: ReadonlyArray<string>
    readonly status: number
    readonly record: Partial<Decision>
  }>([
    { what: 'absent', lines: [], status: 401, record: { outcome: 'refused', failure: 'absent' } },
    { what: 'malformed', lines: authorization('?'), status: 401, record: { failure: 'malformed' } },
    { what: 'sent twice', lines: twice, status: 401, record: { failure: 'malformed' } },
    { what: 'invalid', lines: authorization('bad'), status: 401, record: { failure: 'invalid' } },
    { what: 'expired', lines: authorization('old'), status: 401, record: { failure: 'expired' } },
    { what: 'insufficient', lines: authorization('scope'), status: 403, record: { outcome: 'forbidden' } },
    { what: 'unavailable', lines: authorization('down'), status: 503, record: { ...unavailable, retryAfter: 7 } },
    { what: 'too slow', lines: authorization('hangs'), status: 503, record: unavailable },
    { what: 'raised', lines: authorization('bug'), status: 500, record: { outcome: 'raised', failure: 'raised' } },
    { what: 'handled', lines: authorization('handled'), status: 418, record: { outcome: 'raised' } },
    { what: 'throttled', auth: limited, lines: ['Authorization: Basic YTpi'], status: 429, record: late },
    { what: 'several kinds', auth: anyOf([bearer, cookie]), lines: [], status: 401, record: { outcome: 'refused' } },
    { what: 'forged', auth: cookie, lines: sentBy('Origin: https://evil.example'), status: 403, record: forged },
    { what: 'of another site', auth: cookie, lines: sentBy('Sec-Fetch-Site: same-site'), status: 403, record: forged },
    { what: 'cut off', lines: asManyAsNodeKeeps, status: 431, record: { outcome: 'refused' } },
  ])('that is refused ($what) has the response of HTTP, and one record', async (row) => {
    const { auth = bearer, lines = [], status, record } = row
    const { port, admitted, seen, calls } = await site(auth, { route: '/live' })
    const answer = await sendUpgrade(port, 'GET /live?token=secret', lines)
    expect(answer.status).toBe(status)
    await expect.poll(() => records.length).toBe(1)
    expect(records[0]).toMatchObject({ level: 'upgrade', method: 'GET', route: '/live', status, ...record })
    expect(JSON.stringify(records)).not.toContain('secret')
    // POST, because an upgrade is not safe; with the same number of lines
    const usual = await sendLines(port, 'POST /live', ['X: y', ...lines])
    expect(comparable(answer)).toEqual(comparable(usual))
    expect(valuesOf(answer, 'Connection')).toEqual(['close'])
    expect(valuesOf(answer, 'Set-Cookie')).toEqual([])
    expect([admitted, calls(), await seen[0]?.done]).toEqual([[], 0, undefined])
  })

  it.each([
    { auth: bearer, lines: authorization('good'), record: { outcome: 'accepted', subject: 'anna' } },
    { auth: optional(bearer), lines: [], record: { outcome: 'anonymous' } },
  ])('that is admitted has one record of status 101: $record', async ({ auth, lines, record }) => {
    const { port } = await site(auth, { route: '/live' })
    expect((await sendUpgrade(port, 'GET /live', lines)).status).toBe(101)
    await expect.poll(() => records.length).toBe(1)
    expect(records[0]).toMatchObject({ level: 'upgrade', method: 'GET', route: '/live', status: 101, ...record })
  })
})

describe('a hostile head of an upgrade', () => {
  it.each([
    { what: 'GET', target: 'GET /live', lines: [] },
    { what: 'HEAD', target: 'HEAD /live', lines: [] },
    { what: 'POST with a body', target: 'POST /live', lines: ['Content-Length: 5'] },
    { what: 'a chunked body', target: 'POST /live', lines: ['Transfer-Encoding: chunked'] },
    { what: 'a target with a host', target: 'GET http://evil.example/live', lines: [] },
    { what: 'an early hint of a body', target: 'POST /live', lines: ['Expect: 100-continue', 'Content-Length: 9'] },
  ])('gets one response, and what follows it is not read as a request ($what)', async ({ target, lines }) => {
    const { port, admitted, errors, calls } = await site(bearer)
    const next = `GET /live HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n`
    const answer = await sendUpgrade(port, target, lines, `1234\r\n${next}${next}`)
    expect(answer.status).toBe(401)
    expect(answer.body).not.toContain('HTTP/1.1')
    expect(answer.body === '').toBe(target.startsWith('HEAD'))
    expect({ admitted, errors, calls: calls() }).toEqual({ admitted: [], errors: [], calls: 0 })
    expect(asked).toEqual([])
  })

  it('from which Node dropped the field Upgrade is not safe either', async () => {
    const app = new Koa()
    const guard = guardUpgrade(app, cookie)
    const server = await listenWithUpgrades(app, () => async (request, socket, head) => {
      delete request.headers.upgrade
      return guard(request, socket, head)
    })
    const forged = ['Cookie: id=k1', 'Origin: https://evil.example']
    expect((await sendUpgrade(server.port, 'GET /live', forged)).status).toBe(403)
  })
})

describe('a client that disconnects', () => {
  it.each([
    { token: 'gone', record: { outcome: 'accepted', status: 499 } },
    { token: 'gone-bad', record: { outcome: 'refused', failure: 'invalid', status: 499 } },
  ])('during the decision ($token) is not an error, and leaves nothing', async ({ token, record }) => {
    const { port, seen, admitted, errors } = await site(bearer, { timeout: 5000 })
    const client = openUpgrade(port, 'GET /live', authorization(token))
    await expect.poll(() => asked.length).toBe(1)
    client.resetAndDestroy()
    expect(await seen[0]!.done).toBeUndefined()
    await expect.poll(() => records.length).toBe(1)
    expect(records[0]).toMatchObject(record)
    expect(seen[0]!.socket.destroyed).toBe(true)
    expect({ admitted, errors }).toEqual({ admitted: [], errors: [] })
  })

  it('only after it has sent everything gets its response', async () => {
    const { port } = await site(bearer)
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    let got = ''
    client.on('data', (chunk) => (got += chunk.toString()))
    client.end(upgradeBytes(port, 'GET /live', authorization('bad')))
    await once(client, 'close')
    expect(got).toMatch(/^HTTP\/1\.1 401 /)
  })
})

describe('a refused socket', () => {
  it('is closed when the client does not close it', async () => {
    stopped()
    const { port, seen } = await site(bearer)
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    client.write(upgradeBytes(port, 'GET /live'))
    client.resume()
    await once(client, 'end')
    const [{ socket }] = seen as [(typeof seen)[0]]
    vi.advanceTimersByTime(1999)
    expect(socket.destroyed).toBe(false)
    vi.advanceTimersByTime(1)
    expect(socket.destroyed).toBe(true)
    client.destroy()
  })

  it('gives its response to a client that reads it only after it has sent everything', async () => {
    const { port } = await site(bearer)
    const client = connect(port, '127.0.0.1').pause()
    client.on('error', () => {})
    let got = ''
    client.on('data', (chunk) => (got += chunk.toString()))
    client.pause()
    client.write(upgradeBytes(port, 'GET /live', authorization('bad'), 'x'.repeat(8_000_000)), () => client.resume())
    await new Promise((resolve) => client.once('close', resolve))
    expect(got).toMatch(/^HTTP\/1\.1 401 /)
  })
})

describe('what a hook writes at an upgrade', () => {
  const careless = httpBearer({
    authenticate: (request, token) => {
      const { ctx } = request
      ctx.cookies.set('leak', '1')
      ctx.set('X-Leak', '1')
      ctx.body = 'leak'
      ctx.status = 201
      ctx.respond = false
      ctx.res.statusMessage = 'leak'
      ctx.res.writeContinue()
      ctx.res.writeEarlyHints({ link: '</leak>' })
      ctx.res.writeHead(200, { 'X-Leak': '1' })
      ctx.res.flushHeaders()
      ctx.res.write('leak')
      ctx.res.end('leak')
      if (token === 'bug') throw new Error('leak')
      return token === 'good' && { user: 'anna' }
    },
  })

  it.each(['bad', 'bug'])('is not sent with a refusal (%s)', async (token) => {
    const { port } = await site(careless)
    const answer = await sendUpgrade(port, 'GET /live', authorization(token))
    const usual = await sendUpgrade((await site(bearer)).port, 'GET /live', authorization(token))
    expect(comparable(answer)).toEqual(comparable(usual))
  })

  it('is not sent to an accepted client', async () => {
    const { port } = await site(careless)
    const answer = await sendUpgrade(port, 'GET /live', authorization('good'), 'ahead')
    expect(comparable(answer)).toEqual({ status: 101, headers: switched, body: 'ahead' })
  })
})

describe('the application of an upgrade', () => {
  it('gives hooks the request of Koa, and runs only the middleware of its settings', async () => {
    let ran = 0
    const app = new Koa({ proxy: true, asyncLocalStorage: true })
    Object.assign(app.context, { database: 'here' })
    app.use((_ctx, next) => {
      ran++
      return next()
    })
    let current: unknown
    const auth = httpBearer({
      authenticate: (request) => {
        asked.push(request)
        current = app.currentContext
        return { user: 'anna' }
      },
    })
    const server = await listenWithUpgrades(app, () => guardUpgrade(app, auth))
    await sendUpgrade(server.port, 'GET /live/7?a=b', [...authorization('x'), 'X-Forwarded-For: 192.0.2.7', 'X-Own: 1'])
    const [request] = asked
    const { ctx } = request!
    const { method, path, query, ip } = request!
    expect([ctx.app, current, ctx['database'], ran]).toEqual([app, ctx, 'here', 0])
    expect([method, path, query['a'], ip, ctx.get('X-Own')]).toEqual(['GET', '/live/7', 'b', '192.0.2.7', '1'])
  })

  it('applies its settings, also those that are added later, and options add to them', async () => {
    const app = new Koa()
    const pay = { status: 402, headers: { 'Set-Cookie': 'a=b' }, body: 'pay' }
    const mapped = { errorMapper: perFailure({ absent: () => pay }) }
    const guards = { '/own': guardUpgrade(app, cookie), '/options': guardUpgrade(app, cookie, { realm: 'sockets' }) }
    app.use(authSettings({ realm: 'later', trustedOrigins: ['https://app.example'] }))
    const unsettled = new Koa()
    const server = await listenWithUpgrades(app, ({ url }) => guards[url as keyof typeof guards])
    const others = { '/': guardUpgrade(unsettled, cookie), '/mapped': guardUpgrade(unsettled, cookie, mapped) }
    const other = await listenWithUpgrades(unsettled, ({ url }) => others[url as keyof typeof others])
    const challengeAt = async (port: number, path: string) =>
      valuesOf(await sendUpgrade(port, `GET ${path}`), 'WWW-Authenticate').join()
    expect(await challengeAt(server.port, '/own')).toBe('ApiKey realm="later", in="cookie", name="id"')
    expect(await challengeAt(server.port, '/options')).toBe('ApiKey realm="sockets", in="cookie", name="id"')
    expect(await challengeAt(other.port, '/')).toBe('ApiKey realm="api", in="cookie", name="id"')
    const fromApp = ['Cookie: id=k1', 'Origin: https://app.example']
    expect((await sendUpgrade(server.port, 'GET /own', fromApp)).status).toBe(101)
    expect((await sendUpgrade(server.port, 'GET /options', fromApp)).status).toBe(101)
    expect((await sendUpgrade(other.port, 'GET /', fromApp)).status).toBe(403)
    const paid = await sendUpgrade(other.port, 'GET /mapped')
    expect([paid.status, paid.body, valuesOf(paid, 'Set-Cookie')]).toEqual([402, 'pay', []])
  })

  it('applies its own settings if it is mounted, and none of them to the application around it', async () => {
    const inner = new Koa().use(authSettings({ realm: 'inner' }))
    const outer = new Koa().use(authSettings({ realm: 'outer' })).use(mount('/inner', inner))
    const guards = { '/inner': guardUpgrade(inner, bearer), '/': guardUpgrade(outer, bearer) }
    const server = await listenWithUpgrades(outer, ({ url }) => guards[url as keyof typeof guards])
    for (const [path, realm] of Object.entries({ '/inner': 'inner', '/': 'outer' })) {
      const answer = await sendUpgrade(server.port, `GET ${path}`)
      expect(valuesOf(answer, 'WWW-Authenticate')).toEqual([`Bearer realm="${realm}"`])
    }
  })

  it('may have settings of another copy of the package than the guard', async () => {
    vi.resetModules()
    const copy = await import('koa-with-auth/upgrades')
    const { httpBearer: another } = await import('koa-with-auth')
    expect(copy.guardUpgrade).not.toBe(guardUpgrade)
    const app = new Koa().use(settings)
    const guards = {
      '/copy': copy.guardUpgrade(app, bearer, { route: '/copy' }),
      '/own': guardUpgrade(app, another({ authenticate: () => false }), { route: '/own' }),
    }
    const server = await listenWithUpgrades(app, ({ url }) => guards[url as keyof typeof guards])
    for (const path of ['/copy', '/own']) {
      const answer = await sendUpgrade(server.port, `GET ${path}`)
      expect([answer.status, valuesOf(answer, 'WWW-Authenticate')]).toEqual([401, ['Bearer realm="pets"']])
    }
    expect((await sendUpgrade(server.port, 'GET /copy', authorization('good'))).status).toBe(101)
    const seen = () => records.map(({ route, status }) => `${route} ${status}`)
    await expect.poll(seen).toEqual(['/copy 401', '/own 401', '/copy 101'])
  })
})

describe('a token among the subprotocols', () => {
  const protocols = (list: string) => `Sec-WebSocket-Protocol: ${list}`

  it.each([
    { what: 'one', lines: [protocols('chat, bearer.good')], status: 101 },
    { what: 'a wrong token', lines: [protocols('chat, bearer.bad')], status: 401 },
    { what: 'a malformed token', lines: [protocols('bearer.')], status: 401 },
    { what: 'two', lines: [protocols('bearer.good, bearer.good')], status: 401 },
    { what: 'two tokens, on two lines', lines: [protocols('bearer.good'), protocols('bearer.good')], status: 401 },
    { what: 'a token beside Authorization', lines: [protocols('bearer.good'), ...authorization('good')], status: 401 },
    { what: 'one beside another scheme', lines: [protocols('bearer.good'), 'Authorization: Basic YTpi'], status: 401 },
    { what: 'none', lines: [protocols('chat')], status: 401 },
    { what: 'no token beside Authorization', lines: [protocols('chat'), ...authorization('good')], status: 101 },
  ])('counts as Authorization: Bearer if the option is set ($what: $status)', async ({ what, lines, status }) => {
    const { port, admitted, seen, errors } = await site(bearer, { bearerProtocol: 'bearer.' })
    const answer = await sendUpgrade(port, 'GET /live', lines)
    expect(answer.status).toBe(status)
    expect(JSON.stringify(answer)).not.toContain('good')
    expect(asked.length).toBe(status === 101 || what === 'a wrong token' ? 1 : 0)
    expect({ admitted: admitted.length, errors }).toEqual({ admitted: status === 101 ? 1 : 0, errors: [] })
    // Afterwards the request is as it was sent
    await seen[0]!.done
    const sent = lines.filter((line) => line.startsWith('Authorization: ')).map((line) => line.split(': '))
    const left = Object.entries(seen[0]!.request.headers).filter(([name]) => name === 'authorization')
    expect(left.map(([, value]) => ['Authorization', value])).toEqual(sent)
  })

  it('is not read without the option', async () => {
    const { port } = await site(bearer)
    expect((await sendUpgrade(port, 'GET /live', [protocols('bearer.good')])).status).toBe(401)
    expect(asked).toEqual([])
  })
})

describe('a connection with several requests', () => {
  it('can be upgraded after other requests, also if one was refused before', async () => {
    const { port, admitted } = await site(bearer)
    const client = connect(port, '127.0.0.1')
    let got = ''
    client.on('data', (chunk) => (got += chunk.toString()))
    client.write(`GET /live HTTP/1.1\r\nHost: x\r\n\r\n`)
    await expect.poll(() => got).toMatch(/^HTTP\/1\.1 401/)
    await expect.poll(() => got).toContain('"detail":"Unauthorized"}')
    got = ''
    client.write(upgradeBytes(port, 'GET /live', authorization('good')))
    await once(client, 'close')
    expect(got).toMatch(/^HTTP\/1\.1 101/)
    expect(admitted).toEqual([{ user: 'anna' }])
  })

  // RFC 9112 §9.3.2: responses come in the order of the requests
  it('is closed if an earlier request has no response yet, and the hook is not called', async () => {
    const slow = httpBearer({ authenticate: () => new Promise<false>((resolve) => setTimeout(resolve, 100, false)) })
    const { port, seen, admitted, errors } = await site(slow)
    const earlier = `GET /live HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n`
    const answer = await sendRaw(port, earlier + upgradeBytes(port, 'GET /live', authorization('good')))
    expect(answer.status).toBe('closed')
    expect(await seen[0]!.done).toBeUndefined()
    expect({ admitted, errors }).toEqual({ admitted: [], errors: [] })
  })
})
