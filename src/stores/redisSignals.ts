/** Signals over a channel of Redis or Valkey: entry point `koa-with-auth/stores`. */
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { MISSED, type Signals } from './signals.js'

/** What sends: a client of `redis` or `ioredis`, for one server or a cluster. */
export interface RedisPublisher {
  publish(channel: string, message: string): Promise<unknown>
}

/** What listens: a second client, because Redis allows no other commands on a connection that listens. */
export interface RedisSubscriber {
  /** Its parameters differ between the clients. */
  readonly subscribe: (...args: never[]) => Promise<unknown>
  readonly on: (...args: never[]) => unknown
}

/** The clients. */
export interface RedisSignalsOptions {
  readonly publisher: RedisPublisher
  /** Only for these signals; `client.duplicate()` makes one. */
  readonly subscriber: RedisSubscriber
  /** The name of the channel. Default `koa-with-auth:ends`. */
  readonly channel?: string | undefined
}

interface Subscriber {
  readonly subscribe: (channel: string, listener?: (message: string) => void) => Promise<unknown>
  readonly on: (event: string, listener: (...args: string[]) => void) => unknown
}

/** What is used of a `Cluster` of ioredis. It says nothing when the connection that it listens with is lost. */
interface Cluster extends Subscriber {
  readonly nodes: () => ReadonlyArray<{ readonly duplicate: (options: object) => Connection }>
}

interface Connection extends Subscriber {
  readonly disconnect: () => void
}

const checks = {
  publisher: is.withMethods(['publish'], 'pass a client of redis or ioredis'),
  subscriber: is.withMethods(['subscribe', 'on'], 'pass a second client, such as client.duplicate()'),
  channel: is.maybe(is.nonEmpty),
}

// When a connection is there again: of one server, and of a cluster by redis
const BACK = ['ready', 'node-ready']

// How long after it has lost its connection a cluster of ioredis is asked for another one, in milliseconds
const AGAIN = 500

/**
 * Signals for `sessions(app, { signals })` and `apiKeys({ signals })`, which may share them, over one channel of Redis. The clients must
 * be connected, and connect again by themselves. When the subscriber comes back, every open end is looked up, because it may have
 * missed messages. Throws a TypeError for clients that cannot work.
 *
 * @example
 * import { redisSignals, type RedisPublisher, type RedisSubscriber } from 'koa-with-auth/stores'
 *
 * declare const publisher: RedisPublisher // createClient() of redis, or new Redis() of ioredis
 * declare const subscriber: RedisSubscriber // publisher.duplicate()
 * const signals = () => redisSignals({ publisher, subscriber })
 */
export const redisSignals = (options: RedisSignalsOptions): Signals => {
  const { publisher, subscriber: given, channel = 'koa-with-auth:ends' } = checkOptions('redisSignals', options, checks)
  // Safe: both clients take these parameters; ioredis is called without a listener
  const subscriber = given as object as Subscriber
  // ioredis takes no listener at `subscribe`: there it is the callback of the command
  const isOfficial = 'pSubscribe' in subscriber
  const isCluster = (one: Subscriber): one is Cluster => !isOfficial && 'nodes' in one
  let isListening = false
  return {
    publish: async (message) => {
      await publisher.publish(channel, message)
    },
    subscribe: async (listener) => {
      const hear = (message: unknown): void => listener(String(message))
      const again = async (): Promise<void> => {
        // in order after what the client sends when it is back, so that nothing is missed in between
        if (!isOfficial) await subscriber.subscribe(channel)
        listener(MISSED)
      }
      const back = (): void => {
        if (isListening) again().catch(() => {})
      }
      if (isCluster(subscriber)) return listenIn(subscriber, channel, hear, () => listener(MISSED))
      if (isOfficial) await subscriber.subscribe(channel, hear)
      else {
        subscriber.on('message', (to, message) => {
          if (to === channel) hear(message)
        })
        await subscriber.subscribe(channel)
      }
      isListening = true
      for (const event of BACK) subscriber.on(event, back)
    },
  }
}

/** Listens with a connection to any node of a cluster, and with another one when that is lost. */
const listenIn = async (cluster: Cluster, channel: string, hear: (message: string) => void, back: () => void) => {
  let connection: Connection | undefined
  let isOver = false
  const connect = async (): Promise<void> => {
    const nodes = cluster.nodes()
    const node = nodes[Math.floor(Math.random() * nodes.length)]
    if (node === undefined) throw new Error('the cluster has no node')
    const made = node.duplicate({ lazyConnect: false, enableOfflineQueue: true, retryStrategy: null })
    connection = made
    made.on('error', () => {})
    made.on('message', (_channel, message) => hear(message))
    await made.subscribe(channel)
    made.on('end', again)
    if (isOver) made.disconnect()
  }
  const again = (): void => {
    if (!isOver) setTimeout(() => void connect().then(back, again), AGAIN).unref()
  }
  cluster.on('end', () => {
    isOver = true
    connection?.disconnect()
  })
  await connect()
}

declareFactory('redisSignals', redisSignals)
