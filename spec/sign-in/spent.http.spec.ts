/** C-03: one-time ids on every store of sessions. */
import type { SessionStore } from 'koa-with-auth/sessions'
import { spentOver, type Spent } from 'koa-with-auth/sign-in'
import { laws } from 'koa-with-auth/testing/laws'
import { expect, it } from 'vitest'
import { describeEveryStore } from '../support/stores/sessionStores.js'

let at = 0
const newId = () => `id ${process.pid} ${at++} ${Math.random()}`
const failing = () => Promise.reject(new Error('down'))

it('C-03 what is no store is a TypeError when it is written', () => {
  expect(() => spentOver({ sendCommand: () => {} } as never)).toThrow(
    new TypeError('spentOver(store) has no method read; pass a store, such as redisStore({ command })'),
  )
})

describeEveryStore((store) => {
  // those who write a store of their own need no method `spend`
  const plain = () => ({ ...store(), spend: undefined })

  it('C-03 the laws hold, with the method of the store', async () => {
    const down: Spent = spentOver({ ...store(), spend: failing })
    await laws.spent(spentOver(store()), store().spend === undefined ? {} : { down }).check()
  })

  it('C-03 the laws hold without a method of the store, and in an outage of a write or of a read', async () => {
    await laws.spent(spentOver(plain()), { down: spentOver({ ...plain(), insert: failing }) }).check()
    await laws.spent(spentOver(plain()), { down: spentOver({ ...plain(), read: failing }) }).check()
  })

  it('C-03 a released id is free at once, also in a store that keeps it for some milliseconds', async () => {
    const slow: SessionStore = { ...store(), update: (id, text, ms) => store().update(id, text, ms + 5) }
    const { spend, release } = spentOver(slow)
    const id = newId()
    const results = [await spend(id, 60_000), await release(id), await spend(id, 60_000), await spend(id, 60_000)]
    expect(results).toStrictEqual([true, undefined, true, false])
  })

  it('C-03 by one of two implementations', async () => {
    const id = newId()
    const won = await Promise.all([spentOver(store()), spentOver(plain())].map(({ spend }) => spend(id, 60_000)))
    expect(won.filter(Boolean)).toHaveLength(1)
  })

  it('C-03 the store gets a digest', async () => {
    const inserted: string[] = []
    const watching = {
      ...plain(),
      insert: (id: string, text: string, ms: number) => (inserted.push(id), store().insert(id, text, ms)),
    }
    expect(await spentOver(watching).spend(newId(), 60_000)).toBe(true)
    expect(inserted).toHaveLength(1)
    expect(inserted.join(' ')).not.toContain('id ')
  })
})
