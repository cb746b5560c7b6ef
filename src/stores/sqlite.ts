/**
 * An SQLite file, read and written without blocking the event loop. `sqliteStore` uses it.
 *
 * The engine is `node:sqlite` if this Node has it (22.13 and later), otherwise `@libsql/client`. Both read and write the same files.
 * `node:sqlite` is given the face of the client of libsql, as far as the store uses it.
 *
 * A file is opened when it is first used, and again after a failure. A locked file is tried again: SQLite's own waiting would block the
 * event loop. A power failure can undo the last moments. The end of a process undoes nothing.
 */
import { statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { unlessThrown } from '../core/data.js'
import { singleFlight } from '../core/memory.js'
import type { Check } from '../core/options.js'
import type { SqlValue } from './sql.js'

interface SqliteRows {
  readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>>
}

interface SqliteClient {
  readonly execute: (statement: string | { readonly sql: string; readonly args: SqlValue[] }) => Promise<SqliteRows>
  /** Runs several statements. If one fails, all of them are undone. */
  readonly executeMultiple: (sql: string) => Promise<void>
  readonly close: () => void
}

/** Which file. */
export interface SqliteOptions {
  /** `file:` and the path. The file is created if it is missing. The names of the tables begin with `auth_`. */
  readonly url: string
  /**
   * The engine that reads and writes the file. Default: `node:sqlite` if this Node has it (22.13 and later), otherwise `@libsql/client`. A
   * process must open a file with one engine only, because each engine has its own locks.
   */
  readonly engine?: 'node:sqlite' | '@libsql/client' | undefined
}

// The part of node:sqlite that is used here; the types of Node 20 do not have it
interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => {
    readonly prepare: (sql: string) => NodeStatement
    readonly exec: (sql: string) => void
    readonly close: () => void
  }
}
interface NodeStatement {
  readonly all: (...values: ReadonlyArray<SqlValue>) => SqliteRows['rows']
}

const nodeSqlite = (): NodeSqlite | undefined =>
  // Safe: Node documents this class
  process.getBuiltinModule('node:sqlite') as NodeSqlite | undefined

export const sqliteEngine: Check = (where, value) => {
  if (value === undefined || value === '@libsql/client') return
  if (value !== 'node:sqlite') throw new TypeError(`${where} must be 'node:sqlite' or '@libsql/client'`)
  if (nodeSqlite() === undefined) throw new TypeError(`${where}: this Node has no node:sqlite; use '@libsql/client'`)
}

/** Opens a file. Rejects, or fails later, if that is impossible. */
export const openSqlite = async (url: string, engine?: SqliteOptions['engine']): Promise<SqliteClient> => {
  const native = engine === '@libsql/client' ? undefined : nodeSqlite()
  if (native !== undefined) return nodeClient(native, sqlitePath(url))
  const { createClient } = await import('@libsql/client').catch((cause: unknown) => {
    throw new Error('koa-with-auth/stores needs @libsql/client for sqliteStore: npm install @libsql/client', { cause })
  })
  return createClient({ url, timeout: 0, concurrency: 1 })
}

// As libsql reads it: `file:` and a path, or a URL without a host; the part after a question mark is for other databases
const sqlitePath = (url: string): string =>
  decodeURIComponent(url.replace(/^file:(?:\/\/(?:localhost)?(?=\/))?/, '').replace(/[?#].*$/s, ''))

// The primary codes of SQLite, from 1 on
const codes =
  `ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY SCHEMA TOOBIG
  CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB`.split(/\s+/)

// As libsql names failures. An extended code has the primary code in its last eight bits
const coded = (error: unknown): unknown => {
  if (!(error instanceof Error && 'code' in error)) return error
  const name = 'errcode' in error ? codes[(Number(error.errcode) & 0xff) - 1] : undefined
  const code = error.code === 'ERR_INVALID_STATE' ? 'CLIENT_CLOSED' : `SQLITE_${name ?? 'ERROR'}`
  return Object.assign(new Error(`${code}: ${error.message}`, { cause: error }), { code })
}

const attempt = <A>(run: () => A): Promise<A> =>
  new Promise((resolve) => {
    try {
      resolve(run())
    } catch (error) {
      throw coded(error)
    }
  })

const nodeClient = async ({ DatabaseSync }: NodeSqlite, path: string): Promise<SqliteClient> => {
  const database = await attempt(() => new DatabaseSync(path))
  const prepared = new Map<string, NodeStatement>()
  const rowsOf = (sql: string, args: ReadonlyArray<SqlValue>) => {
    const statement = prepared.get(sql) ?? database.prepare(sql)
    prepared.set(sql, statement)
    return statement.all(...args)
  }
  return {
    execute: (statement) => {
      const { sql, args } = typeof statement === 'string' ? { sql: statement, args: [] } : statement
      return attempt(() => ({ rows: rowsOf(sql, args) }))
    },
    executeMultiple: (sql) =>
      attempt(() => {
        try {
          database.exec(sql)
        } catch (error) {
          // nothing may have been begun
          unlessThrown(() => database.exec('rollback'))
          throw error
        }
      }),
    close: () => database.close(),
  }
}

// Opening blocks the event loop, and closed clients are freed late. So in an outage, the file is not opened for every
// request. The time is measured by a clock that is never set back. Otherwise an outage could last an hour longer.
const REOPEN_AFTER = 250
const REOPEN_IF_LOCKED_AFTER = 20

// How long a locked file is tried again, and how long one wait checks whether the lock is gone
const TRY_FOR = 1500
const WAIT_FOR = 100

// SQLite goes on in a file that was removed or replaced, and writes that it acknowledges there are lost
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

const hasCode = (error: unknown, code: RegExp): boolean =>
  error instanceof Error && 'code' in error && code.test(String(error.code))

/** Whether an error says that another connection holds a lock. */
const isBusy = (error: unknown): boolean => hasCode(error, /^SQLITE_(?:BUSY|LOCKED)/)

// An open file can be read although the system refuses writes (the disk is full, or read-only), but opening it writes the index of its log
const isGood = async (client: SqliteClient, failure: unknown): Promise<boolean> => {
  if (!hasCode(failure, /^SQLITE_(?:FULL|IOERR)/)) return isBusy(failure)
  return client.execute('select count(*) from sqlite_master').then(
    () => true,
    () => false,
  )
}

/**
 * A file that is opened when it is first used. Several processes of one machine can share it. Every query rejects when the file
 * cannot be read or written, or stays locked.
 */
export class SqliteFile {
  readonly #options: SqliteOptions
  /** Statements that create the tables, and some that fail if a table is missing. */
  readonly #tables: { readonly create: string; readonly check: string }
  #client: SqliteClient | undefined
  #openedAt = 0
  #refused: { readonly error: unknown; readonly until: number } | undefined
  #isMade = false
  #identity: string | undefined
  #lookAt = 0
  readonly #opening = singleFlight(() => this.#open())
  // One wait, which all share
  readonly #wait = singleFlight(() => this.#whileLocked())

  constructor(options: SqliteOptions, tables: { readonly create: string; readonly check: string }) {
    this.#options = options
    this.#tables = tables
  }

  /** Asks again while the file is locked, for so many milliseconds; then it is an outage, and rejects with the failure. */
  async ask<A>(question: (client: SqliteClient) => Promise<A>, tryFor = TRY_FOR): Promise<A> {
    let until: number | undefined
    for (;;) {
      let client = this.#client
      try {
        if (client !== undefined) this.#checkFile(client)
        client ??= await this.#connected()
        return await question(client)
      } catch (error) {
        if (client !== undefined) await this.#afterFailure(client, error)
        // a lock causes a failure immediately, so the time begins with the first attempt
        until ??= performance.now() + tryFor
        // closed by a request that failed
        const isPassing = isBusy(error) || hasCode(error, /^CLIENT_CLOSED$/)
        if (!isPassing || performance.now() >= until) throw error
      }
      await this.#wait()
    }
  }

  /** Runs statements as one transaction; resolves to how many rows the last statement changed. */
  write(sql: string, values: ReadonlyArray<SqlValue>, tryFor?: number): Promise<number> {
    return this.ask(async (client) => {
      // A prepared statement that meets a lock stays half run until it is garbage-collected, and until then nothing
      // else is committed on its connection. A statement in a string that runs as a whole ends immediately. The second
      // call follows the first in the queue of the only connection.
      const [, { rows }] = await Promise.all([
        client.executeMultiple(`begin immediate; ${withValues(sql, values)}; commit`),
        client.execute('select changes() as changed'),
      ])
      return Number(rows[0]?.['changed'])
    }, tryFor)
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
      await opened.executeMultiple(this.#isMade ? this.#tables.check : this.#tables.create)
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
      this.#refused = { error, until: performance.now() + (isBusy(error) ? REOPEN_IF_LOCKED_AFTER : REOPEN_AFTER) }
      opened?.close()
      throw error
    }
  }

  async #connected(): Promise<SqliteClient> {
    if (this.#refused !== undefined && performance.now() < this.#refused.until) throw this.#refused.error
    this.#client = await this.#opening()
    return this.#client
  }

  #checkFile(client: SqliteClient): void {
    if (performance.now() < this.#lookAt) return
    this.#lookAt = performance.now() + LOOK_EVERY
    if (identityOf(this.#options.url) === this.#identity) return
    this.#drop(client)
    throw replacedFile()
  }

  async #afterFailure(client: SqliteClient, failure: unknown): Promise<void> {
    const isKept = await isGood(client, failure)
    if (!isKept && performance.now() - this.#openedAt > REOPEN_AFTER) this.#drop(client)
  }

  #drop(client: SqliteClient | undefined): void {
    if (client === undefined || this.#client !== client) return
    this.#client = undefined
    client.close()
  }

  // Locks of SQLite are unfair: a process that asks seldom starves beside a process that writes without a pause
  async #whileLocked(): Promise<void> {
    const until = performance.now() + WAIT_FOR
    do await pause(1 + Math.random() * 8)
    while (performance.now() < until && (await this.#isLocked()))
  }

  /** Whether another connection holds the lock for writes now. */
  async #isLocked(): Promise<boolean> {
    try {
      await this.#client?.executeMultiple('begin immediate; rollback')
      return false
    } catch (error) {
      return isBusy(error)
    }
  }
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
