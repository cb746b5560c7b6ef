// The database of the shop: DATABASE_URL is an SQLite file, PostgreSQL or MySQL. Accounts run statements on it, and sessions, passkeys, one-time
// ids and limits are in it too, unless REDIS_URL is given. A driver is only loaded if its database is used.
import { setTimeout } from 'node:timers/promises'
import { createClient } from '@libsql/client'
import { UnavailableError, type Limiter } from 'koa-with-auth'
import type { Signals } from 'koa-with-auth/sessions'
import {
  mysqlStore,
  postgresSignals,
  postgresStore,
  redisSignals,
  redisStore,
  sqliteStore,
  type Store,
} from 'koa-with-auth/stores'
import { RateLimiterMySQL, RateLimiterPostgres, RateLimiterRedis, RateLimiterSQLite } from 'rate-limiter-flexible'

/** How much a limiter allows; `duration` is in seconds. */
export interface Limit {
  readonly keyPrefix: string
  readonly points: number
  readonly duration: number
}

/** What the library keeps, and counts. */
export interface Kept {
  readonly store: () => Store
  readonly limiterOf: (limit: Limit) => Limiter
  /** Tells other processes that a session has ended. Without it, they see it at the next request. */
  readonly signals?: Signals
  readonly close: () => Promise<unknown> | void
}

/** A row; a column that is null is left out. */
export type Row = Readonly<Record<string, string | number>>

export interface Answer {
  readonly rows: ReadonlyArray<Row>
  /** How many rows were written. */
  readonly changed: number
}

type Value = string | null

/** A database, as accounts use it. */
export interface Database extends Kept {
  /** Runs one statement, with a `?` for each value. An outage rejects with an UnavailableError. */
  readonly run: (sql: string, ...values: ReadonlyArray<Value>) => Promise<Answer>
  /** The type of a column that has an index. Two values are one only if their bytes are. */
  readonly key: string
  /** What comes after `create table (...)`. */
  readonly options: string
  /** The end of an `insert` that changes nothing if the row is there. It names a column of the table. */
  readonly unlessThere: (column: string) => string
}

// How long a connection and a statement may take, in milliseconds
const CONNECTING = 2000
const RUNNING = 3000
const LIMITS = 'guesses'

const outage =
  (name: string) =>
  (cause: unknown): never => {
    throw new UnavailableError(`${name}: ${cause instanceof Error ? cause.message : 'no answer'}`, { cause })
  }

const rowIn = (given: object): Row =>
  Object.fromEntries(
    Object.entries(given).flatMap(([name, value]: [string, unknown]) => {
      if (typeof value === 'string' || typeof value === 'number') return [[name, value]]
      if (typeof value === 'bigint') return [[name, Number(value)]]
      return Buffer.isBuffer(value) ? [[name, value.toString()]] : []
    }),
  )

const sqlite = async (url: string): Promise<Database> => {
  const { default: Libsql } = await import('libsql')
  const client = createClient({ url, timeout: 1000 })
  await client.execute('pragma journal_mode = wal')
  const guesses = new Libsql(url, { timeout: 1000 })
  return {
    run: async (sql, ...args) => {
      const { rows, rowsAffected } = await client.execute({ sql, args: [...args] }).catch(outage('SQLite'))
      return { rows: rows.map(rowIn), changed: rowsAffected }
    },
    key: 'text',
    options: '',
    unlessThere: () => 'on conflict do nothing',
    store: () => sqliteStore({ url, engine: '@libsql/client' }),
    limiterOf: (limit) =>
      new RateLimiterSQLite({ ...limit, storeClient: guesses, storeType: 'better-sqlite3', tableName: LIMITS }),
    close: () => {
      client.close()
      guesses.close()
    },
  }
}

const postgres = async (url: string): Promise<Database> => {
  const { default: pg } = await import('pg')
  const connection = { connectionString: url, connectionTimeoutMillis: CONNECTING, query_timeout: RUNNING }
  const pool = new pg.Pool(connection)
  pool.on('error', ({ message }) => console.error(`PostgreSQL: ${message}`))
  const query = (sql: string, values: ReadonlyArray<unknown>) => pool.query(sql, [...values])
  await query(`create table if not exists ${LIMITS} (key text primary key, points integer not null, expire bigint)`, [])
  // signals need a connection of their own
  const listening = new Set<() => Promise<void>>()
  const listen = async (channel: string, onPayload: (payload: string) => void) => {
    const client = new pg.Client({ ...connection, query_timeout: undefined })
    client.on('error', ({ message }) => console.error(`PostgreSQL: ${message}`))
    await client.connect()
    client.on('notification', ({ payload = '' }) => onPayload(payload))
    await client.query(`listen "${channel}"`)
    const end = () => client.end().finally(() => listening.delete(end))
    listening.add(end)
    return end
  }
  return {
    run: async (sql, ...values) => {
      // PostgreSQL stores no NUL character in a string, so no row contains it
      if (values.some((value) => value?.includes('\0'))) return { rows: [], changed: 0 }
      let at = 0
      const numbered = sql.replace(/\?/g, () => `$${++at}`)
      const { rows, rowCount } = await query(numbered, values).catch(outage('PostgreSQL'))
      return { rows: rows.map(rowIn), changed: rowCount ?? 0 }
    },
    key: 'text',
    options: '',
    unlessThere: () => 'on conflict do nothing',
    store: () => postgresStore({ query }),
    signals: postgresSignals({ query, listen }),
    limiterOf: (limit) =>
      new RateLimiterPostgres({
        ...limit,
        storeClient: pool,
        storeType: 'pool',
        tableName: LIMITS,
        tableCreated: true,
        clearExpiredByTimeout: true,
      }),
    close: () => Promise.all([pool.end(), ...[...listening].map((end) => end())]),
  }
}

const mysql = async (url: string): Promise<Database> => {
  const { createPool } = await import('mysql2')
  const uri = url.replace(/^mariadb:/, 'mysql:')
  const pool = createPool({ uri, connectTimeout: CONNECTING, charset: 'utf8mb4' })
  const query = (sql: string, values: ReadonlyArray<unknown>) =>
    // Safe: the values are strings, numbers and null
    pool.promise().execute({ sql, timeout: RUNNING }, [...values] as Value[])
  const options = 'default charset = utf8mb4 collate utf8mb4_bin'
  const table = `create table if not exists ${LIMITS} (\`key\` varbinary(255) primary key, points int not null, expire bigint unsigned)`
  await query(`${table} ${options}`, [])
  return {
    run: async (sql, ...values) => {
      const [answer] = await query(sql, values).catch(outage('MySQL'))
      if (!Array.isArray(answer)) return { rows: [], changed: answer.affectedRows }
      return { rows: answer.map(rowIn), changed: 0 }
    },
    key: 'varbinary(255)',
    options,
    unlessThere: (column) => `on duplicate key update ${column} = ${column}`,
    store: () => mysqlStore({ query }),
    limiterOf: (limit) =>
      new RateLimiterMySQL({
        ...limit,
        storeClient: pool,
        storeType: 'pool',
        dbName: decodeURIComponent(new URL(uri).pathname.slice(1)),
        tableName: LIMITS,
        tableCreated: true,
      }),
    close: () => pool.promise().end(),
  }
}

/** Opens the database of a URL. Rejects if it cannot be asked. */
export const openDatabase = (url: string): Promise<Database> => {
  if (/^postgres(?:ql)?:/.test(url)) return postgres(url)
  return /^(?:mysql|mariadb):/.test(url) ? mysql(url) : sqlite(url)
}

/** What the library keeps, in Redis. Without Redis it starts, too: what needs it is a 503 until it is there. */
export const openRedis = async (url: string): Promise<Kept> => {
  const { createClient: connect } = await import('redis')
  const socket = { connectTimeout: CONNECTING, socketTimeout: RUNNING }
  // In an outage a command fails immediately, and does not wait for its connection
  const redis = connect({
    url,
    disableOfflineQueue: true,
    socket: { ...socket, reconnectStrategy: (times: number) => Math.min(times * 100, 1000) },
  })
  redis.on('error', ({ name }: Error) => console.error(`Redis: ${name}`))
  const subscriber = redis.duplicate()
  subscriber.on('error', () => {})
  const connected = Promise.all([redis.connect(), subscriber.connect()])
  await Promise.race([connected, setTimeout(1000)])
  return {
    store: () => redisStore({ command: (args) => redis.sendCommand([...args]) }),
    signals: redisSignals({ publisher: redis, subscriber }),
    limiterOf: (limit) => new RateLimiterRedis({ ...limit, storeClient: redis, useRedisPackage: true }),
    close: () => {
      for (const client of [redis, subscriber]) if (client.isOpen) client.destroy()
    },
  }
}
