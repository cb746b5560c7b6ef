/** koa-with-auth/sqlite: every store in an SQLite file, for one machine with nothing to install. */
export { sqliteKeyStore, type SqliteKeyStore, type SqliteKeyStoreOptions } from '../keys/sqliteKeyStore.js'
export { sqliteStore, type SqliteStore, type SqliteStoreOptions } from '../sessions/sqliteStore.js'
export {
  sqlitePasskeyStore,
  type SqlitePasskeyStore,
  type SqlitePasskeyStoreOptions,
} from '../sign-in/passkeys/sqlitePasskeyStore.js'
