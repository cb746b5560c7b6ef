/** The bytes of a delivery: read once, before any parser, and the same for a parser behind the guard.  H-01, H-02, H-03. */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2, type IncomingHttpHeaders } from 'node:http2'
import { connect, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { bodyParser } from '@koa/bodyparser'
import Router from '@koa/router'
import parse from 'co-body'
import Koa, { type Middleware } from 'koa'
import { anyOf, httpBearer, withAuth } from 'koa-with-auth'
import { mockRequest } from 'koa-with-auth/testing'
import { github, rawBody, webhook } from 'koa-with-auth/webhooks'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sendRaw } from '../support/servers/rawSocket.js'
import { githubSignature, SECRET, webhookSite } from '../support/sites/webhookSite.js'

const JSON_BODY = '{"a": 1,\n "b": "\u00e9"}'
const json = { 'Content-Type': 'application/json' }

// Sends a body in pieces, each when the one before has left
const sendPieces = async (url: string, pieces: ReadonlyArray<Buffer>, headers: Record<string, string>) => {
  const req = request(`${url}/hook`, { method: 'POST', headers })
  for (const piece of pieces) {
    req.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  res.resume()
  return res.statusCode
}

const readAgain: Middleware = async (ctx, next) => {
  ctx.state['again'] = await parse.text(ctx.req)
  await next()
}

describe('the body of a delivery', () => {
  it.each([
    ['nothing behind it', []],
    ['@koa/bodyparser', [bodyParser()]],
    ['co-body', [readAgain]],
  ])('is signed byte by byte, with %s', async (_name, behind: ReadonlyArray<Middleware>) => {
    const site = await webhookSite({ behind })
    const response = await site.send(JSON_BODY, json)
    expect(response.status).toBe(204)
    expect(site.handled.map(String)).toStrictEqual([JSON_BODY])
  })

  it('reaches a parser behind the guard with the same bytes', async () => {
    const seen: unknown[] = []
    const site = await webhookSite({
      behind: [bodyParser()],
      handler: (ctx) => seen.push((ctx.request as { body?: unknown }).body),
    })
    expect((await site.send(JSON_BODY, json)).status).toBe(204)
    expect(seen).toStrictEqual([{ a: 1, b: '\u00e9' }])
  })

  it.each([1, 7, 64 * 1024, 300_000])('may come in pieces, of %i bytes', async (size) => {
    const body = Buffer.alloc(700_000, 'abc\u00e9')
    const seen: string[] = []
    const site = await webhookSite({
      behind: [readAgain],
      handler: (ctx) => seen.push(String(ctx.state['again'])),
    })
    const pieces = size === 1 ? [body.subarray(0, 1), body.subarray(1)] : []
    for (let at = 0; size > 1 && at < Math.min(body.length, size * 40); at += size) {
      pieces.push(at + size >= size * 40 ? body.subarray(at) : body.subarray(at, at + size))
    }
    const whole = Buffer.concat(pieces)
    const headers = { 'X-Hub-Signature-256': githubSignature(whole) }
    expect(await sendPieces(site.url, pieces, headers)).toBe(204)
    expect(await sendPieces(site.url, pieces, { ...headers, 'Content-Length': String(whole.length) })).toBe(204)
    expect(site.handled.every((one) => one.equals(whole))).toBe(true)
    expect(seen).toStrictEqual([whole.toString(), whole.toString()])
  })

  it.each([
    ['empty', Buffer.alloc(0), {}],
    ['binary', Buffer.from([0, 255, 254, 13, 10, 0, 192]), {}],
    ['compressed', gzipSync(JSON_BODY), { 'Content-Encoding': 'gzip', ...json }],
  ])('may be %s', async (_name, body, headers: Record<string, string>) => {
    const site = await webhookSite()
    expect((await site.send(body, headers)).status).toBe(204)
    expect(site.handled).toStrictEqual([body])
    expect(
      (await site.send(Buffer.concat([body, Buffer.from('x')]), { 'X-Hub-Signature-256': githubSignature(body) }))
        .status,
    ).toBe(401)
    expect(site.handled).toHaveLength(1)
  })

  it('is empty in a chunked request without chunks, and a parser behind the guard sees its end', async () => {
    const site = await webhookSite({ behind: [readAgain], handler: (ctx) => expect(ctx.state['again']).toBe('') })
    const answer = await sendRaw(
      site.port,
      `POST /hook HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nX-Hub-Signature-256: ${githubSignature('')}\r\n\r\n0\r\n\r\n`,
    )
    expect(answer.status).toBe(204)
    expect(site.handled).toStrictEqual([Buffer.alloc(0)])
  })

  it('is read once, if two members of a list want it, and a later member that reads none passes', async () => {
    const old = webhook({ scheme: github, secrets: 'another-secret' })
    const bearer = httpBearer({ authenticate: (_request, token) => token === 't' && { user: 'anna' } })
    const site = await webhookSite({
      around: (current) => anyOf([old, current, bearer]),
      behind: [readAgain],
      handler: (ctx) => Object.assign(ctx, { status: 200, body: ctx.state['again'] }),
    })
    expect(await (await site.send('abc')).text()).toBe('abc')
    const headers = { 'X-Hub-Signature-256': githubSignature('abd'), Authorization: 'Bearer t' }
    expect(await (await site.send('abc', headers)).text()).toBe('abc')
    expect(site.handled.map((one) => one?.toString())).toStrictEqual(['abc', undefined])
  })

  it.each([
    [1_048_576, 204],
    [1_048_577, 413],
  ])('may have 1 MiB, if nothing else is said: %i bytes are a %i', async (length, status) => {
    const site = await webhookSite({})
    expect([(await site.send('a'.repeat(length))).status, site.handled.length]).toEqual([
      status,
      status === 204 ? 1 : 0,
    ])
  })
})

describe('a parser above the guard', () => {
  it('that keeps the bytes as text is no problem', async () => {
    const site = await webhookSite({ above: [bodyParser()] })
    expect((await site.send(JSON_BODY, json)).status).toBe(204)
    expect(site.handled.map(String)).toStrictEqual([JSON_BODY])
    const short = await webhookSite({ above: [bodyParser()], hook: { maxLength: JSON_BODY.length - 1 } })
    expect([(await short.send(JSON_BODY, json)).status, short.handled]).toStrictEqual([413, []])
  })

  it.each(['request', 'req'] as const)('that keeps them as a Buffer in %s.body is none, either', async (where) => {
    const read: Middleware = async (ctx, next) => {
      Object.assign(ctx[where], { body: Buffer.from(await text(ctx.req)) })
      await next()
    }
    const site = await webhookSite({ above: [read] })
    // bytes are as they came, whatever their charset
    const inLatin1 = { 'Content-Type': 'application/json; charset=iso-8859-1' }
    expect((await site.send(JSON_BODY, inLatin1)).status).toBe(204)
    expect(
      (await site.send(`${JSON_BODY} `, { ...json, 'X-Hub-Signature-256': githubSignature(JSON_BODY) })).status,
    ).toBe(401)
    expect(site.handled.map(String)).toStrictEqual([JSON_BODY])
  })

  it('that does not read this content type leaves the body to the guard', async () => {
    const site = await webhookSite({ above: [bodyParser()] })
    expect((await site.send('a,b', { 'Content-Type': 'text/csv' })).status).toBe(204)
    expect(site.handled.map(String)).toStrictEqual(['a,b'])
  })

  it.each([
    ['keeps nothing', undefined, {}],
    ['keeps an empty string', '', {}],
    ['keeps another length', '{}', {}],
    ['has decoded another charset', JSON_BODY, { 'Content-Type': 'application/json; charset=iso-8859-1' }],
    ['has decompressed', JSON_BODY, { 'Content-Encoding': 'br' }],
  ])('that %s: 500, and the error names the fix', async (_name, rawBody, headers: Record<string, string>) => {
    const above: Middleware = async (ctx, next) => {
      for await (const _ of ctx.req);
      if (rawBody !== undefined) Object.assign(ctx.request, { rawBody })
      await next()
    }
    const site = await webhookSite({ above: [above] })
    const response = await site.send(JSON_BODY, { ...json, ...headers })
    expect(response.status).toBe(500)
    expect(site.handled).toStrictEqual([])
    expect(String(site.errors[0])).toContain('withAuth(...) before the parser')
    // the signature of an empty body does not stand for a body that was not read
    expect((await site.send(JSON_BODY, { ...headers, 'X-Hub-Signature-256': githubSignature('') })).status).toBe(500)
    expect(site.handled).toStrictEqual([])
  })
})

describe('a body that is no good', () => {
  // a delivery of nine bytes of which these have come
  const begun = (port: number, sent: string, length = 'Content-Length: 9') => {
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(
      `POST /hook HTTP/1.1\r\nHost: a\r\n${length}\r\nX-Hub-Signature-256: ${githubSignature('')}\r\n\r\n${sent}`,
    )
    return socket
  }

  it.each([
    ['by its Content-Length', 'Content-Length: 9\r\n\r\n123456789'],
    ['by its chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n4\r\n6789\r\n0\r\n\r\n'],
    ['by far', `Transfer-Encoding: chunked\r\n\r\n30d40\r\n${'a'.repeat(200_000)}\r\n0\r\n\r\n`],
  ])('is too long %s: 413, and the connection can be used again', async (_name, rest) => {
    const site = await webhookSite({ hook: { maxLength: 8 } })
    const head = `POST /hook HTTP/1.1\r\nHost: a\r\nX-Hub-Signature-256: ${githubSignature('123456789')}\r\n`
    const good = `POST /hook HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 8\r\nX-Hub-Signature-256: ${githubSignature('12345678')}\r\n\r\n12345678`
    const answer = await sendRaw(site.port, `${head}${rest}${good}`)
    expect(answer.status).toBe(413)
    expect(answer.body).toContain('HTTP/1.1 204')
    expect(site.handled.map(String)).toStrictEqual(['12345678'])
  })

  it.each([
    ['its length', 'Content-Length: 9', ''],
    ['what came', 'Transfer-Encoding: chunked', '9\r\n123456789\r\n'],
  ])('is refused by %s before all has come', async (_name, length, sent) => {
    const site = await webhookSite({ hook: { maxLength: 8 } })
    const [first] = (await once(begun(site.port, sent, length), 'data')) as [Buffer]
    expect(first.toString()).toMatch(/^HTTP\/1\.1 413/)
  })

  it('that has come is there however long a handler waits before it reads', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const site = await webhookSite({
      settings: { timeout: 150 },
      handler: async (ctx) => {
        // longer than the guard would have waited for the body
        await vi.advanceTimersByTimeAsync(200)
        Object.assign(ctx, { status: 200, body: await parse.text(ctx.req) })
      },
    })
    expect(await (await site.send('body')).text()).toBe('body')
  })

  it.each(['before', 'later'])('of a client that has hung up %s is cut off at once', async (when) => {
    const request = mockRequest({ method: 'POST', fields: [['Content-Length', '1']] })
    const [body] = when === 'later' ? [rawBody(request)] : []
    request.req.destroy()
    await once(request.req, 'close')
    await expect(body ?? rawBody(request)).rejects.toMatchObject({ status: 400 })
  })

  it('does not come: 408', async () => {
    const { port } = await webhookSite({ settings: { timeout: 50 } })
    const [first] = (await once(begun(port, '1'), 'data')) as [Buffer]
    expect(first.toString()).toMatch(/^HTTP\/1\.1 408/)
  })

  it('breaks off: no handler runs, and the server goes on', async () => {
    const site = await webhookSite()
    const socket = begun(site.port, '1')
    await once(socket, 'connect')
    await new Promise((resolve) => setImmediate(resolve))
    socket.destroy()
    await once(socket, 'close')
    expect((await site.send('next')).status).toBe(204)
    expect(site.handled.map(String)).toStrictEqual(['next'])
  })
})

it('over HTTP/2, where only the end of a body shows its length, a delivery is verified, and a parser behind the guard reads the same bytes', async () => {
  const router = new Router()
  router.all('/hook', withAuth(webhook({ scheme: github, secrets: SECRET, maxLength: 100_000 })), async (ctx) => {
    ctx.body = `${ctx.request.auth.text()} ${await parse.text(ctx.req)}`
  })
  const app = new Koa().use(router.routes())
  const server = createHttp2((req, res) => void app.callback()(req, res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  const send = async (method: string, body: string, signed = body) => {
    const head = { ':method': method, ':path': '/hook', 'x-hub-signature-256': githubSignature(signed) }
    const stream = client.request(head, { endStream: body === '' })
    const answered = once(stream, 'response') as Promise<[IncomingHttpHeaders]>
    if (body !== '') stream.end(body)
    const [headers] = await answered
    return [headers[':status'], await text(stream)]
  }
  const long = 'b'.repeat(90_000)
  expect(await send('POST', 'abc')).toStrictEqual([200, 'abc abc'])
  expect(await send('POST', long)).toStrictEqual([200, `${long} ${long}`])
  expect(await send('POST', '')).toStrictEqual([200, ' '])
  expect(await send('GET', '')).toStrictEqual([200, ' '])
  expect((await send('POST', 'abc', 'abd'))[0]).toBe(401)
  expect((await send('POST', `${long}${long}`))[0]).toBe(413)
  expect(await send('POST', 'abc')).toStrictEqual([200, 'abc abc'])
})
