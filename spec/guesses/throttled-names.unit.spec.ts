/** `throttled`: spellings, networks and other sites are no way to more guesses, and do not lock an account out. */
import { either as E, option as O } from 'fp-ts'
import * as t from 'io-ts'
import { apiKeyCookie, apiKeyQuery, authenticator, Challenge, httpBearer, throttled } from 'koa-with-auth'
import { type BasicCredentials } from 'koa-with-auth/fp'
import { describe, expect, it, vi } from 'vitest'
import { Attempt } from '../../src/core/Exchange.js'
import { readersOf, sayingScopes } from '../../src/core/granted.js'
import { accountNames } from '../../src/guesses/accountNames.js'
import { widerNetwork } from '../../src/guesses/addresses.js'
import { basicOf, from, guess, guessing, memory, tagsOf, times } from '../support/models/guessing.js'

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
      const { calls, tags } = guessing(5, { keys })
      await tags(...times(12, (at) => guess(spelled(at))))
      expect(calls).toHaveLength(5)
    }
  })
})

describe('the account that credentials name', () => {
  /** A kind whose credentials are these, one after the other, behind a limit of three guesses at an account from anywhere. */
  const guessingAt = (...all: ReadonlyArray<unknown>) => {
    const authenticate = vi.fn(() => false)
    const kind = authenticator({
      challenge: Challenge.make('Form'),
      ambient: false,
      extract: (request) => O.some(all[Number(request.get('at')) % all.length]),
      credentials: new t.Type<unknown, unknown, unknown>('Any', t.unknown.is, t.success, t.identity),
      authenticate,
    })
    const a = throttled({ limiter: { accountAndAddress: memory(100), account: memory(3) } })(kind)
    const sent = times(5, (at) => from(`192.0.2.${at}`, [['at', String(at)]]))
    return { a, authenticate, tags: () => tagsOf(a, ...sent) }
  }

  const fields = ['username', 'email', 'login', 'user', 'account', 'phone']
  it.each<[string, ReadonlyArray<unknown>]>([
    ...fields.flatMap((name) => [
      [`is in the field ${name}`, [{ [name]: 'anna', password: 'x' }]] as [string, ReadonlyArray<unknown>],
      [`is a number in the field ${name}`, [{ [name]: 4711, password: 'x' }]] as [string, ReadonlyArray<unknown>],
    ]),
    [
      'is one phone number, however its digits are grouped',
      ['+49 151 234567', '+49 (151) 23-45-67', '+49151234567', '\u202d+49 151 234567\u202c', '4915.1234567'].map(
        (phone) => ({ phone }),
      ),
    ],
  ])('%s', async (_where, credentials) => {
    const { authenticate, tags } = guessingAt(...credentials)
    expect(await tags()).toBe('invalid invalid invalid throttled throttled')
    expect(authenticate).toHaveBeenCalledTimes(3)
  })

  it.each([
    ['no such field', { name: 'anna', password: 'x' }],
    ['another letter case', { Email: 'anna' }],
    ['a field of a field', { user: { email: 'anna' } }],
  ])('is an error that names keys where there is %s', async (_what, credentials) => {
    const { a, authenticate } = guessingAt(credentials)
    expect(await a.evaluate(from('192.0.2.1'))).toMatchObject(
      E.left({ _tag: 'raised', error: { message: expect.stringContaining('throttled({ keys })') } }),
    )
    expect(authenticate).not.toHaveBeenCalled()
  })

  it('is none where they are a string', async () => {
    expect(await guessingAt('key').tags()).not.toContain('throttled')
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

  it('cannot use up the guesses of an account', async () => {
    const limiter = { accountAndAddress: memory(5), account: memory(100, 86_400), address: memory(1000, 86_400) }
    const { calls, tags } = guessing(limiter)
    await tags(...times(120, (at) => guess('anna', 'wrong', `2001:db8:1:${(0xa000 + at * 37).toString(16)}::1`)))
    expect(calls).toHaveLength(49)
    const [elsewhere, outside] = [guess('anna', 'good', '2001:db8:2:1::1'), guess('anna', 'good')]
    expect(await tags(elsewhere, outside, guess('maria', 'good', '2001:db8:1:1::1'))).toBe('passed passed passed')
  })
})

describe('what another site makes a browser send', () => {
  type Fields = Parameters<typeof from>[1]
  const site = (mode: string, dest: string) =>
    [
      ['Sec-Fetch-Site', 'cross-site'],
      ['Sec-Fetch-Mode', mode],
      ['Sec-Fetch-Dest', dest],
    ] as const
  const origin = ['Origin', 'https://evil.example'] as const
  const ways: ReadonlyArray<readonly [string, string, NonNullable<Fields>]> = [
    ['an image', 'GET', site('no-cors', 'image')],
    ['a frame', 'GET', site('navigate', 'iframe')],
    ['a form', 'POST', [...site('navigate', 'document'), origin]],
    ['a fetch', 'GET', [...site('cors', 'empty'), origin]],
    ['HEAD', 'HEAD', site('no-cors', 'empty')],
    ['an old browser, which sends Origin only', 'POST', [origin]],
    ['a handshake', 'GET', [origin, ['Upgrade', 'websocket'], ['Connection', 'Upgrade']]],
    ['a link', 'GET', site('navigate', 'document')],
  ]

  it.each(ways)('by %s uses up no guess of its visitor, nor at the account it names', async (_way, method, fields) => {
    const a = throttled({ limiter: memory(5) })(
      apiKeyQuery({ authenticate: (_request, sent) => sent === 'good' && { sent } }),
    )
    const keyed = (key: string, more?: Fields) => from('192.0.2.1', more, { method, url: `/?key=${key}` })
    await tagsOf(a, ...times(10, (at) => keyed(`x${at}`, fields)))
    expect(await tagsOf(a, keyed('wrong'), keyed('good'))).toBe('invalid passed')
    const { tags } = guessing({ accountAndAddress: memory(2), account: memory(50), address: memory(50) })
    await tags(...times(10, (at) => from('192.0.2.1', [basicOf('anna', `x${at}`), ...fields], { method })))
    expect(await tags(guess('anna', 'good'))).toBe('passed')
  })

  it('nor a stale cookie, nor a malformed key', async () => {
    const a = throttled({ limiter: memory(2) })(
      apiKeyCookie({ authenticate: (_request, sent) => sent === 'good' && { sent } }),
    )
    const cookie = (sent: string, more: Fields = []) => from('192.0.2.1', [['Cookie', `key=${sent}`], ...more])
    await tagsOf(a, ...['old', 'old', 'a b', '"', 'old'].map((sent) => cookie(sent, site('no-cors', 'image'))))
    expect(await tagsOf(a, cookie('good'))).toBe('passed')
  })

  it('gives a client that writes these fields itself at most twice the guesses', async () => {
    const { calls, tags } = guessing({ accountAndAddress: memory(5), account: memory(20) })
    const sites = ['cross-site', 'same-site', 'same-origin', 'none', 'x']
    const sent = (at: number, address: string, more: Fields = []) =>
      from(address, [basicOf('anna', `g${at}`), ['Sec-Fetch-Site', sites[at % 5]!], ...more])
    await tags(...times(100, (at) => sent(at, '192.0.2.1', [['Origin', `https://${at}.example`]])))
    expect(calls).toHaveLength(10)
    await tags(...times(200, (at) => sent(at, `192.0.3.${at}`)))
    expect(calls.length).toBeLessThanOrEqual(40)
  })
})

describe('throttled', () => {
  const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && 'anna' })
  const sent = (token: string) =>
    from('192.0.2.1', [['Authorization', `Bearer ${token}`], ['Sec-Fetch-Site', 'cross-site']], { method: 'POST' }) // prettier-ignore
  const keys = (_request: unknown, account: string) => ({ account })

  it('refuses no write from another site with a credential that no browser sends, and keeps the scopes of its kind', async () => {
    const a = throttled({ limiter: memory(5), keys })(sayingScopes(bearer, () => ['read']))
    expect(await tagsOf(a, sent('good'))).toBe('passed')
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
