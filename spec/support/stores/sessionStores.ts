/** Every store of sessions with its real database: memory, an SQLite file, Redis with each client that fits. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster, Redis } from 'ioredis'
import { memoryStore, type SessionStore } from 'koa-with-auth/sessions'
import { redisStore, type RedisStoreOptions } from 'koa-with-auth/redis'
import { sqliteStore } from 'koa-with-auth/sqlite'
import { createClient, createCluster, RESP_TYPES } from 'redis'
import { afterAll, beforeAll, describe } from 'vitest'
import { describeWithRedis, redisServer, type RedisServer } from '../servers/redisServer.js'

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
export const clients: Readonly<Record<string, (server: RedisServer) => Promise<Connected>>> = {
  'the official client, RESP3': ({ url }) => official(url, 3),
  'the official client, RESP2': ({ url }) => official(url, 2),
  'the official client, buffers': async ({ url }) => {
    const client = createClient({ url }).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
    await client.connect()
    return { command: (args) => client.sendCommand(args), disconnect: () => client.destroy() }
  },
  ioredis: async ({ port }) => {
    const client = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: 1 })
    client.on('error', () => {})
    return { command: ([name = '', ...rest]) => client.call(name, ...rest), disconnect: () => client.disconnect() }
  },
  'ioredis, buffers': async ({ port }) => {
    const client = new Redis(port, '127.0.0.1')
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

/** Runs a suite on memory and on an SQLite file. */
const describeEmbedded = (suite: (store: () => SessionStore, name: string) => void): void => {
  describe('memoryStore', () => {
    const store = memoryStore()
    suite(() => store, 'memoryStore')
  })
  describeSqlite(suite)
}

const describeSqlite = (suite: (store: () => SessionStore, name: string) => void): void => {
  describe('sqliteStore', () => {
    const url = sqliteFile()
    const store = sqliteStore({ url: url() })
    afterAll(() => store.close())
    suite(() => store, 'sqliteStore')
  })
}

const describeClient = (
  name: string,
  connect: (server: RedisServer) => Promise<Connected>,
  server: () => RedisServer,
  suite: (store: () => SessionStore, name: string) => void,
): void => {
  describe(name, () => {
    let connected: Connected | undefined
    let store: SessionStore | undefined
    beforeAll(async () => {
      connected = await connect(server())
      // So that they do not share keys on one server
      store = redisStore({ command: connected.command, prefix: `${name}:` })
    }, 20_000)
    afterAll(async () => {
      await connected?.disconnect()
    })
    suite(() => store!, name)
  })
}

/** Runs a suite on every store, and on Redis with every client. */
export const describeEveryStore = (suite: (store: () => SessionStore, name: string) => void): void => {
  describeEmbedded(suite)
  for (const cluster of [false, true]) {
    describeWithRedis(cluster ? 'redisStore on a cluster' : 'redisStore', () => {
      const server = redisServer({ cluster })
      for (const [name, connect] of Object.entries(cluster ? clusterClients : clients)) {
        describeClient(name, connect, server, suite)
      }
    })
  }
}

/** Runs a suite on SQLite and on Redis, the stores for production. */
export const describeLastingStores = (suite: (store: () => SessionStore) => void): void => {
  describeSqlite(suite)
  describeWithRedis('redisStore', () => {
    describeClient('the official client', ({ url }) => official(url, 3), redisServer(), suite)
  })
}

/** Runs a suite on memory, on SQLite, and on Redis by one client. */
export const describeEveryOther = (suite: (store: () => SessionStore) => void): void => {
  describeEmbedded(suite)
  describeWithRedis('redisStore', () => {
    describeClient('the official client', ({ url }) => official(url, 3), redisServer(), suite)
  })
}
