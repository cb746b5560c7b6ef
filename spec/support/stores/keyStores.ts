/**
 * Every store of API keys with its real database: memory, an SQLite file, Redis by each client that fits, alone and as
 * a cluster.
 */
import { createHash } from 'node:crypto'
import { memoryKeyStore, type KeyRecord, type KeyStore } from 'koa-with-auth/keys'
import { redisKeyStore } from 'koa-with-auth/keys/redis'
import { sqliteKeyStore } from 'koa-with-auth/keys/sqlite'
import { afterAll, beforeAll, describe } from 'vitest'
import { describeWithRedis, redisServer, type RedisServer } from '../servers/redisServer.js'
import { clients, clusterClients, sqliteFile, type Connected } from './sessionStores.js'

type Suite = (store: () => KeyStore, name: string) => void

const describeClient = (
  name: string,
  connect: (server: RedisServer) => Promise<Connected>,
  server: () => RedisServer,
  suite: Suite,
): void => {
  describe(name, () => {
    let connected: Connected | undefined
    let store: KeyStore | undefined
    beforeAll(async () => {
      connected = await connect(server())
      // So that they do not share keys on one server
      store = redisKeyStore({ command: connected.command, prefix: `{${name}}:` })
    }, 20_000)
    afterAll(async () => {
      await connected?.disconnect()
    })
    suite(() => store!, name)
  })
}

/** Runs a suite on every store, and on Redis with every client. */
export const describeEveryKeyStore = (suite: Suite): void => {
  describe('memoryKeyStore', () => {
    const store = memoryKeyStore()
    suite(() => store, 'memoryKeyStore')
  })
  describe('sqliteKeyStore', () => {
    const store = sqliteKeyStore({ url: sqliteFile()() })
    afterAll(() => store.close())
    suite(() => store, 'sqliteKeyStore')
  })
  for (const cluster of [false, true]) {
    describeWithRedis(cluster ? 'redisKeyStore on a cluster' : 'redisKeyStore', () => {
      const server = redisServer({ cluster })
      for (const [name, connect] of Object.entries(cluster ? clusterClients : clients)) {
        describeClient(name, connect, server, suite)
      }
    })
  }
}

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
