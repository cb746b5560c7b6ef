/** C-03: one-time ids on every store of sessions. */
import { spentOver } from 'koa-with-auth/sign-in'
import { expect, it } from 'vitest'
import { describeEveryStore } from '../support/sessionStores.js'

let at = 0
const newId = () => `id ${process.pid} ${at++} ${Math.random()}`

describeEveryStore((store) => {
  it('C-03 an id is spent by one of twenty that race', async () => {
    const { spend } = spentOver(store())
    for (let round = 0; round < 5; round++) {
      const id = newId()
      const won = await Promise.all(Array.from({ length: 20 }, () => spend(id, 60_000)))
      expect(won.filter(Boolean)).toHaveLength(1)
      expect(await spend(id, 60_000)).toBe(false)
    }
  })

  it('C-03 by one of two implementations, and only for its lifetime', async () => {
    const { spend: _spend, ...plain } = store()
    const id = newId()
    const won = await Promise.all([spentOver(store()), spentOver(plain)].map(({ spend }) => spend(id, 300)))
    expect(won.filter(Boolean)).toHaveLength(1)
    await new Promise((resolve) => setTimeout(resolve, 350))
    expect(await spentOver(plain).spend(id, 60_000)).toBe(true)
  })

  it('C-03 another id is another one, and the store gets a digest', async () => {
    const inserted: string[] = []
    const { spend: _spend, ...plain } = store()
    const watching = {
      ...plain,
      insert: (id: string, text: string, ms: number) => (inserted.push(id), plain.insert(id, text, ms)),
    }
    const [one, other] = [newId(), newId()]
    expect([await spentOver(watching).spend(one, 60_000), await spentOver(watching).spend(other, 60_000)]).toEqual([
      true,
      true,
    ])
    expect(inserted.join(' ')).not.toContain('id ')
  })

  it('C-03 an outage rejects', async () => {
    const failing = { ...store(), spend: undefined, insert: () => Promise.reject(new Error('down')) }
    const { spend: _none, ...plain } = failing
    await expect(spentOver(plain).spend(newId(), 1000)).rejects.toThrow('down')
    const silent = { ...plain, insert: store().insert, read: () => Promise.reject(new Error('down')) }
    await expect(spentOver(silent).spend(newId(), 1000)).rejects.toThrow('down')
  })
})
