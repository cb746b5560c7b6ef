/**
 * `apiKeys` issues and verifies API keys. A key is shown once, when it is issued. Only a digest is kept, so an attacker who reads the
 * database cannot use a key. `authenticate` is the hook of any kind that reads one value.
 *
 * | sent                                                       | failure       |
 * |------------------------------------------------------------|---------------|
 * | another form, another prefix, a wrong checksum: no look-up | `malformed`   |
 * | an unknown id or secret, or a revoked key                  | `invalid`     |
 * | an expired key, or a secret after its overlap              | `expired`     |
 * | anything while the store fails or is silent                | `unavailable` |
 *
 * It counts no guesses: `throttled` of `koa-with-auth` does.
 */
import { createSecretKey } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import type * as t from 'io-ts'
import type { Request } from '../core/Request.js'
import { because, expired, invalid, malformed } from '../core/AuthError.js'
import { returningResults, type Evaluation } from '../core/Result.js'
import type { StandardSchema } from '../core/Schema.js'
import { isInstance, type ErrorCode } from '../core/data.js'
import { recordDigest, report, type ApiKeyEvent } from '../core/events.js'
import { sayingScopes } from '../core/granted.js'
import * as is from '../core/checks.js'
import { fromNow, memory, type Memory } from '../core/memory.js'
import { checkOptions, declareFactory, type Checks } from '../core/options.js'
import { accept, restsOn, type Evidence } from '../core/Evidence.js'
import { attemptOf, tell as tellHook, type Attempt } from '../core/Exchange.js'
import { ends } from '../ends/ends.js'
import { connected, signalsLike, type Signals, type Tell } from '../signals/signals.js'
import { storeLike, timedStore, type Store } from '../stores/Store.js'
import { StoreUnavailable } from '../stores/within.js'
import { apiKeyOf, keyName, type ApiKey, type FoundKey, type KeyRecord } from './KeyRecord.js'
import { isPrefix, keyForm } from './form.js'
import { KeysInStore, KeySource, rotated, type Sought } from './keysInStore.js'
import { adoptedRecord, newRecord, type AdoptedKey, type NewKey } from './NewKey.js'
import { ownersOf, ownerSchema, type Owners } from './Owners.js'

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
   * How its keys begin: 2 to 32 lower-case letters and digits in words joined by `_`, such as `acme` or `acme_live`. Each prefix has
   * keys of its own in the store: `list`, `rotate` and `revoke` know those of no other prefix.
   */
  readonly prefix: string
  /** Where they are kept, such as `postgresStore({ query })` of `koa-with-auth/stores`; it may keep other things, too. */
  readonly store: Store
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
  /** Sends ends of keys to other processes, see `Signals`. Default: sockets and streams of a key end at once only here. */
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

const checks: Checks<ApiKeysOptions<unknown>> = {
  prefix,
  store: storeLike,
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

  /** @internal Also an error of another copy of this package, such as that of `require` beside that of `import`. */
  static override [Symbol.hasInstance](u: unknown): boolean {
    return isInstance(this, NoLiveKey, u, 'ERR_NO_LIVE_KEY')
  }
}

/** The API keys of an application. In an outage, methods that ask the store reject with an `UnavailableError`, a 503. */
export interface ApiKeys<O> {
  /** Makes a key. Rejects with a TypeError for a value that cannot be kept, such as an `expiresAt` in the past. */
  readonly issue: (key: NewKey<O>) => Promise<IssuedKey>
  /**
   * Gives a key a new secret. The record stays. Older secrets work for another `overlap` milliseconds; with 0 they stop
   * immediately. Rejects with `NoLiveKey` if there is no such key, and with a TypeError for an id that is no string. After an outage
   * call it again: the key has a secret that is unknown to all, or is as it was.
   */
  readonly rotate: (id: string, options: { readonly overlap: number }) => Promise<IssuedKey>
  /**
   * Revokes a key with all its secrets, for ever. It stays in the list. Resolves to `true` if none of its secrets works any more,
   * and to `false` if there is no such key. After an outage call it again.
   */
  readonly revoke: (id: string) => Promise<boolean>
  /** Resolves to the keys of an owner, including revoked and expired keys, the oldest first. */
  readonly list: (owner: O) => Promise<ReadonlyArray<ApiKey<O>>>
  /**
   * Adds a key of which only the SHA-256 is known, in hex. Rejects with an Error if it was adopted already, also if it was replaced or
   * revoked since.
   */
  readonly adopt: (digest: string, key: AdoptedKey<O>) => Promise<{ readonly id: string }>
  /** The hook, which returns the key with its owner. */
  readonly authenticate: (request: Request, key: string) => Evaluation<ApiKey<O>>
  /** A regular expression that finds keys in a string, for secret scanners. It does not verify the checksum. */
  readonly pattern: RegExp
}

const MAX_LENGTH = 8192

const isThere = (): Error => new Error('apiKeys: a key with this digest exists already')

const madeEvent = (event: 'issued' | 'adopted', { id, owner, scopes, expiresAt }: KeyRecord): ApiKeyEvent => ({
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
 * import { apiKeys } from 'koa-with-auth/keys'
 * import { memoryStore } from 'koa-with-auth/stores'
 *
 * const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
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
  const { prefix, adopted, pepper: peppers = [], touch: interval = 60_000, timeout = 2000 } = given
  const inStore = new KeysInStore(prefix, timedStore('api-keys', given.store, timeout), interval)
  const self: Self = {
    prefix,
    inStore,
    // copies: the application may overwrite its bytes
    form: keyForm(
      prefix,
      (peppers instanceof Uint8Array ? [peppers] : peppers).map((one) => createSecretKey(one)),
    ),
    adopted,
    // Safe: it decodes unknown values, and encodes only owners that `ApiKeys<O>` takes
    owners: ownersOf(given.owner as Parameters<typeof ownersOf>[0]),
    known: memory({ size: KNOWN, maxAge: Infinity, dropsFirst: 'least recently used' }),
    tell: connected(given.signals),
  }
  return {
    issue: (key) => issue(self, key),
    rotate: (id, rotation) => rotate(self, id, rotation),
    revoke: (id) => revoke(self, id),
    // Safe: `options.owner` decodes to it; by default it is a string
    list: (owner) => list(self, owner) as Promise<ReadonlyArray<ApiKey<O>>>,
    adopt: (keyDigest, key) => adopt(self, keyDigest, key),
    // Safe, twice: the same; and it is called with the result of `verdict`
    authenticate: sayingScopes(
      returningResults((request: Request, key: string) => authenticate(self, request, key) as Evaluation<ApiKey<O>>),
      (key) => (key as ApiKey).scopes,
    ),
    pattern: self.form.pattern,
  }
}

declareFactory('apiKeys', apiKeys)

interface Self {
  readonly prefix: string
  readonly inStore: KeysInStore
  readonly form: ReturnType<typeof keyForm>
  readonly adopted: RegExp | undefined
  readonly owners: Owners
  /** Keys that were let in, by their SHA-256, each with its place in the store. */
  readonly known: Memory<Sought>
  readonly tell: Tell
}

// --- a request

const KNOWN = 1000

const authenticate = (self: Self, request: Request, key: string): Evaluation<ApiKey<unknown>> => {
  const sought = typeof key === 'string' ? soughtFor(self, key) : undefined
  if (sought === undefined) return noKey
  const attempt = attemptOf(request)
  try {
    const found = self.inStore.find(sought)
    return found instanceof Promise
      ? verdictLate(self, attempt, found, sought)
      : verdict(self, attempt, attempt?.asked, found, sought)
  } catch (error) {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown
    return Promise.reject(error)
  }
}

/** Where a key may be; `undefined` for a string that can be no key. */
const soughtFor = (self: Self, key: string): Sought | undefined => {
  const { form, adopted } = self
  const isOwn = form.isKey(key)
  const isAdopted = adopted !== undefined && key.length <= MAX_LENGTH && adopted.test(key)
  if (!isOwn && !isAdopted) return undefined
  const sha256 = form.sha256Of(key)
  return self.known.get(sha256) ?? newSought(self, key, sha256, isOwn, isAdopted)
}

const newSought = (self: Self, key: string, sha256: string, isOwn: boolean, isAdopted: boolean): Sought => {
  const { form, prefix } = self
  const digests = form.digestsOf(sha256)
  const own = isOwn ? [keyName(prefix, form.idIn(key))] : []
  const names = isAdopted ? [...own, ...adoptedNames(self, digests)] : own
  return { names, digests, sha256, isKnown: false, last: undefined }
}

const adoptedNames = ({ form, prefix }: Self, digests: ReadonlyArray<string>): ReadonlyArray<string> =>
  digests.map((one) => keyName(prefix, form.adoptedId(one)))

const verdict = (
  self: Self,
  attempt: Asking,
  asked: number | undefined,
  found: FoundKey | undefined,
  sought: Sought,
): Evaluation<ApiKey<unknown>> => {
  if (found === undefined) return unknownKey
  const { record, until } = found
  if (record.revokedAt !== undefined) return revokedKey
  const now = Date.now()
  if (Math.min(record.expiresAt ?? Infinity, until ?? Infinity) <= now) return expiredKey
  const key = seen(self, record, until)
  if (!sought.isKnown) self.known.set(sought.sha256, fromNow(Object.assign(sought, { isKnown: true })))
  self.inStore.touch(found, now)
  const evidence = (found.evidence ??= restsOn(new KeySource(found, sought, self.inStore)))
  return key instanceof Promise ? letInLate(attempt, asked, evidence, key) : letIn(attempt, asked, evidence, key)
}

// These two apart: a function whose parameters a closure reads keeps them on the heap, also if it makes no closure
const letInLate = (attempt: Asking, asked: number | undefined, evidence: Evidence, key: Promise<ApiKey<unknown>>) =>
  key.then((late) => letIn(attempt, asked, evidence, late))

const verdictLate = (self: Self, attempt: Asking, found: Promise<FoundKey | undefined>, sought: Sought) => {
  const asked = attempt?.asked
  return found.then((late) => verdict(self, attempt, asked, late, sought))
}

/** A key as the application sees it. */
const seen = ({ owners }: Self, record: KeyRecord, until?: number): ApiKey<unknown> | Promise<ApiKey<unknown>> => {
  const owner = owners.decode(record.owner)
  return owner instanceof Promise
    ? owner.then((late: unknown) => apiKeyOf(record, late, until))
    : apiKeyOf(record, owner, until)
}

// --- changes

// Of two ids in a row, none is taken: an id has 59 random bits
const IDS = 5

const issue = async (self: Self, given: NewKey<unknown>): Promise<IssuedKey> => {
  const { inStore, prefix, form } = self
  const made = await newRecord(self.owners, given)
  for (let tries = 0; tries < IDS; tries++) {
    const id = form.newId()
    const key = form.make(id)
    const further = { prefix, last4: key.slice(-4), secrets: [{ digest: form.digestsOf(form.sha256Of(key))[0] }] }
    const record = { ...made, id, ...further }
    if (!(await inStore.insert(record))) continue
    report('api-key')(() => madeEvent('issued', record))
    return { key, id }
  }
  throw new StoreUnavailable('the store of API keys takes no new key')
}

const rotate = async (self: Self, id: string, given: { readonly overlap: number }): Promise<IssuedKey> => {
  const { inStore, prefix, form } = self
  checkId('keys.rotate(id, options)', id)
  const overlap = Math.ceil(checkOptions('keys.rotate(id, options)', given, { overlap: shortEnough }).overlap)
  const at = Date.now()
  // for no overlap it is 1, because the time now may be in the future of another clock, or of this clock if it is set back
  const until = overlap === 0 ? 1 : at + overlap
  let key = ''
  const change = (record: KeyRecord) => {
    key = form.make(record.id)
    return rotated(record, { digest: form.digestsOf(form.sha256Of(key))[0], prefix, last4: key.slice(-4), at, until })
  }
  if ((await inStore.update(id, change)) === undefined) {
    throw new NoLiveKey('keys.rotate(id): there is no such key, or it is revoked or expired; issue another')
  }
  report('api-key')(() => ({ event: 'rotated', id, overlapMs: overlap }))
  // the store says until when older secrets work
  ends().askAbout(recordDigest('api-key', id))
  self.tell(recordDigest('api-key', id))
  return { key, id }
}

const revoke = async (self: Self, id: string): Promise<boolean> => {
  checkId('keys.revoke(id)', id)
  const revokedAt = Date.now()
  const change = (record: KeyRecord) => (record.revokedAt === undefined ? { ...record, revokedAt } : record)
  if ((await self.inStore.update(id, change)) === undefined) return false
  report('api-key')(() => ({ event: 'revoked', id }))
  ends().end(recordDigest('api-key', id), () => 'revoked')
  self.tell(recordDigest('api-key', id))
  return true
}

const list = async (self: Self, owner: unknown): Promise<ReadonlyArray<ApiKey<unknown>>> => {
  const records = await self.inStore.listOf(await self.owners.encode('keys.list(owner)', owner))
  return Promise.all(records.toSorted((a, b) => a.createdAt - b.createdAt).map(async (record) => seen(self, record)))
}

const adopt = async (self: Self, keyDigest: string, given: AdoptedKey<unknown>): Promise<{ readonly id: string }> => {
  if (typeof keyDigest !== 'string' || !/^[0-9a-f]{64}$/i.test(keyDigest)) {
    throw new TypeError(
      'keys.adopt(digest, key): digest must be the SHA-256 of the whole key, in 64 hexadecimal digits',
    )
  }
  const made = await adoptedRecord(self.owners, given)
  const [newest, ...older] = self.form.digestsOf(keyDigest.toLowerCase())
  if (older.length > 0 && (await self.inStore.exists(adoptedNames(self, older)))) throw isThere()
  const record = { ...made, id: self.form.adoptedId(newest), secrets: [{ digest: newest }] }
  if (!(await self.inStore.insert(record))) throw isThere()
  report('api-key')(() => madeEvent('adopted', record))
  return { id: record.id }
}

// The key lets in, and the hook that has asked for it may make another principal of it
const letIn = <K>(attempt: Asking, asked: number | undefined, evidence: Evidence, key: K): E.Right<K> =>
  tellHook(attempt, asked, accept(key, evidence))

type Asking = Attempt | undefined

const unknownKey = E.left(because(invalid, 'key'))
const revokedKey = E.left(because(invalid, 'revoked'))
const expiredKey = E.left(because(expired, 'expired'))
const noKey = E.left(because(malformed, 'syntax'))
