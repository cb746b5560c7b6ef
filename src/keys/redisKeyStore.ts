/**
 * API keys in Redis or Valkey, for several processes: entry point `koa-with-auth/keys/redis`.
 *
 * It needs one function that sends a command, so any client fits. `redisStore` of `koa-with-auth/sessions/redis` says
 * how to set up clients. Every change is one script, so it happens as a whole or not at all. For that, all keys are in
 * one slot of a cluster. Redis must not evict keys (`maxmemory-policy noeviction`), and should write a log (`appendonly
 * yes`). Data that it loses at a restart are gone: with snapshots only, a key that was revoked since the last one works
 * again.
 *
 * Data that Redis lost are not made again. If a part of a key is missing, its secrets are unknown. Then `rotate`,
 * `revoke` and `list` reject with an error that begins with `LOST` and says what was done.
 */
import { declareFactory } from '../core/hooks.js'
import { checkOptions, hook, maybe, string } from '../core/options.js'
import { isKeyRecord, type FoundKey, type KeyRecord, type KeyStore } from './KeyStore.js'
import { scripts } from './redisKeyScripts.js'

/** How commands are sent. */
export interface RedisKeyStoreOptions {
  /** Sends a command and its arguments. `key` is the key of the command, which clients of a cluster need. */
  readonly command: (args: string[], key: string) => Promise<unknown>
  /** The prefix of all keys. For a cluster, it must contain a part in braces. Default `{koa-with-auth:keys}:`. */
  readonly prefix?: string | undefined
}

const wrong = (): never => {
  throw new TypeError('redisKeyStore({ command }): it resolved to a value that the scripts of the store never return')
}
// clients can be set up to return buffers
const asString = (value: unknown): string =>
  typeof value === 'string' ? value : Buffer.isBuffer(value) ? value.toString() : wrong()
const isNothing = (value: unknown): value is null | undefined | false =>
  value === null || value === undefined || value === false

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

const checks = { command: hook(2), prefix: maybe(string) }

/**
 * A store in Redis. Rejects if `command` rejects. Throws a TypeError for options that cannot work.
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
  const firstOf = async (asked: ReadonlyArray<string>): Promise<FoundKey | undefined> => {
    const keys = asked.map((digest) => digests + digest)
    const answers = await command(['MGET', ...keys], keys[0] ?? begin)
    if (!Array.isArray(answers) || answers.length !== asked.length) return wrong()
    const at = answers.findIndex((one) => !isNothing(one))
    return foundIn(asked[at] ?? '', answers[at])
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
      const [first, ...others] = asked
      if (first === undefined) return undefined
      return others.length === 0 ? foundIn(first, await get(digests + first)) : firstOf(asked)
    },
    list: async (owner) => {
      const answer = await run('list', [`${begin}owner:${owner}`], records, digestsOf(''))
      return Array.isArray(answer) ? answer.map(recordOf) : wrong()
    },
    rotate: (id, { digest, prefix, last4, at, until }) => {
      const keys = [records + id, digestsOf(id), digests + digest]
      const begins = [JSON.stringify(prefix), JSON.stringify(last4)]
      return changed(run('rotate', keys, String(at), String(until), digests, digest, ...begins))
    },
    revoke: (id, at) => changed(run('revoke', [records + id, digestsOf(id)], String(at), digests, id)),
    touch: async (id, at) => {
      await run('touch', [records + id, digestsOf(id)], String(at), digests)
    },
  }
}

declareFactory('redisKeyStore', redisKeyStore)
