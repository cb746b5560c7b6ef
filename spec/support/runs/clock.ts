/** The clocks of a test: the system clock, and the one of `performance.now()`. Timers and sockets are not affected. */
import { onTestFinished, vi } from 'vitest'

export type Clock = ReturnType<typeof stoppedClock>

/** Stops the clocks until the test has finished. `move` lets time pass, `set` sets the system clock, forward or back. */
export const stoppedClock = () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const move = (ms: number) => void vi.advanceTimersByTime(ms)
  return { move, set: (ms: number) => void vi.setSystemTime(Date.now() + ms) }
}

/**
 * Stops the timers, too, until the test has finished. What is returned waits for a promise: when nothing else is left to do, the
 * timer that is due first fires. So the order of timers is that of their times, however long the machine takes.
 */
export const stoppedTimers = (): (<A>(awaited: A | Promise<A>) => Promise<A>) => {
  const due = new Map<object, { readonly at: number; readonly fire: () => void }>()
  let now = 0
  vi.stubGlobal('setTimeout', (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
    const timer = { unref: () => timer, ref: () => timer }
    due.set(timer, { at: now + ms, fire: () => run(...args) })
    return timer
  })
  vi.stubGlobal('clearTimeout', (timer: object | undefined) => void (timer !== undefined && due.delete(timer)))
  onTestFinished(() => void vi.unstubAllGlobals())
  return async (awaited) => {
    let isSettled = false
    const settled = Promise.resolve(awaited).finally(() => (isSettled = true))
    for (;;) {
      await Promise.race([settled, new Promise(setImmediate)])
      if (isSettled) return settled
      const [first] = [...due].sort(([, one], [, other]) => one.at - other.at)
      if (first === undefined) throw new Error('it waits for no timer')
      due.delete(first[0])
      now = first[1].at
      first[1].fire()
    }
  }
}
