/**
 * Passkeys in an SQLite file, for one machine with nothing to install: entry point `koa-with-auth/sqlite`.
 *
 * A power failure can undo the last moments, such as a registration.
 */
import { field, recordIn, sqliteFile, type Closable, type SqliteOptions } from '../../stores/sqlite.js'
import { declareFactory } from '../../core/options.js'
import { isPasskeyRecord, type PasskeyStore } from './PasskeyStore.js'

/** A store that can be closed. */
export type SqlitePasskeyStore = PasskeyStore & Closable

const tables = `
  create table if not exists auth_passkeys (id text primary key, user text not null, record text not null) without rowid;
  create index if not exists auth_passkeys_user on auth_passkeys (user);
`
const check = 'select 1 from auth_passkeys limit 1'

const adding = 'insert into auth_passkeys values (?, ?, ?) on conflict do nothing'
const updating = `update auth_passkeys
  set record = json_set(json_patch(record, ?), '$.lastUsedAt', max(?, coalesce(${field('lastUsedAt')}, 0)))
  where id = ? and (${field('counter')} < ? or (${field('counter')} = 0 and ? = 0))`
const removing = 'delete from auth_passkeys where id = ? and user = ?'

const passkeyIn = recordIn('sqlitePasskeyStore: a row of auth_passkeys', isPasskeyRecord)

/**
 * A store in an SQLite file, by `@libsql/client`. Several processes of one machine can share it. It can be the file of
 * the application or of its sessions. Rejects when the file cannot be read or written, or stays locked. Throws a
 * TypeError for options that cannot work.
 *
 * @example
 * import { sqlitePasskeyStore } from 'koa-with-auth/sqlite'
 *
 * const store = sqlitePasskeyStore({ url: 'file::memory:' })
 * assert.deepStrictEqual(await store.ofUser('anna'), [])
 */
export const sqlitePasskeyStore = (options: SqliteOptions): SqlitePasskeyStore => {
  const file = sqliteFile('sqlitePasskeyStore', options, {
    tables,
    check,
    elsewhere: 'several machines share passkeys by redisPasskeyStore',
  })
  return {
    add: async (record) => (await file.write(adding, [record.id, record.user, JSON.stringify(record)])) === 1,
    byId: async (id) => {
      const { rows } = await file.read('select record from auth_passkeys where id = ?', [id])
      return rows[0] && passkeyIn(rows[0])
    },
    ofUser: async (user) =>
      (await file.read('select record from auth_passkeys where user = ?', [user])).rows.map(passkeyIn),
    update: async (id, { counter, backupEligible, backedUp }, at) => {
      const use = JSON.stringify({ counter, backupEligible, backedUp })
      return (await file.write(updating, [use, at, id, counter, counter])) === 1
    },
    remove: async (id, user) => (await file.write(removing, [id, user])) === 1,
    close: () => file.close(),
  }
}

declareFactory('sqlitePasskeyStore', sqlitePasskeyStore)
