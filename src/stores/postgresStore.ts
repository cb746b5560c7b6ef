/** A store in PostgreSQL, and in databases that speak as it does: entry point `koa-with-auth/stores`. */
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { otherwiseIf, withCode } from './failures.js'
import { onConflict, statementsIn, tablesIn, withoutNul, type SqlValue } from './sql.js'
import { creating, PRUNED_AT_ONCE, rowsIn, serverStore } from './sqlServer.js'
import type { Store } from './Store.js'

/**
 * Runs a statement with `$1`, `$2`, ... for its values, and resolves to its rows, or to an object with `rows`. Statements do not depend on
 * each other, so each may run on another connection of a pool.
 */
export type PostgresQuery = (
  sql: string,
  values: SqlValue[],
) => PromiseLike<ReadonlyArray<unknown> | { readonly rows: ReadonlyArray<unknown> }>

/** Which database. */
export interface PostgresStoreOptions {
  readonly query: PostgresQuery
  /** The schema of the tables `auth_texts` and `auth_members`. Default: the first schema in the database's `search_path`. */
  readonly schema?: string | undefined
  /** Whether missing tables are created. Default `true`; with `false`, a migration creates them. */
  readonly create?: boolean | undefined
}

const validSchema = is.like(/^[\p{L}_][\p{L}\p{N}_$-]{0,62}$/u, 'must be a name of letters, digits, "_", "$" and "-"')

const inSchema = (schema: string | undefined) => (table: string) =>
  schema === undefined ? table : `"${schema}".${table}`

/** The statements that create the tables, each of which can run twice. Throws a TypeError for a schema with a wrong name. */
export const postgresTables = (schema: string | undefined, where: string) => {
  is.maybe(validSchema)(where, schema)
  return {
    schema: schema === undefined ? [] : [`create schema if not exists "${schema}"`],
    tables: tablesIn('', inSchema(schema)),
  }
}

const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
// the same for a whole statement, so that it can be looked up in an index
const atStart = '(extract(epoch from statement_timestamp()) * 1000)::bigint'

const numbered = (sql: string): string => {
  let count = 0
  return sql.replaceAll('?', () => `$${++count}`)
}

// As a query, because some builders answer a change in another form than a query
const countChanged = (change: string): string =>
  numbered(`with changed as (${change} returning 1) select count(*) as done from changed`)

const pruning = (table: string, key: string): string =>
  `delete from ${table} where (${key}) in (select ${key} from ${table} where until <= ${atStart} order by until limit ${PRUNED_AT_ONCE} for update skip locked)`

const CALLER = 'postgresStore'

const rowsOf = (answer: unknown): unknown =>
  typeof answer === 'object' && answer !== null && 'rows' in answer ? answer.rows : answer

const doneIn = (answer: unknown): number => {
  const [row, ...more] = rowsIn(CALLER, rowsOf(answer))
  const done = more.length === 0 ? String(row?.['done']) : ''
  if (/^\d+$/.test(done)) return Number(done)
  throw new TypeError(`${CALLER}({ query }): it must resolve to the rows of its statement`)
}

// Of a database without blocks of statements
const hasNoBlocks = withCode('42601 0A000 42704')
const hasNoSchema = withCode('3F000')

// In one block, because a process could end between a table and its index
const making = (query: PostgresQuery, schema: string | undefined) => (): Promise<void> => {
  const statements = postgresTables(schema, CALLER)
  const make = () =>
    creating(query, [`do $$ begin ${statements.tables.join(';')}; end $$`]).catch(
      otherwiseIf(hasNoBlocks, () => creating(query, statements.tables)),
    )
  // the schema only then, because it needs a right of its own
  return make().catch(otherwiseIf(hasNoSchema, () => creating(query, statements.schema).then(make)))
}

/**
 * A store in PostgreSQL 13 or later, by any client or builder of queries: all it needs is a function that runs one statement. No
 * transaction spans two statements, so poolers in transaction mode work. The times are those of the database. Rejects if `query` rejects;
 * a read that fails because the connection was lost is asked once more. Tables that are missing are created when they are first needed;
 * a missing table or right is an outage whose error names the command that prints the statements. Texts cannot contain NUL. Throws a
 * TypeError for options that cannot work.
 *
 * @example
 * import { postgresStore } from 'koa-with-auth/stores'
 *
 * declare const pool: { query: (sql: string, values: unknown[]) => Promise<{ rows: object[] }> } // new Pool() of pg
 * const store = () => postgresStore({ query: (sql, values) => pool.query(sql, values), schema: 'auth' })
 */
export const postgresStore = (options: PostgresStoreOptions): Store => {
  const checks = { query: is.hook(2), schema: is.maybe(validSchema), create: is.maybe(is.flag) }
  const { query, schema, create = true } = checkOptions(CALLER, options, checks)
  const table = inSchema(schema)
  const [texts, sets] = [table('auth_texts'), table('auth_members')]
  return serverStore({
    caller: CALLER,
    query,
    statements: statementsIn({ texts, sets, now, conflicts: onConflict(now, 'greatest'), pruning }),
    reading: numbered,
    changing: countChanged,
    rowsOf,
    changed: doneIn,
    written: withoutNul('PostgreSQL'),
    make: create ? making(query, schema) : undefined,
    command: `npx koa-with-auth sql postgres${schema === undefined ? '' : ` --schema ${schema}`}`,
  })
}

declareFactory('postgresStore', postgresStore)
