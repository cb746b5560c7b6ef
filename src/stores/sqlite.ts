/**
 * An SQLite file, read and written without blocking the event loop. `sqliteStore` uses it.
 *
 * The engine is `node:sqlite` if this Node has it (22.13 and later), otherwise `@libsql/client`. Both read and write the same files.
 * `node:sqlite` is given the face of the client of libsql, as far as the store uses it.
 *
 * A file is opened when it is first used, and again after a failure. A locked one is tried again: SQLite's own waiting would block the
 * event loop. A power failure can undo the last moments. The end of a process undoes nothing.
 */
import { statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { createClient } from '@libsql/client'
import * as is from '../core/checks.js'
import { singleFlight } from '../core/memory.js'
import { checkOptions, type Check } from '../core/options.js'
import type { SqlValue } from './sql.js'

type Value = string | number | bigint | null | Uint8Array | ArrayBuffer

interface SqliteRow {
  readonly [column: string]: unknown
}

interface SqliteRows {
  readonly rows: ReadonlyArray<SqliteRow>
}

interface SqliteClient {
  readonly execute: (statement: string | { readonly sql: string; readonly args: Value[] }) => Promise<SqliteRows>
  /** Runs several statements. If one fails, what was begun is undone. */
  readonly executeMultiple: (sql: string) => Promise<void>
  readonly close: () => void
}

type SqliteEngine = 'node:sqlite' | '@libsql/client'

// The part of node:sqlite that is used here; the types of Node 20 do not have it
interface NodeStatement {
  readonly all: (...values: ReadonlyArray<unknown>) => ReadonlyArray<SqliteRow>
}
interface NodeDatabase {
  readonly prepare: (sql: string) => NodeStatement
  readonly exec: (sql: string) => void
  readonly close: () => void
}
interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => NodeDatabase
}

const nodeSqlite = (): NodeSqlite | undefined =>
  // Safe: Node documents this class
  process.getBuiltinModule('node:sqlite') as NodeSqlite | undefined

const sqliteEngine: Check = (where, value) => {
  if (value === undefined || value === '@libsql/client') return
  if (value !== 'node:sqlite') throw new TypeError(`${where} must be 'node:sqlite' or '@libsql/client'`)
  if (nodeSqlite() === undefined) throw new TypeError(`${where}: this Node has no node:sqlite; use '@libsql/client'`)
}

const libsql = (): Promise<{ readonly createClient: typeof createClient }> =>
  import('@libsql/client').catch((cause: unknown) => {
    throw new Error('koa-with-auth/stores needs @libsql/client for sqliteStore: npm install @libsql/client', { cause })
  })

/** Opens a file. Rejects, or fails later, if that is impossible. Default: `node:sqlite` if this Node has it. */
export const openSqlite = async (url: string, engine?: SqliteEngine): Promise<SqliteClient> => {
  const native = engine === '@libsql/client' ? undefined : nodeSqlite()
  if (native !== undefined) return nodeClient(native, sqlitePath(url))
  const { createClient } = await libsql()
  return createClient({ url, timeout: 0, concurrency: 1 })
}

// As libsql reads it: `file:` and a path, or a URL without a host; what follows a question mark is for other databases
const sqlitePath = (url: string): string =>
  decodeURIComponent(url.replace(/^file:(?:\/\/(?:localhost)?(?=\/))?/, '').replace(/[?#].*$/s, ''))

// The primary codes of SQLite, from 1 on
const codes =
  'ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB'.split(
    ' ',
  )

// An extended code has the primary one in its last eight bits
const withSqliteCode = (error: unknown): unknown => {
  if (!(error instanceof Error) || !('errcode' in error)) return error
  const code = `SQLITE_${codes[(Number(error.errcode) & 0xff) - 1] ?? 'ERROR'}`
  return Object.assign(new Error(`${code}: ${error.message}`, { cause: error }), { code })
}

const closed = (): Error => Object.assign(new Error('the client is closed'), { code: 'CLIENT_CLOSED' })

const nodeClient = ({ DatabaseSync }: NodeSqlite, path: string): SqliteClient => {
  const attempt = <A>(run: () => A): A => {
    try {
      return run()
    } catch (error) {
      throw withSqliteCode(error)
    }
  }
  const database = attempt(() => new DatabaseSync(path))
  const prepared = new Map<string, NodeStatement>()
  let isOpen = true
  const statementOf = (sql: string): NodeStatement => {
    const statement = prepared.get(sql) ?? database.prepare(sql)
    prepared.set(sql, statement)
    return statement
  }
  const undo = (): void => {
    try {
      database.exec('rollback')
    } catch {
      // nothing was begun
    }
  }
  const promised = <A>(run: () => A): Promise<A> =>
    new Promise((resolve) => {
      if (!isOpen) throw closed()
      resolve(attempt(run))
    })
  return {
    execute: (statement) => {
      const { sql, args } = typeof statement === 'string' ? { sql: statement, args: [] } : statement
      return promised(() => ({ rows: statementOf(sql).all(...args) }))
    },
    executeMultiple: (sql) =>
      promised(() => {
        try {
          database.exec(sql)
        } catch (error) {
          undo()
          throw error
        }
      }),
    close: () => {
      if (!isOpen) return
      isOpen = false
      prepared.clear()
      database.close()
    },
  }
}

/** Which file. */
export interface SqliteOptions {
  /** `file:` and the path. The file is created if it is missing. The names of the tables begin with `auth_`. */
  readonly url: string
  /**
   * The engine that reads and writes the file. Default: `node:sqlite` if this Node has it (22.13 and later), otherwise `@libsql/client`. A
   * process must open a file with one engine only, because each engine has its own locks.
   */
  readonly engine?: SqliteEngine | undefined
}

export interface Closable {
  readonly close: () => void
}

interface Tables {
  readonly tables: string
  /** Statements that fail if a table is missing. */
  readonly check: string
}

type SqliteQuestion<A> = (client: SqliteClient) => Promise<A>

// Opening blocks the event loop, and closed clients are freed late. So in an outage, the file is not opened for every
// request. The time is measured by a clock that is never set back. Otherwise an outage could last an hour longer.
const reopenLimits = { reopenAfterMs: 250, reopenIfLockedAfterMs: 20 }

const probe = 'begin immediate; rollback'

// SQLite goes on in a file that was removed or replaced, and what it acknowledges there is lost
const LOOK_EVERY = 100

const isInMemory = (url: string): boolean => url.includes(':memory:')

const identityOf = (url: string): string | undefined => {
  const found = isInMemory(url) ? undefined : statSync(sqlitePath(url), { throwIfNoEntry: false })
  return found === undefined ? undefined : `${found.dev} ${found.ino}`
}

const replacedFile = (): Error =>
  Object.assign(new Error('SQLITE_REPLACED: the file was removed or replaced while it was open'), {
    code: 'SQLITE_REPLACED',
  })

const coded =
  (code: RegExp) =>
  (error: unknown): boolean =>
    error instanceof Error && 'code' in error && code.test(String(error.code))

/** Whether an error says that another connection holds a lock. */
const isBusy = coded(/^SQLITE_(?:BUSY|LOCKED)/)

// The system refuses writes: the disk is full, or read-only
const isWriteRefused = coded(/^SQLITE_(?:FULL|IOERR)/)

// locked, or closed by a request that failed
const isPassing = coded(/^(?:SQLITE_(?:BUSY|LOCKED)|CLIENT_CLOSED$)/)

const canRead = (client: SqliteClient): Promise<boolean> =>
  client.execute('select count(*) from sqlite_master').then(
    () => true,
    () => false,
  )

const rethrow = (failure: unknown): never => {
  throw failure
}

/** A connection; several processes of one machine can have one to the same file. */
class SqliteConnection {
  readonly #options: SqliteOptions
  readonly #tables: Tables
  #client: SqliteClient | undefined
  #openedAt = 0
  #refused: { readonly error: unknown; readonly until: number } | undefined
  #isMade = false
  #identity: string | undefined
  #lookAt = 0
  readonly #opening = singleFlight(() => this.#open())

  constructor(options: SqliteOptions, tables: Tables) {
    this.#options = options
    this.#tables = tables
  }

  /** Asks the file. If `ask` rejects, or if the file cannot be opened, `otherwise` is called with the failure. */
  use<A>(ask: SqliteQuestion<A>, otherwise: (failure: unknown) => Promise<A> = rethrow): Promise<A> {
    const client = this.#client
    if (client === undefined) return this.#connected().then((opened) => this.#run(opened, ask, otherwise), otherwise)
    if (!this.#isReplaced()) return this.#run(client, ask, otherwise)
    this.#drop(client)
    return otherwise(replacedFile())
  }

  /** Whether another connection holds the lock for writes now. */
  async isLocked(): Promise<boolean> {
    try {
      await this.#client?.executeMultiple(probe)
      return false
    } catch (error) {
      return isBusy(error)
    }
  }

  /** Closes it; the next question opens it again. */
  close(): void {
    this.#drop(this.#client)
  }

  async #open(): Promise<SqliteClient> {
    const { url, engine } = this.#options
    let opened: SqliteClient | undefined
    try {
      const before = identityOf(url)
      opened = await openSqlite(url, engine)
      // this package never removes tables: a file without them decides nothing until it is restored
      await opened.executeMultiple(this.#isMade ? this.#tables.check : this.#tables.tables)
      // readers and one writer do not wait for one another
      await opened.execute('pragma journal_mode = wal')
      // waiting for the disk at every write would block the event loop, and the other processes meanwhile
      await opened.execute('pragma synchronous = normal')
      // checkpoints of few pages: those of a thousand pages, the default, block the event loop for 20 ms
      await opened.execute('pragma wal_autocheckpoint = 100')
      this.#isMade = !isInMemory(url)
      this.#openedAt = performance.now()
      this.#identity = identityOf(url)
      if (before !== undefined && before !== this.#identity) throw replacedFile()
      return opened
    } catch (error) {
      const pause = isBusy(error) ? reopenLimits.reopenIfLockedAfterMs : reopenLimits.reopenAfterMs
      this.#refused = { error, until: performance.now() + pause }
      opened?.close()
      throw error
    }
  }

  async #connected(): Promise<SqliteClient> {
    if (this.#refused !== undefined && performance.now() < this.#refused.until) throw this.#refused.error
    this.#client = await this.#opening()
    return this.#client
  }

  #isReplaced(): boolean {
    if (performance.now() < this.#lookAt) return false
    this.#lookAt = performance.now() + LOOK_EVERY
    return identityOf(this.#options.url) !== this.#identity
  }

  #drop(failed: SqliteClient | undefined): void {
    if (failed === undefined || this.#client !== failed) return
    this.#client = undefined
    failed.close()
  }

  // one promise for both kinds of failure, because further ones would take a part of a short look-up
  #run<A>(used: SqliteClient, ask: SqliteQuestion<A>, otherwise: (failure: unknown) => Promise<A>): Promise<A> {
    return ask(used).then(undefined, async (failure: unknown) => {
      // an open file can be read without a write, but opening it writes the index of its log
      const isKept = isBusy(failure) || (isWriteRefused(failure) && (await canRead(used)))
      if (!isKept && performance.now() - this.#openedAt > reopenLimits.reopenAfterMs) this.#drop(used)
      return otherwise(failure)
    })
  }
}

// `roundMs`: how long one wait checks whether the lock is gone
const retryLimits = { giveUpAfterMs: 1500, roundMs: 100, leastPauseMs: 1, furtherPauseMs: 8 }

// Asks a connection again while the file is locked. After 1.5 seconds it is an outage, and rejects with the failure. All callers share
// one wait.
const retrying = (connection: SqliteConnection) => {
  // Locks of SQLite are unfair: a process that asks seldom starves beside one that writes without a pause
  const round = async (): Promise<void> => {
    const until = performance.now() + retryLimits.roundMs
    do await pause(retryLimits.leastPauseMs + Math.random() * retryLimits.furtherPauseMs)
    while (performance.now() < until && (await connection.isLocked()))
  }
  const nextRound = singleFlight(round)
  const retry = async <A>(ask: SqliteQuestion<A>, error: unknown, until: number): Promise<A> => {
    if (!isPassing(error) || performance.now() > until) throw error
    await nextRound()
    return connection.use(ask, (next) => retry(ask, next, until))
  }
  // a lock causes a failure immediately, so the time begins with the first one
  return <A>(ask: SqliteQuestion<A>): Promise<A> =>
    connection.use(ask, (error) => retry(ask, error, performance.now() + retryLimits.giveUpAfterMs))
}

// Hexadecimal digits, so that no quote or control character can end the literal
const literal = (value: SqlValue): string =>
  value === null
    ? 'null'
    : typeof value === 'number'
      ? value.toFixed(0)
      : `cast(x'${Buffer.from(value).toString('hex')}' as text)`

/**
 * Replaces the question marks by the values, for a client method that runs a whole string and binds no values. Throws a
 * TypeError if their numbers differ.
 */
export const withValues = (sql: string, values: ReadonlyArray<SqlValue>): string => {
  const parts = sql.split('?')
  if (parts.length !== values.length + 1) throw new TypeError('there must be as many values as question marks')
  return parts.map((part, at) => (at === 0 ? part : literal(values[at - 1] ?? null) + part)).join('')
}

const changedBy = ({ rows }: SqliteRows): number => Number(rows[0]?.['changed'])

/**
 * A file that is opened when it is first used. Several processes of one machine can share it. Every method rejects when the file
 * cannot be read or written, or stays locked.
 */
export const sqliteFile = (
  caller: string,
  options: SqliteOptions,
  { elsewhere, ...tables }: Tables & { readonly elsewhere: string },
) => {
  const given = checkOptions(caller, options, {
    url: is.like(/^file:/, `must be "file:" and a path; ${elsewhere}`),
    engine: sqliteEngine,
  })
  const connection = new SqliteConnection(given, tables)
  const retry = retrying(connection)
  const writing =
    (sql: string, args: ReadonlyArray<SqlValue>) =>
    async (client: SqliteClient): Promise<number> => {
      // A prepared statement that meets a lock stays half run until it is garbage-collected, and until then nothing
      // else is committed on its connection. A statement in a string that runs as a whole ends immediately. The second
      // call follows the first in the queue of the only connection.
      const [, counted] = await Promise.all([
        client.executeMultiple(`begin immediate; ${withValues(sql, args)}; commit`),
        client.execute('select changes() as changed'),
      ])
      return changedBy(counted)
    }
  return {
    read: (sql: string, args: ReadonlyArray<SqlValue>) => retry((client) => client.execute({ sql, args: [...args] })),
    /** Runs statements as one transaction; resolves to how many rows the last one changed. */
    write: (sql: string, args: ReadonlyArray<SqlValue>) => retry(writing(sql, args)),
    /** The same, but rejects immediately if the file is locked. */
    tryWrite: (sql: string, args: ReadonlyArray<SqlValue>) => connection.use(writing(sql, args)),
    close: (): void => connection.close(),
  }
}
