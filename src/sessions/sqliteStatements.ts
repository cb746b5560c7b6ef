/** The tables of sessions in an SQLite file, and the statements about them. */

// Each deleted row is on another page, which is read and written on the event loop. A write adds at most one row, so
// deleting a few keeps up.
export const SWEPT_AT_ONCE = 8

export const tables = `
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
export const TEXT = '+'
export const MARK = '-'

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
