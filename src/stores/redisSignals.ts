/** Signals over a channel of Redis or Valkey: entry point `koa-with-auth/redis`. */
import { checkOptions, declareFactory, maybe, nonEmpty, withMethods } from '../core/options.js'
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

const checks = {
  publisher: withMethods(['publish'], 'pass a client of redis or ioredis'),
  subscriber: withMethods(['subscribe', 'on'], 'pass a second client, such as client.duplicate()'),
  channel: maybe(nonEmpty),
}

// When a connection is there again: of one server, and of a cluster by redis
const BACK = ['ready', 'node-ready']

/**
 * Signals for `sessions(app, { signals })` and `apiKeys({ signals })`, which may share them, over one channel of Redis. The clients must
 * be connected, and connect again by themselves. When the subscriber comes back, every open end is looked up, because it may have
 * missed messages. A `Cluster` of ioredis does not say that it is back: what was missed ends at its own time. Throws a TypeError for clients that cannot work.
 *
 * @example
 * import { redisSignals, type RedisPublisher, type RedisSubscriber } from 'koa-with-auth/redis'
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

declareFactory('redisSignals', redisSignals)
