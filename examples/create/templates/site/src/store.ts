/**
 * What is kept, and where: DATABASE_URL is `postgres://user@host/app`, `mysql://user@host/app`, or an SQLite file such as `file:app.db`.
 * With REDIS_URL, the store is in Redis. Delete the databases that you do not use, here and in package.json.
 */
import { createClient as sqlite } from '@libsql/client'
import { mysqlStore, postgresSignals, postgresStore, redisSignals, redisStore, sqliteStore } from 'koa-with-auth/stores'
import { createPool, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise'
import postgres from 'postgres'
import { createClient as redis } from 'redis'

export type Row = Readonly<Record<string, unknown>>
/** Runs one statement, in which each ? is a value. It resolves to the rows, and to how many rows were changed. */
export type Run = (sql: string, ...values: string[]) => Promise<{ rows: ReadonlyArray<Row>; changed: number }>

const inPostgres = (url: string) => {
  const database = postgres(url, { onnotice: () => {} })
  const query = (sql: string, values: Array<string | number | null>) => database.unsafe(sql, values)
  const run: Run = async (sql, ...values) => {
    let at = 0
    const rows = await query(
      sql.replace(/\?/g, () => `$${++at}`),
      values,
    )
    return { rows, changed: rows.count }
  }
  const listen = async (channel: string, hear: (payload: string) => void) =>
    (await database.listen(channel, hear)).unlisten
  const signals = postgresSignals({ query, listen }) // a sign-out closes what other processes have open
  return { run, store: postgresStore({ query }), signals, close: () => database.end({ timeout: 1 }) }
}

const inMysql = (url: string) => {
  const pool = createPool(url)
  const run: Run = async (sql, ...values) => {
    const [result] = await pool.execute<RowDataPacket[] | ResultSetHeader>(sql, values)
    return Array.isArray(result) ? { rows: result, changed: 0 } : { rows: [], changed: result.affectedRows }
  }
  const store = mysqlStore({ query: (sql, values) => pool.execute(sql, values) })
  return { run, store, signals: undefined, close: () => pool.end() }
}

const inSqlite = (url: string) => {
  const database = sqlite({ url, timeout: 2000 })
  const run: Run = async (sql, ...args) => {
    const { rows, rowsAffected } = await database.execute({ sql, args })
    return { rows, changed: rowsAffected }
  }
  const store = sqliteStore({ url })
  const close = async () => {
    store.close()
    database.close()
  }
  return { run, store, signals: undefined, close }
}

const inRedis = async (url: string) => {
  // In an outage a command fails at once: the answer is a 503, and does not wait
  const client = redis({ url, disableOfflineQueue: true }).on('error', ({ message }) =>
    console.error('Redis:', message),
  )
  await client.connect()
  const subscriber = await client
    .duplicate()
    .on('error', () => {})
    .connect()
  return {
    store: redisStore({ command: (args) => client.sendCommand([...args]) }),
    signals: redisSignals({ publisher: client, subscriber }),
    close: () => [subscriber, client].forEach((one) => one.destroy()),
  }
}

const openSql = (url: string) =>
  (/^postgres/.test(url) ? inPostgres : /^(mysql|mariadb):/.test(url) ? inMysql : inSqlite)(url)

/** The store alone, in a database or in Redis. */
export const openStore = async (url: string) => (/^rediss?:/.test(url) ? inRedis(url) : openSql(url))

/** The tables of the site, and a store: beside these tables, or in Redis. */
export const openDatabase = async (url: string, redisUrl?: string) => {
  const [database, beside] = [openSql(url), redisUrl ? await inRedis(redisUrl) : undefined]
  const { run, store, signals } = { ...database, ...beside }
  const close = async () => {
    beside?.close()
    await database.close()
  }
  return { run, store, signals, close }
}

export type Database = Awaited<ReturnType<typeof openDatabase>>

/** Whether all that is asked for is answered. */
export const isUp = (...asked: ReadonlyArray<unknown>) =>
  Promise.all(asked).then(
    () => true,
    () => false,
  )
