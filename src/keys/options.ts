/**
 * The options of `apiKeys`, and their defaults. Options that are weak or cannot work are refused here.
 */
import { createSecretKey, type KeyObject } from 'node:crypto'
import * as t from 'io-ts'
import { checkOptions, maybe, positive, withMethods, type Check, type Checks } from '../core/options.js'
import { isPrefix } from './keyForm.js'
import type { KeyStore } from './KeyStore.js'

/** How an application keeps its API keys. All times are in milliseconds. */
export interface ApiKeysOptions<O> {
  /** How its keys begin: 2 to 32 lower-case letters and digits in words joined by `_`, such as `acme` or `acme_live`. */
  readonly prefix: string
  /** Where they are kept. */
  readonly store: KeyStore
  /** An io-ts codec for your type of owner, to and from strings. Default: any string. */
  readonly owner?: t.Type<O, string, unknown> | undefined
  /**
   * Secrets of at least 32 bytes that are part of each digest. They are not kept in the store. In an array, the newest is first. It
   * makes the new digests. Old digests are found with all of them. Default: none.
   */
  readonly pepper?: Uint8Array | ReadonlyArray<Uint8Array> | undefined
  /** A pattern of the older keys that were added with `adopt`. Other strings never reach the store. Default: no older keys. */
  readonly adopted?: RegExp | undefined
  /** The shortest time between two writes of the last use of a key; `false`: it is never written. Default 60 seconds. */
  readonly touch?: number | false | undefined
  /** The time limit of the store. Beyond it, the store counts as unavailable. Default 2 seconds. */
  readonly timeout?: number | undefined
}

/** The options with their defaults. */
export interface Decided {
  readonly prefix: string
  readonly store: KeyStore
  readonly owner: t.Type<unknown, string, unknown>
  readonly peppers: ReadonlyArray<KeyObject>
  readonly adopted: RegExp | undefined
  readonly touch: number | false
  readonly timeout: number
}

const MIN_PEPPER = 32

const prefix: Check = (place, value) => {
  if (typeof value === 'string' && isPrefix(value)) return
  throw new TypeError(
    `${place} must be 2 to 32 lower-case letters and digits, in words joined by "_", such as acme or acme_live`,
  )
}

const codec: Check = (place, value) => {
  if (!(value instanceof t.Type)) throw new TypeError(`${place} must be an io-ts codec, such as t.string`)
}

const isPepper = (u: unknown): boolean => u instanceof Uint8Array && u.length >= MIN_PEPPER

const pepper: Check = (place, value) => {
  const all: unknown = value instanceof Uint8Array ? [value] : value
  // an empty array is probably a list of secrets that failed to load, and digests would have no pepper
  if (Array.isArray(all) && all.length > 0 && all.every(isPepper)) return
  throw new TypeError(
    `${place} must be a Uint8Array of at least ${MIN_PEPPER} bytes, or an array of at least one of them with the newest first; leave it out for none`,
  )
}

const pattern: Check = (place, value) => {
  // with g and y an expression remembers its position, and would refuse every second key
  if (value instanceof RegExp && !value.global && !value.sticky) return
  throw new TypeError(`${place} must be a regular expression without the flags g and y`)
}

const touching: Check = (place, value) => {
  if (value !== false) positive(place, value)
}

const keyStore = withMethods(
  ['insert', 'find', 'list', 'rotate', 'revoke', 'touch'],
  'see KeyStore, or take memoryKeyStore(), sqliteKeyStore of koa-with-auth/keys/sqlite or redisKeyStore of koa-with-auth/keys/redis',
)

const checks: Checks<ApiKeysOptions<unknown>> = {
  prefix,
  store: keyStore,
  owner: maybe(codec),
  pepper: maybe(pepper),
  adopted: maybe(pattern),
  touch: maybe(touching),
  timeout: maybe(positive),
}

/** Checks the options, and adds the defaults. Throws a TypeError for what is weak, or cannot work. */
export const decided = <O>(options: ApiKeysOptions<O>): Decided => {
  const given = checkOptions('apiKeys', options, checks)
  const { owner = t.string, pepper: peppers = [], touch = 60_000, timeout = 2000 } = given
  return {
    prefix: given.prefix,
    store: given.store,
    // Safe: it decodes unknown values, and encodes only what `ApiKeys<O>` takes
    owner: owner as Decided['owner'],
    // a copy: the application may overwrite its bytes
    peppers: (peppers instanceof Uint8Array ? [peppers] : peppers).map((one) => createSecretKey(one)),
    adopted: given.adopted,
    touch,
    timeout,
  }
}
