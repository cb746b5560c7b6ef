/**
 * The connection to an SQLite file: opened when it is first used, and anew after a failure.
 *
 * It goes through `@libsql/client`, and never waits for a lock: SQLite's own waiting would hold the event loop
 * (`sqliteRetry.ts` waits instead).
 */
import { createClient, type Client } from '@libsql/client'

/** Which file, and what is in it. */
export interface SqliteFileOptions {
  /** `file:` and the path; it is created where it is missing. */
  readonly url: string
  /** Creates what is missing. */
  readonly tables: string
  /** Fails where a table is missing. */
  readonly check: string
}

/** A connection. */
export interface SqliteConnection {
  /** Asks the file. Rejects with what `ask` rejects with, and with why the file cannot be opened. */
  readonly use: <A>(ask: (client: Client) => Promise<A>) => Promise<A>
  /** Whether another connection holds the lock for writes now. */
  readonly isLocked: () => Promise<boolean>
  /** Closes it; the next question opens it again. */
  readonly close: () => void
}

// Opening holds the event loop, and what was closed is freed late: in an outage not for every request. It is measured by a
// clock that is never set back, which would make the outage an hour longer.
const limits = { reopenAfterMs: 250, reopenIfLockedAfterMs: 20 }

const probe = 'begin immediate; rollback'

/** Whether an error says that another connection holds a lock. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && /^SQLITE_(?:BUSY|LOCKED)/.test(String(error.code))

/** Makes a connection; several processes of one machine can have one to the same file. */
export const sqliteConnection = ({ url, tables, check }: SqliteFileOptions): SqliteConnection => {
  let client: Client | undefined
  let opening: Promise<Client> | undefined
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
      // what was written moves into the file a few pages at a time: a thousand, the default, hold the event loop for 20 ms
      await opened.execute('pragma wal_autocheckpoint = 100')
      isMade = !url.includes(':memory:')
      openedAt = performance.now()
      return opened
    } catch (error) {
      const pause = isBusy(error) ? limits.reopenIfLockedAfterMs : limits.reopenAfterMs
      refused = { error, until: performance.now() + pause }
      opened?.close()
      throw error
    }
  }
  const connected = async (): Promise<Client> => {
    if (refused !== undefined && performance.now() < refused.until) throw refused.error
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
  const run = <A>(used: Client, ask: (client: Client) => Promise<A>): Promise<A> =>
    ask(used).then(undefined, (error: unknown) => {
      if (!isBusy(error) && performance.now() - openedAt > limits.reopenAfterMs) drop(used)
      throw error
    })
  return {
    // a look-up is short, and more promises would be a part of it
    use: (ask) => (client === undefined ? connected().then((opened) => run(opened, ask)) : run(client, ask)),
    isLocked: async () => {
      try {
        await client?.executeMultiple(probe)
        return false
      } catch (error) {
        return isBusy(error)
      }
    },
    close: () => drop(client),
  }
}
