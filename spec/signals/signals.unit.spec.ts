/** Signals have a heartbeat while something is open: a hub that says nothing is an outage, subscribed again, and asked about. */
import { on, type StoreOutageEvent } from 'koa-with-auth/events'
import { redisSignals } from 'koa-with-auth/stores'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type End, NamedEnd } from '../../src/core/ends.js'
import { ends } from '../../src/ends/ends.js'
import { connected, type Signals } from '../../src/signals/signals.js'
import { ownEnds } from '../support/runs/ownEnds.js'

beforeEach(
  () => void vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval'] }),
)
afterEach(() => void vi.useRealTimers())

const turns = async (count = 20): Promise<void> => {
  for (let at = 0; at < count; at++) await new Promise((resolve) => void setImmediate(resolve))
}
const after = async (ms: number): Promise<void> => {
  // a time limit gives up one turn later than its timer
  for (let passed = 0; passed < ms; passed += 500) {
    vi.advanceTimersByTime(500)
    await turns(3)
  }
}

/** A hub in this process, which can be deaf; and an end whose look-ups are counted. */
const hub = () => {
  ownEnds()
  const state = { isDeaf: false, fails: false, published: 0, subscribed: 0, asked: 0 }
  let listeners: Array<(message: string) => void> = []
  const signals: Signals = {
    publish: async (message) => {
      state.published++
      if (state.fails) throw new Error('down')
      if (!state.isDeaf) for (const listener of listeners) listener(message)
    },
    subscribe: (listener) => {
      state.subscribed++
      listeners = [listener]
    },
  }
  const outages: StoreOutageEvent[] = []
  onTestFinished(on('store-outage', (one) => void (one.store === 'signals' && outages.push(one))))
  connected(signals)
  class Counted extends NamedEnd {
    override async ask(): Promise<number> {
      state.asked++
      return Infinity
    }
  }
  const open = (): End => {
    const end = new Counted(Infinity, 'anna')
    ends().open(end, { abort: () => {} })
    return end
  }
  const say = (message: string): void => listeners.forEach((listener) => listener(message))
  return { state, outages, open, say, events: () => outages.map(({ event }) => event) }
}

/** A hub, while something that can end is open. */
const waiting = async () => {
  const made = hub()
  made.open()
  await turns()
  return made
}

it.each<[what: string, message: unknown, asked: number]>([
  ['the name of an end', { about: 'anna' }, 1],
  ['another name', { about: 'bert' }, 0],
  ['all', { about: 'all' }, 1],
  ['a number', { about: 1 }, 0],
  ['an object that inherits a name', JSON.parse('{"__proto__":{"about":"anna"}}'), 0],
  ['null', null, 0],
  ['more than 256 characters', { about: 'anna', more: 'a'.repeat(256) }, 0],
])('a message about %s', async (_what, message, asked) => {
  const { state, say } = await waiting()
  const before = state.asked
  say(JSON.stringify(message))
  say('no JSON')
  await turns()
  expect(state.asked - before).toBe(asked)
})

describe('the heartbeat of signals', () => {
  it('is only there while something is open', async () => {
    const { state, open } = hub()
    await after(60_000)
    expect(state.published).toBe(0)
    const end = open()
    await after(60_000)
    const sent = state.published
    expect(sent).toBeGreaterThan(4)
    ends().close(end)
    await after(60_000)
    expect(state.published).toBe(sent)
    open()
    await after(10_500)
    expect(state.published).toBe(sent + 1)
  })

  it('that is heard costs nothing: no look-up, no subscription', async () => {
    const { state, open, outages } = hub()
    open()
    await after(120_000)
    expect(state).toMatchObject({ subscribed: 1, asked: 1 })
    expect(outages).toEqual([])
  })

  it('that is not heard within 15 seconds is an outage; everything open is looked up, and again when it is back', async () => {
    const { state, outages, events } = await waiting()
    state.isDeaf = true
    await after(15_500)
    expect(outages).toMatchObject([{ event: 'begun', reason: 'silent' }])
    expect(state).toMatchObject({ subscribed: 2, asked: 2 })
    await after(60_000)
    expect(events()).toEqual(['begun'])
    expect(state.asked).toBe(2)
    expect(state.subscribed).toBeGreaterThan(3)
    state.isDeaf = false
    await after(15_500)
    expect(events()).toEqual(['begun', 'over'])
    expect(state.asked).toBe(3)
  })

  it('that cannot be sent is the outage of a hub that fails, and no reason to subscribe again', async () => {
    const { state, outages } = await waiting()
    state.fails = true
    await after(60_000)
    expect(outages).toMatchObject([{ event: 'begun', reason: 'failed' }])
    expect(state).toMatchObject({ subscribed: 1, asked: 1 })
  })
})

it.each([{}, { publisher: {} }, { publisher: { publish: () => {} }, subscriber: {} }])(
  'redisSignals refuses %j instead of clients',
  (clients) => {
    expect(() => redisSignals(clients as never)).toThrow(TypeError)
  },
)
