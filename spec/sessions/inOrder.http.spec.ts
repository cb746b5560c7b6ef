/**
 * Several sign-ins and sign-outs that one operation starts without waiting: the last one decides, whichever takes
 * longest.
 */
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { stampKey } from '../../src/sessions/SessionRecords.js'
import { expectAnonymous, expectSignedIn, sessionsApp } from '../support/sites/sessionsApp.js'

const users = {
  anna: { username: 'anna', isActive: true },
  sam: { username: 'sam', isStaff: true },
} as const

type Change = keyof typeof users | 'out'

/** An application whose `/changes` starts these changes together. Anna's take longest. */
const changing = (changes: ReadonlyArray<Change>, end: (all: ReadonlyArray<Promise<void>>) => unknown) => {
  const kept = memoryStore()
  const slowStamp = stampKey('in order', 'anna')
  const get: Store['get'] = async (keys) => {
    if (keys.includes(slowStamp)) await new Promise((resolve) => setTimeout(resolve, 20))
    return kept.get(keys)
  }
  const store = { ...kept, get }
  return sessionsApp(() => store, {
    name: 'in order',
    acts: {
      '/changes': (ctx, { logIn, logOut }) =>
        end(changes.map((one) => (one === 'out' ? logOut(ctx) : logIn(ctx, users[one])))),
    },
  })
}

const orders: ReadonlyArray<ReadonlyArray<Change>> = [
  ['anna', 'sam'],
  ['sam', 'anna'],
  ['anna', 'out'],
  ['out', 'anna'],
  ['anna', 'out', 'sam'],
  ['anna', 'sam', 'out'],
]

const ends: ReadonlyArray<readonly [how: string, end: (all: ReadonlyArray<Promise<void>>) => unknown]> = [
  ['awaited together', (all) => Promise.all(all)],
  ['not awaited', () => undefined],
]

describe.each(ends)('several changes in one request, %s', (_how, end) => {
  it.each(orders.map((order) => [order.join(', '), order] as const))('happen in order: %s', async (_names, order) => {
    const { visitor } = await changing(order, end)
    const before = visitor()
    await before.post('/login?user=root')
    const one = before.copy()
    expect((await one.post('/changes')).status).toBe(200)
    const last = order.at(-1)!
    if (last === 'out') await expectAnonymous(one)
    else await expectSignedIn(one, users[last])
    await expectAnonymous(before)
  })
})

it('several changes are all undone if the operation throws', async () => {
  const { visitor, store } = await changing(['anna', 'sam', 'anna'], () => {
    throw new Error('the operation')
  })
  const one = visitor()
  expect((await one.post('/changes')).status).toBe(500)
  expect((await store.get([...store.ids])).every((text) => text === undefined)).toBe(true)
  await expectAnonymous(one)
})

it('several changes end with the first one that fails', async () => {
  const { visitor, store } = await changing(['anna', 'sam'], (all) => Promise.all(all))
  Object.assign(store.instead, { insert: () => Promise.reject(new Error('down')) })
  const one = visitor()
  expect((await one.post('/changes')).status).toBe(503)
  expect(store.asked.filter((method) => method === 'insert')).toHaveLength(1)
  await expectAnonymous(one)
})
