/** Every store of sessions with its real database: memory, an SQLite file, Redis with each client that fits. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster, Redis } from 'ioredis'
import { memoryStore, redisStore, sqliteStore, type RedisStoreOptions, type Store } from 'koa-with-auth/stores'
import { createClient, createCluster, RESP_TYPES } from 'redis'
import { afterAll, describe } from 'vitest'
import { duringSuite } from '../runs/duringSuite.js'
import { redisDatabase, type RedisDatabase } from '../servers/redisDatabase.js'
import { describeWithRedis } from '../servers/redisServer.js'

type Command = RedisStoreOptions['command']

/** A connected client. */
export interface Connected {
  readonly command: Command
  readonly disconnect: () => unknown
}

const official = async (url: string, RESP: 2 | 3): Promise<Connected> => {
  const client = createClient({ url, RESP })
  client.on('error', () => {})
  await client.connect()
  return { command: (args) => client.sendCommand(args), disconnect: () => client.destroy() }
}

/** The clients, by the names in tests. */
export const clients: Readonly<Record<string, (server: RedisDatabase) => Promise<Connected>>> = {
  'the official client, RESP3': ({ url }) => official(url, 3),
  'the official client, RESP2': ({ url }) => official(url, 2),
  'the official client, buffers': async ({ url }) => {
    const client = createClient({ url }).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
    await client.connect()
    return { command: (args) => client.sendCommand(args), disconnect: () => client.destroy() }
  },
  ioredis: async ({ url }) => {
    const client = new Redis(url, { maxRetriesPerRequest: 1 })
    client.on('error', () => {})
    return { command: ([name = '', ...rest]) => client.call(name, ...rest), disconnect: () => client.disconnect() }
  },
  'ioredis, buffers': async ({ url }) => {
    const client = new Redis(url)
    return {
      command: ([name = '', ...rest]) => client.callBuffer(name, ...rest),
      disconnect: () => client.disconnect(),
    }
  },
}

/** The clients of a cluster. */
export const clusterClients: typeof clients = {
  'createCluster of the official client': async ({ url }) => {
    const cluster = createCluster({ rootNodes: [{ url }] })
    await cluster.connect()
    return {
      command: (args, key) => cluster.sendCommand(key, false, args),
      disconnect: () => cluster.destroy(),
    }
  },
  'Cluster of ioredis': async ({ port }) => {
    const cluster = new Cluster([{ host: '127.0.0.1', port }])
    return { command: ([name = '', ...rest]) => cluster.call(name, ...rest), disconnect: () => cluster.disconnect() }
  },
}

/** A file for one suite, in its own folder. */
export const sqliteFile = (): (() => string) => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-sqlite-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return () => `file:${join(folder, 'sessions.db')}`
}

type Suite = (store: () => Store) => void

/** Runs a suite on SQLite and on Redis, the stores for production. */
export const describeLastingStores = (suite: Suite): void => {
  describe('sqliteStore', () => {
    const url = sqliteFile()
    const store = sqliteStore({ url: url() })
    afterAll(() => store.close())
    suite(() => store)
  })
  describeWithRedis('redisStore, by the official client', () => {
    const server = redisDatabase()
    const connected = duringSuite(
      async () => {
        const { command, disconnect } = await official(server().url, 3)
        return { store: redisStore({ command }), disconnect }
      },
      ({ disconnect }) => disconnect(),
    )
    suite(() => connected().store)
  })
}

/** Runs a suite on memory, on SQLite, and on Redis by one client. */
export const describeEveryOther = (suite: Suite): void => {
  describe('memoryStore', () => {
    const store = memoryStore()
    suite(() => store)
  })
  describeLastingStores(suite)
}
