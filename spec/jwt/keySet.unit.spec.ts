/**
 * When the keys of a provider are fetched, and how long they are used: the table in `keySet.ts`, by counted fetches and a given clock.
 * `outages.http` shows the responses.
 */
import { generateKeyPairSync } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import { expect, it } from 'vitest'
import type { AuthError } from '../../src/core/AuthError.js'
import { Outage } from '../../src/jwt/fetching.js'
import { keyPolicyOf, remoteKeys, type KeyOptions } from '../../src/jwt/keySet.js'
import { stoppedClock } from '../support/runs/clock.js'

const jwk = { ...generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }), kid: 'one' }

const secondsOf = (failure: AuthError): number => (failure._tag === 'unavailable' && failure.retryAfter) || 0

const provider = (options?: KeyOptions) => {
  const clock = stoppedClock()
  const state = { isDown: false, hangs: false, fetches: 0, warnings: 0, kid: 'one' }
  const fetch = async () => {
    state.fetches++
    await (state.hangs ? new Promise(() => {}) : Promise.resolve())
    if (state.isDown) throw new Outage('is down', false)
    return { keys: [{ ...jwk, kid: state.kid }] }
  }
  const source = remoteKeys(fetch, keyPolicyOf('keys', options), {
    issuer: 'https://login.example',
    failed: () => void state.warnings++,
  })
  const current = async () => {
    const found = await source.current()
    return E.isLeft(found) ? secondsOf(found.left) : found.right
  }
  // the result for a token whose key is missing: newer keys, none, or the seconds of an outage
  const missed = async (name: string, began = source.begun()) => {
    const keys = await current()
    if (typeof keys === 'number') throw new Error('there are keys')
    const found = await source.afterMiss(keys, began, name)
    return E.isLeft(found) ? secondsOf(found.left) : found.right
  }
  // what is fetched while a request goes on
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return { clock, state, source, current, missed, settled }
}

it('keys are used for maxAge and staleIfError together, then each retry fetches once, and says in how many seconds', async () => {
  const { clock, state, current } = provider({ maxAge: 60_000, staleIfError: 30_000, retry: 10_000 })
  const keys = await current()
  state.isDown = true
  clock.move(89_999)
  expect([await current(), state.fetches]).toEqual([keys, 2])
  clock.move(1)
  expect([await current(), state.fetches]).toEqual([10, 2])
  clock.move(9_999)
  expect([await current(), state.fetches]).toEqual([10, 3])
  clock.move(500)
  state.isDown = false
  expect([await current(), state.fetches]).toEqual([10, 3])
  clock.move(9_499)
  expect([await current(), state.fetches]).toEqual([1, 3])
  clock.move(1)
  expect([await current(), state.fetches]).toEqual([keys, 4])
})

it.each([
  ['set back, which extends nothing', -3_600_000, 1000],
  ['ahead, as after the machine slept, when performance.now() stopped', 999, 1],
])('in an outage the system clock is %s', async (_how, set, rest) => {
  const { clock, state, current } = provider({ maxAge: 20_000, staleIfError: 1000, retry: 10_000 })
  const keys = await current()
  state.isDown = true
  clock.move(20_000)
  clock.set(set)
  if (rest > 1) clock.move(rest - 1)
  expect(await current()).toBe(keys)
  clock.move(1)
  expect(await current()).toBe(10)
})

it('at the start, keys are fetched if there are none that are good, and not a moment after an outage', async () => {
  const { clock, state, source } = provider({ maxAge: 60_000, retry: 10_000 })
  const fetched = async () => (await source.ready(), await source.ready(), state.fetches)
  expect(await fetched()).toBe(1)
  state.isDown = true
  clock.move(60_000)
  expect(await fetched()).toBe(2)
  clock.move(10_000)
  expect(await fetched()).toBe(3)
})

it.each([false, true])('requests at the same time share a fetch; it fails: %s', async (isDown) => {
  const { state, source, current } = provider()
  state.isDown = isDown
  await Promise.all([current(), current(), source.ready()])
  expect(state.fetches).toBe(1)
})

it('no request waits for a provider in an outage, nor for a fetch ahead of time', async () => {
  const { clock, state, source, current } = provider()
  const keys = await current()
  clock.move(479_999)
  expect([source.current(), state.fetches]).toEqual([E.right(keys), 1])
  state.isDown = true
  clock.move(120_001)
  expect([await current(), state.fetches]).toEqual([keys, 2])
  state.hangs = true
  clock.move(10_000)
  for (let time = 0; time < 2; time++) expect([source.current(), state.fetches]).toEqual([E.right(keys), 3])
  const ahead = provider()
  const first = await ahead.current()
  ahead.state.hangs = true
  ahead.clock.move(480_000)
  for (let time = 0; time < 2; time++)
    expect([ahead.source.current(), ahead.state.fetches]).toEqual([E.right(first), 2])
})

it('refreshAhead: false fetches nothing ahead of time', async () => {
  const { clock, state, current } = provider({ refreshAhead: false })
  await current()
  clock.move(599_999)
  expect([typeof (await current()), state.fetches]).toEqual(['object', 1])
})

it('an outage is one warning, and the next one is another', async () => {
  const { clock, state, current } = provider({ staleIfError: 0 })
  for (const [isDown, warnings] of [
    [true, 1],
    [true, 1],
    [false, 1],
    [true, 2],
  ] as const) {
    state.isDown = isDown
    expect(typeof (await current())).toBe(isDown ? 'number' : 'object')
    expect(state.warnings).toBe(warnings)
    clock.move(600_000)
  }
})

it('in the pause after a failed fetch nothing is fetched: neither ahead of time, nor for a missing key', async () => {
  const { clock, state, current, missed, settled } = provider()
  const keys = await current()
  state.isDown = true
  clock.move(480_000)
  for (let time = 0; time < 3; time++) {
    expect(await current()).toBe(keys)
    await settled()
    expect(state.fetches).toBe(2)
  }
  expect([await missed('two'), state.fetches]).toEqual([10, 2])
})

it('for a missing key there is one fetch in each cooldown, and what the provider does not have is remembered until then', async () => {
  const { clock, state, current, missed } = provider()
  await current()
  expect([await missed('two'), state.fetches]).toEqual([undefined, 2])
  expect([await missed('two'), await missed('three'), state.fetches]).toEqual([undefined, 30, 2])
  clock.move(29_500)
  expect([await missed('three'), state.fetches]).toEqual([1, 2])
  clock.move(500)
  state.kid = 'three'
  expect([await missed('three'), state.fetches]).toEqual([await current(), 3])
  expect(await missed('two')).toBe(30)
})

it('in the cooldown, a fetch that has failed meanwhile is tried again for a missing key', async () => {
  const { clock, state, current, missed, settled } = provider({ maxAge: 36_000, retry: 1 })
  await current()
  await missed('two')
  state.isDown = true
  clock.move(28_800)
  await current()
  await settled()
  Object.assign(state, { isDown: false, kid: 'three' })
  clock.move(100)
  expect(await missed('three')).toBe(await current())
})

it('before keys are loaded, missing keys cost one fetch in all; a new key costs one for all requests at once', async () => {
  const { clock, state, current, missed } = provider()
  expect([await missed('two'), await missed('three'), state.fetches]).toEqual([undefined, 30, 1])
  state.kid = 'three'
  clock.move(30_000)
  const found = await Promise.all([missed('three'), missed('three'), missed('three')])
  expect([found, state.fetches]).toEqual([Array(3).fill(await current()), 2])
})

it('at most a thousand names of missing keys are kept, because anybody can send new ones', async () => {
  const { clock, current, missed } = provider()
  await current()
  // fetched after the request came: the provider does not have the key
  for (let n = 0; n < 1001; n++) await missed(`kid-${n}`, 0)
  expect([await missed('kid-0'), await missed('kid-999'), await missed('kid-1000')]).toEqual([undefined, undefined, 30])
  clock.move(30_000)
  expect([await missed('kid-1000'), await missed('kid-1000'), await missed('kid-0')]).toEqual([
    undefined,
    undefined,
    30,
  ])
})
