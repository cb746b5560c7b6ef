/** The stores of a site that runs as a separate program, by the name in its environment. */
import { Cluster, Redis } from 'ioredis'
import { redisStore, sqliteStore, type Store } from 'koa-with-auth/stores'
import { createClient, createCluster } from 'redis'
import { aroundStore } from '../stores/aroundStore.js'

type Env = Readonly<Record<string, string | undefined>>
type Failed = (where: string, error: unknown) => void

const host = '127.0.0.1'
const retry = (times: number): number => Math.min(times * 100, 1000)

const makers: Readonly<Record<string, (env: Env) => Store | Promise<Store>>> = {
  sqlite: ({ SQLITE_URL = '' }) => sqliteStore({ url: SQLITE_URL }),
  // The next two follow the docstring of `redisStore`
  redis: async ({ REDIS_PORT }) => {
    const client = createClient({
      disableOfflineQueue: true,
      socket: { host, port: Number(REDIS_PORT), connectTimeout: 2000, socketTimeout: 3000, reconnectStrategy: retry },
    })
    client.on('error', () => {})
    await client.connect()
    setInterval(() => {
      const overdue = setTimeout(() => {
        client.destroy()
        client.connect().catch(() => {})
      }, 2000)
      void client
        .ping()
        .catch(() => {})
        .finally(() => clearTimeout(overdue))
    }, 1000)
    return redisStore({ command: (args) => client.sendCommand(args) })
  },
  ioredis: async ({ REDIS_PORT }) => {
    const client = new Redis(Number(REDIS_PORT), host, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 1,
      connectTimeout: 2000,
      socketTimeout: 3000,
      retryStrategy: retry,
    })
    client.on('error', () => {})
    await new Promise((resolve) => client.once('ready', resolve))
    return redisStore({ command: ([name = '', ...rest]) => client.call(name, ...rest) })
  },
  // The next two follow the guide "How far it goes"
  'redis cluster': async ({ REDIS_PORTS = '' }) => {
    const cluster = createCluster({
      rootNodes: REDIS_PORTS.split(' ').map((port) => ({ socket: { host, port: Number(port) } })),
      defaults: {
        disableOfflineQueue: true,
        socket: { connectTimeout: 1000, socketTimeout: 1000, reconnectStrategy: retry },
      },
      topologyRefreshOnReconnectionAttemptStrategy: 250,
      maxCommandRedirections: 3,
    })
    cluster.on('error', () => {})
    await cluster.connect()
    // A redirection makes the client ask which node has which slots; nothing else makes it notice a silent master
    setInterval(() => {
      cluster.sendCommand(undefined, true, ['GET', String(Math.random())]).catch(() => {})
    }, 500)
    return redisStore({ command: (args, key) => cluster.sendCommand(key, false, args) })
  },
  'ioredis cluster': async ({ REDIS_PORTS = '' }) => {
    const cluster = new Cluster(
      REDIS_PORTS.split(' ').map((port) => ({ host, port: Number(port) })),
      {
        enableOfflineQueue: false,
        maxRedirections: 3,
        slotsRefreshInterval: 1000,
        redisOptions: { maxRetriesPerRequest: 1, connectTimeout: 1000, socketTimeout: 1000 },
      },
    )
    cluster.on('error', () => {})
    await new Promise((resolve) => cluster.once('ready', resolve))
    return redisStore({ command: ([name = '', ...rest]) => cluster.call(name, ...rest) })
  },
  // Without any recommended setting
  'redis as it comes': async ({ REDIS_PORT }) => {
    const client = createClient({ socket: { host, port: Number(REDIS_PORT) } })
    client.on('error', () => {})
    await client.connect()
    return redisStore({ command: (args) => client.sendCommand(args) })
  },
  'ioredis as it comes': ({ REDIS_PORT }) => {
    const client = new Redis(Number(REDIS_PORT), host)
    client.on('error', () => {})
    return redisStore({ command: ([name = '', ...rest]) => client.call(name, ...rest) })
  },
}

/** A store. It reports how its methods fail. */
export const storeNamed = async (name: string, env: Env, failed: Failed): Promise<Store> => {
  const make = makers[name]
  if (make === undefined) throw new Error(`no store is named ${name}; there are ${Object.keys(makers).join(', ')}`)
  const store = await make(env)
  return aroundStore(
    () => store,
    async (method, _args, ask) => {
      try {
        return await ask()
      } catch (error) {
        failed(method, error)
        throw error
      }
    },
  )
}
