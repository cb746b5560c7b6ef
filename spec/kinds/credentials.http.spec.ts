/** Sections 5.2 and 5.3 of the requirements: API keys, Bearer and Basic. */
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, httpBasicAuth, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import {
  basic,
  bearer,
  challenge,
  dialects,
  expectDenied,
  expectPassed,
  operation,
  type Sending,
} from '../support/models/behavior.js'

const clients = new Map([
  ['k-acme', { name: 'Acme' }],
  ['k-umbrella', { name: 'Umbrella' }],
])
const lookUp = (_request: unknown, key: string) => clients.get(key)

const query = withAuth(apiKeyQuery({ paramName: 'api_key', authenticate: lookUp }))
const header = withAuth(apiKeyHeader({ paramName: 'X-API-Key', authenticate: lookUp }))
const cookie = withAuth(apiKeyCookie({ paramName: 'X-API-KEY', authenticate: lookUp }))

const transports = [
  {
    transport: 'query string',
    start: () => operation(query),
    send: (key: string): [string, Sending] => [`/x?api_key=${key}`, {}],
    reported: challenge.key('query', 'api_key'),
  },
  {
    transport: 'request header',
    start: () => operation(header),
    send: (key: string): [string, Sending] => ['/x', { headers: { 'X-API-Key': key } }],
    reported: challenge.key('header', 'X-API-Key'),
  },
  {
    transport: 'cookie',
    start: () => operation(cookie),
    send: (key: string): [string, Sending] => ['/x', { headers: { Cookie: `X-API-KEY=${key}` } }],
    reported: challenge.key('cookie', 'X-API-KEY'),
  },
]

describe('5.2 API keys', () => {
  test.each(transports)(
    '5.2.1 the key identifies the client at each request: $transport',
    async ({ start, send, reported }) => {
      const { ask } = await start()
      expectPassed(await ask(...send('k-acme')), { name: 'Acme' })
      expectPassed(await ask(...send('k-umbrella')), { name: 'Umbrella' })
      expectDenied(await ask(), 401, [reported])
      expectDenied(await ask(...send('k-unknown')), 401, [reported])
    },
  )

  test.each(transports)(
    '5.2.2 the key is read from the $transport, and from no other place',
    async ({ start, send, reported }) => {
      const { ask } = await start()
      expectPassed(await ask(...send('k-acme')), { name: 'Acme' })
      for (const other of transports.filter((transport) => transport.send !== send)) {
        expectDenied(await ask(...other.send('k-acme')), 401, [reported])
      }
      expectDenied(await ask('/x', { method: 'POST', body: 'api_key=k-acme' }), 401, [reported])
    },
  )

  test('5.2.2 header names are compared in any letter case; names of query parameters and cookies exactly', async () => {
    const byHeader = await operation(header)
    expectPassed(await byHeader.ask('/x', { headers: { 'x-aPI-kEY': 'k-acme' } }), { name: 'Acme' })
    const byQuery = await operation(query)
    expectDenied(await byQuery.ask('/x?API_KEY=k-acme'), 401, [challenge.key('query', 'api_key')])
    const byCookie = await operation(cookie)
    expectDenied(await byCookie.ask('/x', { headers: { Cookie: 'x-api-key=k-acme' } }), 401, [
      challenge.key('cookie', 'X-API-KEY'),
    ])
  })

  test.each(dialects)(
    '5.2.3 the record that the hook found by its key becomes request.auth: %s',
    async (_name, say) => {
      const hook = vi.fn((_request: unknown, key: string) => say(clients.get(key)))
      const { ask } = await operation(withAuth(apiKeyQuery({ paramName: 'api_key', authenticate: hook })))
      const answer = await ask('/x?other=1&api_key=k-acme')
      expectPassed(answer, { name: 'Acme' })
      expect(answer.seen[0]).toBe(clients.get('k-acme'))
      expectDenied(await ask('/x?api_key=k-unknown'), 401, [challenge.key('query', 'api_key')])
      expect(hook.mock.calls.map(([, key]) => key)).toEqual(['k-acme', 'k-unknown'])
    },
  )

  test.each(transports.slice(1))(
    '5.2.4 the $transport kind behaves in the same way',
    async ({ start, send, reported }) => {
      const { ask } = await start()
      const answer = await ask(...send('k-acme'))
      expectPassed(answer, { name: 'Acme' })
      expect(answer.seen[0]).toBe(clients.get('k-acme'))
      expectDenied(await ask(...send('k-unknown')), 401, [reported])
    },
  )

  test('5.2.4 the cookie is found among others', async () => {
    const { ask } = await operation(cookie)
    expectPassed(await ask('/x', { headers: { Cookie: 'a=1; X-API-KEY=k-acme; b=2' } }), { name: 'Acme' })
    expectDenied(await ask('/x', { headers: { Cookie: 'a=1; XX-API-KEY=k-acme; b=X-API-KEY=k-acme' } }), 401, [
      challenge.key('cookie', 'X-API-KEY'),
    ])
  })
})

describe('5.3 Bearer and Basic', () => {
  test.each(dialects)('5.3.1 httpBearer passes the token to the hook: %s', async (_name, say) => {
    const hook = vi.fn((_request: unknown, token: string) => say(token === 'abc.def-123' && { token }))
    const { ask } = await operation(withAuth(httpBearer({ authenticate: hook })))
    expectPassed(await ask('/x', bearer('abc.def-123')), { token: 'abc.def-123' })
    expectDenied(await ask('/x', bearer('abc')), 401, [challenge.refusedBearer])
    expect(hook.mock.calls.map(([, token]) => token)).toEqual(['abc.def-123', 'abc'])
  })

  test('5.3.1 httpBearer expects the scheme Bearer: another scheme, or none, is not a bearer token', async () => {
    const hook = vi.fn(() => true)
    const { ask } = await operation(withAuth(httpBearer({ authenticate: hook })))
    for (const Authorization of ['Token abc', 'Basic YWJj', 'JWT abc', 'abc', 'Bearers abc']) {
      expectDenied(await ask('/x', { headers: { Authorization } }), 401, [challenge.bearer])
    }
    expect(hook).not.toHaveBeenCalled()
  })

  test.each(dialects)('5.3.2 httpBasicAuth passes user name and password to the hook: %s', async (_name, say) => {
    const hook = vi.fn((_request: unknown, username: string, password: string) =>
      say(username === 'admin' && password === 'secret' && { username }),
    )
    const { ask } = await operation(withAuth(httpBasicAuth({ authenticate: hook })))
    expectPassed(await ask('/x', basic('admin:secret')), { username: 'admin' })
    expectDenied(await ask('/x', basic('admin:wrong')), 401, [challenge.basic])
    expectDenied(await ask('/x', basic('stranger:secret')), 401, [challenge.basic])
    expect(hook.mock.calls.map(([, ...pair]) => pair.join(':'))).toEqual([
      'admin:secret',
      'admin:wrong',
      'stranger:secret',
    ])
  })
})
