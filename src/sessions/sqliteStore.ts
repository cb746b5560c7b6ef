/**
 * Sessions in an SQLite file, for one machine with nothing to install: entry point `koa-with-auth/sqlite`.
 *
 * A power failure can undo the last moments, such as a sign-out.
 */
import { steadyClock } from '../core/data.js'
import { declareFactory } from '../core/options.js'
import { sqliteFile, type Closable, type SqliteOptions, type SqlValue } from '../stores/sqlite.js'
import { answeringBoth, type SessionStore } from './SessionStore.js'
import { check, MARK, statements, SWEPT_AT_ONCE, tables, TEXT } from './sqliteStatements.js'

/** A store that can be closed. */
export type SqliteStore = SessionStore & Closable

const SWEEP_EVERY = 60_000

/**
 * A store in an SQLite file, by `@libsql/client`, or by `node:sqlite` from Node 22.13 on. Several processes of one machine can
 * share it. Rejects when the file cannot be read or written, or stays locked. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { sqliteStore } from 'koa-with-auth/sqlite'
 *
 * const store = sqliteStore({ url: 'file::memory:' })
 */
export const sqliteStore = (options: SqliteOptions): SqliteStore => {
  const file = sqliteFile('sqliteStore', options, {
    tables,
    check,
    elsewhere: 'several machines share sessions by redisStore',
  })
  const overBy = steadyClock()
  let swept = 0
  // if sweeping fails, the write before it is still good
  const sweep = async (): Promise<void> => {
    const now = Date.now()
    if (now - swept < SWEEP_EVERY) return
    swept = now
    for (const sql of [statements.sweepSessions, statements.sweepMarks, statements.sweepLists]) {
      // there may be more, which the next write sweeps
      if ((await file.tryWrite(sql, [overBy()])) === SWEPT_AT_ONCE) swept = 0
    }
  }
  const write = async (sql: string, args: ReadonlyArray<SqlValue>): Promise<number> => {
    const changed = await file.write(sql, args)
    await sweep().catch(() => undefined)
    return changed
  }
  const change = async (sql: string, args: ReadonlyArray<SqlValue>): Promise<void> => {
    await write(sql, args)
  }
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const store: SqliteStore = {
    read: async (id) => {
      const { rows } = await file.read(statements.read, [id, Date.now()])
      return text(rows[0]?.['text'])
    },
    insert: (id, data, lifetime) => change(statements.insert, [id, data, Date.now() + lifetime, Date.now()]),
    update: async (id, data, lifetime) =>
      (await write(statements.update, [data, Date.now() + lifetime, id, Date.now()])) === 1,
    end: (id, lifetime) => change(statements.end, [id, Date.now() + lifetime]),
    markOf: async (user) => {
      const { rows } = await file.read(statements.markOf, [user, Date.now()])
      return text(rows[0]?.['mark']) ?? ''
    },
    mark: (user, mark, lifetime) => change(statements.mark, [user, mark, Date.now() + lifetime]),
    enlist: (user, entry, lifetime) => change(statements.enlist, [user, entry, Date.now() + lifetime]),
    listed: async (user) => {
      const { rows } = await file.read(statements.listed, [user, Date.now()])
      return rows.map((row) => text(row['entry']) ?? '')
    },
    close: () => file.close(),
  }
  return answeringBoth(store, async (id, cookie) => {
    const user = cookie.likelyUser()
    if (user === undefined) return { text: await store.read(id), markOf: () => undefined }
    const now = Date.now()
    const { rows } = await file.read(statements.readBoth, [id, now, user, now])
    const kept = rows.map((row) => text(row['kept']) ?? '')
    const after = (begin: string) => kept.find((one) => one.startsWith(begin))?.slice(begin.length)
    const mark = after(MARK) ?? ''
    return { text: after(TEXT), markOf: (one) => (one === user ? mark : undefined) }
  })
}

declareFactory('sqliteStore', sqliteStore)
