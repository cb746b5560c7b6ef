/**
 * Sessions in Redis or Valkey, for several processes: entry point `koa-with-auth/redis`.
 *
 * In a cluster, every command uses one key. The guide "How far it goes" shows how to configure its clients. A server that says that it
 * is in no cluster is asked for a session and the mark of its user in one command.
 *
 * Redis deletes expired keys by itself. It must not evict others (`maxmemory-policy noeviction`). Data that Redis loses at a restart is
 * gone. Without persistence, everybody is signed out. With snapshots only, users who signed out since the last snapshot are signed in
 * again. So let Redis write a log (`appendonly yes`).
 */
import { declareFactory } from '../core/options.js'
import { redisAnswers, redisOptionsOf, type RedisOptions } from '../stores/redis.js'
import { answeringBoth, atTheSameTime, type SessionStore } from './SessionStore.js'

/** How commands are sent. */
export interface RedisStoreOptions extends RedisOptions {
  /**
   * The prefix of all keys. For a cluster, it must not contain braces, because they would put all sessions into one slot. Default
   * `koa-with-auth:`.
   */
  readonly prefix?: string | undefined
}

// A session is stored as `+` and its text, or as `-` after it was ended, so that one script can distinguish them
const live = '+'
const ended = '-'
const update = `local kept = redis.call('GET', KEYS[1])
if not kept or string.sub(kept, 1, 1) ~= '${live}' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

const enlist = `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2])
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return 1`

const { asString, isNothing } = redisAnswers('redisStore')
const keptIn = (kept: unknown): string | undefined => (isNothing(kept) ? undefined : asString(kept))

const liveIn = (kept = ''): string | undefined => (kept.startsWith(live) ? kept.slice(live.length) : undefined)
const markIn = (kept = ''): string => kept

const milliseconds = (lifetime: number): string => String(Math.max(1, Math.ceil(lifetime)))

/**
 * A store in Redis. Rejects if `command` rejects. Throws a TypeError for options that cannot work.
 *
 * Clients connect again by themselves. While they are not connected, commands should fail immediately: a command that
 * waits in a queue runs late, after its request was answered with 503. They should try again every second. You must
 * listen to their `error` event, or it ends the process. With `retry = (times: number) => Math.min(times * 100, 1000)`:
 *
 *     createClient({ url, disableOfflineQueue: true,
 *       socket: { connectTimeout: 2000, socketTimeout: 3000, reconnectStrategy: retry } })
 *     new Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1,
 *       connectTimeout: 2000, socketTimeout: 3000, retryStrategy: retry })
 *
 * If a connection goes silent because its server is gone, ioredis notices. The official client notices it only when it is idle.
 * Send it a `ping()` each second. If one takes 2 seconds, call `destroy()` and `connect()`.
 *
 * @example
 * import { redisStore } from 'koa-with-auth/redis'
 *
 * declare const client: { sendCommand: (args: string[]) => Promise<unknown> } // createClient() of redis
 * declare const cluster: { sendCommand: (key: string, isReadonly: boolean, args: string[]) => Promise<unknown> } // createCluster()
 * declare const io: { call: (name: string, ...args: string[]) => Promise<unknown> } // new Redis() or new Cluster() of ioredis
 * const official = () => redisStore({ command: (args) => client.sendCommand(args) })
 * const officialCluster = () => redisStore({ command: (args, key) => cluster.sendCommand(key, false, args) })
 * const ioredis = () => redisStore({ command: ([name = '', ...rest]) => io.call(name, ...rest) })
 */
export const redisStore = (options: RedisStoreOptions): SessionStore => {
  const { command, prefix } = redisOptionsOf('redisStore', options, 'koa-with-auth:')
  const sessionKey = (id: string) => `${prefix}session:${id}`
  const listKey = (user: string) => `${prefix}list:${user}`
  const userKey = (user: string) => `${prefix}user:${user}`
  const read = async <A>(key: string, as: (kept: string | undefined) => A): Promise<A> =>
    as(keptIn(await command(['GET', key], key)))
  const write = async (key: string, text: string, lifetime: number, ...flags: string[]): Promise<void> => {
    await command(['SET', key, text, 'PX', milliseconds(lifetime), ...flags], key)
  }
  const store: SessionStore = {
    read: (id) => read(sessionKey(id), liveIn),
    insert: (id, text, lifetime) => write(sessionKey(id), live + text, lifetime, 'NX'),
    update: async (id, text, lifetime) => {
      const key = sessionKey(id)
      return Number(await command(['EVAL', update, '1', key, live + text, milliseconds(lifetime)], key)) === 1
    },
    end: (id, lifetime) => write(sessionKey(id), ended, lifetime),
    markOf: (user) => read(userKey(user), markIn),
    mark: (user, mark, lifetime) => write(userKey(user), mark, lifetime),
    spend: async (id, lifetime) => {
      const key = sessionKey(id)
      const set = await command(['SET', key, live, 'PX', milliseconds(lifetime), 'NX'], key)
      return String(set) === 'OK'
    },
    enlist: async (user, entry, lifetime) => {
      const key = listKey(user)
      const now = Date.now()
      await command(['EVAL', enlist, '1', key, entry, String(now), String(now + lifetime), milliseconds(lifetime)], key)
    },
    listed: async (user) => {
      const key = listKey(user)
      const entries = await command(['ZRANGEBYSCORE', key, `(${Date.now()}`, '+inf'], key)
      if (!Array.isArray(entries))
        throw new TypeError('redisStore({ command }): ZRANGEBYSCORE must resolve to an array')
      return entries.map(String)
    },
  }
  const apart = atTheSameTime(store)
  // Whether it is in no cluster, so that one node has both keys; `undefined` if it was not asked. Without an answer they are asked for apart
  let isAlone: boolean | undefined
  const findWhetherAlone = async (): Promise<void> => {
    isAlone = false
    isAlone = /^cluster_enabled:0/m.test(String(await command(['INFO', 'cluster'], prefix)))
  }
  return answeringBoth(store, async (id, cookie) => {
    const user = cookie.likelyUser()
    if (isAlone === undefined) findWhetherAlone().catch(() => undefined)
    if (isAlone !== true || user === undefined) return apart(id, cookie)
    const key = sessionKey(id)
    const kept = await command(['MGET', key, userKey(user)], key).catch(() => undefined)
    if (!Array.isArray(kept)) {
      isAlone = undefined
      return apart(id, cookie)
    }
    const mark = markIn(keptIn(kept[1]))
    return { text: liveIn(keptIn(kept[0])), markOf: (one) => (one === user ? mark : undefined) }
  })
}

declareFactory('redisStore', redisStore)
