/**
 * Every store of one kind with its real database: memory, an SQLite file, Redis by the clients that fit, with all cases
 * also as a cluster.
 */
import { afterAll, beforeAll, describe } from 'vitest'
import type { RedisDatabase } from '../servers/redisDatabase.js'
import { describeClients, sqliteFile, type Connected } from './sessionStores.js'

/** A suite for every store. */
export type Suite<S> = (store: () => S, name: string) => void

/** How the stores of a kind are made. */
interface Makers<S> {
  readonly memory: () => S
  readonly sqlite: (options: { readonly url: string }) => S & { readonly close: () => void }
  readonly redis: (options: { readonly command: Connected['command']; readonly prefix: string }) => S
}

const describeClient = <S>(
  name: string,
  connect: (server: RedisDatabase) => Promise<Connected>,
  server: () => RedisDatabase,
  redis: Makers<S>['redis'],
  suite: Suite<S>,
): void => {
  describe(name, () => {
    let connected: Connected | undefined
    let store: S | undefined
    beforeAll(async () => {
      connected = await connect(server())
      // So that they do not share keys on one server
      store = redis({ command: connected.command, prefix: `{${name}}:` })
    })
    afterAll(async () => {
      await connected?.disconnect()
    })
    suite(() => store!, name)
  })
}

/** Runs a suite on every store of a kind, such as `Store`, and on Redis with several clients. */
export const describeEveryStore = <S>(kind: string, { memory, sqlite, redis }: Makers<S>, suite: Suite<S>): void => {
  describe(`memory${kind}`, () => {
    const store = memory()
    suite(() => store, `memory${kind}`)
  })
  describe(`sqlite${kind}`, () => {
    const store = sqlite({ url: sqliteFile()() })
    afterAll(() => store.close())
    suite(() => store, `sqlite${kind}`)
  })
  describeClients(`redis${kind}`, (name, connect, server) => describeClient(name, connect, server, redis, suite))
}
