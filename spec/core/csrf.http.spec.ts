/**
 * Cross-site request forgery: Go's CrossOriginProtection runs when a credential passes that browsers send by
 * themselves.
 */
import { authSettings, sessionAuth, withAuth, type AuthSettings } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { challenge, expectDenied, expectPassed, operation, type Answer } from '../support/models/behavior.js'
import { signInAs, withSessions } from '../support/models/behaviorSession.js'

const anna = { username: 'anna' }

const site = async (settings: AuthSettings = {}, proxy = false) => {
  const api = await operation(withAuth(sessionAuth()), (app) => {
    app.proxy = proxy
    app.use(authSettings(settings))
    withSessions()(app)
  })
  const Cookie = await signInAs(api, anna)
  const send = (method: string, headers: Record<string, string>): Promise<Answer> =>
    api.ask('/x', { method, headers: { Host: 'example.com', Cookie, ...headers } })
  return { ...api, send }
}

// Fields that are empty strings here are not sent
const fields = (secFetchSite: string, origin: string) => ({
  ...(secFetchSite && { 'Sec-Fetch-Site': secFetchSite }),
  ...(origin && { Origin: origin }),
})

const expectVerdict = (answer: Answer, allowed: boolean): void => {
  if (allowed) expectPassed(answer, anna)
  else expectDenied(answer, 403, [], 'CSRF check Failed')
}

describe("the table of Go's tests", () => {
  // description, method, Sec-Fetch-Site, Origin, allowed
  test.each([
    ['same-origin allowed', 'POST', 'same-origin', '', true],
    ['none allowed', 'POST', 'none', '', true],
    ['cross-site blocked', 'POST', 'cross-site', '', false],
    ['same-site blocked', 'POST', 'same-site', '', false],
    ['no header with no origin', 'POST', '', '', true],
    ['no header with matching origin', 'POST', '', 'https://example.com', true],
    ['no header with mismatched origin', 'POST', '', 'https://attacker.example', false],
    ['no header with null origin', 'POST', '', 'null', false],
    ['GET allowed', 'GET', 'cross-site', '', true],
    ['OPTIONS allowed', 'OPTIONS', 'cross-site', '', true],
    ['PUT blocked', 'PUT', 'cross-site', '', false],
  ] as const)('B-33 %s', async (_description, method, secFetchSite, origin, allowed) => {
    const { send } = await site()
    expectVerdict(await send(method, fields(secFetchSite, origin)), allowed)
  })

  test('B-33 HEAD is allowed', async () => {
    const { send } = await site()
    const answer = await send('HEAD', fields('cross-site', ''))
    expect(answer).toMatchObject({ status: 200, challenges: [], seen: [anna] })
  })

  test.each([
    ['trusted origin without sec-fetch-site', 'https://trusted.example', '', true],
    ['trusted origin with cross-site', 'https://trusted.example', 'cross-site', true],
    ['untrusted origin without sec-fetch-site', 'https://attacker.example', '', false],
    ['untrusted origin with cross-site', 'https://attacker.example', 'cross-site', false],
  ] as const)('B-33 %s', async (_description, origin, secFetchSite, allowed) => {
    const { send } = await site({ trustedOrigins: ['https://trusted.example'] })
    expectVerdict(await send('POST', fields(secFetchSite, origin)), allowed)
  })

  test.each([
    ['valid origin', 'https://example.com', true],
    ['valid origin with port', 'https://example.com:8080', true],
    ['http origin', 'http://example.com', true],
    ['missing scheme', 'example.com', false],
    ['missing host', 'https://', false],
    ['trailing slash', 'https://example.com/', false],
    ['with path', 'https://example.com/path', false],
    ['with query', 'https://example.com?query=value', false],
    ['with fragment', 'https://example.com#fragment', false],
    ['invalid url', 'https://ex ample.com', false],
    ['empty string', '', false],
    ['null', 'null', false],
  ] as const)('B-33 as a trusted origin: %s', (_description, origin, valid) => {
    const set = () => authSettings({ trustedOrigins: [origin] })
    if (valid) expect(set).not.toThrow()
    else expect(set).toThrow(TypeError)
  })
})

describe("more than the table of Go's tests", () => {
  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'LOCK'])(
    'A-35 the method %s is checked',
    async (method) => {
      const { send } = await site()
      expectVerdict(await send(method, fields('cross-site', '')), false)
      expectVerdict(await send(method, fields('same-origin', '')), true)
    },
  )

  // description, Sec-Fetch-Site, Origin, allowed
  test.each([
    ['an unknown word', 'friendly', '', false],
    ['another letter case', 'Same-Origin', '', false],
    ['two values joined', 'same-origin, cross-site', '', false],
    ['Sec-Fetch-Site counts before Origin, and is cross-site', 'same-origin', 'https://attacker.example', true],
    ['Sec-Fetch-Site counts before Origin, and is same-origin', 'cross-site', 'https://example.com', false],
    ['same-site with the same origin', 'same-site', 'https://example.com', false],
    ['another scheme of the same host', '', 'http://example.com', true],
    ['a port that Host does not have', '', 'https://example.com:8443', false],
    ['a subdomain', '', 'https://evil.example.com', false],
    ['the host as a prefix', '', 'https://example.com.attacker.example', false],
    ['the host as a user name', '', 'https://example.com@attacker.example', false],
    ['two origins', '', 'https://example.com https://attacker.example', false],
    ['an unparsable origin', '', '://example.com', false],
    ['a bare host', '', 'example.com', false],
  ] as const)('B-33 %s', async (_description, secFetchSite, origin, allowed) => {
    const { send } = await site()
    expectVerdict(await send('POST', fields(secFetchSite, origin)), allowed)
  })

  test('B-33 a field that is sent twice is not read as either of its values', async () => {
    const api = await site()
    const Cookie = await signInAs(api, anna)
    for (const twice of [
      { 'Sec-Fetch-Site': ['same-origin', 'cross-site'] },
      { 'Sec-Fetch-Site': ['none', 'none'] },
      { Origin: ['https://example.com', 'https://attacker.example'] },
      { Origin: ['https://attacker.example', 'https://example.com'] },
    ]) {
      const headers = { Host: 'example.com', Cookie, ...twice }
      expectVerdict(await api.ask('/x', { method: 'POST', headers }), false)
    }
  })

  test('B-33 the port counts if Host has one', async () => {
    const { send } = await site()
    const own = { Host: 'example.com:8443' }
    expectVerdict(await send('POST', { ...own, Origin: 'https://example.com:8443' }), true)
    expectVerdict(await send('POST', { ...own, Origin: 'https://example.com' }), false)
  })

  test('B-32 X-Forwarded-Host counts only behind a trusted proxy', async () => {
    const forwarded = { 'X-Forwarded-Host': 'shop.example', Origin: 'https://shop.example' }
    const direct = await site()
    expectVerdict(await direct.send('POST', forwarded), false)
    const behind = await site({}, true)
    expectVerdict(await behind.send('POST', forwarded), true)
    expectVerdict(await behind.send('POST', { ...forwarded, Origin: 'https://example.com' }), false)
  })

  test('a trusted origin must match as a whole: scheme, host and port', async () => {
    const { send } = await site({ trustedOrigins: ['https://trusted.example', 'http://localhost:3000'] })
    for (const origin of ['https://trusted.example', 'http://localhost:3000']) {
      expectVerdict(await send('POST', fields('cross-site', origin)), true)
    }
    for (const origin of [
      'http://trusted.example',
      'https://trusted.example:8443',
      'https://www.trusted.example',
      'https://trusted.example.attacker.example',
      'http://localhost',
      'http://localhost:3001',
    ]) {
      expectVerdict(await send('POST', fields('cross-site', origin)), false)
      expectVerdict(await send('POST', fields('', origin)), false)
    }
  })

  test.each(['HTTPS://example.com', 'https://EXAMPLE.com', 'https://example.com:443', 'https://u@example.com', '*'])(
    'a trusted origin that no browser would send is a TypeError: %s',
    (origin) => {
      expect(() => authSettings({ trustedOrigins: [origin] })).toThrow(TypeError)
    },
  )

  test('trusted origins that are not a list of strings are a TypeError', () => {
    for (const trustedOrigins of ['https://example.com', [undefined], [null], [7], new Set(['https://example.com'])]) {
      expect(() => authSettings({ trustedOrigins } as object)).toThrow(TypeError)
    }
  })
})

describe('A-12 the verdict does not depend on the content type', () => {
  test.each([
    'none',
    '',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/plain',
    'text/plain; application/json',
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    'application/json\ta',
    'application/problem+json',
    'application/octet-stream',
    'image/png',
  ])('A-12 the content type %j does not change the verdict', async (type) => {
    const { send } = await site()
    const headers: Record<string, string> = type === 'none' ? {} : { 'Content-Type': type }
    expectVerdict(await send('POST', { ...headers, 'Sec-Fetch-Site': 'cross-site' }), false)
    expectVerdict(await send('POST', { ...headers, Origin: 'https://attacker.example' }), false)
    expectVerdict(await send('POST', { ...headers, 'Sec-Fetch-Site': 'same-origin' }), true)
  })
})

test('B-31 no other header allows a write from another site', async () => {
  const { send } = await site()
  const junk = {
    'X-Requested-With': 'XMLHttpRequest',
    'X-CSRF-Token': 'x',
    'X-HTTP-Method-Override': 'GET',
    'X-Method-Override': 'GET',
    Authorization: 'Bearer x',
    Referer: 'https://example.com/',
  }
  expectVerdict(await send('POST', { ...junk, 'Sec-Fetch-Site': 'cross-site' }), false)
})

test('with csrf: false, writes from other sites pass if they have a session', async () => {
  const { ask, send } = await site({ csrf: false })
  expectVerdict(await send('POST', fields('cross-site', 'https://attacker.example')), true)
  expectDenied(await ask('/x', { method: 'POST', headers: fields('cross-site', '') }), 401, [challenge.session])
})

test('csrf: true is the same as the default', async () => {
  const { send } = await site({ csrf: true })
  expectVerdict(await send('POST', fields('cross-site', '')), false)
})
