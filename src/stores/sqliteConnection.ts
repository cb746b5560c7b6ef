/**
 * The connection to an SQLite file. It is opened when it is first used, and again after a failure.
 *
 * It uses `@libsql/client`, and never waits for a lock: SQLite's own waiting would block the event loop
 * (`sqliteRetry.ts` waits instead).
 */
import { createClient, type Client } from '@libsql/client'

/** A file and its tables. */
export interface SqliteFileOptions {
  /** `file:` and the path. The file is created if it is missing. */
  readonly url: string
  /** Statements that create the missing tables. */
  readonly tables: string
  /** Statements that fail if a table is missing. */
  readonly check: string
}

/** A connection. */
export interface SqliteConnection {
  /**
   * Asks the file. If `ask` rejects, or if the file cannot be opened, `otherwise` is called with the failure. Without it,
   * `use` rejects.
   */
  readonly use: <A>(ask: (client: Client) => Promise<A>, otherwise?: (failure: unknown) => Promise<A>) => Promise<A>
  /** Whether another connection holds the lock for writes now. */
  readonly isLocked: () => Promise<boolean>
  /** Closes it; the next question opens it again. */
  readonly close: () => void
}

// Opening blocks the event loop, and closed clients are freed late. So in an outage, the file is not opened for every
// request. The time is measured by a clock that is never set back. Otherwise an outage could last an hour longer.
const limits = { reopenAfterMs: 250, reopenIfLockedAfterMs: 20 }

const probe = 'begin immediate; rollback'

/** Whether an error says that another connection holds a lock. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && /^SQLITE_(?:BUSY|LOCKED)/.test(String(error.code))

const rethrow = (failure: unknown): never => {
  throw failure
}

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
      // this package never removes tables: a file without them decides nothing until it is restored
      await opened.executeMultiple(isMade ? check : tables)
      // readers and one writer do not wait for one another
      await opened.execute('pragma journal_mode = wal')
      // waiting for the disk at every write would block the event loop, and the other processes meanwhile
      await opened.execute('pragma synchronous = normal')
      // checkpoints of few pages: those of a thousand pages, the default, block the event loop for 20 ms
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
  // one promise for both kinds of failure, because further ones would take a part of a short look-up
  const run = <A>(
    used: Client,
    ask: (client: Client) => Promise<A>,
    otherwise: (failure: unknown) => Promise<A>,
  ): Promise<A> =>
    ask(used).then(undefined, (failure: unknown) => {
      if (!isBusy(failure) && performance.now() - openedAt > limits.reopenAfterMs) drop(used)
      return otherwise(failure)
    })
  return {
    use: (ask, otherwise = rethrow) =>
      client === undefined
        ? connected().then((opened) => run(opened, ask, otherwise), otherwise)
        : run(client, ask, otherwise),
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
