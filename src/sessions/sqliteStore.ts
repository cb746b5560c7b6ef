/**
 * Sessions in an SQLite file, for one machine with nothing to install: entry point `koa-with-auth/sqlite`.
 *
 * A power failure can undo the last moments, such as a sign-out.
 */
import { steadyClock } from '../core/data.js'
import { declareFactory } from '../core/options.js'
import { sqliteFile, type Closable, type SqliteOptions, type SqlValue } from '../stores/sqlite.js'
import { answeringBoth, type SessionStore } from './SessionStore.js'

// Each deleted row is on another page, which is read and written on the event loop. A write adds at most one row, so
// deleting a few keeps up.
const SWEPT_AT_ONCE = 8

const tables = `
  create table if not exists auth_sessions (id text primary key, text text, until integer not null) without rowid;
  create index if not exists auth_sessions_until on auth_sessions (until);
  create table if not exists auth_marks (user text primary key, mark text not null, until integer not null) without rowid;
  create index if not exists auth_marks_until on auth_marks (until);
  create table if not exists auth_lists (user text, entry text, until integer not null, primary key (user, entry)) without rowid;
  create index if not exists auth_lists_until on auth_lists (until);
`

/** Fails if a table is missing. */
export const check =
  'select 1 from auth_sessions limit 1; select 1 from auth_marks limit 1; select 1 from auth_lists limit 1'

const sweep = (table: string, key: string) =>
  `delete from ${table} where (${key}) in (select ${key} from ${table} where until <= ? limit ${SWEPT_AT_ONCE})`

// How the two of one question begin
const TEXT = '+'
const MARK = '-'

/**
 * The statements, by what they do; times are milliseconds since 1970. Each finds its rows by a key or an index, so it
 * takes the same time for a thousand sessions and for a hundred million.
 */
export const statements = {
  read: 'select text from auth_sessions where id = ? and until > ?',
  // an expired row counts as missing
  insert:
    'insert into auth_sessions values (?, ?, ?) on conflict do update set text = excluded.text, until = excluded.until where auth_sessions.until <= ?',
  update: 'update auth_sessions set text = ?, until = ? where id = ? and text is not null and until > ?',
  end: 'insert into auth_sessions values (?, null, ?) on conflict do update set text = null, until = excluded.until',
  markOf: 'select mark from auth_marks where user = ? and until > ?',
  // in one column, because each column takes the client as long as SQLite takes to find a row
  readBoth: `select '${TEXT}' || text as kept from auth_sessions where id = ? and until > ?
    union all select '${MARK}' || mark from auth_marks where user = ? and until > ?`,
  mark: 'insert into auth_marks values (?, ?, ?) on conflict do update set mark = excluded.mark, until = excluded.until',
  sweepSessions: sweep('auth_sessions', 'id'),
  enlist: 'insert into auth_lists values (?, ?, ?) on conflict do update set until = excluded.until',
  listed: 'select entry from auth_lists where user = ? and until > ?',
  sweepMarks: sweep('auth_marks', 'user'),
  sweepLists: sweep('auth_lists', 'user, entry'),
}

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
