/** Signals over a channel of Redis or Valkey: entry point `koa-with-auth/stores`. */
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { MISSED, type Signals } from './signals.js'

/** A client of `redis` or `ioredis` that sends, for a server or a cluster. */
export interface RedisPublisher {
  publish(channel: string, message: string): Promise<unknown>
}

/** A second client that listens, because Redis allows no other commands on such a connection. */
export interface RedisSubscriber {
  /** Its parameters differ between the clients. */
  readonly subscribe: (...args: never[]) => Promise<unknown>
  readonly on: (...args: never[]) => unknown
}

/** The clients. */
export interface RedisSignalsOptions {
  readonly publisher: RedisPublisher
  /** A connection for these signals alone; `client.duplicate()` makes it. */
  readonly subscriber: RedisSubscriber
  /** The name of the channel. Default `koa-with-auth:ends`. */
  readonly channel?: string | undefined
}

interface Subscriber {
  readonly subscribe: (channel: string, listener?: (message: string) => void) => Promise<unknown>
  readonly on: (event: string, listener: (...args: string[]) => void) => unknown
  // of redis, without those of a cluster
  readonly destroy?: () => void
  readonly connect?: () => Promise<unknown>
  /** Of ioredis. */
  readonly disconnect?: (isReconnecting: boolean) => void
}

/** The part of a `Cluster` of ioredis that is used. It says nothing when the connection that it listens with is lost. */
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

// How long after it has lost its connection a cluster of ioredis is asked for another connection, in milliseconds
const RECONNECT_AFTER = 500

/**
 * Signals for `sessions(app, { signals })` and `apiKeys({ signals })`, which may share them, over one channel of Redis. The clients must
 * be connected, and connect again by themselves. When the subscriber comes back, every open end is looked up, because it may have
 * missed messages. A subscriber that hears nothing is connected anew. Throws a TypeError for clients that cannot work.
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
  let told: (message: string) => void = () => {}
  // one function, because the client of redis calls each that it was given
  const hear = (message: unknown): void => told(String(message))
  const connect = isCluster(subscriber)
    ? clusterListener(subscriber, channel, hear)
    : serverListener(subscriber, channel, hear)
  return {
    publish: async (message) => void (await publisher.publish(channel, message)),
    subscribe: (listener) => {
      told = listener
      return connect()
    },
  }
}

const isOfficial = (client: Subscriber): boolean => 'pSubscribe' in client

const isCluster = (client: Subscriber): client is Cluster => !isOfficial(client) && 'nodes' in client

/** Listens to a server, or to a cluster by redis. When it is called again, it connects anew. */
const serverListener = (subscriber: Subscriber, channel: string, hear: (message: string) => void) => {
  // ioredis takes no listener at `subscribe`: there it is the callback of the command
  const listener = isOfficial(subscriber) ? hear : undefined
  // ioredis sends it after its own commands when it is back, so that nothing is missed in between
  const subscribe = () => (listener ? subscriber.subscribe(channel, listener) : subscriber.subscribe(channel))
  let isCalled = false
  let isListening = false
  const back = (): void => {
    if (!isListening) return
    void (listener ? Promise.resolve() : subscribe()).then(
      () => hear(MISSED),
      () => {},
    )
  }
  for (const event of BACK) subscriber.on(event, back)
  if (listener === undefined) subscriber.on('message', (to, message) => void (to === channel && hear(message)))
  return async (): Promise<void> => {
    if (isCalled) await reconnected(subscriber)
    isCalled = true
    await subscribe()
    isListening = true
  }
}

// Its connection is silent, so it would say nothing on it either
const reconnected = async (subscriber: Subscriber): Promise<void> => {
  if (!isOfficial(subscriber)) subscriber.disconnect?.(true)
  else if (subscriber.destroy !== undefined && !('masters' in subscriber)) {
    subscriber.destroy()
    await subscriber.connect?.()
  }
}

/** Listens with a connection to any node of a cluster of ioredis, and with another connection when that is lost. */
const clusterListener = (cluster: Cluster, channel: string, hear: (message: string) => void) => {
  let connection: Connection | undefined
  let isOver = false
  const connect = async (): Promise<void> => {
    const nodes = cluster.nodes()
    const node = nodes[Math.floor(Math.random() * nodes.length)]
    if (node === undefined) throw new Error('the cluster has no node')
    const made = node.duplicate({ lazyConnect: false, enableOfflineQueue: true, retryStrategy: null })
    made.on('error', () => {})
    made.on('message', (_channel, message) => hear(message))
    await made.subscribe(channel)
    connection = made
    made.on('end', again)
    if (isOver) made.disconnect()
  }
  const again = (): void => {
    if (!isOver) setTimeout(() => void connect().then(() => hear(MISSED), again), RECONNECT_AFTER).unref()
  }
  cluster.on('end', () => {
    isOver = true
    connection?.disconnect()
  })
  // the end of a connection is the beginning of another connection
  return async (): Promise<void> => (connection === undefined ? connect() : connection.disconnect())
}

declareFactory('redisSignals', redisSignals)
