/** keys that could be guessed. */
import Keygrip from 'keygrip'
import { describe, expect, it } from 'vitest'
import { areStrong, keysFix } from '../../src/core/session/signingKeys.js'

const long = 'k'.repeat(32)

describe('areStrong', () => {
  it.each<[unknown]>([[[long]], [[long, `${long}k`]], [new Keygrip(['a'])]])('%o', (keys) => {
    expect(areStrong(keys)).toBe(true)
  })

  it.each<[unknown]>([
    [undefined],
    [null],
    [[]],
    [['k'.repeat(31)]],
    [[long, 'short']],
    [['short', long]],
    [[{ length: 32 }]],
    [[Buffer.alloc(32)]],
    [long],
    [{}],
    [{ sign: () => '' }],
    [Object.assign(() => 1, { verify: () => true })],
  ])('not %o', (keys) => {
    expect(areStrong(keys)).toBe(false)
  })

  it('what to do is said with the length', () => {
    expect(keysFix).toBe(
      "app.keys must hold keys of at least 32 characters each; app.keys = [randomBytes(32).toString('hex')], kept outside the code",
    )
  })
})
