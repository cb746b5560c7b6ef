/**
 * The check for CSRF: the table of Go's CrossOriginProtection, and more; and which origins can be trusted (B-31 to
 * B-33).
 */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { isForged, isForgedChange, trustedOrigins } from '../../src/core/CrossOrigin.js'
import { mockRequest } from 'koa-with-auth/testing'
import { pollute } from '../support/runs/pollute.js'
import { row } from '../support/models/row.js'

interface Row {
  readonly description: string
  readonly method?: string
  readonly site?: string
  readonly origin?: string
  readonly host?: string
  readonly expected: boolean
}

const table: ReadonlyArray<Row> = [
  { description: 'same-origin', site: 'same-origin', expected: false },
  { description: 'none (typed by the user)', site: 'none', expected: false },
  { description: 'cross-site', site: 'cross-site', expected: true },
  { description: 'same-site is another origin', site: 'same-site', expected: true },
  { description: 'no field and no Origin: not a browser', expected: false },
  { description: 'no field, the same Origin', origin: 'https://api.example', expected: false },
  { description: 'no field, another Origin', origin: 'https://attacker.example', expected: true },
  { description: 'no field, Origin null', origin: 'null', expected: true },
  { description: 'GET', method: 'GET', site: 'cross-site', expected: false },
  { description: 'HEAD', method: 'HEAD', site: 'cross-site', expected: false },
  { description: 'OPTIONS', method: 'OPTIONS', site: 'cross-site', expected: false },
  { description: 'PUT', method: 'PUT', site: 'cross-site', expected: true },
  { description: 'A-35 TRACE is not safe', method: 'TRACE', site: 'cross-site', expected: true },
  { description: 'A-35 a method in lower case is not GET', method: 'get', site: 'cross-site', expected: true },
  { description: 'an unknown word', site: 'same-origin-ish', expected: true },
  { description: 'another letter case', site: 'Same-Origin', expected: true },
  { description: 'two values joined', site: 'same-origin, cross-site', expected: true },
  {
    description: 'cross-site with the same Origin: the field decides',
    site: 'cross-site',
    origin: 'https://api.example',
    expected: true,
  },
  {
    description: 'same-origin with another Origin: the field decides',
    site: 'same-origin',
    origin: 'https://attacker.example',
    expected: false,
  },
  { description: 'B-32 the scheme is not compared', origin: 'http://api.example', expected: false },
  { description: 'B-32 the port is compared', origin: 'https://api.example:8443', expected: true },
  {
    description: 'B-32 the same port passes',
    origin: 'https://api.example:8443',
    host: 'api.example:8443',
    expected: false,
  },
  {
    description: 'RFC 9110 §4.2.3 the default port of https is no other origin',
    origin: 'https://api.example',
    host: 'api.example:443',
    expected: false,
  },
  {
    description: 'RFC 9110 §4.2.3 the default port of http is no other origin',
    origin: 'http://api.example',
    host: 'api.example:80',
    expected: false,
  },
  {
    description: 'the default port of the other scheme is another origin',
    origin: 'http://api.example',
    host: 'api.example:443',
    expected: true,
  },
  {
    description: 'RFC 3986 §3.2.2 a host has no letter case',
    origin: 'https://api.example',
    host: 'Api.Example',
    expected: false,
  },
  {
    description: 'both: upper case and a default port',
    origin: 'https://api.example',
    host: 'API.example:443',
    expected: false,
  },
  {
    description: 'a Host with a user names no host',
    origin: 'https://attacker.example',
    host: 'api.example:x@attacker.example',
    expected: true,
  },
  {
    description: 'a Host with a path names no host',
    origin: 'https://api.example',
    host: 'api.example/x',
    expected: true,
  },
  { description: 'an IPv6 address', origin: 'http://[::1]', host: '[::1]:80', expected: false },
  { description: 'a host with the same beginning', origin: 'https://api.example.attacker.example', expected: true },
  { description: 'the host as a user', origin: 'https://api.example@attacker.example', expected: true },
  { description: 'the host as a path', origin: 'https://attacker.example/api.example', expected: true },
  { description: 'the host with a path', origin: 'https://api.example/', expected: true },
  { description: 'a backslash', origin: 'https://api.example\\', expected: true },
  { description: 'no scheme', origin: 'api.example', expected: true },
  { description: 'two origins', origin: 'https://api.example, https://attacker.example', expected: true },
  {
    description: 'two origins, the same one last',
    origin: 'https://attacker.example https://api.example',
    expected: true,
  },
  { description: 'a trusted origin', site: 'cross-site', origin: 'https://app.example', expected: false },
  { description: 'a trusted origin without the field', origin: 'https://app.example', expected: false },
  { description: 'a trusted host, another scheme', site: 'cross-site', origin: 'http://app.example', expected: true },
  {
    description: 'a trusted host, another port',
    site: 'cross-site',
    origin: 'https://app.example:444',
    expected: true,
  },
  { description: 'a subdomain of a trusted host', site: 'cross-site', origin: 'https://x.app.example', expected: true },
  { description: 'cross-site without an Origin', site: 'cross-site', origin: '', expected: true },
  { description: 'no Host', origin: 'https://attacker.example', host: '', expected: true },
]

const requestOf = ({ method = 'POST', site, origin, host = 'api.example' }: Row) =>
  mockRequest({
    method,
    fields: [
      ['Host', host],
      ...(site === undefined ? [] : [['Sec-Fetch-Site', site] as const]),
      ...(origin === undefined ? [] : [['Origin', origin] as const]),
    ],
  })

describe('isForged', () => {
  const policy = { csrf: true, trustedOrigins: trustedOrigins(['https://app.example']) }

  it.each(table)('B-33 $description: $expected', (row) => {
    expect(isForged(requestOf(row), policy)).toBe(row.expected)
  })

  it.each(table)('with csrf: false nothing is forged: $description', (row) => {
    expect(isForged(requestOf(row), { ...policy, csrf: false })).toBe(false)
  })

  it.each([
    undefined,
    'application/json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'x',
  ])('A-12 the content type %s changes nothing', (type) => {
    const content = type === undefined ? [] : [['Content-Type', type] as const]
    const fields = [['Host', 'api.example'], ['Sec-Fetch-Site', 'cross-site'], ...content] as const
    expect(isForged(mockRequest({ method: 'POST', fields }), policy)).toBe(true)
  })

  it.each(['X-HTTP-Method-Override', 'X-Method-Override', 'X-HTTP-Method'])('A-35 %s is not read', (name) => {
    const fields = [
      ['Host', 'api.example'],
      ['Sec-Fetch-Site', 'cross-site'],
      [name, 'GET'],
    ] as const
    expect(isForged(mockRequest({ method: 'POST', url: '/?_method=GET', fields }), policy)).toBe(true)
  })

  it.each([
    ['sec-fetch-site', 'same-origin'],
    ['origin', 'https://api.example'],
    ['origin', 'https://app.example'],
    ['sec-fetch-mode', 'navigate'],
  ])('R09 an inherited %s: %s was not sent', (name, value) => {
    const old = mockRequest({
      method: 'POST',
      fields: [
        ['Host', 'api.example'],
        ['Origin', 'https://attacker.example'],
      ],
    })
    const another = mockRequest({
      fields: [
        ['Host', 'api.example'],
        ['Sec-Fetch-Site', 'cross-site'],
      ],
    })
    pollute({ [name]: value })
    expect([isForged(old, policy), isForgedChange(another, policy)]).toEqual([true, true])
  })

  it('B-32 X-Forwarded-Host is not read', () => {
    const fields = [
      ['Host', 'api.example'],
      ['Origin', 'https://attacker.example'],
      ['X-Forwarded-Host', 'attacker.example'],
    ] as const
    expect(isForged(mockRequest({ method: 'POST', fields }), policy)).toBe(true)
  })
})

describe('requests that change state', () => {
  const policy = { csrf: true, trustedOrigins: trustedOrigins(['https://app.example']) }
  const own = ['Host', 'api.example'] as const
  const crossSite = ['Sec-Fetch-Site', 'cross-site'] as const

  it('B-33 a handshake is a GET that opens a channel for writes, so it is forged from another site', () => {
    const fields = [own, crossSite, ['Upgrade', 'websocket'] as const]
    expect(isForged(mockRequest({ method: 'GET', fields }), policy)).toBe(true)
    expect(isForged(mockRequest({ method: 'GET', fields: [own, crossSite] }), policy)).toBe(false)
  })

  it('B-32 with two Host lines, no origin is the same', () => {
    const fields = [own, ['Host', 'attacker.example'], ['Origin', 'https://api.example']] as const
    expect(isForged(mockRequest({ method: 'POST', fields }), policy)).toBe(true)
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
    const request = mockRequest({ method, fields: [own, crossSite, ...Object.entries(more)] })
    expect(isForgedChange(request, policy)).toBe(expected)
    expect(isForgedChange(request, { ...policy, csrf: false })).toBe(false)
  })

  it('B-33 signing in from the same site is not forged', () => {
    const fields = [own, ['Sec-Fetch-Site', 'same-origin']] as const
    for (const method of ['GET', 'POST']) expect(isForgedChange(mockRequest({ method, fields }), policy)).toBe(false)
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
  const from = (origin: string) =>
    mockRequest({
      method: 'POST',
      fields: [
        ['Host', 'api.example'],
        ['Sec-Fetch-Site', 'cross-site'],
        ['Origin', origin],
      ],
    })

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

  it('an answer that is no boolean is an error, not a yes', () => {
    const late = trustedOrigins((() => Promise.resolve(false)) as never)
    expect(() => isForged(from('https://pr-1.shop.example'), { csrf: true, trustedOrigins: late })).toThrow(
      /must return true or false/,
    )
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
