/**
 * What is checked of the answers of authenticators: what the library checks, and what it leaves to its caller.
 */
import { decodeAttestationObject, isoCBOR } from '@simplewebauthn/server/helpers'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import {
  softwareAuthenticator,
  type AssertionJson,
  type RegistrationJson,
  type SoftwareAuthenticatorOptions,
  type WrongAssertion,
  type WrongRegistration,
} from 'koa-with-auth/testing'
import type { PasskeyRecord } from 'koa-with-auth/sign-in/passkeys'
import { describe, expect, it } from 'vitest'
import {
  coseAlgorithms,
  assertionIn,
  checkAssertion,
  checkRegistration,
  registrationIn,
} from '../../src/sign-in/passkeys/RelyingParty.js'
import { stepsOf } from '../support/runs/steps.js'

const origin = 'https://shop.example'
type Party = Parameters<typeof checkAssertion>[0]
const party: Party = {
  id: 'shop.example',
  name: 'Shop',
  origins: [origin, 'https://shop.de'],
  topOrigins: ['https://portal.example'],
  userVerification: 'required',
}
const challenge = 'Y2hhbGxlbmdl'
const userHandle = 'dXNlcg'

const phoneOf = (options: Partial<SoftwareAuthenticatorOptions> = {}) => softwareAuthenticator({ origin, ...options })
type Phone = ReturnType<typeof phoneOf>

const created = (phone: Phone, wrong?: WrongRegistration): RegistrationJson =>
  phone.create(
    {
      challenge,
      rp: { id: party.id },
      user: { id: userHandle },
      pubKeyCredParams: coseAlgorithms.map((alg) => ({ alg })),
    },
    wrong,
  )
const registering = (answer: unknown, at: Party = party) => {
  const read = registrationIn(answer)
  return read ? checkRegistration(at, challenge, read) : Promise.resolve('unread')
}
const recordOf = async (phone: Phone): Promise<PasskeyRecord> => {
  const { id } = created(phone)
  const read = registrationIn(created(phone))
  const [kept] = phone.passkeys()
  const made = read && (await checkRegistration(party, challenge, read))
  if (!made || kept === undefined) throw new Error(`not registered: ${id}`)
  const { userVerified: _, ...use } = made
  return { ...use, id: kept.id, user: 'anna', userHandle, rpId: party.id, transports: [], createdAt: 1 }
}
const got = (phone: Phone, wrong?: WrongAssertion): AssertionJson => phone.get({ challenge, rpId: party.id }, wrong)
const signing = async (answer: unknown, record: PasskeyRecord | undefined, at: Party = party) => {
  const read = assertionIn(answer)
  return read ? await checkAssertion(at, challenge, read, record) : 'unread'
}

const wrongBoth: Readonly<Record<string, WrongAssertion & WrongRegistration>> = {
  'a subdomain': { origin: 'https://a.shop.example' },
  'the origin null': { origin: 'null' },
  'a frame in a page that is not listed': { crossOrigin: true, topOrigin: 'https://evil.example' },
  'an outer page without a frame': { topOrigin: 'https://portal.example' },
  'backed up, but not eligible': { backupEligible: false },
  'bytes after the end': { trailing: Buffer.from([0]) },
}

describe('a registration', () => {
  it('gives what the record needs', async () => {
    const phone = phoneOf({ synced: false })
    const made = await registering(created(phone))
    expect(made).toStrictEqual({
      publicKey: expect.stringMatching(/^[\w-]+$/),
      aaguid: '00000000-0000-0000-0000-000000000000',
      counter: 1,
      backupEligible: false,
      backedUp: false,
      userVerified: true,
    })
  })

  const cose = (...pairs: ReadonlyArray<readonly [head: string, bytes?: Buffer]>) =>
    Buffer.concat(pairs.flatMap(([head, bytes = Buffer.alloc(0)]) => [Buffer.from(head, 'hex'), bytes]))
  // through DER, because a key of generateKeyPairSync can hang in its export as JWK on Node 20
  const spki = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  }).publicKey
  const { x = '', y = '' } = createPublicKey({ key: spki, format: 'der', type: 'spki' }).export({ format: 'jwk' })
  const point = [Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')] as const
  const modulus = (bytes: number) => Buffer.alloc(bytes, 0xc3)
  const rsa = (n: Buffer, e: Buffer) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(n.length)
    return cose(['a401030339010020'], ['59', length], ['', n], [`21${(0x40 + e.length).toString(16)}`, e])
  }

  const wrongs: Readonly<Record<string, WrongRegistration>> = {
    ...wrongBoth,
    'a modulus of 1024 bits': { algorithm: 'RS256', modulusLength: 1024 },
    'a modulus of 2047 bits': {
      publicKey: rsa(Buffer.concat([Buffer.from([0x63]), modulus(255)]), Buffer.from([1, 0, 1])),
    },
    'a modulus with zeros before it': {
      publicKey: rsa(Buffer.concat([Buffer.alloc(200), modulus(56)]), Buffer.from([1, 0, 1])),
    },
    'a modulus of 8192 bits': { publicKey: rsa(modulus(1024), Buffer.from([1, 0, 1])) },
    'the type of another algorithm': {
      publicKey: cose(['a5010103262001215820'], ['', point[0]], ['225820'], ['', point[1]]),
    },
    'the algorithm of another type': { publicKey: cose(['a4010103262006215820'], ['', Buffer.alloc(32, 7)]) },
    'the exponent 1': { publicKey: rsa(modulus(256), Buffer.from([1])) },
    'an exponent of 33 bits': { publicKey: rsa(modulus(256), Buffer.from([1, 0, 0, 0, 0])) },
    'no modulus': { publicKey: cose(['a2010303390100']) },
    'no parameters': { publicKey: cose(['a201020326']) },
    'another curve': { publicKey: cose(['a5010203262002215820'], ['', point[0]], ['225820'], ['', point[1]]) },
    'a point that is not on the curve': {
      publicKey: cose(['a5010203262001215820'], ['', Buffer.alloc(32, 7)], ['225820'], ['', Buffer.alloc(32, 7)]),
    },
    'an algorithm that was not offered': {
      publicKey: cose(['a501020338222002215820'], ['', Buffer.alloc(32, 7)], ['225820'], ['', Buffer.alloc(32, 7)]),
    },
    'none with a statement': { attestation: 'statement' },
    'a wrong signature of its own': { attestation: 'packed, wrong' },
    'bytes that are not CBOR': { attestation: Buffer.from('rubbish') },
  }
  it.each(Object.entries(wrongs))('with %s is refused', async (_name, wrong) => {
    expect(await registering(created(phoneOf(), wrong))).toBeUndefined()
  })

  it('that attests itself is accepted', async () => {
    expect(await registering(created(phoneOf(), { attestation: 'packed' }))).toHaveProperty('publicKey')
  })

  it('of another listed origin, or in a frame of a listed page, is accepted', async () => {
    for (const wrong of [{ origin: 'https://shop.de' }, { crossOrigin: true, topOrigin: 'https://portal.example' }]) {
      expect(await registering(created(phoneOf(), wrong))).toHaveProperty('publicKey')
    }
  })

  it('of a point of the curve, and of 2048 to 4096 bits, is accepted, so the cases above are refused for what they name', async () => {
    const onCurve = cose(['a5010203262001215820'], ['', point[0]], ['225820'], ['', point[1]])
    for (const publicKey of [onCurve, ...[256, 512].map((bytes) => rsa(modulus(bytes), Buffer.from([1, 0, 1])))])
      expect(await registering(created(phoneOf(), { publicKey }))).toHaveProperty('publicKey')
  })

  it('without user verification is accepted if it is preferred only', async () => {
    const preferred: Party = { ...party, userVerification: 'preferred' }
    const made = await registering(created(phoneOf(), { userVerified: false }), preferred)
    expect(made).toMatchObject({ userVerified: false })
  })

  it('that no user was asked for is accepted without user presence, and no other', async () => {
    const read = registrationIn(created(phoneOf(), { userPresent: false, userVerified: false }))!
    expect(await checkRegistration(party, challenge, read, true)).toMatchObject({ userVerified: false })
    expect(await checkRegistration(party, challenge, read)).toBeUndefined()
  })
})

describe('an assertion', () => {
  it.each(Object.entries(wrongBoth))('with %s is refused', async (_name, wrong) => {
    const phone = phoneOf()
    const record = await recordOf(phone)
    expect(await signing(got(phone, wrong), record)).toBeUndefined()
    expect(await signing(got(phone), record)).toHaveProperty('counter')
  })

  it('of no record, or with a record of another id, user handle or RP, is refused', async () => {
    const phone = phoneOf()
    const record = await recordOf(phone)
    const others = [undefined, { ...record, id: 'AAAA' }, { ...record, userHandle: 'AAAA' }, { ...record, rpId: 'a' }]
    for (const other of others) expect(await signing(got(phone), other)).toBeUndefined()
    const other = await recordOf(phoneOf())
    expect(await signing(got(phone), { ...record, publicKey: other.publicKey })).toBeUndefined()
  })
})

describe('what a browser sends', () => {
  const registration = created(phoneOf())
  const phone = phoneOf()
  created(phone)
  const assertion = got(phone)
  const client = (data: unknown) => Buffer.from(JSON.stringify(data)).toString('base64url')
  const text = (length: number) => 'A'.repeat(length)

  it('is read', () => {
    expect(registrationIn(JSON.parse(JSON.stringify(registration)))).toBeDefined()
    expect(assertionIn(JSON.parse(JSON.stringify(assertion)))).toBeDefined()
  })

  const garbage: ReadonlyArray<readonly [string, unknown]> = [
    ['undefined', undefined],
    ['null', null],
    ['an empty object', {}],
    ['an array', [assertion]],
    ['a string', JSON.stringify(assertion)],
    ['inherited members', Object.create(assertion)],
    ['members of __proto__', JSON.parse(`{"__proto__":${JSON.stringify(assertion)}}`)],
    ['no response', { ...assertion, response: undefined }],
    ['an array as response', { ...assertion, response: [] }],
    ['another type', { ...assertion, type: 'password' }],
    ['an id that is no string', { ...assertion, id: 1, rawId: 1 }],
    ['an id with padding', { ...assertion, id: `${assertion.id}==`, rawId: `${assertion.id}==` }],
    ['different ids', { ...assertion, rawId: 'AAAA' }],
    ['a long id', { ...assertion, id: text(1365), rawId: text(1365) }],
  ]
  it.each(garbage)('%s is nothing', (_name, sent) => {
    expect(assertionIn(sent)).toBeUndefined()
    expect(registrationIn(sent)).toBeUndefined()
  })

  const responses: ReadonlyArray<readonly [string, Readonly<Record<string, unknown>>]> = [
    ['no client data', { clientDataJSON: undefined }],
    ['client data that are no JSON', { clientDataJSON: 'AAAA' }],
    ['client data that are null', { clientDataJSON: client(null) }],
    ['client data without a challenge', { clientDataJSON: client({ type: 'webauthn.get' }) }],
    ['a challenge that is no string', { clientDataJSON: client({ challenge: ['a'] }) }],
    ['crossOrigin that is no boolean', { clientDataJSON: client({ challenge: 'a', crossOrigin: 'false' }) }],
    ['topOrigin that is no string', { clientDataJSON: client({ challenge: 'a', topOrigin: null }) }],
    ['long client data', { clientDataJSON: client({ challenge: 'a', x: text(9000) }) }],
  ]
  it.each(responses)('%s: nothing', (_name, more) => {
    expect(assertionIn({ ...assertion, response: { ...assertion.response, ...more } })).toBeUndefined()
    expect(registrationIn({ ...registration, response: { ...registration.response, ...more } })).toBeUndefined()
  })

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['an assertion without a user handle', { userHandle: undefined }],
    ['an assertion with null as user handle', { userHandle: null }],
    ['an assertion with an empty user handle', { userHandle: '' }],
    ['an assertion with a long user handle', { userHandle: text(87) }],
    ['an assertion without a signature', { signature: undefined }],
    ['an assertion with a long signature', { signature: text(1025) }],
    ['an assertion with long authenticator data', { authenticatorData: text(1025) }],
    ['an assertion with authenticator data in base64', { authenticatorData: 'a+/=' }],
    ['a registration without an attestation object', { attestationObject: undefined }],
    ['a registration with an attestation of 1 MB', { attestationObject: text(2 ** 20) }],
  ])('%s is nothing', (_name, more) => {
    const read = 'attestationObject' in more ? registrationIn : assertionIn
    const whole = 'attestationObject' in more ? registration : assertion
    expect(read({ ...whole, response: { ...whole.response, ...more } })).toBeUndefined()
  })

  it('has hints of transports, and others are left out', () => {
    const transports = ['internal', 'hybrid', 'internal', 7, null, 'A', '1usb', 'a'.repeat(33), '__proto__']
    const read = registrationIn({ ...registration, response: { ...registration.response, transports } })
    expect(read).toMatchObject({ transports: ['internal', 'hybrid'] })
    const many = [...'abcdefghijklmnopqrst']
    const of = registrationIn({ ...registration, response: { ...registration.response, transports: many } })
    expect(of).toMatchObject({ transports: many.slice(0, 16) })
  })

  it.each([
    [1000, 'registered'],
    [2000, 'refused'],
  ])('A-43 with %i bytes of extensions is %s', async (length, expected) => {
    const answer = created(phoneOf())
    const object = decodeAttestationObject(Uint8Array.from(Buffer.from(answer.response.attestationObject, 'base64url')))
    const data = Buffer.concat([object.get('authData'), isoCBOR.encode(new Map([['a', new Uint8Array(length)]]))])
    data.writeUInt8(data.readUInt8(32) | 0x80, 32)
    const whole = new Map<string, string | Map<string, string> | Uint8Array>([
      ['fmt', 'none'],
      ['attStmt', new Map<string, string>()],
      ['authData', Uint8Array.from(data)],
    ])
    const attestationObject = Buffer.from(isoCBOR.encode(whole)).toString('base64url')
    const found = await registering({ ...answer, response: { ...answer.response, attestationObject } })
    expect(found === undefined ? 'refused' : typeof found === 'object' ? 'registered' : found).toBe(expected)
  })

  const depth = (head: number, levels: number) => Buffer.alloc(levels, head)
  it.each([
    ['arrays', depth(0x81, 6000)],
    ['maps', Buffer.from('a1'.repeat(3000), 'hex')],
    ['tags', depth(0xc0, 6000)],
    ['byte strings without an end', depth(0x5f, 6000)],
    ['an array of 4 billion', Buffer.from('9affffffff', 'hex')],
    ['a string of 4 billion bytes', Buffer.from('7affffffff', 'hex')],
  ])('CBOR of nested %s is refused in a few steps', async (_name, attestation) => {
    const answer = created(phoneOf(), { attestation })
    let found: unknown = 'nothing yet'
    const steps = await stepsOf(async () => (found = await registering(answer)))
    expect(found).toBeUndefined()
    // six for each byte; the square of 6,000 bytes would be 36 million
    expect(steps).toBeLessThan(500_000)
  })
})
