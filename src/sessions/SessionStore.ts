/**
 * `SessionStore` is the interface of a database that keeps sessions.
 *
 * A backend reads, inserts, updates and ends. It never decides which of these is needed (`koaSessionStore.ts` does).
 *
 * Backends get a digest of the id, never the id. So somebody who reads the database cannot take a session over.
 */
import { createHash } from 'node:crypto'
import { declareFactory } from '../core/options.js'
import { within } from '../stores/within.js'

/** A database of sessions. All times are in milliseconds; every method may reject, which is an outage. */
export interface SessionStore {
  /** Resolves to the string that is stored under an id; to `undefined` if there is none, if it has expired, or if it was ended. */
  readonly read: (id: string) => Promise<string | undefined>
  /** Stores a string under a new id. Does nothing if the id is known, ended or not. */
  readonly insert: (id: string, text: string, lifetime: number) => Promise<void>
  /** Replaces the string of a session that has not ended, and resolves to `true`. Otherwise it does nothing, and resolves to `false`. */
  readonly update: (id: string, text: string, lifetime: number) => Promise<boolean>
  /** Ends a session, and remembers that for `lifetime`: until then, the id cannot be inserted again. */
  readonly end: (id: string, lifetime: number) => Promise<void>
  /** Resolves to the mark that the sessions of a user must carry, or to `''` if none was set. */
  readonly markOf: (user: string) => Promise<string>
  /** Sets another mark, and keeps it for `lifetime`. Sessions that carry an older mark have ended. */
  readonly mark: (user: string, mark: string, lifetime: number) => Promise<void>
}

/** The digest of an id, which a backend gets instead of the id. */
export const digestOf = (id: string): string => createHash('sha256').update(id).digest('base64url')

/*
 * Adds a time limit to a store of sessions.
 */

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

/*
 * Sessions in this process, for development and tests. They are lost when it ends, and no other process knows them.
 */

interface Kept {
  /** `undefined`: the session was ended. */
  readonly text: string | undefined
  readonly until: number
}

const SWEEP_EVERY = 1000

/**
 * A store that keeps sessions in memory, and drops expired ones.
 *
 * @example
 * import { memoryStore } from 'koa-with-auth/sessions'
 *
 * const store = memoryStore()
 */
export const memoryStore = (): SessionStore => {
  const sessions = new Map<string, Kept>()
  const marks = new Map<string, Kept>()
  let writes = 0
  const live = (kept: Map<string, Kept>, key: string): Kept | undefined => {
    const found = kept.get(key)
    return found !== undefined && found.until > Date.now() ? found : undefined
  }
  const keep = (kept: Map<string, Kept>, key: string, text: string | undefined, lifetime: number): void => {
    kept.set(key, { text, until: Date.now() + lifetime })
    if (++writes % SWEEP_EVERY !== 0) return
    for (const all of [sessions, marks]) {
      for (const [one, { until }] of all) if (until <= Date.now()) all.delete(one)
    }
  }
  const done = Promise.resolve()
  return {
    read: (id) => Promise.resolve(live(sessions, id)?.text),
    insert: (id, text, lifetime) => {
      if (live(sessions, id) === undefined) keep(sessions, id, text, lifetime)
      return done
    },
    update: (id, text, lifetime) => {
      const isThere = live(sessions, id)?.text !== undefined
      if (isThere) keep(sessions, id, text, lifetime)
      return Promise.resolve(isThere)
    },
    end: (id, lifetime) => {
      keep(sessions, id, undefined, lifetime)
      return done
    },
    markOf: (user) => Promise.resolve(live(marks, user)?.text ?? ''),
    mark: (user, mark, lifetime) => {
      keep(marks, user, mark, lifetime)
      return done
    },
  }
}

declareFactory('memoryStore', memoryStore)
