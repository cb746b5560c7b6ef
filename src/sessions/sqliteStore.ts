/**
 * Sessions in an SQLite file, for one machine with nothing to install: entry point `koa-with-auth/sessions/sqlite`.
 *
 * `stores/sqliteFile.ts` reads and writes the file. A power failure can undo the last moments, such as a sign-out. The
 * end of a process undoes nothing.
 */
import { declareFactory } from '../core/hooks.js'
import { checkOptions } from '../core/options.js'
import { fileUrl, sqliteFile } from '../stores/sqliteFile.js'
import type { SqlValue } from '../stores/sqlText.js'
import type { SessionStore } from './SessionStore.js'
import { check, isFull, statements, tables } from './sqliteStatements.js'

/** Which file. */
export interface SqliteStoreOptions {
  /** `file:` and the path. The file is created if it is missing. The tables' names begin with `auth_`. */
  readonly url: string
}

/** A store that can be closed. */
export interface SqliteStore extends SessionStore {
  readonly close: () => void
}

const SWEEP_EVERY = 60_000

/**
 * A store in an SQLite file. Several processes of one machine can share it. Rejects when the file cannot be read or
 * written, or stays locked. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { sqliteStore } from 'koa-with-auth/sessions/sqlite'
 *
 * const store = sqliteStore({ url: 'file::memory:' })
 */
export const sqliteStore = (options: SqliteStoreOptions): SqliteStore => {
  const { url } = checkOptions('sqliteStore', options, {
    url: fileUrl('several machines share sessions by redisStore'),
  })
  const file = sqliteFile({ url, tables, check })
  let swept = 0
  // if sweeping fails, the write before it is still good
  const sweep = async (): Promise<void> => {
    const now = Date.now()
    if (now - swept < SWEEP_EVERY) return
    swept = now
    for (const sql of [statements.sweepSessions, statements.sweepMarks]) {
      // the next write sweeps the rest
      if (isFull(await file.tryWrite(sql, [now]))) swept = 0
    }
  }
  const write = async (sql: string, args: ReadonlyArray<SqlValue>): Promise<number> => {
    const changed = await file.write(sql, args)
    await sweep().catch(() => undefined)
    return changed
  }
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  return {
    read: async (id) => {
      const { rows } = await file.read(statements.read, [id, Date.now()])
      return text(rows[0]?.['text'])
    },
    insert: async (id, data, lifetime) => {
      await write(statements.insert, [id, data, Date.now() + lifetime, Date.now()])
    },
    update: async (id, data, lifetime) => {
      const changed = await write(statements.update, [data, Date.now() + lifetime, id, Date.now()])
      return changed === 1
    },
    end: async (id, lifetime) => {
      await write(statements.end, [id, Date.now() + lifetime])
    },
    markOf: async (user) => {
      const { rows } = await file.read(statements.markOf, [user, Date.now()])
      return text(rows[0]?.['mark']) ?? ''
    },
    mark: async (user, mark, lifetime) => {
      await write(statements.mark, [user, mark, Date.now() + lifetime])
    },
    close: () => file.close(),
  }
}

declareFactory('sqliteStore', sqliteStore)
