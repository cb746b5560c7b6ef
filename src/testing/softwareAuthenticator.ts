/**
 * An authenticator of WebAuthn in software: it registers passkeys and signs with them, as a browser and a phone do together.
 * So tests of an application with passkeys need no browser.
 *
 * It signs with real keys, and a switch for each mistake makes one wrong answer. It has no memory of its own on disk: its
 * passkeys are gone with it. It is not for production.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

/** An algorithm of passkeys, by its name in JOSE. In COSE: ES256 is -7, EdDSA is -8, RS256 is -257. */
export type PasskeyAlgorithm = 'ES256' | 'EdDSA' | 'RS256'

/** Options of a software authenticator. */
export interface SoftwareAuthenticatorOptions {
  /** The origin of the page, such as `https://shop.example`. It is in every answer. */
  readonly origin: string
  /** The algorithm of its keys. Default: the first algorithm that the options of a registration offer. */
  readonly algorithm?: PasskeyAlgorithm | undefined
  /**
   * Whether its passkeys are synced to other devices: they have the flags of a backup, and their counter is always 0. Default
   * `true`. With `false` the counter is 1 at the registration, and grows by 1 with each signature.
   */
  readonly synced?: boolean | undefined
}

/** The members of `PublicKeyCredentialCreationOptionsJSON` that it reads. */
export interface CreationOptions {
  readonly challenge: string
  readonly rp: { readonly id?: string | undefined }
  readonly user: { readonly id: string }
  readonly pubKeyCredParams: ReadonlyArray<{ readonly alg: number }>
  readonly excludeCredentials?: ReadonlyArray<{ readonly id: string }> | undefined
}

/** The members of `PublicKeyCredentialRequestOptionsJSON` that it reads. */
export interface RequestOptions {
  readonly challenge: string
  readonly rpId?: string | undefined
  readonly allowCredentials?: ReadonlyArray<{ readonly id: string }> | undefined
}

/** Faults of any answer. A member that is left out is right. */
export interface WrongAnswer {
  /** Another challenge than that of the options, in base64url. */
  readonly challenge?: string | undefined
  /** Another type than `webauthn.create` or `webauthn.get`. */
  readonly type?: string | undefined
  /** Another origin than that of the page. */
  readonly origin?: string | undefined
  /** Whether the page was in a frame of another origin. */
  readonly crossOrigin?: boolean | undefined
  /** The origin of the page around that frame. */
  readonly topOrigin?: string | undefined
  /** The RP id whose hash is signed. */
  readonly rpId?: string | undefined
  /** The flag UP. */
  readonly userPresent?: boolean | undefined
  /** The flag UV. */
  readonly userVerified?: boolean | undefined
  /** The flag BE. */
  readonly backupEligible?: boolean | undefined
  /** The flag BS. */
  readonly backedUp?: boolean | undefined
  /** The counter of this answer; the next answer counts on as if it had been right. */
  readonly counter?: number | undefined
  /** Bytes after the end of the authenticator data. */
  readonly trailing?: Uint8Array | undefined
  /** Another id of the credential, in base64url, in the members `id` and `rawId`. */
  readonly id?: string | undefined
}

/** Faults of a registration. */
export interface WrongRegistration extends WrongAnswer {
  /** An algorithm that the options do not offer. */
  readonly algorithm?: PasskeyAlgorithm | undefined
  /** The length of the modulus of RS256 in bits. Default 2048. */
  readonly modulusLength?: number | undefined
  /** The public key as COSE, instead of the real key. */
  readonly publicKey?: Uint8Array | undefined
  /**
   * Another attestation than `none`: `none` with a statement, self-attested `packed`, the same with a wrong signature, or a
   * format that does not exist. Bytes are sent as the whole attestation object.
   */
  readonly attestation?: 'statement' | 'packed' | 'packed, wrong' | 'unknown' | Uint8Array | undefined
}

/** Faults of an assertion. */
export interface WrongAssertion extends WrongAnswer {
  /** Another user handle, in base64url; `null`: none. */
  readonly userHandle?: string | null | undefined
  /** Whether the signature is of other data. */
  readonly signature?: 'wrong' | undefined
}

/** A registration, as `toJSON()` of the browser's `PublicKeyCredential` writes it. */
export type RegistrationJson = ReturnType<typeof create>

/** An assertion, as `toJSON()` of the browser's `PublicKeyCredential` writes it. */
export type AssertionJson = ReturnType<typeof assertPasskey>

/** A passkey in the authenticator, without its private key. */
export interface SoftwarePasskey {
  /** The id of the credential, in base64url. */
  readonly id: string
  readonly rpId: string
  /** In base64url. */
  readonly userHandle: string
  readonly algorithm: PasskeyAlgorithm
  /** The counter of its last answer. */
  readonly counter: number
}

/** An authenticator, and the page that it is used on. */
export interface SoftwareAuthenticator {
  /**
   * Registers a passkey, as `navigator.credentials.create` does. A passkey of the same RP and user is replaced. Throws a
   * `DOMException`: `InvalidStateError` if one of `excludeCredentials` is here, `NotSupportedError` for unknown algorithms.
   */
  readonly create: (options: CreationOptions, wrong?: WrongRegistration) => RegistrationJson
  /**
   * Signs with the newest passkey that fits, as `navigator.credentials.get` does. Throws a `DOMException`, `NotAllowedError`, if
   * none fits.
   */
  readonly get: (options: RequestOptions, wrong?: WrongAssertion) => AssertionJson
  /** All passkeys, the oldest first. */
  readonly passkeys: () => ReadonlyArray<SoftwarePasskey>
}

type Cbor = number | string | Uint8Array | ReadonlyMap<number | string, Cbor>

// RFC 8949 §3: the major type, and the shortest form of the argument
const head = (major: number, argument: number): Buffer => {
  if (argument < 24) return Buffer.of((major << 5) | argument)
  if (argument < 0x100) return Buffer.of((major << 5) | 24, argument)
  const bytes = Buffer.of((major << 5) | 25, 0, 0)
  bytes.writeUInt16BE(argument, 1)
  return bytes
}

const cbor = (value: Cbor): Buffer => {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  const pairs = [...value].flatMap(([key, one]) => [cbor(key), cbor(one)])
  return Buffer.concat([head(5, value.size), ...pairs])
}

// RFC 9052 §7, RFC 9053 §7, RFC 8230 §4: the type of the key, its algorithm, and its parameters in order
const coseKey = (...values: ReadonlyArray<Cbor>): Buffer =>
  cbor(new Map(values.map((value, at) => [[1, 3, -1, -2, -3][at] ?? 0, value])))

// As DER, because a key object of `generateKeyPairSync` can hang in `export` as JWK on Node 20
const publicKeyEncoding = { type: 'spki', format: 'der' } as const
const privateKeyEncoding = { type: 'pkcs8', format: 'der' } as const

interface AlgorithmKind {
  readonly cose: number
  readonly hash: 'sha256' | null
  readonly newKeys: (modulusLength: number) => { readonly publicKey: Buffer; readonly privateKey: Buffer }
  readonly publicKey: (jwk: Readonly<Record<'x' | 'y' | 'n' | 'e', Buffer>>) => Buffer
}

const kinds: Readonly<Record<PasskeyAlgorithm, AlgorithmKind>> = {
  ES256: {
    cose: -7,
    hash: 'sha256',
    newKeys: () => generateKeyPairSync('ec', { namedCurve: 'P-256', publicKeyEncoding, privateKeyEncoding }),
    publicKey: ({ x, y }) => coseKey(2, -7, 1, x, y),
  },
  EdDSA: {
    cose: -8,
    hash: null,
    newKeys: () => generateKeyPairSync('ed25519', { publicKeyEncoding, privateKeyEncoding }),
    publicKey: ({ x }) => coseKey(1, -8, 6, x),
  },
  RS256: {
    cose: -257,
    hash: 'sha256',
    newKeys: (modulusLength) => generateKeyPairSync('rsa', { modulusLength, publicKeyEncoding, privateKeyEncoding }),
    publicKey: ({ n, e }) => coseKey(3, -257, n, e),
  },
}

// Safe: these are its keys
const passkeyAlgorithms = Object.keys(kinds) as ReadonlyArray<PasskeyAlgorithm>

const coseOf = (spki: Buffer, algorithm: PasskeyAlgorithm): Buffer => {
  const jwk = createPublicKey({ key: spki, format: 'der', type: 'spki' }).export({ format: 'jwk' })
  const member = (name: 'x' | 'y' | 'n' | 'e') => Buffer.from(jwk[name] ?? '', 'base64url')
  return kinds[algorithm].publicKey({ x: member('x'), y: member('y'), n: member('n'), e: member('e') })
}

const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest()

const clientData = (usual: string, sent: string, page: string, wrong: WrongAnswer): Buffer => {
  const { type = usual, challenge = sent, origin = page, crossOrigin = false, topOrigin } = wrong
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin, topOrigin }))
}

// WebAuthn §6.1
const authenticatorData = (
  { rpId, counter }: KeptPasskey,
  synced: boolean,
  wrong: WrongAnswer,
  attested: ReadonlyArray<Uint8Array> = [],
): Buffer => {
  const { userPresent = true, userVerified = true, backupEligible = synced, backedUp = synced, trailing } = wrong
  const flags = [userPresent, false, userVerified, backupEligible, backedUp, false, attested.length > 0]
  const bits = flags.reduce((sum, flag, at) => sum + (flag ? 1 << at : 0), 0)
  const counted = Buffer.alloc(5)
  counted.writeUInt8(bits)
  counted.writeUInt32BE(wrong.counter ?? counter, 1)
  return Buffer.concat([sha256(wrong.rpId ?? rpId), counted, ...attested, trailing ?? Buffer.alloc(0)])
}

const attestationObject = (
  attestation: WrongRegistration['attestation'],
  authData: Buffer,
  signed: () => Buffer,
  alg: number,
): Uint8Array => {
  if (attestation instanceof Uint8Array) return attestation
  const fmt = attestation === undefined || attestation === 'statement' ? 'none' : attestation.replace(/,.*/, '')
  const sig = () => (attestation === 'packed, wrong' ? Buffer.from(signed()).reverse() : signed())
  const attStmt = new Map<string, Cbor>(Object.entries(attestation === undefined ? {} : { alg, sig: sig() }))
  return cbor(new Map<string, Cbor>(Object.entries({ fmt, attStmt, authData })))
}

interface KeptPasskey extends Omit<SoftwarePasskey, 'counter'> {
  readonly privateKey: KeyObject
  counter: number
}

const throwDomException = (name: string, message: string): never => {
  throw new DOMException(message, name)
}

const answerJson = <E extends object, R>(id: string, clientExtensionResults: E, response: R) => {
  const members = { id, rawId: id, type: 'public-key', authenticatorAttachment: 'platform' } as const
  return { ...members, clientExtensionResults, response }
}

const hasId = (list: ReadonlyArray<{ readonly id: string }> | undefined, id: string): boolean =>
  list?.some((one) => one.id === id) ?? false

/**
 * Makes an authenticator without passkeys, on a page of `origin`.
 *
 * @example
 * import { softwareAuthenticator } from 'koa-with-auth/testing'
 *
 * const phone = softwareAuthenticator({ origin: 'https://shop.example' })
 * const options = {
 *   challenge: 'AAAA', // these come from your route
 *   rp: { id: 'shop.example', name: 'Shop' },
 *   user: { id: 'dXNlcg', name: 'anna', displayName: '' },
 *   pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
 * }
 * const registration = phone.create(options) // send it to your route
 * const forgotten = phone.get({ challenge: 'BBBB', rpId: 'shop.example' }, { userVerified: false }) // must be refused
 * assert.strictEqual(forgotten.id, registration.id)
 */
export const softwareAuthenticator = (options: SoftwareAuthenticatorOptions): SoftwareAuthenticator => {
  const self: Device = { synced: true, ...options, host: new URL(options.origin).hostname, kept: [] }
  return {
    create: (creation, wrong) => create(self, creation, wrong),
    get: (request, wrong) => assertPasskey(self, request, wrong),
    passkeys: () => self.kept.map(({ privateKey: _, ...passkey }) => passkey),
  }
}

interface Device extends SoftwareAuthenticatorOptions {
  readonly host: string
  readonly kept: KeptPasskey[]
}

// WebAuthn §7.2: the authenticator data and the hash of the client data
const signWith = ({ privateKey, algorithm }: KeptPasskey, authData: Buffer, clientData: Buffer): Buffer =>
  sign(kinds[algorithm].hash, Buffer.concat([authData, sha256(clientData)]), privateKey)

const create = (self: Device, options: CreationOptions, wrong: WrongRegistration = {}) => {
  const { origin, algorithm: own, synced = true, kept } = self
  const offered = options.pubKeyCredParams.flatMap(
    ({ alg }) => passkeyAlgorithms.find((one) => kinds[one].cose === alg) ?? [],
  )
  const algorithm =
    wrong.algorithm ??
    (own === undefined ? offered[0] : offered.find((one) => one === own)) ??
    throwDomException('NotSupportedError', 'none of the offered algorithms is known')
  if (kept.some(({ id }) => hasId(options.excludeCredentials, id))) {
    return throwDomException('InvalidStateError', 'a passkey of this user is here already')
  }
  const { made, rawId, publicKey } = newPasskey(self, options, algorithm, wrong)
  const data = clientData('webauthn.create', options.challenge, origin, wrong)
  // WebAuthn §6.5.1, with an AAGUID of zeros
  const header = Buffer.concat([Buffer.alloc(16), Buffer.of(rawId.length >> 8, rawId.length & 0xff), rawId])
  const attested = [header, wrong.publicKey ?? coseOf(publicKey, algorithm)]
  const authData = authenticatorData(made, synced, wrong, attested)
  const alg = kinds[algorithm].cose
  const signed = () => signWith(made, authData, data)
  const transports: 'internal'[] = ['internal']
  const response = {
    clientDataJSON: data.toString('base64url'),
    attestationObject: Buffer.from(attestationObject(wrong.attestation, authData, signed, alg)).toString('base64url'),
    authenticatorData: authData.toString('base64url'),
    publicKey: publicKey.toString('base64url'),
    publicKeyAlgorithm: alg,
    transports,
  }
  return answerJson(wrong.id ?? made.id, { credProps: { rk: true } }, response)
}

// One passkey of a user at a site, as authenticators keep them
const newPasskey = (
  { host, synced = true, kept }: Device,
  { rp, user }: CreationOptions,
  algorithm: PasskeyAlgorithm,
  { modulusLength = 2048 }: WrongRegistration,
) => {
  const { publicKey, privateKey } = kinds[algorithm].newKeys(modulusLength)
  const rawId = randomBytes(16)
  const made: KeptPasskey = {
    id: rawId.toString('base64url'),
    rpId: rp.id ?? host,
    userHandle: user.id,
    algorithm,
    privateKey: createPrivateKey({ key: privateKey, format: 'der', type: 'pkcs8' }),
    counter: synced ? 0 : 1,
  }
  const older = kept.findIndex(({ rpId, userHandle }) => rpId === made.rpId && userHandle === made.userHandle)
  if (older >= 0) kept.splice(older, 1)
  kept.push(made)
  return { made, rawId, publicKey }
}

const assertPasskey = (self: Device, options: RequestOptions, wrong: WrongAssertion = {}) => {
  const { host, origin, synced = true } = self
  const { rpId = host, allowCredentials = [] } = options
  const mayBe = (id: string) => allowCredentials.length === 0 || hasId(allowCredentials, id)
  const passkey =
    self.kept.findLast((one) => one.rpId === rpId && mayBe(one.id)) ??
    throwDomException('NotAllowedError', 'no passkey fits')
  if (!synced) passkey.counter += 1
  const data = clientData('webauthn.get', options.challenge, origin, wrong)
  const authData = authenticatorData(passkey, synced, wrong)
  const signature = signWith(passkey, authData, wrong.signature === 'wrong' ? Buffer.concat([data, data]) : data)
  const { userHandle = passkey.userHandle } = wrong
  const response = {
    clientDataJSON: data.toString('base64url'),
    authenticatorData: authData.toString('base64url'),
    signature: signature.toString('base64url'),
    ...(userHandle !== null && { userHandle }),
  }
  return answerJson(wrong.id ?? passkey.id, {}, response)
}
