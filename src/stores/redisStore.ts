/**
 * A store in Redis or Valkey: entry point `koa-with-auth/stores`.
 *
 * Texts are kept as `+` and the string, or as `-` after its key was ended, so that one script can distinguish them. A set is a sorted set,
 * with the end of each member as its score. All times are those of Redis.
 */
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { isLost, otherwiseIf } from './failures.js'
import { wellFormed } from './sql.js'
import { fewAtOnce, wholeLifetime, type Store } from './Store.js'

/** How commands are sent. */
export interface RedisStoreOptions {
  /** Sends a command and its arguments. `key` is the key of the command, which clients of a cluster need. */
  readonly command: (args: string[], key: string) => Promise<unknown>
}

const updateScript = `local kept = redis.call('GET', KEYS[1])
if not kept or string.sub(kept, 1, 1) ~= '+' or (ARGV[3] and kept ~= ARGV[3]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

const endScript = `if redis.call('GET', KEYS[1]) == '-' and redis.call('PTTL', KEYS[1]) >= tonumber(ARGV[1]) then return 1 end
redis.call('SET', KEYS[1], '-', 'PX', ARGV[1])
return 1`

// A member is live as long as a key with this time would be
const clock = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

// In decimal digits, because a long number would be written with an exponent
const addScript = `${clock}redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local until_ = now + ARGV[2]
local before = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not before or tonumber(before) < until_ then redis.call('ZADD', KEYS[1], string.format('%.0f', until_), ARGV[1]) end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1`

const membersScript = `${clock}return redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')`

const CALLER = 'redisStore'

const throwWrongValue = (): never => {
  throw new TypeError(`${CALLER}({ command }): it resolved to a value that this store never wrote`)
}

// Clients can be set up to return buffers
const replyText = (value: unknown): string =>
  typeof value === 'string' ? value : Buffer.isBuffer(value) ? value.toString() : throwWrongValue()

const isNothing = (value: unknown): boolean => value === null || value === undefined || value === false

const keptTextIn = (kept: unknown): string | undefined => {
  if (isNothing(kept)) return undefined
  const text = replyText(kept)
  if (text === '-') return undefined
  return text.startsWith('+') ? text.slice(1) : throwWrongValue()
}

const flagIn = (answer: unknown): boolean => {
  const flag = Number(answer)
  return flag === 1 || flag === 0 ? flag === 1 : throwWrongValue()
}

const replyList = (answer: unknown): ReadonlyArray<unknown> => (Array.isArray(answer) ? answer : throwWrongValue())

const redisTextKey = (key: string): string => `koa-with-auth:text:${wellFormed(key)}`
const setKey = (set: string): string => `koa-with-auth:set:${wellFormed(set)}`

interface Server {
  readonly command: RedisStoreOptions['command']
  /** Whether it is in no cluster, so that one command may have several keys. `undefined` if it was not asked. */
  isAlone: boolean | undefined
}

const sendCommand = async (self: Server, key: string, ...args: string[]): Promise<unknown> => {
  if (self.isAlone === undefined) askAboutItself(self, key).catch(() => {})
  const answer = await self.command(args, key)
  // some clients resolve to an Error instead of rejecting
  if (answer instanceof Error) throw answer
  return answer
}

// Once. Where INFO is not allowed, nothing is known
const askAboutItself = async (self: Server, key: string): Promise<void> => {
  self.isAlone = false
  const info = replyText(await sendCommand(self, key, 'INFO'))
  self.isAlone = /^cluster_enabled:0/m.test(info)
  const policy = /^maxmemory_policy:([\w-]+)/m.exec(info)?.[1]
  if (policy === undefined || policy === 'noeviction') return
  process.emitWarning(
    `Redis has maxmemory-policy ${policy}: where memory is short, it forgets which sessions were ended, which keys were revoked and which one-time ids were used, so that they work again. Set maxmemory-policy noeviction`,
    'StoreWarning',
  )
}

const readAgain = <A>(ask: () => Promise<A>): Promise<A> => ask().catch(otherwiseIf(isLost, ask))

const getTexts = async (self: Server, keys: ReadonlyArray<string>): Promise<ReadonlyArray<unknown>> => {
  const [first = '', ...more] = keys
  if (more.length === 0) return [await sendCommand(self, first, 'GET', first)]
  if (self.isAlone !== true) return Promise.all(keys.map((key) => sendCommand(self, key, 'GET', key)))
  const texts = replyList(await sendCommand(self, first, 'MGET', ...keys))
  return texts.length === keys.length ? texts : throwWrongValue()
}

const lifetimeText = (lifetime: number): string => String(wholeLifetime(lifetime))

/**
 * A store in Redis or Valkey, by any client. Rejects if `command` rejects; a read that fails because the connection was lost is asked once
 * more. In a cluster each command has one key, so they spread over its slots. Throws a TypeError for options that cannot work.
 *
 * Redis must not evict keys (`maxmemory-policy noeviction`), or ended sessions, revoked keys and used one-time ids work again: with another
 * policy there is one process warning. Data that Redis loses at a restart are gone: with snapshots only, users who signed out since the last
 * snapshot are signed in again. So let it write a log (`appendonly yes`).
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
 * Send it a `ping()` each second. If a `ping()` takes 2 seconds, call `destroy()` and `connect()`.
 *
 * @example
 * import { redisStore } from 'koa-with-auth/stores'
 *
 * declare const client: { sendCommand: (args: string[]) => Promise<unknown> } // createClient() of redis
 * declare const cluster: { sendCommand: (key: string, isReadonly: boolean, args: string[]) => Promise<unknown> } // createCluster()
 * declare const io: { call: (name: string, ...args: string[]) => Promise<unknown> } // new Redis() or new Cluster() of ioredis
 * const official = () => redisStore({ command: (args) => client.sendCommand(args) })
 * const officialCluster = () => redisStore({ command: (args, key) => cluster.sendCommand(key, false, args) })
 * const ioredis = () => redisStore({ command: ([name = '', ...rest]) => io.call(name, ...rest) })
 */
export const redisStore = (options: RedisStoreOptions): Store => {
  const { command } = checkOptions(CALLER, options, { command: is.hook(2) })
  const self: Server = { command, isAlone: undefined }
  const kept = (text: string): string => `+${wellFormed(text)}`
  const run = (script: string, key: string, ...args: string[]) =>
    sendCommand(self, key, 'EVAL', script, '1', key, ...args)
  const get = async (keys: ReadonlyArray<string>): Promise<ReadonlyArray<string | undefined>> => {
    const stored = keys.map(redisTextKey)
    return (await readAgain(() => getTexts(self, stored))).map(keptTextIn)
  }
  return {
    get: fewAtOnce(get),
    insert: async (given, text, lifetime) => {
      const key = redisTextKey(given)
      const set = await sendCommand(self, key, 'SET', key, kept(text), 'PX', lifetimeText(lifetime), 'NX')
      return !isNothing(set) && (replyText(set) === 'OK' || throwWrongValue())
    },
    update: async (key, text, lifetime, was) => {
      const before = was === undefined ? [] : [kept(was)]
      return flagIn(await run(updateScript, redisTextKey(key), kept(text), lifetimeText(lifetime), ...before))
    },
    end: async (key, lifetime) => void flagIn(await run(endScript, redisTextKey(key), lifetimeText(lifetime))),
    add: async (set, member, lifetime) =>
      void flagIn(await run(addScript, setKey(set), wellFormed(member), lifetimeText(lifetime))),
    members: async (set) => replyList(await readAgain(() => run(membersScript, setKey(set)))).map(replyText),
  }
}

declareFactory('redisStore', redisStore)
