/** The keys of an application: how strong they are, and which of them made a signature. */
import Keygrip from 'keygrip'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { derivedFrom, derivedOnce, keysFix, sign, signedBy, strengthOf } from '../../src/crypto/appKeys.js'

// signing keys that could be guessed, and which key made a signature.

const [long, old, fresh] = ['k'.repeat(32), 'o'.repeat(32), 'n'.repeat(32)]

describe('strengthOf', () => {
  it.each<[unknown]>([[[long]], [[long, `${long}k`]], [new Keygrip(['a'])]])('of %o is strong', (keys) => {
    expect(strengthOf(keys)).toBe('strong')
  })

  it.each<[unknown]>([[[long, 'short']], [[long, 's', long]], [[long, long, 'k'.repeat(31)]]])(
    'of %o is "older short"',
    (keys) => {
      expect(strengthOf(keys)).toBe('older short')
    },
  )

  it.each<[unknown]>([
    [undefined],
    [null],
    [[]],
    [['k'.repeat(31)]],
    [[long, '']],
    [[long, 'short', undefined]],
    [['short', long]],
    [[{ length: 32 }]],
    [[Buffer.alloc(32)]],
    [long],
    [{}],
    [{ sign: () => '' }],
    [{ verify: () => true }],
    [{ sign: 'a', verify: () => true }],
    [{ sign: () => '', verify: 'a' }],
    [Object.assign(() => 1, { verify: () => true })],
  ])('of %o is weak', (keys) => {
    expect(strengthOf(keys)).toBe('weak')
  })

  it('has a fix that names the length', () => {
    expect(keysFix).toBe(
      "app.keys must hold strings, and the first, which signs, at least 32 characters; app.keys = [randomBytes(32).toString('hex')], kept outside the code",
    )
  })
})

describe('signedBy', () => {
  it.each<[string, (...keys: string[]) => unknown]>([
    ['an array', (...keys) => keys],
    ['a Keygrip', (...keys) => new Keygrip(keys)],
  ])('%s: the first key signs, every key verifies, and nothing else is a signature', (_, make) => {
    const signature = sign(make(old, fresh), 'anna')
    expect(signedBy(make(old, fresh), 'anna', signature)).toBe('first')
    expect(signedBy(make(fresh, old), 'anna', signature)).toBe('older')
    expect(signedBy(make(fresh), 'anna', signature)).toBe('none')
    for (const forged of ['', 'anna', signature.slice(1), sign(make(old), 'root')]) {
      expect(signedBy(make(old, fresh), 'anna', forged)).toBe('none')
    }
  })

  it.each([[undefined], [old], [[]], [[undefined]]])('%o signs and verifies nothing', (keys) => {
    expect(() => sign(keys, 'anna')).toThrow(new TypeError(keysFix))
    expect(signedBy(keys, 'anna', sign([old], 'anna'))).toBe('none')
  })

  it('prepares a key once, and forgets keys that were rotated out', () => {
    const pads = vi.spyOn(Array, 'from')
    onTestFinished(() => pads.mockRestore())
    const padsOf = (name: string) => (pads.mockClear(), sign([name.padEnd(32, '-')], 'anna'), pads.mock.calls.length)
    expect([padsOf('first'), padsOf('first')]).toStrictEqual([2, 0])
    for (let at = 0; at < 32; at++) padsOf(String(at))
    expect(padsOf('first')).toBe(2)
  })

  it('ignores older keys that are not strings', () => {
    expect(signedBy([fresh, undefined, old], 'anna', sign([old], 'anna'))).toBe('older')
  })
})

describe('derivedFrom', () => {
  it('gives each key one of 32 bytes for each purpose, and a Keygrip one', () => {
    const derived = [
      ...derivedFrom([old, fresh], 'a'),
      ...derivedFrom([old], 'b'),
      ...derivedFrom(new Keygrip([old]), 'a'),
    ]
    expect(derived.map(({ length }) => length)).toStrictEqual([32, 32, 32, 32])
    expect(new Set(derived.map((key) => key.toString('hex'))).size).toBe(4)
    expect(derivedFrom([old], 'a')).toStrictEqual(derived.slice(0, 1))
  })
})

describe('derivedOnce', () => {
  it('makes anew when a key is another string, in place too, and nothing of what is no string', () => {
    const keys: unknown[] = ['a'.repeat(32)]
    const made: string[] = []
    const all = derivedOnce(
      () => keys,
      'cookie',
      (key) => made[made.push(key.toString('hex')) - 1],
    )
    expect(all()).toStrictEqual(all())
    expect(made).toHaveLength(1)
    keys[0] = 'b'.repeat(32)
    expect(all()).toStrictEqual([made[1]])
    expect(made[1]).not.toBe(made[0])
    keys.push(undefined)
    expect(all()).toStrictEqual([made[2], undefined])
    expect(made[2]).toBe(made[1])
  })

  it('asks a Keygrip at each call, because it may change inside', () => {
    const inside = ['a'.repeat(32)]
    const keygrip = new Keygrip(inside)
    const all = derivedOnce(
      () => keygrip,
      'cookie',
      (key) => key.toString('hex'),
    )
    const [before] = all()
    expect(before).toHaveLength(64)
    inside.unshift('b'.repeat(32))
    expect(all()).not.toStrictEqual([before])
    expect(derivedOnce(() => ({}), 'cookie', String)()).toStrictEqual([])
  })
})
