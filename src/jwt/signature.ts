/**
 * The keys that verify tokens, and the check of a signature (RFC 7515 §5.2, RFC 7518 §3).
 *
 * A signature is checked with node:crypto in the same tick, because the promises of WebCrypto cost more than the check. A slow key is
 * used on the thread pool, so that other requests go on.
 *
 * | algorithm       | key                       | check                                                            |
 * |-----------------|---------------------------|------------------------------------------------------------------|
 * | RS256 to RS512  | RSA, 2048 bits or more    | PKCS #1 v1.5; as long as the modulus (RFC 8017 §8.2.2)           |
 * | PS256 to PS512  | RSA, 2048 bits or more    | PSS, as long; a salt as long as the hash (RFC 7518 §3.5)         |
 * | ES256 to ES512  | the curve of that name    | R and S, each as long as the curve's order (RFC 7518 §3.4)       |
 * | EdDSA, Ed25519  | Ed25519                   | 64 bytes (RFC 8037 §3.1)                                         |
 * | HS256 to HS512  | a secret                  | in constant time                                                 |
 */
import { constants, createHmac, createPublicKey, hash, timingSafeEqual, verify } from 'node:crypto'
import type { KeyObject, VerifyKeyObjectInput } from 'node:crypto'
import { objectOf, type ParsedToken, type Json } from './claims.js'

/** The result. `unknown key`: no key of the set can have signed the token, but a key of a newer set may have. */
type Signature = 'good' | 'bad' | 'unknown key'

/** A set of keys. Sets are compared by identity. */
export interface Keys {
  readonly all: ReadonlyArray<VerificationKey>
}

interface VerificationKey {
  /** The only `kid` that a token may name; `undefined` for a key that is alone, which any `kid` may mean. */
  readonly kid: unknown
  /** The only algorithm that it may be used for, if its owner says so. */
  readonly alg: unknown
  /** The family of the key: its type, or its curve. */
  readonly family: string
  /** Checks a signature; `undefined` for a key that cannot be used. */
  readonly verify: KeyCheck | undefined
}

/** `isLate`: so many keys were tried in this tick that it must not take longer. */
type KeyCheck = (signed: Buffer, signature: Buffer, algorithm: Terms, isLate: boolean) => boolean | Promise<boolean>

/** Algorithms with a public key. */
export type AsymmetricAlgorithm =
  'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | 'Ed25519'

/** Algorithms with a shared secret. */
export type SecretAlgorithm = 'HS256' | 'HS384' | 'HS512'

/** Algorithms of signatures (RFC 7518 §3.1). `none` is not among them (RFC 8725 §3.1). */
export type Algorithm = AsymmetricAlgorithm | SecretAlgorithm

interface Terms {
  readonly family: string
  readonly hash: 'sha256' | 'sha384' | 'sha512' | undefined
  readonly padding?: number
  readonly saltLength?: number
  /** How many bytes a signature has; `undefined` for RSA, whose modulus says so. */
  readonly bytes?: number
}

const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_DIGEST } = constants

const pkcs1 = { family: 'RSA', padding: RSA_PKCS1_PADDING }
const pss = { family: 'RSA', padding: RSA_PKCS1_PSS_PADDING, saltLength: RSA_PSS_SALTLEN_DIGEST }

const algorithmTerms: ReadonlyMap<unknown, Terms> = new Map<unknown, Terms>([
  ['RS256', { ...pkcs1, hash: 'sha256' }],
  ['RS384', { ...pkcs1, hash: 'sha384' }],
  ['RS512', { ...pkcs1, hash: 'sha512' }],
  ['PS256', { ...pss, hash: 'sha256' }],
  ['PS384', { ...pss, hash: 'sha384' }],
  ['PS512', { ...pss, hash: 'sha512' }],
  ['ES256', { family: 'P-256', hash: 'sha256', bytes: 64 }],
  ['ES384', { family: 'P-384', hash: 'sha384', bytes: 96 }],
  ['ES512', { family: 'P-521', hash: 'sha512', bytes: 132 }],
  ['EdDSA', { family: 'Ed25519', hash: undefined, bytes: 64 }],
  ['Ed25519', { family: 'Ed25519', hash: undefined, bytes: 64 }],
  ['HS256', { family: 'secret', hash: 'sha256', bytes: 32 }],
  ['HS384', { family: 'secret', hash: 'sha384', bytes: 48 }],
  ['HS512', { family: 'secret', hash: 'sha512', bytes: 64 }],
])

// RFC 7518 §3.3
const MIN_RSA_BITS = 2048

// Their checks take about a millisecond and more. All others were measured to take less than half a millisecond: RSA with 2048, 4096 and 8192
// bits 0.02, 0.05 and 0.2 ms, P-256 and Ed25519 0.05 ms, P-384 0.4 ms
const isSlow = ({
  modulusLength = 0,
  publicExponent = 0n,
  namedCurve,
}: NonNullable<KeyObject['asymmetricKeyDetails']>) =>
  modulusLength > 8192 || publicExponent > 0xffffffffn || namedCurve === 'secp521r1'

// A token without a `kid` is tried with every key that fits; more of them go to the thread pool
const MAX_IN_TICK = 4

const publicVerify = (key: KeyObject): KeyCheck | undefined => {
  const { asymmetricKeyDetails: details = {} } = key
  const { modulusLength } = details
  if (modulusLength !== undefined && modulusLength < MIN_RSA_BITS) return undefined
  // RFC 8017 §3.1: at least 3. With 1, every signature is the message itself
  if (details.publicExponent !== undefined && details.publicExponent < 3n) return undefined
  // OpenSSL accepts a PSS signature without its first zeros
  const modulusBytes = modulusLength === undefined ? undefined : Math.ceil(modulusLength / 8)
  const isAlwaysLate = isSlow(details)
  return (signed, signature, { hash, padding, saltLength, bytes = modulusBytes }, isLate) => {
    if (signature.length !== bytes) return false
    const input: VerifyKeyObjectInput = { key, dsaEncoding: 'ieee-p1363', padding, saltLength }
    return isLate || isAlwaysLate ? onPool(hash, signed, input, signature) : verify(hash, signed, input, signature)
  }
}

// On the thread pool
const onPool = (
  hash: Terms['hash'],
  signed: Buffer,
  input: VerifyKeyObjectInput,
  signature: Buffer,
): Promise<boolean> =>
  new Promise((resolve) => {
    verify(hash, signed, input, signature, (error, isGood) => resolve(error === null && isGood))
  })

// it throws for another length
const secretVerify =
  (secret: Buffer): KeyCheck =>
  (signed, signature, { hash }) =>
    hash !== undefined && timingSafeEqual(createHmac(hash, secret).update(signed).digest(), signature)

const curves: Readonly<Record<string, string>> = { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' }

const keyFamily = ({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): string => {
  if (asymmetricKeyType === 'rsa') return 'RSA'
  if (asymmetricKeyType === 'ed25519') return 'Ed25519'
  return curves[asymmetricKeyDetails.namedCurve ?? ''] ?? String(asymmetricKeyType)
}

/** One public key or secret, for any `kid`. A secret is copied. */
export const oneKey = (key: KeyObject | Uint8Array): Keys => {
  const [family, verify] =
    key instanceof Uint8Array ? ['secret', secretVerify(Buffer.from(key))] : [keyFamily(key), publicVerify(key)]
  return { all: [{ kid: undefined, alg: undefined, family, verify }] }
}

// RFC 7518 §6: the members of a public key
const jwkMembers: ReadonlyMap<unknown, ReadonlyArray<string>> = new Map([
  ['RSA', ['n', 'e']],
  ['EC', ['crv', 'x', 'y']],
  ['OKP', ['crv', 'x']],
])

const isSigningKey = (jwk: Json): boolean => {
  const { kty, use } = jwk
  const parts = jwkMembers.get(kty)
  const isForSigning = use === undefined || use === 'sig'
  return parts !== undefined && isForSigning && parts.every((part) => typeof jwk[part] === 'string')
}

export interface SigningKeySet {
  readonly keys: ReadonlyArray<Json>
}

/** The keys of a JSON Web Key Set that can verify a signature; `undefined` if it is not such a set, or has no such key. */
export const usableKeys = (value: unknown): SigningKeySet | undefined => {
  const keys = objectOf(value)?.['keys']
  if (!Array.isArray(keys)) return undefined
  const signing = keys
    .map(objectOf)
    .filter((jwk) => jwk !== undefined)
    .filter(isSigningKey)
  return signing.length === 0 ? undefined : { keys: signing }
}

/** Makes the keys of a set. A key that cannot be used refuses every token that names it. */
export const parseJwks = ({ keys }: SigningKeySet): Keys => ({ all: keys.filter(mayVerify).map(fromJwk) })

// RFC 7517 §4.3, §4.5
const mayVerify = ({ key_ops: operations, ext }: Json): boolean => {
  if (ext !== undefined && typeof ext !== 'boolean') return false
  if (operations === undefined) return true
  return Array.isArray(operations) && operations.includes('verify') && new Set(operations).size === operations.length
}

const fromJwk = (jwk: Json): VerificationKey => {
  const { kid, alg, kty, crv } = jwk
  return {
    // a key without a `kid` is not found by a `kid`
    kid: kid ?? null,
    alg,
    family: String(kty === 'RSA' ? kty : crv),
    verify: usable(jwk),
  }
}

// RFC 7518 §6.2.2, §6.3.2: a provider publishes neither a private key nor a key of several primes
const usable = (jwk: Json): KeyCheck | undefined => {
  if ('d' in jwk || 'oth' in jwk) return undefined
  const { key_ops: operations, kty, crv, x, y, n, e } = jwk
  // WebCrypto: a public key has no other use
  if (Array.isArray(operations) && operations.length > 1) return undefined
  // Only these, so that nothing that a key set holds beside is interpreted
  const parts = Object.entries({ kty, crv, x, y, n, e })
  const given = Object.fromEntries(parts.filter(([, value]) => typeof value === 'string'))
  try {
    return publicVerify(createPublicKey({ key: given, format: 'jwk' }))
  } catch {
    // such as a point that is not on its curve
    return undefined
  }
}

// RFC 7518 §6: the members of private and of secret keys
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

// 4096 bits and the exponent 65537: a longer key, which its client chose, would keep other requests waiting
const MAX_LENGTHS = { n: 683, e: 4 }

/**
 * The public key of a proof (RFC 9449 §4.2), whatever its `kid`, if it has this thumbprint; `undefined` if it is none that can verify a signature.
 */
export const keyOfProof = (jwk: Json, thumbprint: string): Keys | 'another' | undefined => {
  if (thumbprintOf(jwk) !== thumbprint) return 'another'
  const isPublic = privateMembers.every((name) => !(name in jwk))
  const isShort = Object.entries(MAX_LENGTHS).every(([name, most]) => {
    const part = jwk[name]
    return typeof part !== 'string' || part.length <= most
  })
  if (!isPublic || !isShort || !isSigningKey(jwk) || !mayVerify(jwk)) return undefined
  const key = fromJwk(jwk)
  return key.verify === undefined ? undefined : { all: [{ ...key, kid: undefined }] }
}

/** The SHA-256 thumbprint of a key (RFC 7638 §3), in base64url; `undefined` if it is no public key. */
export const thumbprintOf = (jwk: Json): string | undefined => {
  if (!isSigningKey(jwk)) return undefined
  const names = ['kty', ...(jwkMembers.get(jwk['kty']) ?? [])].sort()
  return hash('sha256', JSON.stringify(Object.fromEntries(names.map((name) => [name, jwk[name]]))), 'base64url')
}

const canHaveSigned =
  (alg: unknown, family: string, kid: unknown) =>
  (key: VerificationKey): boolean =>
    key.family === family &&
    (key.alg === undefined || key.alg === alg) &&
    (kid === undefined || key.kid === undefined || (typeof kid === 'string' && key.kid === kid))

/**
 * Checks the signature of a token, in the same tick unless the key is slow. The caller has checked that `alg` is allowed. It never
 * throws, and its promise never rejects. `crit` is refused, because no extension is understood (RFC 7515 §4.1.11).
 */
export const checkSignature = (
  { header, signed, signature }: Pick<ParsedToken, 'header' | 'signed' | 'signature'>,
  { all }: Keys,
): Signature | Promise<Signature> => {
  const { alg, kid } = header
  const algorithm = algorithmTerms.get(alg)
  if (algorithm === undefined || 'crit' in header) return 'bad'
  const candidates = all.filter(canHaveSigned(alg, algorithm.family, kid))
  if (candidates.length === 0) return 'unknown key'
  const bytes = Buffer.from(signed)
  const from = (at: number): Signature | Promise<Signature> => {
    for (let next = at; next < candidates.length; next++) {
      const isGood = isSignedWith(candidates[next]?.verify, bytes, signature, algorithm, next >= MAX_IN_TICK)
      if (isGood instanceof Promise) return isGood.then((late) => (late ? 'good' : from(next + 1)))
      if (isGood) return 'good'
    }
    return 'bad'
  }
  return from(0)
}

const isSignedWith = (
  verify: KeyCheck | undefined,
  signed: Buffer,
  signature: Buffer,
  algorithm: Terms,
  isLate: boolean,
): boolean | Promise<boolean> => {
  try {
    return verify?.(signed, signature, algorithm, isLate) ?? false
  } catch {
    // OpenSSL throws for some malformed signatures, and Node for a code of another length
    return false
  }
}

// --- the keys of options

const defaultAlgorithms: ReadonlyArray<string> = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']

/** Checks the algorithms of an issuer. The default for a secret is HS256. */
export const algorithmsFor = (where: string, given: unknown, hasSecret: boolean): ReadonlyArray<string> => {
  if (given === undefined) return hasSecret ? ['HS256'] : defaultAlgorithms
  if (!Array.isArray(given) || given.length === 0) {
    throw new TypeError(`${where}({ algorithms }) must be an array of at least one algorithm, such as ['ES256']`)
  }
  for (const name of given as ReadonlyArray<unknown>) {
    const algorithm = algorithmTerms.get(name)
    if (algorithm === undefined) {
      const names = [...algorithmTerms.keys()].join(', ')
      throw new TypeError(`${where}({ algorithms }): there are ${names}; "none" is not allowed`)
    }
    if ((algorithm.family === 'secret') === hasSecret) continue
    const why = hasSecret
      ? 'needs a public key, and there is a secret; use HS256'
      : 'needs { issuer, secret }, and cannot be mixed with other kinds: a public key could be used as the secret'
    throw new TypeError(`${where}({ algorithms }): ${String(name)} ${why}`)
  }
  // Safe: each was looked up
  return [...(given as ReadonlyArray<string>)]
}

/** Checks that a secret is long enough for each of the algorithms (RFC 7518 §3.2: as many bytes as the hash has). */
export const checkSecret = (where: string, secret: Uint8Array, names: ReadonlyArray<string>): void => {
  const needed = Math.max(...names.map((name) => algorithmTerms.get(name)?.bytes ?? 0))
  if (secret.byteLength < needed) {
    throw new TypeError(`${where} has ${secret.byteLength} bytes, and ${names.join(', ')} needs ${needed} random bytes`)
  }
}

/** Checks that a public key can verify one of the algorithms. */
export const checkPublicKey = (where: string, key: KeyObject, names: ReadonlyArray<string>): void => {
  if (key.type !== 'public') throw new TypeError(`${where} is a ${key.type} key; pass the public key`)
  const { namedCurve, modulusLength } = key.asymmetricKeyDetails ?? {}
  if (modulusLength !== undefined && modulusLength < MIN_RSA_BITS) {
    throw new TypeError(`${where} has ${modulusLength} bits; RSA needs ${MIN_RSA_BITS} (RFC 7518 §3.3)`)
  }
  if (!names.some((name) => algorithmTerms.get(name)?.family === keyFamily(key))) {
    throw new TypeError(
      `${where} is of ${namedCurve ?? key.asymmetricKeyType}, which none of ${names.join(', ')} can use; name its algorithm in \`algorithms\``,
    )
  }
}
