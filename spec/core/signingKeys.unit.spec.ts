/** keys that could be guessed. */
import Keygrip from 'keygrip'
import { describe, expect, it } from 'vitest'
import { keysFix, shortKeyWarning, strengthOf } from '../../src/core/session/signingKeys.js'

const long = 'k'.repeat(32)

describe('strengthOf', () => {
  it.each<[unknown]>([[[long]], [[long, `${long}k`]], [new Keygrip(['a'])]])('%o', (keys) => {
    expect(strengthOf(keys)).toBe('strong')
  })

  it.each<[unknown]>([[[long, 'short']], [[long, 's', long]], [[long, long, 'k'.repeat(31)]]])('%o', (keys) => {
    expect(strengthOf(keys)).toBe('older short')
  })

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
    [Object.assign(() => 1, { verify: () => true })],
  ])('not %o', (keys) => {
    expect(strengthOf(keys)).toBe('weak')
  })

  it('what to do is said with the length', () => {
    expect(keysFix).toBe(
      "app.keys must hold strings, and the first, which signs, at least 32 characters; app.keys = [randomBytes(32).toString('hex')], kept outside the code",
    )
    expect(shortKeyWarning).toMatch(/^app\.keys: an older key has fewer than 32 characters\. .* take it out/)
  })
})
