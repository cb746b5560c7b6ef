/**
 * `apiKeys` issues and verifies API keys. A key is shown once, when it is issued. Only a digest is kept, so somebody who reads the
 * database cannot use a key. `authenticate` is the hook of any kind that reads one value.
 *
 * | sent                                                       | failure       |
 * |------------------------------------------------------------|---------------|
 * | another form, another prefix, a wrong checksum: no look-up | `malformed`   |
 * | an unknown digest, or a revoked key                        | `invalid`     |
 * | an expired key, or a secret after its overlap              | `expired`     |
 * | anything while the store fails or is silent                | `unavailable` |
 *
 * It counts no guesses: `throttled` of `koa-with-auth` does.
 */
import { createSecretKey, randomUUID } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import type * as t from 'io-ts'
import type { Request } from '../core/Request.js'
import { because, expired, invalid, malformed } from '../core/AuthError.js'
import { returningResults, type Evaluation } from '../core/Result.js'
import type { StandardSchema } from '../core/Schema.js'
import type { ErrorCode } from '../core/data.js'
import { keyDigest, report, type ApiKeyEvent } from '../core/events.js'
import { sayingScopes } from '../core/granted.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, isScope, type Check, type Checks } from '../core/options.js'
import { accept, evidence } from '../core/Evidence.js'
import { attemptOf, tell as tellHook, type Attempt } from '../core/Exchange.js'
import { ends } from '../ends/ends.js'
import { connected, signalsLike, type Signals } from '../stores/signals.js'
import { within } from '../stores/within.js'
import { KeySource, type FindKey } from './KeyEnd.js'
import {
  apiKeyOf,
  isKeyRecord,
  touching,
  type ApiKey,
  type FoundKey,
  type KeyRecord,
  type KeyStore,
} from './KeyStore.js'
import { digestsWith, isPrefix, keyForm, sha256Of } from './form.js'
import { ownersOf, ownerSchema, type Owners } from './Owners.js'

/** A new key. */
export interface NewKey<O = string> {
  /** Whose it is. */
  readonly owner: O
  /** What its owner calls it. Default none. */
  readonly name?: string | undefined
  /** What it may do (RFC 6749 §3.3): printable ASCII without blanks. Default none. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /** When it expires. Default never. */
  readonly expiresAt?: Date | undefined
}

/** A key that exists, of which only a digest is known. */
export interface AdoptedKey<O = string> extends NewKey<O> {
  /** When it was made. Default now. */
  readonly createdAt?: Date | undefined
  /** Its last four characters, if they are known. */
  readonly last4?: string | undefined
}

// Databases cut a string at NUL, and replace a lone surrogate. Then two owners could become one
const isKeepable = (u: unknown): u is string => typeof u === 'string' && !u.includes('\0') && u.isWellFormed()

const keepable: Check = is.that(isKeepable, 'must be a string of well-formed Unicode without NUL')

/** The string for an owner in a store. */
const ownerText = async (where: string, owners: Owners, owner: unknown): Promise<string> => {
  const text = await owners.encode(where, owner)
  keepable(where, text)
  if (text === '') throw new TypeError(`${where} must not be empty`)
  return text
}

const date = is.that((value) => value instanceof Date && Number.isFinite(value.getTime()), 'must be a valid Date')

const scopeList = is.listOf(isScope, 'must be an array of strings of printable ASCII without blanks, quotes and "\\"')

const lastFour = is.that(
  (value) => isKeepable(value) && value.length <= 4,
  'must be a string of at most four characters',
)

const newKey: Checks<NewKey<unknown>> = {
  // the codec checks it
  owner: is.unchecked,
  name: is.maybe(keepable),
  scopes: is.maybe(scopeList),
  expiresAt: is.maybe(date),
}

const adoptedKey: Checks<AdoptedKey<unknown>> = {
  ...newKey,
  createdAt: is.maybe(date),
  last4: is.maybe(lastFour),
}

const recordOf = async (
  where: string,
  owners: Owners,
  { owner, name = '', scopes = [], expiresAt }: NewKey<unknown>,
): Promise<Pick<KeyRecord, 'owner' | 'name' | 'scopes' | 'expiresAt'>> => ({
  owner: await ownerText(`${where}({ owner })`, owners, owner),
  name,
  scopes: Object.freeze([...scopes]),
  ...(expiresAt !== undefined && { expiresAt: expiresAt.getTime() }),
})

const DAY = 86_400_000
const MAX_DAYS = 400

const shortEnough = is.that(
  (value) => typeof value === 'number' && value >= 0 && value <= MAX_DAYS * DAY,
  `must be milliseconds from 0 to ${MAX_DAYS} days`,
)

// An id often comes from a path or a body
const checkId = (where: string, id: unknown): void => {
  if (typeof id !== 'string') throw new TypeError(`${where}: id must be a string, the id of a key`)
}

/** How an application keeps its API keys. All times are in milliseconds. */
export interface ApiKeysOptions<O> {
  /**
   * How its keys begin: 2 to 32 lower-case letters and digits in words joined by `_`, such as `acme` or `acme_live`. Keys of another
   * kind, such as test keys, belong into a store of their own: `list`, `rotate` and `revoke` do not ask for the prefix.
   */
  readonly prefix: string
  /** Where they are kept. */
  readonly store: KeyStore
  /**
   * An io-ts codec for your type of owner, to and from strings; or a Standard Schema of strings, such as `z.uuid()`. A schema returns
   * the string that it gets, because it cannot write one back. Default: any string.
   */
  readonly owner?:
    t.Type<O, string, unknown> | (StandardSchema<O> & ([O] extends [string] ? unknown : never)) | undefined
  /**
   * Secrets of at least 32 bytes that are part of each digest. They are not kept in the store. In an array, the newest is first. It
   * makes the new digests. Old digests are found with all of them. Default: none.
   */
  readonly pepper?: Uint8Array | ReadonlyArray<Uint8Array> | undefined
  /** A pattern of the older keys that were added with `adopt`. Other strings never reach the store. Default: no older keys. */
  readonly adopted?: RegExp | undefined
  /** The shortest time between two writes of the last use of a key; `false`: it is never written. Default 60 seconds. */
  readonly touch?: number | false | undefined
  /** Sends ends of keys to other processes, see `Signals`. Default: what a key has open ends at once only here. */
  readonly signals?: Signals | undefined
  /** The time limit of the store. Beyond it, the store counts as unavailable. Default 2 seconds. */
  readonly timeout?: number | undefined
}

const MIN_PEPPER = 32

const prefix = is.that(
  isPrefix,
  'must be 2 to 32 lower-case letters and digits, in words joined by "_", such as acme or acme_live',
)

const isPepper = (u: unknown): boolean => u instanceof Uint8Array && u.length >= MIN_PEPPER

// an empty array is probably a list of secrets that failed to load, and digests would have no pepper
const pepper = is.that(
  (value) => isPepper(value) || (Array.isArray(value) && value.length > 0 && value.every(isPepper)),
  `must be a Uint8Array of at least ${MIN_PEPPER} bytes, or an array of at least one of them with the newest first; leave it out for none`,
)

// with g and y an expression remembers its position, and would refuse every second key
const pattern = is.that(
  (value) => value instanceof RegExp && !value.global && !value.sticky,
  'must be a regular expression without the flags g and y',
)

const keyStore = is.withMethods(
  ['insert', 'find', 'list', 'rotate', 'revoke', 'touch'],
  'see KeyStore, or take memoryKeyStore(), sqliteKeyStore of koa-with-auth/sqlite or redisKeyStore of koa-with-auth/redis',
)

const checks: Checks<ApiKeysOptions<unknown>> = {
  prefix,
  store: keyStore,
  owner: is.maybe(ownerSchema),
  pepper: is.maybe(pepper),
  adopted: is.maybe(pattern),
  touch: is.maybe(is.except(false, is.positive)),
  signals: is.maybe(signalsLike),
  timeout: is.maybe(is.positive),
}

/** A new key. `key` is returned this once, and stored nowhere. */
export interface IssuedKey {
  readonly key: string
  readonly id: string
}

/** The key cannot get a new secret: the id is unknown, or the key is revoked or expired. */
export class NoLiveKey extends Error {
  override readonly name = 'NoLiveKey'
  readonly code = 'ERR_NO_LIVE_KEY' satisfies ErrorCode
}

/** The API keys of an application. In an outage, methods that ask the store reject with an `UnavailableError`, a 503. */
export interface ApiKeys<O> {
  /** Makes a key. Rejects with a TypeError for a value that cannot be kept, such as an `expiresAt` in the past. */
  readonly issue: (key: NewKey<O>) => Promise<IssuedKey>
  /**
   * Gives a key a new secret. The record stays. Older secrets work for another `overlap` milliseconds; with 0 they stop
   * immediately. The new one has the prefix of these options, whatever the older ones have. Rejects with `NoLiveKey` if there is no
   * such key, and with a TypeError for an id that is no string.
   */
  readonly rotate: (id: string, options: { readonly overlap: number }) => Promise<IssuedKey>
  /**
   * Revokes a key with all its secrets, for ever. It stays in the list. Resolves to `true` if none of its secrets works any more,
   * and to `false` if there is no such key. Rejects if the store does not know, such as a Redis that has lost a part of the key.
   */
  readonly revoke: (id: string) => Promise<boolean>
  /** Resolves to the keys of an owner, including revoked and expired ones, the oldest first. */
  readonly list: (owner: O) => Promise<ReadonlyArray<ApiKey<O>>>
  /**
   * Adds a key of which only the SHA-256 is known, in hex. Rejects with an Error if it exists already. Adopt a key only
   * once: the store forgets a replaced secret after some time, and if it is adopted again, it works again.
   */
  readonly adopt: (digest: string, key: AdoptedKey<O>) => Promise<{ readonly id: string }>
  /** The hook: who a key belongs to. */
  readonly authenticate: (request: Request, key: string) => Evaluation<ApiKey<O>>
  /** A regular expression that finds keys in a string, for secret scanners. It does not verify the checksum. */
  readonly pattern: RegExp
}

const MAX_LENGTH = 8192

const isThere = (): Error => new Error('apiKeys: a key with this digest exists already')

const made = (event: 'issued' | 'adopted', { id, owner, scopes, expiresAt }: KeyRecord): ApiKeyEvent => ({
  event,
  id,
  owner,
  scopes,
  ...(expiresAt !== undefined && { expiresAt }),
})

/**
 * API keys with a prefix, in a store. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { apiKeyHeader } from 'koa-with-auth'
 * import { apiKeys, memoryKeyStore } from 'koa-with-auth/keys'
 *
 * const keys = apiKeys({ prefix: 'acme', store: memoryKeyStore() })
 * const { key, id } = await keys.issue({ owner: 'anna', name: 'ci', scopes: ['read'] }) // the only time it is seen
 * assert.match(key, keys.pattern)
 *
 * // its principal is an ApiKey: { id, owner: 'anna', name: 'ci', scopes: ['read'], ... }
 * const machine = apiKeyHeader({ paramName: 'X-API-Key', authenticate: keys.authenticate })
 *
 * const { key: second } = await keys.rotate(id, { overlap: 86_400_000 }) // both are good for a day
 * await keys.revoke(id) // none is
 * assert.deepStrictEqual((await keys.list('anna')).map(({ name }) => name), ['ci'])
 */
export const apiKeys = <O = string>(options: ApiKeysOptions<O>): ApiKeys<O> => {
  const given = checkOptions('apiKeys', options, checks)
  const { prefix, store, adopted, pepper: peppers = [], touch: interval = 60_000, timeout = 2000 } = given
  // Safe: it decodes unknown values, and encodes only what `ApiKeys<O>` takes
  const owners = ownersOf(given.owner as Parameters<typeof ownersOf>[0])
  const form = keyForm(prefix)
  // copies: the application may overwrite its bytes
  const digestsOf = digestsWith(
    (peppers instanceof Uint8Array ? [peppers] : peppers).map((one) => createSecretKey(one)),
  )
  const timed = within('api-keys', timeout)
  const tell = connected(given.signals)
  const touch = touching(interval, (id, at) => timed(() => store.touch(id, at)))

  const seen = (record: KeyRecord, until?: number): ApiKey<O> | Promise<ApiKey<O>> => {
    const owner = owners.decode(record.owner)
    // Safe, twice: `options.owner` decodes to it; by default it is a string
    if (owner instanceof Promise) return owner.then((late) => apiKeyOf(record, late as O, until))
    return apiKeyOf(record, owner as O, until)
  }
  const ask: FindKey = (digests) => store.find(digests)
  const find: FindKey = (sought) => timed.about(ask, sought)
  const verdict = (
    attempt: Asking,
    asked: number | undefined,
    found: FoundKey | undefined,
    sought: ReadonlyArray<string>,
  ): Evaluation<ApiKey<O>> => {
    if (found === undefined) return unknownKey
    const { record, until } = found
    if (!isKeyRecord(record)) throw new TypeError('apiKeys({ store }): find must resolve to a KeyRecord')
    if (record.revokedAt !== undefined) return revokedKey
    const now = Date.now()
    // not `<=`: of a time of another type, such as a string, it would be unknown, and the key would never expire
    if (!(Math.min(record.expiresAt ?? Infinity, until ?? Infinity) > now)) return expiredKey
    const key = seen(record, until)
    touch(record.id, now, record.lastUsedAt)
    const source = new KeySource(found, sought, find)
    return key instanceof Promise ? letInLate(attempt, asked, source, key) : letIn(attempt, asked, source, key)
  }
  // These two apart: a function whose parameters a closure reads keeps them on the heap, also if it makes no closure
  const letInLate = (attempt: Asking, asked: number | undefined, source: KeySource, key: Promise<ApiKey<O>>) =>
    key.then((late) => letIn(attempt, asked, source, late))
  const verdictLate = (attempt: Asking, found: Promise<FoundKey | undefined>, sought: ReadonlyArray<string>) => {
    const asked = attempt?.asked
    return found.then((late) => verdict(attempt, asked, late, sought))
  }
  const insert = async (digest: string, record: KeyRecord): Promise<void> => {
    if (!(await timed(() => store.insert(digest, record)))) throw isThere()
  }
  const reachesStore = (key: string): boolean =>
    form.isKey(key) || (adopted !== undefined && key.length <= MAX_LENGTH && adopted.test(key))
  const authenticate = (request: Request, key: string): Evaluation<ApiKey<O>> => {
    if (typeof key !== 'string' || !reachesStore(key)) return noKey
    const attempt = attemptOf(request)
    const sought = digestsOf(sha256Of(key))
    try {
      const found = find(sought)
      return found instanceof Promise
        ? verdictLate(attempt, found, sought)
        : verdict(attempt, attempt?.asked, found, sought)
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown
      return Promise.reject(error)
    }
  }

  return {
    issue: async (given) => {
      const checked = await recordOf('keys.issue', owners, checkOptions('keys.issue', given, newKey))
      const record = { ...checked, id: randomUUID(), createdAt: Date.now() }
      if ((record.expiresAt ?? Infinity) <= record.createdAt)
        throw new TypeError('keys.issue({ expiresAt }) must not be in the past')
      const key = form.make()
      await insert(digestsOf(sha256Of(key))[0], { ...record, prefix, last4: key.slice(-4) })
      report('api-key')(() => made('issued', record))
      return { key, id: record.id }
    },
    rotate: async (id, rotation) => {
      checkId('keys.rotate(id, options)', id)
      const overlap = Math.ceil(checkOptions('keys.rotate(id, options)', rotation, { overlap: shortEnough }).overlap)
      const key = form.make()
      const at = Date.now()
      // for no overlap it is 1, because the time now may be in the future of another clock, or of this one if it is set
      // back
      const until = overlap === 0 ? 1 : at + overlap
      const change = { digest: digestsOf(sha256Of(key))[0], prefix, last4: key.slice(-4), at, until }
      if (!(await timed(() => store.rotate(id, change)))) {
        throw new NoLiveKey('keys.rotate(id): there is no such key, or it is revoked or expired; issue another')
      }
      report('api-key')(() => ({ event: 'rotated', id, overlapMs: overlap }))
      // the store says until when older secrets work
      ends().askAbout(keyDigest(id))
      tell(keyDigest(id))
      return { key, id }
    },
    revoke: async (id) => {
      checkId('keys.revoke(id)', id)
      if (!(await timed(() => store.revoke(id, Date.now())))) return false
      report('api-key')(() => ({ event: 'revoked', id }))
      ends().end(keyDigest(id), () => 'revoked')
      tell(keyDigest(id))
      return true
    },
    list: async (owner) => {
      const text = await ownerText('keys.list(owner)', owners, owner)
      const records = await timed(() => store.list(text))
      return Promise.all(records.toSorted((a, b) => a.createdAt - b.createdAt).map(async (record) => seen(record)))
    },
    adopt: async (digest, given) => {
      if (typeof digest !== 'string' || !/^[0-9a-f]{64}$/i.test(digest)) {
        throw new TypeError(
          'keys.adopt(digest, key): digest must be the SHA-256 of the whole key, in 64 hexadecimal digits',
        )
      }
      const key = checkOptions('keys.adopt(digest, options)', given, adoptedKey)
      const record = {
        ...(await recordOf('keys.adopt(digest, ...)', owners, key)),
        createdAt: key.createdAt?.getTime() ?? Date.now(),
        ...(key.last4 !== undefined && { last4: key.last4 }),
        id: randomUUID(),
      }
      const [newest, ...older] = digestsOf(digest.toLowerCase())
      if (older.length > 0 && (await find(older)) !== undefined) throw isThere()
      await insert(newest, record)
      report('api-key')(() => made('adopted', record))
      return { id: record.id }
    },
    // Safe: it is called with what `verdict` lets in
    authenticate: sayingScopes(returningResults(authenticate), (key) => (key as ApiKey).scopes),
    pattern: form.pattern,
  }
}

declareFactory('apiKeys', apiKeys)

// The decision for which a key is looked up, if a guard asks
// The key lets in, and the hook that has asked for it may make another principal of it
const letIn = <K>(attempt: Asking, asked: number | undefined, source: KeySource, key: K): E.Right<K> =>
  tellHook(attempt, asked, accept(key, evidence({ accepted: [source] })))

type Asking = Attempt | undefined

const unknownKey = E.left(because(invalid, 'key'))
const revokedKey = E.left(because(invalid, 'revoked'))
const expiredKey = E.left(because(expired, 'expired'))
const noKey = E.left(because(malformed, 'syntax'))
