/**
 * Checks the values of a new key. It refuses what a store could not return unchanged, and what could not work.
 */
import * as E from 'fp-ts/lib/Either.js'
import type * as t from 'io-ts'
import { checkOptions, maybe, unchecked, type Check, type Checks } from '../core/options.js'
import type { KeyRecord } from './KeyStore.js'

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

type Checked = Pick<KeyRecord, 'owner' | 'name' | 'scopes' | 'expiresAt'>

const DAY = 86_400_000
const MAX_DAYS = 400

// Databases cut a string at NUL, and replace a lone surrogate. Then two owners could become one
const isKeepable = (u: unknown): u is string => typeof u === 'string' && !u.includes('\0') && u.isWellFormed()

const checkKeepable: Check = (place, u) => {
  if (!isKeepable(u)) throw new TypeError(`${place} must be a string of well-formed Unicode without NUL`)
}

/** The string for an owner in a store. */
export const ownerText = (place: string, codec: t.Type<unknown, string, unknown>, owner: unknown): string => {
  if (!codec.is(owner)) throw new TypeError(`${place} is refused by the codec of apiKeys({ owner })`)
  const text = codec.encode(owner)
  checkKeepable(place, text)
  if (text === '') throw new TypeError(`${place} must not be empty`)
  return text
}

// io-ts would keep the value in this context, and nothing reads it
const noContext: t.Context = []

/** The owner of a record as the application's type. No error contains its value. */
export const ownerIn = (codec: t.Type<unknown, string, unknown>, { owner }: KeyRecord): unknown => {
  const decoded = codec.validate(owner, noContext)
  if (E.isRight(decoded)) return decoded.right
  throw new TypeError('apiKeys({ owner }): the codec refuses the owner of a stored key')
}

const date: Check = (place, value) => {
  if (value instanceof Date && Number.isFinite(value.getTime())) return
  throw new TypeError(`${place} must be a valid Date`)
}

const scope = /^[\x21\x23-\x5b\x5d-\x7e]+$/

const scopeList: Check = (place, value) => {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string' && scope.test(one))) return
  throw new TypeError(`${place} must be an array of strings of printable ASCII without blanks, quotes and "\\"`)
}

const lastFour: Check = (place, value) => {
  if (!isKeepable(value) || value.length > 4)
    throw new TypeError(`${place} must be a string of at most four characters`)
}

const newKey: Checks<NewKey<unknown>> = {
  // the codec checks it
  owner: unchecked,
  name: maybe(checkKeepable),
  scopes: maybe(scopeList),
  expiresAt: maybe(date),
}

const recordOf = (place: string, codec: t.Type<unknown, string, unknown>, given: NewKey<unknown>): Checked => {
  const { owner, name = '', scopes = [], expiresAt } = given
  return {
    owner: ownerText(`${place}({ owner })`, codec, owner),
    name,
    scopes: Object.freeze([...scopes]),
    ...(expiresAt !== undefined && { expiresAt: expiresAt.getTime() }),
  }
}

/** Checks the argument of `issue`. Throws a TypeError for a value that cannot be stored. */
export const checkIssued = (codec: t.Type<unknown, string, unknown>, given: NewKey<unknown>): Checked => {
  const record = recordOf('keys.issue', codec, checkOptions('keys.issue', given, newKey))
  if ((record.expiresAt ?? Infinity) <= Date.now())
    throw new TypeError('keys.issue({ expiresAt }) must not be in the past')
  return record
}

/** Checks the arguments of `adopt`. Throws a TypeError for a value that cannot be stored. */
export const checkAdopted = (
  codec: t.Type<unknown, string, unknown>,
  digest: unknown,
  given: AdoptedKey<unknown>,
): Checked & Partial<Pick<KeyRecord, 'createdAt' | 'last4'>> => {
  if (typeof digest !== 'string' || !/^[0-9a-f]{64}$/i.test(digest)) {
    throw new TypeError(
      'keys.adopt(digest, key): digest must be the SHA-256 of the whole key, in 64 hexadecimal digits',
    )
  }
  const place = 'keys.adopt(digest, options)'
  const { createdAt, last4, ...key } = checkOptions(place, given, {
    ...newKey,
    createdAt: maybe(date),
    last4: maybe(lastFour),
  })
  return {
    ...recordOf('keys.adopt(digest, ...)', codec, key),
    ...(createdAt !== undefined && { createdAt: createdAt.getTime() }),
    ...(last4 !== undefined && { last4 }),
  }
}

const overlap: Check = (place, value) => {
  if (typeof value === 'number' && value >= 0 && value <= MAX_DAYS * DAY) return
  throw new TypeError(`${place} must be milliseconds from 0 to ${MAX_DAYS} days`)
}

/** How long older secrets still work, in whole milliseconds. */
export const checkOverlap = (rotation: { readonly overlap: number }): number =>
  Math.ceil(checkOptions('keys.rotate(id, options)', rotation, { overlap }).overlap)
