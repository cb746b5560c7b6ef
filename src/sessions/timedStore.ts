/**
 * Adds a time limit to a store of sessions.
 */
import { within } from '../stores/within.js'
import type { SessionStore } from './SessionStore.js'

/** A store that rejects with `StoreUnavailable` when it fails, and after `timeout` milliseconds. */
export const timedStore = (store: SessionStore, timeout: number): SessionStore => {
  const timed = within('sessions', timeout)
  return {
    read: (id) => timed(() => store.read(id)),
    insert: (id, text, lifetime) => timed(() => store.insert(id, text, lifetime)),
    update: (id, text, lifetime) => timed(() => store.update(id, text, lifetime)),
    end: (id, lifetime) => timed(() => store.end(id, lifetime)),
    markOf: (user) => timed(() => store.markOf(user)),
    mark: (user, mark, lifetime) => timed(() => store.mark(user, mark, lifetime)),
  }
}
