/** Each source of an end, and each thing that a request can have open: event streams over HTTP/1 and HTTP/2, `ws`, and a slow query. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, createServer as createHttp2, type ClientHttp2Stream } from 'node:http2'
import { get } from 'node:https'
import type { AddressInfo } from 'node:net'
import Router from '@koa/router'
import Koa from 'koa'
import { apiKeyHeader, clientCertificate, authSignal, withAuth } from 'koa-with-auth'
import { httpIntrospection, httpJwt } from 'koa-with-auth/jwt'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { testIssuer } from 'koa-with-auth/testing'
import { guardUpgrade } from 'koa-with-auth/upgrades'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { certificates, listenByTls } from '../support/servers/certificates.js'
import { listen, listening } from '../support/servers/server.js'
import { causeOf, eventsSite, stopped } from '../support/sites/eventsSite.js'

describe('a token', () => {
  it('of httpJwt ends at its exp', async () => {
    const issuer = await testIssuer()
    onTestFinished(issuer.stop)
    const { open, signals } = eventsSite(httpJwt({ issuer: issuer.issuer, audience: 'api' }))
    const exp = Math.floor(Date.now() / 1000) + 60
    const token = issuer.token({ aud: 'api', sub: 'anna', exp })
    const headers = { Authorization: `Bearer ${token}` }
    expect((await open(headers)).status).toBe(200)
    stopped()
    const stream = await open(headers)
    expect(await stream.read()).toBe('data: hello\n\n')
    vi.advanceTimersByTime(exp * 1000 - Date.now() - 1)
    expect(causeOf(signals[1]!)).toBe(false)
    vi.advanceTimersByTime(1)
    expect(causeOf(signals[1]!)).toBe('expired')
    expect(await stream.read()).toBe('end')
  })

  const introspected = async (answer: () => object) => {
    const server = createServer((req, res) => {
      req.resume().on('end', () => res.end(JSON.stringify(answer())))
    })
    const endpoint = `http://127.0.0.1:${await listening(server)}/`
    return httpIntrospection({ endpoint, client: { id: 'api', secret: 's3cret' }, audience: 'api', cache: false })
  }
  const claims = { active: true, aud: 'api', sub: 'anna' }

  it('of httpIntrospection ends when another request learns that it is not active, and no other token does', async () => {
    let isActive = true
    const { open, signals } = eventsSite(await introspected(() => (isActive ? claims : { active: false })))
    const stream = await open({ Authorization: 'Bearer opaque' })
    const other = await open({ Authorization: 'Bearer other' })
    await stream.read()
    await other.read()
    isActive = false
    const again = await open({ Authorization: 'Bearer opaque' })
    expect([again.status, ...signals.map(causeOf)]).toStrictEqual([401, 'revoked', false])
    expect(await stream.read()).toBe('end')
  })

  it('of httpIntrospection has ended for a request that asks after another one has learned it', async () => {
    let isActive = true
    const auth = await introspected(() => (isActive ? claims : { active: false }))
    const headers = { Authorization: 'Bearer opaque' }
    const causes: unknown[] = []
    const router = new Router().get('/slow', withAuth(auth), async (ctx) => {
      isActive = false
      causes.push((await fetch(ctx.href, { headers })).status)
      causes.push(causeOf(authSignal(ctx)))
      ctx.status = 204
    })
    const { url } = await listen(new Koa().use(router.routes()))
    expect((await fetch(`${url}/slow`, { headers })).status).toBe(204)
    expect(causes).toStrictEqual([401, 'revoked'])
  })
})

it('a client certificate ends at its notAfter, years away', async () => {
  const { authority, client } = certificates()
  const { app, signals } = eventsSite(clientCertificate({ authorities: [authority.cert], from: 'socket' }))
  const { url } = await listenByTls(app)
  stopped()
  const { key, cert, x509 } = client
  const asking = get(`${url}/events`, { key, cert, ca: authority.cert, agent: false })
  onTestFinished(() => void asking.destroy())
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  const ended = once(answer.resume(), 'end')
  vi.setSystemTime(Date.parse(x509.validTo) - 1500)
  vi.advanceTimersByTime(1000)
  expect(causeOf(signals[0]!)).toBe(false)
  vi.advanceTimersByTime(500)
  expect(causeOf(signals[0]!)).toBe('expired')
  await ended
})

describe('an API key that is revoked', () => {
  const keySite = async () => {
    const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
    const { id, key } = await keys.issue({ owner: 'anna' })
    return { keys, id, key, auth: apiKeyHeader({ paramName: 'X-Key', authenticate: keys.authenticate }) }
  }

  it('ends an event stream over HTTP/2, and not the connection', async () => {
    const { keys, id, key, auth } = await keySite()
    const other = await keys.issue({ owner: 'bert' })
    const { app } = eventsSite(auth)
    const handle = app.callback()
    const server = createHttp2((req, res) => void handle(req as never, res as never)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    onTestFinished(() => {
      client.destroy()
      server.close()
    })
    const open = async (secret: string): Promise<ClientHttp2Stream> => {
      const stream = client.request({ ':path': '/events', 'x-key': secret })
      const [[headers]] = (await Promise.all([once(stream, 'response'), once(stream, 'data')])) as [[object], unknown]
      expect(headers).toMatchObject({ ':status': 200 })
      return stream
    }
    const [mine, foreign] = [await open(key), await open(other.key)]
    const ended = once(mine.resume(), 'end')
    await keys.revoke(id)
    await ended
    expect([mine.rstCode, foreign.readableEnded, client.destroyed]).toStrictEqual([0, false, false])
  })

  it('closes a WebSocket', async () => {
    const { keys, id, key, auth } = await keySite()
    const app = new Koa()
    const guard = guardUpgrade(app, auth)
    const sockets = new WebSocketServer({ noServer: true })
    const handle = app.callback()
    const server = createServer((req, res) => void handle(req, res)).on('upgrade', (request, socket, head) => {
      void guard(request, socket, head).then((admitted) => {
        if (admitted === undefined) return
        sockets.handleUpgrade(request, socket, head, (webSocket) => {
          admitted.ends.addEventListener('abort', () => webSocket.close(4401, String(causeOf(admitted.ends))))
          webSocket.send('hello')
        })
      })
    })
    const port = await listening(server)
    const webSocket = new WebSocket(`ws://127.0.0.1:${port}/live`, { headers: { 'X-Key': key } })
    await once(webSocket, 'message')
    const closed = once(webSocket, 'close')
    await keys.revoke(id)
    const [code, reason] = (await closed) as [number, Buffer]
    expect([code, String(reason)]).toStrictEqual([4401, 'revoked'])
  })
})
