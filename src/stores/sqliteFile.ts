/**
 * An SQLite file that is asked without holding the event loop: what the stores of sessions and of keys share.
 *
 * It opens the file by itself through `@libsql/client`, because SQLite's own waiting for a lock would hold the event loop:
 * here a locked database is tried again, until the caller's time limit. After any other failure it is opened anew. A power
 * failure can undo the last moments; the end of a process undoes nothing.
 */
import { createClient, type Client, type ResultSet } from '@libsql/client'
import { withValues, type SqlValue } from './sqlText.js'

/** Which file, and what is in it. */
export interface SqliteFileOptions {
  /** `file:` and the path; it is created where it is missing. */
  readonly url: string
  /** Creates what is missing. */
  readonly tables: string
  /** Fails where a table is missing. */
  readonly check: string
}

/** A file. Every method rejects when the file cannot be read or written, or stays locked. */
export interface SqliteFile {
  readonly read: (sql: string, args: ReadonlyArray<SqlValue>) => Promise<ResultSet['rows']>
  /** Runs statements as one transaction; resolves to how many rows the last one changed. */
  readonly write: (sql: string, args: ReadonlyArray<SqlValue>) => Promise<number>
  /** The same, and rejects at once where the file is locked. */
  readonly tryWrite: (sql: string, args: ReadonlyArray<SqlValue>) => Promise<number>
  /** Closes it; the next question opens it again. */
  readonly close: () => void
}

const probe = 'begin immediate; rollback'

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

/** A file that is opened when it is first asked; several processes of one machine can share it. */
export const sqliteFile = ({ url, tables, check }: SqliteFileOptions): SqliteFile => {
  let client: Client | undefined
  let opening: Promise<Client> | undefined
  let waiting: Promise<void> | undefined
  let openedAt = 0
  let refused: { readonly error: unknown; readonly until: number } | undefined
  let isMade = false

  const open = async (): Promise<Client> => {
    let opened: Client | undefined
    try {
      opened = createClient({ url, timeout: 0, concurrency: 1 })
      // a file that has lost its tables was not emptied by us: nothing is decided by it until it is restored
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
  const once = async <A>(ask: (used: Client) => Promise<A>): Promise<A> => {
    const used = await connected()
    try {
      return await ask(used)
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
  const patiently = async <A>(ask: () => Promise<A>): Promise<A> => {
    const until = Date.now() + PATIENCE
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        if (!isPassing(error) || Date.now() > until) throw error
        waiting ??= round().finally(() => {
          waiting = undefined
        })
        await waiting
      }
    }
  }
  const tryWrite: SqliteFile['tryWrite'] = (sql, args) =>
    once(async (used) => {
      // A prepared statement that meets a lock stays half run until it is collected as garbage, and nothing else is committed
      // on its connection until then; a text that is run as a whole is finished at once. The second stands behind the first
      // in the queue for the only connection.
      const [, counted] = await Promise.all([
        used.executeMultiple(`begin immediate; ${withValues(sql, args)}; commit`),
        used.execute('select changes() as changed'),
      ])
      return changedBy(counted)
    })
  return {
    read: (sql, args) => patiently(() => once(async (used) => (await used.execute({ sql, args: [...args] })).rows)),
    write: (sql, args) => patiently(() => tryWrite(sql, args)),
    tryWrite,
    close: () => drop(client),
  }
}
