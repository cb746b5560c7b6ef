/**
 * Whether a token's signature is good: jose's word, and nothing else.
 */
import type { CompactVerifyGetKey, JSONWebKeySet } from 'jose'
import { ownField } from '../core/session/sessionFields.js'
import type { Json } from './claims.js'
import { objectOf } from './compact.js'
import { jose } from './jose.js'

/** A set of keys, as one value: two sets are the same if they are this very object. */
export interface Keys {
  /** Finds the key for a token's header. */
  readonly find: CompactVerifyGetKey
}

/** What jose says; `unknown key`: no key of the set can have signed it, so another set could. */
export type Signature = 'good' | 'bad' | 'unknown key'

/** Asks jose. Never throws. */
export const checkSignature = async (
  token: string,
  { find }: Keys,
  algorithms: ReadonlyArray<string>,
): Promise<Signature> => {
  const { compactVerify, errors } = jose()
  const options = { algorithms: [...algorithms] }
  try {
    await compactVerify(token, find, options)
    return 'good'
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return 'unknown key'
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return 'bad'
    // a token without `kid`, where several keys could have signed it
    for await (const key of error) {
      try {
        await compactVerify(token, key, options)
        return 'good'
      } catch {
        // the next may be it
      }
    }
    return 'bad'
  }
}

// RFC 7518 §6: what a public key is made of
const members: Readonly<Record<string, ReadonlyArray<string>>> = {
  RSA: ['n', 'e'],
  EC: ['crv', 'x', 'y'],
  OKP: ['crv', 'x'],
}

const isSigningKey = (jwk: Json): boolean => {
  const kty = ownField(jwk, 'kty')
  const parts = typeof kty === 'string' && Object.hasOwn(members, kty) ? members[kty] : undefined
  const use = ownField(jwk, 'use')
  const isForSigning = use === undefined || use === 'sig'
  return parts !== undefined && isForSigning && parts.every((part) => typeof ownField(jwk, part) === 'string')
}

/** The keys of a JSON Web Key Set that can verify a signature; `undefined` where it is none, or has no such key. */
export const signingKeysOf = (value: unknown): JSONWebKeySet | undefined => {
  const keys = ownField(objectOf(value) ?? {}, 'keys')
  if (!Array.isArray(keys)) return undefined
  const signing = keys.map(objectOf).filter((jwk) => jwk !== undefined && isSigningKey(jwk))
  // Safe: `isSigningKey` has looked at what jose needs, and jose looks at the rest
  return signing.length === 0 ? undefined : ({ keys: signing } as unknown as JSONWebKeySet)
}

/** Keys that are looked up by the header's `kid` and `alg`. */
export const keysIn = (jwks: JSONWebKeySet): Keys => ({ find: jose().createLocalJWKSet(jwks) })
