/**
 * A relying party of WebAuthn: its id, its origins, and its checks of the answers of browsers.
 *
 * The JSON of an answer is decoded here, once. Only members that are checked are copied, as far as they are own properties.
 * Everything has a maximum length, because reading CBOR takes time and stack.
 *
 * `@simplewebauthn/server` checks the type, the challenge, the origin, the hash of the RP id, the flags, the counter and the
 * signature. The rest is checked here: frames of other origins, keys that are weak or no keys, the id of the
 * response, the user handle, and a signature that is wrong, for which it does not throw.
 */
import { createPublicKey, type AsymmetricKeyDetails, type JsonWebKey } from 'node:crypto'
import { verifyAuthenticationResponse, verifyRegistrationResponse } from '@simplewebauthn/server'
import { decodeAttestationObject, decodeCredentialPublicKey } from '@simplewebauthn/server/helpers'
import { jsonFields, ownField } from '../../core/data.js'
import { isRecord } from '../../core/checks.js'
import { bare } from '../../core/options.js'
import type { PasskeyRecord, PasskeyUse } from './PasskeyRecord.js'

// --- the answers of browsers

interface CredentialAnswer {
  /** The id of the credential, in base64url. */
  readonly id: string
  readonly clientDataJSON: string
  readonly client: NonNullable<ReturnType<typeof clientDataIn>>
}

export interface Registration extends CredentialAnswer {
  readonly attestationObject: string
  readonly transports: ReadonlyArray<string>
}

export interface Assertion extends CredentialAnswer {
  readonly authenticatorData: string
  readonly signature: string
  readonly userHandle: string
}

// Characters of base64url. An id has at most 1,023 bytes, and a user handle 64 (WebAuthn §4, §5.4.3). A signature is as long as the
// modulus of RSA. An attestation with certificates has about 5 kB. Authenticator data are 37 bytes and a few extensions.
const limits = {
  id: 1364,
  clientDataJSON: 8192,
  attestationObject: 8192,
  authenticatorData: 1024,
  signature: 1024,
  userHandle: 86,
}

const validBase64url = (object: object, name: keyof typeof limits): string | undefined => {
  const value = ownField(object, name)
  const isShort = typeof value === 'string' && value.length > 0 && value.length <= limits[name]
  return isShort && /^[\w-]+$/.test(value) ? value : undefined
}

// The members that the browser adds to the challenge before the authenticator signs (WebAuthn §5.8.1). `topOrigin` is that of the page around a frame
const clientDataIn = (json: string) => {
  const { challenge, crossOrigin = false, topOrigin } = jsonFields(Buffer.from(json, 'base64url').toString()) ?? {}
  if (typeof challenge !== 'string' || typeof crossOrigin !== 'boolean') return undefined
  return topOrigin === undefined || typeof topOrigin === 'string' ? { challenge, crossOrigin, topOrigin } : undefined
}

// Reads an answer, whose response has these members
const credentialAnswerIn = <Name extends keyof typeof limits>(u: unknown, ...names: ReadonlyArray<Name>) => {
  if (!isRecord(u) || ownField(u, 'type') !== 'public-key') return undefined
  const id = validBase64url(u, 'id')
  const response = ownField(u, 'response')
  if (id === undefined || ownField(u, 'rawId') !== id || !isRecord(response)) return undefined
  const members = ['clientDataJSON' as const, ...names].map((name) => [name, validBase64url(response, name)] as const)
  if (members.some(([, value]) => value === undefined)) return undefined
  // Safe: none is undefined
  const strings = Object.fromEntries(members) as Readonly<Record<Name | 'clientDataJSON', string>>
  const client = clientDataIn(strings.clientDataJSON)
  return client && { response, read: { id, client, ...strings } }
}

// Hints of the browser: other values are left out
const transportsIn = (response: object): ReadonlyArray<string> => {
  const given = ownField(response, 'transports')
  const hints = Array.isArray(given) ? given.slice(0, 16) : []
  return [...new Set(hints.filter((one): one is string => typeof one === 'string' && /^[a-z-]{1,32}$/.test(one)))]
}

export const registrationIn = (u: unknown): Registration | undefined => {
  const found = credentialAnswerIn(u, 'attestationObject')
  return found && { ...found.read, transports: transportsIn(found.response) }
}

/** Reads an assertion; `undefined` without a user handle, because every passkey has a user handle. */
export const assertionIn = (u: unknown): Assertion | undefined =>
  credentialAnswerIn(u, 'authenticatorData', 'signature', 'userHandle')?.read

// --- checks

interface PasskeyParty {
  readonly id: string
  readonly name: string
  readonly origins: ReadonlyArray<string>
  /** Origins of pages that may contain a frame of ours. */
  readonly topOrigins: ReadonlyArray<string>
  readonly userVerification: 'required' | 'preferred'
}

/** COSE algorithms in the order in which they are offered: EdDSA, ES256, RS256. */
export const coseAlgorithms: ReadonlyArray<number> = [-8, -7, -257]

interface UsedPasskey extends PasskeyUse {
  readonly userVerified: boolean
}

interface NewPasskey extends UsedPasskey {
  readonly publicKey: string
  readonly aaguid: string
}

// The library throws for almost everything that is wrong, also by accident
const unlessRejected = async <A>(check: () => Promise<A | undefined>): Promise<A | undefined> => {
  try {
    return await check()
  } catch {
    return undefined
  }
}

// A page in a frame of another origin can be covered, so that a user confirms something unseen (WebAuthn §13.4.2)
const isFramedWell = (party: PasskeyParty, { client }: Registration | Assertion): boolean =>
  client.crossOrigin
    ? client.topOrigin !== undefined && party.topOrigins.includes(client.topOrigin)
    : client.topOrigin === undefined

const coseBytes = (key: ReadonlyMap<number, unknown>, label: number): Buffer | undefined => {
  const value = key.get(label)
  return value instanceof Uint8Array ? Buffer.from(value) : undefined
}
const base64urlOf = (bytes: Buffer | undefined): string => bytes?.toString('base64url') ?? ''

// The labels are those of RFC 9053 §7 and RFC 8230 §4: 1 the type, 3 the algorithm, the others its parameters
const jwkOf = (key: ReadonlyMap<number, unknown>): JsonWebKey | undefined => {
  const [type, algorithm, curve] = [key.get(1), key.get(3), key.get(-1)]
  const [first, second] = [coseBytes(key, -2), coseBytes(key, -3)]
  if (type === 2 && algorithm === -7 && curve === 1) {
    return { kty: 'EC', crv: 'P-256', x: base64urlOf(first), y: base64urlOf(second) }
  }
  if (type === 1 && algorithm === -8 && curve === 6) return { kty: 'OKP', crv: 'Ed25519', x: base64urlOf(first) }
  if (type === 3 && algorithm === -257) return { kty: 'RSA', n: base64urlOf(coseBytes(key, -1)), e: base64urlOf(first) }
  return undefined
}

// NIST SP 800-131A: 2048 bits; a longer modulus than 4096 only costs time. An exponent of 1 makes every signature right
const isStrong = ({ modulusLength = 0, publicExponent = 0n }: AsymmetricKeyDetails): boolean =>
  modulusLength >= 2048 && modulusLength <= 4096 && publicExponent > 2n && publicExponent < 2n ** 32n

// Throws for a point that is not on its curve, and for other bytes that are no key
const isGoodKey = (cose: Uint8Array<ArrayBuffer>): boolean => {
  // Safe: a COSE key is a map with integers as labels, and other labels are never read
  const jwk = jwkOf(decodeCredentialPublicKey(cose) as unknown as ReadonlyMap<number, unknown>)
  if (jwk === undefined) return false
  const { asymmetricKeyDetails = {} } = createPublicKey({ key: jwk, format: 'jwk' })
  return jwk.kty !== 'RSA' || isStrong(asymmetricKeyDetails)
}

// The options of the library for both answers
const expectations = <R>(party: PasskeyParty, challenge: string, id: string, response: R, conditional = false) => ({
  response: { id, rawId: id, type: 'public-key' as const, clientExtensionResults: {}, response },
  expectedChallenge: challenge,
  expectedOrigin: [...party.origins],
  expectedRPID: party.id,
  requireUserVerification: party.userVerification === 'required' && !conditional,
})

// With the longest id and the longest key about 1,700 bytes. To read their extensions takes a time that grows with the square of the rest
const MAX_AUTHENTICATOR_DATA = 2048

const hasShortData = (attestation: string): boolean =>
  decodeAttestationObject(Uint8Array.from(Buffer.from(attestation, 'base64url'))).get('authData').length <=
  MAX_AUTHENTICATOR_DATA

/** Checks a registration; `undefined` if anything is wrong with it. Never rejects. */
export const checkRegistration = (
  party: PasskeyParty,
  challenge: string,
  answer: Registration,
  conditional = false,
): Promise<NewPasskey | undefined> =>
  unlessRejected(async () => {
    if (!isFramedWell(party, answer)) return undefined
    const { id, clientDataJSON, attestationObject } = answer
    if (!hasShortData(attestationObject)) return undefined
    const { verified, registrationInfo } = await verifyRegistrationResponse(
      bare({
        ...expectations(party, challenge, id, { clientDataJSON, attestationObject }, conditional),
        // WebAuthn Level 3 §5.1.3: no user was asked
        requireUserPresence: !conditional,
        supportedAlgorithmIDs: [...coseAlgorithms],
      }),
    )
    if (!verified || registrationInfo.credential.id !== id) return undefined
    const { credential, aaguid, userVerified, credentialDeviceType, credentialBackedUp } = registrationInfo
    if (!isGoodKey(credential.publicKey)) return undefined
    return {
      publicKey: Buffer.from(credential.publicKey).toString('base64url'),
      aaguid,
      counter: credential.counter,
      backupEligible: credentialDeviceType === 'multiDevice',
      backedUp: credentialBackedUp,
      userVerified,
    }
  })

// A key of P-256 that has no owner: an unknown id takes as long as a known id
const decoy = 'pQECAyYgASFYIOj13c-V9CDuWXga26rB9TdKjwhnpm5pyPQN90_s4pQRIlggvl-ZY9X-620-GXR9M5pSzd1sB2d-VoOftiToDLTEdzg'

/**
 * Checks an assertion with the record that has the id of the answer; `undefined` if anything is wrong, or without a record. Never rejects.
 */
export const checkAssertion = async (
  party: PasskeyParty,
  challenge: string,
  answer: Assertion,
  record: PasskeyRecord | undefined,
): Promise<UsedPasskey | undefined> => {
  const { id, clientDataJSON, authenticatorData, signature, userHandle } = answer
  const info = await unlessRejected(async () => {
    const publicKey = Uint8Array.from(Buffer.from(record?.publicKey ?? decoy, 'base64url'))
    const { verified, authenticationInfo } = await verifyAuthenticationResponse(
      bare({
        ...expectations(party, challenge, id, { clientDataJSON, authenticatorData, signature, userHandle }),
        // the library refuses a lower counter without saying so: it is compared when the use is stored
        credential: { id, publicKey, counter: 0 },
        expectedTopOrigin: [...party.topOrigins],
      }),
    )
    // a wrong signature does not throw
    return verified ? authenticationInfo : undefined
  })
  const isOurs =
    record !== undefined && record.id === id && record.rpId === party.id && record.userHandle === userHandle
  if (info === undefined || !isOurs || !isFramedWell(party, answer)) return undefined
  const { newCounter: counter, userVerified, credentialDeviceType, credentialBackedUp: backedUp } = info
  return { counter, userVerified, backupEligible: credentialDeviceType === 'multiDevice', backedUp }
}
