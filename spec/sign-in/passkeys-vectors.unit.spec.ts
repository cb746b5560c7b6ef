/** W-03: the test vectors of WebAuthn level 3, §16, pass, and each with another byte is refused. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  assertionIn,
  checkAssertion,
  checkRegistration,
  registrationIn,
} from '../../src/sign-in/passkeys/RelyingParty.js'
import { repository } from '../support/projects/typecheck.js'

interface Vector {
  readonly name: string
  readonly flags: { readonly backupEligible: boolean; readonly backedUp: boolean }
  readonly registration: Readonly<Record<'challenge' | 'clientDataJSON' | 'attestationObject' | 'id', string>>
  readonly assertion: Readonly<Record<'challenge' | 'clientDataJSON' | 'authenticatorData' | 'signature', string>>
}

const vectors = JSON.parse(readFileSync(`${repository}spec/data/webauthn-vectors.json`, 'utf8')) as Vector[]

// They were made without a verification of the user
type Party = Parameters<typeof checkAssertion>[0]
const party: Party = {
  id: 'example.org',
  name: 'Example',
  origins: ['https://example.org'],
  topOrigins: [],
  userVerification: 'preferred',
}
const strict: Party = { ...party, userVerification: 'required' }
const userHandle = 'dXNlcg'
const encoded = (hex: string) => Buffer.from(hex, 'hex').toString('base64url')
const changed = (hex: string) => {
  const bytes = Buffer.from(hex, 'hex')
  bytes[bytes.length - 1]! ^= 1
  return bytes.toString('hex')
}

const registered = ({ registration }: Pick<Vector, 'registration'>, at = party) => {
  const { challenge, clientDataJSON, attestationObject, id } = registration
  const read = registrationIn({
    id: encoded(id),
    rawId: encoded(id),
    type: 'public-key',
    response: { clientDataJSON: encoded(clientDataJSON), attestationObject: encoded(attestationObject) },
  })
  if (read === undefined) throw new Error('unread')
  return checkRegistration(at, encoded(challenge), read)
}

const used = async (vector: Omit<Vector, 'name' | 'flags'>, over: Partial<Vector['assertion']> = {}, at = party) => {
  const made = await registered(
    vector,
    at.id === party.id ? { ...at, origins: party.origins, userVerification: 'preferred' } : party,
  )
  if (made === undefined) throw new Error('not registered')
  const id = encoded(vector.registration.id)
  const { challenge, clientDataJSON, authenticatorData, signature } = { ...vector.assertion, ...over }
  const response = { clientDataJSON, authenticatorData, signature }
  const read = assertionIn({
    id,
    rawId: id,
    type: 'public-key',
    response: {
      ...Object.fromEntries(Object.entries(response).map(([name, hex]) => [name, encoded(hex)])),
      userHandle,
    },
  })
  if (read === undefined) throw new Error('unread')
  const record = { ...made, id, user: 'anna', userHandle, rpId: party.id, transports: [], createdAt: 1 }
  return checkAssertion(at, encoded(challenge), read, record)
}

describe.each(vectors)('W-03 $name', (vector) => {
  it('is registered, and used', async () => {
    expect(await registered(vector)).toMatchObject({ counter: 0, userVerified: false, ...vector.flags })
    expect(await used(vector)).toStrictEqual({ counter: 0, userVerified: false, ...vector.flags })
  })

  it('is refused where the user must be verified, or for another RP id or origin', async () => {
    const { registration } = vector
    for (const at of [strict, { ...party, id: 'example.com' }, { ...party, origins: ['https://example.com'] }]) {
      expect(await registered(vector, at)).toBeUndefined()
      expect(await used(vector, {}, at)).toBeUndefined()
    }
    expect(
      await registered({ ...vector, registration: { ...registration, challenge: vector.assertion.challenge } }),
    ).toBe(undefined)
  })

  it.each(['challenge', 'clientDataJSON', 'authenticatorData', 'signature'] as const)(
    'is refused with another %s',
    async (name) => {
      const { [name]: sent } = vector.assertion
      const other = name === 'clientDataJSON' ? `${sent}20` : changed(sent)
      expect(await used(vector, { [name]: other })).toBeUndefined()
    },
  )
})

interface MoreVector extends Omit<Vector, 'flags'> {
  /**
   * Not with an algorithm that is not offered, nor in a frame whose page is not named. Attestations by certificates of a
   * test are not asked for, and are refused if they come.
   */
  readonly isAccepted: boolean
}
const more = JSON.parse(readFileSync(`${repository}spec/data/webauthn-more-vectors.json`, 'utf8')) as MoreVector[]

describe.each(more)('W-03 $name', (vector) => {
  const framed: Party = { ...party, topOrigins: ['https://example.com'] }

  it(vector.isAccepted ? 'is registered, and used' : 'is refused', async () => {
    const made = await registered(vector, framed)
    expect(made !== undefined).toBe(vector.isAccepted)
    if (made !== undefined) expect(await used(vector, {}, framed)).toHaveProperty('counter')
  })

  if (!vector.isAccepted) return
  it('is refused with another signature', async () => {
    const signature = changed(vector.assertion.signature)
    expect(await used(vector, { signature }, framed)).toBeUndefined()
  })
})
