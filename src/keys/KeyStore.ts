/**
 * `KeyStore` is the interface of a database that keeps API keys. It has six methods.
 *
 * A store gets digests, never keys. So somebody who reads the database cannot use a key. A record has one current
 * digest, and any number of older ones, each with the time until which it works. All times are whole milliseconds since
 * 1970. Every method may reject, which is an outage. `laws.keyStore` of `koa-with-auth/testing/laws` checks a store of
 * your own.
 */
import { fromNow, memory } from '../core/memory.js'

/** What is stored about a key. Nothing in it can be used as a key. */
export interface KeyRecord {
  readonly id: string
  /** Whose it is. */
  readonly owner: string
  /** What its owner calls it; may be empty. */
  readonly name: string
  readonly scopes: ReadonlyArray<string>
  /** Its prefix; left out if the key was adopted. */
  readonly prefix?: string
  /** Its last four characters, by which its owner knows it. */
  readonly last4?: string
  readonly createdAt: number
  readonly expiresAt?: number
  readonly revokedAt?: number
  /** When its secret was last replaced. */
  readonly rotatedAt?: number
  readonly lastUsedAt?: number
}

/** A record, found by one of its digests. */
export interface FoundKey {
  readonly record: KeyRecord
  /** When that digest stops working, if it was replaced. */
  readonly until?: number
}

/** A new secret of a record. */
export interface Rotation {
  readonly digest: string
  readonly prefix: string
  readonly last4: string
  readonly at: number
  /** When the older digests stop working; 1 if they do immediately. A digest that stops earlier keeps its own time. */
  readonly until: number
}

/** A database of keys. Each method is one atomic change, or one query. */
export interface KeyStore {
  /** Adds a record under a digest, and returns `true`. Returns `false`, and changes nothing, if the digest or the id exists. */
  readonly insert: (digest: string, record: KeyRecord) => Promise<boolean>
  /**
   * Finds the record that has one of these digests, expired or not. At most one of the digests exists. A store in memory may return it
   * without a promise.
   */
  readonly find: (digests: ReadonlyArray<string>) => Promise<FoundKey | undefined> | FoundKey | undefined
  /** Returns all records of an owner in any order, including revoked and expired ones. */
  readonly list: (owner: string) => Promise<ReadonlyArray<KeyRecord>>
  /**
   * Gives a record another digest, and returns `true`. Returns `false` if there is no such record, if it is revoked or expired at
   * `at`, or if the digest exists. Older digests that had expired at `at` are deleted.
   */
  readonly rotate: (id: string, rotation: Rotation) => Promise<boolean>
  /**
   * Revokes a record for ever, and returns whether there is one. The first `at` is kept. Rejects if a part of the record is lost,
   * because one of its digests may still work.
   */
  readonly revoke: (id: string, at: number) => Promise<boolean>
  /** Writes when a record was last used, unless a later time is stored. Does nothing if there is no such record. */
  readonly touch: (id: string, at: number) => Promise<void>
}

/** Frozen scopes, because a stored record and a principal may share the array. */
export const frozenScopes = (scopes: ReadonlyArray<string>): ReadonlyArray<string> =>
  Object.isFrozen(scopes) ? scopes : Object.freeze([...scopes])

const isTimeIfAny = (u: unknown): boolean => u === undefined || Number.isFinite(u)
const isStringIfAny = (u: unknown): boolean => u === undefined || typeof u === 'string'

/** Whether a value is a record, as a store must return it. */
export const isKeyRecord = (u: { readonly [K in keyof KeyRecord]?: unknown }): u is KeyRecord =>
  typeof u === 'object' &&
  u !== null &&
  typeof u.id === 'string' &&
  typeof u.owner === 'string' &&
  typeof u.name === 'string' &&
  Array.isArray(u.scopes) &&
  isStringIfAny(u.prefix) &&
  isStringIfAny(u.last4) &&
  Number.isFinite(u.createdAt) &&
  isTimeIfAny(u.expiresAt) &&
  isTimeIfAny(u.revokedAt) &&
  isTimeIfAny(u.rotatedAt) &&
  isTimeIfAny(u.lastUsedAt)

/**
 * Who a key belongs to, and what it may do. It is the principal of a request, and what its owner is shown. It does not
 * contain the secret.
 */
export interface ApiKey<O = string> {
  readonly id: string
  /** Whose it is. */
  readonly owner: O
  /** What its owner calls it; may be empty. */
  readonly name: string
  /** What it may do. Frozen. */
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
  const key: Mutable<ApiKey<O>> = { id, owner, name, scopes: frozenScopes(scopes), createdAt: new Date(createdAt) }
  if (prefix !== undefined) key.prefix = prefix
  if (last4 !== undefined) key.last4 = last4
  if (expiresAt !== Infinity) key.expiresAt = new Date(expiresAt)
  if (revokedAt !== undefined) key.revokedAt = new Date(revokedAt)
  if (rotatedAt !== undefined) key.rotatedAt = new Date(rotatedAt)
  if (lastUsedAt !== undefined) key.lastUsedAt = new Date(lastUsedAt)
  return key
}

// A process that sees more keys than these in an interval may write a use twice
const REMEMBERED = 10_000

/**
 * Notes uses at a time; `lastUsedAt` is what the store returned with the key. It calls `write` at most once in an interval for each key,
 * and ignores its failure: the next interval tries again. No request waits for it.
 */
export const touching = (interval: number | false, write: (id: string, at: number) => Promise<void>) => {
  // needed because requests at the same time all find the same record
  const written = memory<number>({ size: REMEMBERED, maxAge: Infinity, dropsFirst: 'oldest' })
  return (id: string, at: number, lastUsedAt = -Infinity): void => {
    if (interval === false || at - lastUsedAt < interval || at - (written.get(id) ?? -Infinity) < interval) return
    written.set(id, fromNow(at))
    write(id, at).catch(() => {})
  }
}
