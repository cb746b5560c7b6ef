/** Counts guesses in the store, so that all processes count together. */
import { createHash } from 'node:crypto'
import type { Store } from 'koa-with-auth/stores'

/** So many points for a key in so many seconds. It answers as rate-limiter-flexible does, of which any limiter can take its place. */
const limiterIn = (store: Store, name: string, points: number, duration: number) => {
  const change = async (given: string, by: 1 | -1) => {
    const key = `limit ${name} ${createHash('sha256').update(given).digest('base64url')}`
    for (;;) {
      const [was] = await store.get([key])
      const [count = 0, until = Date.now() + duration * 1000] = was?.split(' ').map(Number) ?? []
      const consumedPoints = Math.max(0, count + by)
      const msBeforeNext = Math.max(1, until - Date.now())
      // no Error, which would be an outage
      if (consumedPoints > points) throw { msBeforeNext }
      const text = `${consumedPoints} ${until}`
      const changing =
        was === undefined ? store.insert(key, text, msBeforeNext) : store.update(key, text, msBeforeNext, was)
      // of two at once, one looks again
      if (await changing) return { consumedPoints, remainingPoints: points - consumedPoints, msBeforeNext }
    }
  }
  return { points, duration, consume: (key: string) => change(key, 1), reward: (key: string) => change(key, -1) }
}

/** Ten guesses at an account from an address in 15 minutes, and a hundred at an account from anywhere in a day. */
export const limitersIn = (store: Store, name: string) => ({
  accountAndAddress: limiterIn(store, `${name} from an address`, 10, 900),
  account: limiterIn(store, name, 100, 86_400),
})
