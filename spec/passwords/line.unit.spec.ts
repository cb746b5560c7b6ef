/**
 * The queue of password work: a few at a time, in order, none lost. When it is full, or a wait is too long, work is
 * refused.
 */
import fc from 'fast-check'
import { UnavailableError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { makeQueue } from '../../src/passwords/passwords.js'

const settled = () => new Promise((resolve) => setImmediate(resolve))

// Work that ends when the test says so
const works = () => {
  const begun: number[] = []
  const ends = new Map<number, (error?: Error) => void>()
  const work = (id: number) => () =>
    new Promise<number>((resolve, reject) => {
      begun.push(id)
      ends.set(id, (error) => (error === undefined ? resolve(id) : reject(error)))
    })
  return { begun, ends, work }
}

describe('P-03 a line', () => {
  it('starts as many as its width, and the next one when one ends, even with an error', async () => {
    const { begun, ends, work } = works()
    const line = makeQueue({ width: 2, limit: 10, patience: 1000 })
    const all = [1, 2, 3, 4].map((id) => line(work(id)))
    const failing = expect(all[0]).rejects.toThrow('failed')
    expect(begun).toEqual([1, 2])
    ends.get(2)?.()
    await settled()
    expect(begun).toEqual([1, 2, 3])
    ends.get(1)?.(new Error('failed'))
    await settled()
    expect(begun).toEqual([1, 2, 3, 4])
    for (const id of [3, 4]) ends.get(id)?.()
    await failing
    expect(await Promise.all(all.slice(1))).toEqual([2, 3, 4])
  })

  it('refuses work while it is full, and accepts work again later', async () => {
    const { begun, ends, work } = works()
    const line = makeQueue({ width: 1, limit: 1, patience: 1000 })
    const [first, second] = [line(work(1)), line(work(2))]
    await expect(line(work(3))).rejects.toBeInstanceOf(UnavailableError)
    ends.get(1)?.()
    await first
    await settled()
    const fourth = line(work(4))
    ends.get(2)?.()
    await second
    await settled()
    ends.get(4)?.()
    expect([await fourth, begun]).toEqual([4, [1, 2, 4]])
  })

  it('refuses work that waited too long, and never starts it', async () => {
    const { begun, ends, work } = works()
    const line = makeQueue({ width: 1, limit: 10, patience: 20 })
    const [first, second] = [line(work(1)), line(work(2))]
    const refused = expect(second).rejects.toBeInstanceOf(UnavailableError)
    await new Promise((resolve) => setTimeout(resolve, 40))
    const third = line(work(3))
    ends.get(1)?.()
    await first
    await refused
    await settled()
    ends.get(3)?.()
    expect([await third, begun]).toEqual([3, [1, 3]])
  })

  it('law: never runs more than its width, and each work gets its own result or is refused', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.nat(6),
        fc.array(fc.record({ fails: fc.boolean(), turns: fc.nat(3) }), { maxLength: 30 }),
        async (width, limit, all) => {
          const line = makeQueue({ width, limit, patience: 10_000 })
          let [working, most] = [0, 0]
          const results = await Promise.allSettled(
            all.map(({ fails, turns }, id) =>
              line(async () => {
                most = Math.max(most, ++working)
                for (let turn = 0; turn < turns; turn++) await settled()
                working--
                if (fails) throw new Error(String(id))
                return id
              }),
            ),
          )
          expect(most).toBeLessThanOrEqual(width)
          expect(working).toBe(0)
          const away = results.filter((one) => one.status === 'rejected' && one.reason instanceof UnavailableError)
          expect(away.length).toBe(Math.max(0, all.length - width - limit))
          for (const [id, one] of results.entries()) {
            if (one.status === 'fulfilled') expect(one.value).toBe(id)
            else if (!(one.reason instanceof UnavailableError))
              expect(one.reason).toMatchObject({ message: String(id) })
          }
        },
      ),
    )
  })
})
