/** The store in memory: what has a lifetime is gone at its instant, and is forgotten. The laws of every store are in engines.law. */
import cluster from 'node:cluster'
import { countFailures } from 'koa-with-auth/sign-in'
import { memoryStore } from 'koa-with-auth/stores'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1000 }))
afterEach(() => void vi.useRealTimers())

it('a text, an end and a member are there until their lifetime is over, and not at that instant', async () => {
  const store = memoryStore()
  await store.insert('text', 'a', 1000)
  await store.end('ended', 1000)
  await store.add('set', 'member', 1000)
  const seen = async () => [await store.get(['text']), await store.insert('ended', 'b', 1), await store.members('set')]
  vi.advanceTimersByTime(999)
  expect(await seen()).toStrictEqual([['a'], false, ['member']])
  vi.advanceTimersByTime(1)
  expect(await seen()).toStrictEqual([[undefined], true, []])
})

it('a clock that is set forward lets nothing be forgotten for good', async () => {
  const store = memoryStore()
  await store.end('ended', 10_000)
  vi.setSystemTime(100_000)
  for (let n = 0; n < 1000; n++) await store.insert(`k${n}`, 'a', 1)
  vi.setSystemTime(1000)
  expect(await store.insert('ended', 'b', 1)).toBe(false)
})

it('what is over is looked for once in a thousand writes, and is there no more', async () => {
  const visits = vi.spyOn(Map.prototype, Symbol.iterator)
  const deleted = vi.spyOn(Map.prototype, 'delete')
  const store = memoryStore()
  await store.insert('over', 'a', 1)
  await store.add('set', 'over', 1)
  vi.advanceTimersByTime(1)
  const counted = () => [visits.mock.calls.length, deleted.mock.calls.map(([key]) => key as unknown)]
  for (let n = 2; n < 999; n++) await store.insert(`k${n}`, 'a', 10_000)
  const before = counted()
  await store.insert('last', 'a', 10_000)
  const after = counted()
  vi.restoreAllMocks()
  expect(before).toStrictEqual([0, []])
  expect(after[1]).toStrictEqual(['over', 'over', 'set'])
})

it('in a worker of node:cluster, the store and the counts of guesses say once that other workers do not know them', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
  const make = () => [memoryStore(), countFailures(), memoryStore(), countFailures()]
  make()
  expect(warned.mock.calls).toEqual([])
  Object.assign(cluster, { isWorker: true })
  onTestFinished(() => void Object.assign(cluster, { isWorker: false }))
  make()
  expect(warned.mock.calls).toEqual([
    [expect.stringMatching(/^memoryStore\(\) .* other workers of node:cluster .*redisStore/), 'WorkerWarning'],
    [expect.stringMatching(/^guesses .* other workers of node:cluster .*limiter/), 'WorkerWarning'],
  ])
  vi.restoreAllMocks()
})
