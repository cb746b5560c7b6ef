/**
 * Work that waits in line: so many at a time, the rest in the order in which they came. Whoever comes when the line is full, or
 * waits too long, is turned away.
 */
import { UnavailableError } from '../core/UnavailableError.js'

/** How long a line may get. */
export interface LineOptions {
  /** How many work at a time. */
  readonly width: number
  /** How many wait at most. */
  readonly limit: number
  /** How long they wait at most, in milliseconds. */
  readonly patience: number
}

/** Does some work when it is its turn; rejects with an `UnavailableError` where that does not come. */
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
      if (waiting.length >= limit) return reject(new UnavailableError('passwords: too many wait to be verified'))
      const giveUp = () => reject(new UnavailableError(`passwords: none was verified within ${patience} ms`))
      waiting.push({ since: performance.now(), begin, giveUp })
    })
}
