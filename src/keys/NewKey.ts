/** What an application says about a new key, and how it is checked before it is stored. */
import { checkOptions, maybe, unchecked, type Check, type Checks } from '../core/options.js'
import type { KeyRecord } from './KeyStore.js'
import type { Owners } from './Owners.js'

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

// Databases cut a string at NUL, and replace a lone surrogate. Then two owners could become one
const isKeepable = (u: unknown): u is string => typeof u === 'string' && !u.includes('\0') && u.isWellFormed()

const checkKeepable: Check = (where, u) => {
  if (!isKeepable(u)) throw new TypeError(`${where} must be a string of well-formed Unicode without NUL`)
}

/** The string for an owner in a store. */
export const ownerText = (where: string, owners: Owners, owner: unknown): string | Promise<string> => {
  const text = owners.encode(where, owner)
  const checked = (given: string): string => {
    checkKeepable(where, given)
    if (given === '') throw new TypeError(`${where} must not be empty`)
    return given
  }
  return text instanceof Promise ? text.then(checked) : checked(text)
}

const date: Check = (where, value) => {
  if (value instanceof Date && Number.isFinite(value.getTime())) return
  throw new TypeError(`${where} must be a valid Date`)
}

const scope = /^[\x21\x23-\x5b\x5d-\x7e]+$/

const scopeList: Check = (where, value) => {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string' && scope.test(one))) return
  throw new TypeError(`${where} must be an array of strings of printable ASCII without blanks, quotes and "\\"`)
}

const lastFour: Check = (where, value) => {
  if (!isKeepable(value) || value.length > 4)
    throw new TypeError(`${where} must be a string of at most four characters`)
}

const newKey: Checks<NewKey<unknown>> = {
  // the codec checks it
  owner: unchecked,
  name: maybe(checkKeepable),
  scopes: maybe(scopeList),
  expiresAt: maybe(date),
}

const recordOf = async (where: string, owners: Owners, given: NewKey<unknown>): Promise<Checked> => {
  const { owner, name = '', scopes = [], expiresAt } = given
  return {
    owner: await ownerText(`${where}({ owner })`, owners, owner),
    name,
    scopes: Object.freeze([...scopes]),
    ...(expiresAt !== undefined && { expiresAt: expiresAt.getTime() }),
  }
}

/** Checks the argument of `issue`. Throws a TypeError for a value that cannot be stored. */
export const checkIssued = async (owners: Owners, given: NewKey<unknown>): Promise<Checked> => {
  const record = await recordOf('keys.issue', owners, checkOptions('keys.issue', given, newKey))
  if ((record.expiresAt ?? Infinity) <= Date.now())
    throw new TypeError('keys.issue({ expiresAt }) must not be in the past')
  return record
}

/** Checks the arguments of `adopt`. Throws a TypeError for a value that cannot be stored. */
export const checkAdopted = async (
  owners: Owners,
  digest: unknown,
  given: AdoptedKey<unknown>,
): Promise<Checked & Partial<Pick<KeyRecord, 'createdAt' | 'last4'>>> => {
  if (typeof digest !== 'string' || !/^[0-9a-f]{64}$/i.test(digest)) {
    throw new TypeError(
      'keys.adopt(digest, key): digest must be the SHA-256 of the whole key, in 64 hexadecimal digits',
    )
  }
  const where = 'keys.adopt(digest, options)'
  const { createdAt, last4, ...key } = checkOptions(where, given, {
    ...newKey,
    createdAt: maybe(date),
    last4: maybe(lastFour),
  })
  return {
    ...(await recordOf('keys.adopt(digest, ...)', owners, key)),
    ...(createdAt !== undefined && { createdAt: createdAt.getTime() }),
    ...(last4 !== undefined && { last4 }),
  }
}
