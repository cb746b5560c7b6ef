/** A store in a process of its own, which answers the calls that its parent sends. Its argument is where the database is, as JSON. */
import { Redis } from 'ioredis'
import { mysqlStore, postgresStore, redisStore, sqliteStore, type Store } from 'koa-with-auth/stores'
import mysql from 'mysql2/promise'
import pg from 'pg'

/** Where a database is. `name` is a schema, a database or a file. */
export interface Place {
  readonly kind: 'postgres' | 'mariadb' | 'redis' | 'sqlite'
  readonly port: number
  readonly name: string
}

/** A call, and its number. */
export interface StoreQuestion {
  readonly id: number
  readonly method: keyof Store
  readonly args: ReadonlyArray<unknown>
}

/** What a call resolved to, or why it rejected. */
export interface StoreAnswer {
  readonly id: number
  readonly result?: unknown
  readonly failure?: string
}

const host = '127.0.0.1'

/** A store in a database. */
export const storeAt = ({ kind, port, name }: Place): { readonly store: Store; readonly close: () => unknown } => {
  switch (kind) {
    case 'postgres': {
      const pool = new pg.Pool({ host, port, user: 'kwa', database: 'postgres', max: 4 })
      pool.on('error', () => {})
      const store = postgresStore({ query: (sql, values) => pool.query(sql, values), schema: name })
      return { store, close: () => pool.end() }
    }
    case 'mariadb': {
      const pool = mysql.createPool({ host, port, user: 'kwa', database: name, connectionLimit: 4 })
      return { store: mysqlStore({ query: (sql, values) => pool.execute(sql, values) }), close: () => pool.end() }
    }
    case 'redis': {
      const client = new Redis(port, host, { maxRetriesPerRequest: 1, enableOfflineQueue: true })
      client.on('error', () => {})
      const command = ([first = '', ...rest]: string[]) => client.call(first, ...rest)
      return { store: redisStore({ command }), close: () => client.disconnect() }
    }
    case 'sqlite': {
      const store = sqliteStore({ url: `file:${name}` })
      return { store, close: () => store.close() }
    }
  }
}

const answer = (store: Store): void => {
  process.on('message', ({ id, method, args }: StoreQuestion) => {
    // Safe: the parent calls methods with their arguments
    const call = store[method] as (...all: ReadonlyArray<unknown>) => unknown
    void Promise.resolve(call(...args)).then(
      (result) => process.send?.({ id, result } satisfies StoreAnswer),
      (error: unknown) => process.send?.({ id, failure: String(error) } satisfies StoreAnswer),
    )
  })
  process.on('disconnect', () => process.exit())
}

if (process.send !== undefined && process.argv[2]?.startsWith('{') === true)
  // Safe: the parent wrote it
  answer(storeAt(JSON.parse(process.argv[2]) as Place).store)
