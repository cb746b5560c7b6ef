/** Section 2 of the requirements: the kinds, their options, and the request attribute. */
import Router from '@koa/router'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, authSettings, httpBearer, sessionAuth, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import {
  bearer,
  challenge,
  dialects,
  expectDenied,
  expectPassed,
  operation,
  running,
  type Sending,
} from '../support/models/behavior.js'
import { kinds, type Hook } from '../support/models/behaviorKinds.js'
import { signInAs, withSessions } from '../support/models/behaviorSession.js'

describe('2.1 the kinds', () => {
  test.each(kinds)(
    '2.1, 5.1.4 $kind calls the hook with the request and the credentials as strings, from their own place only',
    async ({ make, carrying, credentials, absent }) => {
      const hook = vi.fn<Hook>((request) => ({ agent: request.get('User-Agent') }))
      const { ask } = await operation(withAuth(make(hook)))
      const [path, sending] = carrying
      const answer = await ask(path, { headers: { ...sending.headers, 'User-Agent': 'spec' } })
      expectPassed(answer, { agent: 'spec' })
      expect(hook.mock.calls.map(([, ...rest]) => rest)).toStrictEqual([credentials])

      hook.mockClear()
      for (const other of kinds.filter((row) => row.make !== make)) {
        expectDenied(await ask(...other.carrying), 401, [absent])
      }
      expectDenied(await ask('/x', { method: 'POST', body: 'api_key=s3cret' }), 401, [absent])
      expect(hook).not.toHaveBeenCalled()
    },
  )
})

// What a hook finds by its key or name, in every form in which it may return it
const accounts = new Map<string, object>([
  ['s3cret', { name: 'Acme' }],
  ['anna:s3cret', { name: 'anna' }],
])
describe.each(dialects)('5.2.1, 5.3 (spec 1.3) the record that a hook found, in %s', (_dialect, say) => {
  test.each(kinds)('5.2.3, 5.2.4 $kind: it becomes request.auth at each request, not a copy of it', async (row) => {
    const record = accounts.get(row.credentials.join(':'))
    let known = true
    const hook = vi.fn<Hook>((_request, ...sent) => say(known ? accounts.get(sent.join(':')) : undefined))
    const { ask } = await operation(withAuth(row.make(hook)))
    for (let n = 0; n < 2; n++) {
      const answer = await ask(...row.carrying)
      expectPassed(answer, record)
      expect(answer.seen[0]).toBe(record)
    }
    known = false
    expectDenied(await ask(...row.carrying), 401, [row.refused])
    expect(hook).toHaveBeenCalledTimes(3)
  })
})

describe('5.5 several authenticators', () => {
  const asked: string[] = []
  const member = (name: string) => (_request: unknown, sent: string) => {
    asked.push(name)
    return sent === 'good' && { via: name }
  }
  const [query, header, token] = [
    apiKeyQuery({ authenticate: member('query') }),
    apiKeyHeader({ authenticate: member('header') }),
    httpBearer({ authenticate: member('bearer') }),
  ]
  const keys = [challenge.key('query'), challenge.key('header')]
  const sending = (key?: string, sent?: string) => ({
    headers: { ...(key && { key }), ...(sent && bearer(sent).headers) },
  })

  test('5.5.1 they are tried in the order of the list', async () => {
    const { ask } = await operation(withAuth([token, header, query]))
    expectPassed(await ask('/x?key=good', sending('bad', 'bad')), { via: 'query' })
    expect(asked.splice(0)).toEqual(['bearer', 'header', 'query'])
  })

  test('5.5.2 the first one that passes wins, and no later hook is called', async () => {
    const { ask } = await operation(withAuth([query, header, token]))
    expectPassed(await ask('/x?key=bad', sending('good', 'good')), { via: 'header' })
    expect(asked.splice(0)).toEqual(['query', 'header'])
  })

  test('5.5.3 [query key, header key]: the header key is checked if the query key is missing or invalid', async () => {
    const { ask } = await operation(withAuth([query, header]))
    for (const path of ['/x', '/x?key=', '/x?key=bad'])
      expectPassed(await ask(path, sending('good')), { via: 'header' })
    expect(asked.splice(0)).toEqual(['header', 'header', 'query', 'header'])
  })

  test('5.5.4 if all fail, an authentication error with the challenges of all is returned', async () => {
    const { ask } = await operation(withAuth([query, header, token]))
    expectDenied(await ask(), 401, [...keys, challenge.bearer])
    expectDenied(await ask('/x?key=bad', sending('bad', 'bad')), 401, [...keys, challenge.refusedBearer])
    expect(asked.splice(0)).toEqual(['query', 'header', 'bearer'])
  })
})

describe('2.2 the options', () => {
  const authenticate = (_request: unknown, sent: string) => sent === 'k1' && { sent }
  const places: ReadonlyArray<
    readonly [place: 'query' | 'header' | 'cookie', make: typeof apiKeyQuery, send: (name: string) => [string, Sending]]
  > = [
    ['query', apiKeyQuery, (name) => [`/x?${name}=k1`, {}]],
    ['header', apiKeyHeader, (name) => ['/x', { headers: { [name]: 'k1' } }]],
    ['cookie', apiKeyCookie, (name) => ['/x', { headers: { Cookie: `${name}=k1` } }]],
  ]

  test.each(places)('2.2 paramName names the %s; the default is "key"', async (place, make, send) => {
    const named = await operation(withAuth(make({ paramName: 'client-key', authenticate })))
    expectPassed(await named.ask(...send('client-key')), { sent: 'k1' })
    expectDenied(await named.ask(...send('key')), 401, [challenge.key(place, 'client-key')])

    const byDefault = await operation(withAuth(make({ authenticate })))
    expectPassed(await byDefault.ask(...send('key')), { sent: 'k1' })
    expectDenied(await byDefault.ask(...send('client-key')), 401, [challenge.key(place, 'key')])
  })

  test('2.2 nothing is guarded unless auth is set', async () => {
    const { ask } = await running((app, answering) => {
      app.use(new Router().get('/x', answering).routes())
    })
    expectPassed(await ask(), undefined)
  })

  test.each([
    [true, 403],
    [undefined, 403],
    [false, 200],
  ])('2.2 csrf %s: a write from another site with a valid session gets %i', async (csrf, status) => {
    const api = await operation(withAuth(sessionAuth()), (app) => {
      if (csrf !== undefined) app.use(authSettings({ csrf }))
      withSessions()(app)
    })
    const headers = { Cookie: await signInAs(api, { username: 'anna' }), 'Sec-Fetch-Site': 'cross-site' }
    const answer = await api.ask('/x', { method: 'POST', headers })
    if (status === 200) expectPassed(answer, { username: 'anna' })
    else expectDenied(answer, 403, [], 'CSRF check Failed')
  })
})

describe('2.3 the request attribute', () => {
  test.each([
    ['a token', 'abc123'],
    ['a user name', 'anna'],
    ['a record of a client', { id: 7, name: 'Acme' }],
    ['a client address', '127.0.0.1'],
    ['a number', 1],
    ['true', true],
  ])('2.3 request.auth holds %s', async (_what, principal) => {
    const { ask } = await operation(withAuth(() => principal))
    expectPassed(await ask(), principal)
  })
})
