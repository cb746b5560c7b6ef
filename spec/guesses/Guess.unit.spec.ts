/** By what guesses are counted: the address of the client, and the name of the account. */
import { either as E } from 'fp-ts'
import { AuthError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'
import { accountNames } from '../../src/guesses/accountNames.js'
import { clientAddress, networkOf } from '../../src/guesses/addresses.js'
import { unfinished } from '../../src/core/AuthError.js'
import { counting, countsIn } from '../../src/guesses/Guess.js'

// The address by which guesses are counted: the part of an address that one client can choose does not count.

describe('T-06 an address', () => {
  it.each<[string, string | undefined]>([
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:5678', '192.0.2.1'],
    ['192.0.2.1:65535', '192.0.2.1'],
    ['192.000.002.001', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1:5678', '192.0.2.1'],
    ['[::ffff:192.0.2.1]:5678', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:c000:0201', '192.0.2.1'],
    ['64:ff9b::192.0.2.1', '192.0.2.1'],
    ['64:ff9b::c000:201', '192.0.2.1'],
    ['64:ff9b::192.168.20.10', '192.168.20.10'],
    ['64:ff9b::192.168.20.10:5678', '192.168.20.10'],
    ['2001:db8:1:2::192.168.20.10', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:DB8:0:0:ffff::1', '2001:db8:0:0::/64'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8:0:0::/64'],
    ['[2001:db8::1]', '2001:db8:0:0::/64'],
    ['[2001:db8::1]:443', '2001:db8:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:5:6:443', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2:A:B:C:D:443', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:5:6:65535', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['[::1]:80', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['', undefined],
    ['unknown', undefined],
    ['192.0.2.256', undefined],
    ['192.0.2', undefined],
    ['12345::1', undefined],
    ['1::2::3', undefined],
    [':::', undefined],
    ['1:2:3', undefined],
    ['1:2:3:4:5:6:7', undefined],
    ['1:2:3:4:5:6:7:8:9:10', undefined],
    ['1:2:3:4:5:6:7:8:x', undefined],
    ['1:2:3:4:5:6:7:8:65536', undefined],
    ['1z::1', undefined],
    ['1.1::1', undefined],
    ['192.0.2.1::1', undefined],
    ['192.0.2.1:', undefined],
    ['192.0.2.1:x', undefined],
    ['x192.0.2.1', undefined],
    ['192.0.2.1x', undefined],
    ['192.0.2.1111', undefined],
    ['1192.0.2.1', undefined],
    ['::192.0.2.1x', undefined],
    ['::x192.0.2.1', undefined],
    ['[2001:db8::1', undefined],
    ['[2001:db8::1]x', undefined],
    ['[2001:db8::1]:x', undefined],
    ['x[2001:db8::1]', undefined],
    ['[2001:db8::]1]', undefined],
    ['for=192.0.2.1', undefined],
    [`${'1:'.repeat(50)}1`, undefined],
    [`fe80::1%${'e'.repeat(100)}`, undefined],
  ])('%s', (written, expected) => {
    expect(networkOf(written)).toBe(expected)
  })

  it('of 100,000 characters is refused without parsing', () => {
    expect(networkOf(':'.repeat(100_000))).toBeUndefined()
  })
})

describe('T-06 the address of a request', () => {
  const from = (forwarded: string | undefined, { proxy = true, maxIpsCount = 0, socket = '10.0.0.1' } = {}) => {
    const fields = forwarded === undefined ? [] : [['X-Forwarded-For', forwarded] as const]
    const request = mockRequest({ fields, remoteAddress: socket })
    Object.assign(request.ctx.app, { proxy, maxIpsCount })
    return clientAddress(request)
  }

  it.each<[string, string | undefined, Parameters<typeof from>[1], string]>([
    ['without a proxy, X-Forwarded-For does not count', '192.0.2.1', { proxy: false }, '10.0.0.1'],
    ['the last address of X-Forwarded-For, without its port', '1.1.1.1, 192.0.2.1:5678', {}, '192.0.2.1'],
    ['with brackets and port', '[2001:db8::1]:443', {}, '2001:db8:0:0::/64'],
    ['of two proxies, that of the outer', '9.9.9.9, 192.0.2.1:7, 10.0.0.2:8', { maxIpsCount: 2 }, '192.0.2.1'],
    ['an invalid address counts as missing', 'unknown', {}, '10.0.0.1'],
    ['no X-Forwarded-For', undefined, {}, '10.0.0.1'],
    ['a blank after the last comma', '192.0.2.1, ', {}, '10.0.0.1'],
    ['an IPv6 socket', undefined, { socket: '::ffff:192.0.2.7' }, '192.0.2.7'],
  ])('%s', (_rule, forwarded, options, expected) => {
    expect(from(forwarded, options)).toBe(expected)
  })
})

// The name by which guesses at an account are counted: names that a database may treat as equal have one form.

const form = (name: string) => accountNames(name)[0]

describe('T-07 one account', () => {
  it.each([
    ['letter case', 'ANNA', 'anna'],
    ['NFC and NFD', 'Zo\u00eb', 'Zoe\u0308'],
    ['compatibility forms (NFKC)', 'Ａｎｎａ', 'anna'],
    ['accents', 'ánná', 'anna'],
    ['combining accents', 'a\u0301\u0302\u0303nna', 'anna'],
    ['a stroke', 'sør', 'SOR'],
    ['ligatures', 'Æsop', 'aesop'],
    ['sharp s', 'straße', 'STRASSE'],
    ['I with and without a dot', 'İrıs', 'iris'],
    ['sigma at the end of a word', 'ΝΙΚΟΣ', 'νικος'],
    ['Cyrillic letter case and breve', 'Андрей', 'андреи'],
    ['digits of other scripts', 'user١٢', 'user12'],
    ['circled letters', 'ⓐⓝⓝⓐ', 'anna'],
    ['modifier letters', 'ann\u0363', 'anna'],
    ['isolated Arabic vowel signs', 'an\ufe76\ufc60na', 'anna'],
    ['half-width letters', 'ｶﾅ', 'カナ'],
    ['leading and trailing blanks', '\u00a0 anna\t', 'anna'],
    ['repeated blanks', 'anna  \u2003maria', 'anna maria'],
    ['zero-width characters', 'an\u200b\u200d\ufeffna', 'anna'],
    ['a soft hyphen', 'an\u00adna', 'anna'],
    ['direction', '\u202eanna', 'anna'],
    ['NUL', 'anna\u0000', 'anna'],
    ['variation selectors', 'anna\ufe0f', 'anna'],
    ['different characters after the first 256', 'a'.repeat(256) + 'x', 'a'.repeat(256)],
    ['a blank before the cut', 'a'.repeat(255) + ' x', 'a'.repeat(255)],
  ])('%s', (_rule, one, other) => {
    expect(form(one)).toBe(form(other))
  })

  it('holds for everything in the Latin blocks that a collation treats as a Latin letter or ignores', () => {
    const { compare } = new Intl.Collator('und', { sensitivity: 'base' })
    const latin = [...'0123456789abcdefghijklmnopqrstuvwxyz']
    const pairs = latin.flatMap((first) => latin.map((second) => first + second))
    const blocks = [[0xa0, 0x24f], [0x300, 0x36f], [0x1d00, 0x1eff], [0x2070, 0x218f], [0x2460, 0x24ff], [0xa720, 0xa7ff], [0xff01, 0xff5e]] // prettier-ignore
    let same = 0
    for (const [first = 0, last = 0] of blocks) {
      for (let at = first; at <= last; at++) {
        const character = String.fromCodePoint(at)
        const found = ['', ...latin].find((one) => compare(one, character) === 0)
        const expected = found ?? pairs.find((pair) => compare(pair, character) === 0)
        if (expected === undefined) continue
        same++
        expect(form(character), at.toString(16)).toBe(expected)
      }
    }
    expect(same).toBeGreaterThan(1000)
  })
})

describe('T-07 a mark that is a letter for a collation, and an accent for a program that drops marks', () => {
  it.each([
    ['anna', ['anna']],
    ['ánna', ['anna']],
    ['ann\u0363', ['anna', 'ann']],
    ['ANN\u0363', ['anna', 'ann']],
    ['a\u0363nna', ['aanna', 'anna']],
    ['a\u093fnna', ['a\u093fnna', 'anna']],
  ])('%j counts as %j', (name, forms) => {
    expect(accountNames(name)).toEqual(forms)
  })
})

describe('T-07 different accounts', () => {
  it.each([
    ['anna', 'ann'],
    ['anna', 'anna2'],
    ['anna', 'an na'],
    ['anna', 'аnna'],
    ['anna@a.example', 'anna@b.example'],
    ['an.na', 'anna'],
    ['山田', '山本'],
  ])('%s and %s', (one, other) => {
    expect(form(one)).not.toBe(form(other))
  })
})

it('T-07 every share of a name that counts as two is asked before any account', () => {
  const limiter = { points: 100, consume: async () => undefined, reward: async () => undefined }
  const limiters = { accountAndAddress: { ...limiter }, account: limiter }
  const counts = countsIn(limiters)('ann\u0363', '192.0.2.1')
  const kinds = counts.map((count) =>
    count.limiter !== limiter ? 'account and address' : count.atMost === undefined ? 'account' : 'share',
  )
  expect(kinds).toEqual(['account and address', 'account and address', 'share', 'share', 'account', 'account'])
})

describe('what is counted', () => {
  const limiter = { points: 11, duration: 60, consume: async () => undefined, reward: async () => undefined }
  const limiters = { accountAndAddress: limiter, account: limiter, address: limiter }

  it('has a key of its own for what it counts, however account and address are cut', () => {
    const keysOf = (account: string, address: string) => countsIn(limiters)(account, address).map(({ key }) => key)
    const keys = [...keysOf('192.0.2.1', '192.0.2.1'), ...keysOf('ab', 'c'), ...keysOf('a', 'bc')]
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('is the address alone without an account, and a network of IPv6 has the share of a network', () => {
    const pair = { ...limiter, points: 5 }
    const ofAddress = { ...limiter }
    expect(countsIn({ ...limiters, accountAndAddress: pair, address: ofAddress })(undefined, 'a')).toMatchObject([
      { under: 'address', limiter: ofAddress },
    ])
    const counts = countsIn({ accountAndAddress: pair, account: limiter })
    const sharesAt = (address: string) =>
      counts('anna', address).flatMap(({ under, atMost }) => (under === 'share' ? [atMost] : []))
    expect([sharesAt('192.0.2.1'), sharesAt('2001:db8:1:2::/64')]).toEqual([[], [5]])
  })

  it('stays counted by each limiter if the answer is wrong, and else, or after an exception, is given back', async () => {
    let taken = 0
    const counter = { consume: async () => ++taken, reward: async () => --taken }
    const count = counting({ accountAndAddress: counter, account: counter, address: counter }, 'throttled')
    const after = async (f: () => E.Either<AuthError, string>) => {
      taken = 0
      await count('anna', 'a', f).catch(() => {})
      return taken
    }
    const raise = () => {
      throw new Error('bug')
    }
    const [good, refused, wrong] = [E.right('anna'), E.left(AuthError.invalid), E.left(unfinished('wrong'))]
    expect([await after(() => good), await after(() => refused), await after(raise)]).toEqual([0, 0, 0])
    expect(await after(() => wrong)).toBe(3)
    const down = { ...counter, consume: () => Promise.reject(new Error('down')) }
    expect(await counting(down, 'throttled')('anna', 'a', () => good)).toMatchObject({ left: { _tag: 'unavailable' } })
  })
})
