/**
 * The parts that `postgresStore` and `mysqlStore` share: a function that runs one statement, tables that are made when they are first needed,
 * repeated statements, and the form of the results.
 */
import { identity } from 'fp-ts/lib/function.js'
import { setTimeout as pause } from 'node:timers/promises'
import * as is from '../core/checks.js'
import { singleFlight } from '../core/memory.js'
import { failureWord, isLost, otherwiseIf, withCode } from './failures.js'
import { besideWrites, sqlStore, type SqlRow, type SqlValue } from './sql.js'
import type { Store } from './Store.js'

type Query = (sql: string, values: SqlValue[]) => PromiseLike<unknown>

interface SqlServer extends Pick<Parameters<typeof sqlStore>[0], 'statements' | 'written' | 'readText'> {
  readonly caller: string
  readonly query: Query
  /** How statements that read, and that change, are written for the client. Default: as they are. */
  readonly reading?: (sql: string) => string
  readonly changing?: (sql: string) => string
  /** The value that should be rows, in the answer of the client. */
  readonly rowsOf: (answer: unknown) => unknown
  /** How many rows a change changed, and a pruning deleted. Default: the same. */
  readonly changed: (answer: unknown) => number
  readonly pruned?: (answer: unknown) => number
  /** Makes the tables. `undefined`: a migration does. */
  readonly make: (() => Promise<void>) | undefined
  /** The command that prints the statements that make them. */
  readonly command: string
}

/** How many expired rows of a table go at once. */
export const PRUNED_AT_ONCE = 50

const runStatement = async (query: Query, sql: string, values: ReadonlyArray<SqlValue> = []): Promise<unknown> => {
  const answer = await query(sql, [...values])
  // some clients resolve to an Error instead of rejecting
  if (answer instanceof Error) throw answer
  return answer
}

// Of PostgreSQL, and of MySQL and MariaDB
const isTableMissing = withCode('42P01 1146 ER_NO_SUCH_TABLE')
const isForbidden = withCode('42501 1044 1142 1143 ER_DBACCESS_DENIED_ERROR ER_TABLEACCESS_DENIED_ERROR')
// a table, object or schema, or a row of the catalog
const isThere = withCode('42P07 42710 42P06 23505 1050 ER_TABLE_EXISTS_ERROR')
// One statement of two that wait for one another, or a statement that met a newer row
const isUndone = withCode('40P01 40001 1213 ER_LOCK_DEADLOCK 1020 ER_CHECKREAD')

/** Runs statements that create something, one after another, which another process may have created meanwhile. */
export const creating = async (query: Query, statements: ReadonlyArray<string>): Promise<void> => {
  for (const sql of statements) await runStatement(query, sql).catch(otherwiseIf(isThere, async () => {}))
}

const MOST_TRIES = 20

// So long requests wait for the tables that one of them makes, in milliseconds; a client that lost its connection may never answer
const MAKING = 10_000

// Asks again a statement that the database has undone as a whole, a read whose connection was lost, and a statement that had no tables
const ask = async (
  self: SqlServer,
  sql: string,
  values: ReadonlyArray<SqlValue>,
  isRead: boolean,
): Promise<unknown> => {
  let mayBeLost = isRead
  let mayMake = self.make !== undefined
  for (let times = 1; ; times++) {
    try {
      return await runStatement(self.query, sql, values)
    } catch (error) {
      if (mayMake && isTableMissing(error)) {
        mayMake = false
        await self.make?.()
      } else if (mayBeLost && isLost(error)) mayBeLost = false
      else if (times < MOST_TRIES && isUndone(error)) await pause(Math.random() * 2 * times)
      else throw error
    }
  }
}

// An error about the tables names the command that prints their statements
const rethrowExplained = ({ command }: SqlServer, error: unknown): never => {
  const problem = isTableMissing(error) ? 'a table' : isForbidden(error) ? 'a right' : undefined
  if (problem === undefined) throw error
  const words = `${problem} is missing; run the statements that \`${command}\` prints, with the rights of the owner`
  throw Object.assign(new Error(words, { cause: error }), { code: failureWord(error) })
}

const isRow = (value: unknown): value is SqlRow => is.isRecord(value)

/** The rows that a `query` resolved to. Throws a TypeError for anything else. */
export const rowsIn = (caller: string, rows: unknown): ReadonlyArray<SqlRow> => {
  if (Array.isArray(rows) && rows.every(isRow)) return rows
  throw new TypeError(`${caller}({ query }): it must resolve to rows, as objects with a property for each column`)
}

export const serverStore = (given: SqlServer): Store => {
  const { caller, query, statements, rowsOf, changed, pruned = changed, make } = given
  const { reading = identity, changing = identity } = given
  const self = { ...given, make: make && singleFlight(make, MAKING) }
  const explain = (error: unknown) => rethrowExplained(self, error)
  const prune = async (sql: string) => pruned(await runStatement(query, changing(sql)))
  const beside = besideWrites(statements.prunings, prune, PRUNED_AT_ONCE)
  return sqlStore({
    ...given,
    read: async (sql, values) => rowsIn(caller, rowsOf(await ask(self, reading(sql), values, true).catch(explain))),
    change: async (sql, values) => changed(await ask(self, changing(sql), values, false).catch(explain)) > 0,
    prune: () => void beside(),
  })
}
