/** Every engine of a store, each with its real database, by the drivers that users have. */
import { randomUUID } from 'node:crypto'
import * as mariadb from 'mariadb'
import mysql from 'mysql2/promise'
import { memoryStore, mysqlStore, postgresStore, redisStore, sqliteStore, type Store } from 'koa-with-auth/stores'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, describe } from 'vitest'
import { duringSuite } from '../runs/duringSuite.js'
import { sqlPort } from '../runs/sqlOfRun.js'
import { hasAllCases } from '../runs/samples.js'
import { describeWithSql, USER, type Sql } from '../servers/sqlServer.js'
import { engines } from './sqliteEngines.js'
import { clients, clusterClients, sqliteFile } from './sessionStores.js'
import { redisDatabase } from '../servers/redisDatabase.js'
import { describeWithRedis, redisServer } from '../servers/redisServer.js'

/** A connected driver of a database. */
interface Driver<Q> {
  readonly query: Q
  readonly close: () => Promise<unknown>
}

export type PostgresQuery = Parameters<typeof postgresStore>[0]['query']
export type MysqlQuery = Parameters<typeof mysqlStore>[0]['query']

const host = '127.0.0.1'

/** The drivers of PostgreSQL, by their names in tests. */
const postgresDrivers: Readonly<Record<string, (port: number) => Driver<PostgresQuery>>> = {
  pg: (port) => {
    const pool = new pg.Pool({ host, port, user: USER, database: 'postgres', max: 4 })
    pool.on('error', () => {})
    return { query: (sql, values) => pool.query(sql, values), close: () => pool.end() }
  },
  'postgres.js': (port) => {
    const sql = postgres({ host, port, user: USER, database: 'postgres', max: 4, onnotice: () => {} })
    return { query: (text, values) => sql.unsafe(text, values), close: () => sql.end({ timeout: 1 }) }
  },
}

/** The drivers of MySQL and MariaDB, by their names in tests. */
const mysqlDrivers: Readonly<Record<string, (port: number, database: string) => Driver<MysqlQuery>>> = {
  'mysql2, execute': (port, database) => {
    const pool = mysql.createPool({ host, port, user: USER, database, connectionLimit: 4 })
    return { query: (sql, values) => pool.execute(sql, values), close: () => pool.end() }
  },
  'mysql2, query, without FOUND_ROWS': (port, database) => {
    const flags = ['-FOUND_ROWS']
    const pool = mysql.createPool({ host, port, user: USER, database, connectionLimit: 4, flags, charset: 'latin1' })
    return { query: (sql, values) => pool.query(sql, values), close: () => pool.end() }
  },
  mariadb: (port, database) => {
    const pool = mariadb.createPool({ host, port, user: USER, database, connectionLimit: 4 })
    return { query: (sql, values) => pool.query<object>(sql, values), close: () => pool.end() }
  },
}

/** A new schema of PostgreSQL, or database of MariaDB. */
export const newName = (): string => `kwa_${randomUUID().replaceAll('-', '').slice(0, 12)}`

/** Runs statements on the database of the run, or at another port, as its owner. */
export const asOwner = async (kind: Sql, sql: string, at?: number): Promise<unknown> => {
  const port = at ?? (await sqlPort(kind))
  if (kind === 'mariadb') {
    const connection = await mysql.createConnection({ host, port, user: USER, multipleStatements: true })
    return connection.query(sql).finally(() => connection.end())
  }
  const client = new pg.Client({ host, port, user: USER, database: 'postgres' })
  await client.connect()
  return client.query(sql).finally(() => client.end())
}

/** Makes a store that is empty. */
type Make = () => Promise<Store>

type Suite = (make: Make, name: string) => void

const describePostgres = (name: string, suite: Suite): void =>
  describeWithSql('postgres', `postgresStore by ${name}`, () => {
    const driver = duringSuite(
      async () => postgresDrivers[name]!(await sqlPort('postgres')),
      ({ close }) => close(),
    )
    suite(async () => postgresStore({ query: driver().query, schema: newName() }), name)
  })

const describeMysql = (name: string, suite: Suite): void =>
  describeWithSql('mariadb', `mysqlStore by ${name}`, () => {
    const made: Array<Driver<MysqlQuery>> = []
    afterAll(() => Promise.all(made.map((one) => one.close())))
    const make = async () => {
      const database = newName()
      await asOwner('mariadb', `create database ${database} character set latin1`)
      const driver = mysqlDrivers[name]!(await sqlPort('mariadb'), database)
      made.push(driver)
      return mysqlStore({ query: driver.query })
    }
    suite(make, name)
  })

const describeSqlite = (engine: (typeof engines)[number], suite: Suite): unknown =>
  describe(`sqliteStore by ${engine}`, () => {
    const url = sqliteFile()
    const made: Array<{ readonly close: () => void }> = []
    afterAll(() => made.forEach((one) => one.close()))
    suite(async () => {
      const store = sqliteStore({ url: url().replace('sessions', randomUUID()), engine })
      made.push(store)
      return store
    }, engine)
  })

const describeRedis = (name: string, isCluster: boolean, suite: Suite): void =>
  describeWithRedis(`redisStore by ${name}`, () => {
    const server = isCluster ? redisServer({ cluster: true }) : redisDatabase()
    const connect = (isCluster ? clusterClients : clients)[name]!
    const connected = duringSuite(
      () => connect(server()),
      ({ disconnect }) => disconnect(),
    )
    suite(async () => redisStore({ command: connected().command }), name)
  })

/** Runs a suite on each engine. With all cases: by every driver, and on a cluster of Redis. */
export const describeEveryEngine = (suite: Suite): void => {
  describe('memoryStore', () => suite(async () => memoryStore(), 'memory'))
  for (const engine of engines) describeSqlite(engine, suite)
  const some = (names: ReadonlyArray<string>, few: number) => names.slice(0, hasAllCases ? undefined : few)
  for (const name of some(Object.keys(clients), 1)) describeRedis(name, false, suite)
  if (hasAllCases) for (const name of Object.keys(clusterClients)) describeRedis(name, true, suite)
  for (const name of some(Object.keys(postgresDrivers), 2)) describePostgres(name, suite)
  for (const name of some(Object.keys(mysqlDrivers), 3)) describeMysql(name, suite)
}
