/** The ends that a process waits for: one timer for all, and the ends of one name without a look at the others. */
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { AuthEndedError, End, NamedEnd } from '../../src/core/ends.js'
import { ends } from '../../src/ends/ends.js'
import { ownEnds } from '../support/runs/ownEnds.js'

afterEach(() => void vi.useRealTimers())

const USERS = 1000
const EACH = 10

/** Counts how often its name is asked. */
class Counted extends NamedEnd {
  static asked = 0
  override named(): string {
    Counted.asked++
    return super.named()
  }
}

const opened = (one: End): { end: End; reasons: unknown[] } => {
  const reasons: unknown[] = []
  ends().open(one, { abort: (reason) => void reasons.push(reason) })
  return { end: one, reasons }
}

it('one timer serves all ends, and there is none when nothing waits', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] })
  const all = Array.from({ length: USERS }, (_, at) => opened(new End(Date.now() + 1000 + at)))
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1499)
  expect(all.filter(({ reasons }) => reasons.length > 0).length).toBe(500)
  for (const { end } of [...all, opened(new End(Date.now() + 3_600_000))]) ends().close(end)
  vi.advanceTimersByTime(2000)
  expect(vi.getTimerCount()).toBe(0)
})

it('ending one name looks at its own ends alone, however many others there are', () => {
  const all = Array.from({ length: USERS * EACH }, (_, at) =>
    opened(new Counted(Date.now() + 3_600_000, `user ${at % USERS}`)),
  )
  Counted.asked = 0
  ends().end('user 7', () => 'revoked')
  expect(Counted.asked).toBe(0)
  const over = all.filter(({ reasons }) => reasons.length > 0)
  expect(over.length).toBe(EACH)
  expect(over.flatMap(({ reasons }) => reasons)).toStrictEqual(over.map(() => new AuthEndedError('revoked')))
  for (const { end } of all) ends().close(end)
  expect(Counted.asked).toBe(0)
})

it('a name is forgotten with its last end, whichever closes last', () => {
  ownEnds()
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 0, 2],
  ]) {
    const all = order.map(() => opened(new NamedEnd(Infinity, 'anna')).end)
    for (const at of order) {
      expect([ends().isWaiting, ends().of('anna').length > 0]).toStrictEqual([true, true])
      ends().close(all[at]!)
    }
    expect([ends().isWaiting, ends().of('anna')]).toStrictEqual([false, []])
  }
})

it('a timer that a test took away is replaced', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'], now: 0 })
  const lost = opened(new End(Date.now() + 60_000))
  vi.useRealTimers()
  ends().close(lost.end)
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] })
  vi.advanceTimersByTime(5000)
  const next = opened(new End(Date.now() + 60_000))
  vi.advanceTimersByTime(60_000)
  expect(next.reasons).toStrictEqual([new AuthEndedError('expired')])
})

it('an end comes in time after the clock was set back while nothing waited, and is set right again', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'], now: 10_000_000 })
  // the clocks are compared while something waits
  const before = opened(new End(Date.now() + 3_600_000))
  vi.advanceTimersByTime(2000)
  ends().close(before.end)
  vi.advanceTimersByTime(2000)
  vi.setSystemTime(Date.now() - 5_000_000)
  const { reasons } = opened(new End(Date.now() + 3600))
  vi.setSystemTime(Date.now() + 60)
  vi.advanceTimersByTime(3540)
  expect(reasons).toStrictEqual([new AuthEndedError('expired')])
})

it('a clock that was set forward and back ends nothing before its time', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'], now: 10_000_000 })
  const { reasons } = opened(new End(Date.now() + 7_200_000))
  vi.setSystemTime(Date.now() + 1_800_000)
  vi.advanceTimersByTime(1000)
  vi.setSystemTime(Date.now() - 1_800_000)
  vi.advanceTimersByTime(7_198_000)
  expect(reasons).toStrictEqual([])
  vi.advanceTimersByTime(1000)
  expect(reasons).toStrictEqual([new AuthEndedError('expired')])
})

it('a clock that was set back makes nothing last longer', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'], now: 10_000_000 })
  const { reasons } = opened(new End(Date.now() + 60_000))
  vi.advanceTimersByTime(2000)
  vi.setSystemTime(Date.now() - 3_600_000)
  vi.advanceTimersByTime(57_999)
  expect(reasons).toStrictEqual([])
  vi.advanceTimersByTime(1)
  expect(reasons).toStrictEqual([new AuthEndedError('expired')])
})

it('ends come in the order of their times, whichever were closed before', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] })
  // times in an order without a pattern
  const all = Array.from({ length: 200 }, (_, at) => {
    const ms = 1000 * (1 + ((at * 67) % 200))
    return { ms, isClosed: at % 3 === 0, ...opened(new End(Date.now() + ms)) }
  })
  for (const { end } of all.filter(({ isClosed }) => isClosed)) ends().close(end)
  for (let ms = 1000; ms <= 200_000; ms += 1000) {
    vi.advanceTimersByTime(1000)
    const over = all.filter(({ reasons }) => reasons.length > 0)
    expect(over).toHaveLength(all.filter((one) => !one.isClosed && one.ms <= ms).length)
  }
})

it('an end comes in time although the end that was closed in its place came later', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] })
  // a heap whose last end, at 5 seconds, is behind the soonest; those in the other half come after 100 seconds
  const soon: Readonly<Record<number, number>> = { 0: 1, 2: 2, 6: 3, 14: 4, 30: 5 }
  const late = new Set([1, 3, 4, 7, 8, 9, 10, 15, 16, 17, 18, 19, 20, 21, 22])
  const all = Array.from({ length: 31 }, (_, at) =>
    opened(new End(Date.now() + 1000 * (soon[at] ?? at + (late.has(at) ? 100 : 50)))),
  )
  ends().close(all[15]!.end)
  vi.advanceTimersByTime(5000)
  expect(all.map(({ reasons }) => reasons.length)).toStrictEqual(all.map((_one, at) => (at in soon ? 1 : 0)))
  for (const { end } of all) ends().close(end)
})

it('an end that a clock makes the first comes before others that were to come earlier', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'], now: 10_000_000 })
  const before = opened(new End(Date.now() + 60_000))
  vi.setSystemTime(Date.now() - 3_600_000)
  const after = opened(new End(Date.now() + 90_000))
  vi.setSystemTime(Date.now() + 3_600_000)
  vi.advanceTimersByTime(1000)
  expect([before, after].map(({ reasons }) => reasons.length)).toStrictEqual([0, 1])
  ends().close(before.end)
})

it('no timer keeps the process, also none that waits for a store', async () => {
  ownEnds()
  const set = vi.spyOn(globalThis, 'setTimeout')
  onTestFinished(() => void set.mockRestore())
  class Asked extends End {
    override async ask(): Promise<never> {
      return Promise.reject(new Error('down'))
    }
  }
  const all = [new End(Date.now() + 3_600_000), new Asked(Date.now() + 3_600_000)].map(opened)
  await new Promise((resolve) => setImmediate(resolve))
  expect(set.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())).toStrictEqual([false, false])
  for (const { end } of all) ends().close(end)
})

it('what had ended before it is waited for has ended at once, and so has all that begins while the process shuts down', () => {
  ownEnds()
  const revoked = opened(new NamedEnd(Infinity, 'anna', () => true))
  const open = [opened(new End(Infinity)), opened(new NamedEnd(Infinity, 'bert', () => false))]
  expect([revoked, ...open].map(({ reasons }) => reasons.length)).toStrictEqual([1, 0, 0])
  ends().endAll('shutting down')
  open.push(opened(new End(Infinity)))
  expect(open.flatMap(({ reasons }) => reasons)).toStrictEqual(open.map(() => new AuthEndedError('shutting down')))
})
