/**
 * Which guesses this process knows to be over their limit, so that what `remembered` keeps is no way around it: there each
 * guess would be compared with a verification that passed, and counted by no limiter.
 *
 * It refuses nothing: it says when the limiter must be asked first. An entry lives as long as its refusal, and the oldest
 * make room for the newest.
 */
const SIZE = 10_000

/** Keys of refused guesses. */
export interface RefusedGuesses {
  /** Over the limit, for so many seconds; without them until there is room for another. */
  readonly add: (key: string, seconds: number | undefined) => void
  readonly delete: (key: string) => void
  readonly has: (key: string) => boolean
  readonly isEmpty: () => boolean
}

/** None yet. */
export const refusedGuesses = (): RefusedGuesses => {
  const until = new Map<string, number>()
  return {
    add: (key, seconds) => {
      until.delete(key)
      until.set(key, Date.now() + (seconds ?? Infinity) * 1000)
      for (const oldest of until.keys()) {
        if (until.size <= SIZE) return
        until.delete(oldest)
      }
    },
    delete: (key) => void until.delete(key),
    has: (key) => {
      const end = until.get(key)
      if (end === undefined) return false
      if (Date.now() < end) return true
      until.delete(key)
      return false
    },
    isEmpty: () => until.size === 0,
  }
}
