/**
 * The statements of the SQLite store. Each finds its rows by a key or an index, so it takes the same time for a
 * thousand sessions and for a hundred million.
 */

// Each deleted row is on another page, which is read and written on the event loop. A write adds at most one row, so
// deleting a few keeps up.
const SWEPT_AT_ONCE = 8

/** Creates the tables that are missing. */
export const tables = `
  create table if not exists auth_sessions (id text primary key, text text, until integer not null) without rowid;
  create index if not exists auth_sessions_until on auth_sessions (until);
  create table if not exists auth_marks (user text primary key, mark text not null, until integer not null) without rowid;
  create index if not exists auth_marks_until on auth_marks (until);
`

/** Fails if a table is missing. */
export const check = 'select 1 from auth_sessions limit 1; select 1 from auth_marks limit 1'

const sweep = (table: string, key: string) =>
  `delete from ${table} where ${key} in (select ${key} from ${table} where until <= ? limit ${SWEPT_AT_ONCE})`

/** The statements, by what they do; times are milliseconds since 1970. */
export const statements = {
  read: 'select text from auth_sessions where id = ? and until > ?',
  // an expired row counts as missing
  insert:
    'insert into auth_sessions values (?, ?, ?) on conflict do update set text = excluded.text, until = excluded.until where auth_sessions.until <= ?',
  update: 'update auth_sessions set text = ?, until = ? where id = ? and text is not null and until > ?',
  end: 'insert into auth_sessions values (?, null, ?) on conflict do update set text = null, until = excluded.until',
  markOf: 'select mark from auth_marks where user = ? and until > ?',
  mark: 'insert into auth_marks values (?, ?, ?) on conflict do update set mark = excluded.mark, until = excluded.until',
  sweepSessions: sweep('auth_sessions', 'id'),
  sweepMarks: sweep('auth_marks', 'user'),
}

/** Whether a sweep deleted as many rows as it may, so there may be more. */
export const isFull = (deleted: number): boolean => deleted === SWEPT_AT_ONCE
