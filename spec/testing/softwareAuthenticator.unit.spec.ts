/**
 * The software authenticator of `koa-with-auth/testing`, against the library that applications check with: right answers
 * are accepted, and each switch makes an answer that is refused, or one whose mistake the library leaves to its caller.
 */
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import {
  softwareAuthenticator,
  type PasskeyAlgorithm,
  type WrongAssertion,
  type WrongRegistration,
} from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'

const origin = 'https://shop.example'
const rpId = 'shop.example'

const creationOptions = () =>
  generateRegistrationOptions({ rpName: 'Shop', rpID: rpId, userName: 'anna', userID: new Uint8Array([1, 2, 3]) })

type Phone = ReturnType<typeof softwareAuthenticator>

const registered = async (phone: Phone, wrong?: WrongRegistration) => {
  const options = await creationOptions()
  const response = phone.create(options, wrong)
  return verifyRegistrationResponse({
    response,
    expectedChallenge: options.challenge,
    expectedOrigin: origin,
    expectedRPID: rpId,
  })
}

const credentialOf = async (phone: Phone) => {
  const { registrationInfo } = await registered(phone)
  return registrationInfo!.credential
}

const signed = async (phone: Phone, credential: Awaited<ReturnType<typeof credentialOf>>, wrong?: WrongAssertion) => {
  const options = await generateAuthenticationOptions({ rpID: rpId })
  const response = phone.get(options, wrong)
  return verifyAuthenticationResponse({
    response,
    expectedChallenge: options.challenge,
    expectedOrigin: origin,
    expectedRPID: rpId,
    credential,
  })
}

const all: ReadonlyArray<PasskeyAlgorithm> = ['ES256', 'EdDSA', 'RS256']

describe('the software authenticator', () => {
  it.each(all)('registers and signs with %s', async (algorithm) => {
    const phone = softwareAuthenticator({ origin, algorithm })
    const { verified, registrationInfo } = await registered(phone)
    expect(verified).toBe(true)
    expect(registrationInfo).toMatchObject({ fmt: 'none', userVerified: true, credentialBackedUp: true, rpID: rpId })
    for (const _ of [1, 2]) {
      const used = await signed(phone, registrationInfo!.credential)
      expect(used).toMatchObject({ verified: true, authenticationInfo: { newCounter: 0, userVerified: true } })
    }
    expect(phone.passkeys()).toStrictEqual([
      { id: registrationInfo!.credential.id, rpId, userHandle: 'AQID', algorithm, counter: 0 },
    ])
  })

  it('takes the first algorithm that is offered', async () => {
    const phone = softwareAuthenticator({ origin })
    const options = await creationOptions()
    for (const [alg, name] of [
      [-257, 'RS256'],
      [-8, 'EdDSA'],
      [-7, 'ES256'],
    ] as const) {
      const params = [{ alg: -999 }, { alg }, { alg: -7 }]
      phone.create({ ...options, pubKeyCredParams: params })
      expect(phone.passkeys().at(-1)?.algorithm).toBe(name)
    }
    expect(() => phone.create({ ...options, pubKeyCredParams: [{ alg: -999 }] })).toThrow(DOMException)
  })

  it('counts its signatures if its passkeys are not synced', async () => {
    const phone = softwareAuthenticator({ origin, synced: false })
    const credential = await credentialOf(phone)
    expect(credential.counter).toBe(1)
    const used = await signed(phone, credential)
    expect(used.authenticationInfo).toMatchObject({ newCounter: 2, credentialBackedUp: false })
    await expect(signed(phone, { ...credential, counter: 9 })).rejects.toThrow(/counter/)
  })

  it('refuses as a browser does: an excluded passkey, and an RP without one', async () => {
    const phone = softwareAuthenticator({ origin })
    const { id } = await credentialOf(phone)
    const options = await creationOptions()
    expect(() => phone.create({ ...options, excludeCredentials: [{ id }] })).toThrow(
      expect.objectContaining({ name: 'InvalidStateError' }),
    )
    for (const asked of [{ rpId: 'other.example' }, { rpId, allowCredentials: [{ id: 'AAAA' }] }]) {
      expect(() => phone.get({ challenge: 'AAAA', ...asked })).toThrow(
        expect.objectContaining({ name: 'NotAllowedError' }),
      )
    }
    expect(phone.get({ challenge: 'AAAA', rpId, allowCredentials: [{ id }] }).id).toBe(id)
  })

  it('replaces the passkey of the same user, as authenticators do', async () => {
    const phone = softwareAuthenticator({ origin })
    const first = await credentialOf(phone)
    const second = await credentialOf(phone)
    expect(phone.passkeys().map(({ id }) => id)).toStrictEqual([second.id])
    expect(second.id).not.toBe(first.id)
    const options = await creationOptions()
    const [elsewhere, sam] = [{ rp: { id: 'other.example' } }, { user: { id: 'c2Ft' } }].map((other) =>
      phone.create({ ...options, ...other }),
    )
    expect(phone.passkeys().map(({ id }) => id)).toStrictEqual([second.id, elsewhere?.id, sam?.id])
    // the newest one that fits
    expect(phone.get({ challenge: 'AAAA', rpId }).id).toBe(sam?.id)
  })

  const refused: Readonly<Record<string, WrongRegistration & WrongAssertion>> = {
    'another challenge': { challenge: 'AAAA' },
    'another type': { type: 'payment.get' },
    'another origin': { origin: 'http://shop.example' },
    'another RP id': { rpId: 'other.example' },
    'no user presence': { userPresent: false },
    'no user verification': { userVerified: false },
    'backed up, but not eligible': { backupEligible: false },
    'bytes after the end': { trailing: Buffer.from([0]) },
  }
  it.each(Object.entries(refused))('an answer with %s is refused', async (_name, wrong) => {
    const phone = softwareAuthenticator({ origin })
    await expect(registered(phone, wrong)).rejects.toThrow()
    const credential = await credentialOf(phone)
    await expect(signed(phone, credential, wrong)).rejects.toThrow()
    expect(await signed(phone, credential)).toMatchObject({ verified: true })
  })

  it.each(['statement', 'unknown', Buffer.from('none')] as const)('attestation %s is refused', async (attestation) => {
    await expect(registered(softwareAuthenticator({ origin }), { attestation })).rejects.toThrow()
  })

  it('attests itself, with a right and a wrong signature', async () => {
    const phone = softwareAuthenticator({ origin, algorithm: 'ES256' })
    expect(await registered(phone, { attestation: 'packed' })).toMatchObject({ verified: true })
    const wrong = registered(phone, { attestation: 'packed, wrong' }).catch(() => ({ verified: false }))
    expect(await wrong).toStrictEqual({ verified: false })
  })

  it.each(all)('a wrong signature with %s is not verified, without an exception', async (algorithm) => {
    const phone = softwareAuthenticator({ origin, algorithm })
    const credential = await credentialOf(phone)
    expect(await signed(phone, credential, { signature: 'wrong' })).toMatchObject({ verified: false })
  })

  it('sends another or no user handle, which is not signed', async () => {
    const phone = softwareAuthenticator({ origin })
    const credential = await credentialOf(phone)
    for (const userHandle of ['BBBB', null]) {
      expect(await signed(phone, credential, { userHandle })).toMatchObject({ verified: true })
    }
    expect(phone.get({ challenge: 'AAAA', rpId }, { userHandle: null }).response).not.toHaveProperty('userHandle')
    expect(phone.get({ challenge: 'AAAA', rpId }, { userHandle: 'BBBB' }).response.userHandle).toBe('BBBB')
  })

  it('a wrong counter is of one answer only', async () => {
    const phone = softwareAuthenticator({ origin, synced: false })
    const credential = await credentialOf(phone)
    expect((await signed(phone, credential, { counter: 40 })).authenticationInfo.newCounter).toBe(40)
    expect((await signed(phone, credential)).authenticationInfo.newCounter).toBe(3)
  })
})
