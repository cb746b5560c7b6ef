/** C-03: one-time ids over every store. */
import { UnavailableError } from 'koa-with-auth'
import { memoryStore, oneTimeIds, type Store } from 'koa-with-auth/stores'
import { describe, expect, it, vi } from 'vitest'
import { isUsedIn } from '../../src/stores/oneTimeIds.js'
import { noting, overEveryStore } from '../support/stores/stores.js'

const LONG = 60_000
let at = 0
const newId = () => `id ${process.pid} ${at++} ${Math.random()}`

describe('C-03 a mistake is a TypeError, and the store is not asked', () => {
  const { store, calls } = noting(memoryStore())
  const ids = oneTimeIds(store)

  it.each([{ sendCommand: () => {} }, undefined, memoryStore])('something that is no store: %s', (given) => {
    expect(() => oneTimeIds(given as never)).toThrow(TypeError)
    expect(() => oneTimeIds(given as never)).toThrow(/^oneTimeIds\(store\) has no method get; /)
  })

  it('an application that is no string', () => {
    expect(() => oneTimeIds(store, {} as never)).toThrow(
      new TypeError('oneTimeIds(store, application): application must be a string, not an object'),
    )
  })

  it.each([undefined, null, 7, {}, ['id']])('an id that is no string: %j', async (id) => {
    await expect(ids.use(id as never, LONG)).rejects.toThrow(/^use\(id\): id must be a string, not /)
    await expect(ids.use(id as never, LONG)).rejects.toBeInstanceOf(TypeError)
    await expect(ids.release(id as never)).rejects.toThrow(/^release\(id\): id must be a string, not /)
    await expect(ids.release(id as never)).rejects.toBeInstanceOf(TypeError)
    expect(calls).toEqual([])
  })

  it.each([0, -1, 0.9, NaN, undefined, '1000', [1000]])('a lifetime that is none: %j', async (lifetime) => {
    await expect(ids.use('id', lifetime as never)).rejects.toThrow(/lifetime must be milliseconds/)
    expect(calls).toEqual([])
    expect(await oneTimeIds(memoryStore()).use('id', 1)).toBe(true)
  })
})

overEveryStore((store, name) => {
  const { use, release } = {
    use: (id: string, ms = LONG) => oneTimeIds(store()).use(id, ms),
    release: async (id: string, ms?: number) => oneTimeIds(store()).release(id, ms),
  }

  it('C-03 of twenty callers at once, one uses an id, before and after each release, also a second one', async () => {
    const id = newId()
    for (let round = 0; round < 3; round++) {
      const won = await Promise.all(Array.from({ length: 20 }, () => use(id)))
      expect(won.filter(Boolean)).toHaveLength(1)
      await release(id)
      if (round === 1) await release(id)
    }
    expect([await use(id), await use(id)]).toEqual([true, false])
  })

  it('C-03 a release after a time keeps the id until then, however long it was used for', async () => {
    const [longer, shorter] = [newId(), newId()]
    expect([await use(longer, 1500), await use(shorter)]).toEqual([true, true])
    await release(longer, LONG)
    await release(shorter, 50)
    await vi.waitUntil(() => use(shorter), { timeout: 20_000, interval: 20 })
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(await use(longer)).toBe(false)
  })

  it('C-03 a release of an id that is not used, or that is free, does nothing', async () => {
    const [unused, free] = [newId(), newId()]
    await release(unused)
    await use(free)
    await release(free)
    for (const id of [unused, free]) {
      await release(id, LONG)
      expect([await use(id), await use(id)]).toEqual([true, false])
    }
  })

  it('C-03 applications that share a store have ids of their own', async () => {
    const id = newId()
    const all = [oneTimeIds(store()), oneTimeIds(store(), 'shop'), oneTimeIds(store(), `${name} blog`)]
    for (const ids of all) expect([await ids.use(id, LONG), await ids.use(id, LONG)]).toEqual([true, false])
  })
})

it('C-03 the store gets digests that say what they are for', async () => {
  const { store, calls, given } = noting(memoryStore())
  const { use, release } = oneTimeIds(store, 'shop')
  const id = 'a secret id'
  expect([await use(id, LONG), await use(id, LONG), await release(id)]).toEqual([true, false, undefined])
  expect(calls).toEqual(['insert', 'insert', 'update', 'update'])
  for (const [key] of given) expect(key).toMatch(/^koa-with-auth\/once\/[A-Za-z0-9_-]{43}$/)
  expect(JSON.stringify(given)).not.toContain('secret')
})

it('C-03 a look at an id says whether it is used, and uses nothing', async () => {
  const store = memoryStore()
  const { use, release } = oneTimeIds(store, 'shop')
  const look = () => isUsedIn(store, 'shop', 'a')
  const seen = [await look(), await use('a', LONG), await look(), await release('a'), await look()]
  expect(seen).toEqual([false, true, true, undefined, false])
})

describe('C-03 an outage', () => {
  const down = new Error('ECONNREFUSED')
  const changed = (more: Partial<Store>): Store => ({ ...memoryStore(), ...more })

  it.each<readonly [string, Partial<Store>]>([
    ['that rejects', { insert: () => Promise.reject(down), update: () => Promise.reject(down) }],
    ['of another answer', { insert: async () => 'OK' as never, update: async () => 1 as never }],
  ])('%s rejects with a 503', async (_how, methods) => {
    const ids = oneTimeIds(changed(methods))
    await expect(ids.use('id', LONG)).rejects.toBeInstanceOf(UnavailableError)
    await expect(ids.release('id')).rejects.toBeInstanceOf(UnavailableError)
  })

  it('of a store that is silent rejects after two seconds', async () => {
    vi.useFakeTimers()
    const silent = () => new Promise<never>(() => {})
    const ids = oneTimeIds(changed({ insert: silent, update: silent }))
    const asked = [ids.use('id', LONG), ids.release('id')].map((one) => one.catch((error: unknown) => error))
    await vi.advanceTimersByTimeAsync(2001)
    vi.useRealTimers()
    for (const one of asked) expect(await one).toBeInstanceOf(UnavailableError)
  })
})
