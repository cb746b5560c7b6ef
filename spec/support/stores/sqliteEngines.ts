/** The engines of SQLite that this Node has, and connections beside a store, as of another process. */
import { createClient } from '@libsql/client'
import type { SqliteOptions } from 'koa-with-auth/stores'
import { openSqlite } from '../../../src/stores/sqlite.js'

export type SqliteEngine = NonNullable<SqliteOptions['engine']>

/** `node:sqlite` from Node 22.13 on, and `@libsql/client`; the first is the default of a store. */
export const engines: ReadonlyArray<SqliteEngine> =
  process.getBuiltinModule('node:sqlite') === undefined ? ['@libsql/client'] : ['node:sqlite', '@libsql/client']

/** The engine of a store that names none. */
const defaultEngine: SqliteEngine = engines[0]!

/** A connection beside that of a store. */
export interface Another {
  readonly execute: (sql: string) => Promise<ReadonlyArray<Readonly<Record<string, unknown>>>>
  /** Takes the lock for writes. The result gives it back. */
  readonly lock: () => Promise<() => void>
  readonly close: () => void
}

/**
 * Another connection to a file. It has the engine of the store, because two engines in one process do not see each other's
 * locks: the system knows locks of processes, and each engine knows only its own connections.
 */
export const another = async (path: string, engine: SqliteEngine = defaultEngine): Promise<Another> => {
  const client =
    engine === 'node:sqlite'
      ? await openSqlite(`file:${path}`, engine)
      : createClient({ url: `file:${path}`, timeout: 5000, concurrency: 1 })
  return {
    execute: async (sql) => (await client.execute(sql)).rows,
    lock: async () => {
      if ('transaction' in client) {
        const transaction = await client.transaction('write')
        return () => transaction.close()
      }
      await client.executeMultiple('begin immediate')
      return () => void client.executeMultiple('rollback')
    },
    close: () => client.close(),
  }
}
