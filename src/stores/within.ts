/**
 * A store that answers in time or not at all: a failure, and silence, are both an outage.
 */
import { UnavailableError } from '../core/UnavailableError.js'

/** The store failed, or did not answer in time. */
export class StoreUnavailable extends UnavailableError {
  override readonly name = 'StoreUnavailable'
}

/** Asks a store; rejects with `StoreUnavailable` when it fails, and after `timeout` milliseconds. */
export const within =
  (what: string, timeout: number) =>
  <A>(ask: () => Promise<A>): Promise<A> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new StoreUnavailable(`${what} did not answer within ${timeout} ms`))
      }, timeout)
      const fail = (cause: unknown): void => {
        clearTimeout(timer)
        reject(new StoreUnavailable(`${what} failed`, { cause }))
      }
      try {
        Promise.resolve(ask()).then((answer) => {
          // some clients answer a failure as a value
          if (answer instanceof Error) return fail(answer)
          clearTimeout(timer)
          resolve(answer)
        }, fail)
      } catch (error) {
        // a store that throws instead of rejecting fails, too
        fail(error)
      }
    })
