/**
 * Sessions in an SQLite file, for one machine with nothing to install: entry point `koa-with-auth/sessions/sqlite`.
 *
 * It opens the file by itself through `@libsql/client`, because SQLite's own waiting for a lock would hold the event loop:
 * here a locked database is tried again, until the caller's time limit. After any other failure it is opened anew.
 */
import { createClient, type Client, type InArgs, type Row } from '@libsql/client'
import { checkOptions, declareFactory } from '../core/misuse.js'
import type { SessionStore } from './SessionStore.js'

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

const SWEEP_EVERY = 60_000
// a lock is tried again for this long, in milliseconds; then it is an outage
const PATIENCE = 1500
const longestPause = 40

const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && /^SQLITE_(?:BUSY|LOCKED)/.test(String(error.code))

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
  let swept = 0

  const open = async (): Promise<Client> => {
    const opened = createClient({ url, timeout: 0, concurrency: 1 })
    try {
      await opened.executeMultiple(tables)
      // readers and one writer do not wait for one another
      await opened.execute('pragma journal_mode = wal')
      return opened
    } catch (error) {
      opened.close()
      throw error
    }
  }
  const connected = async (): Promise<Client> => {
    if (client !== undefined) return client
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
  const execute = async (sql: string, args: InArgs): Promise<ReadonlyArray<Row>> => {
    const begun = Date.now()
    for (let wait = 5; ; wait = Math.min(longestPause, wait * 2)) {
      let used: Client | undefined
      try {
        used = await connected()
        return (await used.execute({ sql, args })).rows
      } catch (error) {
        if (!isBusy(error)) drop(used)
        if (!isBusy(error) || Date.now() - begun > PATIENCE) throw error
        await pause(wait)
      }
    }
  }
  const write = async (sql: string, args: InArgs): Promise<void> => {
    await execute(sql, args)
    if (Date.now() - swept < SWEEP_EVERY) return
    swept = Date.now()
    // a few at a time, because it runs on the event loop
    for (const table of ['auth_sessions', 'auth_marks']) {
      const key = table === 'auth_marks' ? 'user' : 'id'
      await execute(`delete from ${table} where ${key} in (select ${key} from ${table} where until <= ? limit 500)`, [
        swept,
      ])
    }
  }
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  return {
    read: async (id) => {
      const [row] = await execute('select text from auth_sessions where id = ? and until > ?', [id, Date.now()])
      return text(row?.['text'])
    },
    insert: (id, data, lifetime) =>
      write('insert into auth_sessions values (?, ?, ?) on conflict do nothing', [id, data, Date.now() + lifetime]),
    update: (id, data, lifetime) =>
      write('update auth_sessions set text = ?, until = ? where id = ? and text is not null and until > ?', [
        data,
        Date.now() + lifetime,
        id,
        Date.now(),
      ]),
    end: (id, lifetime) =>
      write(
        'insert into auth_sessions values (?, null, ?) on conflict do update set text = null, until = excluded.until',
        [id, Date.now() + lifetime],
      ),
    markOf: async (user) => {
      const [row] = await execute('select mark from auth_marks where user = ? and until > ?', [user, Date.now()])
      return text(row?.['mark']) ?? ''
    },
    mark: (user, mark, lifetime) =>
      write(
        'insert into auth_marks values (?, ?, ?) on conflict do update set mark = excluded.mark, until = excluded.until',
        [user, mark, Date.now() + lifetime],
      ),
    close: () => drop(client),
  }
}

declareFactory('sqliteStore', sqliteStore)
