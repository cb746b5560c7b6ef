/**
 * `PasskeyStore` is the interface of a database that keeps passkeys. It has five methods.
 *
 * A record has a public key, and no secret: somebody who reads the database cannot sign in. All times are whole milliseconds
 * since 1970. Every method may reject, which is an outage. `laws.passkeyStore` of `koa-with-auth/testing/laws` checks a store of
 * your own.
 */
import { declareFactory } from '../../core/options.js'

/** What changes with each use of a passkey. */
export interface PasskeyUse {
  /** The counter of signatures. 0 if the authenticator has none, as for most synced passkeys. */
  readonly counter: number
  /** Whether it may be synced to other devices. It is stored, and never compared, because authenticators change it. */
  readonly backupEligible: boolean
  /** Whether it is synced to other devices now. */
  readonly backedUp: boolean
}

/** What is stored about a passkey. */
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

/** A database of passkeys. Each method is one atomic change, or one query. */
export interface PasskeyStore {
  /** Adds a record, and returns `true`. Returns `false`, and changes nothing, if the id exists. */
  readonly add: (record: PasskeyRecord) => Promise<boolean>
  /** Finds the record of a credential. */
  readonly byId: (id: string) => Promise<PasskeyRecord | undefined>
  /** Returns all records of a user in any order, those of all RP ids. */
  readonly ofUser: (user: string) => Promise<ReadonlyArray<PasskeyRecord>>
  /**
   * Stores a use, and that it was at `at`, and returns `true`. Returns `false`, and changes nothing, if there is no such record, or
   * unless its counter is lower than that of the use, or both are 0. Comparing and storing are one step. `lastUsedAt` never moves
   * back.
   */
  readonly update: (id: string, use: PasskeyUse, at: number) => Promise<boolean>
  /** Removes the record if it belongs to the user, and returns whether it did. */
  readonly remove: (id: string, user: string) => Promise<boolean>
}

const isString = (u: unknown): boolean => typeof u === 'string'
// WebAuthn §6.1: 32 bits without a sign
const isCounter = (u: unknown): boolean => Number.isInteger(u) && Number(u) >= 0 && Number(u) < 2 ** 32

/** Whether a value is a record, as a store must return it. */
export const isPasskeyRecord = (u: unknown): u is PasskeyRecord => {
  if (typeof u !== 'object' || u === null) return false
  // Safe: every member is checked
  const { id, user, userHandle, rpId, publicKey, aaguid, transports, ...rest } = u as Partial<PasskeyRecord>
  return (
    [id, user, userHandle, rpId, publicKey, aaguid].every(isString) &&
    Array.isArray(transports) &&
    transports.every(isString) &&
    isCounter(rest.counter) &&
    [rest.backupEligible, rest.backedUp].every((u) => typeof u === 'boolean') &&
    Number.isFinite(rest.createdAt) &&
    (rest.lastUsedAt === undefined || Number.isFinite(rest.lastUsedAt))
  )
}

/**
 * A store that keeps passkeys in this process, for development and tests. They are lost when it ends, and no other process knows
 * them.
 *
 * @example
 * import { memoryPasskeyStore } from 'koa-with-auth/sign-in/passkeys'
 *
 * const store = memoryPasskeyStore()
 * assert.deepStrictEqual(await store.ofUser('anna'), [])
 */
export const memoryPasskeyStore = (): PasskeyStore => {
  const records = new Map<string, PasskeyRecord>()
  // the stored record itself is returned, so it must not be changed
  const keep = (record: PasskeyRecord): void => {
    records.set(record.id, Object.freeze({ ...record, transports: Object.freeze([...record.transports]) }))
  }
  const add = (record: PasskeyRecord): boolean => {
    if (records.has(record.id)) return false
    keep(record)
    return true
  }
  const update = (id: string, use: PasskeyUse, at: number): boolean => {
    const kept = records.get(id)
    if (kept === undefined || !counts(kept.counter, use.counter)) return false
    const { counter, backupEligible, backedUp } = use
    keep({ ...kept, counter, backupEligible, backedUp, lastUsedAt: Math.max(at, kept.lastUsedAt ?? at) })
    return true
  }
  return {
    add: (record) => Promise.resolve(add(record)),
    byId: (id) => Promise.resolve(records.get(id)),
    ofUser: (user) => Promise.resolve([...records.values()].filter((one) => one.user === user)),
    update: (id, use, at) => Promise.resolve(update(id, use, at)),
    remove: (id, user) => Promise.resolve(records.get(id)?.user === user && records.delete(id)),
  }
}

/** Whether a counter may follow another one: it grows, or there is none. */
export const counts = (before: number, now: number): boolean => now > before || (now === 0 && before === 0)

declareFactory('memoryPasskeyStore', memoryPasskeyStore)
