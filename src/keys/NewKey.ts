/** A new key, as an application describes it, and how that is checked. */
import * as is from '../core/checks.js'
import { checkOptions, isScope, type Checks } from '../core/options.js'
import { isKeepable, keepable, type Owners } from './Owners.js'

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

const date = is.that((value) => value instanceof Date && Number.isFinite(value.getTime()), 'must be a valid Date')

const keyScopes = is.listOf(isScope, 'must be an array of strings of printable ASCII without blanks, quotes and "\\"')

const lastFour = is.that((value) => isKeepable(value) && value.length <= 4, 'must be a string of at most 4 characters')

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

/** The part of a record that a new key decides. Rejects with a TypeError for a value that cannot be kept. */
export const newRecord = async (owners: Owners, given: NewKey<unknown>) => {
  const made = await describedKey(owners, 'keys.issue', checkOptions('keys.issue', given, newKeyChecks))
  if (made.expiresAt === undefined || made.expiresAt > made.createdAt) return made
  throw new TypeError('keys.issue({ expiresAt }) must not be in the past')
}

/** The part of a record that an adopted key decides. Rejects with a TypeError for a value that cannot be kept. */
export const adoptedRecord = async (owners: Owners, given: AdoptedKey<unknown>) => {
  const checked = checkOptions('keys.adopt(digest, options)', given, adoptedKeyChecks)
  return describedKey(owners, 'keys.adopt(digest, ...)', checked)
}

const describedKey = async (
  owners: Owners,
  where: string,
  { owner, name = '', scopes = [], expiresAt, createdAt = new Date(), last4 }: AdoptedKey<unknown>,
) => ({
  owner: await owners.encode(`${where}({ owner })`, owner),
  name,
  scopes: Object.freeze([...scopes]),
  createdAt: createdAt.getTime(),
  ...(expiresAt !== undefined && { expiresAt: expiresAt.getTime() }),
  ...(last4 !== undefined && { last4 }),
})
