/** koa-with-auth/stores: the databases in which sessions, API keys, passkeys and one-time ids are kept. */
export { memoryStore } from './memoryStore.js'
export type { Store } from './Store.js'
export { mysqlStore, type MysqlQuery, type MysqlStoreOptions } from './mysqlStore.js'
export { postgresStore, type PostgresQuery, type PostgresStoreOptions } from './postgresStore.js'
export { redisStore, type RedisStoreOptions } from './redisStore.js'
export { sqliteStore, type SqliteStore } from './sqliteStore.js'
export type { SqliteOptions } from './sqlite.js'
