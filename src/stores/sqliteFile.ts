/**
 * Reads and writes an SQLite file without blocking the event loop. The stores of sessions and of keys use it.
 *
 * A locked file is tried again (`sqliteRetry.ts`). After any other failure it is opened again (`sqliteConnection.ts`).
 * A power failure can undo the last moments. The end of a process undoes nothing.
 */
import type { Client, ResultSet } from '@libsql/client'
import type { Check } from '../core/options.js'
import { sqliteConnection, type SqliteFileOptions } from './sqliteConnection.js'
import { sqliteRetry } from './sqliteRetry.js'
import { withValues, type SqlValue } from './sqlText.js'

/** The option `url` of a store. `elsewhere` says what to use on several machines. */
export const fileUrl =
  (elsewhere: string): Check =>
  (place, value) => {
    if (typeof value === 'string' && value.startsWith('file:')) return
    throw new TypeError(`${place} must be "file:" and a path; ${elsewhere}`)
  }

/** A file. Every method rejects when the file cannot be read or written, or stays locked. */
export interface SqliteFile {
  readonly read: (sql: string, args: ReadonlyArray<SqlValue>) => Promise<ResultSet>
  /** Runs statements as one transaction; resolves to how many rows the last one changed. */
  readonly write: (sql: string, args: ReadonlyArray<SqlValue>) => Promise<number>
  /** The same, but rejects immediately if the file is locked. */
  readonly tryWrite: (sql: string, args: ReadonlyArray<SqlValue>) => Promise<number>
  /** Closes it; the next question opens it again. */
  readonly close: () => void
}

const changedBy = ({ rows }: ResultSet): number => Number(rows[0]?.['changed'])

/** A file that is opened when it is first used. Several processes of one machine can share it. */
export const sqliteFile = (options: SqliteFileOptions): SqliteFile => {
  const connection = sqliteConnection(options)
  const retry = sqliteRetry(connection)
  const writing =
    (sql: string, args: ReadonlyArray<SqlValue>) =>
    async (client: Client): Promise<number> => {
      // A prepared statement that meets a lock stays half run until it is garbage-collected, and until then nothing
      // else is committed on its connection. A statement in a string that runs as a whole ends immediately. The second
      // call follows the first in the queue of the only connection.
      const [, counted] = await Promise.all([
        client.executeMultiple(`begin immediate; ${withValues(sql, args)}; commit`),
        client.execute('select changes() as changed'),
      ])
      return changedBy(counted)
    }
  return {
    read: (sql, args) => retry((client) => client.execute({ sql, args: [...args] })),
    write: (sql, args) => retry(writing(sql, args)),
    tryWrite: (sql, args) => connection.use(writing(sql, args)),
    close: () => connection.close(),
  }
}
