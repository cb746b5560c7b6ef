/** The end of a sign-in, for what is open: when it comes, what this process knows of it, and what a look at the store says. */
import { memoryStore } from 'koa-with-auth/stores'
import { expect, it } from 'vitest'
import {
  endFor,
  endForwarded,
  everywhereOver,
  forward,
  listedOver,
  sessionEnds,
  sessionOver,
} from '../../src/sessions/SessionEnds.js'
import { sessionKey, stampKey } from '../../src/sessions/SessionRecords.js'
import { textOfDetails, type SignIn } from '../../src/sessions/SignIn.js'
import { ownEnds } from '../support/runs/ownEnds.js'
import { stoppedClock } from '../support/runs/clock.js'

const times = { idle: 1000, absolute: 10_000, longest: 100_000 }

const known = () => {
  ownEnds()
  const clock = stoppedClock()
  const told: string[] = []
  const store = memoryStore()
  const self = sessionEnds({ name: 'shop', store, ...times, list: undefined, tell: (name) => void told.push(name) })
  const signIn = (own: object = {}): SignIn => {
    const details = textOfDetails(own)
    return { id: 'anna', at: Date.now(), stamp: 'stamp', ...(details !== undefined && { details }) }
  }
  return { clock, self, store, signIn, told }
}

it.each<[number, string, object, number?]>([
  [10_000, 'expired', {}],
  [500, 'idle', {}, 500],
  [10_000, 'expired', {}, 20_000],
  [300, 'expired', { absolute: 300 }, 500],
  [50_000, 'expired', { absolute: 50_000 }],
  // no longer than a stamp is kept
  [100_000, 'expired', { absolute: 200_000 }],
])('it comes after %i ms, because it is %s: %j, idle at %s', (ms, cause, details, expires) => {
  const { self, signIn } = known()
  const end = endFor(self, 'one', signIn(details), expires && Date.now() + expires)
  expect([end.at - Date.now(), end.cause]).toEqual([ms, cause])
})

it('it has come if this process ended its session, its entry, or all of its user, but not what is younger', () => {
  const { clock, self, signIn, told } = known()
  const before = (id: string, one: SignIn) => endFor(self, id, one).before
  const first = signIn({ listed: 'entry' })
  expect(before('one', first)).toBeUndefined()
  sessionOver(self, 'two', 'anna')
  expect([before('one', first), before('two', first)]).toEqual([undefined, 'signed out'])
  listedOver(self, 'anna', 'entry')
  expect([before('one', first), before('one', signIn({ listed: 'other' }))]).toEqual(['signed out', undefined])
  everywhereOver(self, 'anna', 'next')
  expect([before('one', signIn()), before('one', { ...signIn(), stamp: 'next' })]).toEqual(['signed out', undefined])
  clock.move(1)
  // another process may have replaced the stamp since
  expect(before('one', { ...signIn(), stamp: 'newest' })).toBeUndefined()
  expect(told).toHaveLength(3)
  // the ten thousand sessions that ended last
  const bert = { ...signIn(), id: 'bert' }
  for (let at = 0; at < 10_000; at++) sessionOver(self, `${at}`, 'bert')
  expect([before('two', bert), before('0', bert)]).toEqual([undefined, 'signed out'])
})

it.each<[unknown, object, object?]>([
  [700, {}],
  [500, {}, { details: '{"idle":800}' }],
  [600, {}, { at: -9400 }],
  ['signed out', { auth: undefined }],
  ['signed out', { auth: { id: 'bert' } }],
  ['signed out', { auth: { at: 1 } }],
  ['signed out', {}, { stamp: 'next' }],
  ['idle', { _expire: 0 }],
  ['expired', {}, { at: -10_000 }],
])('a look at the store says %s: %j %j', async (expected, own, signedIn) => {
  const { self, store, signIn } = known()
  const one = { ...signIn(), ...signedIn }
  one.at += signedIn !== undefined && 'at' in signedIn ? Date.now() : 0
  const auth = { id: one.id, at: one.at, ...(own as { auth?: object }).auth }
  const data = { _expire: Date.now() + 700, _maxAge: 1000, ...own, ...('auth' in own && !own.auth ? {} : { auth }) }
  await store.insert(sessionKey('one'), JSON.stringify(data), 60_000)
  await store.insert(stampKey('shop', 'anna'), 'stamp', 60_000)
  const found = await endFor(self, 'one', one).ask?.(true)
  expect(typeof found === 'number' ? found - Date.now() : found).toBe(expected)
})

it.each([
  [5000, 'signed out'],
  [4999, 1000],
  [-1500, 1000],
  [-3_600_000, 'signed out'],
])('a session that ended after a rotation by a clock that is %i ms off is looked up as %s', async (off, expected) => {
  const { clock, self, store, signIn } = known()
  const one = signIn()
  await store.insert(stampKey('shop', 'anna'), 'stamp', 60_000)
  const end = endFor(self, 'one', one)
  clock.set(off)
  expect(await forward(self, 'one', 'two', one)).toBe(true)
  clock.set(-off)
  const found = await end.ask?.(true)
  expect(typeof found === 'number' ? found - Date.now() : found).toBe(expected)
})

it.each([
  [4999, false],
  [5000, true],
])('a rotation that began %i ms ago and wrote nothing lets another one go on: %s', async (ms, goesOn) => {
  const { clock, self, store, signIn } = known()
  const one = signIn({ idle: 100_000 })
  await forward(self, 'one', 'two', one)
  clock.move(ms)
  expect(await forward(self, 'one', 'three', one)).toBe(goesOn)
  expect(await store.insert(sessionKey('two'), 'text', 1000)).toBe(!goesOn)
})

it.each([
  [60_000, false, true],
  [60_001, false, false],
  [60_001, true, true],
])('a session that was rotated %i ms ago, and read: %s, ends under its next id: %s', async (ms, wasRead, ends) => {
  const { clock, self, store, signIn } = known()
  await forward(self, 'one', 'two', signIn({ idle: 100_000 }))
  clock.move(ms)
  await endForwarded(self, 'one', wasRead)
  expect(await store.insert(sessionKey('two'), 'text', 1000)).toBe(!ends)
})
