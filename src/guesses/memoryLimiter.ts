/** A limiter in the memory of this process, for what counts guesses by default. With several processes, each counts for itself. */
import { fromNow, memory } from '../core/memory.js'
import type { Limiter } from './Limiter.js'

// Whoever makes so many counts has guessed as often, which takes longer than any of them lasts
const SIZE = 100_000

interface Kept {
  points: number
  /** When its window ends, as `performance.now()`. */
  readonly until: number
}

/** Makes a limiter that lets `points` guesses pass in `duration` seconds. */
export const memoryLimiter = (points: number, duration: number): Limiter & { points: number; duration: number } => {
  const kept = memory<Kept>({ size: SIZE, maxAge: duration * 1000, dropsFirst: 'oldest' })
  return {
    points,
    duration,
    // eslint-disable-next-line @typescript-eslint/require-await -- what it throws is a rejection
    consume: async (key) => {
      const now = performance.now()
      const before = kept.get(key)
      const count = before ?? { points: 0, until: now + duration * 1000 }
      if (before === undefined) kept.set(key, fromNow(count))
      count.points++
      const consumedPoints = count.points
      const counted = {
        consumedPoints,
        remainingPoints: Math.max(0, points - consumedPoints),
        msBeforeNext: count.until - now,
      }
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- as limiters refuse
      if (consumedPoints > points) throw counted
      return counted
    },
    // eslint-disable-next-line @typescript-eslint/require-await -- the same
    reward: async (key) => {
      const count = kept.get(key)
      if (count !== undefined && count.points > 0) count.points--
    },
  }
}
