/** Keys at their limits of time, on every store: the exact millisecond, and a clock that is set back. */
import { either as E } from 'fp-ts'
import { apiKeys } from 'koa-with-auth/keys'
import { mockRequest } from 'koa-with-auth/testing'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { describeEveryKeyStore, digestOf } from '../support/stores/keyStores.js'

const NOW = 1_800_000_000_000
const HOUR = 3_600_000

const request = mockRequest({})
let runs = 0

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: NOW }))
afterEach(() => void vi.useRealTimers())

describeEveryKeyStore((store, name) => {
  const made = () => {
    const keys = apiKeys({ prefix: 'acme', store: store(), adopted: /^old-/ })
    const verdictOf = async (key: string) => {
      const result = await keys.authenticate(request, key)
      return E.isRight(result) ? 'in' : result.left._tag
    }
    return { keys, verdictOf, owner: `${name} ${runs++}` }
  }

  it('K-04 a key is over from the exact millisecond of its end, and cannot be rotated from then on', async () => {
    const { keys, verdictOf, owner } = made()
    const expiresAt = new Date(NOW + 1000)
    const { key, id } = await keys.issue({ owner, expiresAt })
    vi.setSystemTime(NOW + 999)
    expect(await verdictOf(key)).toBe('in')
    vi.setSystemTime(NOW + 1000)
    expect(await verdictOf(key)).toBe('expired')
    await expect(keys.rotate(id, { overlap: HOUR })).rejects.toThrow('expired')
    await expect(keys.issue({ owner, expiresAt })).rejects.toThrow('must not be in the past')
    // A revoked key is invalid, whether it is over or not
    await keys.revoke(id)
    expect(await verdictOf(key)).toBe('invalid')
  })

  it('K-09 an overlap is over from the exact millisecond of its end, and never lasts longer than the key', async () => {
    const { keys, verdictOf, owner } = made()
    const { key, id } = await keys.issue({ owner, expiresAt: new Date(NOW + 500) })
    const { key: second } = await keys.rotate(id, { overlap: 100 })
    const { key: third } = await keys.rotate(id, { overlap: HOUR })
    const all = () => Promise.all([key, second, third].map(verdictOf))
    vi.setSystemTime(NOW + 99)
    expect(await all()).toEqual(['in', 'in', 'in'])
    vi.setSystemTime(NOW + 100)
    expect(await all()).toEqual(['expired', 'in', 'in'])
    vi.setSystemTime(NOW + 500)
    expect(await all()).toEqual(['expired', 'expired', 'expired'])
  })

  it('K-09 a secret that was replaced without an overlap stays over when the clock is set back', async () => {
    const { keys, verdictOf, owner } = made()
    const { key, id } = await keys.issue({ owner })
    const digest = digestOf(`old-${owner}`)
    const { id: adopted } = await keys.adopt(digest, { owner })
    const [next] = [await keys.rotate(id, { overlap: 0 }), await keys.rotate(adopted, { overlap: 0 })]
    for (const ms of [0, -1, -HOUR, HOUR]) {
      vi.setSystemTime(NOW + ms)
      expect([await verdictOf(key), await verdictOf(`old-${owner}`)]).toEqual(['expired', 'expired'])
      expect(await verdictOf(next.key)).toBe('in')
    }
    // The next rotation does not give it another end either, if the clock is behind
    vi.setSystemTime(NOW - HOUR)
    await keys.rotate(id, { overlap: 2 * HOUR })
    expect(await verdictOf(key)).not.toBe('in')
    expect(await verdictOf(next.key)).toBe('in')
  })

  it('K-10 a revoked key stays invalid, whatever the clock says', async () => {
    const { keys, verdictOf, owner } = made()
    const { key, id } = await keys.issue({ owner })
    const { key: second } = await keys.rotate(id, { overlap: HOUR })
    await keys.revoke(id)
    for (const ms of [-HOUR, 0, HOUR]) {
      vi.setSystemTime(NOW + ms)
      expect([await verdictOf(key), await verdictOf(second)]).toEqual(['invalid', 'invalid'])
      await expect(keys.rotate(id, { overlap: HOUR })).rejects.toThrow('revoked')
    }
  })
})
