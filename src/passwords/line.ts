/**
 * A queue: some work is done at a time, and the rest waits in the order in which it came. Work is refused if the queue
 * is full, or if it waits too long.
 */
import { UnavailableError } from '../core/UnavailableError.js'

/** The limits of a queue. */
export interface LineOptions {
  /** How much work is done at a time. */
  readonly width: number
  /** How much work may wait. */
  readonly limit: number
  /** How long work may wait, in milliseconds. */
  readonly patience: number
}

/** Does some work in its turn. Rejects with an `UnavailableError` if it is refused. */
export type Line = <A>(work: () => Promise<A>) => Promise<A>

interface Waiting {
  readonly since: number
  readonly begin: () => void
  readonly giveUp: () => void
}

/** @see LineOptions */
export const makeLine = ({ width, limit, patience }: LineOptions): Line => {
  const waiting: Waiting[] = []
  let working = 0
  const next = (): void => {
    working--
    for (let first = waiting.shift(); first !== undefined; first = waiting.shift()) {
      if (performance.now() - first.since <= patience) return first.begin()
      first.giveUp()
    }
  }
  return (work) =>
    new Promise((resolve, reject) => {
      const begin = (): void => {
        working++
        work().then(resolve, reject).finally(next)
      }
      if (working < width) return begin()
      if (waiting.length >= limit) return reject(new UnavailableError('passwords: the queue is full'))
      const giveUp = () =>
        reject(new UnavailableError(`passwords: the wait in the queue was longer than ${patience} ms`))
      waiting.push({ since: performance.now(), begin, giveUp })
    })
}
