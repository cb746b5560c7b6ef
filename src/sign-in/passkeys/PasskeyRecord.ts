/**
 * The record of a passkey, and where it is in a store. A record has a public key, and no secret: an attacker who reads the database cannot
 * sign in.
 *
 * A set of the user names a passkey before the passkey exists, so every passkey that works is listed. A use replaces the text that was read.
 */
import { jsonFields } from '../../core/data.js'
import { digest } from '../../crypto/secrets.js'
import type { Store } from '../../stores/Store.js'
import { StoreUnavailable } from '../../stores/within.js'

/** The members that change with each use of a passkey. */
export interface PasskeyUse {
  /** The counter of signatures. 0 if the authenticator has none, as for most synced passkeys. */
  readonly counter: number
  /** Whether it may be synced to other devices. It is stored, and never compared, because authenticators change it. */
  readonly backupEligible: boolean
  /** Whether it is synced to other devices now. */
  readonly backedUp: boolean
}

/** The record of a passkey. All times are whole milliseconds since 1970. */
export interface PasskeyRecord extends PasskeyUse {
  /** The id of the credential, in base64url. */
  readonly id: string
  /** Whose it is: the id of the user, as the session has it. */
  readonly user: string
  /** The random name of the user that the authenticator keeps, in base64url. */
  readonly userHandle: string
  /** The RP id that it was registered for. */
  readonly rpId: string
  /** The public key as COSE (RFC 9052), in base64url. */
  readonly publicKey: string
  /** The model of the authenticator; zeros if it does not say. Names for models are the application's. */
  readonly aaguid: string
  /** How the browser reaches the authenticator, such as `internal` or `hybrid`. */
  readonly transports: ReadonlyArray<string>
  readonly createdAt: number
  readonly lastUsedAt?: number
}

interface FoundPasskey {
  readonly record: PasskeyRecord
  readonly text: string
}

const FOREVER = Infinity

// How long a request that has read a passkey may need to write its use, in milliseconds
const ENDED_FOR = 86_400_000

// So many other uses of one passkey would have to come in between
const USE_TRIES = 20

const isString = (u: unknown): boolean => typeof u === 'string'
const isBoolean = (u: unknown): boolean => typeof u === 'boolean'
// WebAuthn §6.1: 32 bits without a sign
const isCounter = (u: unknown): boolean => Number.isInteger(u) && Number(u) >= 0 && Number(u) < 2 ** 32

const isPasskeyRecord = (u: { readonly [K in keyof PasskeyRecord]?: unknown }): u is PasskeyRecord =>
  [u.id, u.user, u.userHandle, u.rpId, u.publicKey, u.aaguid].every(isString) &&
  Array.isArray(u.transports) &&
  u.transports.every(isString) &&
  isCounter(u.counter) &&
  [u.backupEligible, u.backedUp].every(isBoolean) &&
  Number.isFinite(u.createdAt) &&
  (u.lastUsedAt === undefined || Number.isFinite(u.lastUsedAt))

// Another program wrote it, and its meaning is unknown, so it signs no user in
const passkeyRecordIn = (text: string): PasskeyRecord => {
  const record = jsonFields(text)
  if (record !== undefined && isPasskeyRecord(record)) return { ...record }
  throw new StoreUnavailable('the store of passkeys has a text that is no record of this version')
}

/** The passkeys of one RP id in a store that has its time limit. */
export class PasskeysInStore {
  readonly #rpId: string
  readonly #store: Store

  constructor(rpId: string, store: Store) {
    this.#rpId = rpId
    this.#store = store
  }

  #nameOf(id: string): string {
    return `koa-with-auth/passkey/${digest(JSON.stringify([this.#rpId, id]))}`
  }

  #setOf(user: string): string {
    return `koa-with-auth/passkeys-of/${digest(JSON.stringify([this.#rpId, user]))}`
  }

  /** Adds a passkey; `false` if its id exists. */
  async add(record: PasskeyRecord): Promise<boolean> {
    const name = this.#nameOf(record.id)
    await this.#store.add(this.#setOf(record.user), name, FOREVER)
    return this.#store.insert(name, JSON.stringify(record), FOREVER)
  }

  async find(id: string): Promise<FoundPasskey | undefined> {
    const [text] = await this.#store.get([this.#nameOf(id)])
    if (text === undefined) return undefined
    const record = passkeyRecordIn(text)
    if (record.id === id) return { record, text }
    throw new StoreUnavailable('the store of passkeys answered with another passkey')
  }

  /** The passkeys of a user, the oldest first. */
  async listOf(user: string): Promise<ReadonlyArray<PasskeyRecord>> {
    const names = await this.#store.members(this.#setOf(user))
    const texts = names.length === 0 ? [] : await this.#store.get(names)
    // a name without a record is of a passkey that was removed, or was never made
    return texts
      .flatMap((text) => (text === undefined ? [] : [passkeyRecordIn(text)]))
      .filter((record) => record.user === user)
      .toSorted((a, b) => a.createdAt - b.createdAt)
  }

  /**
   * Stores a use, and that it was at `at`. Resolves to `false`, and changes nothing, if the passkey was removed, or unless its counter is
   * lower than that of the use, or both are 0. `lastUsedAt` never moves back.
   */
  async use(known: FoundPasskey, use: PasskeyUse, at: number): Promise<boolean> {
    const { counter, backupEligible, backedUp } = use
    const { id } = known.record
    let found: FoundPasskey | undefined = known
    for (let tries = 0; tries < USE_TRIES; tries++) {
      if (found === undefined || !isNextCounter(found.record.counter, counter)) return false
      const lastUsedAt = Math.max(at, found.record.lastUsedAt ?? at)
      const next = JSON.stringify({ ...found.record, counter, backupEligible, backedUp, lastUsedAt })
      if (await this.#store.update(this.#nameOf(id), next, FOREVER, found.text)) return true
      found = await this.find(id)
    }
    throw new StoreUnavailable('the passkey was changed by others again and again')
  }

  /** Removes a passkey if it belongs to the user, and resolves to whether it did. */
  async remove(id: string, user: string): Promise<boolean> {
    const found = await this.find(id)
    if (found?.record.user !== user) return false
    await this.#store.end(this.#nameOf(id), ENDED_FOR)
    return true
  }
}

/** Whether a counter may follow another counter: it grows, or there is none. */
const isNextCounter = (before: number, now: number): boolean => now > before || (now === 0 && before === 0)
