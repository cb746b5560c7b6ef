/** The keys of an issuer: given ones, or fetched ones. */
import { createPublicKey, KeyObject } from 'node:crypto'
import type { JSONWebKeySet } from 'jose'
import { checkPublicKey, checkSecret } from './algorithms.js'
import { discovery } from './discovery.js'
import { fetchJson, Outage } from './fetchJson.js'
import type { sources } from './Issuer.js'
import { fetchedKeys, fixedKeys, type KeyEvents, type KeySource } from './keySet.js'
import type { KeyPolicy } from './policies.js'
import { keysIn, signingKeysOf, type Keys } from './signature.js'
import { checkUrl } from './urls.js'

/** What is needed to get keys: the caller for messages, how long keys are kept, and who hears of outages. */
export interface KeyTerms {
  readonly place: string
  readonly policy: KeyPolicy
  readonly events: (issuer: string) => KeyEvents
}

/** The keys of an issuer, from the source that it names. Throws a TypeError for a source that cannot work. */
export const keysFrom = (
  source: (typeof sources)[number],
  value: unknown,
  { issuer, algorithms }: { readonly issuer: string; readonly algorithms: ReadonlyArray<string> },
  { place, policy, events }: KeyTerms,
): KeySource => {
  switch (source) {
    case 'jwksUri': {
      checkUrl(`${place}({ issuer: { jwksUri } })`, value, true)
      // Safe: `checkUrl` refuses anything but a string
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
  // Node would use its public half
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

/** Fetches the keys of an issuer whose discovery document says where they are. */
export const discoveredKeys = (issuer: string, maxAge: number) => {
  const { find, forget } = discovery(issuer, 'jwks_uri', maxAge)
  return async (signal: AbortSignal): Promise<JSONWebKeySet> => {
    const url = await find(signal)
    try {
      return await fetchKeys(url, signal)
    } catch (error) {
      // the address may have changed
      forget()
      throw error
    }
  }
}
