/**
 * API keys in a store: each method of `apiKeys` is one question, or one change of one string.
 *
 * A set of the owner names a key before the key exists, so every key that works is listed. A change replaces the text that it has read; if
 * another change came in between, it reads again. So a failed or interrupted change has happened or not, and can be repeated.
 */
import { deepFreeze } from '../core/data.js'
import { End, type EndCause, type EndSource } from '../core/ends.js'
import { recordDigest } from '../core/events.js'
import { fromNow, memory } from '../core/memory.js'
import { digest, isMac } from '../crypto/secrets.js'
import type { Store } from '../stores/Store.js'
import { StoreUnavailable } from '../stores/within.js'
import { keyName, keyRecordIn, type FoundKey, type KeyRecord } from './KeyRecord.js'

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

// So many others would have to change one key at once
const CHANGE_TRIES = 100

// A key outlives its end in the list of its owner
const FOREVER = Infinity

// A process that sees more keys than these in an interval may write a use twice
const MAX_TOUCHED = 10_000

/** The keys of one prefix in a store that has its time limit. */
export class KeysInStore {
  readonly #prefix: string
  readonly #store: Store
  /** The shortest time between two notes of a use; `false`: none is noted. */
  readonly #interval: number | false
  // needed because requests at the same time all find the same record
  readonly #touched = memory<number>({ size: MAX_TOUCHED, maxAge: Infinity, dropsFirst: 'oldest' })

  constructor(prefix: string, store: Store, interval: number | false) {
    this.#prefix = prefix
    this.#store = store
    this.#interval = interval
  }

  /** Finds a key, expired or not, in one question. A store in memory answers without a promise. */
  find(sought: Sought): FoundKey | undefined | Promise<FoundKey | undefined> {
    const texts = this.#store.get(sought.names)
    return texts instanceof Promise ? texts.then((late) => foundIn(sought, late)) : foundIn(sought, texts)
  }

  /** Whether there is a key under one of these names. */
  async exists(names: ReadonlyArray<string>): Promise<boolean> {
    return (await this.#store.get(names)).some((text) => text !== undefined)
  }

  /** Adds a key; `false` if its id exists. */
  async insert(record: KeyRecord): Promise<boolean> {
    const name = keyName(this.#prefix, record.id)
    await this.#store.add(this.#ownerName(record.owner), name, FOREVER)
    return this.#store.insert(name, JSON.stringify(record), FOREVER)
  }

  /** Changes a key. Resolves to its new record; to `undefined` if there is none, or if `change` returns none. */
  async update(id: string, change: (record: KeyRecord) => KeyRecord | undefined): Promise<KeyRecord | undefined> {
    const name = keyName(this.#prefix, id)
    for (let tries = 0; tries < CHANGE_TRIES; tries++) {
      const [text] = await this.#store.get([name])
      if (text === undefined) return undefined
      const record = keyRecordIn(text)
      if (record.id !== id) throw new StoreUnavailable('the store of API keys answered with another key')
      const next = change(record)
      if (next === undefined || next === record) return next
      if (await this.#store.update(name, JSON.stringify(next), FOREVER, text)) return next
    }
    throw new StoreUnavailable('the store of API keys was changed by others again and again')
  }

  /** Notes when a key was last used. Nothing waits for it, and its failure is ignored: the next interval tries again. */
  touch({ name, record, text }: FoundKey, at: number): void {
    const { id, lastUsedAt = -Infinity } = record
    const interval = this.#interval
    if (interval === false || at - lastUsedAt < interval || at - (this.#touched.get(id) ?? -Infinity) < interval) return
    this.#touched.set(id, fromNow(at))
    this.#store.update(name, JSON.stringify({ ...record, lastUsedAt: at }), FOREVER, text).catch(() => {})
  }

  /** The records of an owner, in any order. */
  async listOf(owner: string): Promise<ReadonlyArray<KeyRecord>> {
    const names = await this.#store.members(this.#ownerName(owner))
    if (names.length === 0) return []
    // a name without a record is of a key that was never made
    return (await this.#store.get(names))
      .flatMap((text) => (text === undefined ? [] : [keyRecordIn(text)]))
      .filter((record) => record.owner === owner)
  }

  #ownerName(owner: string): string {
    return `koa-with-auth/api-keys-of/${digest(JSON.stringify([this.#prefix, owner]))}`
  }
}

// Digests are compared as MACs are: everybody knows how long they are
const secretWith = (record: KeyRecord, digests: ReadonlyArray<string>) =>
  record.secrets.find((secret) => digests.some((one) => isMac(secret.digest, one)))

const foundIn = (sought: Sought, texts: ReadonlyArray<string | undefined>): FoundKey | undefined => {
  for (let at = 0; at < texts.length; at++) {
    const text = texts[at]
    if (text === undefined) continue
    const name = sought.names[at] ?? ''
    const { last } = sought
    if (last?.text === text) return last
    // requests share it
    const record = deepFreeze(keyRecordIn(text))
    const secret = secretWith(record, sought.digests)
    if (secret === undefined) continue
    return (sought.last = { record, text, name, until: secret.until, evidence: undefined })
  }
  return undefined
}

/** The changes of a rotation. */
interface Rotation {
  readonly digest: string
  readonly prefix: string
  readonly last4: string
  readonly at: number
  /** When the older secrets stop working; 1 if they do immediately. A secret that stops earlier keeps its own time. */
  readonly until: number
}

/** The record with a new secret; `undefined` if the key is revoked or expired. Older secrets that have stopped are dropped. */
export const rotated = (record: KeyRecord, { digest: added, prefix, last4, at, until }: Rotation) => {
  if (record.revokedAt !== undefined || (record.expiresAt ?? Infinity) <= at) return undefined
  const older = record.secrets.flatMap((secret) => {
    const own = secret.until ?? Infinity
    return own <= at ? [] : [{ digest: secret.digest, until: Math.min(own, until) }]
  })
  return { ...record, prefix, last4, rotatedAt: at, secrets: [...older, { digest: added }] }
}

// --- the end of a key, for work that is still running: it expires, it is revoked, or a rotation ends its secret

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
    return recordDigest('api-key', this.#id)
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
