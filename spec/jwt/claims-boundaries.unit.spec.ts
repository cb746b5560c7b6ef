/** Where a rule of tokens and keys ends: at that instant, and at that number. And what a token must not say. */
import { createPublicKey, generateKeyPairSync, hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  isGoodLogout,
  isLogout,
  isProof,
  isText,
  readCompact,
  refusalByTime,
  refusalOfAccessToken,
  refusalOfIdToken,
  refusalOfIntrospection,
} from '../../src/jwt/claims.js'
import { checkSignature, oneKey, parseJwks } from '../../src/jwt/signature.js'

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

  // RFC 7519 §4.1.4: on its exp, a token has expired; §4.1.5: on its nbf, it is good; §4.1.6: an iat ahead of the clock is no reason
  it.each<[string | undefined, Readonly<Record<string, unknown>>, object?]>([
    [undefined, { exp: 1001, iat: 1000 }],
    ['expired', { exp: 1000, iat: 1000 }],
    [undefined, { exp: 2000, nbf: 1000, iat: 1000 }],
    ['not yet', { exp: 2000, nbf: 1001, iat: 1000 }],
    [undefined, { exp: 2000, iat: 940 }],
    ['expired', { exp: 2000, iat: 939 }],
    ['not yet', { exp: 2000, iat: 1001 }],
    [undefined, { exp: 2000, iat: 1001 }, { maxTokenAge: undefined }],
    [undefined, { exp: 996, iat: 935 }, { clockTolerance: 5 }],
    ['expired', { exp: 995, iat: 1000 }, { clockTolerance: 5 }],
    ['expired', { exp: 2000, iat: 934 }, { clockTolerance: 5 }],
    ['claims', { iat: 1000 }],
    ['claims', { exp: Infinity, iat: 1000 }],
    ['claims', { exp: 2000, nbf: '1', iat: 1000 }],
    ['claims', { exp: 2000, iat: '1' }],
    ['claims', { exp: 2000 }],
  ])('of a token are a reason at 1000: %s, %j, %j', (why, claims, own) => {
    expect(refusalByTime(claims, { ...times, ...own }, 1000)).toBe(why)
  })
})

describe('what a token must not say', () => {
  const [times, now] = [{ clockTolerance: 5, maxTokenAge: undefined }, 10_000]
  const accessOf = (own: object, profile: 'any' | 'rfc9068' = 'any') => ({
    claims: { aud: 'api', exp: 20_000, ...own },
    audiences: ['api'],
    rules: { ...times, profile, confirmations: ['jkt'], authorizedParties: ['app', 'web'], isBindingRequired: false },
  })
  const profiled = { jti: 'a', sub: 'anna', client_id: 'app' }

  it.each<[string, object, ('any' | 'rfc9068')?]>([
    ['binding', { cnf: { jkt: 'x', jwe: 'y' } }],
    ['binding', { cnf: {} }],
    ['binding', { cnf: 7 }],
    ['binding', { cnf: { jkt: '' } }],
    ['audience', { aud: ['api', 7] }],
    ['claims', { azp: 7 }],
    ['claims', { azp: 'app', sub: 7 }],
    ['claims', { azp: 'app', jti: 7 }],
    ['claims', { client_id: 7 }],
    ['claims', { act: {} }],
    ['party', {}],
    ['party', { azp: 'app', client_id: 'other' }],
    ['claims', profiled, 'rfc9068'],
  ])('an access token is refused for its %s: %j %s', (why, claims, profile) => {
    const header = { typ: 'at+jwt', alg: 'ES256' }
    expect(refusalOfAccessToken(header, ['ES256'], accessOf(claims, profile), now)).toBe(why)
    for (const act of [{ sub: 'cron' }, { client_id: 'cron' }]) {
      const good = accessOf(
        { aud: ['other', 'api'], cnf: { jkt: 'x' }, azp: 'web', ...profiled, act, iat: 9000 },
        profile,
      )
      expect(refusalOfAccessToken(header, ['ES256'], good, now)).toBeUndefined()
    }
  })

  it.each<[string | undefined, object]>([
    [undefined, { typ: 'Application/JWT' }],
    [undefined, { typ: undefined, b64: true }],
    ['type', { typ: 'jwtapplication/' }],
    ['type', { b64: false }],
    ['algorithm', { alg: 7 }],
    ['algorithm', { alg: 'RS256' }],
  ])('an access token is refused for its %s by its header: %j', (why, own) => {
    const header = { typ: 'at+jwt', alg: 'ES256', ...own }
    expect(refusalOfAccessToken(header, ['ES256'], accessOf({ azp: 'app' }), now)).toBe(why)
  })

  it('a token of any audience needs none, and one that can be read if there is one', () => {
    const refusals = [undefined, 'other', 5].map((aud) => {
      const access = { ...accessOf({ azp: 'app', aud }), audiences: false as const }
      return refusalOfAccessToken({ alg: 'ES256' }, ['ES256'], access, now)
    })
    expect(refusals).toEqual([undefined, undefined, 'audience'])
  })

  it.each<[string | undefined, object]>([
    [undefined, { token_type: 'bearer', exp: undefined }],
    // RFC 9449 §5, in any letter case
    ['binding', { token_type: 'DPOP' }],
    ['binding', { token_type: 7 }],
    ['revoked', { active: 'true' }],
    ['issuer', { iss: 'https://b.example' }],
    ['claims', { exp: '99999999999' }],
    ['audience', { aud: 'other' }],
    ['expired', { exp: now - 5 }],
  ])('an answer of introspection is refused for %s: %j', (why, own) => {
    const answer = accessOf({ active: true, azp: 'app', iss: 'https://a.example', ...own })
    expect(refusalOfIntrospection('https://a.example', answer, now)).toBe(why)
  })

  it('RFC 9449 §4.3: a proof has its type, one of these algorithms, and an id', () => {
    const [header, claims] = [{ typ: 'dpop+jwt', alg: 'ES256' }, { jti: 'a' }]
    expect(isProof(header, claims, ['ES256'])).toBe(true)
    for (const [own, jti] of [
      [{ typ: 'jwt' }, 'a'],
      [{ alg: 'RS256' }, 'a'],
      [{ alg: 7 }, 'a'],
      [{}, ''],
    ] as const)
      expect(isProof({ ...header, ...own }, { jti }, ['ES256'])).toBe(false)
  })

  it.each([true, false])('Back-Channel Logout 1.0 §2.4: a logout token has its type and a signature: %s', (isOne) => {
    const good = [{ alg: 'ES256' }, { alg: 'PS512' }, { alg: 'EdDSA' }, { typ: 'Application/Logout+JWT' }]
    const bad = [{ alg: 'none' }, { alg: 'HS256' }, { alg: 'xES256' }, { alg: 'Ed255190' }, { alg: 7 }, { typ: 'jwt' }]
    for (const own of isOne ? good : bad)
      expect([own, isLogout({ typ: 'logout+jwt', alg: 'RS256', ...own })]).toEqual([own, isOne])
  })

  it.each<[string | undefined, object]>([
    [undefined, { iat: 10_005, auth_time: 10_005 }],
    [undefined, { iat: 9395 }],
    ['clock: iat', { iat: 10_006 }],
    ['clock: iat', { iat: 9394 }],
    ['clock: auth_time', { auth_time: 10_006 }],
    ['sub', { sub: ' ' }],
    ['sub', { sub: 'a'.repeat(256) }],
    ['iss', { iss: '' }],
    [undefined, { azp: 'shop', at_hash: 'good', acr: 'c' }],
    ['azp', { azp: 'other' }],
    ['at_hash', { at_hash: 'bad' }],
    ['acr', { acr: 'a' }],
  ])('an ID token, which is at most ten minutes old, is refused for %s: %j', (why, claims) => {
    const wanted = { clientId: 'shop', acr: ['b', 'c'], isHash: (one: unknown) => one === 'good' }
    const given = { iss: 'https://a.example', sub: 'anna', iat: now, acr: 'b', ...claims }
    expect(refusalOfIdToken(given, wanted, 5, now)).toBe(why)
  })

  it.each<[boolean, object]>([
    [true, {}],
    [true, { sub: undefined }],
    [false, { sub: undefined, sid: undefined }],
    [false, { sub: 7 }],
    [false, { iss: 'https://b.example' }],
    [false, { sid: '' }],
    [false, { nonce: null }],
    [false, { jti: '' }],
    [false, { iat: now - 606 }],
    [false, { exp: now - 5 }],
    [false, { aud: ['shop', 7] }],
  ])('Back-Channel Logout 1.0 §2.6: a logout token is good, %s: %j', (isGood, own) => {
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    const said = { iss: 'https://a.example', aud: 'shop', events, jti: 'a', sub: 'anna', sid: 's', iat: now, ...own }
    const claims = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined))
    const party = { issuer: 'https://a.example', clientId: 'shop' }
    expect(isGoodLogout(claims, party, { clockTolerance: 5, maxTokenAge: 600 }, now)).toBe(isGood)
  })

  it.each([0, 1])('bytes that are no UTF-8, or no object, in part %i', (part) => {
    const parts = [Buffer.from('{"alg":"ES256"}'), Buffer.from('{"sub":"anna"}'), Buffer.from('s')]
    const token = () => parts.map((one) => one.toString('base64url')).join('.')
    expect(readCompact(token())).toBeDefined()
    parts[part] = Buffer.concat([Buffer.from('{"alg":"'), Buffer.from([0xff]), Buffer.from('"}')])
    expect(readCompact(token())).toBeUndefined()
    parts[part] = Buffer.from('[]')
    expect(readCompact(token())).toBeUndefined()
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
