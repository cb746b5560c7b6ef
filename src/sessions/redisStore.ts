/**
 * Sessions in Redis or Valkey, for several processes: entry point `koa-with-auth/sessions/redis`.
 *
 * It needs one function that sends a command, so any client fits. Every command concerns one key, so a cluster does, too: the
 * guide "How far it goes" says how its clients are best set up.
 * Redis forgets keys by itself when their time is over; let it evict none (`maxmemory-policy noeviction`). What it loses when it
 * starts again is lost: without persistence everybody is signed out; with snapshots alone who signed out since the last one is
 * signed in again, so let it write a log (`appendonly yes`).
 */
import { declareFactory } from '../core/hooks.js'
import { checkOptions, hook, maybe, string } from '../core/options.js'
import type { SessionStore } from './SessionStore.js'

/** How commands are sent. */
export interface RedisStoreOptions {
  /** Sends a command and its arguments; `key` is the one that it concerns, for clusters that must know. */
  readonly command: (args: string[], key: string) => Promise<unknown>
  /**
   * What the names of all keys begin with. For a cluster without braces, which would put all sessions into one slot.
   * Default `koa-with-auth:`.
   */
  readonly prefix?: string | undefined
}

// A session is kept as `+` and its text, and `-` when it was ended, so that one script can tell them apart
const live = '+'
const ended = '-'
const update = `local kept = redis.call('GET', KEYS[1])
if not kept or string.sub(kept, 1, 1) ~= '${live}' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

const milliseconds = (lifetime: number): string => String(Math.max(1, Math.ceil(lifetime)))

const checks = { command: hook(2), prefix: maybe(string) }

/**
 * A store in Redis. Rejects with what `command` rejects with. TypeError for options that cannot work.
 *
 * Clients connect again by themselves. They should fail at once while they are not connected, for what waits in their queue
 * has been answered with 503 and is done late; they should try again every second; and somebody must listen to their
 * `error` event, or it ends the process. With `retry = (times: number) => Math.min(times * 100, 1000)`:
 *
 *     createClient({ url, disableOfflineQueue: true,
 *       socket: { connectTimeout: 2000, socketTimeout: 3000, reconnectStrategy: retry } })
 *     new Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1,
 *       connectTimeout: 2000, socketTimeout: 3000, retryStrategy: retry })
 *
 * When a connection goes silent, because the machine behind it is gone, ioredis notices; the official client does when it is
 * idle. Send it a `ping()` each second, and when one takes 2 seconds, `destroy()` and `connect()`.
 *
 * @example
 * import { redisStore } from 'koa-with-auth/sessions/redis'
 *
 * declare const client: { sendCommand: (args: string[]) => Promise<unknown> } // createClient() of redis
 * declare const cluster: { sendCommand: (key: string, isReadonly: boolean, args: string[]) => Promise<unknown> } // createCluster()
 * declare const io: { call: (name: string, ...args: string[]) => Promise<unknown> } // new Redis() or new Cluster() of ioredis
 * const official = () => redisStore({ command: (args) => client.sendCommand(args) })
 * const officialCluster = () => redisStore({ command: (args, key) => cluster.sendCommand(key, false, args) })
 * const ioredis = () => redisStore({ command: ([name = '', ...rest]) => io.call(name, ...rest) })
 */
export const redisStore = (options: RedisStoreOptions): SessionStore => {
  const { command, prefix = 'koa-with-auth:' } = checkOptions('redisStore', options, checks)
  const sessionKey = (id: string) => `${prefix}session:${id}`
  const userKey = (user: string) => `${prefix}user:${user}`
  const read = async (key: string): Promise<string | undefined> => {
    const kept = await command(['GET', key], key)
    if (kept === null || kept === undefined) return undefined
    // clients can be set up to return buffers
    const text = Buffer.isBuffer(kept) ? kept.toString() : kept
    if (typeof text !== 'string') throw new TypeError('redisStore({ command }): GET must resolve to a string or null')
    return text
  }
  const write = async (key: string, text: string, lifetime: number, ...flags: string[]): Promise<void> => {
    await command(['SET', key, text, 'PX', milliseconds(lifetime), ...flags], key)
  }
  return {
    read: async (id) => {
      const kept = await read(sessionKey(id))
      return kept?.startsWith(live) === true ? kept.slice(live.length) : undefined
    },
    insert: (id, text, lifetime) => write(sessionKey(id), live + text, lifetime, 'NX'),
    update: async (id, text, lifetime) => {
      const key = sessionKey(id)
      return Number(await command(['EVAL', update, '1', key, live + text, milliseconds(lifetime)], key)) === 1
    },
    end: (id, lifetime) => write(sessionKey(id), ended, lifetime),
    markOf: async (user) => (await read(userKey(user))) ?? '',
    mark: (user, mark, lifetime) => write(userKey(user), mark, lifetime),
  }
}

declareFactory('redisStore', redisStore)
