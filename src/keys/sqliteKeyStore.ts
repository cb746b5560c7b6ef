/**
 * API keys in an SQLite file, for one machine with nothing to install: entry point `koa-with-auth/sqlite`.
 *
 * A power failure can undo the last moments, such as a revocation.
 */
import { declareFactory } from '../core/options.js'
import { field, recordIn, sqliteFile, type Closable, type SqliteOptions } from '../stores/sqlite.js'
import { isKeyRecord, type KeyRecord, type KeyStore } from './KeyStore.js'

/** A store that can be closed. */
export type SqliteKeyStore = KeyStore & Closable

// A record is one JSON text, because a few columns would take the client as long as the look-up takes SQLite
const tables = `
  create table if not exists auth_keys (id text primary key, owner text not null, record text not null) without rowid;
  create index if not exists auth_keys_owner on auth_keys (owner);
  create table if not exists auth_key_digests (digest text primary key, id text not null, until integer) without rowid;
  create index if not exists auth_key_digests_id on auth_key_digests (id);
`
const check = 'select 1 from auth_keys limit 1; select 1 from auth_key_digests limit 1'

// one column, because each takes the client as long as SQLite takes to find a row
const finding = (count: number): string =>
  `select coalesce(until, '') || ' ' || record as found from auth_key_digests join auth_keys using (id) where digest in (${Array(count).fill('?').join()})`
const findingOne = finding(1)

// one transaction, with the digest first, so that no record is without one
const inserting = `
  insert into auth_key_digests select ?, ?, null where not exists (select 1 from auth_keys where id = ?)
    on conflict do nothing;
  insert into auth_keys select ?, ?, ? where exists (select 1 from auth_key_digests where digest = ? and id = ?)
    on conflict do nothing`

const isLive = `exists (select 1 from auth_keys where id = ? and ${field('revokedAt')} is null
      and (${field('expiresAt')} is null or ${field('expiresAt')} > ?))
    and not exists (select 1 from auth_key_digests where digest = ?)`
const rotating = `
  update auth_keys set record = json_set(record, '$.prefix', ?, '$.last4', ?, '$.rotatedAt', ?) where id = ? and ${isLive};
  delete from auth_key_digests where id = ? and until <= ? and ${isLive};
  update auth_key_digests set until = min(coalesce(until, ?), ?) where id = ? and ${isLive};
  insert into auth_key_digests select ?, ?, null where ${isLive}`
const revoking = `update auth_keys set record = json_set(record, '$.revokedAt', coalesce(${field('revokedAt')}, ?)) where id = ?`
const touched = `update auth_keys set record = json_set(record, '$.lastUsedAt', ?)
  where id = ? and coalesce(${field('lastUsedAt')}, -1) < ?`

const keyIn = recordIn('sqliteKeyStore: a row of auth_keys', (u): u is KeyRecord => isKeyRecord(Object(u)))

/**
 * A store in an SQLite file, by `@libsql/client`, or by `node:sqlite` from Node 22.13 on. Several processes of one machine can
 * share it. It can be the file of the application or of its sessions. Rejects when the file cannot be read or written, or stays
 * locked. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { apiKeys } from 'koa-with-auth/keys'
 * import { sqliteKeyStore } from 'koa-with-auth/sqlite'
 *
 * const keys = apiKeys({ prefix: 'acme', store: sqliteKeyStore({ url: 'file::memory:' }) })
 */
export const sqliteKeyStore = (options: SqliteOptions): SqliteKeyStore => {
  const file = sqliteFile('sqliteKeyStore', options, {
    tables,
    check,
    elsewhere: 'several machines share keys by redisKeyStore',
  })
  return {
    insert: async (digest, record) => {
      const { id, owner } = record
      const values = [digest, id, id, id, owner, JSON.stringify(record), digest, id]
      return (await file.write(inserting, values)) === 1
    },
    find: async (digests) => {
      const { rows } = await file.read(digests.length === 1 ? findingOne : finding(digests.length), digests)
      const [row] = rows
      if (row === undefined) return undefined
      const found = String(row['found'])
      const blank = found.indexOf(' ')
      const record = keyIn({ record: found.slice(blank + 1) })
      return blank === 0 ? { record } : { record, until: Number(found.slice(0, blank)) }
    },
    list: async (owner) => (await file.read('select record from auth_keys where owner = ?', [owner])).rows.map(keyIn),
    rotate: async (id, { digest, prefix, last4, at, until }) => {
      const live = [id, at, digest]
      const values = [
        ...[prefix, last4, at, id, ...live],
        ...[id, at, ...live],
        ...[until, until, id, ...live],
        ...[digest, id, ...live],
      ]
      return (await file.write(rotating, values)) === 1
    },
    revoke: async (id, at) => (await file.write(revoking, [at, id])) === 1,
    touch: async (id, at) => {
      await file.write(touched, [at, id, at])
    },
    close: () => file.close(),
  }
}

declareFactory('sqliteKeyStore', sqliteKeyStore)
