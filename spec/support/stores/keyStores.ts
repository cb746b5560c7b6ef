/** Every store of API keys with its real database, and what its specs put into it. */
import { createHash } from 'node:crypto'
import { memoryKeyStore, type KeyRecord, type KeyStore } from 'koa-with-auth/keys'
import { redisKeyStore } from 'koa-with-auth/redis'
import { sqliteKeyStore } from 'koa-with-auth/sqlite'
import { describeEveryStore, type Suite } from './everyStore.js'

/** Runs a suite on every store, and on Redis with every client. */
export const describeEveryKeyStore = (suite: Suite<KeyStore>): void =>
  describeEveryStore('KeyStore', { memory: memoryKeyStore, sqlite: sqliteKeyStore, redis: redisKeyStore }, suite)

/** A store that records which of its methods are called, in order. */
export const noted = (store: KeyStore): { readonly store: KeyStore; readonly calls: string[] } => {
  const calls: string[] = []
  const noting =
    <A extends unknown[], R>(name: string, f: (...args: A) => R) =>
    (...args: A): R => {
      calls.push(name)
      return f(...args)
    }
  return {
    calls,
    store: {
      insert: noting('insert', store.insert),
      find: noting('find', store.find),
      list: noting('list', store.list),
      rotate: noting('rotate', store.rotate),
      revoke: noting('revoke', store.revoke),
      touch: noting('touch', store.touch),
    },
  }
}

/** A digest in the form that stores get. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A record with only the required fields. */
export const recordOf = (id: string, more: Partial<KeyRecord> = {}): KeyRecord => ({
  id,
  owner: 'anna',
  name: '',
  scopes: [],
  createdAt: 1,
  ...more,
})
