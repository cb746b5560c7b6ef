/** The engines of SQLite that this Node has, and connections beside a store, as of another process. */
import type { SqliteOptions } from 'koa-with-auth/stores'
import { openSqlite } from '../../../src/stores/sqlite.js'

export type SqliteEngine = NonNullable<SqliteOptions['engine']>

/** `node:sqlite` from Node 22.13 on, and `@libsql/client`; the first is the default of a store. */
export const engines: ReadonlyArray<SqliteEngine> =
  process.getBuiltinModule('node:sqlite') === undefined ? ['@libsql/client'] : ['node:sqlite', '@libsql/client']

export type Another = ReturnType<typeof another>

/**
 * Another connection to a file. It has the engine of the store, because two engines in one process do not see each other's
 * locks: the system knows locks of processes, and each engine knows only its own connections.
 */
export const another = (path: string, engine?: SqliteEngine) => {
  const connection = openSqlite(`file:${path}`, engine)
  connection.exec('pragma busy_timeout = 5000')
  return {
    execute: (sql: string) => connection.prepare(sql).all(),
    /** Takes the lock for writes. The result gives it back. */
    lock: () => {
      connection.exec('begin immediate')
      return () => connection.exec('rollback')
    },
    close: () => connection.close(),
  }
}
