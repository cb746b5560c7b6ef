/**
 * Every store of passkeys with its real database: memory, an SQLite file, Redis by each client that fits, alone and as
 * a cluster.
 */
import { memoryPasskeyStore, type PasskeyStore } from 'koa-with-auth/sign-in/passkeys'
import { redisPasskeyStore } from 'koa-with-auth/sign-in/passkeys/redis'
import { sqlitePasskeyStore } from 'koa-with-auth/sign-in/passkeys/sqlite'
import { afterAll, beforeAll, describe } from 'vitest'
import { describeWithRedis, redisServer, type RedisServer } from '../servers/redisServer.js'
import { clients, clusterClients, sqliteFile, type Connected } from './sessionStores.js'

type Suite = (store: () => PasskeyStore, name: string) => void

const describeClient = (
  name: string,
  connect: (server: RedisServer) => Promise<Connected>,
  server: () => RedisServer,
  suite: Suite,
): void => {
  describe(name, () => {
    let connected: Connected | undefined
    let store: PasskeyStore | undefined
    beforeAll(async () => {
      connected = await connect(server())
      // So that they do not share keys on one server
      store = redisPasskeyStore({ command: connected.command, prefix: `{${name}}:` })
    }, 20_000)
    afterAll(async () => {
      await connected?.disconnect()
    })
    suite(() => store!, name)
  })
}

/** Runs a suite on every store, and on Redis with every client. */
export const describeEveryPasskeyStore = (suite: Suite): void => {
  describe('memoryPasskeyStore', () => {
    const store = memoryPasskeyStore()
    suite(() => store, 'memoryPasskeyStore')
  })
  describe('sqlitePasskeyStore', () => {
    const store = sqlitePasskeyStore({ url: sqliteFile()() })
    afterAll(() => store.close())
    suite(() => store, 'sqlitePasskeyStore')
  })
  for (const cluster of [false, true]) {
    describeWithRedis(cluster ? 'redisPasskeyStore on a cluster' : 'redisPasskeyStore', () => {
      const server = redisServer({ cluster })
      for (const [name, connect] of Object.entries(cluster ? clusterClients : clients)) {
        describeClient(name, connect, server, suite)
      }
    })
  }
}
