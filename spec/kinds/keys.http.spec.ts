/**
 * Decisions of spec/requirements.md: keys in cookies, headers and queries; lengths and limits. Titles begin with the
 * question.
 */
import { createServer, type Server } from 'node:http'
import Router from '@koa/router'
import Koa from 'koa'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, httpBasicAuth, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import {
  bearer,
  bearerOf,
  challenge,
  expectDenied,
  expectPassed,
  operation,
  running,
} from '../support/models/behavior.js'
import { kinds } from '../support/models/behaviorKinds.js'
import { sendRaw, valuesOf } from '../support/servers/rawSocket.js'
import { listening } from '../support/servers/server.js'

describe('cookie values', () => {
  const start = () => operation(withAuth(apiKeyCookie({ authenticate: (_request, key) => [key] })))

  test.each([
    ['read as sent', 'key=k1', 'k1'],
    ['one pair of quotes is removed', 'key="k1"', 'k1'],
    ['only one pair of quotes is removed', 'key=""k1""', '"k1"'],
    ['a single opening quote stays', 'key="k1', '"k1'],
    ['a single closing quote stays', 'key=k1"', 'k1"'],
    ['no percent-decoding', 'key=%6b1%20', '%6b1%20'],
    ['a plus is a plus', 'key=k+1', 'k+1'],
    ['only the first = separates', 'key=a=b==', 'a=b=='],
    ['after other cookies', 'a=1; key=k1; b=2', 'k1'],
    ['no blank after the semicolon', 'a=1;key=k1', 'k1'],
  ])('cookie values: %s', async (_what, Cookie, key) => {
    const { ask } = await start()
    expectPassed(await ask('/x', { headers: { Cookie } }), [key])
  })

  test.each([
    ['a blank before =', 'key =k1'],
    ['a blank behind =', 'key= k1'],
    ['a tab behind =', 'key=\tk1'],
    ['two blanks before the name', 'a=1;  key=k1'],
    ['a tab before the name', 'a=1;\tkey=k1'],
    ['another letter case', 'Key=k1'],
    ['a comma instead of a semicolon', 'a=1,key=k1'],
    ['a no-break space before the name (A-20)', 'a=1; \u00a0key=k1'],
  ])('cookie values: %s makes it another cookie', async (_what, Cookie) => {
    const { ask } = await start()
    expectDenied(await ask('/x', { headers: { Cookie } }), 401, [challenge.key('cookie')])
  })
})

describe('bytes above 127 in a header or cookie key', () => {
  test.each([
    ['one byte', 'caf\xe9', 'caf\xe9'],
    ['UTF-8', Buffer.from('caf\u00e9', 'utf8').toString('latin1'), 'caf\xc3\xa9'],
  ])('bytes above 127 in a header or cookie key are read as Latin-1: %s', async (_what, sent, read) => {
    const byHeader = await operation(withAuth(apiKeyHeader({ authenticate: (_request, key) => [key] })))
    expectPassed(await byHeader.ask('/x', { headers: { key: sent } }), [read])
    const byCookie = await operation(withAuth(apiKeyCookie({ authenticate: (_request, key) => [key] })))
    expectPassed(await byCookie.ask('/x', { headers: { Cookie: `key=${sent}` } }), [read])
  })
})

describe('query parameters', () => {
  test.each(['key', 'length', '0', 'constructor', '__proto__', 'toString', 'a[b]', 'a.b'])(
    'query parameters: the name %j is an ordinary name',
    async (paramName) => {
      const { ask } = await operation(withAuth(apiKeyQuery({ paramName, authenticate: (_request, key) => [key] })))
      expectPassed(await ask(`/x?other=1&${paramName}=k1`), ['k1'])
      expectDenied(await ask('/x?other=1'), 401, [challenge.key('query', paramName)])
      expectDenied(await ask(`/x?${paramName}`), 401, [challenge.key('query', paramName)])
    },
  )

  test.each([
    ['percent-decoded once', 'key=%6b%2531', 'k%31'],
    ['the name is decoded, too', '%6bey=k1', 'k1'],
    ['a plus is a blank', 'key=a+b', 'a b'],
    ['UTF-8', 'key=caf%C3%A9', 'caf\u00e9'],
  ])('query parameters: %s', async (_what, search, key) => {
    const { ask } = await operation(withAuth(apiKeyQuery({ authenticate: (_request, sent) => [sent] })))
    expectPassed(await ask(`/x?${search}`), [key])
  })

  test('query parameters: brackets, another letter case or a semicolon are not another spelling', async () => {
    const { ask } = await operation(withAuth(apiKeyQuery({ authenticate: (_request, sent) => [sent] })))
    for (const search of ['key[]=k1', 'key[0]=k1', 'Key=k1', 'other=1;key=k1']) {
      expectDenied(await ask(`/x?${search}`), 401, [challenge.key('query')])
    }
  })
})

describe('length of a credential', () => {
  test.each(kinds)('length of a credential: $kind takes 8192 characters, and no more', async ({ kind, make }) => {
    const read = vi.fn(() => true)
    const { ask } = await operation(withAuth(make(read)))
    const send = (length: number) => {
      const text = 'k'.repeat(length)
      const scheme = kind === 'HttpBearer' ? 'Bearer ' : 'Basic '
      // 8186 characters of base64 are not a whole number of groups, so blanks fill the rest
      const basic = `${scheme}${' '.repeat((length - scheme.length) % 4)}`
      const headers = {
        HttpBearer: { Authorization: `${scheme}${text.slice(scheme.length)}` },
        HttpBasicAuth: { Authorization: basic + btoa(`u:${'p'.repeat(((length - basic.length) / 4) * 3 - 2)}`) },
        APIKeyHeader: { 'X-API-Key': text },
        APIKeyCookie: { Cookie: `X-API-KEY=${text}` },
      }
      return kind === 'APIKeyQuery'
        ? ask(`/x?api_key=${text}`)
        : ask('/x', { headers: headers[kind as keyof typeof headers] })
    }
    expectPassed(await send(8192), true)
    expect(read).toHaveBeenCalledTimes(1)
    expect(await send(8193)).toMatchObject({ status: 401, seen: [] })
    expect(read).toHaveBeenCalledTimes(1)
  })

  test('length of a credential: the option maxLength; longer ones are malformed', async () => {
    const authenticate = vi.fn(() => true)
    const token = await operation(withAuth(httpBearer({ maxLength: 12, authenticate })))
    expectPassed(await token.ask('/x', bearer('12345')), true)
    expectDenied(await token.ask('/x', bearer('123456')), 401, [challenge.refusedBearer])
    const key = await operation(withAuth(apiKeyHeader({ maxLength: 5, authenticate })))
    expectPassed(await key.ask('/x', { headers: { key: '12345' } }), true)
    expectDenied(await key.ask('/x', { headers: { key: '123456' } }), 401, [challenge.key('header')])
    expect(authenticate).toHaveBeenCalledTimes(2)
  })

  test.each([0, -1, NaN, Infinity, '5', null])('length of a credential: maxLength %j is a TypeError', (maxLength) => {
    const options = { maxLength, authenticate: () => true } as never
    for (const make of [httpBearer, httpBasicAuth, apiKeyHeader, apiKeyQuery, apiKeyCookie]) {
      expect(() => make(options)).toThrow(TypeError)
    }
  })
})

describe('as many header lines as Node keeps', () => {
  // The request has Host, Connection and Authorization, and is filled up to this number of lines
  const request = (lines: number, path = '/x') =>
    `GET ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer t\r\n` +
    `${'a: 1\r\n'.repeat(lines - 3)}\r\n`

  const serving = async (configure: (server: Server) => void) => {
    const handler = vi.fn()
    const app = new Koa()
    const router = new Router()
    router.get('/x', withAuth(bearerOf('t')), (ctx) => {
      handler()
      ctx.body = 'in'
    })
    const server = createServer((req, res) => void app.use(router.routes()).callback()(req, res))
    configure(server)
    return { handler, port: await listening(server) }
  }

  test.each([
    ['999 of the 1000 that Node keeps by itself', 999, undefined, 200],
    ['1000', 1000, undefined, 431],
    ['more', 1200, undefined, 431],
    ['19 where the server keeps 20', 19, 20, 200],
    ['20 where the server keeps 20', 20, 20, 431],
    ['1500 where the server keeps all', 1500, 0, 200],
  ])('as many header lines as Node keeps: %s', async (_what, lines, maxHeadersCount, status) => {
    const { handler, port } = await serving((server) => {
      if (maxHeadersCount !== undefined) server.maxHeadersCount = maxHeadersCount
    })
    const answer = await sendRaw(port, request(lines))
    expect(answer.status).toBe(status)
    expect(handler).toHaveBeenCalledTimes(status === 200 ? 1 : 0)
    expect(valuesOf(answer, 'www-authenticate')).toEqual([])
    // Newer versions of Node refuse more lines than they keep themselves, with an empty response
    const byNode = lines > (maxHeadersCount ?? 1000) && answer.body === ''
    if (status === 431 && !byNode) {
      expect(answer.body).toContain('"status":431')
      expect(valuesOf(answer, 'cache-control')).toEqual(['no-store'])
      expect(valuesOf(answer, 'content-type')).toEqual(['application/problem+json'])
    }
  })

  test('as many header lines as Node keeps: checked before authentication, and only on guarded operations', async () => {
    const hook = vi.fn(() => true)
    const api = await running((app, answering) => {
      const router = new Router().get('/x', withAuth(httpBearer({ authenticate: hook })), answering)
      app.use(router.get('/open', withAuth(null), answering).routes())
    })
    expect((await sendRaw(api.port, request(1000))).status).toBe(431)
    expect(hook).not.toHaveBeenCalled()
    expect((await sendRaw(api.port, request(1000, '/open'))).status).toBe(200)
  })
})

test('client address in the example: it is the address of the socket, whatever X-Forwarded-For says, even with app.proxy', async () => {
  const { ask } = await operation(
    withAuth((request) => request.socket.remoteAddress),
    (app) => {
      app.proxy = true
    },
  )
  expectPassed(await ask('/x', { headers: { 'X-Forwarded-For': '10.0.0.1' } }), '127.0.0.1')
})
