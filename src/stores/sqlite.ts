/**
 * An SQLite file, read and written without waiting for its locks on the event loop. `sqliteStore` uses it.
 *
 * The engine is `node:sqlite` if this Node has it (22.13 and later), otherwise that of `@libsql/client`. Both read and write the same files,
 * and both have the methods that are used here. The client itself compiles a statement at each call, which takes longer than to run it.
 *
 * A file is opened when it is first used, and again after a failure. A locked file is tried again: SQLite's own waiting would block the
 * event loop. A power failure can undo the last moments. The end of a process undoes nothing.
 */
import { statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as pause } from 'node:timers/promises'
import { unlessThrown } from '../core/data.js'
import { singleFlight } from '../core/memory.js'
import type { Check } from '../core/options.js'
import type { SqlRow, SqlValue } from './sql.js'

interface SqliteConnection {
  readonly prepare: (sql: string) => SqliteStatement
  /** Runs several statements. */
  readonly exec: (sql: string) => void
  readonly close: () => void
}

interface SqliteStatement {
  readonly all: (...values: ReadonlyArray<SqlValue>) => ReadonlyArray<SqlRow>
  readonly run: (...values: ReadonlyArray<SqlValue>) => { readonly changes: number | bigint }
}

type Engine = new (path: string) => SqliteConnection

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

const nodeEngine = (): Engine | undefined => {
  // Safe: Node documents this class, which the types of Node 20 do not have
  const found = process.getBuiltinModule('node:sqlite') as { readonly DatabaseSync: Engine } | undefined
  return found?.DatabaseSync
}

const CLIENT = '@libsql/client'

const libsqlEngine = (): Engine => {
  try {
    // a bundle may stand where no packages are, and in CommonJS of esbuild this module has no place
    const client =
      unlessThrown(() => createRequire(import.meta.url).resolve(CLIENT)) ??
      createRequire(`${process.cwd()}/`).resolve(CLIENT)
    // Safe: libsql, which the client depends on, documents this class
    return createRequire(client)('libsql') as Engine
  } catch (cause) {
    throw new Error(`koa-with-auth/stores needs ${CLIENT} for sqliteStore: npm install ${CLIENT}`, { cause })
  }
}

export const sqliteEngine: Check = (where, value) => {
  if (value === undefined || value === CLIENT) return
  if (value !== 'node:sqlite') throw new TypeError(`${where} must be 'node:sqlite' or '${CLIENT}'`)
  if (nodeEngine() === undefined) throw new TypeError(`${where}: this Node has no node:sqlite; use '${CLIENT}'`)
}

/** Opens a file. Throws, or fails later, if that is impossible. */
export const openSqlite = (url: string, engine?: SqliteOptions['engine']): SqliteConnection => {
  const native = engine === CLIENT ? undefined : nodeEngine()
  return new (native ?? libsqlEngine())(sqlitePath(url))
}

// `file:` and a path, or a URL without a host; the part after a question mark is for other databases
const sqlitePath = (url: string): string =>
  decodeURIComponent(url.replace(/^file:(?:\/\/(?:localhost)?(?=\/))?/, '').replace(/[?#].*$/s, ''))

// The primary codes of SQLite, from 1 on
const codes =
  `ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY SCHEMA TOOBIG
  CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB`.split(/\s+/)

// As libsql names failures. An extended code has the primary code in its last eight bits. libsql ends its words with the code of a file
// that it cannot open
const coded = (error: unknown): unknown => {
  if (!(error instanceof Error && 'code' in error)) return error
  const number = 'errcode' in error ? error.errcode : /(\d+)"\)$/.exec(error.message)?.[1]
  const name = `SQLITE_${codes[(Number(number) & 0xff) - 1] ?? 'ERROR'}`
  const code = String(error.code).startsWith('SQLITE_') ? error.code : name
  return Object.assign(new Error(`${String(code)}: ${error.message}`, { cause: error }), { code })
}

/** Calls an engine. A failure has its code, also in front of its words. */
const called = <A>(call: () => A): A => {
  try {
    return call()
  } catch (error) {
    throw coded(error)
  }
}

// Opening blocks the event loop, and closed connections are freed late. So in an outage, the file is not opened for every
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

const isBusy = (error: unknown): boolean => hasCode(error, /^SQLITE_(?:BUSY|LOCKED)/)

interface OpenFile {
  readonly connection: SqliteConnection
  readonly compiled: Map<string, SqliteStatement>
  readonly openedAt: number
  /** Which file it was. */
  readonly identity: string | undefined
}

// An open file can be read although the system refuses writes (the disk is full, or read-only), but opening it writes the index of its log
const isGood = ({ connection }: OpenFile, failure: unknown): boolean =>
  hasCode(failure, /^SQLITE_(?:FULL|IOERR)/)
    ? unlessThrown(() => connection.prepare('select count(*) from sqlite_master').all()) !== undefined
    : isBusy(failure)

/** The time of a statement, which is its last value. */
export const NOW = ':now'

// Compiled once for a connection
const statementOf = (file: OpenFile, sql: string): SqliteStatement => {
  const known = file.compiled.get(sql)
  if (known !== undefined) return known
  let values = 0
  const numbered = sql.replace(/\?/g, () => `?${++values}`).replaceAll(NOW, `?${values + 1}`)
  const made = file.connection.prepare(numbered)
  file.compiled.set(sql, made)
  return made
}

/**
 * A file that is opened when it is first used. Several processes of one machine can share it. Every query rejects when the file
 * cannot be read or written, or stays locked.
 */
export class SqliteFile {
  readonly #options: SqliteOptions
  /** Statements that create the tables, and some that fail if a table is missing. */
  readonly #tables: { readonly create: string; readonly check: string }
  #file: OpenFile | undefined
  #refused: { readonly error: unknown; readonly until: number } | undefined
  #isMade = false
  #lookAt = 0
  // One wait, which all share
  readonly #wait = singleFlight(() => this.#whileLocked())

  constructor(options: SqliteOptions, tables: { readonly create: string; readonly check: string }) {
    this.#options = options
    this.#tables = tables
  }

  /** The rows of a statement. */
  read(sql: string, values: ReadonlyArray<SqlValue>): Promise<ReadonlyArray<SqlRow>> {
    return this.#ask((file) => statementOf(file, sql).all(...values), TRY_FOR)
  }

  /** Runs a statement as a transaction; resolves to how many rows it changed. It tries for so many milliseconds. */
  write(sql: string, values: ReadonlyArray<SqlValue>, tryFor = TRY_FOR): Promise<number> {
    return this.#ask((file) => {
      // A compiled statement that meets a lock stays half run, and until it runs again nothing is committed on its connection
      file.connection.exec('begin immediate')
      try {
        const { changes } = statementOf(file, sql).run(...values)
        file.connection.exec('commit')
        return Number(changes)
      } catch (error) {
        // SQLite undoes some failures itself
        unlessThrown(() => file.connection.exec('rollback'))
        throw error
      }
    }, tryFor)
  }

  /** Closes it; the next question opens it again. */
  close(): void {
    this.#file?.connection.close()
    this.#file = undefined
  }

  // Asks again while the file is locked; then it is an outage, and rejects with the failure
  async #ask<A>(question: (file: OpenFile) => A, tryFor: number): Promise<A> {
    let until: number | undefined
    for (;;) {
      try {
        const file = this.#opened()
        return called(() => question(file))
      } catch (error) {
        this.#afterFailure(error)
        // a lock causes a failure immediately, so the time begins with the first attempt
        until ??= performance.now() + tryFor
        if (!isBusy(error) || performance.now() >= until) throw error
      }
      await this.#wait()
    }
  }

  #opened(): OpenFile {
    if (this.#file !== undefined) return this.#checked(this.#file)
    if (this.#refused !== undefined && performance.now() < this.#refused.until) throw this.#refused.error
    try {
      this.#file = this.#openAnew()
      return this.#file
    } catch (error) {
      this.#refused = { error, until: performance.now() + (isBusy(error) ? REOPEN_IF_LOCKED_AFTER : REOPEN_AFTER) }
      throw error
    }
  }

  #openAnew(): OpenFile {
    const { url, engine } = this.#options
    const before = identityOf(url)
    const connection = called(() => openSqlite(url, engine))
    try {
      called(() => this.#prepare(connection))
      this.#isMade = !isInMemory(url)
      const identity = identityOf(url)
      if (before !== undefined && before !== identity) throw replacedFile()
      return { connection, compiled: new Map(), openedAt: performance.now(), identity }
    } catch (error) {
      connection.close()
      throw error
    }
  }

  #prepare(connection: SqliteConnection): void {
    // this package never removes tables: a file without them decides nothing until it is restored
    connection.exec(this.#isMade ? this.#tables.check : this.#tables.create)
    // readers and one writer do not wait for one another
    connection.exec('pragma journal_mode = wal')
    // waiting for the disk at every write would block the event loop, and the other processes meanwhile
    connection.exec('pragma synchronous = normal')
    // checkpoints of few pages: those of a thousand pages, the default, block the event loop for 20 ms
    connection.exec('pragma wal_autocheckpoint = 100')
  }

  #checked(file: OpenFile): OpenFile {
    if (performance.now() < this.#lookAt) return file
    this.#lookAt = performance.now() + LOOK_EVERY
    if (identityOf(this.#options.url) === file.identity) return file
    this.close()
    throw replacedFile()
  }

  #afterFailure(failure: unknown): void {
    const file = this.#file
    if (file !== undefined && !isGood(file, failure) && performance.now() - file.openedAt > REOPEN_AFTER) this.close()
  }

  // Locks of SQLite are unfair: a process that asks seldom starves beside a process that writes without a pause
  async #whileLocked(): Promise<void> {
    const until = performance.now() + WAIT_FOR
    do await pause(1 + Math.random() * 8)
    while (performance.now() < until && this.#isLocked())
  }

  /** Whether another connection holds the lock for writes now. */
  #isLocked(): boolean {
    try {
      this.#file?.connection.exec('begin immediate; rollback')
      return false
    } catch (error) {
      return isBusy(coded(error))
    }
  }
}
