/** A store in MySQL or MariaDB: entry point `koa-with-auth/stores`. */
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { statementsIn, tablesIn, type SqlValue } from './sql.js'
import { creating, PRUNED_AT_ONCE, serverStore } from './sqlServer.js'
import type { Store } from './Store.js'

/**
 * Runs a statement with `?` for its values. Resolves to the result of `execute` or `query` of mysql2, or of the package `mariadb`: rows, or
 * the result of a change with its `insertId` and `affectedRows`; either also as the first of a pair.
 */
export type MysqlQuery = (sql: string, values: SqlValue[]) => PromiseLike<object>

/** Which database. */
export interface MysqlStoreOptions {
  readonly query: MysqlQuery
  /** Whether missing tables are created. Default `true`; with `false`, a migration creates them. */
  readonly create?: boolean | undefined
}

// Strings are bytes, because a collation takes strings for equal that differ
const types = ['varbinary(500)', 'varbinary(2000)', 'longblob']

/** The statements that create the tables, each of which can run twice. */
export const mysqlTables = tablesIn(' engine = InnoDB', undefined, types, true)

// Without a time zone, in which an hour could come twice
const now = `(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) div 1000)`

// The last id says whether a row was changed, because the count of rows depends on an option of the client
const DONE = '0 * last_insert_id(1)'
const REFUSED = '0 * last_insert_id(2)'

const statements = statementsIn({
  now,
  // As hexadecimal digits, which the character set of a connection cannot change
  text: 'unhex(?)',
  column: (name) => `hex(${name}) as ${name}`,
  // A client may send a number with a fraction
  lifetime: `cast(? as signed) + ${DONE}`,
  // Assignments happen in their order, and later ones see earlier ones
  conflicts: {
    insert: `on duplicate key update text = if(until <= ${now}, values(text), text), until = if(until <= ${now}, values(until), until + ${REFUSED})`,
    end: 'on duplicate key update until = if(text is null, greatest(until, values(until)), values(until)), text = null',
    add: 'on duplicate key update until = greatest(until, values(until))',
  },
  // In this order, because a look for the rows to delete would wait for locks
  pruning: (table, key) =>
    `delete kept from (select ${key} from ${table} where until <= ${now} limit ${PRUNED_AT_ONCE} for update skip locked) as old
straight_join ${table} as kept using (${key}) where kept.until <= ${now}`,
})

const CALLER = 'mysqlStore'

const throwWrongAnswer = (): never => {
  throw new TypeError(`${CALLER}({ query }): it must resolve to the result of mysql2 or mariadb`)
}

// [rows, fields] or rows. Rows are objects, so an array of them is no pair
const rowsInPair = (answer: unknown): unknown =>
  Array.isArray(answer) && Array.isArray(answer[0]) && answer.length === 2 ? answer[0] : answer

// [result, fields] or result
const resultNumber = (name: string, answer: unknown): number => {
  const result: unknown = Array.isArray(answer) ? answer[0] : answer
  const number: unknown = is.isRecord(result) ? Reflect.get(result, name) : undefined
  return typeof number === 'number' || typeof number === 'bigint' ? Number(number) : throwWrongAnswer()
}

const hex = (text: string): string => Buffer.from(text).toString('hex')

const unhexed = (column: unknown): string =>
  typeof column === 'string' && /^(?:[\dA-Fa-f]{2})*$/.test(column)
    ? Buffer.from(column, 'hex').toString()
    : throwWrongAnswer()

/**
 * A store in MySQL 8 or MariaDB 10.6, or later, by any client: all it needs is a function that runs one statement. No transaction spans
 * two statements. Strings are compared byte by byte, whatever the collation. The times are those of the database. Rejects if `query`
 * rejects; a read that fails because the connection was lost is asked once more, and a statement that a deadlock has undone is tried
 * again. Tables that are missing are created when they are first needed; a missing table or right is an outage whose error names the
 * command that prints the statements. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { mysqlStore } from 'koa-with-auth/stores'
 *
 * declare const pool: { execute: (sql: string, values: (string | number | null)[]) => Promise<[object, object]> } // of mysql2/promise
 * const store = () => mysqlStore({ query: (sql, values) => pool.execute(sql, values) })
 */
export const mysqlStore = (options: MysqlStoreOptions): Store => {
  const { query, create = true } = checkOptions(CALLER, options, { query: is.hook(2), create: is.maybe(is.flag) })
  return serverStore({
    caller: CALLER,
    query,
    statements,
    rowsOf: rowsInPair,
    changed: (answer) => (resultNumber('insertId', answer) === 1 ? 1 : 0),
    pruned: (answer) => resultNumber('affectedRows', answer),
    written: hex,
    readText: unhexed,
    make: create ? () => creating(query, mysqlTables) : undefined,
    command: 'npx koa-with-auth sql mysql',
  })
}

declareFactory('mysqlStore', mysqlStore)
