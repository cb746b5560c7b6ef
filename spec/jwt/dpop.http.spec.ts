/** Tokens that are bound to a key (RFC 9449): who passes, and each proof that must be refused by the real guard. */
import { createSecretKey, randomBytes } from 'node:crypto'
import { httpJwt, type DpopOptions } from 'koa-with-auth/jwt'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { sendLines } from '../support/sites/guardedApp.js'
import { dpopClient, ORIGIN, withProof, type DpopClient, type ProofChanges } from '../support/servers/dpopClient.js'
import {
  API,
  identityProvider,
  seconds,
  signingKey,
  type IdentityProvider,
} from '../support/servers/identityProvider.js'
import { INVALID, expectRefused, tokenSite } from '../support/sites/tokenSite.js'

const ALGS = 'RS256 PS256 ES256 EdDSA Ed25519'
const CHALLENGE = `DPoP realm="api", algs="${ALGS}"`
const challenged = (error: string, description: string, bearer = 'Bearer realm="api"') =>
  `${bearer}, DPoP realm="api", algs="${ALGS}", error="${error}", error_description="${description}"`
const proofRefused = (description: string) => challenged('invalid_dpop_proof', description)

const HEADER = 'there must be exactly one DPoP field'
const FORM = 'the proof must be a JWT of the type dpop+jwt with a public jwk'
const REQUEST = 'htm or htu is not of this request'
const TIME = 'iat is too old, or in the future'
const TOKEN = 'ath is not of this token'
const KEY = 'the signature is not of the key in jwk'
const USED = 'jti was used before'

const site = async (over: Partial<DpopOptions> = {}) => {
  const provider = await identityProvider()
  const asked: string[] = []
  const { use } = oneTimeIds(memoryStore())
  const spent = { use: (id: string, lifetime: number) => (asked.push(id), use(id, lifetime)) }
  const hook: unknown[] = []
  const jwt = httpJwt({
    issuer: provider.issuer,
    audience: API,
    bound: { dpop: { spent, origin: ORIGIN, ...over } },
    authenticate: (_request, claims) => (hook.push(claims), claims),
  })
  const client = await dpopClient()
  const token = await client.token(provider)
  const served = await tokenSite(jwt)
  return { ...served, provider, client, token, asked, hook }
}

interface Given {
  readonly client: DpopClient
  readonly token: string
  readonly provider: IdentityProvider
}

type Change = (given: Given) => ProofChanges | Promise<ProofChanges>

const claims =
  (over: Readonly<Record<string, unknown>>): Change =>
  () => ({ claims: over })
const header =
  (over: Readonly<Record<string, unknown>>): Change =>
  () => ({ header: over })
const isAt =
  (name: 'iat' | 'exp', after: number): Change =>
  () => ({ claims: { [name]: seconds() + after } })

const wrong: Readonly<Record<string, Readonly<Record<string, Change>>>> = {
  [proofRefused(FORM)]: {
    'no typ': header({ typ: undefined }),
    'typ JWT': header({ typ: 'JWT' }),
    'no jwk': header({ jwk: undefined }),
    'jwk as a string': header({ jwk: 'x' }),
    'a private jwk': ({ client }) => ({ header: { jwk: client.key.privateKey.export({ format: 'jwk' }) } }),
    'a jwk with a part of a private key': ({ client }) => ({ header: { jwk: { ...client.jwk, p: 'AQAB' } } }),
    'HS256 with the token as its secret': ({ token }) => ({
      header: { alg: 'HS256' },
      key: createSecretKey(Buffer.from(token)),
    }),
    'HS256 with an oct jwk': () => {
      const key = randomBytes(32)
      return { header: { alg: 'HS256', jwk: { kty: 'oct', k: key.toString('base64url') } }, key: createSecretKey(key) }
    },
    'no jti': claims({ jti: undefined }),
    'an empty jti': claims({ jti: '' }),
    'jti as a number': claims({ jti: 1 }),
  },
  [proofRefused(KEY)]: {
    crit: header({ crit: ['b64'], b64: true }),
    'another key under the jwk of the client': async () => ({ key: (await signingKey('ES256', 'x')).privateKey }),
  },
  [challenged('invalid_token', 'the token is bound to another key')]: {
    'another key, and its jwk': async () => {
      const other = await dpopClient()
      return { header: { jwk: other.jwk }, key: other.key.privateKey }
    },
  },
  [proofRefused(REQUEST)]: {
    'another htm': claims({ htm: 'POST' }),
    'htm in lower case': claims({ htm: 'get' }),
    'no htm': claims({ htm: undefined }),
    'no htu': claims({ htu: undefined }),
    'htu of another origin': claims({ htu: 'https://evil.example/me' }),
    'htu by http': claims({ htu: 'http://api.example/me' }),
    'htu of another port': claims({ htu: 'https://api.example:8443/me' }),
    'htu of another path': claims({ htu: `${ORIGIN}/you` }),
    'htu with a user': claims({ htu: 'https://anna@api.example/me' }),
    'htu without an origin': claims({ htu: '/me' }),
    'htu as an array': claims({ htu: [`${ORIGIN}/me`] }),
  },
  [proofRefused(TIME)]: {
    'no iat': claims({ iat: undefined }),
    'iat as a string': claims({ iat: String(seconds()) }),
    'too old': isAt('iat', -66),
    'of the future': isAt('iat', 6),
    expired: isAt('exp', -6),
  },
  [proofRefused(TOKEN)]: {
    'no ath': claims({ ath: undefined }),
    'ath of another token': claims({ ath: 'x'.repeat(43) }),
  },
}
const refusals = Object.entries(wrong).flatMap(([challenge, changes]) =>
  Object.entries(changes).map(([proof, change]) => ({ proof, change, challenge })),
)

/** Asks with a proof, and says the status. */
const statusOf = async (
  { get, client, token }: Pick<Awaited<ReturnType<typeof site>>, 'get' | 'client' | 'token'>,
  changes?: ProofChanges,
) => (await get(undefined, withProof(token, await client.proof(token, changes)))).status

describe('a token that is bound to a key passes', () => {
  it('with a proof, once, and the hook gets its claims', async () => {
    const { get, client, token, asked, hook } = await site()
    const passed = await get(undefined, withProof(token, await client.proof(token)))
    expect([passed.status, passed.ran]).toEqual([200, 1])
    expect(JSON.parse(passed.text)).toMatchObject({ sub: 'anna', cnf: { jkt: client.thumbprint } })
    expect([asked.length, hook.length]).toEqual([1, 1])
  })

  it.each(['RS256', 'EdDSA'])('with a proof that is signed with %s', async (alg) => {
    const { get, provider } = await site()
    const client = await dpopClient(alg)
    expect(await statusOf({ get, client, token: await client.token(provider) })).toBe(200)
  })

  it.each([
    ['the default port', 'https://api.example:443/me'],
    ['another letter case of scheme and host', 'HTTPS://API.EXAMPLE/me'],
    ['an escaped letter', 'https://api.example/%6d%65'],
    ['dot segments', 'https://api.example/x/../me'],
    // RFC 9449 §4.3: both are ignored
    ['a query and a fragment', 'https://api.example/me?a=b#c'],
  ])('with an htu that has %s', async (_what, uri) => {
    expect(await statusOf(await site(), { claims: { htu: uri } })).toBe(200)
  })

  it('whatever Host and X-Forwarded-Host say', async () => {
    const { get, client, token } = await site()
    const foreign = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http' }
    const sent = withProof(token, await client.proof(token))
    expect((await get(undefined, { ...sent, ...foreign })).status).toBe(200)
    const evil = await client.proof(token, { claims: { htu: 'https://evil.example/me' } })
    const refused = await get(undefined, { ...withProof(token, evil), ...foreign })
    expect([refused.status, refused.ran]).toEqual([401, 0])
  })

  it('with a kid and an x5c, which are ignored, in any letter case of the scheme', async () => {
    const { get, client, token } = await site()
    const proof = await client.proof(token, { header: { kid: 'other', x5c: ['x'] } })
    expect((await get(undefined, { Authorization: `dpop ${token}`, DPoP: proof })).status).toBe(200)
  })
})

describe('B-35: a proof is refused with', () => {
  it.each(refusals)('$proof', async ({ change, challenge }) => {
    stoppedClock()
    const given = await site()
    const { get, client, token, asked, hook } = given
    const refused = await get(undefined, withProof(token, await client.proof(token, await change(given))))
    expectRefused(refused, challenge)
    expect(JSON.parse(refused.text)).toMatchObject({ status: 401, detail: 'Unauthorized' })
    expect([asked, hook]).toEqual([[], []])
  })

  it('nothing, two of them, or rubbish', async () => {
    const { get, url, client, token, asked, hook } = await site()
    const [one, two] = [await client.proof(token), await client.proof(token)]
    const bearer = { Authorization: `DPoP ${token}` }
    for (const [fields, description] of [
      [bearer, HEADER],
      [{ ...bearer, DPoP: `${one}, ${two}` }, FORM],
      [{ ...bearer, DPoP: 'rubbish' }, FORM],
      [{ ...bearer, DPoP: '' }, FORM],
      [{ ...bearer, DPoP: `${one}=` }, FORM],
      [{ ...bearer, DPoP: `${one}${'A'.repeat(8192)}` }, FORM],
    ] as const) {
      const refused = await get(undefined, fields)
      expectRefused(refused, proofRefused(description))
    }
    const lines = [`Authorization: DPoP ${token}`, `DPoP: ${one}`, `DPoP: ${two}`]
    const doubled = await sendLines(Number(new URL(url).port), 'GET /me', lines)
    expect(doubled.status).toBe(401)
    expect([asked, hook]).toEqual([[], []])
  })

  it('dot segments in the path of the request, which the router does not resolve', async () => {
    const { port, client, token } = await site()
    const lines = async () => Object.entries(withProof(token, await client.proof(token))).map((one) => one.join(': '))
    expect((await sendLines(port, 'GET https://evil.example/me', await lines())).status).toBe(200)
    for (const target of ['/x/../me', '/x/%2E%2e/me', '/./me', '/x\\..\\me', '//evil.example/me']) {
      expect([401, 404], target).toContain((await sendLines(port, `GET ${target}`, await lines())).status)
    }
  })
})

describe('B-34: a token', () => {
  it('that is bound is refused as a plain bearer token, with and without a proof', async () => {
    const { get, client, token, asked, hook } = await site()
    for (const fields of [{}, { DPoP: await client.proof(token) }]) {
      const refused = await get(token, fields)
      expectRefused(refused, `${INVALID}, ${CHALLENGE}`)
    }
    expect([asked, hook]).toEqual([[], []])
  })

  it('that is not bound passes as a bearer token, and is refused under DPoP', async () => {
    const { get, client, provider, asked } = await site()
    const plain = await provider.token()
    expect((await get(plain)).status).toBe(200)
    const refused = await get(undefined, withProof(plain, await client.proof(plain)))
    expectRefused(refused, challenged('invalid_token', 'the token is bound to no key'))
    expect(asked).toEqual([])
  })

  it('that is bad under DPoP is refused before its proof is read', async () => {
    const { get, client, provider, asked } = await site()
    const expired = await client.token(provider, { exp: seconds() - 60 })
    const refused = await get(undefined, withProof(expired, 'rubbish'))
    expect(refused.challenge).toBe(
      `Bearer realm="api", DPoP realm="api", algs="${ALGS}", error="invalid_token", error_description="The access token expired"`,
    )
    expect(asked).toEqual([])
  })

  it.each([
    ['nothing', {}],
    ['a certificate', { 'x5t#S256': 'x' }],
    ['a key and a certificate', { jkt: 'x', 'x5t#S256': 'x' }],
    ['something unknown', { kid: 'x' }],
    ['something unknown beside a key', { jkt: 'x', jwe: 'x' }],
    ['an array', ['jkt']],
    ['null', null],
    ['a number', { jkt: 1 }],
    ['an empty string', { jkt: '' }],
  ])('that is bound to %s is refused under both schemes', async (_what, cnf) => {
    const { get, client, provider, asked, hook } = await site()
    const token = await provider.token({ cnf })
    const answers = [await get(token), await get(undefined, withProof(token, await client.proof(token)))]
    expect(answers.map(({ status, ran }) => [status, ran])).toEqual([
      [401, 0],
      [401, 0],
    ])
    expect([asked, hook]).toEqual([[], []])
  })

  it('is refused if it must be bound and is not: `required`', async () => {
    const provider = await identityProvider()
    const spent = oneTimeIds(memoryStore())
    const bound = { dpop: { spent, origin: ORIGIN }, required: true }
    const { get } = await tokenSite(httpJwt({ issuer: provider.issuer, audience: API, bound }))
    const [plain, client] = [await provider.token(), await dpopClient()]
    const refused = await get(plain)
    expectRefused(refused, CHALLENGE)
    const token = await client.token(provider)
    expect((await get(undefined, withProof(token, await client.proof(token)))).status).toBe(200)
  })

  it('without credentials, both schemes are offered', async () => {
    const { get } = await site()
    const refused = await get()
    expect([refused.status, refused.challenge]).toEqual([401, `Bearer realm="api", ${CHALLENGE}`])
    expect(refused.headers.get('vary')).toBe('Authorization, DPoP')
  })
})

describe('B-36: the jti of a proof', () => {
  it('is good once: a replay is refused, also for another method, token or jti of the same key', async () => {
    const { get, client, provider, token, hook } = await site()
    const proof = await client.proof(token, { claims: { jti: 'x' } })
    expect((await get(undefined, withProof(token, proof))).status).toBe(200)
    const replayed = await get(undefined, withProof(token, proof))
    expectRefused(replayed, proofRefused(USED))
    const again = await client.token(provider, { sub: 'anna', jti: 'another' })
    const reused = await client.proof(again, { claims: { jti: 'x' } })
    expect((await get(undefined, withProof(again, reused))).status).toBe(401)
    expect(hook).toHaveLength(1)
  })

  it('of another client is another one', async () => {
    const made = await site()
    const other = await dpopClient()
    const jti = { claims: { jti: 'x' } }
    expect(await statusOf(made, jti)).toBe(200)
    expect(await statusOf({ ...made, client: other, token: await other.token(made.provider) }, jti)).toBe(200)
  })

  it('lets one of twenty parallel requests in', async () => {
    const { get, client, token } = await site()
    const proof = await client.proof(token)
    const answers = await Promise.all(Array.from({ length: 20 }, () => get(undefined, withProof(token, proof))))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(19).fill(401)])
  })

  it('is kept until the proof is too old', async () => {
    const clock = stoppedClock()
    const { get, client, token } = await site()
    const proof = await client.proof(token, { claims: { iat: seconds() + 5 } })
    expect((await get(undefined, withProof(token, proof))).status).toBe(200)
    clock.move(69_000)
    expect((await get(undefined, withProof(token, proof))).challenge).toBe(proofRefused(USED))
    clock.move(2_000)
    expect((await get(undefined, withProof(token, proof))).challenge).toBe(proofRefused(TIME))
  })

  const down = (): never => {
    throw new Error('down')
  }
  it.each<[string, () => Promise<boolean>]>([
    ['rejects', async () => down()],
    ['throws', down],
  ])('cannot be spent if the store %s: 503, and the hook is not called', async (_how, use) => {
    const { get, client, token, hook } = await site({ spent: { use } })
    const refused = await get(undefined, withProof(token, await client.proof(token)))
    expect([refused.status, refused.ran, refused.headers.get('retry-after')]).toEqual([503, 0, '5'])
    expect(hook).toEqual([])
  })

  it.each([undefined, 'yes', 1, {}])('is not spent if the store answers %j', async (answer) => {
    const use = () => Promise.resolve(answer as unknown as boolean)
    const { get, client, token, hook } = await site({ spent: { use } })
    const refused = await get(undefined, withProof(token, await client.proof(token)))
    expect([refused.status, refused.ran, hook.length]).toEqual([401, 0, 0])
  })
})

describe('B-37: the nonce of a proof', () => {
  const KEYS = ['0123456789abcdef0123456789abcdef'] as const
  const STALE = 'a new nonce is needed'

  it('is asked for with DPoP-Nonce, and every answer has a new one', async () => {
    const { get, client, token, asked, hook } = await site({ nonce: { keys: KEYS } })
    const first = await get(undefined, withProof(token, await client.proof(token)))
    expectRefused(first, challenged('use_dpop_nonce', STALE))
    const nonce = first.headers.get('dpop-nonce')
    expect(nonce).toMatch(/^[\x21\x23-\x5b\x5d-\x7e]{20,}$/)
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect([asked, hook]).toEqual([[], []])
    const passed = await get(undefined, withProof(token, await client.proof(token, { claims: { nonce } })))
    expect([passed.status, passed.headers.get('dpop-nonce')]).toEqual([200, nonce])
  })

  it('is good for its lifetime, at most twice as long, and not in another process with another key', async () => {
    const clock = stoppedClock()
    const made = await site({ nonce: { keys: KEYS, lifetime: 60_000 } })
    const { get } = made
    const statusWith = (nonce: unknown) => statusOf(made, { claims: { nonce } })
    const { headers } = await get()
    const nonce = headers.get('dpop-nonce')
    clock.move(59_000)
    expect(await statusWith(nonce)).toBe(200)
    clock.move(62_000)
    expect(await statusWith(nonce)).toBe(401)
    const now = (await get()).headers.get('dpop-nonce')
    expect(now).not.toBe(nonce)
    expect(await statusWith(now)).toBe(200)
    for (const bad of ['', 'x', 7, [now], `${now}x`]) expect(await statusWith(bad)).toBe(401)
  })

  it('stays good while its key is one of the keys', async () => {
    const other = '1'.repeat(32)
    const before = await site({ nonce: { keys: KEYS } })
    const nonce = (await before.get()).headers.get('dpop-nonce')
    const rotated = await site({ nonce: { keys: [other, ...KEYS] } })
    const removed = await site({ nonce: { keys: [other] } })
    expect(await statusOf(rotated, { claims: { nonce } })).toBe(200)
    expect(await statusOf(removed, { claims: { nonce } })).toBe(401)
  })

  it('is no guess: a client without one is not throttled, and a bad signature is reported first', async () => {
    const { get, client, token } = await site({ nonce: { keys: KEYS } })
    const key = (await signingKey('ES256', 'x')).privateKey
    const refused = await get(undefined, withProof(token, await client.proof(token, { key })))
    expect(refused.challenge).toBe(proofRefused(KEY))
  })
})
