/**
 * An API key as an application sees it: the principal of a request, and what its owner is shown. It does not contain
 * the secret.
 */
import { frozenScopes, type KeyRecord } from './KeyStore.js'

/** Who a key belongs to, and what it may do. */
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
