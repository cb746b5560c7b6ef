/**
 * `memory` keeps what a list of all its entries would keep, by both clocks. Outages are derived from the answers of a store: `begun` and
 * `over` alternate, and an answer to a question that was asked before a change is ignored.
 */
import fc from 'fast-check'
import { on } from 'koa-with-auth/events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { thisMoment, type Moment } from '../../src/core/data.js'
import { fromNow, memory, singleFlight, watchOutages } from '../../src/core/memory.js'
import { within } from '../../src/stores/within.js'

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const key = fc.constantFrom('a', 'b', 'c', 'd')
const step = fc.oneof(
  fc.record({ do: fc.constant('get' as const), key }),
  fc.record({
    do: fc.constant('set' as const),
    key,
    value: fc.nat(9),
    lifetime: fc.constantFrom(-1, 0, 5, 20, Infinity, NaN),
  }),
  fc.record({ do: fc.constant('delete' as const), key }),
  // both clocks go on
  fc.record({ do: fc.constant('wait' as const), ms: fc.nat(12) }),
  // the system clock alone is set, forwards or back
  fc.record({ do: fc.constant('set clock' as const), ms: fc.integer({ min: -15, max: 15 }) }),
)

interface Entry {
  readonly key: string
  readonly value: number
  readonly since: Moment
  readonly expiresAt: number
}

describe('memory', () => {
  it('drops the value that was not used for longest', () => {
    const used = memory<number>({ size: 2, maxAge: Infinity, dropsFirst: 'least recently used' })
    for (const one of ['a', 'b']) used.set(one, fromNow(1))
    for (const one of ['b', 'a', 'a', 'b', 'a']) used.get(one)
    used.set('c', fromNow(1))
    expect(['a', 'b', 'c'].map(used.get)).toEqual([1, undefined, 1])
  })

  it.each(['oldest', 'least recently used'] as const)('keeps what a list keeps; the %s goes first', (dropsFirst) => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 40 }), (size, steps) => {
        const maxAge = 10
        const tested = memory<number>({ size, maxAge, dropsFirst })
        let model: ReadonlyArray<Entry> = []
        const isGood = ({ since, expiresAt }: Entry) =>
          Math.max(performance.now() - since.monotonic, Date.now() - since.system) <
          // a value that expires does so by both clocks
          Math.min(maxAge, expiresAt - since.system)
        for (const one of steps) {
          if (one.do === 'wait') vi.advanceTimersByTime(one.ms)
          else if (one.do === 'set clock') vi.setSystemTime(Date.now() + one.ms)
          else if (one.do === 'delete') {
            tested.delete(one.key)
            model = model.filter((other) => other.key !== one.key)
          } else if (one.do === 'set') {
            const since = thisMoment()
            const expiresAt = Date.now() + one.lifetime
            const entry = { key: one.key, value: one.value, since, expiresAt }
            tested.set(one.key, entry)
            if (isGood(entry)) model = [...model.filter((other) => other.key !== one.key), entry].slice(-size)
          } else {
            const found = model.find((other) => other.key === one.key)
            const good = found !== undefined && isGood(found)
            expect(tested.get(one.key)).toBe(good ? found.value : undefined)
            const others = model.filter((other) => other !== found)
            if (found !== undefined && !good) model = others
            else if (found !== undefined && dropsFirst === 'least recently used') model = [...others, found]
          }
        }
      }),
      // fewer would not reach every branch
      { numRuns: 300 },
    )
  })

  it('a clock that is set back does not prolong a value that expires', () => {
    const tested = memory<number>({ size: 1, maxAge: Infinity, dropsFirst: 'oldest' })
    tested.set('a', fromNow(1, Date.now() + 5))
    vi.advanceTimersByTime(4)
    vi.setSystemTime(Date.now() - 3_600_000)
    expect(tested.get('a')).toBe(1)
    vi.advanceTimersByTime(1)
    expect(tested.get('a')).toBe(undefined)
  })
})

it('a value that was read after another stays, although it was the youngest before', () => {
  const tested = memory<number>({ size: 2, maxAge: Infinity, dropsFirst: 'least recently used' })
  for (const name of ['a', 'b']) tested.set(name, fromNow(1))
  for (const name of ['a', 'b']) tested.get(name)
  tested.set('c', fromNow(1))
  expect(['a', 'b', 'c'].map((name) => tested.get(name))).toEqual([undefined, 1, 1])
})

describe('singleFlight', () => {
  it('is called once for all who come while it is under way, and again for the next', async () => {
    let calls = 0
    let end = (): void => {}
    const call = singleFlight(() => {
      calls++
      return new Promise<number>((resolve) => {
        const result = calls
        end = () => resolve(result)
      })
    })
    const together = [call(), call()]
    end()
    expect(await Promise.all(together)).toStrictEqual([1, 1])
    const next = call()
    end()
    expect([await next, calls]).toStrictEqual([2, 2])
  })

  it('is called again when one call does not end in time, and what comes late of it changes nothing', async () => {
    const ends: Array<(value: number) => void> = []
    const call = singleFlight(() => new Promise<number>((resolve) => ends.push(resolve)), 10)
    const first = call()
    vi.advanceTimersByTime(9)
    expect(call()).toBe(first)
    vi.advanceTimersByTime(1)
    const second = call()
    ends[0]?.(1)
    expect([await first, call(), ends.length]).toStrictEqual([1, second, 2])
  })

  it('rejects for all, and is called again for the next', async () => {
    const results = ['no', undefined]
    const call = singleFlight(async () => {
      const problem = results.shift()
      if (problem !== undefined) throw new Error(problem)
      return 'good'
    })
    const together = await Promise.allSettled([call(), call()])
    expect(together.map(({ status }) => status)).toStrictEqual(['rejected', 'rejected'])
    expect(await call()).toBe('good')
  })
})

// Questions are asked in order; their answers come in any order
const answer = fc.oneof(
  fc.constant('ask' as const),
  fc.record({ which: fc.nat(7), what: fc.constantFrom('answered', 'failed', 'silent') }),
)

describe('the outages of a store', () => {
  it('law: `begun` and `over` alternate, and each follows from a question that was asked after the last change', () => {
    let seen = 0
    fc.assert(
      fc.property(fc.array(answer, { maxLength: 60, size: 'max' }), (steps) => {
        const events: string[] = []
        const {
          ask: asked,
          answered,
          failed,
        } = watchOutages<'failed' | 'silent'>(
          () => events.push('begun'),
          () => events.push('over'),
        )
        const open: { readonly number: number; readonly at: number }[] = []
        // A model of the same rule
        const expected: string[] = []
        let changedAt = -1
        steps.forEach((one, at) => {
          if (one === 'ask') return void open.push({ number: asked(), at })
          const [question] = open.splice(one.which % (open.length || 1), 1)
          if (question === undefined) return
          if (one.what === 'answered') answered(question.number)
          else failed(question.number, one.what === 'failed' ? 'failed' : 'silent')
          const isDown = expected.at(-1) === 'begun'
          if (question.at > changedAt && isDown === (one.what === 'answered')) {
            expected.push(isDown ? 'over' : 'begun')
            changedAt = at
          }
        })
        seen = Math.max(seen, events.length)
        expect(events).toStrictEqual(expected)
      }),
      { numRuns: 1000 },
    )
    expect(seen).toBeGreaterThan(2)
  })

  it.each([
    ['an answer', (): unknown => 'late'],
    [
      'a failure',
      (): never => {
        throw new Error('late')
      },
    ],
  ])('%s that comes after the silence was reported is ignored', async (_name, late) => {
    const events: string[] = []
    const end = on('store-outage', ({ event, ...rest }) =>
      events.push('reason' in rest ? `${event}: ${rest.reason}` : event),
    )
    const timed = within('api-keys', 20)
    let answer = (): void => {}
    const waiting = new Promise<void>((resolve) => (answer = resolve)).then(late)
    await expect(timed(() => new Promise(() => {}))).rejects.toThrow('did not answer')
    await expect(timed(() => waiting)).rejects.toThrow('did not answer')
    answer()
    await waiting.catch(() => {})
    expect(events).toStrictEqual(['begun: silent'])
    await timed(() => Promise.resolve())
    end()
    expect(events).toStrictEqual(['begun: silent', 'over'])
  })
})
