/** A new key, as an application describes it, and how that is checked. */
import * as is from '../core/checks.js'
import { checkOptions, isScope, type Check, type Checks } from '../core/options.js'
import type { KeyRecord } from './KeyRecord.js'
import type { Owners } from './Owners.js'

/** A new key. */
export interface NewKey<O = string> {
  /** Whose it is. */
  readonly owner: O
  /** Its name, for the owner. Default none. */
  readonly name?: string | undefined
  /** Its scopes (RFC 6749 §3.3): printable ASCII without blanks. Default none. */
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

// Databases cut a string at NUL, and replace a lone surrogate. Then two owners could become one
const isKeepable = (u: unknown): u is string => typeof u === 'string' && !u.includes('\0') && u.isWellFormed()

const keepable: Check = is.that(isKeepable, 'must be a string of well-formed Unicode without NUL')

const ownerText = async (where: string, owners: Owners, owner: unknown): Promise<string> => {
  const text = await owners.encode(where, owner)
  keepable(where, text)
  if (text === '') throw new TypeError(`${where} must not be empty`)
  return text
}

const date = is.that((value) => value instanceof Date && Number.isFinite(value.getTime()), 'must be a valid Date')

const keyScopes = is.listOf(isScope, 'must be an array of strings of printable ASCII without blanks, quotes and "\\"')

const lastFour = is.that(
  (value) => isKeepable(value) && value.length <= 4,
  'must be a string of at most four characters',
)

const newKeyChecks: Checks<NewKey<unknown>> = {
  // the codec checks it
  owner: is.unchecked,
  name: is.maybe(keepable),
  scopes: is.maybe(keyScopes),
  expiresAt: is.maybe(date),
}

const adoptedKeyChecks: Checks<AdoptedKey<unknown>> = {
  ...newKeyChecks,
  createdAt: is.maybe(date),
  last4: is.maybe(lastFour),
}

type DescribedKey = Pick<KeyRecord, 'owner' | 'name' | 'scopes' | 'expiresAt' | 'createdAt'>

const describedKey = async (
  where: string,
  owners: Owners,
  { owner, name = '', scopes = [], expiresAt }: NewKey<unknown>,
  createdAt: number,
): Promise<DescribedKey> => ({
  owner: await ownerText(`${where}({ owner })`, owners, owner),
  name,
  scopes: Object.freeze([...scopes]),
  createdAt,
  ...(expiresAt !== undefined && { expiresAt: expiresAt.getTime() }),
})

/** What a record has of a new key. Rejects with a TypeError for what cannot be kept. */
const newRecord = async (owners: Owners, given: NewKey<unknown>): Promise<DescribedKey> => {
  const checked = checkOptions('keys.issue', given, newKeyChecks)
  const createdAt = Date.now()
  const made = await describedKey('keys.issue', owners, checked, createdAt)
  if ((made.expiresAt ?? Infinity) > createdAt) return made
  throw new TypeError('keys.issue({ expiresAt }) must not be in the past')
}

/** What a record has of an adopted key. Rejects with a TypeError for what cannot be kept. */
const adoptedRecord = async (owners: Owners, given: AdoptedKey<unknown>) => {
  const { createdAt, last4, ...checked } = checkOptions('keys.adopt(digest, options)', given, adoptedKeyChecks)
  const made = await describedKey('keys.adopt(digest, ...)', owners, checked, createdAt?.getTime() ?? Date.now())
  return { ...made, ...(last4 !== undefined && { last4 }) }
}

export const newKeys = (owners: Owners) => ({
  issued: (given: NewKey<unknown>) => newRecord(owners, given),
  adopted: (given: AdoptedKey<unknown>) => adoptedRecord(owners, given),
  ownerText: (where: string, owner: unknown) => ownerText(where, owners, owner),
})
