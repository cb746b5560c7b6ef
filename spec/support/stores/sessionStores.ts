/** Every store of sessions with its real database: memory, an SQLite file, Redis with each client that fits. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster, Redis } from 'ioredis'
import { memoryStore, redisStore, sqliteStore, type RedisStoreOptions, type Store } from 'koa-with-auth/stores'
import { createClient, createCluster, RESP_TYPES } from 'redis'
import { afterAll, beforeAll, describe } from 'vitest'
import { hasAllCases } from '../runs/samples.js'
import { redisDatabase, type RedisDatabase } from '../servers/redisDatabase.js'
import { describeWithRedis, redisServer } from '../servers/redisServer.js'

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

/** Waits until what was written for this time, before this call, is over: a session that is written for as long is gone. */
export const outlived = async (store: Store, lifetime: number): Promise<void> => {
  const id = randomUUID()
  await store.insert(id, 'a witness', lifetime)
  while ((await store.get([id]))[0] !== undefined) await new Promise((resolve) => setTimeout(resolve, 2))
}

/** A file for one suite, in its own folder. */
export const sqliteFile = (): (() => string) => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-sqlite-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return () => `file:${join(folder, 'sessions.db')}`
}

/** Runs a suite on memory and on an SQLite file. */
const describeEmbedded = (suite: (store: () => Store, name: string) => void): void => {
  describe('memoryStore', () => {
    const store = memoryStore()
    suite(() => store, 'memoryStore')
  })
  describeSqlite(suite)
}

const describeSqlite = (suite: (store: () => Store, name: string) => void): void => {
  describe('sqliteStore', () => {
    const url = sqliteFile()
    const store = sqliteStore({ url: url() })
    afterAll(() => store.close())
    suite(() => store, 'sqliteStore')
  })
}

const describeClient = (
  name: string,
  connect: (server: RedisDatabase) => Promise<Connected>,
  server: () => RedisDatabase,
  suite: (store: () => Store, name: string) => void,
): void => {
  describe(name, () => {
    let connected: Connected | undefined
    let store: Store | undefined
    beforeAll(async () => {
      connected = await connect(server())
      store = redisStore({ command: connected.command })
    })
    afterAll(async () => {
      await connected?.disconnect()
    })
    suite(() => store!, name)
  })
}

/** A suite on Redis, with two clients. With all cases: with every client, also on a cluster. */
export const describeClients = (
  name: string,
  suite: (name: string, connect: (server: RedisDatabase) => Promise<Connected>, server: () => RedisDatabase) => void,
): void => {
  describeWithRedis(name, () => {
    const server = redisDatabase()
    const all = Object.entries(clients)
    const some = all.filter(([client]) => hasAllCases || client === 'ioredis' || client.endsWith('RESP3'))
    for (const [client, connect] of some) suite(client, connect, server)
  })
  if (!hasAllCases) return
  describeWithRedis(`${name} on a cluster`, () => {
    const server = redisServer({ cluster: true })
    for (const [client, connect] of Object.entries(clusterClients)) suite(client, connect, server)
  })
}

/** Runs a suite on every store, and on Redis with several clients. */
export const describeEveryStore = (suite: (store: () => Store, name: string) => void): void => {
  describeEmbedded(suite)
  describeClients('redisStore', (name, connect, server) => describeClient(name, connect, server, suite))
}

/** Runs a suite on SQLite and on Redis, the stores for production. */
export const describeLastingStores = (suite: (store: () => Store) => void): void => {
  describeSqlite(suite)
  describeWithRedis('redisStore', () => {
    describeClient('the official client', ({ url }) => official(url, 3), redisDatabase(), suite)
  })
}

/** Runs a suite on memory, on SQLite, and on Redis by one client. */
export const describeEveryOther = (suite: (store: () => Store) => void): void => {
  describeEmbedded(suite)
  describeWithRedis('redisStore', () => {
    describeClient('the official client', ({ url }) => official(url, 3), redisDatabase(), suite)
  })
}
