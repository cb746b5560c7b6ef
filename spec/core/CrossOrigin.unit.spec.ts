/**
 * The check for CSRF: the table of Go's CrossOriginProtection, and more; and which origins can be trusted (B-31 to
 * B-33).
 */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { isForged, isForgedChange, originRules, trustedOrigins } from '../../src/core/CrossOrigin.js'
import { mockRequest } from 'koa-with-auth/testing'
import { pollute } from '../support/runs/pollute.js'
import { row, type Row } from '../support/models/row.js'

interface Sent {
  readonly method?: string
  readonly site?: string
  readonly origin?: string
  readonly host?: string
  readonly url?: string
  /** Further fields. */
  readonly more?: ReadonlyArray<readonly [string, string]>
}

const table: ReadonlyArray<Row<Sent, boolean>> = [
  row('same-origin', { site: 'same-origin' }, false),
  row('none (typed by the user)', { site: 'none' }, false),
  row('cross-site', { site: 'cross-site' }, true),
  row('same-site is another origin', { site: 'same-site' }, true),
  row('no field and no Origin: not a browser', {}, false),
  row('no field, the same Origin', { origin: 'https://api.example' }, false),
  row('no field, another Origin', { origin: 'https://attacker.example' }, true),
  row('no field, Origin null', { origin: 'null' }, true),
  row('GET', { method: 'GET', site: 'cross-site' }, false),
  row('HEAD', { method: 'HEAD', site: 'cross-site' }, false),
  row('OPTIONS', { method: 'OPTIONS', site: 'cross-site' }, false),
  row('PUT', { method: 'PUT', site: 'cross-site' }, true),
  row('A-35 TRACE is not safe', { method: 'TRACE', site: 'cross-site' }, true),
  row('A-35 a method in lower case is not GET', { method: 'get', site: 'cross-site' }, true),
  row('an unknown word', { site: 'same-origin-ish' }, true),
  row('another letter case', { site: 'Same-Origin' }, true),
  row('two values joined', { site: 'same-origin, cross-site' }, true),
  row('cross-site with the same Origin', { site: 'cross-site', origin: 'https://api.example' }, true),
  row('same-origin with another Origin', { site: 'same-origin', origin: 'https://attacker.example' }, false),
  row('B-32 the scheme is not compared', { origin: 'http://api.example' }, false),
  row('B-32 the port is compared', { origin: 'https://api.example:8443' }, true),
  row('B-32 the same port passes', { origin: 'https://api.example:8443', host: 'api.example:8443' }, false),
  row('RFC 9110 §4.2.3 the default port of https', { origin: 'https://api.example', host: 'api.example:443' }, false),
  row('RFC 9110 §4.2.3 the default port of http', { origin: 'http://api.example', host: 'api.example:80' }, false),
  row('the default port of the other scheme', { origin: 'http://api.example', host: 'api.example:443' }, true),
  row('RFC 3986 §3.2.2 a host has no letter case', { origin: 'https://api.example', host: 'Api.Example' }, false),
  row('both: upper case and a default port', { origin: 'https://api.example', host: 'API.example:443' }, false),
  row('a Host with a user names no host', { origin: 'https://evil.example', host: 'api.example:x@evil.example' }, true),
  row('a Host with a path names no host', { origin: 'https://api.example', host: 'api.example/x' }, true),
  row('also under a scheme of its own', { origin: 'app://api.example', host: 'Api.Example' }, false),
  row('an IPv6 address', { origin: 'http://[::1]', host: '[::1]:80' }, false),
  row('a host with the same beginning', { origin: 'https://api.example.attacker.example' }, true),
  row('the host as a user', { origin: 'https://api.example@attacker.example' }, true),
  row('the host as a path', { origin: 'https://attacker.example/api.example' }, true),
  row('the host with a path', { origin: 'https://api.example/' }, true),
  row('a backslash', { origin: 'https://api.example\\' }, true),
  row('no scheme', { origin: 'api.example' }, true),
  row('two origins', { origin: 'https://api.example, https://attacker.example' }, true),
  row('two origins, the same one last', { origin: 'https://attacker.example https://api.example' }, true),
  row('a trusted origin', { site: 'cross-site', origin: 'https://app.example' }, false),
  row('a trusted origin without the field', { origin: 'https://app.example' }, false),
  row('a trusted host, another scheme', { site: 'cross-site', origin: 'http://app.example' }, true),
  row('a trusted host, another port', { site: 'cross-site', origin: 'https://app.example:444' }, true),
  row('a subdomain of a trusted host', { site: 'cross-site', origin: 'https://x.app.example' }, true),
  row('cross-site without an Origin', { site: 'cross-site', origin: '' }, true),
  row('no Host', { origin: 'https://attacker.example', host: '' }, true),
  row('B-32 two Host lines: no origin is the same', { origin: 'https://api.example', more: [['Host', 'x']] }, true),
  row('B-32 X-Forwarded-Host is not read', { origin: 'https://x.example', more: [['X-Forwarded-Host', 'x.example']] }, true), // prettier-ignore
  row('a handshake: a GET that opens a channel for writes', { method: 'GET', site: 'cross-site', more: [['Upgrade', 'websocket']] }, true), // prettier-ignore
  ...['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'x'].map((type) =>
    row(`A-12 the content type ${type}`, { site: 'cross-site', more: [['Content-Type', type] as const] }, true),
  ),
  ...['X-HTTP-Method-Override', 'X-Method-Override', 'X-HTTP-Method'].map((name) =>
    row(`A-35 ${name}`, { site: 'cross-site', url: '/?_method=GET', more: [[name, 'GET'] as const] }, true),
  ),
]

const requestOf = ({ method = 'POST', site, origin, host = 'api.example', url = '/', more = [] }: Sent) =>
  mockRequest({
    method,
    url,
    fields: [
      ['Host', host],
      ...(site === undefined ? [] : [['Sec-Fetch-Site', site] as const]),
      ...(origin === undefined ? [] : [['Origin', origin] as const]),
      ...more,
    ],
  })

describe('isForged', () => {
  const policy = { csrf: true, trustedOrigins: trustedOrigins(['https://app.example']) }

  it.each(table)('B-33 $description: $expected, and nothing with csrf: false', ({ input, expected }) => {
    expect(isForged(requestOf(input), policy)).toBe(expected)
    expect(isForged(requestOf(input), { ...policy, csrf: false })).toBe(false)
  })

  it.each([
    ['sec-fetch-site', 'same-origin'],
    ['origin', 'https://api.example'],
    ['origin', 'https://app.example'],
    ['sec-fetch-mode', 'navigate'],
  ])('R09 an inherited %s: %s was not sent', (name, value) => {
    const old = requestOf({ origin: 'https://attacker.example' })
    const another = requestOf({ method: 'GET', site: 'cross-site' })
    pollute({ [name]: value })
    expect([isForged(old, policy), isForgedChange(another, policy)]).toEqual([true, true])
  })
})

describe('requests that change state', () => {
  const policy = { csrf: true, trustedOrigins: trustedOrigins(['https://app.example']) }

  it.each<[sent: string, more: ReadonlyArray<readonly [string, string]>, expected: boolean]>([
    ['no method', [], true],
    ['a read', [['X-Forwarded-Method', 'GET']], false],
    ['a read, as nginx names it', [['X-Original-Method', 'HEAD']], false],
    ['a write', [['X-Forwarded-Method', 'POST']], true],
    ['a read and a write', [['X-Forwarded-Method', 'GET'], ['X-Original-Method', 'POST']], true], // prettier-ignore
  ])('behind a proxy that asks, %s is forged: %s', (_sent, more, expected) => {
    const request = requestOf({ method: 'GET', site: 'cross-site', more })
    expect(isForged(request, { ...policy, forwarded: true })).toBe(expected)
    expect(isForged(request, policy)).toBe(false)
  })

  const navigation = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' }
  it.each<[description: string, method: string, more: Readonly<Record<string, string>>, expected: boolean]>([
    ['a link that a user follows', 'GET', navigation, false],
    ['a form that a user sends', 'POST', navigation, true],
    ['a link without these fields', 'GET', {}, true],
    ['a frame', 'GET', { ...navigation, 'Sec-Fetch-Dest': 'iframe' }, true],
    ['a fetch', 'GET', { 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'document' }, true],
    ['an image', 'GET', { 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image' }, true],
    ['a prefetch', 'GET', { ...navigation, 'Sec-Purpose': 'prefetch' }, true],
    ['a handshake', 'GET', { ...navigation, Upgrade: 'websocket' }, true],
    ['a link of a trusted origin, with Origin', 'GET', { Origin: 'https://app.example' }, false],
  ])('B-33 signing in from another site by %s: forged is %s', (_description, method, more, expected) => {
    const request = requestOf({ method, site: 'cross-site', more: Object.entries(more) })
    expect(isForgedChange(request, policy)).toBe(expected)
    expect(isForgedChange(request, { ...policy, csrf: false })).toBe(false)
  })

  it('B-33 signing in from the same site is not forged', () => {
    for (const method of ['GET', 'POST'])
      expect(isForgedChange(requestOf({ method, site: 'same-origin' }), policy)).toBe(false)
  })
})

describe('trustedOrigins', () => {
  it.each([
    'https://app.example',
    'http://app.example',
    'https://app.example:8443',
    'http://localhost:3000',
    'http://[::1]:81',
  ])('B-33 accepts %s', (origin) => {
    expect(trustedOrigins([origin])).toStrictEqual(new Set([origin]))
  })

  it.each([
    row('no scheme', 'app.example'),
    row('no host', 'https://'),
    row('a trailing slash', 'https://app.example/'),
    row('a path', 'https://app.example/path'),
    row('a query', 'https://app.example?query=value'),
    row('a fragment', 'https://app.example#fragment'),
    row('a second scheme', 'https://ftp://app.example'),
    row('an empty string', ''),
    row('the string null', 'null'),
    row('null', null),
    row('a user', 'https://user@app.example'),
    row('upper case', 'https://App.example'),
    row('an upper-case scheme', 'HTTPS://app.example'),
    row('a default port', 'https://app.example:443'),
    row('a wildcard', '*'),
    row('a wildcard for a part', 'https://*.example'),
    row('a blank', 'https://app.example '),
    row('an invalid port', 'https://app.example:99999'),
    row('a host outside of ASCII', 'https://äpp.example'),
    row('a blank inside', 'https://ap p.example'),
    row('a number', 7),
    row('undefined', undefined),
  ])('B-33 is a TypeError for $description', ({ input }) => {
    // Safe: a caller without types could pass this
    expect(() => trustedOrigins(['https://ok.example', input as string])).toThrow(TypeError)
  })
})

describe('a function of the origin, for previews', () => {
  const asked: string[] = []
  const previews = (origin: string) => {
    asked.push(origin)
    return /^https:\/\/pr-\d+\.shop\.example$/.test(origin)
  }
  const policy = { csrf: true, trustedOrigins: trustedOrigins(previews) }
  const from = (origin: string) => requestOf({ site: 'cross-site', origin })

  it('is asked once for each origin, and never for what no browser writes', () => {
    asked.length = 0
    for (const origin of ['https://pr-1.shop.example', 'https://evil.example', 'https://pr-1.shop.example']) {
      expect(isForged(from(origin), policy)).toBe(origin.includes('evil'))
    }
    for (const odd of ['null', 'https://pr-1.shop.example/', 'https://PR-1.shop.example', 'x', 'function previews']) {
      expect([odd, isForged(from(odd), policy)]).toEqual([odd, odd !== 'function previews'])
    }
    expect(asked).toEqual(['https://pr-1.shop.example', 'https://evil.example'])
  })

  it('an answer that is no boolean is an error, not a yes; a promise that rejects does not end the process', () => {
    const late = trustedOrigins((() => Promise.reject(new Error('bug'))) as never)
    expect(() => isForged(from('https://pr-1.shop.example'), { csrf: true, trustedOrigins: late })).toThrow(
      /must return true or false/,
    )
  })

  it('is still known where two sets are joined', () => {
    const joined = originRules.joined(policy.trustedOrigins, trustedOrigins(() => true)) // prettier-ignore
    expect(originRules.in(joined)).toHaveLength(2)
    expect(originRules.in(joined)).toContain(previews)
  })

  it('remembers a bounded number of origins', () => {
    asked.length = 0
    for (let n = 0; n < 3000; n++) isForged(from(`https://pr-${n}.shop.example`), policy)
    expect(asked.length).toBeGreaterThanOrEqual(2999)
    asked.length = 0
    // at most the last thousand are remembered, because a client can make up as many as it likes
    for (let n = 0; n < 2000; n++) isForged(from(`https://pr-${n}.shop.example`), policy)
    expect(asked).toHaveLength(2000)
  })

  it('an origin that no browser writes is none, and is not parsed', () => {
    asked.length = 0
    const parsed = vi.spyOn(URL, 'canParse')
    onTestFinished(() => parsed.mockRestore())
    for (const host of ['é'.repeat(200), `${'a.'.repeat(150)}example`, '%c3%a9.example']) {
      expect([host, isForged(from(`https://${host}`), policy)]).toEqual([host, true])
    }
    expect([asked, parsed.mock.calls]).toEqual([[], []])
  })

  it('a RegExp is refused, and named as it is written', () => {
    expect(() => trustedOrigins([/x/ as never])).toThrow(/trustedOrigins: \/x\/ is not an origin.*pass a function/)
  })
})
