/**
 * API keys in Redis or Valkey, for several processes: entry point `koa-with-auth/keys/redis`.
 *
 * It needs one function that sends a command, so any client fits; `redisStore` of `koa-with-auth/sessions/redis` says how
 * clients are best set up. Every change is one script, so it happens as a whole or not at all; for that all keys are in one
 * slot of a cluster. Let Redis evict none (`maxmemory-policy noeviction`) and write a log (`appendonly yes`): what it loses
 * when it starts again is lost, and with snapshots alone a key that was revoked since the last one is good again.
 */
import { declareFactory } from '../core/hooks.js'
import { checkOptions, hook, maybe, string } from '../core/options.js'
import { isKeyRecord, type KeyRecord, type KeyStore } from './KeyStore.js'

/** How commands are sent. */
export interface RedisKeyStoreOptions {
  /** Sends a command and its arguments; `key` is the one that it concerns, for clusters that must know. */
  readonly command: (args: string[], key: string) => Promise<unknown>
  /** What the names of all keys begin with; for a cluster with a part in braces. Default `{koa-with-auth:keys}:`. */
  readonly prefix?: string | undefined
}

// A record is a hash, whose `made` holds what never changes, as JSON. Each of its digests is a string: until when it is good, a
// blank, the whole record. So a look-up is one GET, and whatever changes a record writes those strings again.
const settle = `local function settle(key, digests, begin)
  local names = {'prefix', 'last4', 'revokedAt', 'rotatedAt', 'lastUsedAt'}
  local record = string.sub(redis.call('HGET', key, 'made'), 1, -2)
  for at, value in ipairs(redis.call('HMGET', key, unpack(names))) do
    if value then record = record .. ',"' .. names[at] .. '":' .. value end
  end
  record = record .. '}'
  redis.call('HSET', key, 'record', record)
  for _, digest in ipairs(redis.call('SMEMBERS', digests)) do
    local limit = string.match(redis.call('GET', begin .. digest) or '', '^%d*')
    redis.call('SET', begin .. digest, limit .. ' ' .. record)
  end
  return 1
end
`

const scripts = {
  insert: `${settle}if redis.call('EXISTS', KEYS[1]) + redis.call('EXISTS', KEYS[2]) > 0 then return 0 end
redis.call('SADD', KEYS[3], ARGV[2])
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('HSET', KEYS[2], unpack(ARGV, 4))
return settle(KEYS[2], KEYS[3], ARGV[3])`,
  list: `local all = {}
for at, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do all[at] = redis.call('HGET', ARGV[1] .. id, 'record') end
return all`,
  rotate: `${settle}local kept = redis.call('HMGET', KEYS[1], 'made', 'revokedAt', 'expiresAt')
local at, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
if not kept[1] or kept[2] or (kept[3] and tonumber(kept[3]) <= at) then return 0 end
if redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
for _, digest in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  local key = ARGV[3] .. digest
  local own = tonumber(string.match(redis.call('GET', key) or '', '^%d+'))
  if own and own <= at then
    redis.call('DEL', key)
    redis.call('SREM', KEYS[2], digest)
  else
    redis.call('SET', key, string.format('%.0f ', math.min(own or limit, limit)))
  end
end
redis.call('SADD', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'prefix', ARGV[5], 'last4', ARGV[6], 'rotatedAt', ARGV[1])
return settle(KEYS[1], KEYS[2], ARGV[3])`,
  revoke: `${settle}if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSETNX', KEYS[1], 'revokedAt', ARGV[1])
return settle(KEYS[1], KEYS[2], ARGV[2])`,
  touch: `${settle}local used = redis.call('HGET', KEYS[1], 'lastUsedAt')
if redis.call('EXISTS', KEYS[1]) == 0 or (used and tonumber(used) >= tonumber(ARGV[1])) then return 0 end
redis.call('HSET', KEYS[1], 'lastUsedAt', ARGV[1])
return settle(KEYS[1], KEYS[2], ARGV[2])`,
}

const wrong = (): never => {
  throw new TypeError('redisKeyStore({ command }): an answer is none that its scripts give')
}
// clients that are set to can answer buffers
const asString = (value: unknown): string =>
  typeof value === 'string' ? value : Buffer.isBuffer(value) ? value.toString() : wrong()
const isNothing = (value: unknown): value is null | undefined | false =>
  value === null || value === undefined || value === false

const recordOf = (answer: unknown): KeyRecord => {
  const record: unknown = JSON.parse(asString(answer))
  return typeof record === 'object' && record !== null && isKeyRecord(record) ? record : wrong()
}

const checks = { command: hook(2), prefix: maybe(string) }

/**
 * A store in Redis. Rejects with what `command` rejects with. TypeError for options that cannot work.
 *
 * @example
 * import { redisKeyStore } from 'koa-with-auth/keys/redis'
 *
 * declare const client: { sendCommand: (args: string[]) => Promise<unknown> } // createClient() of redis
 * declare const cluster: { sendCommand: (key: string, isReadonly: boolean, args: string[]) => Promise<unknown> } // createCluster()
 * declare const io: { call: (name: string, ...args: string[]) => Promise<unknown> } // new Redis() or new Cluster() of ioredis
 * const official = () => redisKeyStore({ command: (args) => client.sendCommand(args) })
 * const officialCluster = () => redisKeyStore({ command: (args, key) => cluster.sendCommand(key, false, args) })
 * const ioredis = () => redisKeyStore({ command: ([name = '', ...rest]) => io.call(name, ...rest) })
 */
export const redisKeyStore = (options: RedisKeyStoreOptions): KeyStore => {
  const { command, prefix: begin = '{koa-with-auth:keys}:' } = checkOptions('redisKeyStore', options, checks)
  const [digests, records] = [`${begin}digest:`, `${begin}key:`]
  const run = (script: keyof typeof scripts, keys: ReadonlyArray<string>, ...args: string[]): Promise<unknown> =>
    command(['EVAL', scripts[script], String(keys.length), ...keys, ...args], keys[0] ?? begin)
  const get = (key: string): Promise<unknown> => command(['GET', key], key)
  const getAll = async (keys: readonly [string, ...string[]]): Promise<ReadonlyArray<unknown>> => {
    const answers = await command(['MGET', ...keys], keys[0])
    return Array.isArray(answers) ? answers : wrong()
  }
  const changed = async (answer: Promise<unknown>): Promise<boolean> => Number(await answer) === 1
  const digestsOf = (id: string): string => `${begin}digests:${id}`
  return {
    insert: (digest, { prefix, last4, revokedAt, rotatedAt, lastUsedAt, ...made }) => {
      const { id, owner, expiresAt } = made
      const kept = { prefix, last4, expiresAt, revokedAt, rotatedAt, lastUsedAt, made }
      const hash = Object.entries(kept).flatMap(([name, value]) =>
        value === undefined ? [] : [name, JSON.stringify(value)],
      )
      const keys = [digests + digest, records + id, digestsOf(id), `${begin}owner:${owner}`]
      return changed(run('insert', keys, id, digest, digests, ...hash))
    },
    find: async (asked) => {
      const [first = '', ...others] = asked.map((digest) => digests + digest)
      const answers = others.length === 0 ? [await get(first)] : await getAll([first, ...others])
      const answer = answers.find((one) => !isNothing(one))
      if (answer === undefined) return undefined
      const [, until = '', record] = /^(\d*) (.*)$/s.exec(asString(answer)) ?? wrong()
      return { record: recordOf(record), ...(until !== '' && { until: Number(until) }) }
    },
    list: async (owner) => {
      const answer = await run('list', [`${begin}owner:${owner}`], records)
      return Array.isArray(answer) ? answer.map(recordOf) : wrong()
    },
    rotate: (id, { digest, prefix, last4, at, until }) => {
      const keys = [records + id, digestsOf(id), digests + digest]
      const begins = [JSON.stringify(prefix), JSON.stringify(last4)]
      return changed(run('rotate', keys, String(at), String(until), digests, digest, ...begins))
    },
    revoke: (id, at) => changed(run('revoke', [records + id, digestsOf(id)], String(at), digests)),
    touch: async (id, at) => {
      await run('touch', [records + id, digestsOf(id)], String(at), digests)
    },
  }
}

declareFactory('redisKeyStore', redisKeyStore)
