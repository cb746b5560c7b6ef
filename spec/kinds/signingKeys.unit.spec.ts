/** signing keys that could be guessed, and which key made a signature. */
import Keygrip from 'keygrip'
import { describe, expect, it } from 'vitest'
import { keysFix, shortKeyWarning, signed, signedBy, strengthOf } from '../../src/kinds/plainSession.js'

const long = 'k'.repeat(32)

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
    expect(shortKeyWarning).toMatch(/^app\.keys: an older key has fewer than 32 characters\. .* take it out/)
  })
})

describe('signedBy', () => {
  const [old, fresh] = ['o'.repeat(32), 'n'.repeat(32)]

  it.each<[string, (...keys: string[]) => unknown]>([
    ['an array', (...keys) => keys],
    ['a Keygrip', (...keys) => new Keygrip(keys)],
  ])('%s: the first key signs, every key verifies, and nothing else is a signature', (_, make) => {
    const signature = signed(make(old, fresh), 'anna')
    expect(signedBy(make(old, fresh), 'anna', signature)).toBe('first')
    expect(signedBy(make(fresh, old), 'anna', signature)).toBe('older')
    expect(signedBy(make(fresh), 'anna', signature)).toBe('none')
    for (const forged of ['', 'anna', signature.slice(1), signed(make(old), 'root')]) {
      expect(signedBy(make(old, fresh), 'anna', forged)).toBe('none')
    }
  })

  it.each([[undefined], [old], [[]], [[undefined]]])('%o signs and verifies nothing', (keys) => {
    expect(() => signed(keys, 'anna')).toThrow(new TypeError(keysFix))
    expect(signedBy(keys, 'anna', signed([old], 'anna'))).toBe('none')
  })

  it('ignores older keys that are not strings', () => {
    expect(signedBy([fresh, undefined, old], 'anna', signed([old], 'anna'))).toBe('older')
  })
})
