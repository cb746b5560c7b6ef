/** Tokens that must be refused by the real guard: 401, a challenge, and no handler runs. Then tokens that must pass. */
import { createSecretKey, createPublicKey, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { EncryptJWT, SignJWT, UnsecuredJWT, type JWTPayload } from 'jose'
import { httpJwt, type HttpJwtOptions, type JwtClaims } from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { guardedApp, sendCounted, expectDenied } from '../support/sites/guardedApp.js'
import {
  API,
  identityProvider,
  seconds,
  signedByHand,
  signedWith,
  signingKey,
  type IdentityProvider,
  type SigningKey,
} from '../support/servers/identityProvider.js'
import { listen, listening } from '../support/servers/server.js'
import { EXPIRED, INVALID, tokenSite } from '../support/sites/tokenSite.js'

type Options = Partial<HttpJwtOptions<JwtClaims, JwtClaims>>

interface Given {
  readonly provider: IdentityProvider
  readonly key: SigningKey
}

type Make = (given: Given) => string | Promise<string>
interface More {
  readonly options?: Options
  readonly challenge?: string
}

const pemOf = ({ publicKey }: SigningKey): string => publicKey.export({ type: 'spki', format: 'pem' }).toString()
const RS = { alg: 'RS256', kid: 'k1' }
const saying =
  (claims: JWTPayload | ((provider: IdentityProvider) => JWTPayload)): Make =>
  ({ provider }) =>
    provider.token(typeof claims === 'function' ? claims(provider) : claims)
const byHand =
  (header: object, payload = (claims: JWTPayload): string => JSON.stringify(claims)): Make =>
  ({ provider, key }) =>
    signedByHand(header, payload(provider.claims()), key)
// What JSON cannot say, or what a library of tokens does not sign; `undefined` leaves a claim out
const written = (claims: object, from = '', to = ''): Make =>
  byHand(RS, (own) => JSON.stringify({ ...own, ...claims }).replace(from, to))
const signedAs =
  (key: object, header = {}, claims: JWTPayload = {}): Make =>
  ({ provider, key: own }) =>
    signedWith({ ...own, ...key }, provider.claims(claims), header)
const EVIL = 'https://evil.example'
const signedByAnother =
  (kid: string, headerOf = (_key: SigningKey): object => ({})): Make =>
  async ({ provider }) => {
    const key = await signingKey('RS256', kid)
    return signedWith(key, provider.claims(), { ...headerOf(key) })
  }
const changed =
  (change: (token: string) => string): Make =>
  async ({ provider }) =>
    change(await provider.token())

const rfc9068: More = { options: { profile: 'rfc9068' } }
const parties: More = { options: { authorizedParties: ['app'] } }
const aged: Options = { maxTokenAge: 60_000 }

const attacks: ReadonlyArray<readonly [attack: string, make: Make, more?: More]> = [
  ['alg none', ({ provider }) => `${new UnsecuredJWT(provider.claims()).encode()}AAAA`],
  ['alg none without a signature', ({ provider }) => new UnsecuredJWT(provider.claims()).encode()],
  [
    'HS256 with the public PEM',
    ({ provider, key }) =>
      new SignJWT(provider.claims())
        .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
        .sign(createSecretKey(Buffer.from(pemOf(key)))),
  ],
  ['an embedded jwk', signedByAnother('own', ({ jwk }) => ({ jwk }))],
  ['addresses of keys in jku and x5u', signedByAnother('k1', () => ({ jku: `${EVIL}/jwks`, x5u: `${EVIL}/x5u` }))],
  ['a foreign key with the same kid', signedByAnother('k1')],
  ['no exp', written({ exp: undefined })],
  ['exp 1e400', written({ exp: 0 }, '"exp":0', '"exp":1e400')],
  ['exp as a string', written({ exp: String(seconds() + 300) })],
  ['expired', saying({ exp: seconds() - 60 }), { challenge: EXPIRED }],
  ['nbf in the future', saying({ nbf: seconds() + 3600 })],
  ['no aud', written({ aud: undefined })],
  ['another aud', saying({ aud: 'https://other.example' })],
  ['another iss', saying({ iss: 'https://evil.example' })],
  ['no iss', written({ iss: undefined })],
  ["an ID token with profile 'rfc9068'", signedAs({}, { typ: 'JWT' }, { nonce: 'n', azp: 'app' }), rfc9068],
  ['typ dpop+jwt', byHand({ ...RS, typ: 'dpop+jwt' })],
  ['typ logout+jwt', byHand({ ...RS, typ: 'logout+jwt' })],
  ['cnf.jkt', saying({ cnf: { jkt: 'x' } })],
  ['cnf x5t#S256', saying({ cnf: { 'x5t#S256': 'x' } })],
  ['an unknown crit', byHand({ ...RS, crit: ['https://x.example'], 'https://x.example': 1 })],
  ['a blank inside of the token', changed((token) => token.replace('.', '. '))],
  ['padding', changed((token) => `${token}=`)],
  [
    'a JWE',
    ({ provider, key }) =>
      new EncryptJWT(provider.claims()).setProtectedHeader({ alg: 'RSA-OAEP', enc: 'A256GCM' }).encrypt(key.publicKey),
  ],
  ['b64=false with crit', byHand({ ...RS, b64: false, crit: ['b64'] })],
  ['b64=false without crit', byHand({ ...RS, b64: false })],
  // More than the table of attacks
  ['an empty kid with a key of an attacker', signedAs({ kid: '' })],
  ['exp negative', written({ exp: -1e300 }), { challenge: EXPIRED }],
  ['aud in other letter case', saying({ aud: API.toUpperCase() })],
  ['iss with an additional slash', saying(({ issuer }) => ({ iss: `${issuer}/` }))],
  ['iss as an array', byHand(RS, (claims) => JSON.stringify({ ...claims, iss: [claims.iss] }))],
  ['typ as a number', byHand({ ...RS, typ: 1 })],
  ['typ secevent+jwt', byHand({ ...RS, typ: 'application/secevent+jwt' })],
  ['an empty crit', byHand({ ...RS, crit: [] })],
  ['RS384 where only another algorithm is allowed', signedAs({ alg: 'RS384' })],
  [
    'stray bits in the signature',
    changed((token) => {
      const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      return token.slice(0, -1) + last[last.indexOf(token.at(-1)!) ^ 1]!
    }),
  ],
  ['a client that is not authorized', saying({ azp: 'evil' }), parties],
  ['a token that is too old', saying({ iat: seconds() - 120 }), { options: aged, challenge: EXPIRED }],
]

const behind = async (options: Options = {}) => {
  const provider = await identityProvider('', 'RS256')
  const { issuer, jwksUri } = provider
  const jwt = httpJwt({ issuer: { issuer, jwksUri }, audience: API, ...options })
  const guarded = guardedApp({ '/me': jwt })
  const { port, errors } = await listen(guarded.app)
  const send = (...lines: ReadonlyArray<string>) => sendCounted(guarded, port, 'GET /me', lines)
  return { provider, key: provider.keys[0]!, guarded, port, errors, send }
}

describe('refused with 401, and no handler runs', () => {
  it.each(attacks.map(([attack, make, more = {}]) => ({ attack, make, ...more })))('$attack', async (one) => {
    const { make, options, challenge = INVALID } = one
    const { provider, key, send, errors } = await behind(options)
    const token = await make({ provider, key })
    for (const answer of [await send(`Authorization: Bearer ${token}`), await send(`Authorization: Bearer ${token}`)]) {
      expectDenied(answer)
      expect(answer.headers).toContainEqual(['www-authenticate', challenge])
    }
    expect(errors).toEqual([])
    // The authenticator does not refuse every token
    const isProfiled = options !== undefined
    if (!isProfiled) expect((await send(`Authorization: Bearer ${await provider.token()}`)).status).toBe(200)
  })

  it('two Authorization headers, even if both are valid', async () => {
    const { provider, send } = await behind()
    const line = `Authorization: Bearer ${await provider.token()}`
    expectDenied(await send(line, line))
  })

  it('a token in the query, which is not read', async () => {
    const { provider, guarded, port } = await behind()
    const answer = await sendCounted(guarded, port, `GET /me?access_token=${await provider.token()}`)
    expectDenied(answer)
    expect(answer.headers).toContainEqual(['www-authenticate', 'Bearer realm="api"'])
  })

  it('a token of 100 kB, if the server takes headers of that size', async () => {
    const { provider, guarded } = await behind()
    const server = createServer({ maxHeaderSize: 1024 * 1024 }, (req, res) => void guarded.app.callback()(req, res))
    const port = await listening(server)
    const token = await provider.token({ padding: 'a'.repeat(100_000) })
    expectDenied(await sendCounted(guarded, port, 'GET /me', [`Authorization: Bearer ${token}`]))
    expect(provider.asked()).toBe(0)
  })

  it('an unknown issuer or audience, without a request to the provider', async () => {
    const { provider, send } = await behind()
    for (const over of [{ iss: 'https://evil.example' }, { aud: 'https://other.example' }]) {
      expectDenied(await send(`Authorization: Bearer ${await provider.token(over)}`))
    }
    expect(provider.asked()).toBe(0)
  })

  it('an expired token with a false signature, without saying that it has expired', async () => {
    const { provider, send } = await behind()
    const token = await signedWith(await signingKey('RS256', 'k1'), provider.claims({ exp: seconds() - 60 }))
    const answer = await send(`Authorization: Bearer ${token}`)
    expectDenied(answer)
    expect(answer.headers).toContainEqual(['www-authenticate', INVALID])
  })
})

describe('accepted', () => {
  it.each(['RS256', 'PS256', 'ES256', 'EdDSA'])('%s', async (alg) => {
    const provider = await identityProvider('', alg)
    const { issuer, jwksUri } = provider
    const { get } = await tokenSite(httpJwt({ issuer: { issuer, jwksUri }, audience: API }))
    const claims = provider.claims({ scope: 'read' })
    const answer = await get(await signedWith(provider.keys[0]!, claims))
    expect({ status: answer.status, ran: answer.ran }).toEqual({ status: 200, ran: 1 })
    expect(JSON.parse(answer.text)).toEqual(claims)
  })

  it.each(['at+jwt', 'application/at+jwt', 'AT+JWT', 'JWT', 'jwt', 'application/jwt', undefined])(
    'typ %s',
    async (typ) => {
      const { provider, key, send } = await behind()
      const token = await signedWith(key, provider.claims(), typ === undefined ? {} : { typ })
      expect((await send(`Authorization: Bearer ${token}`)).status).toBe(200)
    },
  )

  it("a token of profile 'rfc9068'", async () => {
    const { provider, key, send } = await behind({ profile: 'rfc9068' })
    const token = await signedWith(key, provider.claims({ jti: 'j', client_id: 'app' }), { typ: 'at+jwt' })
    expect((await send(`Authorization: Bearer ${token}`)).status).toBe(200)
  })

  it.each<[string, Options, () => ReadonlyArray<JWTPayload>]>([
    [
      'for one of several audiences, on either side',
      { audience: ['https://first.example', API] },
      () => [{ aud: API }, { aud: ['https://other.example', API] }, { aud: 'https://first.example' }],
    ],
    [
      'of an authorized party, by azp or client_id',
      { authorizedParties: ['app', 'other'] },
      () => [{ azp: 'app' }, { client_id: 'other' }, { azp: 'app', client_id: 'other' }],
    ],
    [
      'within the clock tolerance',
      { clockTolerance: 30_000 },
      () => [{ exp: seconds() - 20 }, { nbf: seconds() + 20 }],
    ],
  ])('a token %s', async (_what, options, all) => {
    const { provider, send } = await behind(options)
    for (const over of all()) {
      expect((await send(`Authorization: Bearer ${await provider.token(over)}`)).status).toBe(200)
    }
  })

  it('a token without kid, although several keys could have signed it', async () => {
    const { provider, key, send } = await behind()
    provider.keys.unshift(await signingKey('RS256', 'k0'))
    const token = signedByHand({ alg: 'RS256' }, JSON.stringify(provider.claims()), key)
    expect((await send(`Authorization: Bearer ${token}`)).status).toBe(200)
    const foreign = signedByHand({ alg: 'RS256' }, JSON.stringify(provider.claims()), await signingKey('RS256', 'x'))
    expectDenied(await send(`Authorization: Bearer ${foreign}`))
  })

  it('tokens of several issuers, strings and objects mixed: each has its own keys, audience and algorithms', async () => {
    const [discovered, given, shared] = [await identityProvider(), await signingKey('EdDSA', 'e'), randomBytes(32)]
    const jwt = httpJwt({
      issuer: [
        discovered.issuer,
        { issuer: 'pem', publicKey: pemOf(given), audience: 'own' },
        { issuer: 'jwks', jwks: { keys: [given.jwk] } },
        { issuer: 'object', publicKey: createPublicKey(pemOf(given)) },
        { issuer: 'secret', secret: shared },
        { issuer: 'long', secret: randomBytes(64).toString('base64'), algorithms: ['HS512'] },
      ],
      audience: API,
    })
    const { get } = await tokenSite(jwt)
    const of = (iss: string, over: JWTPayload = {}) => discovered.claims({ iss, ...over })
    const withSecret = (iss: string) =>
      new SignJWT(of(iss)).setProtectedHeader({ alg: 'HS256' }).sign(createSecretKey(shared))
    const expectStatus = async (token: string, status: number) => expect((await get(token)).status).toBe(status)
    await expectStatus(await discovered.token(), 200)
    await expectStatus(await signedWith(given, of('pem', { aud: 'own' })), 200)
    await expectStatus(await signedWith(given, of('pem')), 401)
    await expectStatus(await signedWith(given, of('jwks')), 200)
    await expectStatus(await signedWith(given, of('object')), 200)
    await expectStatus(await withSecret('secret'), 200)
    // The key of one issuer does not sign for another
    await expectStatus(await signedWith(given, of(discovered.issuer)), 401)
    await expectStatus(await withSecret('pem'), 401)
    await expectStatus(await withSecret('long'), 401)
  })
})
