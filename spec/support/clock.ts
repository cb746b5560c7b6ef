/** A clock that a test sets; timers and sockets go on by themselves. */
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
