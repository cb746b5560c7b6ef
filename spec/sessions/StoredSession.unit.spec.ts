/** What is known of the ids of a session in one request. */
import { expect, it } from 'vitest'
import { inTime, parsed, StoredSession } from '../../src/sessions/StoredSession.js'
import { stoppedClock } from '../support/runs/clock.js'

const untouched = { isWritten: false, isEnded: false }

it('an id that was read is known by what was read, also if another one is read, written or ended later', () => {
  const stored = new StoredSession()
  expect([...stored.ids]).toStrictEqual([])
  stored.read('one', 'text of one')
  stored.read('two', 'text of two')
  stored.wrote('two')
  stored.wrote('three')
  stored.ended('one')
  stored.ended('nothing is known of it')
  expect([...stored.ids]).toStrictEqual([
    ['one', { textRead: 'text of one', isWritten: false, isEnded: true }],
    ['two', { textRead: 'text of two', isWritten: true, isEnded: false }],
    ['three', { textRead: undefined, isWritten: true, isEnded: false }],
  ])
})

it('an id that is read again is known by what was read last', () => {
  const stored = new StoredSession()
  stored.wrote('one')
  stored.read('one', 'first')
  stored.read('one', 'second')
  expect([...stored.ids]).toStrictEqual([['one', { textRead: 'second', ...untouched }]])
})

it.each<[boolean, number, number]>([
  [true, 1, 1000],
  [false, 0, 1000],
  [false, 500, 1500],
  // it was written by a clock that was wrong
  [true, 1999, 1000],
  [false, 2000, 1000],
])('is in time, %s: one that ends in %i ms, and lasted %i, where idle is 1000', (expected, rest, lasted) => {
  stoppedClock()
  const data = { _expire: Date.now() + rest, _maxAge: lasted, a: 1 }
  expect(inTime(data, 1000)).toBe(expected)
  expect(data).toStrictEqual({ _expire: Math.min(Date.now() + rest, Date.now() + rest - lasted + 1000), a: 1 })
})

it('data without times are in time, and no key of koa-session is data', () => {
  expect(inTime({ _expire: 1, a: 1 }, 1000)).toBe(true)
  expect(parsed('{"a":1,"maxAge":1,"__proto__":{},"save":1}')).toEqual({ a: 1 })
  expect(parsed('[]')).toBeUndefined()
})

it('work that the operation does not await has not ended when the request begins to wait for it, and has ended then', async () => {
  const stored = new StoredSession()
  const [done, failed] = [stored.working(Promise.resolve('done')), stored.working(Promise.reject(new Error('down')))]
  failed.catch(() => undefined)
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  expect(stored.unfinished).toBe(2)
  await stored.changing
  expect(stored.unfinished).toBe(0)
  expect(await done).toBe('done')
  await expect(failed).rejects.toThrow('down')
})

it('changes are made in order, and one that fails is the error of the session, which keeps no later one from running', async () => {
  const stored = new StoredSession()
  const order: number[] = []
  const failing = stored.runInOrder(async () => {
    await new Promise(setImmediate)
    order.push(1)
    throw new Error('down')
  })
  const next = stored.runInOrder(async () => void order.push(2))
  await expect(failing).rejects.toThrow('down')
  await next
  await stored.changing
  expect(order).toEqual([1, 2])
  expect(stored.error).toEqual({ error: new Error('down') })
})
