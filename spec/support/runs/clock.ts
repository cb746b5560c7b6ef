/** The clocks of a test: the system clock, and the one of `performance.now()`. Timers and sockets are not affected. */
import { onTestFinished, vi } from 'vitest'

export interface Clock {
  /** Lets time pass. */
  readonly move: (ms: number) => void
  /** Sets the system clock, forward or back. */
  readonly set: (ms: number) => void
}

/** Stops the clocks until the test has finished. */
export const stoppedClock = (): Clock => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  return { move: (ms) => void vi.advanceTimersByTime(ms), set: (ms) => void vi.setSystemTime(Date.now() + ms) }
}
