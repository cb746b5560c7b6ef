/**
 * API keys in a store: each method of `apiKeys` is one question, or one change of one text.
 *
 * A set of the owner names a key before the key exists, so every key that works is listed. A change replaces the text that it has read; if
 * another one came in between, it reads again. So a failed or interrupted change has happened or not, and can be repeated.
 */
import { deepFreeze } from '../core/data.js'
import { End, type EndCause, type EndSource } from '../core/ends.js'
import { keyDigest } from '../core/events.js'
import { fromNow, memory } from '../core/memory.js'
import { digest, isMac } from '../crypto/secrets.js'
import type { Store } from '../stores/Store.js'
import { StoreUnavailable } from '../stores/within.js'
import { keyName, keyRecordIn, type FoundKey, type KeyRecord } from './KeyRecord.js'

interface KeyStore {
  readonly prefix: string
  readonly store: Store
}

/** Where a key may be: under these names, with one of these digests. */
export interface Sought {
  readonly names: ReadonlyArray<string>
  readonly digests: ReadonlyArray<string>
  readonly sha256: string
  /** Whether it is kept for the next request with this key. */
  isKnown: boolean
  /** How it was found last: while the store has the same text, it is neither parsed nor compared again. */
  last: FoundKey | undefined
}

export interface KeysInStore {
  /** Finds a key, expired or not, in one question. A store in memory answers without a promise. */
  readonly find: (sought: Sought) => FoundKey | undefined | Promise<FoundKey | undefined>
  /** Whether there is a key under one of these names. */
  readonly exists: (names: ReadonlyArray<string>) => Promise<boolean>
  /** Adds a key; `false` if its id exists. */
  readonly insert: (record: KeyRecord) => Promise<boolean>
  /** Changes a key. Resolves to its new record; to `undefined` if there is none, or if `change` returns none. */
  readonly update: (id: string, change: (record: KeyRecord) => KeyRecord | undefined) => Promise<KeyRecord | undefined>
  /**
   * Gives a key a new secret. Resolves to its new record; to `undefined` if there is none, or if it is revoked or expired. Older secrets that
   * have stopped are dropped.
   */
  readonly rotate: (id: string, make: (id: string) => Rotation) => Promise<KeyRecord | undefined>
  /** Notes when a key was last used, at most once in an interval. Nothing waits for it. */
  readonly touch: (found: FoundKey, at: number) => void
  /** The records of an owner, in any order. */
  readonly listOf: (owner: string) => Promise<ReadonlyArray<KeyRecord>>
}

// So many others would have to change one key at once
const CHANGE_TRIES = 100

// A key outlives its end in the list of its owner
const FOREVER = Infinity

/** The keys of one prefix in a store that has its time limit. */
export const keysIn = (prefix: string, store: Store, interval: number | false): KeysInStore => {
  const self: KeyStore = { prefix, store }
  return {
    find: (sought) => findKey(self, sought),
    exists: (names) => exists(self, names),
    insert: (record) => insertKey(self, record),
    update: (id, change) => changeKey(self, id, change),
    rotate: (id, make) => changeKey(self, id, (record) => rotated(record, make(record.id))),
    touch: touching(interval, (found, at) => touch(self, found, at)),
    listOf: (owner) => keysOfOwner(self, owner),
  }
}

const ownerName = (prefix: string, owner: string): string =>
  `koa-with-auth/api-keys-of/${digest(JSON.stringify([prefix, owner]))}`

const recordText = (record: KeyRecord): string => JSON.stringify(record)

// Digests are compared as MACs are: everybody knows how long they are
const secretWith = (record: KeyRecord, digests: ReadonlyArray<string>) =>
  record.secrets.find((secret) => digests.some((one) => isMac(secret.digest, one)))

const findKey = ({ store }: KeyStore, sought: Sought): FoundKey | undefined | Promise<FoundKey | undefined> => {
  const texts = store.get(sought.names)
  return texts instanceof Promise ? texts.then((late) => foundIn(sought, late)) : foundIn(sought, texts)
}

const foundIn = (sought: Sought, texts: ReadonlyArray<string | undefined>): FoundKey | undefined => {
  for (let at = 0; at < texts.length; at++) {
    const text = texts[at]
    if (text === undefined) continue
    const name = sought.names[at] ?? ''
    const { last } = sought
    if (last !== undefined && last.text === text && last.name === name) return last
    // requests share it
    const record = deepFreeze(keyRecordIn(text))
    const secret = secretWith(record, sought.digests)
    if (secret === undefined) continue
    return (sought.last = { record, text, name, ...(secret.until !== undefined && { until: secret.until }) })
  }
  return undefined
}

const exists = async ({ store }: KeyStore, names: ReadonlyArray<string>): Promise<boolean> =>
  (await store.get(names)).some((text) => text !== undefined)

const insertKey = async ({ prefix, store }: KeyStore, record: KeyRecord): Promise<boolean> => {
  const name = keyName(prefix, record.id)
  await store.add(ownerName(prefix, record.owner), name, FOREVER)
  return store.insert(name, recordText(record), FOREVER)
}

const changeKey = async (
  { prefix, store }: KeyStore,
  id: string,
  change: (record: KeyRecord) => KeyRecord | undefined,
): Promise<KeyRecord | undefined> => {
  const name = keyName(prefix, id)
  for (let tries = 0; tries < CHANGE_TRIES; tries++) {
    const [text] = await store.get([name])
    if (text === undefined) return undefined
    const record = keyRecordIn(text)
    if (record.id !== id) throw new StoreUnavailable('the store of API keys answered with another key')
    const next = change(record)
    if (next === undefined || next === record) return next
    if (await store.update(name, recordText(next), FOREVER, text)) return next
  }
  throw new StoreUnavailable('the store of API keys was changed by others again and again')
}

const touch = ({ store }: KeyStore, { name, record, text }: FoundKey, at: number): Promise<boolean> =>
  store.update(name, recordText({ ...record, lastUsedAt: at }), FOREVER, text)

const keysOfOwner = async ({ prefix, store }: KeyStore, owner: string): Promise<ReadonlyArray<KeyRecord>> => {
  const names = await store.members(ownerName(prefix, owner))
  if (names.length === 0) return []
  // a name without a record is of a key that was never made
  return (await store.get(names))
    .flatMap((text) => (text === undefined ? [] : [keyRecordIn(text)]))
    .filter((record) => record.owner === owner)
}

// --- changes

const isLive = ({ revokedAt, expiresAt = Infinity }: KeyRecord, at: number): boolean =>
  revokedAt === undefined && expiresAt > at

interface Rotation {
  readonly digest: string
  readonly prefix: string
  readonly last4: string
  readonly at: number
  /** When the older secrets stop working; 1 if they do immediately. A secret that stops earlier keeps its own time. */
  readonly until: number
}

/** The record with a new secret; `undefined` if the key is revoked or expired. Older secrets that have stopped are dropped. */
const rotated = (record: KeyRecord, { digest: added, prefix, last4, at, until }: Rotation) => {
  if (!isLive(record, at)) return undefined
  const older = record.secrets.flatMap((secret) => {
    const own = secret.until ?? Infinity
    return own <= at ? [] : [{ digest: secret.digest, until: Math.min(own, until) }]
  })
  return { ...record, prefix, last4, rotatedAt: at, secrets: [...older, { digest: added }] }
}

// --- the last use

// A process that sees more keys than these in an interval may write a use twice
const MAX_TOUCHED = 10_000

// Notes uses at a time. It calls `write` at most once in an interval for each key, and ignores its failure: the next interval tries again.
// No request waits for it.
const touching = (interval: number | false, write: (found: FoundKey, at: number) => Promise<unknown>) => {
  // needed because requests at the same time all find the same record
  const written = memory<number>({ size: MAX_TOUCHED, maxAge: Infinity, dropsFirst: 'oldest' })
  return (found: FoundKey, at: number): void => {
    const { id, lastUsedAt = -Infinity } = found.record
    if (interval === false || at - lastUsedAt < interval || at - (written.get(id) ?? -Infinity) < interval) return
    written.set(id, fromNow(at))
    write(found, at).catch(() => {})
  }
}

// --- the end of a key, for what is still running: it expires, it is revoked, or a rotation ends its secret

export class KeySource implements EndSource {
  readonly #found: FoundKey
  readonly #sought: Sought
  readonly #keys: KeysInStore

  constructor(found: FoundKey, sought: Sought, keys: KeysInStore) {
    this.#found = found
    this.#sought = sought
    this.#keys = keys
  }

  endFor(): End {
    return new KeyEnd(this.#found, this.#sought, this.#keys)
  }
}

class KeyEnd extends End {
  readonly #id: string
  readonly #sought: Sought
  readonly #keys: KeysInStore
  #isReplaced: boolean

  constructor(found: FoundKey, sought: Sought, keys: KeysInStore) {
    super(timeOf(found))
    this.#id = found.record.id
    this.#sought = sought
    this.#keys = keys
    this.#isReplaced = isReplaced(found)
  }

  override named(): string {
    return keyDigest(this.#id)
  }

  override get cause(): EndCause {
    return this.#isReplaced ? 'revoked' : 'expired'
  }

  override async ask(): Promise<EndCause | number> {
    const found = await this.#keys.find(this.#sought)
    if (found === undefined || found.record.revokedAt !== undefined) return 'revoked'
    this.#isReplaced = isReplaced(found)
    const at = timeOf(found)
    return at <= Date.now() ? this.cause : at
  }
}

const timeOf = ({ record, until }: FoundKey): number => Math.min(record.expiresAt ?? Infinity, until ?? Infinity)

const isReplaced = ({ record, until = Infinity }: FoundKey): boolean => until < (record.expiresAt ?? Infinity)
