/** `guardRequest`: requests that never reach Koa, such as the long polling of Socket.IO, are decided like operations. */
import { once } from 'node:events'
import { createServer, ServerResponse } from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import Koa, { type Request } from 'koa'
import { apiKeyCookie, authSettings, formAuth, httpBearer, UnavailableError, type AuthSettings } from 'koa-with-auth'
import { on as onEvent, type Decision } from 'koa-with-auth/events'
import { mockRequest } from 'koa-with-auth/testing'
import { guardRequest, type GuardRequestOptions } from 'koa-with-auth/upgrades'
import { Server } from 'socket.io'
import { io } from 'socket.io-client'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { exchangeOf } from '../../src/core/Exchange.js'
import { listening } from '../support/servers/server.js'

const hook = vi.fn((_request: unknown, token: string) => {
  if (token === 'down') throw new UnavailableError('down')
  if (token === 'bug') throw new Error('bug')
  return token === 'good' && { user: 'anna' }
})
const bearer = httpBearer({ authenticate: hook })
const cookie = apiKeyCookie({ paramName: 'key', authenticate: (_request, key) => key === 'k1' && { user: 'bert' } })

const socketIo = async (trustedOrigins: string[] = []) => {
  const app = new Koa()
  app.silent = true
  app.use(authSettings({ realm: 'chat', trustedOrigins }))
  const reached = vi.fn()
  app.use(reached)
  const guard = guardRequest(app, [bearer, cookie])
  const admitted: unknown[] = []
  const handle = app.callback()
  const server = createServer((request, response) => void handle(request, response))
  const sockets = new Server(server, {
    allowRequest: (request, allow) =>
      void guard(request).then(({ principal, refused }) => {
        if (principal !== undefined) admitted.push(principal)
        allow(refused && String(refused.status), refused === undefined)
      }),
  })
  const url = `http://127.0.0.1:${await listening(server)}`
  onTestFinished(() => sockets.close())
  const poll = async (headers: Record<string, string> = {}) =>
    fetch(`${url}/socket.io/?EIO=4&transport=polling`, { headers })
  return { url, poll, admitted, reached }
}

const good = { authorization: 'Bearer good' }
const requestOf = (...tokens: ReadonlyArray<string>) =>
  mockRequest({ fields: [['Host', 'a'], ...tokens.map((token) => ['Authorization', `Bearer ${token}`] as const)] }).req
const recorded = () => {
  const records: Decision[] = []
  onTestFinished(onEvent('decision', (record) => void records.push(record)))
  return records
}

describe('Socket.IO', () => {
  it.each(['polling', 'websocket'] as const)('connects with a credential by %s, and not without', async (transport) => {
    const { url, admitted } = await socketIo()
    const client = io(url, { transports: [transport], extraHeaders: good, reconnection: false })
    onTestFinished(() => void client.disconnect())
    await once(client as never, 'connect')
    expect(admitted).toContainEqual({ user: 'anna' })
    const stranger = io(url, { transports: [transport], reconnection: false, forceNew: true })
    onTestFinished(() => void stranger.disconnect())
    await once(stranger as never, 'connect_error')
    expect(stranger.connected).toBe(false)
  })

  it('long polling without a credential, with a wrong one and in an outage is refused, and never reaches Koa', async () => {
    const { poll, admitted, reached } = await socketIo()
    for (const [token, said] of Object.entries({ '': '401', bad: '401', down: '503', bug: '500' })) {
      const answer = await poll(token === '' ? {} : { authorization: `Bearer ${token}` })
      expect(answer.status).toBe(403)
      expect(await answer.text()).toContain(said)
    }
    expect(admitted).toEqual([])
    expect(reached).not.toHaveBeenCalled()
    expect((await poll(good)).status).toBe(200)
  })

  it('a cookie counts only if no other site caused the request, although polling begins with a GET', async () => {
    const { poll, url, admitted } = await socketIo(['https://app.example'])
    const sent = { cookie: 'key=k1' }
    expect((await poll({ ...sent, origin: 'https://evil.example' })).status).toBe(403)
    expect((await poll({ ...sent, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect(admitted).toEqual([])
    expect((await poll({ ...sent, origin: url })).status).toBe(200)
    expect((await poll({ ...sent, origin: 'https://app.example' })).status).toBe(200)
    expect(admitted).toEqual([{ user: 'bert' }, { user: 'bert' }])
  })
})

it('a refusal is what Koa would have answered, and the request is not changed', async () => {
  const records = recorded()
  const request = requestOf()
  const before = { ...request.headers }
  const app = new Koa()
  app.use(authSettings({ realm: 'chat' }))
  const { refused } = await guardRequest(app, bearer)(request)
  expect(records).toMatchObject([{ outcome: 'refused', level: 'request', status: 401 }])
  expect(refused).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer realm="chat"' } })
  expect(JSON.parse(refused?.body as string)).toMatchObject({ status: 401, detail: 'Unauthorized' })
  expect(request.headers).toEqual(before)
})

it('a request whose client had gone before it was decided has a record, too', async () => {
  const records = recorded()
  const guard = guardRequest(new Koa(), bearer, { methods: 'all' })
  const decided = vi.fn()
  const server = http2.createServer((request) => {
    request.stream.destroy()
    request.stream.once('close', () => void guard(request).then(decided, decided))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const client = http2.connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => void client.close())
  client.request(good).on('error', () => {})
  await vi.waitFor(() => expect(decided).toHaveBeenCalledOnce())
  expect(decided).toHaveBeenCalledWith(expect.objectContaining({ principal: { user: 'anna' } }))
  expect(records).toMatchObject([{ outcome: 'accepted', status: 499 }])
})

describe('the answer to a refused request', () => {
  const answered = async (options?: GuardRequestOptions, settings: AuthSettings = {}) => {
    const req = requestOf()
    const { refused } = await guardRequest(new Koa().use(authSettings(settings)), bearer, options)(req)
    const response = new ServerResponse(req)
    const failed = vi.fn()
    response.on('error', failed)
    return { refused: refused!, response, failed }
  }

  it('replaces the fields that describe the body, joins lists of fields, and sets no cookie', async () => {
    const headers = { 'Access-Control-Expose-Headers': 'X-Why', 'Set-Cookie': 'a=b' }
    const mapper = () => ({ status: 403, headers, body: 'no' })
    const { refused, response } = await answered({ methods: 'all' }, { errorMapper: mapper })
    response.statusMessage = 'Fine'
    for (const name of ['Content-Encoding', 'ETag', 'Last-Modified', 'WWW-Authenticate', 'Transfer-Encoding'])
      response.setHeader(name, 'old')
    response.setHeader('Access-Control-Expose-Headers', 'X-Own')
    response.setHeader('X-Request-Id', 'r1')
    refused.send(response)
    expect([response.statusCode, response.statusMessage]).toStrictEqual([403, 'Forbidden'])
    expect({ ...response.getHeaders() }).toStrictEqual({
      'access-control-expose-headers': 'X-Own, X-Why',
      'cache-control': 'no-store',
      'content-length': 2,
      'content-type': 'text/plain; charset=utf-8',
      vary: 'Authorization',
      'x-request-id': 'r1',
    })
  })

  it('leaves a response that is ended as it is', async () => {
    const { refused, response, failed } = await answered()
    response.end('over')
    refused.send(response)
    await new Promise((resolve) => setImmediate(resolve))
    expect([response.statusCode, response.hasHeader('Vary'), failed.mock.calls]).toStrictEqual([200, false, []])
  })

  it('is that of a hook that answers itself', async () => {
    const own = httpBearer({
      authenticate: ({ ctx }) => {
        ctx.res.statusCode = 418
        ctx.res.end('own')
        return false
      },
    })
    expect((await guardRequest(new Koa(), own)(requestOf('x'))).refused).toMatchObject({ status: 418, body: 'own' })
  })
})

it('two guards see one request, with the path as the client sent it', async () => {
  const seen: Array<Request['req']> = []
  const noting = httpBearer({ authenticate: ({ req }) => void seen.push(req) })
  const req = Object.assign(requestOf('x'), { url: '/me', originalUrl: '/users/me' })
  for (let at = 0; at < 2; at++) await guardRequest(new Koa(), noting, { methods: 'all' })(req)
  expect([seen[0] === seen[1], seen[0]?.url]).toStrictEqual([true, '/users/me'])
})

it('a record waits for the response of its request alone: none of an earlier one that the socket is writing', async () => {
  const records = recorded()
  const seen: Request[] = []
  const guard = guardRequest(new Koa(), (request) => seen.push(request) > 0, { methods: 'all' })
  const [own, other] = [mockRequest().req, mockRequest().req]
  const response = new ServerResponse(own)
  const socket = { _httpMessage: response }
  for (const request of [own, other]) {
    Object.defineProperty(request, 'socket', { value: socket })
    expect(await guard(request)).toHaveProperty('principal')
  }
  expect(records).toMatchObject([{ status: 200 }])
  // it broke off: a delivery of a webhook may come again
  Object.defineProperty(response, 'writableEnded', { value: true })
  response.emit('close')
  expect(records).toMatchObject([{ status: 200 }, { status: 499 }])
  expect(seen[0]?.ctx.res).toMatchObject({ writableEnded: false, writableFinished: false })
})

it('who waits for the outcome of an admitted request hears that it is done, and Koa reports errors once', async () => {
  const told: boolean[] = []
  const waiting = httpBearer({
    authenticate: ({ ctx }, token) => {
      exchangeOf(ctx).outcomes = [async (isDone) => void told.push(isDone)]
      return token === 'x'
    },
  })
  const app = new Koa()
  const guard = guardRequest(app, waiting)
  for (const token of ['x', 'y', 'x']) await guard(requestOf(token))
  expect([told, app.listenerCount('error')]).toStrictEqual([[true, false, true], 1])
})

it.each<[string, ReadonlyArray<readonly [string, string]>, number | undefined]>([
  ['no Host', [], 400],
  ['an empty Host', [['Host', '']], 400],
  ['two', [['Host', 'a'], ['Host', 'b']], 400], // prettier-ignore
  ['one', [['Host', 'a']], undefined],
])('a request that opens a channel names exactly one Host: %s', async (_what, hosts, status) => {
  const { req: request } = mockRequest({ fields: [...hosts, ['Authorization', 'Bearer good']] })
  const { refused } = await guardRequest(new Koa(), bearer)(request)
  expect(refused?.status).toBe(status)
  // that there is one is the affair of the server, as in Koa
  const { refused: ofAll } = await guardRequest(new Koa(), bearer, { methods: 'all' })(request)
  expect(ofAll?.status).toBe(hosts.length > 1 ? 400 : undefined)
})

it.each([undefined, null, {}, 'x'])('a request that is %o is a TypeError that says what to pass', async (request) => {
  await expect(guardRequest(new Koa(), bearer)(request as never)).rejects.toThrow(/call it with that request/)
})

// as graphql-ws sends it in `connection_init`
it('a copy of the handshake that has the token of the first message is judged as a route does', async () => {
  const guard = guardRequest(new Koa(), bearer)
  const server = createServer((handshake, response) => {
    const headers = { ...handshake.headers, authorization: `Bearer ${handshake.url?.slice(1)}` }
    const judged = guard(Object.assign(Object.create(handshake), { headers }))
    void judged.then(({ refused }) => response.writeHead(refused?.status ?? 200).end())
  })
  const url = `http://127.0.0.1:${await listening(server)}`
  expect([(await fetch(`${url}/good`)).status, (await fetch(`${url}/bad`)).status]).toEqual([200, 401])
})

it('a body that a parser of another framework has read is a credential, too, if the request itself has it', async () => {
  const form = formAuth({ fields: ['user'], authenticate: (_request, { user }) => ({ user }) })
  const guard = guardRequest(new Koa(), form, { methods: 'all' })
  const { req } = mockRequest({ method: 'POST', fields: [['Host', 'api.example']] })
  expect(await guard(req)).toHaveProperty('refused')
  expect(await guard(Object.assign(req, { body: { user: 'anna' } }))).toMatchObject({ principal: { user: 'anna' } })
})
