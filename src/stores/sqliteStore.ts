/** A store in an SQLite file, for one machine with nothing to install: entry point `koa-with-auth/stores`. */
import { steadyClock } from '../core/data.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { besideWrites, onConflict, sqlStore, statementsIn, tablesIn, withoutNul, type SqlValue } from './sql.js'
import { NOW, sqliteEngine, SqliteFile, type SqliteOptions } from './sqlite.js'
import type { Store } from './Store.js'

/** A store that can be closed. */
export type SqliteStore = Store & { readonly close: () => void }

const tables = tablesIn(' without rowid').join(';')

const tablesCheck = 'select text from auth_texts limit 1; select member from auth_members limit 1'

// Each deleted row is on another page, which is read and written on the event loop. A write adds at most one row, so deleting a few
// keeps up
const FEW_ROWS = 8

const pruning = (table: string, key: string): string =>
  `delete from ${table} where (${key}) in (select ${key} from ${table} where until <= ? limit ${FEW_ROWS})`

const statements = statementsIn({ now: NOW, conflicts: onConflict(NOW, 'max'), pruning })

/**
 * A store in an SQLite file, by `node:sqlite` from Node 22.13 on, otherwise by `@libsql/client`. Several processes of one machine can
 * share it. Rejects when the file cannot be read or written, stays locked, or was replaced by another file. Texts cannot contain NUL. A power failure can undo the
 * last moments, such as a sign-out; the end of a process undoes nothing. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { sqliteStore } from 'koa-with-auth/stores'
 *
 * const store = sqliteStore({ url: 'file::memory:' })
 * await store.insert('a', 'text', 60_000)
 * assert.deepStrictEqual(await store.get(['a', 'b']), ['text', undefined])
 * store.close()
 */
export const sqliteStore = (options: SqliteOptions): SqliteStore => {
  const checks = {
    url: is.like(
      /^file:/,
      'must be "file:" and a path; several machines share postgresStore, mysqlStore or redisStore',
    ),
    engine: sqliteEngine,
  }
  const file = new SqliteFile(checkOptions('sqliteStore', options, checks), { create: tables, check: tablesCheck })
  const overBy = steadyClock()
  // the time of this process, which is that of the file's machine
  const timed = (values: ReadonlyArray<SqlValue>) => [...values, Date.now()]
  const store = sqlStore({
    statements,
    written: withoutNul('SQLite'),
    read: (sql, values) => file.read(sql, timed(values)),
    change: async (sql, values) => (await file.write(sql, timed(values))) > 0,
    prune: besideWrites(statements.prunings, (sql) => file.write(sql, [overBy()], 0), FEW_ROWS),
  })
  return { ...store, close: () => file.close() }
}

declareFactory('sqliteStore', sqliteStore)
