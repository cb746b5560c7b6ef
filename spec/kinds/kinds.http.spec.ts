/** Section 2 of the requirements: the kinds, their options, and the request attribute. */
import Router from '@koa/router'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, authSettings, sessionAuth, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import {
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
