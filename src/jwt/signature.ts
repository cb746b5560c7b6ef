/**
 * Checks a token's signature, with jose.
 */
import type { CompactVerifyGetKey, JSONWebKeySet } from 'jose'
import { ownField } from '../core/ownFields.js'
import type { Json } from './claims.js'
import { objectOf } from './compact.js'
import { jose } from './jose.js'

/** A set of keys. Sets are compared by identity. */
export interface Keys {
  /** Finds the key for a token's header. */
  readonly find: CompactVerifyGetKey
}

/** The result. `unknown key`: no key of the set can have signed the token, but a key of a newer set may have. */
export type Signature = 'good' | 'bad' | 'unknown key'

/** Checks a signature. Never throws. */
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
    // the token has no `kid`, and several keys could have signed it
    for await (const key of error) {
      try {
        await compactVerify(token, key, options)
        return 'good'
      } catch {
        // the next key may be the right one
      }
    }
    return 'bad'
  }
}

// RFC 7518 §6: the members of a public key
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

/**
 * The keys of a JSON Web Key Set that can verify a signature; `undefined` if it is not such a set, or has no such key.
 */
export const signingKeysOf = (value: unknown): JSONWebKeySet | undefined => {
  const keys = ownField(objectOf(value) ?? {}, 'keys')
  if (!Array.isArray(keys)) return undefined
  const signing = keys.map(objectOf).filter((jwk) => jwk !== undefined && isSigningKey(jwk))
  // Safe: `isSigningKey` has checked what jose needs, and jose checks the rest
  return signing.length === 0 ? undefined : ({ keys: signing } as unknown as JSONWebKeySet)
}

/** Makes a set of keys, which are found by the header's `kid` and `alg`. */
export const keysIn = (jwks: JSONWebKeySet): Keys => ({ find: jose().createLocalJWKSet(jwks) })
