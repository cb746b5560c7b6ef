/** Decisions of spec/requirements.md: how credentials are read. Titles begin with the question of the row. */
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  httpBasicAuth,
  httpBearer,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import { basic, challenge, expectDenied, expectPassed, operation, type Sending } from '../support/models/behavior.js'

// The principal is what reached the hook, so each row shows exactly what was read
const query = (paramName?: string) =>
  apiKeyQuery({ ...(paramName && { paramName }), authenticate: (_request, key) => [key] })
const header = (paramName?: string) =>
  apiKeyHeader({ ...(paramName && { paramName }), authenticate: (_request, key) => [key] })
const cookie = (paramName?: string) =>
  apiKeyCookie({ ...(paramName && { paramName }), authenticate: (_request, key) => [key] })
const bearer = httpBearer({ authenticate: (_request, token) => [token] })
const basicPair = httpBasicAuth({ authenticate: (_request, username, password) => [username, password] })

const authorization = (Authorization: string | string[]): Sending => ({ headers: { Authorization } })
const cookies = (Cookie: string): Sending => ({ headers: { Cookie } })
const base64 = (bytes: string, encoding: BufferEncoding = 'utf8') => Buffer.from(bytes, encoding).toString('base64')

const expectRead = async (authenticator: Authenticator<unknown>, sending: Sending, read: unknown, path = '/x') => {
  const { ask } = await operation(withAuth(authenticator))
  expectPassed(await ask(path, sending), read)
}

test('header and cookie `paramName` default: it is `key`, as for the query', async () => {
  await expectRead(query(), {}, ['k'], '/x?key=k')
  await expectRead(header(), { headers: { key: 'k' } }, ['k'])
  await expectRead(cookie(), cookies('key=k'), ['k'])
})

describe('absent or empty key, bare `Bearer`: the hook is not called', () => {
  const never = vi.fn(() => true)
  const keys: ReadonlyArray<readonly [what: string, Authenticator<unknown>, path: string, Sending, reported: string]> =
    [
      ['query key', apiKeyQuery({ authenticate: never }), '/x?key', {}, challenge.key('query')],
      ['query key with =', apiKeyQuery({ authenticate: never }), '/x?key=', {}, challenge.key('query')],
      ['header key', apiKeyHeader({ authenticate: never }), '/x', { headers: { key: '' } }, challenge.key('header')],
      [
        'header of blanks',
        apiKeyHeader({ authenticate: never }),
        '/x',
        { headers: { key: ' \t ' } },
        challenge.key('header'),
      ],
      ['cookie key', apiKeyCookie({ authenticate: never }), '/x', cookies('key='), challenge.key('cookie')],
      ['quoted cookie key', apiKeyCookie({ authenticate: never }), '/x', cookies('key=""'), challenge.key('cookie')],
      ['cookie without =', apiKeyCookie({ authenticate: never }), '/x', cookies('key'), challenge.key('cookie')],
    ]
  test.each(keys)('absent or empty key: %s', async (_what, authenticator, path, sending, reported) => {
    const { ask } = await operation(withAuth(authenticator))
    expectDenied(await ask(path, sending), 401, [reported])
    expect(never).not.toHaveBeenCalled()
  })

  test.each(['Bearer', 'Bearer ', 'bearer', 'BEARER   '])('bare `Bearer`: %j', async (value) => {
    const { ask } = await operation(withAuth(httpBearer({ authenticate: never })))
    const answer = await ask('/x', authorization(value))
    expect([challenge.bearer, challenge.refusedBearer]).toContain(answer.challenges[0])
    expectDenied(answer, 401, answer.challenges)
    expect(never).not.toHaveBeenCalled()
  })
})

describe('Basic: RFC 7617', () => {
  const good: ReadonlyArray<readonly [what: string, value: string, pair: readonly [string, string]]> = [
    ['the example of the RFC', 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==', ['Aladdin', 'open sesame']],
    ['a scheme in lower case', `basic ${base64('a:b')}`, ['a', 'b']],
    ['capitals', `BASIC ${base64('a:b')}`, ['a', 'b']],
    ['more spaces', `Basic    ${base64('a:b')}`, ['a', 'b']],
    [
      'UTF-8',
      `Basic ${base64('m\u00fcller:p\u00e4ssw\u00f6rd \u{1f511}')}`,
      ['m\u00fcller', 'p\u00e4ssw\u00f6rd \u{1f511}'],
    ],
    ['a byte order mark is a character', `Basic ${base64('\ufeffadmin:x')}`, ['\ufeffadmin', 'x']],
    ['the first colon separates', `Basic ${base64('a:b:c:')}`, ['a', 'b:c:']],
    ['no percent-decoding', `Basic ${base64('a%3Ab:c%20d+e')}`, ['a%3Ab', 'c%20d+e']],
    ['an empty user', `Basic ${base64(':b')}`, ['', 'b']],
    ['an empty password', `Basic ${base64('a:')}`, ['a', '']],
    ['both empty', `Basic ${base64(':')}`, ['', '']],
  ]
  test.each(good)('Basic: %s', (_what, value, pair) => expectRead(basicPair, authorization(value), pair))

  const bad: ReadonlyArray<readonly [what: string, value: string]> = [
    ['no scheme', base64('a:b')],
    ['another scheme', `Basics ${base64('a:b')}`],
    ['a tab', `Basic\t${base64('a:b')}`],
    ['a comma', `Basic ${base64('a:b')},`],
    ['two tokens', `Basic ${base64('a:b')} x`],
    ['nothing', 'Basic'],
    ['no padding', 'Basic YTpiYw'],
    ['too much padding', 'Basic YTpi='],
    ['only padding', 'Basic ===='],
    ['stray bits', 'Basic YTpiYx=='],
    ['the URL alphabet', 'Basic YTo_Pz8-'],
    ['a foreign character', 'Basic YTpi!YTpi'],
    ['no colon', `Basic ${base64('ab')}`],
    ['bytes that are not UTF-8', `Basic ${base64('a:\xff\xfe', 'latin1')}`],
    ['an overlong form', `Basic ${base64('a:\xc0\x80', 'latin1')}`],
    ['a NUL', `Basic ${base64('a\0:b')}`],
    ['a line break', `Basic ${base64('a:b\r\n')}`],
    ['a tab in the password', `Basic ${base64('a:b\tc')}`],
    ['DEL', `Basic ${base64('a:b\x7f')}`],
  ]
  test.each(bad)('Basic: %s is refused', async (_what, value) => {
    const { ask } = await operation(withAuth(basicPair))
    expectDenied(await ask('/x', authorization(value)), 401, [challenge.basic])
  })
})

describe('Bearer: RFC 6750', () => {
  test.each([
    ['a token', 'Bearer abc', 'abc'],
    ['every character of b64token', 'Bearer aZ09-._~+/==', 'aZ09-._~+/=='],
    ['a scheme in lower case', 'bearer abc', 'abc'],
    ['capitals', 'BEARER abc', 'abc'],
    ['more spaces', 'Bearer    abc', 'abc'],
    ['surrounding spaces are not a part of the token', ' Bearer  abc \t', 'abc'],
  ])('Bearer: %s', (_what, value, token) => expectRead(bearer, authorization(value), [token]))

  test.each([
    ['two tokens', 'Bearer a b'],
    ['a comma', 'Bearer a,b'],
    ['a leading =', 'Bearer =abc'],
    ['a = inside', 'Bearer a=b'],
    ['quotes', 'Bearer "abc"'],
    ['a tab', 'Bearer\tabc'],
    ['a colon', 'Bearer a:b'],
    ['a character outside of ASCII', 'Bearer caf\u00e9'],
    ['a parameter', 'Bearer realm="x"'],
  ])('Bearer: %s is malformed: the error is invalid_token, never invalid_request', async (_what, value) => {
    const { ask } = await operation(withAuth(bearer))
    expectDenied(await ask('/x', authorization(value)), 401, [challenge.refusedBearer])
  })

  test('Bearer: an absent token gets a challenge without an error, a refused one invalid_token', async () => {
    const { ask } = await operation(withAuth(httpBearer({ authenticate: () => false })))
    expectDenied(await ask(), 401, [challenge.bearer])
    expectDenied(await ask('/x', basic('a:b')), 401, [challenge.bearer])
    expectDenied(await ask('/x', authorization('Bearer abc')), 401, [challenge.refusedBearer])
  })
})

describe('credential sent twice: malformed', () => {
  const never = vi.fn(() => true)
  const rows: ReadonlyArray<readonly [what: string, Authenticator<unknown>, path: string, Sending, reported: string]> =
    [
      ['query parameter', apiKeyQuery({ authenticate: never }), '/x?key=a&key=b', {}, challenge.key('query')],
      [
        'query parameter, one of two empty',
        apiKeyQuery({ authenticate: never }),
        '/x?key=a&key=',
        {},
        challenge.key('query'),
      ],
      [
        'query parameter, one of two encoded',
        apiKeyQuery({ authenticate: never }),
        '/x?key=a&%6bey=b',
        {},
        challenge.key('query'),
      ],
      ['cookie', apiKeyCookie({ authenticate: never }), '/x', cookies('key=a; o=1; key=b'), challenge.key('cookie')],
      [
        'header',
        apiKeyHeader({ authenticate: never }),
        '/x',
        { headers: { key: ['a', 'b'] } },
        challenge.key('header'),
      ],
      [
        'Authorization, bearer',
        httpBearer({ authenticate: never }),
        '/x',
        authorization(['Bearer a', 'Bearer b']),
        challenge.refusedBearer,
      ],
      [
        'Authorization, two schemes',
        httpBearer({ authenticate: never }),
        '/x',
        authorization(['Basic YTpi', 'Bearer b']),
        challenge.refusedBearer,
      ],
      [
        'Authorization, the same twice',
        httpBasicAuth({ authenticate: never }),
        '/x',
        authorization(['Basic YTpi', 'Basic YTpi']),
        challenge.basic,
      ],
    ]
  test.each(rows)('credential sent twice: %s', async (_what, authenticator, path, sending, reported) => {
    const { ask } = await operation(withAuth(authenticator))
    expectDenied(await ask(path, sending), 401, [reported])
    expect(never).not.toHaveBeenCalled()
  })
})
