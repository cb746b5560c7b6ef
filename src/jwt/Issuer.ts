/**
 * Who may issue tokens, and where the keys come from: what an application writes, and what is made of it.
 */
import { createPublicKey, KeyObject } from 'node:crypto'
import type { JSONWebKeySet } from 'jose'
import { checkOptions, nonEmpty, unchecked } from '../core/options.js'
import {
  algorithmsFor,
  checkPublicKey,
  checkSecret,
  type AsymmetricAlgorithm,
  type SecretAlgorithm,
} from './algorithms.js'
import { discovery } from './discovery.js'
import { fetchJson, Outage } from './fetchJson.js'
import { fetchedKeys, fixedKeys, type KeyEvents, type KeySource } from './keySet.js'
import type { KeyPolicy } from './policies.js'
import { keysIn, signingKeysOf, type Keys } from './signature.js'
import { checkUrl } from './urls.js'

// -------------------------------------------------------------------------------------
// what is written
// -------------------------------------------------------------------------------------

/** One string or several. */
export type OneOrMore = string | readonly [string, ...string[]]

interface Named {
  /** Compared exactly with `iss`. */
  readonly issuer: string
  /** In the place of the general one. */
  readonly audience?: OneOrMore
}

interface Asymmetric extends Named {
  /** In the place of the general ones. */
  readonly algorithms?: readonly [AsymmetricAlgorithm, ...AsymmetricAlgorithm[]]
}

/** An issuer, with exactly one source of keys. */
export type IssuerWithKeys =
  | (Asymmetric & {
      readonly jwksUri: string
      readonly jwks?: never
      readonly publicKey?: never
      readonly secret?: never
    })
  | (Asymmetric & {
      readonly jwks: JSONWebKeySet
      readonly jwksUri?: never
      readonly publicKey?: never
      readonly secret?: never
    })
  | (Asymmetric & {
      /** A PEM, or what `node:crypto` makes of one. */
      readonly publicKey: string | KeyObject
      readonly jwksUri?: never
      readonly jwks?: never
      readonly secret?: never
    })
  | (Named & {
      /** Random bytes: 32 for HS256, 48 for HS384, 64 for HS512. A string is its UTF-8. */
      readonly secret: Uint8Array | string
      readonly algorithms?: readonly [SecretAlgorithm, ...SecretAlgorithm[]]
      readonly jwksUri?: never
      readonly jwks?: never
      readonly publicKey?: never
    })

/** An issuer: a string is found by discovery. */
export type Issuer = string | IssuerWithKeys

// -------------------------------------------------------------------------------------
// what is made of it
// -------------------------------------------------------------------------------------

/** An issuer whose tokens are taken. */
export interface Provider {
  readonly issuer: string
  readonly audiences: ReadonlyArray<string>
  readonly algorithms: ReadonlyArray<string>
  readonly keys: KeySource
  /** Whether it is found by discovery. */
  readonly isDiscovered: boolean
}

/** What issuers have in common. */
export interface Common {
  readonly place: string
  readonly audience: unknown
  readonly algorithms: unknown
  readonly policy: KeyPolicy
  readonly events: (issuer: string) => KeyEvents
}

const sources = ['jwksUri', 'jwks', 'publicKey', 'secret'] as const

const isString = (u: unknown): u is string => typeof u === 'string' && u !== ''

/** One string or several, as a list. TypeError for none. */
export const severalOf = (place: string, given: unknown): ReadonlyArray<string> => {
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (list.length === 0 || !list.every(isString)) {
    throw new TypeError(`${place} must be a string or an array of strings, and none of them empty`)
  }
  return list
}

/** Checks the issuers, and makes a provider of each, by its name. */
export const providersOf = (given: unknown, common: Common): ReadonlyMap<string, Provider> => {
  const { place } = common
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (list.length === 0) throw new TypeError(`${place}({ issuer: [] }): an empty array; name one issuer at least`)
  const providers = new Map<string, Provider>()
  for (const one of list) {
    const provider = providerOf(one, common)
    if (providers.has(provider.issuer)) {
      throw new TypeError(`${place}({ issuer }): ${JSON.stringify(provider.issuer)} is there twice; write it once`)
    }
    providers.set(provider.issuer, provider)
  }
  return providers
}

const checks = {
  issuer: nonEmpty,
  jwksUri: unchecked,
  jwks: unchecked,
  publicKey: unchecked,
  secret: unchecked,
  audience: unchecked,
  algorithms: unchecked,
}

const providerOf = (given: unknown, common: Common): Provider => {
  const { place, policy, events } = common
  if (typeof given === 'string') {
    checkUrl(`${place}({ issuer })`, given)
    const fetch = discoveredKeys(given, policy.maxAge)
    const options = { audience: undefined, algorithms: undefined, hasSecret: false }
    return { ...settled(given, options, common), keys: fetchedKeys(fetch, policy, events(given)), isDiscovered: true }
  }
  // Safe: `checkOptions` refuses what is no object; its members are checked there and below
  const all = checkOptions(`${place}({ issuer: { ... } })`, given as { readonly issuer: string }, checks)
  const { issuer, audience, algorithms, ...rest } = all as Readonly<Record<string, unknown>> & typeof all
  const named = sources.filter((name) => rest[name] !== undefined)
  const [source] = named
  if (source === undefined || named.length > 1) {
    const all = sources.join(', ')
    throw new TypeError(
      `${place}({ issuer: { issuer: ${JSON.stringify(issuer)} } }) needs exactly one of ${all}; for discovery write the string alone`,
    )
  }
  const base = settled(issuer, { audience, algorithms, hasSecret: source === 'secret' }, common)
  return { ...base, keys: keysOf(source, rest[source], base, common), isDiscovered: false }
}

interface Own {
  readonly audience: unknown
  readonly algorithms: unknown
  readonly hasSecret: boolean
}

const settled = (issuer: string, own: Own, { place, ...general }: Common): Omit<Provider, 'keys' | 'isDiscovered'> => ({
  issuer,
  audiences: severalOf(`${place}({ audience })`, own.audience ?? general.audience),
  algorithms: algorithmsFor(place, own.algorithms ?? general.algorithms, own.hasSecret),
})

const keysOf = (
  source: (typeof sources)[number],
  value: unknown,
  { issuer, algorithms }: Pick<Provider, 'issuer' | 'algorithms'>,
  { place, policy, events }: Common,
): KeySource => {
  switch (source) {
    case 'jwksUri': {
      checkUrl(`${place}({ issuer: { jwksUri } })`, value, true)
      // Safe: `checkUrl` refuses what is no string
      const url = value as string
      return fetchedKeys((signal) => fetchKeys(url, signal), policy, events(issuer))
    }
    case 'jwks':
      return fixedKeys(givenKeys(place, value))
    case 'publicKey': {
      const key = publicKeyOf(place, value)
      checkPublicKey(place, key, algorithms)
      return fixedKeys({ find: () => key })
    }
    case 'secret': {
      const secret = typeof value === 'string' ? Buffer.from(value, 'utf8') : value
      if (!(secret instanceof Uint8Array)) throw new TypeError(`${place}({ secret }) must be bytes or a string`)
      checkSecret(place, secret, algorithms)
      const own = Uint8Array.from(secret)
      return fixedKeys({ find: () => own })
    }
  }
}

const givenKeys = (place: string, value: unknown): Keys => {
  const jwks = signingKeysOf(value)
  if (jwks === undefined)
    throw new TypeError(`${place}({ jwks }) must be { keys: [...] } with a public key for signatures`)
  if (jwks.keys.some((jwk) => 'd' in jwk)) {
    throw new TypeError(`${place}({ jwks }) holds a private key; pass the public ones, without "d"`)
  }
  return keysIn(jwks)
}

const publicKeyOf = (place: string, value: unknown): KeyObject => {
  if (value instanceof KeyObject) return value
  const wrong = `${place}({ publicKey }) must be a PEM of a public key, or a KeyObject`
  if (typeof value !== 'string') throw new TypeError(wrong)
  // Node would take the public half of it
  if (value.includes('PRIVATE KEY'))
    throw new TypeError(`${place}({ publicKey }) is a private key; pass the public one`)
  try {
    return createPublicKey(value)
  } catch {
    throw new TypeError(wrong)
  }
}

// -------------------------------------------------------------------------------------
// fetching
// -------------------------------------------------------------------------------------

const fetchKeys = async (url: string, signal: AbortSignal): Promise<JSONWebKeySet> => {
  const headers = { Accept: 'application/json, application/jwk-set+json' }
  const jwks = signingKeysOf(await fetchJson(url, { signal, headers }))
  if (jwks === undefined) throw new Outage('answered a key set without a key for signatures', true)
  return jwks
}

const discoveredKeys = (issuer: string, maxAge: number) => {
  const { find, forget } = discovery(issuer, 'jwks_uri', maxAge)
  return async (signal: AbortSignal): Promise<JSONWebKeySet> => {
    const url = await find(signal)
    try {
      return await fetchKeys(url, signal)
    } catch (error) {
      // it may have moved
      forget()
      throw error
    }
  }
}
