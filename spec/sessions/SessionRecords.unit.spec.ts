/** Revocation stamps: a user who has none gets one, which is kept as long as any session that carries it. */
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { expect, it } from 'vitest'
import { endFor, endForwarded, forward, sessionEnds } from '../../src/sessions/SessionEnds.js'
import {
  entryKey,
  forwardIn,
  forwardKey,
  hintFor,
  replaceStamp,
  sessionKey,
  stampFor,
  stampKey,
  stampNow,
  type SessionRecords,
} from '../../src/sessions/SessionRecords.js'

const records = (store: Store = memoryStore()): SessionRecords => ({
  ...{ name: 'shop', store, idle: 1000, absolute: 10_000, longest: 100_000 },
})

it('a key is of one application, one user and one entry, however their names are cut', () => {
  const keys = [
    ...[stampKey('shop', 'anna'), stampKey('shopa', 'nna'), stampKey('shop', 'bert'), stampKey('other', 'anna')],
    ...[entryKey('shop', 'anna', 'x'), entryKey('shop', 'bert', 'x'), entryKey('shop', 'ann', 'ax')],
    entryKey('other', 'anna', 'x'),
  ]
  expect(new Set(keys).size).toBe(keys.length)
  const [anna, stamp] = [{ user: 'anna', listed: 'x' }, { stampKey: stampKey('shop', 'anna') }]
  expect(hintFor('shop', anna)).toEqual({ ...anna, ...stamp, entryKey: entryKey('shop', 'anna', 'x') })
  expect(hintFor('shop', { ...anna, listed: undefined })).toEqual({
    ...anna,
    listed: '',
    ...stamp,
    entryKey: undefined,
  })
})

it('a user without a stamp gets one, which stays until it is replaced', async () => {
  const self = records()
  const first = await stampNow(self, 'anna')
  expect(first).toHaveLength(22)
  expect([await stampNow(self, 'anna'), await stampFor(self, 'anna')]).toEqual([first, first])
  expect(await self.store.get([stampKey('shop', 'anna')])).toEqual([first])
  const next = await replaceStamp(self, 'anna')
  expect([next.length, next === first]).toEqual([22, false])
  expect([await stampNow(self, 'anna'), await stampFor(self, 'anna')]).toEqual([next, next])
  expect(await stampNow(self, 'bert')).not.toBe(next)
})

it('a stamp is kept for the longest session and the time that an end is known; a sign-in prolongs it', async () => {
  const lifetimes: number[] = []
  const kept = memoryStore()
  const noted = <A extends ReadonlyArray<unknown>, R>(f: (...args: A) => R) => {
    return (...args: A): R => (lifetimes.push(Number(args[2])), f(...args))
  }
  const self = records({ ...kept, insert: noted(kept.insert), update: noted(kept.update) })
  await stampFor(self, 'anna')
  await stampFor(self, 'anna')
  expect(lifetimes).toEqual([110_000, 110_000])
})

it('another process that replaced the stamp meanwhile wins: the sign-in carries its stamp', async () => {
  const kept = memoryStore()
  const self = records(kept)
  await stampFor(self, 'anna')
  let isFirst = true
  const crossed = records({
    ...kept,
    get: async (keys) => {
      const found = await kept.get(keys)
      if (isFirst) {
        isFirst = false
        await replaceStamp(self, 'anna')
      }
      return found
    },
  })
  expect(await stampFor(crossed, 'anna')).toBe(await stampNow(self, 'anna'))
})

it('a rotation is known for twice the idle time, and its end as long as any session can last', async () => {
  const kept = memoryStore()
  const noted: unknown[] = []
  const store: Store = {
    ...kept,
    insert: (key, text, ms) => (noted.push([key, ms]), kept.insert(key, text, ms)),
    end: (...given) => (noted.push(given), kept.end(...given)),
  }
  const self = sessionEnds({ ...records(store), list: undefined, tell: () => {} })
  await forward(self, 'one', 'two', { id: 'anna', at: Date.now(), stamp: 's' })
  await forward(self, 'three', 'four', { id: 'anna', at: Date.now(), stamp: 's', details: '{"idle":300}' })
  await endForwarded(self, 'one')
  expect(noted).toEqual([
    [forwardKey(sessionKey('one')), 2000],
    [forwardKey(sessionKey('three')), 600],
    [sessionKey('two'), 100_000],
  ])
})

it('a forwarding entry says where to, since when, and whose it is; any other text is none', () => {
  const entry = { next: 'two', since: 1, user: 'anna', listed: 'entry' }
  expect(forwardIn(JSON.stringify(entry))).toEqual(entry)
  expect(forwardIn(JSON.stringify({ ...entry, listed: 7 }))).toEqual({ ...entry, listed: undefined })
  for (const name of ['next', 'since', 'user'])
    for (const wrong of [undefined, null, {}])
      expect(forwardIn(JSON.stringify({ ...entry, [name]: wrong }))).toBeUndefined()
  for (const text of [undefined, '', '{', 'null', '[]']) expect(forwardIn(text)).toBeUndefined()
})

it('a store that keeps no stamp is an outage', async () => {
  let tries = 0
  const never = async () => ++tries < 0
  const self = records({ ...memoryStore(), insert: never, update: never })
  for (const make of [stampFor, stampNow, replaceStamp])
    await expect(make(self, 'anna')).rejects.toThrow('keeps no revocation stamp')
  expect(tries).toBe(80)
})

it('a store that leads from one id to the next in a circle is an outage, and stops no process', async () => {
  const text = JSON.stringify({ next: sessionKey('another'), since: Date.now(), user: 'anna' })
  const before = JSON.stringify({ next: sessionKey('another'), since: 0, user: 'anna' })
  let asked = 0
  const lying = (answer: string): Store => ({
    ...memoryStore(),
    get: (keys) => (asked++, keys.map(() => answer)),
    insert: async () => false,
  })
  const ends = (store: Store) => sessionEnds({ ...records(store), list: undefined, tell: () => {} })
  const signIn = { id: 'anna', at: Date.now(), stamp: 's' }
  await expect(endForwarded(ends(lying(text)), 'one')).rejects.toThrow('without end')
  await expect(forward(ends(lying(before)), 'one', 'two', signIn)).rejects.toThrow('without end')
  const gone = {
    ...lying(text),
    get: (keys: ReadonlyArray<string>) => (asked++, keys.map((_key, at) => (at === 1 ? text : undefined))),
  }
  const end = endFor(ends(gone), 'one', signIn)
  await expect(end.ask?.(true)).rejects.toThrow('without end')
  expect(asked).toBe(4000)
})
