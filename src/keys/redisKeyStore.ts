/**
 * API keys in Redis or Valkey, for several processes: entry point `koa-with-auth/redis`.
 *
 * `redisStore` of `koa-with-auth/redis` says how to set up clients. Redis must not evict keys (`maxmemory-policy noeviction`), and
 * should write a log (`appendonly yes`). Data that it loses at a restart are gone: with snapshots only, a key that was revoked
 * since the last one works again.
 *
 * Data that Redis lost are not made again. If a part of a key is missing, its secrets are unknown. Then `rotate`,
 * `revoke` and `list` reject with an error that begins with `LOST` and says what was done.
 */
import { declareFactory } from '../core/options.js'
import { hashOf, redisAnswers, redisOptionsOf, redisScripts, type RedisScriptOptions } from '../stores/redis.js'
import { isKeyRecord, type FoundKey, type KeyRecord, type KeyStore } from './KeyStore.js'

// Redis runs each script as a whole or not at all.
// A record is a hash. Its field `made` is the JSON that never changes. Each of its digests is a string: the digest, the
// time until which it works, and the whole record, with blanks between. So a look-up is one GET, and each change of a
// record writes these strings again. `limitOf` returns nothing for a digest that Redis has lost, or that another record
// has by now: these are not changed.
const settle = `local function limitOf(begin, digest, made)
  local kept = redis.call('GET', begin .. digest) or ''
  local limit, record = string.match(string.sub(kept, #digest + 2), '^(%d*) (.*)$')
  return record and string.sub(record, 1, #made) == made and limit
end
local function madeOf(key)
  return string.sub(redis.call('HGET', key, 'made'), 1, -2)
end
local function settle(key, digests, begin)
  local names = {'prefix', 'last4', 'revokedAt', 'rotatedAt', 'lastUsedAt'}
  local made = madeOf(key)
  local record = made
  for at, value in ipairs(redis.call('HMGET', key, unpack(names))) do
    if value then record = record .. ',"' .. names[at] .. '":' .. value end
  end
  record = record .. '}'
  redis.call('HSET', key, 'record', record)
  for _, digest in ipairs(redis.call('SMEMBERS', digests)) do
    local limit = limitOf(begin, digest, made)
    if limit then redis.call('SET', begin .. digest, digest .. ' ' .. limit .. ' ' .. record) end
  end
  return 1
end
`

/** A script for each change, and for `list`. */
const scripts = {
  insert: `${settle}if redis.call('EXISTS', KEYS[1]) + redis.call('EXISTS', KEYS[2]) > 0 then return 0 end
redis.call('SADD', KEYS[3], ARGV[2])
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('HSET', KEYS[2], unpack(ARGV, 4))
redis.call('SET', KEYS[1], ARGV[2] .. '  ' .. madeOf(KEYS[2]))
return settle(KEYS[2], KEYS[3], ARGV[3])`,
  list: `local all = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local record = redis.call('HGET', ARGV[1] .. id, 'record')
  if record then all[#all + 1] = record
  elseif redis.call('EXISTS', ARGV[2] .. id) == 1 then
    return redis.error_reply('LOST the record of the key ' .. id .. '; revoke it, so that its secrets are over')
  end
end
return all`,
  rotate: `${settle}local kept = redis.call('HMGET', KEYS[1], 'made', 'revokedAt', 'expiresAt')
local at, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
if redis.call('EXISTS', KEYS[1]) ~= redis.call('EXISTS', KEYS[2]) then
  return redis.error_reply('LOST a part of this key; it was not rotated, revoke it')
end
if not kept[1] or kept[2] or (kept[3] and tonumber(kept[3]) <= at) then return 0 end
if redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
local made = madeOf(KEYS[1])
for _, digest in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  local key = ARGV[3] .. digest
  local text = limitOf(ARGV[3], digest, made)
  local own = text and tonumber(text)
  if not text or (own and own <= at) then
    if text then redis.call('DEL', key) end
    redis.call('SREM', KEYS[2], digest)
  else
    redis.call('SET', key, digest .. string.format(' %.0f ', math.min(own or limit, limit)) .. made)
  end
end
redis.call('SADD', KEYS[2], ARGV[4])
redis.call('SET', KEYS[3], ARGV[4] .. '  ' .. made)
redis.call('HSET', KEYS[1], 'prefix', ARGV[5], 'last4', ARGV[6], 'rotatedAt', ARGV[1])
return settle(KEYS[1], KEYS[2], ARGV[3])`,
  revoke: `${settle}local digests = redis.call('SMEMBERS', KEYS[2])
if redis.call('EXISTS', KEYS[1]) == 0 then
  if #digests == 0 then return 0 end
  for _, digest in ipairs(digests) do
    local kept = redis.call('GET', ARGV[2] .. digest) or ''
    local record = string.match(string.sub(kept, #digest + 2), '^%d* (.*)$')
    if record and cjson.decode(record).id == ARGV[3] then redis.call('DEL', ARGV[2] .. digest) end
  end
  redis.call('DEL', KEYS[2])
  return redis.error_reply('LOST the record of this key; its secrets were deleted')
end
redis.call('HSETNX', KEYS[1], 'revokedAt', ARGV[1])
settle(KEYS[1], KEYS[2], ARGV[2])
if #digests == 0 then
  return redis.error_reply('LOST the digests of this key; it is listed as revoked, but its secrets may still work')
end
return 1`,
  touch: `${settle}local used = redis.call('HGET', KEYS[1], 'lastUsedAt')
if redis.call('EXISTS', KEYS[1]) == 0 or (used and tonumber(used) >= tonumber(ARGV[1])) then return 0 end
redis.call('HSET', KEYS[1], 'lastUsedAt', ARGV[1])
return settle(KEYS[1], KEYS[2], ARGV[2])`,
}

const { wrong, asString, isNothing } = redisAnswers('redisKeyStore')

const recordOf = (answer: unknown): KeyRecord => {
  const record: unknown = JSON.parse(asString(answer))
  return typeof record === 'object' && record !== null && isKeyRecord(record) ? record : wrong()
}

// A client whose connection is out of step returns the answer of another command: it must not be somebody else's key
const foundIn = (digest: string, answer: unknown): FoundKey | undefined => {
  if (isNothing(answer)) return undefined
  const text = asString(answer)
  const begin = digest.length + 1
  if (!text.startsWith(`${digest} `))
    throw new TypeError('redisKeyStore({ command }): it resolved to the answer of another command')
  const blank = text.indexOf(' ', begin)
  const record = recordOf(text.slice(blank + 1))
  return blank === begin ? { record } : { record, until: timeIn(text.slice(begin, blank)) }
}

const timeIn = (text: string): number => (/^\d+$/.test(text) ? Number(text) : wrong())

/**
 * A store in Redis. Rejects if `command` rejects. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { redisKeyStore } from 'koa-with-auth/redis'
 *
 * declare const client: { sendCommand: (args: string[]) => Promise<unknown> } // of redis; see redisStore for others
 * const make = () => redisKeyStore({ command: (args) => client.sendCommand(args) })
 */
export const redisKeyStore = (options: RedisScriptOptions): KeyStore => {
  const given = redisOptionsOf('redisKeyStore', options, '{koa-with-auth:keys}:')
  const { command, prefix: begin } = given
  const { run, change } = redisScripts(scripts, given)
  const [digests, records] = [`${begin}digest:`, `${begin}key:`]
  const get = (key: string): Promise<unknown> => command(['GET', key], key)
  const firstOf = async (sought: ReadonlyArray<string>): Promise<FoundKey | undefined> => {
    const keys = sought.map((digest) => digests + digest)
    const answers = await command(['MGET', ...keys], keys[0] ?? begin)
    if (!Array.isArray(answers) || answers.length !== sought.length) return wrong()
    const at = answers.findIndex((one) => !isNothing(one))
    return foundIn(sought[at] ?? '', answers[at])
  }
  const digestsOf = (id: string): string => `${begin}digests:${id}`
  return {
    insert: (digest, { prefix, last4, revokedAt, rotatedAt, lastUsedAt, ...made }) => {
      const { id, owner, expiresAt } = made
      const hash = hashOf({ prefix, last4, expiresAt, revokedAt, rotatedAt, lastUsedAt, made })
      const keys = [digests + digest, records + id, digestsOf(id), `${begin}owner:${owner}`]
      return change('insert', keys, id, digest, digests, ...hash)
    },
    find: async (sought) => {
      const [first, ...others] = sought
      if (first === undefined) return undefined
      return others.length === 0 ? foundIn(first, await get(digests + first)) : firstOf(sought)
    },
    list: async (owner) => {
      const answer = await run('list', [`${begin}owner:${owner}`], records, digestsOf(''))
      return Array.isArray(answer) ? answer.map(recordOf) : wrong()
    },
    rotate: (id, { digest, prefix, last4, at, until }) => {
      const keys = [records + id, digestsOf(id), digests + digest]
      const begins = [JSON.stringify(prefix), JSON.stringify(last4)]
      return change('rotate', keys, String(at), String(until), digests, digest, ...begins)
    },
    revoke: (id, at) => change('revoke', [records + id, digestsOf(id)], String(at), digests, id),
    touch: async (id, at) => {
      await run('touch', [records + id, digestsOf(id)], String(at), digests)
    },
  }
}

declareFactory('redisKeyStore', redisKeyStore)
