/**
 * Remembers which guesses are over their limit. Otherwise `remembered` would be a way around the limit: it would
 * compare each guess with a verification that passed, and no limiter would count it.
 *
 * It refuses nothing. It says when the limiter must be asked first. An entry lives as long as its refusal. If there are
 * too many entries, the oldest are dropped.
 */
const SIZE = 10_000

/** Keys of refused guesses. */
export interface RefusedGuesses {
  /** Adds a key for some seconds. Without `seconds`, it stays until it is deleted or dropped. */
  readonly add: (key: string, seconds: number | undefined) => void
  readonly delete: (key: string) => void
  readonly has: (key: string) => boolean
  readonly isEmpty: () => boolean
}

/** An empty collection. */
export const refusedGuesses = (): RefusedGuesses => {
  const until = new Map<string, number>()
  return {
    add: (key, seconds) => {
      until.delete(key)
      until.set(key, performance.now() + (seconds ?? Infinity) * 1000)
      for (const oldest of until.keys()) {
        if (until.size <= SIZE) return
        until.delete(oldest)
      }
    },
    delete: (key) => void until.delete(key),
    has: (key) => {
      if (performance.now() < (until.get(key) ?? 0)) return true
      until.delete(key)
      return false
    },
    isEmpty: () => until.size === 0,
  }
}
