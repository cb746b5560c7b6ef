/**
 * API keys in an SQLite file, for one machine with nothing to install: entry point `koa-with-auth/keys/sqlite`.
 *
 * How the file is asked is in `stores/sqliteFile.ts`. A power failure can undo the last moments, a revocation among them;
 * the end of a process undoes nothing.
 */
import type { Row } from '@libsql/client'
import { checkOptions, declareFactory } from '../core/misuse.js'
import { sqliteFile } from '../stores/sqliteFile.js'
import type { KeyRecord, KeyStore } from './KeyStore.js'

/** Which file. */
export interface SqliteKeyStoreOptions {
  /** `file:` and the path; it is created where it is missing. The tables' names begin with `auth_key`. */
  readonly url: string
}

/** A store that can be closed. */
export interface SqliteKeyStore extends KeyStore {
  readonly close: () => void
}

const tables = `
  create table if not exists auth_keys (
    id text primary key, owner text not null, name text not null, scopes text not null, prefix text, last4 text,
    created_at integer not null, expires_at integer, revoked_at integer, rotated_at integer, last_used_at integer
  ) without rowid;
  create index if not exists auth_keys_owner on auth_keys (owner);
  create table if not exists auth_key_digests (digest text primary key, id text not null, until integer) without rowid;
  create index if not exists auth_key_digests_id on auth_key_digests (id);
`
const check = 'select 1 from auth_keys limit 1; select 1 from auth_key_digests limit 1'

const columns = 'k.id, owner, name, scopes, prefix, last4, created_at, expires_at, revoked_at, rotated_at, last_used_at'

// as one transaction: the digest first, so that a record without one cannot be
const inserting = `
  insert into auth_key_digests select ?, ?, null where not exists (select 1 from auth_keys where id = ?)
    on conflict do nothing;
  insert into auth_keys select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
    where exists (select 1 from auth_key_digests where digest = ? and id = ?) on conflict do nothing`

const isLive = `exists (select 1 from auth_keys where id = ? and revoked_at is null and (expires_at is null or expires_at > ?))
    and not exists (select 1 from auth_key_digests where digest = ?)`
const rotating = `
  update auth_keys set prefix = ?, last4 = ?, rotated_at = ? where id = ? and ${isLive};
  delete from auth_key_digests where id = ? and until <= ? and ${isLive};
  update auth_key_digests set until = min(coalesce(until, ?), ?) where id = ? and ${isLive};
  insert into auth_key_digests select ?, ?, null where ${isLive}`

const wrong = (): never => {
  throw new TypeError('sqliteKeyStore: a row of auth_keys is none that it wrote')
}
const string = (value: unknown): string => (typeof value === 'string' ? value : wrong())
const number = (value: unknown): number => (typeof value === 'number' ? value : wrong())

const recordOf = (row: Row): KeyRecord => {
  const scopes: unknown = JSON.parse(string(row['scopes']))
  return {
    id: string(row['id']),
    owner: string(row['owner']),
    name: string(row['name']),
    scopes: Array.isArray(scopes) ? scopes.map(string) : wrong(),
    ...(row['prefix'] !== null && { prefix: string(row['prefix']) }),
    ...(row['last4'] !== null && { last4: string(row['last4']) }),
    createdAt: number(row['created_at']),
    ...(row['expires_at'] !== null && { expiresAt: number(row['expires_at']) }),
    ...(row['revoked_at'] !== null && { revokedAt: number(row['revoked_at']) }),
    ...(row['rotated_at'] !== null && { rotatedAt: number(row['rotated_at']) }),
    ...(row['last_used_at'] !== null && { lastUsedAt: number(row['last_used_at']) }),
  }
}

/**
 * A store in an SQLite file, through `@libsql/client`; several processes of one machine can share it, and it can be the file of
 * the application or of its sessions. Rejects when the file cannot be read or written, or stays locked. TypeError for options
 * that cannot work.
 *
 * @example
 * import { apiKeys } from 'koa-with-auth/keys'
 * import { sqliteKeyStore } from 'koa-with-auth/keys/sqlite'
 *
 * const keys = apiKeys({ prefix: 'acme', store: sqliteKeyStore({ url: 'file::memory:' }) })
 */
export const sqliteKeyStore = (options: SqliteKeyStoreOptions): SqliteKeyStore => {
  checkOptions('sqliteKeyStore', options, ['url'])
  const { url } = options
  if (typeof url !== 'string' || !url.startsWith('file:')) {
    throw new TypeError(
      'sqliteKeyStore({ url }) must be "file:" and a path; several machines share keys by redisKeyStore',
    )
  }
  const file = sqliteFile({ url, tables, check })
  return {
    insert: async (digest, record) => {
      const { id, owner, name, scopes, prefix = null, last4 = null, createdAt, expiresAt = null } = record
      const { revokedAt = null, rotatedAt = null, lastUsedAt = null } = record
      const row = [id, owner, name, JSON.stringify(scopes), prefix, last4, createdAt, expiresAt, revokedAt, rotatedAt]
      return (await file.write(inserting, [digest, id, id, ...row, lastUsedAt, digest, id])) === 1
    },
    find: async (digests) => {
      const places = digests.map(() => '?').join(', ')
      const [row] = await file.read(
        `select d.until, ${columns} from auth_key_digests d join auth_keys k on k.id = d.id where d.digest in (${places})`,
        digests,
      )
      if (row === undefined) return undefined
      return { record: recordOf(row), ...(row['until'] !== null && { until: number(row['until']) }) }
    },
    list: async (owner) =>
      (await file.read(`select ${columns} from auth_keys k where owner = ?`, [owner])).map(recordOf),
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
    revoke: async (id, at) =>
      (await file.write('update auth_keys set revoked_at = coalesce(revoked_at, ?) where id = ?', [at, id])) === 1,
    touch: async (id, at) => {
      await file.write(
        'update auth_keys set last_used_at = ? where id = ? and (last_used_at is null or last_used_at < ?)',
        [at, id, at],
      )
    },
    close: () => file.close(),
  }
}

declareFactory('sqliteKeyStore', sqliteKeyStore)
