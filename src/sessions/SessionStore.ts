/**
 * Where sessions are kept: the one small interface that a database has to fit.
 *
 * A backend reads, inserts, updates and ends; it never decides which of the last three (`koaSessionStore.ts` does).
 *
 * Backends get a digest of the id, never the id: who reads the database cannot take a session over.
 */
import { createHash } from 'node:crypto'

/** A database of sessions. All times are in milliseconds; every method may reject, which is an outage. */
export interface SessionStore {
  /** The string kept for an id, unless there is none, its time is over, or it was ended. */
  readonly read: (id: string) => Promise<string | undefined>
  /** Keeps a string under a new id; does nothing where the id is known, ended or not. */
  readonly insert: (id: string, text: string, lifetime: number) => Promise<void>
  /** Replaces the string of a session that has not been ended, and resolves to `true`; else does nothing. */
  readonly update: (id: string, text: string, lifetime: number) => Promise<boolean>
  /** Ends a session, and remembers that for this long: the id cannot be inserted again. */
  readonly end: (id: string, lifetime: number) => Promise<void>
  /** The mark that sessions of a user must carry; `''` as long as none was set. */
  readonly markOf: (user: string) => Promise<string>
  /** Sets another mark, and keeps it for this long: sessions that carry an older one are over. */
  readonly mark: (user: string, mark: string, lifetime: number) => Promise<void>
}

/** What a backend is given for an id. */
export const digestOf = (id: string): string => createHash('sha256').update(id).digest('base64url')
