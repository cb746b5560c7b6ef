/** C-01: beginnings keep nothing, neither in a store nor in the process. */
import { expect, it } from 'vitest'
import { world } from '../support/models/ceremonyModel.js'
import { heapKept } from '../support/runs/heap.js'

const MEGABYTE = 2 ** 20

it('C-01 100,000 beginnings call no store, and leave the memory as it was', async () => {
  const w = world()
  const samples: number[] = []
  for (let at = 1; at <= 100_000; at += 1) {
    await w.begin(at % 3, `browser ${at}`)
    if (at % 20_000 === 0) samples.push(heapKept())
  }
  expect([w.order, w.spent()]).toEqual([[], 0])
  const [first = 0] = samples
  // 80,000 more would be 12 MB, if each kept only its handle
  expect(Math.min(...samples.slice(-2)) - first).toBeLessThan(6 * MEGABYTE)
})
