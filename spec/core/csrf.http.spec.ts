/**
 * Cross-site request forgery: which credentials are checked, what a failed check means for a list, and which fields count. The table of
 * the check is in CrossOrigin.unit.
 */
import { either as E } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import { anyOf, apiKeyCookie, apiKeyHeader, AuthError, withAuth } from 'koa-with-auth'
import { flatMap } from 'koa-with-auth/fp'
import { describe, expect, test, vi } from 'vitest'
import { bearer, challenge, expectDenied, expectPassed, operation, type Sending } from '../support/models/behavior.js'
import { ambient, anna, bearerKind, cookieKey, good, headerKey, notAmbient } from '../support/models/behaviorAmbient.js'
import { session, shout, type AmbientRow } from '../support/models/behaviorAmbient.js'
import { signInAs, withSessions } from '../support/models/behaviorSession.js'

const sites = [{ 'Sec-Fetch-Site': 'cross-site' }, { Origin: 'https://attacker.example' }]

const prepared = async ({ auth, sending, path }: AmbientRow) => {
  const api = await operation(withAuth(auth), withSessions())
  const { headers } = sending ?? { headers: { Cookie: await signInAs(api, anna) } }
  const send = (method: string, more: Record<string, string>, credentials = true) =>
    api.ask(credentials ? path : '/x', { method, headers: { ...(credentials && headers), ...more } })
  return send
}

describe('credentials that browsers send by themselves', () => {
  test.each(ambient)('a write from another site is refused: $what', async (row) => {
    const send = await prepared(row)
    for (const from of sites) {
      expectDenied(await send('POST', from), 403, [], 'CSRF check Failed')
      expectDenied(await send('DELETE', from), 403, [], 'CSRF check Failed')
      expectPassed(await send('GET', from), row.principal)
    }
    expectPassed(await send('POST', { 'Sec-Fetch-Site': 'same-origin' }), row.principal)
    expectPassed(await send('POST', {}), row.principal)
  })

  test.each(ambient)('an unsafe request without credentials is a 401, not a 403: $what', async (row) => {
    const send = await prepared(row)
    for (const from of sites) expectDenied(await send('POST', from, false), 401, row.challenges)
  })
})

describe('credentials that only programs send', () => {
  test.each(notAmbient)('a write from another site passes: $what', async (row) => {
    const send = await prepared(row)
    for (const from of sites) {
      expectPassed(await send('POST', from), row.principal)
      expectDenied(await send('POST', from, false), 401, row.challenges)
    }
  })

  test('B-31 a cookie that is not read does not refuse a bearer token', async () => {
    const { ask } = await operation(withAuth(bearerKind))
    const headers = { ...bearer('good').headers, Cookie: 'key=good; other=1', 'Sec-Fetch-Site': 'cross-site' }
    expectPassed(await ask('/x', { method: 'POST', headers }), { sent: 'good' })
  })
})

describe('the check in a list', () => {
  const crossSite = (sending: Sending): Sending => ({
    method: 'POST',
    headers: { ...sending.headers, 'Sec-Fetch-Site': 'cross-site' },
  })

  test('a forged member fails, and a later member can pass', async () => {
    const api = await operation(withAuth([session, cookieKey, headerKey]), withSessions())
    const Cookie = `${await signInAs(api, anna)}; key=good`
    expectPassed(await api.ask('/x', crossSite({ headers: { Cookie, key: 'good' } })), { sent: 'good' })
    expectDenied(await api.ask('/x', crossSite({ headers: { Cookie } })), 403, [], 'CSRF check Failed')
    expectPassed(await api.ask('/x', { method: 'POST', headers: { Cookie } }), anna)
  })

  test('concerns the member that passed, not the other credentials that were sent', async () => {
    const behind = vi.fn(good)
    const { ask } = await operation(withAuth([headerKey, apiKeyCookie({ authenticate: behind })]))
    const both = { headers: { key: 'good', Cookie: 'key=good' } }
    expectPassed(await ask('/x', crossSite(both)), { sent: 'good' })
    expect(behind).not.toHaveBeenCalled()
    const wrong = { headers: { key: 'bad', Cookie: 'key=good' } }
    expectDenied(await ask('/x', crossSite(wrong)), 403, [], 'CSRF check Failed')
    expect(behind).toHaveBeenCalledTimes(1)
  })

  test('forged is stronger than refused, and weaker than insufficient', async () => {
    const withScope = apiKeyHeader({ authenticate: () => E.left(AuthError.insufficient()) })
    const both = { headers: { key: 'bad', Cookie: 'key=good' } }
    const refused = await operation(withAuth([cookieKey, headerKey]))
    expectDenied(await refused.ask('/x', crossSite(both)), 403, [], 'CSRF check Failed')
    const insufficient = await operation(withAuth([cookieKey, withScope]))
    expectDenied(await insufficient.ask('/x', crossSite(both)), 403, [challenge.key('header')], 'Forbidden')
  })

  test.each([
    ['map', pipe(anyOf([cookieKey, bearerKind]), flatMap(shout)), (principal: unknown) => ({ shouted: principal })],
    ['tags', anyOf({ cookie: cookieKey, bearer: bearerKind }), (principal: unknown) => ({ via: 'bearer', principal })],
    [
      'a map of a map',
      pipe(anyOf([cookieKey, bearerKind]), flatMap(shout), flatMap(shout)),
      (p: unknown) => ({ shouted: { shouted: p } }),
    ],
  ])('%s of a mixed list admits the bearer token and refuses the cookie', async (_what, auth, reported) => {
    const { ask } = await operation(withAuth(auth))
    expectPassed(await ask('/x', crossSite(bearer('good'))), reported({ sent: 'good' }))
    const both = { headers: { ...bearer('good').headers, Cookie: 'key=good' } }
    expectPassed(await ask('/x', crossSite(both)), reported({ sent: 'good' }))
    expectDenied(await ask('/x', crossSite({ headers: { Cookie: 'key=good' } })), 403, [], 'CSRF check Failed')
  })
})

describe('cookie kinds inside a bare RTE', () => {
  test.each(ambient.filter(({ what }) => what.startsWith('a bare RTE') || what.startsWith('any RTE')))(
    'cookie kinds inside a bare RTE are checked at least like the kind itself, first and last in a list: $what',
    async ({ auth, sending, principal }) => {
      for (const list of [[auth, () => false] as const, [() => false, auth] as const]) {
        const api = await operation(withAuth(list), withSessions())
        const { headers } = sending ?? { headers: { Cookie: await signInAs(api, anna) } }
        for (const from of sites) {
          const answer = await api.ask('/x', { method: 'POST', headers: { ...headers, ...from } })
          expectDenied(answer, 403, [], 'CSRF check Failed')
        }
        expectPassed(await api.ask('/x', { method: 'POST', headers: headers ?? {} }), principal)
      }
    },
  )
})

const signedIn = async (proxy = false) => {
  const api = await operation(withAuth(session), (app) => {
    app.proxy = proxy
    withSessions()(app)
  })
  const Cookie = await signInAs(api, anna)
  return (headers: NonNullable<Sending['headers']>) =>
    api.ask('/x', { method: 'POST', headers: { Host: 'example.com', Cookie, ...headers } })
}

describe('fields of a request with a session', () => {
  test('B-33 a field that is sent twice is not read as either of its values', async () => {
    const send = await signedIn()
    for (const twice of [
      { 'Sec-Fetch-Site': ['same-origin', 'cross-site'] },
      { 'Sec-Fetch-Site': ['none', 'none'] },
      { Origin: ['https://example.com', 'https://attacker.example'] },
      { Origin: ['https://attacker.example', 'https://example.com'] },
    ]) {
      expectDenied(await send(twice), 403, [], 'CSRF check Failed')
    }
  })

  test('B-32 X-Forwarded-Host counts only behind a trusted proxy', async () => {
    const forwarded = { 'X-Forwarded-Host': 'shop.example', Origin: 'https://shop.example' }
    const direct = await signedIn()
    expectDenied(await direct(forwarded), 403, [], 'CSRF check Failed')
    const behind = await signedIn(true)
    expectPassed(await behind(forwarded), anna)
    expectDenied(await behind({ ...forwarded, Origin: 'https://example.com' }), 403, [], 'CSRF check Failed')
  })
})
