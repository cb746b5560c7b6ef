/**
 * What `postgresStore` and `mysqlStore` share: a function that runs one statement, tables that are made when they are first needed, what is
 * asked again, and the form of the answers.
 */
import { identity } from 'fp-ts/lib/function.js'
import * as is from '../core/checks.js'
import { singleFlight } from '../core/memory.js'
import { failureWord, hasCode, readAgain, unlessUndone } from './failures.js'
import { besideWrites, sqlStore, type SqlRow, type SqlStatements, type SqlValue } from './sql.js'
import type { Store } from './Store.js'

type Query = (sql: string, values: SqlValue[]) => PromiseLike<unknown>

interface SqlServer {
  readonly caller: string
  readonly query: Query
  readonly statements: SqlStatements
  /** How statements that read, and that change, are written for the client. Default: as they are. */
  readonly reading?: (sql: string) => string
  readonly changing?: (sql: string) => string
  /** Statements that delete a few expired rows, without waiting for locks of others. */
  readonly prunings: ReadonlyArray<string>
  /** The value that should be rows, in the answer of the client. */
  readonly rowsOf: (answer: unknown) => unknown
  /** How many rows a change changed, and a pruning deleted. */
  readonly changed: (answer: unknown) => number
  readonly pruned: (answer: unknown) => number
  /** How a string is written as a value, and read in a row, if it is not written as it is. */
  readonly written?: (text: string) => string
  readonly readText?: (column: unknown) => string
  /** The codes of errors about a table, or a right, that is missing. */
  readonly missing: ReadonlySet<string>
  readonly forbidden: ReadonlySet<string>
  /** Makes the tables. `undefined`: a migration does. */
  readonly make: (() => Promise<void>) | undefined
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

/** Runs statements that create something, one after another, which another process may have created meanwhile. */
export const creating =
  (query: Query, there: ReadonlySet<string>) =>
  async (statements: ReadonlyArray<string>): Promise<void> => {
    for (const sql of statements) {
      await runStatement(query, sql).catch((error: unknown) => {
        if (!hasCode(error, there)) throw error
      })
    }
  }

// An error about the tables names the command that prints their statements
const explained = ({ missing, forbidden, command }: SqlServer, error: unknown): unknown => {
  const problem = hasCode(error, missing) ? 'a table' : hasCode(error, forbidden) ? 'a right' : undefined
  if (problem === undefined) return error
  const words = `${problem} is missing; run the statements that \`${command}\` prints, with the rights of the owner`
  return Object.assign(new Error(words, { cause: error }), { code: failureWord(error) })
}

// Asks, and makes the tables if they are missing
const withTables = async <A>(self: SqlServer, ask: () => Promise<A>): Promise<A> => {
  const { make, missing } = self
  try {
    return await ask().catch(async (error: unknown) => {
      if (make === undefined || !hasCode(error, missing)) throw error
      await make()
      return ask()
    })
  } catch (error) {
    throw explained(self, error)
  }
}

const isRow = (value: unknown): value is SqlRow => is.isRecord(value)

/** The rows that a `query` resolved to. Throws a TypeError for anything else. */
export const rowsIn = (caller: string, rows: unknown): ReadonlyArray<SqlRow> => {
  if (Array.isArray(rows) && rows.every(isRow)) return rows
  throw new TypeError(`${caller}({ query }): it must resolve to rows, as objects with a property for each column`)
}

export const serverStore = (given: SqlServer): Store => {
  const { caller, query, prunings, rowsOf, changed, pruned, make, reading = identity, changing = identity } = given
  const self = { ...given, make: make && singleFlight(make) }
  const ask = (sql: string, values: ReadonlyArray<SqlValue>) =>
    withTables(self, () => unlessUndone(() => runStatement(query, sql, values)))
  const beside = besideWrites(prunings, async (sql) => pruned(await runStatement(query, changing(sql))), PRUNED_AT_ONCE)
  return sqlStore({
    ...given,
    read: async (sql, values) => rowsIn(caller, rowsOf(await readAgain(() => ask(reading(sql), values)))),
    change: async (sql, values) => changed(await ask(changing(sql), values)) > 0,
    prune: () => void beside(),
  })
}
