/**
 * The record of an API key, and its text in a store. One text has everything about a key: its owner, its times, and the digests of its
 * secrets. So each change of a key replaces one text, and no interruption leaves a part of a change behind.
 */
import { jsonFields, ownFields } from '../core/data.js'
import type { Evidence } from '../core/Evidence.js'
import { digest } from '../crypto/secrets.js'
import { StoreUnavailable } from '../stores/within.js'

/** The stored facts about a key. Nothing in it can be used as a key. Times are whole milliseconds since 1970. */
export interface KeyRecord {
  readonly id: string
  readonly owner: string
  readonly name: string
  readonly scopes: ReadonlyArray<string>
  readonly prefix?: string
  readonly last4?: string
  readonly createdAt: number
  readonly expiresAt?: number
  readonly revokedAt?: number
  readonly rotatedAt?: number
  readonly lastUsedAt?: number
  /** The digests of its secrets, and the time until which a replaced secret works. */
  readonly secrets: ReadonlyArray<{ readonly digest: string; readonly until?: number }>
}

export interface FoundKey {
  readonly record: KeyRecord
  /** Its name in the store, and its text there. */
  readonly name: string
  readonly text: string
  /** When that secret stops working, if it was replaced. */
  readonly until: number | undefined
  /** The evidence of all requests with this key while the store has this text; made for the first of them. */
  evidence: Evidence | undefined
}

/** The name of a key. Each prefix has keys of its own. */
export const keyName = (prefix: string, id: string): string =>
  `koa-with-auth/api-key/${digest(JSON.stringify([prefix, id]))}`

/** The record in a string. Throws `StoreUnavailable` for any other string: its meaning is unknown, so it lets no caller in. */
export const keyRecordIn = (text: string): KeyRecord => {
  const record = jsonFields(text)
  if (record !== undefined && isKeyRecord(record)) return record
  throw new StoreUnavailable('the store of API keys has a text that is no record of this version')
}

const isTime = (u: unknown): boolean => Number.isFinite(u)
const isKeyText = (u: unknown): boolean => typeof u === 'string'
const ifAny = (is: (u: unknown) => boolean, u: unknown): boolean => u === undefined || is(u)

const isSecret = (u: unknown): boolean => {
  if (typeof u !== 'object' || u === null) return false
  const { digest: one, until } = ownFields(u)
  return isKeyText(one) && ifAny(isTime, until)
}

const isKeyRecord = (u: { readonly [K in keyof KeyRecord]?: unknown }): u is KeyRecord =>
  [u.id, u.owner, u.name].every(isKeyText) &&
  [u.prefix, u.last4].every((one) => ifAny(isKeyText, one)) &&
  [u.expiresAt, u.revokedAt, u.rotatedAt, u.lastUsedAt].every((one) => ifAny(isTime, one)) &&
  isTime(u.createdAt) &&
  Array.isArray(u.scopes) &&
  u.scopes.every(isKeyText) &&
  Array.isArray(u.secrets) &&
  u.secrets.every(isSecret)

// --- the view of an application

/** The owner and the rights of a key. It is the principal of a request, and can be shown to the owner. It does not contain the secret. */
export interface ApiKey<O = string> {
  readonly id: string
  /** Whose it is. */
  readonly owner: O
  /** Its name, as the owner wrote it; may be empty. */
  readonly name: string
  /** Its scopes. Frozen. */
  readonly scopes: ReadonlyArray<string>
  /** Its prefix; left out if it was adopted. */
  readonly prefix?: string
  /** Its last four characters. */
  readonly last4?: string
  readonly createdAt: Date
  /** When it expires. For a principal: when the secret that was sent expires, which may be earlier after a rotation. */
  readonly expiresAt?: Date
  readonly revokedAt?: Date
  /** When its secret was last replaced. */
  readonly rotatedAt?: Date
  /** When it was last used, as precise as the interval `touch`. */
  readonly lastUsedAt?: Date
}

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

/** A record as an application sees it. `until` is when the secret that was sent expires. */
export const apiKeyOf = <O>(record: KeyRecord, owner: O, until = Infinity): ApiKey<O> => {
  const { id, name, scopes, prefix, last4, createdAt, revokedAt, rotatedAt, lastUsedAt } = record
  const expiresAt = Math.min(record.expiresAt ?? Infinity, until)
  // field by field, because a spread for each optional one took a measurable part of a look-up
  const key: Mutable<ApiKey<O>> = { id, owner, name, scopes: Object.freeze(scopes), createdAt: new Date(createdAt) }
  if (prefix !== undefined) key.prefix = prefix
  if (last4 !== undefined) key.last4 = last4
  if (expiresAt !== Infinity) key.expiresAt = new Date(expiresAt)
  if (revokedAt !== undefined) key.revokedAt = new Date(revokedAt)
  if (rotatedAt !== undefined) key.rotatedAt = new Date(rotatedAt)
  if (lastUsedAt !== undefined) key.lastUsedAt = new Date(lastUsedAt)
  return key
}
