/** Where a rule of tokens, keys and signed requests ends: at that instant, and at that number. */
import { createPublicKey, generateKeyPairSync, hash } from 'node:crypto'
import { httpSignature } from 'koa-with-auth/signatures'
import { signedRequest, mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { isText, refusalByTime, refusalOfIdToken } from '../../src/jwt/claims.js'
import { keyPolicyOf, remoteKeys } from '../../src/jwt/keySet.js'
import { checkSignature, oneKey, parseJwks } from '../../src/jwt/signature.js'
import { stoppedClock } from '../support/runs/clock.js'

describe('an RSA key whose exponent is less than 3', () => {
  const { n = '' } = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
  const signed = 'header.payload'
  // EMSA-PKCS1-v1_5 of the message itself: with the exponent 1, it is its own signature
  const forged = () => {
    const info = Buffer.from('3031300d060960864801650304020105000420', 'hex')
    const hashed = Buffer.concat([info, Buffer.from(hash('sha256', signed, 'hex'), 'hex')])
    return Buffer.concat([Buffer.from([0, 1]), Buffer.alloc(256 - 3 - hashed.length, 0xff), Buffer.from([0]), hashed])
  }

  it.each([1, 2])('verifies nothing: RFC 8017 §3.1, %i', (exponent) => {
    const jwk = { kty: 'RSA', n, e: Buffer.from([exponent]).toString('base64url') }
    for (const keys of [parseJwks({ keys: [jwk] }), oneKey(createPublicKey({ key: jwk, format: 'jwk' }))]) {
      expect(checkSignature({ header: { alg: 'RS256' }, signed, signature: forged() }, keys)).not.toBe('good')
    }
  })
})

describe('times of tokens', () => {
  const times = { clockTolerance: 0, maxTokenAge: 60 }

  it('RFC 7519 §4.1.4: on its exp, a token has expired; RFC 7519 §4.1.5: on its nbf, it is good', () => {
    expect(refusalByTime({ exp: 1001, iat: 1000 }, times, 1000)).toBeUndefined()
    expect(refusalByTime({ exp: 1000, iat: 1000 }, times, 1000)).toBe('expired')
    expect(refusalByTime({ exp: 2000, nbf: 1000, iat: 1000 }, times, 1000)).toBeUndefined()
    expect(refusalByTime({ exp: 2000, nbf: 1001, iat: 1000 }, times, 1000)).toBe('not yet')
    expect(refusalByTime({ exp: 2000, iat: 940 }, times, 1000)).toBeUndefined()
    expect(refusalByTime({ exp: 2000, iat: 939 }, times, 1000)).toBe('expired')
  })

  it('an ID token is at most ten minutes old', () => {
    const wanted = { clientId: 'shop', acr: undefined, isHash: () => true }
    const of = (iat: number) => refusalOfIdToken({ iss: 'https://a.example', sub: 'anna', iat }, wanted, 5, 10_000)
    expect([of(10_005), of(10_006), of(10_000 - 605), of(10_000 - 606)]).toEqual([
      undefined,
      'clock: iat',
      undefined,
      'clock: iat',
    ])
  })
})

it('a text of a claim has 1 to 255 characters', () => {
  expect(['', 'a', 'a'.repeat(255), 'a'.repeat(256), 1, undefined].map(isText)).toEqual([
    false,
    true,
    true,
    false,
    false,
    false,
  ])
})

it('at most a thousand names of missing keys are kept, because anybody can send new ones', async () => {
  const clock = stoppedClock()
  const { privateKey: _, publicKey } = generateKeyPairSync('ed25519')
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'one' }
  const source = remoteKeys(() => Promise.resolve({ keys: [jwk] }), keyPolicyOf('keys'), {
    issuer: 'https://login.example',
    failed: () => {},
    replaced: () => {},
  })
  const current = await source.current()
  if (current._tag === 'Left') throw new Error('they are there')
  // fetched after the request came: the provider does not have the key
  for (let n = 0; n < 1001; n++) await source.afterMiss(current.right, 0, `kid-${n}`)
  const missed = async (name: string) => (await source.afterMiss(current.right, source.begun(), name))._tag
  // a name that is kept is a 401, and any other one a 503 until the next fetch
  expect([await missed('kid-0'), await missed('kid-999'), await missed('kid-1000')]).toEqual(['Right', 'Right', 'Left'])
  // which makes room for new ones
  clock.move(30_000)
  expect(await missed('kid-1000')).toBe('Right')
  expect([await missed('kid-1000'), await missed('kid-0')]).toEqual(['Right', 'Left'])
})

it('an id of a signed request is kept as long as the request could come again: its age, and both clocks', async () => {
  const kept: number[] = []
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const origin = 'https://api.example'
  const auth = httpSignature({
    origin,
    maxAge: 60_000,
    keyOf: () => ({ key: publicKey, owner: 'anna' }),
    spent: { use: (_id, lifetime) => (kept.push(lifetime), Promise.resolve(true)) },
  })
  await auth.evaluate(mockRequest(signedRequest({ url: '/x' }, { key: privateKey, keyid: 'k', origin, nonce: 'n' })))
  // signed 6 s ahead of our clock, it is good for 66 s
  expect(kept).toEqual([72_000])
})
