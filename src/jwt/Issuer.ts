/** The option `issuer`: who may issue tokens, and where the keys come from. */
import type { KeyObject } from 'node:crypto'
import type { JSONWebKeySet } from 'jose'
import type { AsymmetricAlgorithm, SecretAlgorithm } from './algorithms.js'

/** One string or several. */
export type OneOrMore = string | readonly [string, ...string[]]

interface Named {
  /** Compared exactly with `iss`. */
  readonly issuer: string
  /** Replaces the general one. */
  readonly audience?: OneOrMore | undefined
}

interface Asymmetric extends Named {
  /** Replace the general ones. */
  readonly algorithms?: readonly [AsymmetricAlgorithm, ...AsymmetricAlgorithm[]] | undefined
}

/** An issuer, with exactly one source of keys. */
export type IssuerWithKeys =
  | (Asymmetric & {
      readonly jwksUri: string
      readonly jwks?: undefined
      readonly publicKey?: undefined
      readonly secret?: undefined
    })
  | (Asymmetric & {
      readonly jwks: JSONWebKeySet
      readonly jwksUri?: undefined
      readonly publicKey?: undefined
      readonly secret?: undefined
    })
  | (Asymmetric & {
      /** A PEM, or a KeyObject of `node:crypto`. */
      readonly publicKey: string | KeyObject
      readonly jwksUri?: undefined
      readonly jwks?: undefined
      readonly secret?: undefined
    })
  | (Named & {
      /** Random bytes: 32 for HS256, 48 for HS384, 64 for HS512. A string is its UTF-8. */
      readonly secret: Uint8Array | string
      readonly algorithms?: readonly [SecretAlgorithm, ...SecretAlgorithm[]] | undefined
      readonly jwksUri?: undefined
      readonly jwks?: undefined
      readonly publicKey?: undefined
    })

/** An issuer. A string means discovery. */
export type Issuer = string | IssuerWithKeys

/** The options that name a source of keys. */
export const sources = ['jwksUri', 'jwks', 'publicKey', 'secret'] as const

const isString = (u: unknown): u is string => typeof u === 'string' && u !== ''

/** Turns one string or several into an array. Throws a TypeError for an empty one. */
export const severalOf = (place: string, given: unknown): ReadonlyArray<string> => {
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (list.length === 0 || !list.every(isString)) {
    throw new TypeError(`${place} must be a string or an array of strings, and none of them empty`)
  }
  return list
}
