/**
 * Passkeys in Redis or Valkey, for several processes: entry point `koa-with-auth/redis`.
 *
 * `redisStore` of `koa-with-auth/redis` says how to set up clients. Redis must not evict keys (`maxmemory-policy noeviction`), and
 * should write a log (`appendonly yes`): a passkey that it loses signs in no more.
 */
import { declareFactory } from '../../core/options.js'
import { hashOf, redisAnswers, redisOptionsOf, redisScripts, type RedisScriptOptions } from '../../stores/redis.js'
import { isPasskeyRecord, type PasskeyRecord, type PasskeyStore } from './PasskeyStore.js'

// A passkey is a hash. `made` is the JSON that never changes, `user` finds its set, and the other fields are those of a use
const fields = `'made', 'counter', 'backupEligible', 'backedUp', 'lastUsedAt'`
const scripts = {
  add: `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1`,
  ofUser: `local all = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local key = ARGV[1] .. id
  if redis.call('EXISTS', key) == 1 then all[#all + 1] = redis.call('HMGET', key, ${fields}) end
end
return all`,
  update: `local kept, now = tonumber(redis.call('HGET', KEYS[1], 'counter')), tonumber(ARGV[1])
if not kept or (now <= kept and (now > 0 or kept > 0)) then return 0 end
local used = tonumber(redis.call('HGET', KEYS[1], 'lastUsedAt') or '0')
redis.call('HSET', KEYS[1], 'counter', ARGV[1], 'backupEligible', ARGV[2], 'backedUp', ARGV[3])
if tonumber(ARGV[4]) > used then redis.call('HSET', KEYS[1], 'lastUsedAt', ARGV[4]) end
return 1`,
  remove: `if redis.call('HGET', KEYS[1], 'user') ~= ARGV[2] then return 0 end
redis.call('SREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])`,
}

const names = fields.replaceAll(`'`, '').split(', ')

const { wrong, asString, isNothing } = redisAnswers('redisPasskeyStore')

const recordOf = (answer: unknown): PasskeyRecord | undefined => {
  if (!Array.isArray(answer) || answer.length !== names.length) return wrong()
  const [made, counter, backupEligible, backedUp, lastUsedAt] = answer.map((one) =>
    isNothing(one) ? undefined : JSON.parse(asString(one)),
  ) as ReadonlyArray<unknown> // Safe: JSON is unknown until it is checked
  if (made === undefined) return undefined
  if (typeof made !== 'object' || made === null) return wrong()
  const record = { ...made, counter, backupEligible, backedUp, ...(lastUsedAt !== undefined && { lastUsedAt }) }
  return isPasskeyRecord(record) ? record : wrong()
}

/**
 * A store in Redis. Rejects if `command` rejects. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { redisPasskeyStore } from 'koa-with-auth/redis'
 *
 * declare const client: { sendCommand: (args: string[]) => Promise<unknown> } // of redis; see redisStore for others
 * const make = () => redisPasskeyStore({ command: (args) => client.sendCommand(args) })
 */
export const redisPasskeyStore = (options: RedisScriptOptions): PasskeyStore => {
  const given = redisOptionsOf('redisPasskeyStore', options, '{koa-with-auth:passkeys}:')
  const { command, prefix } = given
  const { run, change } = redisScripts(scripts, given)
  const passkeyKey = (id: string) => `${prefix}passkey:${id}`
  const userKey = (user: string) => `${prefix}user:${user}`
  return {
    add: ({ counter, backupEligible, backedUp, lastUsedAt, ...made }) => {
      const hash = hashOf({ made, counter, backupEligible, backedUp, lastUsedAt })
      const { id, user } = made
      return change('add', [passkeyKey(id), userKey(user)], id, 'user', user, ...hash)
    },
    byId: async (id) => {
      const record = recordOf(await command(['HMGET', passkeyKey(id), ...names], passkeyKey(id)))
      // a client whose connection is out of step returns the answer of another command
      return record === undefined || record.id === id ? record : wrong()
    },
    ofUser: async (user) => {
      const answer = await run('ofUser', [userKey(user)], passkeyKey(''))
      const records = Array.isArray(answer) ? answer.flatMap((one) => recordOf(one) ?? []) : wrong()
      return records.every((one) => one.user === user) ? records : wrong()
    },
    update: (id, { counter, backupEligible, backedUp }, at) =>
      change('update', [passkeyKey(id)], String(counter), String(backupEligible), String(backedUp), String(at)),
    remove: (id, user) => change('remove', [passkeyKey(id), userKey(user)], id, user),
  }
}

declareFactory('redisPasskeyStore', redisPasskeyStore)
