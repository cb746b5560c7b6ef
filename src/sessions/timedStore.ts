/**
 * A store whose answers come in time or not at all: a failure, and silence, are both an outage.
 */
import type { SessionStore } from './SessionStore.js'

/** The store failed, or did not answer in time. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** A store that rejects with `StoreUnavailable` when it fails, and after `timeout` milliseconds. */
export const timedStore = (store: SessionStore, timeout: number): SessionStore => {
  const within = <A>(ask: () => Promise<A>): Promise<A> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new StoreUnavailable(`the session store did not answer within ${timeout} ms`))
      }, timeout)
      // a store that throws instead of rejecting fails, too
      void (async () => ask())()
        .then((answer) => {
          // some clients answer a failure as a value
          if (answer instanceof Error) throw answer
          resolve(answer)
        })
        .catch((cause: unknown) => reject(new StoreUnavailable('the session store failed', { cause })))
        .finally(() => clearTimeout(timer))
    })
  return {
    read: (id) => within(() => store.read(id)),
    insert: (id, text, lifetime) => within(() => store.insert(id, text, lifetime)),
    update: (id, text, lifetime) => within(() => store.update(id, text, lifetime)),
    end: (id, lifetime) => within(() => store.end(id, lifetime)),
    markOf: (user) => within(() => store.markOf(user)),
    mark: (user, mark, lifetime) => within(() => store.mark(user, mark, lifetime)),
  }
}
