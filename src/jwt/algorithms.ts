/**
 * The algorithms that a token may be signed with (RFC 7518 §3.1, RFC 8725 §3.1), and the keys that fit them.
 */
import type { KeyObject } from 'node:crypto'

/** Algorithms with a public key. */
export type AsymmetricAlgorithm =
  'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | 'Ed25519'

/** Algorithms with a shared secret. */
export type SecretAlgorithm = 'HS256' | 'HS384' | 'HS512'

/** Algorithms of signatures. `none` is not among them. */
export type Algorithm = AsymmetricAlgorithm | SecretAlgorithm

const asymmetric = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

const defaults: ReadonlyArray<string> = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']

// RFC 7518 §3.2: at least as many bytes as the hash has
const secretBytes: Readonly<Record<string, number>> = { HS256: 32, HS384: 48, HS512: 64 }

/** Checks the algorithms of an issuer. The default for a secret is HS256. */
export const algorithmsFor = (place: string, given: unknown, hasSecret: boolean): ReadonlyArray<string> => {
  if (given === undefined) return hasSecret ? ['HS256'] : defaults
  if (!Array.isArray(given) || given.length === 0) {
    throw new TypeError(`${place}({ algorithms }) must be an array of at least one algorithm, such as ['ES256']`)
  }
  for (const name of given as ReadonlyArray<unknown>) {
    if (typeof name === 'string' && asymmetric.includes(name)) {
      if (!hasSecret) continue
      throw new TypeError(`${place}({ algorithms }): ${name} needs a public key, and there is a secret; use HS256`)
    }
    if (typeof name === 'string' && Object.hasOwn(secretBytes, name)) {
      if (hasSecret) continue
      throw new TypeError(
        `${place}({ algorithms }): ${name} needs { issuer, secret }, and cannot be mixed with other kinds: a public key could be used as the secret`,
      )
    }
    const known = [...asymmetric, ...Object.keys(secretBytes)].join(', ')
    throw new TypeError(`${place}({ algorithms }): there are ${known}; "none" is not allowed`)
  }
  // Safe: each was looked up
  return [...(given as ReadonlyArray<string>)]
}

/** Checks a secret's length. */
export const checkSecret = (place: string, secret: Uint8Array, algorithms: ReadonlyArray<string>): void => {
  const needed = Math.max(...algorithms.map((name) => secretBytes[name] ?? 0))
  if (secret.byteLength < needed) {
    throw new TypeError(
      `${place}({ secret }) has ${secret.byteLength} bytes, and ${algorithms.join(', ')} needs ${needed} random ones`,
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
export const checkPublicKey = (place: string, key: KeyObject, algorithms: ReadonlyArray<string>): void => {
  if (key.type !== 'public') throw new TypeError(`${place}({ publicKey }) is a ${key.type} key; pass the public one`)
  const { asymmetricKeyType = '', asymmetricKeyDetails = {} } = key
  const { namedCurve, modulusLength } = asymmetricKeyDetails
  if (modulusLength !== undefined && modulusLength < MIN_RSA_BITS) {
    throw new TypeError(`${place}({ publicKey }) has ${modulusLength} bits; RSA needs ${MIN_RSA_BITS} (RFC 7518 §3.3)`)
  }
  const kind = namedCurve ?? asymmetricKeyType
  if (!algorithms.some((name) => fitting[kind]?.test(name) === true)) {
    throw new TypeError(
      `${place}({ publicKey }) is of ${kind}, which none of ${algorithms.join(', ')} can use; name its algorithm in \`algorithms\``,
    )
  }
}
