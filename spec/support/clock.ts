/** A clock that a test sets. Timers and sockets are not affected. */
import { onTestFinished, vi } from 'vitest'

export interface Clock {
  /** Moves it, forward or back. */
  readonly move: (ms: number) => void
}

/** Stops the clock until the test is finished. */
export const stoppedClock = (): Clock => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  return { move: (ms) => void vi.setSystemTime(Date.now() + ms) }
}
