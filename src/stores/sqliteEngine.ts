/**
 * The engine of an SQLite file: `node:sqlite` if this Node has it (22.13 and later), otherwise `@libsql/client`. Both
 * read and write the same files.
 *
 * `node:sqlite` is given the face of the client of libsql, as far as stores use it. Its failures have the codes of
 * SQLite, such as `SQLITE_BUSY`.
 */

import type { createClient } from '@libsql/client'
import type { Check } from '../core/options.js'

/** A value in a row, or of a question mark. */
type Value = string | number | bigint | null | Uint8Array | ArrayBuffer

/** A row, by the names of its columns. */
export interface SqliteRow {
  readonly [column: string]: unknown
}

/** The rows of a question. */
export interface SqliteRows {
  readonly rows: ReadonlyArray<SqliteRow>
}

/** A connection to a file. */
export interface SqliteClient {
  readonly execute: (statement: string | { readonly sql: string; readonly args: Value[] }) => Promise<SqliteRows>
  /** Runs several statements. If one fails, what was begun is undone. */
  readonly executeMultiple: (sql: string) => Promise<void>
  readonly close: () => void
}

/** The engines, by what they are imported as. */
export type SqliteEngine = 'node:sqlite' | '@libsql/client'

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

/** The option `engine` of a store. */
export const sqliteEngine: Check = (where, value) => {
  if (value === undefined || value === '@libsql/client') return
  if (value !== 'node:sqlite') throw new TypeError(`${where} must be 'node:sqlite' or '@libsql/client'`)
  if (nodeSqlite() === undefined) throw new TypeError(`${where}: this Node has no node:sqlite; use '@libsql/client'`)
}

const libsql = (): Promise<{ readonly createClient: typeof createClient }> => import('@libsql/client')

/** Opens a file. Rejects, or fails later, if that is impossible. Default: `node:sqlite` if this Node has it. */
export const openSqlite = async (url: string, engine?: SqliteEngine): Promise<SqliteClient> => {
  const native = engine === '@libsql/client' ? undefined : nodeSqlite()
  if (native !== undefined) return nodeClient(native, pathOf(url))
  const { createClient } = await libsql()
  return createClient({ url, timeout: 0, concurrency: 1 })
}

// As libsql reads it: `file:` and a path, or a URL without a host; what follows a question mark is for other databases
const pathOf = (url: string): string =>
  decodeURIComponent(url.replace(/^file:(?:\/\/(?:localhost)?(?=\/))?/, '').replace(/[?#].*$/s, ''))

const codes: ReadonlyMap<unknown, string> = new Map([
  [1, 'SQLITE_ERROR'],
  [5, 'SQLITE_BUSY'],
  [6, 'SQLITE_LOCKED'],
  [8, 'SQLITE_READONLY'],
  [10, 'SQLITE_IOERR'],
  [11, 'SQLITE_CORRUPT'],
  [13, 'SQLITE_FULL'],
  [14, 'SQLITE_CANTOPEN'],
  [26, 'SQLITE_NOTADB'],
])

// An extended code has the primary one in its last eight bits
const named = (error: unknown): unknown => {
  if (!(error instanceof Error) || !('errcode' in error)) return error
  const code = codes.get(Number(error.errcode) & 0xff) ?? 'SQLITE_ERROR'
  return Object.assign(new Error(`${code}: ${error.message}`, { cause: error }), { code })
}

const closed = (): Error => Object.assign(new Error('the client is closed'), { code: 'CLIENT_CLOSED' })

const nodeClient = ({ DatabaseSync }: NodeSqlite, path: string): SqliteClient => {
  const attempt = <A>(run: () => A): A => {
    try {
      return run()
    } catch (error) {
      throw named(error)
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
