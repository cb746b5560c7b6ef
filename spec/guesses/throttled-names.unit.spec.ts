/** `throttled`: spellings, networks and other sites are no way to more guesses, and do not lock an account out. */
import { either as E, option as O } from 'fp-ts'
import * as t from 'io-ts'
import {
  apiKeyCookie,
  apiKeyQuery,
  authenticator,
  Challenge,
  httpBasicAuth,
  httpBearer,
  throttled,
  type Authenticator,
  type ThrottledOptions,
} from 'koa-with-auth'
import { type BasicCredentials } from 'koa-with-auth/fp'
import { mockRequest } from 'koa-with-auth/testing'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { Attempt } from '../../src/core/Exchange.js'
import { readersOf, sayingScopes } from '../../src/core/granted.js'
import { accountNames } from '../../src/guesses/accountNames.js'
import { widerNetwork } from '../../src/guesses/addresses.js'

type Field = readonly [string, string]
const from = (address: string, fields: ReadonlyArray<Field>, method = 'GET', url = '/') => {
  const request = mockRequest({ method, url, fields: [['Host', 'api.example'], ...fields] })
  Object.defineProperty(request.req.socket, 'remoteAddress', { value: address, configurable: true })
  return request
}
const basicOf = (user: string, password: string): Field => [
  'Authorization',
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
]
const memory = (points: number, duration = 900) => new RateLimiterMemory({ points, duration })
const tagOf = async (a: Authenticator<unknown>, request: Parameters<typeof a.evaluate>[0]) => {
  const result = await a.evaluate(request)
  return E.isLeft(result) ? result.left._tag : 'passed'
}
const passwords = (options: ThrottledOptions<BasicCredentials>) => {
  const reached: string[] = []
  const basic = httpBasicAuth({
    authenticate: (_request, username, password) => {
      reached.push(username)
      return password === 'right' && { username }
    },
  })
  return { a: throttled<BasicCredentials>(options)(basic), reached }
}

const accountName = (name: string) => accountNames(name)[0]

describe('a name has one count', () => {
  const fillers = [' ', '\u200b', '\u00ad', '\u3164', '\u0301', '\u034f', '\u180e', '\u2063', '\ufe0f', '\u115f']

  it.each(fillers.map((filler) => [`U+${filler.codePointAt(0)?.toString(16)}`, filler]))(
    'however many of %s are around it',
    (_name, filler = '') => {
      for (const count of [1, 100, 250, 255, 256, 257, 300, 5000]) {
        expect(accountName(filler.repeat(count) + 'anna')).toBe('anna')
        expect(accountName('anna' + filler.repeat(count))).toBe('anna')
        if (filler !== ' ') expect(accountName('an' + filler.repeat(count) + 'na')).toBe('anna')
      }
    },
  )

  it('also if normalization makes it longer', () => {
    // NFKD makes 18 characters of one
    expect(accountName('\ufdfa'.repeat(20)).length).toBeLessThanOrEqual(256)
    expect(accountName(' '.repeat(300) + '\u2474'.repeat(50))).toBe(accountName('\u2474'.repeat(50)))
  })

  it('also with blanks of several kinds in a row', () => {
    expect(accountName('anna \u200b \u0301\u00a0\t maria')).toBe('anna maria')
  })

  it('and no more guesses, by keys too', async () => {
    const spelled = (at: number) => `${' '.repeat(250 + at)}anna${'\u200b'.repeat(256 - at)}`
    for (const keys of [undefined, (_request: unknown, { username }: BasicCredentials) => ({ account: username })]) {
      const { a, reached } = passwords({ limiter: memory(5), ...(keys && { keys }) })
      for (let at = 0; at < 12; at++) await tagOf(a, from('192.0.2.1', [basicOf(spelled(at), 'wrong')]))
      expect(reached).toHaveLength(5)
    }
  })
})

describe('the account that credentials name', () => {
  const of = (credentials: unknown) => {
    let calls = 0
    const kind = authenticator({
      scheme: { type: 'http', scheme: 'form' },
      challenge: Challenge.make('Form'),
      ambient: false,
      extract: () => O.some('sent'),
      credentials: new t.Type<unknown, unknown, unknown>('Any', t.unknown.is, () => t.success(credentials), t.identity),
      authenticate: () => (calls++, false),
    })
    const a = throttled({ limiter: { accountAndAddress: memory(100), account: memory(3) } })(kind)
    const guessing = async (count: number) => {
      const all: string[] = []
      for (let at = 0; at < count; at++) all.push(await tagOf(a, from(`192.0.2.${at}`, [])))
      return { tags: all, calls }
    }
    return { a, guessing }
  }

  it.each(
    ['username', 'email', 'login', 'user', 'account', 'phone'].flatMap(
      (name) =>
        [
          [name, 'anna'],
          [name, 4711],
        ] as const,
    ),
  )('is in the field %s: %s', async (name, value) => {
    const { tags, calls } = await of({ [name]: value, password: 'x' }).guessing(5)
    expect(tags).toStrictEqual(['invalid', 'invalid', 'invalid', 'throttled', 'throttled'])
    expect(calls).toBe(3)
  })

  it('is one phone number, however its digits are grouped', async () => {
    const numbers = [
      ...['+49 151 234567', '+49 (151) 23-45-67', '+49151234567'],
      ...['\u202d+49 151 234567\u202c', '4915.1234567'],
    ]
    const called: string[] = []
    const kind = authenticator({
      scheme: { type: 'http', scheme: 'form' },
      challenge: Challenge.make('Form'),
      ambient: false,
      extract: (request) => O.fromNullable(numbers[Number(request.get('at'))]),
      credentials: new t.Type<{ phone: string }, unknown, unknown>(
        'Phone',
        (_u): _u is { phone: string } => true,
        (phone) => t.success({ phone: String(phone) }),
        t.identity,
      ),
      authenticate: (_request, { phone }) => (called.push(phone), false),
    })
    const a = throttled({ limiter: { accountAndAddress: memory(100), account: memory(3) } })(kind)
    const tags: string[] = []
    for (let at = 0; at < 5; at++) tags.push(await tagOf(a, from(`192.0.2.${at}`, [['at', String(at)]])))
    expect(tags).toStrictEqual(['invalid', 'invalid', 'invalid', 'throttled', 'throttled'])
    expect(called).toHaveLength(3)
  })

  it.each([
    ['no such field', { name: 'anna', password: 'x' }],
    ['another letter case', { Email: 'anna' }],
    ['a field of a field', { user: { email: 'anna' } }],
  ])('is an error that names keys where there is %s', async (_what, credentials) => {
    const { a, guessing } = of(credentials)
    expect(await guessing(1)).toStrictEqual({ tags: ['raised'], calls: 0 })
    const result = await a.evaluate(from('192.0.2.1', []))
    expect(E.isLeft(result) && result.left._tag === 'raised' && String(result.left.error)).toContain(
      'throttled({ keys })',
    )
  })

  it('is none where they are a string', async () => {
    expect((await of('key').guessing(5)).tags).not.toContain('throttled')
  })
})

describe('one network of IPv6 addresses', () => {
  it.each([
    ['2001:db8:1:abcd::/64', '2001:db8:1::/48'],
    ['192.0.2.1', undefined],
    ['', undefined],
    ['a name from keys', undefined],
  ])('of %s is %s', (address, network) => {
    expect(widerNetwork(address)).toBe(network)
  })

  const limiters = () => ({
    accountAndAddress: memory(5),
    account: memory(100, 86_400),
    address: memory(1000, 86_400),
  })
  const flood = async (a: Authenticator<unknown>, addressOf: (at: number) => string) => {
    for (let at = 0; at < 120; at++) await tagOf(a, from(addressOf(at), [basicOf('anna', 'wrong')]))
  }

  it('cannot use up the guesses of an account', async () => {
    const { a, reached } = passwords({ limiter: limiters() })
    await flood(a, (at) => `2001:db8:1:${(0xa000 + at * 37).toString(16)}::1`)
    expect(reached).toHaveLength(49)
    expect(await tagOf(a, from('2001:db8:2:1::1', [basicOf('anna', 'right')]))).toBe('passed')
    expect(await tagOf(a, from('192.0.2.1', [basicOf('anna', 'right')]))).toBe('passed')
    expect(await tagOf(a, from('2001:db8:1:1::1', [basicOf('maria', 'right')]))).toBe('passed')
  })
})

describe('what another site makes a browser send', () => {
  const key = () =>
    throttled({ limiter: memory(5) })(apiKeyQuery({ authenticate: (_request, sent) => sent === 'good' && { sent } }))
  const site = (mode: string, dest: string): ReadonlyArray<Field> => [
    ['Sec-Fetch-Site', 'cross-site'],
    ['Sec-Fetch-Mode', mode],
    ['Sec-Fetch-Dest', dest],
  ]
  const ways: ReadonlyArray<readonly [string, string, ReadonlyArray<Field>]> = [
    ['an image', 'GET', site('no-cors', 'image')],
    ['a frame', 'GET', site('navigate', 'iframe')],
    ['a form', 'POST', [...site('navigate', 'document'), ['Origin', 'https://evil.example']]],
    ['a fetch', 'GET', [...site('cors', 'empty'), ['Origin', 'https://evil.example']]],
    ['HEAD', 'HEAD', site('no-cors', 'empty')],
    ['an old browser, which sends Origin only', 'POST', [['Origin', 'https://evil.example']]],
    [
      'a handshake',
      'GET',
      [
        ['Origin', 'https://evil.example'],
        ['Upgrade', 'websocket'],
        ['Connection', 'Upgrade'],
      ],
    ],
    ['a link', 'GET', site('navigate', 'document')],
  ]

  it.each(ways)('by %s uses up no guess of its visitor', async (_way, method, fields) => {
    const a = key()
    for (let at = 0; at < 10; at++) await tagOf(a, from('192.0.2.1', fields, method, `/?key=x${at}`))
    expect(await tagOf(a, from('192.0.2.1', [], 'GET', '/?key=wrong'))).toBe('invalid')
    expect(await tagOf(a, from('192.0.2.1', [], 'GET', '/?key=good'))).toBe('passed')
  })

  it.each(ways)('by %s uses up no guess at the account that it names', async (_way, method, fields) => {
    const { a } = passwords({ limiter: { accountAndAddress: memory(2), account: memory(50), address: memory(50) } })
    for (let at = 0; at < 10; at++) await tagOf(a, from('192.0.2.1', [basicOf('anna', `x${at}`), ...fields], method))
    expect(await tagOf(a, from('192.0.2.1', [basicOf('anna', 'right')]))).toBe('passed')
  })

  it('nor a stale cookie, nor a malformed key', async () => {
    const a = throttled({ limiter: memory(2) })(
      apiKeyCookie({ authenticate: (_request, sent) => sent === 'good' && { sent } }),
    )
    for (const sent of ['old', 'old', 'a b', '"', 'old'])
      await tagOf(a, from('192.0.2.1', [['Cookie', `key=${sent}`], ...site('no-cors', 'image')]))
    expect(await tagOf(a, from('192.0.2.1', [['Cookie', 'key=good']]))).toBe('passed')
  })

  it('gives a client that writes these fields itself at most twice the guesses', async () => {
    const { a, reached } = passwords({ limiter: { accountAndAddress: memory(5), account: memory(20) } })
    const sites = ['cross-site', 'same-site', 'same-origin', 'none', 'x']
    for (let at = 0; at < 100; at++) {
      const fields: Field[] = [
        basicOf('anna', `g${at}`),
        ['Sec-Fetch-Site', sites[at % 5]!],
        ['Origin', `https://${at}.example`],
      ]
      await tagOf(a, from('192.0.2.1', fields))
    }
    expect(reached).toHaveLength(10)
    for (let at = 0; at < 200; at++) {
      const fields: Field[] = [basicOf('anna', `g${at}`), ['Sec-Fetch-Site', sites[at % 5]!]]
      await tagOf(a, from(`192.0.3.${at}`, fields))
    }
    expect(reached.length).toBeLessThanOrEqual(40)
  })
})

describe('throttled', () => {
  const bearer = httpBearer({ authenticate: (_request, token) => token === 'right' && 'anna' })
  const sent = (token: string) =>
    from('192.0.2.1', [
      ['Authorization', `Bearer ${token}`],
      ['Sec-Fetch-Site', 'cross-site'],
    ], 'POST') // prettier-ignore
  const keys = (_request: unknown, account: string) => ({ account })

  it('refuses no write from another site with a credential that no browser sends, and keeps the scopes of its kind', async () => {
    const a = throttled({ limiter: memory(5), keys })(sayingScopes(bearer, () => ['read']))
    expect(await tagOf(a, sent('right'))).toBe('passed')
    expect(readersOf(a)).toHaveLength(1)
  })

  it('counts nothing in a decision that is not counted', async () => {
    const a = throttled({ limiter: memory(1), keys })(bearer)
    for (let at = 0; at < 3; at++) {
      const request = sent('wrong')
      const uncounted = Object.assign(new Attempt(request), { isUncounted: true })
      expect(await a.evaluate(request, uncounted)).toMatchObject(E.left({ _tag: 'invalid' }))
    }
  })
})
