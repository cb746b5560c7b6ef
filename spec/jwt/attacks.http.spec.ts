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

interface Attack {
  readonly attack: string
  readonly make: (given: Given) => string | Promise<string>
  readonly options?: Options
  readonly challenge?: string
}

const pemOf = ({ publicKey }: SigningKey): string => publicKey.export({ type: 'spki', format: 'pem' }).toString()
const RS = { alg: 'RS256', kid: 'k1' }
const withClaims = (claims: (provider: IdentityProvider) => JWTPayload) => ({
  make: ({ provider }: Given) => provider.token(claims(provider)),
})
const byHand =
  (header: object, payload = (claims: JWTPayload): string => JSON.stringify(claims)) =>
  ({ provider, key }: Given): string =>
    signedByHand(header, payload(provider.claims()), key)

const attacks: ReadonlyArray<Attack> = [
  {
    attack: 'alg none',
    make: ({ provider }) => `${new UnsecuredJWT(provider.claims()).encode()}AAAA`,
  },
  { attack: 'alg none without a signature', make: ({ provider }) => new UnsecuredJWT(provider.claims()).encode() },
  {
    attack: 'HS256 with the public PEM',
    make: ({ provider, key }) =>
      new SignJWT(provider.claims())
        .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
        .sign(createSecretKey(Buffer.from(pemOf(key)))),
  },
  {
    attack: 'an embedded jwk',
    make: async ({ provider }) => {
      const own = await signingKey('RS256', 'own')
      return signedWith(own, provider.claims(), { jwk: own.jwk })
    },
  },
  {
    attack: 'a foreign key with the same kid',
    make: async ({ provider }) => signedWith(await signingKey('RS256', 'k1'), provider.claims()),
  },
  { attack: 'no exp', make: byHand(RS, ({ exp: _exp, ...claims }) => JSON.stringify(claims)) },
  {
    attack: 'exp 1e400',
    make: byHand(RS, (claims) => JSON.stringify({ ...claims, exp: 0 }).replace('"exp":0', '"exp":1e400')),
  },
  { attack: 'exp as a string', make: byHand(RS, (claims) => JSON.stringify({ ...claims, exp: String(claims.exp) })) },
  { attack: 'expired', ...withClaims(() => ({ exp: seconds() - 60 })), challenge: EXPIRED },
  { attack: 'nbf in the future', ...withClaims(() => ({ nbf: seconds() + 3600 })) },
  { attack: 'no aud', make: byHand(RS, ({ aud: _aud, ...claims }) => JSON.stringify(claims)) },
  { attack: 'another aud', ...withClaims(() => ({ aud: 'https://other.example' })) },
  { attack: 'another iss', ...withClaims(() => ({ iss: 'https://evil.example' })) },
  { attack: 'no iss', make: byHand(RS, ({ iss: _iss, ...claims }) => JSON.stringify(claims)) },
  {
    attack: "an ID token with profile 'rfc9068'",
    options: { profile: 'rfc9068' },
    make: ({ provider, key }) => signedWith(key, provider.claims({ nonce: 'n', azp: 'app' }), { typ: 'JWT' }),
  },
  { attack: 'typ dpop+jwt', make: byHand({ ...RS, typ: 'dpop+jwt' }) },
  { attack: 'typ logout+jwt', make: byHand({ ...RS, typ: 'logout+jwt' }) },
  { attack: 'cnf.jkt', ...withClaims(() => ({ cnf: { jkt: 'x' } })) },
  { attack: 'cnf x5t#S256', ...withClaims(() => ({ cnf: { 'x5t#S256': 'x' } })) },
  { attack: 'an unknown crit', make: byHand({ ...RS, crit: ['https://x.example'], 'https://x.example': 1 }) },
  { attack: 'a blank inside of the token', make: async ({ provider }) => (await provider.token()).replace('.', '. ') },
  { attack: 'padding', make: async ({ provider }) => `${await provider.token()}=` },
  {
    attack: 'a JWE',
    make: ({ provider, key }) =>
      new EncryptJWT(provider.claims()).setProtectedHeader({ alg: 'RSA-OAEP', enc: 'A256GCM' }).encrypt(key.publicKey),
  },
  { attack: 'b64=false with crit', make: byHand({ ...RS, b64: false, crit: ['b64'] }) },
  { attack: 'b64=false without crit', make: byHand({ ...RS, b64: false }) },
  // More than the table of attacks
  {
    attack: 'an empty kid with a key of an attacker',
    make: ({ provider, key }) => signedWith({ ...key, kid: '' }, provider.claims()),
  },
  { attack: 'exp null', make: byHand(RS, (claims) => JSON.stringify({ ...claims, exp: null })) },
  {
    attack: 'exp negative',
    make: byHand(RS, (claims) => JSON.stringify({ ...claims, exp: -1e300 })),
    challenge: EXPIRED,
  },
  { attack: 'nbf as a string', make: byHand(RS, (claims) => JSON.stringify({ ...claims, nbf: '0' })) },
  { attack: 'iat 1e400', make: byHand(RS, (claims) => JSON.stringify(claims).replace(/"iat":\d+/, '"iat":1e400')) },
  { attack: 'aud as an object', make: byHand(RS, (claims) => JSON.stringify({ ...claims, aud: { [API]: true } })) },
  {
    attack: 'aud with a number in its list',
    make: byHand(RS, (claims) => JSON.stringify({ ...claims, aud: [API, 1] })),
  },
  { attack: 'aud in other letter case', ...withClaims(() => ({ aud: API.toUpperCase() })) },
  { attack: 'iss with an additional slash', ...withClaims(({ issuer }) => ({ iss: `${issuer}/` })) },
  { attack: 'iss as an array', make: byHand(RS, (claims) => JSON.stringify({ ...claims, iss: [claims.iss] })) },
  { attack: 'cnf null', make: byHand(RS, (claims) => JSON.stringify({ ...claims, cnf: null })) },
  { attack: 'sub as a number', make: byHand(RS, (claims) => JSON.stringify({ ...claims, sub: 1 })) },
  { attack: 'typ as a number', make: byHand({ ...RS, typ: 1 }) },
  { attack: 'typ secevent+jwt', make: byHand({ ...RS, typ: 'application/secevent+jwt' }) },
  { attack: 'an empty crit', make: byHand({ ...RS, crit: [] }) },
  {
    attack: 'RS384 where only another algorithm is allowed',
    make: ({ provider, key }) => signedWith({ ...key, alg: 'RS384' }, provider.claims()),
  },
  { attack: 'an array for claims', make: byHand(RS, () => '[]') },
  { attack: 'a string for claims', make: byHand(RS, () => '"sub"') },
  { attack: 'a header that is an array', make: byHand([]) },
  {
    attack: 'claims that are not UTF-8',
    make: ({ key }) => {
      const [header, , signature] = signedByHand(RS, '{}', key).split('.')
      return `${header}.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.${signature}`
    },
  },
  {
    attack: 'stray bits in the signature',
    make: async ({ provider }) => {
      const token = await provider.token()
      const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      return token.slice(0, -1) + last[last.indexOf(token.at(-1)!) ^ 1]!
    },
  },
  {
    attack: "at+jwt without client_id with profile 'rfc9068'",
    options: { profile: 'rfc9068' },
    make: ({ provider, key }) => signedWith(key, provider.claims({ jti: 'j' }), { typ: 'at+jwt' }),
  },
  {
    attack: 'a client that is not authorized',
    options: { authorizedParties: ['app'] },
    ...withClaims(() => ({ azp: 'evil' })),
  },
  {
    attack: 'no client where an authorized one is required',
    options: { authorizedParties: ['app'] },
    ...withClaims(() => ({})),
  },
  {
    attack: 'an authorized azp with a client_id that is not authorized',
    options: { authorizedParties: ['app'] },
    ...withClaims(() => ({ azp: 'app', client_id: 'evil' })),
  },
  {
    attack: 'no iat where a maximal age is set',
    options: { maxTokenAge: 60_000 },
    make: byHand(RS, ({ iat: _iat, ...claims }) => JSON.stringify(claims)),
  },
  {
    attack: 'a token that is too old',
    options: { maxTokenAge: 60_000 },
    ...withClaims(() => ({ iat: seconds() - 120 })),
    challenge: EXPIRED,
  },
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
  it.each(attacks)('$attack', async ({ make, options, challenge = INVALID }) => {
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

  it('a token for one of several audiences, on either side', async () => {
    const { provider, send } = await behind({ audience: ['https://first.example', API] })
    for (const aud of [API, ['https://other.example', API], 'https://first.example']) {
      expect((await send(`Authorization: Bearer ${await provider.token({ aud })}`)).status).toBe(200)
    }
  })

  it('a token of an authorized party, by azp or client_id', async () => {
    const { provider, send } = await behind({ authorizedParties: ['app', 'other'] })
    for (const over of [{ azp: 'app' }, { client_id: 'other' }, { azp: 'app', client_id: 'other' }]) {
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

  it('a token within the clock tolerance', async () => {
    const { provider, send } = await behind({ clockTolerance: 30_000 })
    for (const over of [{ exp: seconds() - 20 }, { nbf: seconds() + 20 }]) {
      expect((await send(`Authorization: Bearer ${await provider.token(over)}`)).status).toBe(200)
    }
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
