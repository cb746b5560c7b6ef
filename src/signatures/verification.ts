/**
 * The verification of HTTP Message Signatures (RFC 9421 §3.2), with Content-Digest (RFC 9530): which signature of a request counts, and
 * its rules. Cheap checks come first, and the body is read after a signature was good.
 */
import { hash, KeyObject } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from '../core/Request.js'
import { settingsOf } from '../core/Exchange.js'
import { isInnerList, parseDictionary, type InnerList, type Item } from 'structured-headers'
import { because, expired, invalid, malformed, type AuthError, type Why } from '../core/AuthError.js'
import type { Result } from '../core/Result.js'
import { linesFrom } from '../core/RequestFields.js'
import { usedFor, type UsedOnce } from '../core/OneTimeIds.js'
import { deepFreeze, unlessThrown } from '../core/data.js'
import { digest } from '../crypto/secrets.js'
import { checkSignature, oneKey, parseJwks, usableKeys, type Keys } from '../jwt/signature.js'
import { bytesOfBody } from '../webhooks/rawBody.js'
import { coveredBy, readingsOf, signatureBase, type Covered, type Readings } from './components.js'

/** An algorithm of the registry of RFC 9421 §6.2. */
export type SignatureAlgorithm =
  'rsa-pss-sha512' | 'rsa-v1_5-sha256' | 'hmac-sha256' | 'ecdsa-p256-sha256' | 'ecdsa-p384-sha384' | 'ed25519'

// Their names in JSON Web Algorithms
const joseNames: Readonly<Record<SignatureAlgorithm, string>> = {
  'rsa-pss-sha512': 'PS512',
  'rsa-v1_5-sha256': 'RS256',
  'hmac-sha256': 'HS256',
  'ecdsa-p256-sha256': 'ES256',
  'ecdsa-p384-sha384': 'ES384',
  ed25519: 'EdDSA',
}

// Safe: the keys of this table
export const algorithmNames = Object.keys(joseNames) as ReadonlyArray<SignatureAlgorithm>

/** The parameters of a signature that are understood (RFC 9421 §2.3). */
interface SignatureParameters {
  readonly keyid: string
  /** In seconds since 1970. */
  readonly created: number
  readonly expires: number | undefined
  readonly nonce: string | undefined
  readonly alg: string | undefined
  readonly tag: string | undefined
}

export interface Candidate {
  readonly label: string
  readonly input: InnerList
  readonly signature: Buffer
  readonly parameters: SignatureParameters
}

/** The rules for signatures, and the signer. */
export interface SignatureRules<P> {
  /** For messages: `httpSignature`. */
  readonly caller: string
  readonly origin: string
  readonly tag: string | undefined
  /** In milliseconds. */
  readonly maxAge: number
  readonly maxLength: number
  readonly algorithms: ReadonlyArray<string>
  readonly spent: UsedOnce | undefined
  /** Finds the keys for a signature that covers these components, and the principal if it is good. A Left says why there are none. */
  readonly signerOf: (
    candidate: Candidate,
    covered: ReadonlyArray<Covered>,
    readings: Readings,
  ) => Promise<Result<{ readonly keys: Keys; readonly principal: P }>>
}

// The clock of a client may be 5 s ahead, and its times are whole seconds
const CLOCK_AHEAD = 6000

const MAX_CANDIDATES = 8

const failWith = (error: AuthError, why: Why): Result<never> => deepFreeze(E.left(because(error, why)))

// The failure of something that is no signature
const unreadableSign = failWith(malformed, 'syntax')

export const refusedBy = (why: Why): Result<never> => failWith(why === 'expired' ? expired : invalid, why)

type SignatureFields = Readonly<Record<'input' | 'signature', string>>

/** The lines of the two fields together, as one structured field each. */
export const signatureFields = (request: Request): O.Option<SignatureFields> => {
  const [input, signature] = ['Signature-Input', 'Signature'].map((name) => {
    const found = linesFrom(name)(request)
    return found.length === 0 ? undefined : found.join(', ')
  })
  return (input ?? signature) === undefined ? O.none : O.some({ input: input ?? '', signature: signature ?? '' })
}

const MAX_FIELDS_LENGTH = 16_384

/** Verifies the signatures of a request: one of them must be good. Never throws, except for a body or a key that cannot be had. */
export const verifying =
  <P>(rules: SignatureRules<P>) =>
  async (request: Request, fields: SignatureFields): Promise<Result<P>> => {
    const isLong = fields.input.length + fields.signature.length > MAX_FIELDS_LENGTH
    const found = isLong ? undefined : candidatesIn(fields, rules.tag)
    if (found === undefined) return unreadableSign
    // Others may have signed, too. The failure is that of the last one of ours
    let failure = found.others === undefined || found.others === 'syntax' ? unreadableSign : refusedBy(found.others)
    const readings = readingsOf(request, rules.origin)
    for (const candidate of found.candidates.slice(0, MAX_CANDIDATES)) {
      const result = await verifyOne(rules, readings, candidate)
      if (E.isRight(result) || result.left._tag === 'unavailable' || result.left._tag === 'raised') return result
      failure = result
    }
    return failure
  }

const verifyOne = async <P>(rules: SignatureRules<P>, readings: Readings, candidate: Candidate): Promise<Result<P>> => {
  const { parameters, input, signature } = candidate
  const untimely = checkSignatureAge(parameters, rules.maxAge, Date.now())
  if (untimely !== undefined) return refusedBy(untimely)
  if (rules.spent !== undefined && parameters.nonce === undefined) return refusedBy('replay')
  const { request } = readings
  const covered = coveredBy(input)
  if (covered === undefined) return refusedBy('components')
  // A stranger without a key costs no base
  const found = await rules.signerOf(candidate, covered, readings)
  if (E.isLeft(found)) return found
  const { keys, principal } = found.right
  const base = signatureBase(readings, input)
  if (base === undefined) return refusedBy('components')
  const good = await hasSigned(keys, rules.algorithms, parameters, base, signature)
  if (good !== 'good') return refusedBy(good)
  if (covered.some(({ name }) => name === 'content-digest')) {
    const body = await bytesOfBody(rules.caller, request, rules.maxLength)
    if (!isDigestOf(readings, body)) return refusedBy('body')
  }
  if (rules.spent !== undefined) {
    const id = digest(JSON.stringify([parameters.keyid, parameters.nonce]))
    // its age was checked before the key was looked up and the body came, which may take as long as the decision
    const lifetime = rules.maxAge + CLOCK_AHEAD + settingsOf(request).timeout
    const isFirst = await usedFor(request.req, rules.spent, `koa-with-auth/signature ${id}`, lifetime)
    if (isFirst === undefined) return refusedBy('replay')
    if (E.isLeft(isFirst)) return isFirst
  }
  return E.right(principal)
}

// --- the fields

// The signatures with this tag, and why another signature does not count; `undefined` if the fields cannot be read
const candidatesIn = (fields: SignatureFields, tag: string | undefined) =>
  unlessThrown(() => {
    const inputs = parseDictionary(fields.input)
    const signatures = parseDictionary(fields.signature)
    let others: Why | undefined
    const candidates = [...inputs].flatMap(([label, input]): ReadonlyArray<Candidate> => {
      const parameters = isInnerList(input) ? signatureParameters(input) : undefined
      const signature = signatureBytes(signatures.get(label))
      if (parameters === undefined || signature === undefined || !isInnerList(input)) others ??= 'syntax'
      else if (parameters.tag !== tag) others ??= 'type'
      else return [{ label, input, signature, parameters }]
      return []
    })
    return { candidates, others }
  })

const signatureBytes = (member: Item | InnerList | undefined): Buffer | undefined => {
  if (member === undefined || isInnerList(member)) return undefined
  const [value, parameters] = member
  return value instanceof ArrayBuffer && parameters.size === 0 ? Buffer.from(value) : undefined
}

const times = ['created', 'expires']
const texts = ['keyid', 'nonce', 'alg', 'tag']

// A parameter that is not understood could change the meaning of the signature
const signatureParameters = ([, given]: InnerList): SignatureParameters | undefined => {
  const isUnderstood = ([name, value]: readonly [string, unknown]): boolean =>
    times.includes(name) ? Number.isInteger(value) : texts.includes(name) && typeof value === 'string'
  if (![...given].every(isUnderstood) || !given.has('created') || !given.has('keyid')) return undefined
  const { keyid, created, expires, nonce, alg, tag } = Object.fromEntries(given)
  // Safe: each was checked
  return { keyid, created, expires, nonce, alg, tag }
}

const checkSignatureAge = ({ created, expires }: SignatureParameters, maxAge: number, now: number): Why | undefined => {
  const age = now - created * 1000
  if (age < -CLOCK_AHEAD) return 'not yet'
  return age > maxAge || (expires !== undefined && expires * 1000 <= now) ? 'expired' : undefined
}

// --- the signature

const MIN_HMAC_BYTES = 32

/** The verification keys of a KeyObject or a JWK. Throws a TypeError for a key that cannot verify a signature. */
export const verificationKeys = (where: string, key: unknown): Keys => {
  if (key instanceof KeyObject) {
    if (key.type === 'public') return oneKey(key)
    if (key.type === 'private') throw new TypeError(`${where} is a private key; return the public key`)
    return secretKeys(where, key.export())
  }
  if (typeof key !== 'object' || key === null)
    throw new TypeError(`${where} must be a JWK or a KeyObject; createPublicKey(pem) of node:crypto reads a PEM`)
  const jwk: Readonly<Record<string, unknown>> = { ...key }
  if (jwk['kty'] === 'oct' && typeof jwk['k'] === 'string') return secretKeys(where, Buffer.from(jwk['k'], 'base64url'))
  const known = usableKeys({ keys: [jwk] })
  if (known === undefined || 'd' in jwk) throw new TypeError(`${where} must be a JWK of a public key for signatures`)
  return parseJwks({ keys: known.keys.map(withJoseName) })
}

const secretKeys = (where: string, secret: Buffer): Keys => {
  if (secret.length >= MIN_HMAC_BYTES) return oneKey(secret)
  throw new TypeError(
    `${where} is a secret of ${secret.length} bytes; hmac-sha256 needs ${MIN_HMAC_BYTES} random bytes`,
  )
}

/** A JWK whose `alg` is one of the registry of RFC 9421, with the name that JSON Web Algorithms give it. */
export const withJoseName = (jwk: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const { alg, ...others } = jwk
  // Safe: a name that is not in the table is undefined
  const named = joseNames[alg as SignatureAlgorithm] as string | undefined
  return { ...others, alg: named ?? (alg === 'Ed25519' ? 'EdDSA' : alg) }
}

/** Whether a key has signed, by an algorithm that is allowed. RFC 9421 §3.2: the key decides, and a parameter must agree. */
const hasSigned = async (
  keys: Keys,
  algorithms: ReadonlyArray<string>,
  { alg }: SignatureParameters,
  signed: string,
  signature: Buffer,
): Promise<'good' | 'signature' | 'algorithm'> => {
  let worst: 'signature' | 'algorithm' = 'algorithm'
  for (const name of algorithms) {
    if (alg !== undefined && alg !== name) continue
    // Safe: the options were checked
    const header = { alg: joseNames[name as SignatureAlgorithm] }
    const checked = checkSignature({ header, signed, signature }, keys)
    const result = checked instanceof Promise ? await checked : checked
    if (result === 'good') return 'good'
    if (result === 'bad') worst = 'signature'
  }
  return worst
}

// --- the body

// RFC 9530 §2, §5: all digests of good algorithms must agree, and there must be at least one digest
const isDigestOf = ({ members }: Readings, body: Buffer): boolean => {
  const known = [...(members('content-digest') ?? [])].flatMap(([name, member]) => {
    if (name !== 'sha-256' && name !== 'sha-512') return []
    return [signatureBytes(member)?.equals(hash(name.replace('-', ''), body, 'buffer')) ?? false]
  })
  return known.length > 0 && !known.includes(false)
}
