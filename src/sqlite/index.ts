/** koa-with-auth/sqlite: every store in an SQLite file, for one machine with nothing to install. */
export { sqliteKeyStore, type SqliteKeyStore } from '../keys/sqliteKeyStore.js'
export { sqlitePasskeyStore, type SqlitePasskeyStore } from '../sign-in/passkeys/sqlitePasskeyStore.js'
export type { SqliteOptions } from '../stores/sqlite.js'
