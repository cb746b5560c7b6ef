/** A queue for work that takes a core or much memory. */
import { UnavailableError } from '../core/Result.js'

/** Does some work in its turn. Rejects with an `UnavailableError` if it is refused. */
export type WorkQueue = <A>(work: () => Promise<A>) => Promise<A>

/**
 * How much work is done at a time: one for each core, and never on all of Node's threads, because files and host names need them, too.
 * `poolSize` is UV_THREADPOOL_SIZE, with libuv's own default and bounds.
 */
export const widthFor = (cores: number, poolSize = '4'): number =>
  Math.max(1, Math.min(cores, Math.min(1024, Number(poolSize) || 1) - 1))

/**
 * Makes a queue. Work that waits is done in the order in which it came. It is refused if more than `limit` would wait, or if it waits
 * longer than `patience`, in milliseconds.
 */
export const makeQueue = ({
  width,
  limit,
  patience,
}: Readonly<Record<'width' | 'limit' | 'patience', number>>): WorkQueue => {
  const waiting: Array<{ readonly since: number; readonly begin: () => void; readonly giveUp: () => void }> = []
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
