/** A provider is made from an issuer: whose tokens are accepted, and with which keys they are verified. */
import { createPublicKey, KeyObject } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { fromNow, memory, type Memory } from '../core/memory.js'
import * as is from '../core/checks.js'
import { bare, checkOptions, typeName } from '../core/options.js'
import { isThenable, toPromise } from '../core/Result.js'
import { checkUrl, discovery } from './fetching.js'
import { fetchJwks, remoteKeys, type KeyEvents, type KeyPolicy, type KeySource } from './keySet.js'
import { parseJwks, oneKey, usableKeys, type Keys, type SigningKeySet } from './signature.js'

/** Algorithms with a public key. */
export type AsymmetricAlgorithm =
  'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | 'Ed25519'

/** Algorithms with a shared secret. */
export type SecretAlgorithm = 'HS256' | 'HS384' | 'HS512'

/** Algorithms of signatures (RFC 7518 §3.1). `none` is not among them (RFC 8725 §3.1). */
export type Algorithm = AsymmetricAlgorithm | SecretAlgorithm

const asymmetric = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

const defaults: ReadonlyArray<string> = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']

// RFC 7518 §3.2: at least as many bytes as the hash has
const secretBytes: Readonly<Record<string, number>> = { HS256: 32, HS384: 48, HS512: 64 }

/** Checks the algorithms of an issuer. The default for a secret is HS256. */
export const algorithmsFor = (where: string, given: unknown, hasSecret: boolean): ReadonlyArray<string> => {
  if (given === undefined) return hasSecret ? ['HS256'] : defaults
  if (!Array.isArray(given) || given.length === 0) {
    throw new TypeError(`${where}({ algorithms }) must be an array of at least one algorithm, such as ['ES256']`)
  }
  for (const name of given as ReadonlyArray<unknown>) {
    if (typeof name === 'string' && asymmetric.includes(name)) {
      if (!hasSecret) continue
      throw new TypeError(`${where}({ algorithms }): ${name} needs a public key, and there is a secret; use HS256`)
    }
    if (typeof name === 'string' && Object.hasOwn(secretBytes, name)) {
      if (hasSecret) continue
      throw new TypeError(
        `${where}({ algorithms }): ${name} needs { issuer, secret }, and cannot be mixed with other kinds: a public key could be used as the secret`,
      )
    }
    const names = [...asymmetric, ...Object.keys(secretBytes)].join(', ')
    throw new TypeError(`${where}({ algorithms }): there are ${names}; "none" is not allowed`)
  }
  // Safe: each was looked up
  return [...(given as ReadonlyArray<string>)]
}

const checkSecret = (where: string, secret: Uint8Array, algorithms: ReadonlyArray<string>): void => {
  const needed = Math.max(...algorithms.map((name) => secretBytes[name] ?? 0))
  if (secret.byteLength < needed) {
    throw new TypeError(
      `${where}({ secret }) has ${secret.byteLength} bytes, and ${algorithms.join(', ')} needs ${needed} random ones`,
    )
  }
}

const MIN_RSA_BITS = 2048

// By Node's name for the key: its type, or its curve
const fitting: Readonly<Record<string, RegExp>> = {
  rsa: /^[RP]S/,
  prime256v1: /^ES256$/,
  secp384r1: /^ES384$/,
  secp521r1: /^ES512$/,
  ed25519: /^Ed/,
}

/** Checks that a public key can verify one of the algorithms. */
const checkPublicKey = (where: string, key: KeyObject, algorithms: ReadonlyArray<string>): void => {
  if (key.type !== 'public') throw new TypeError(`${where}({ publicKey }) is a ${key.type} key; pass the public one`)
  const { asymmetricKeyType = '', asymmetricKeyDetails = {} } = key
  const { namedCurve, modulusLength } = asymmetricKeyDetails
  if (modulusLength !== undefined && modulusLength < MIN_RSA_BITS) {
    throw new TypeError(`${where}({ publicKey }) has ${modulusLength} bits; RSA needs ${MIN_RSA_BITS} (RFC 7518 §3.3)`)
  }
  const kind = namedCurve ?? asymmetricKeyType
  if (!algorithms.some((name) => fitting[kind]?.test(name) === true)) {
    throw new TypeError(
      `${where}({ publicKey }) is of ${kind}, which none of ${algorithms.join(', ')} can use; name its algorithm in \`algorithms\``,
    )
  }
}

/** A JSON Web Key Set (RFC 7517 §5), such as `{ keys: [{ kty: 'EC', crv: 'P-256', x, y, kid }] }`. */
export interface JsonWebKeySet {
  readonly keys: ReadonlyArray<object>
}

/** One string or several. */
export type StringOrStrings = string | readonly [string, ...string[]]

interface Named {
  /** Compared exactly with `iss`. */
  readonly issuer: string
  /** Replaces the general one. */
  readonly audience?: StringOrStrings | undefined
}

interface Asymmetric extends Named {
  /** Replace the general ones. */
  readonly algorithms?: readonly [AsymmetricAlgorithm, ...AsymmetricAlgorithm[]] | undefined
}

interface KeySources {
  readonly jwksUri: string
  readonly jwks: JsonWebKeySet
  /** A PEM, or a KeyObject of `node:crypto`. */
  readonly publicKey: string | KeyObject
  /** Random bytes: 32 for HS256, 48 for HS384, 64 for HS512. A string is its UTF-8. */
  readonly secret: Uint8Array | string
}

type Only<S extends keyof KeySources> = Pick<KeySources, S> & {
  readonly [Other in Exclude<keyof KeySources, S>]?: undefined
}

/** An issuer, with exactly one source of keys. */
export type IssuerWithKeys =
  | (Asymmetric & Only<'jwksUri'>)
  | (Asymmetric & Only<'jwks'>)
  | (Asymmetric & Only<'publicKey'>)
  | (Named & Only<'secret'> & { readonly algorithms?: readonly [SecretAlgorithm, ...SecretAlgorithm[]] | undefined })

/** An issuer. A string means discovery. */
export type Issuer = string | IssuerWithKeys

/** The options that name a source of keys. */
const keySourceNames = ['jwksUri', 'jwks', 'publicKey', 'secret'] as const

const isString = (u: unknown): u is string => typeof u === 'string' && u !== ''

/** Turns one string or several into an array. Throws a TypeError for an empty one. */
export const nonEmptyStrings = (where: string, given: unknown): ReadonlyArray<string> => {
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (list.length === 0 || !list.every(isString)) {
    throw new TypeError(`${where} must be a string or an array of strings, and none of them empty`)
  }
  return list
}

/** What is needed to get keys: the caller for messages, how long keys are kept, and who hears of outages. */
interface KeyTerms {
  readonly caller: string
  readonly policy: KeyPolicy
  readonly events: (issuer: string) => KeyEvents
}

/** Given keys, which never change. */
const staticKeys = (keys: Keys): KeySource => {
  const right = E.right(keys)
  const none = Promise.resolve(E.right(undefined))
  return { current: () => right, begun: () => 0, afterMiss: () => none, ready: () => Promise.resolve() }
}

/** The keys of an issuer, from the source that it names. Throws a TypeError for a source that cannot work. */
const keySource = (
  source: (typeof keySourceNames)[number],
  value: unknown,
  { issuer, algorithms }: { readonly issuer: string; readonly algorithms: ReadonlyArray<string> },
  { caller: where, policy, events }: KeyTerms,
): KeySource => {
  switch (source) {
    case 'jwksUri': {
      checkUrl(`${where}({ issuer: { jwksUri } })`, value, true)
      // Safe: `checkUrl` refuses anything but a string
      const url = value as string
      return remoteKeys((signal) => fetchJwks(url, signal), policy, events(issuer))
    }
    case 'jwks':
      return staticKeys(keySetOf(where, value))
    case 'publicKey': {
      const key = publicKeyOf(where, value)
      checkPublicKey(where, key, algorithms)
      return staticKeys(oneKey(key))
    }
    case 'secret': {
      const secret = typeof value === 'string' ? Buffer.from(value, 'utf8') : value
      if (!(secret instanceof Uint8Array)) throw new TypeError(`${where}({ secret }) must be bytes or a string`)
      checkSecret(where, secret, algorithms)
      return staticKeys(oneKey(secret))
    }
  }
}

const keySetOf = (where: string, value: unknown): Keys => {
  const jwks = usableKeys(value)
  if (jwks === undefined)
    throw new TypeError(`${where}({ jwks }) must be { keys: [...] } with a public key for signatures`)
  if (jwks.keys.some((jwk) => 'd' in jwk)) {
    throw new TypeError(`${where}({ jwks }) holds a private key; pass the public ones, without "d"`)
  }
  return parseJwks(jwks)
}

const publicKeyOf = (where: string, value: unknown): KeyObject => {
  if (value instanceof KeyObject) return value
  const wrong = `${where}({ publicKey }) must be a PEM of a public key, or a KeyObject`
  if (typeof value !== 'string') throw new TypeError(wrong)
  // Node would use its public half
  if (value.includes('PRIVATE KEY'))
    throw new TypeError(`${where}({ publicKey }) is a private key; pass the public one`)
  try {
    return createPublicKey(value)
  } catch {
    throw new TypeError(wrong)
  }
}

// --- fetching

/** Fetches the keys of an issuer whose discovery document says where they are. */
const viaDiscovery = (issuer: string, maxAge: number) => {
  const { find, forget } = discovery(issuer, 'jwks_uri', maxAge)
  return async (signal: AbortSignal): Promise<SigningKeySet> => {
    const url = await find(signal)
    try {
      return await fetchJwks(url, signal)
    } catch (error) {
      // the address may have changed
      forget()
      throw error
    }
  }
}

export interface Provider {
  readonly issuer: string
  /** `false`: `aud` is not looked at. */
  readonly audiences: ReadonlyArray<string> | false
  readonly algorithms: ReadonlyArray<string>
  readonly keys: KeySource
  /** Whether it is found by discovery. */
  readonly isDiscovered: boolean
}

/** The options that all issuers share. */
interface Common extends KeyTerms {
  readonly audience: unknown
  readonly algorithms: unknown
}

/** Names the issuer of a token, if it is accepted. It is asked with `iss`, which nothing has verified yet. */
export type FindIssuer = (iss: string, request: Request) => Issuer | undefined | Promise<Issuer | undefined>

export interface Providers {
  /** The provider of this name; `undefined` if it is not accepted. Rejects or throws if the application's function does. */
  readonly find: (iss: string, request: Request) => Provider | undefined | Promise<Provider | undefined>
  /** Whether a provider that was found before would be found now. */
  readonly isCurrent: (provider: Provider) => boolean
  /** Those that are known at the start. */
  readonly known: ReadonlyArray<Provider>
}

const KEPT = 1000

/** Checks the issuers, and makes the providers of them. */
export const providersOf = (given: unknown, common: Common): Providers => {
  if (typeof given === 'function') return foundProviders(given as FindIssuer, common)
  const all = listedProviders(given, common)
  return { find: (iss) => all.get(iss), isCurrent: () => true, known: [...all.values()] }
}

/**
 * Providers that the application finds, such as one for each tenant. The last thousand are kept for `keys.maxAge`, so a tenant that
 * is removed is refused after that time. Those with one `jwksUri` share its keys. Unknown ones are never fetched.
 */
const foundProviders = (find: FindIssuer, common: Common): Providers => {
  const { maxAge } = common.policy
  const kept = memory<Provider>({ size: KEPT, maxAge, dropsFirst: 'least recently used' })
  const shared = memory<KeySource>({ size: KEPT, maxAge: Infinity, dropsFirst: 'least recently used' })
  const made = (iss: string, issuer: unknown): Provider | undefined => {
    if (issuer === undefined || issuer === null || issuer === false) return undefined
    const provider = providerOf(issuer, common, shared)
    // a token of one tenant must not be good because another one was found
    if (provider.issuer !== iss) return undefined
    kept.set(iss, fromNow(provider))
    return provider
  }
  return {
    find: (iss, request) => {
      const before = kept.get(iss)
      if (before !== undefined) return before
      const found: unknown = find(iss, request)
      return isThenable(found) ? toPromise(found).then((late) => made(iss, late)) : made(iss, found)
    },
    isCurrent: (provider) => kept.get(provider.issuer) === provider,
    known: [],
  }
}

const listedProviders = (given: unknown, common: Common): ReadonlyMap<string, Provider> => {
  const { caller: where } = common
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (list.length === 0) throw new TypeError(`${where}({ issuer: [] }): an empty array; name at least one issuer`)
  const providers = new Map<string, Provider>()
  for (const one of list) {
    const provider = providerOf(one, common)
    if (providers.has(provider.issuer)) {
      throw new TypeError(`${where}({ issuer }): ${JSON.stringify(provider.issuer)} is there twice; write it once`)
    }
    providers.set(provider.issuer, provider)
  }
  return providers
}

const checks = {
  issuer: is.nonEmpty,
  jwksUri: is.unchecked,
  jwks: is.unchecked,
  publicKey: is.unchecked,
  secret: is.unchecked,
  audience: is.unchecked,
  algorithms: is.unchecked,
}

const providerOf = (given: unknown, common: Common, shared?: Memory<KeySource>): Provider => {
  const { caller: where, policy, events } = common
  // one flight and one set of keys for each address, also if the provider itself was forgotten
  const sharing = (address: string, make: () => KeySource): KeySource => {
    const before = shared?.get(address)
    if (before !== undefined) return before
    const keys = make()
    shared?.set(address, fromNow(keys))
    return keys
  }
  if (typeof given === 'string') {
    checkUrl(`${where}({ issuer })`, given)
    const options = { audience: undefined, algorithms: undefined, hasSecret: false }
    const keys = sharing(given, () => remoteKeys(viaDiscovery(given, policy.maxAge), policy, events(given)))
    return { ...settled(given, options, common), keys, isDiscovered: true }
  }
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(
      `${where}({ issuer }) must be the URL of an issuer, or an object such as { issuer, jwksUri }, not ${typeName(given)}`,
    )
  }
  // Safe: the members are checked here and below
  const all = checkOptions(`${where}({ issuer: { ... } })`, given as { readonly issuer: string }, checks)
  const { issuer, audience, algorithms, ...others } = all as Readonly<Record<string, unknown>> & typeof all
  const rest = bare(others)
  const [source, ...more] = keySourceNames.filter((name) => rest[name] !== undefined)
  if (source === undefined || more.length > 0) {
    const all = keySourceNames.join(', ')
    throw new TypeError(
      `${where}({ issuer: { issuer: ${JSON.stringify(issuer)} } }) needs exactly one of ${all}; for discovery, pass the issuer as a string`,
    )
  }
  const base = settled(issuer, { audience, algorithms, hasSecret: source === 'secret' }, common)
  const make = () => keySource(source, rest[source], base, common)
  const keys = source === 'jwksUri' ? sharing(String(rest[source]), make) : make()
  return { ...base, keys, isDiscovered: false }
}

interface Own {
  readonly audience: unknown
  readonly algorithms: unknown
  readonly hasSecret: boolean
}

const settled = (
  issuer: string,
  own: Own,
  { caller: where, ...general }: Common,
): Omit<Provider, 'keys' | 'isDiscovered'> => ({
  issuer,
  audiences:
    (own.audience ?? general.audience) === false
      ? false
      : nonEmptyStrings(`${where}({ audience })`, own.audience ?? general.audience),
  algorithms: algorithmsFor(where, own.algorithms ?? general.algorithms, own.hasSecret),
})
