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

/** What is stored about a passkey. All times are whole milliseconds since 1970. */
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

interface PasskeyStore {
  readonly rpId: string
  readonly store: Store
}

export interface PasskeysInStore {
  /** Adds a passkey; `false` if its id exists. */
  readonly add: (record: PasskeyRecord) => Promise<boolean>
  readonly find: (id: string) => Promise<FoundPasskey | undefined>
  /** The passkeys of a user, the oldest first. */
  readonly listOf: (user: string) => Promise<ReadonlyArray<PasskeyRecord>>
  /**
   * Stores a use, and that it was at `at`. Resolves to `false`, and changes nothing, if the passkey was removed, or unless its counter is
   * lower than that of the use, or both are 0. `lastUsedAt` never moves back.
   */
  readonly use: (known: FoundPasskey, use: PasskeyUse, at: number) => Promise<boolean>
  /** Removes a passkey if it belongs to the user, and resolves to whether it did. */
  readonly remove: (id: string, user: string) => Promise<boolean>
}

/** The passkeys of one RP id in a store that has its time limit. */
export const passkeysIn = (rpId: string, store: Store): PasskeysInStore => {
  const self: PasskeyStore = { rpId, store }
  return {
    add: (record) => addPasskey(self, record),
    find: (id) => findPasskey(self, id),
    listOf: (user) => passkeysOfUser(self, user),
    use: (known, use, at) => useOf(self, known, use, at),
    remove: (id, user) => remove(self, id, user),
  }
}

interface FoundPasskey {
  readonly record: PasskeyRecord
  readonly text: string
}

const FOREVER = Infinity

// So long a request that has read a passkey may need to write its use
const DAY = 86_400_000

// So many other uses of one passkey would have to come in between
const USE_TRIES = 20

const passkeyName = ({ rpId }: PasskeyStore, id: string): string =>
  `koa-with-auth/passkey/${digest(JSON.stringify([rpId, id]))}`

const userName = ({ rpId }: PasskeyStore, user: string): string =>
  `koa-with-auth/passkeys-of/${digest(JSON.stringify([rpId, user]))}`

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

const addPasskey = async (self: PasskeyStore, record: PasskeyRecord): Promise<boolean> => {
  const name = passkeyName(self, record.id)
  await self.store.add(userName(self, record.user), name, FOREVER)
  return self.store.insert(name, JSON.stringify(record), FOREVER)
}

const findPasskey = async (self: PasskeyStore, id: string): Promise<FoundPasskey | undefined> => {
  const [text] = await self.store.get([passkeyName(self, id)])
  if (text === undefined) return undefined
  const record = passkeyRecordIn(text)
  if (record.id === id) return { record, text }
  throw new StoreUnavailable('the store of passkeys answered with another passkey')
}

const passkeysOfUser = async (self: PasskeyStore, user: string): Promise<ReadonlyArray<PasskeyRecord>> => {
  const names = await self.store.members(userName(self, user))
  const texts = names.length === 0 ? [] : await self.store.get(names)
  // a name without a record is of a passkey that was removed, or was never made
  return texts
    .flatMap((text) => (text === undefined ? [] : [passkeyRecordIn(text)]))
    .filter((record) => record.user === user)
    .toSorted((a, b) => a.createdAt - b.createdAt)
}

const useOf = async (
  self: PasskeyStore,
  known: FoundPasskey,
  { counter, backupEligible, backedUp }: PasskeyUse,
  at: number,
): Promise<boolean> => {
  const { id } = known.record
  let found: FoundPasskey | undefined = known
  for (let tries = 0; tries < USE_TRIES; tries++) {
    if (found === undefined || !isNextCounter(found.record.counter, counter)) return false
    const lastUsedAt = Math.max(at, found.record.lastUsedAt ?? at)
    const next = JSON.stringify({ ...found.record, counter, backupEligible, backedUp, lastUsedAt })
    if (await self.store.update(passkeyName(self, id), next, FOREVER, found.text)) return true
    found = await findPasskey(self, id)
  }
  throw new StoreUnavailable('the passkey was changed by others again and again')
}

const remove = async (self: PasskeyStore, id: string, user: string): Promise<boolean> => {
  const found = await findPasskey(self, id)
  if (found?.record.user !== user) return false
  await self.store.end(passkeyName(self, id), DAY)
  return true
}

/** Whether a counter may follow another one: it grows, or there is none. */
export const isNextCounter = (before: number, now: number): boolean => now > before || (now === 0 && before === 0)
