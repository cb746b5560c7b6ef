/**
 * `SessionStore` is the interface of a database that keeps sessions.
 *
 * A backend reads, inserts, updates and ends. It never decides which of these is needed (`koaSessionStore.ts` does).
 *
 * Backends get a digest of the id, never the id. So somebody who reads the database cannot take a session over.
 */
import { createHash } from 'node:crypto'

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
