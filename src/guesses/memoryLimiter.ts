/** A limiter in the memory of this process, the default of functions that count guesses. With several processes, each counts for itself. */
import type { Limiter } from './Limiter.js'

const MAX_COUNTS = 100_000
// How many counts are looked at, in turn, when there are too many
const LOOKED_AT = 8

interface KeptCount {
  points: number
  /** When its window ends, as `performance.now()`: a system clock that is set forward ends none. */
  readonly until: number
}

export const memoryLimiter = (points: number, duration: number): Limiter & { points: number; duration: number } => {
  const kept = new Map<string, KeptCount>()
  const current = (key: string, now: number): KeptCount | undefined => {
    const one = kept.get(key)
    return one !== undefined && now < one.until ? one : undefined
  }
  // A stranger can guess once at each of very many names. That must not push out the count of a name that was guessed at often, so
  // the lowest goes
  let turn = kept.entries()
  const dropOne = (now: number): void => {
    let lowest = Infinity
    let dropped = ''
    for (let at = 0; at < LOOKED_AT; at++) {
      const { done, value } = turn.next()
      if (done === true) {
        turn = kept.entries()
        continue
      }
      const [key, count] = value
      const height = now < count.until ? count.points : 0
      if (height >= lowest) continue
      lowest = height
      dropped = key
    }
    kept.delete(dropped)
  }
  return {
    points,
    duration,
    // eslint-disable-next-line @typescript-eslint/require-await -- an exception of it is a rejection
    consume: async (key) => {
      const now = performance.now()
      const before = current(key, now)
      const count = before ?? { points: 0, until: now + duration * 1000 }
      if (kept.size >= MAX_COUNTS && !kept.has(key)) dropOne(now)
      if (before === undefined) kept.set(key, count)
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
      const count = current(key, performance.now())
      if (count !== undefined && count.points > 0) count.points--
    },
  }
}
