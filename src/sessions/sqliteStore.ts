/**
 * Sessions in an SQLite file, for one machine with nothing to install: entry point `koa-with-auth/sessions/sqlite`.
 *
 * It opens the file by itself through `@libsql/client`, because SQLite's own waiting for a lock would hold the event loop:
 * here a locked database is tried again, until the caller's time limit. After any other failure it is opened anew. A power
 * failure can undo the last moments, a sign-out among them; the end of a process undoes nothing.
 */
import { createClient, type Client, type ResultSet } from '@libsql/client'
import { checkOptions, declareFactory } from '../core/misuse.js'
import type { SessionStore } from './SessionStore.js'
import { withValues, type SqlValue } from './sqlText.js'

/** Which file. */
export interface SqliteStoreOptions {
  /** `file:` and the path; it is created where it is missing. The tables' names begin with `auth_`. */
  readonly url: string
}

/** A store that can be closed. */
export interface SqliteStore extends SessionStore {
  readonly close: () => void
}

const tables = `
  create table if not exists auth_sessions (id text primary key, text text, until integer not null) without rowid;
  create index if not exists auth_sessions_until on auth_sessions (until);
  create table if not exists auth_marks (user text primary key, mark text not null, until integer not null) without rowid;
`
const probe = 'begin immediate; rollback'
const check = 'select 1 from auth_sessions limit 1; select 1 from auth_marks limit 1'

const SWEEP_EVERY = 60_000
const SWEPT_AT_ONCE = 500
// a lock is tried again for this long, in milliseconds; then it is an outage
const PATIENCE = 1500
// for so long one asks for all whether it has passed
const ROUND = 100
// opening holds the event loop, and what was closed is freed late: in an outage not for every request
const OPENED_EVERY = 250
const OPENED_EVERY_IF_LOCKED = 20

const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && /^SQLITE_(?:BUSY|LOCKED)/.test(String(error.code))

// locked, or closed by a request that failed
const isPassing = (error: unknown): boolean =>
  isBusy(error) || (error instanceof Error && 'code' in error && error.code === 'CLIENT_CLOSED')

const changedBy = ({ rows }: ResultSet): number => Number(rows[0]?.['changed'])

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * A store in an SQLite file; several processes of one machine can share it. Rejects when the file cannot be read or
 * written, or stays locked. TypeError for options that cannot work.
 *
 * @example
 * import { sqliteStore } from 'koa-with-auth/sessions/sqlite'
 *
 * const store = sqliteStore({ url: 'file::memory:' })
 */
export const sqliteStore = (options: SqliteStoreOptions): SqliteStore => {
  checkOptions('sqliteStore', options, ['url'])
  const { url } = options
  if (typeof url !== 'string' || !url.startsWith('file:')) {
    throw new TypeError(
      'sqliteStore({ url }) must be "file:" and a path; several machines share sessions by redisStore',
    )
  }
  let client: Client | undefined
  let opening: Promise<Client> | undefined
  let waiting: Promise<void> | undefined
  let openedAt = 0
  let refused: { readonly error: unknown; readonly until: number } | undefined
  let isMade = false
  let swept = 0

  const open = async (): Promise<Client> => {
    let opened: Client | undefined
    try {
      opened = createClient({ url, timeout: 0, concurrency: 1 })
      // a file that has lost its tables was not emptied by us: nobody is signed out, or in, until it is restored
      await opened.executeMultiple(isMade ? check : tables)
      // readers and one writer do not wait for one another
      await opened.execute('pragma journal_mode = wal')
      // waiting for the disk at every write would hold the event loop, and keep the other processes out meanwhile
      await opened.execute('pragma synchronous = normal')
      isMade = !url.includes(':memory:')
      openedAt = Date.now()
      return opened
    } catch (error) {
      refused = { error, until: Date.now() + (isBusy(error) ? OPENED_EVERY_IF_LOCKED : OPENED_EVERY) }
      opened?.close()
      throw error
    }
  }
  const connected = async (): Promise<Client> => {
    if (client !== undefined) return client
    if (refused !== undefined && Date.now() < refused.until) throw refused.error
    opening ??= open().finally(() => {
      opening = undefined
    })
    client = await opening
    return client
  }
  const drop = (failed: Client | undefined): void => {
    if (failed === undefined || client !== failed) return
    client = undefined
    failed.close()
  }
  const once = async (sql: string, args: ReadonlyArray<SqlValue>, isWrite: boolean): Promise<ResultSet> => {
    const used = await connected()
    try {
      if (!isWrite) return await used.execute({ sql, args: [...args] })
      // A prepared statement that meets a lock stays half run until it is collected as garbage, and nothing else is committed
      // on its connection until then; a text that is run as a whole is finished at once. The second stands behind the first
      // in the queue for the only connection.
      const [, counted] = await Promise.all([
        used.executeMultiple(`begin immediate; ${withValues(sql, args)}; commit`),
        used.execute('select changes() as changed'),
      ])
      return counted
    } catch (error) {
      if (!isBusy(error) && Date.now() - openedAt > OPENED_EVERY) drop(used)
      throw error
    }
  }
  // A lock has no queue: who asks seldom, beside a process that writes without a pause, gets it by chance
  const round = async (): Promise<void> => {
    const until = Date.now() + ROUND
    do await pause(1 + Math.random() * 8)
    while (Date.now() < until && !(await isFree()))
  }
  const isFree = async (): Promise<boolean> => {
    try {
      await client?.executeMultiple(probe)
      return true
    } catch (error) {
      return !isBusy(error)
    }
  }
  const execute = async (sql: string, args: ReadonlyArray<SqlValue>, isWrite = false): Promise<ResultSet> => {
    const until = Date.now() + PATIENCE
    for (;;) {
      try {
        return await once(sql, args, isWrite)
      } catch (error) {
        if (!isPassing(error) || Date.now() > until) throw error
        waiting ??= round().finally(() => {
          waiting = undefined
        })
        await waiting
      }
    }
  }
  // a few at a time, because it runs on the event loop; the write that came with it is good without it
  const sweep = async (): Promise<void> => {
    const now = Date.now()
    if (now - swept < SWEEP_EVERY) return
    swept = now
    for (const [table, key] of [
      ['auth_sessions', 'id'],
      ['auth_marks', 'user'],
    ]) {
      const sql = `delete from ${table} where ${key} in (select ${key} from ${table} where until <= ? limit ${SWEPT_AT_ONCE})`
      const done = await once(sql, [now], true)
      // the rest is the next write's
      if (changedBy(done) === SWEPT_AT_ONCE) swept = 0
    }
  }
  const write = async (sql: string, args: ReadonlyArray<SqlValue>): Promise<ResultSet> => {
    const done = await execute(sql, args, true)
    await sweep().catch(() => undefined)
    return done
  }
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  return {
    read: async (id) => {
      const { rows } = await execute('select text from auth_sessions where id = ? and until > ?', [id, Date.now()])
      return text(rows[0]?.['text'])
    },
    insert: async (id, data, lifetime) => {
      // one whose time is over is not there
      await write(
        'insert into auth_sessions values (?, ?, ?) on conflict do update set text = excluded.text, until = excluded.until where auth_sessions.until <= ?',
        [id, data, Date.now() + lifetime, Date.now()],
      )
    },
    update: async (id, data, lifetime) => {
      const done = await write(
        'update auth_sessions set text = ?, until = ? where id = ? and text is not null and until > ?',
        [data, Date.now() + lifetime, id, Date.now()],
      )
      return changedBy(done) === 1
    },
    end: async (id, lifetime) => {
      await write(
        'insert into auth_sessions values (?, null, ?) on conflict do update set text = null, until = excluded.until',
        [id, Date.now() + lifetime],
      )
    },
    markOf: async (user) => {
      const { rows } = await execute('select mark from auth_marks where user = ? and until > ?', [user, Date.now()])
      return text(rows[0]?.['mark']) ?? ''
    },
    mark: async (user, mark, lifetime) => {
      await write(
        'insert into auth_marks values (?, ?, ?) on conflict do update set mark = excluded.mark, until = excluded.until',
        [user, mark, Date.now() + lifetime],
      )
    },
    close: () => drop(client),
  }
}

declareFactory('sqliteStore', sqliteStore)
