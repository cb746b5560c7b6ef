/** Tokens that are bound to a key (RFC 9449): who passes, and each proof that must be refused by the real guard. */
import { createSecretKey, randomBytes } from 'node:crypto'
import type { DpopOptions } from 'koa-with-auth/jwt'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { sendLines } from '../support/sites/guardedApp.js'
import { dpopClient, ORIGIN, withProof, type DpopClient, type ProofChanges } from '../support/servers/dpopClient.js'
import { seconds, signingKey, type IdentityProvider } from '../support/servers/identityProvider.js'
import { INVALID, expectRefused, jwtSite, type JwtOptions } from '../support/sites/tokenSite.js'

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

/** A client with a bound token, and what was asked of the store and of the hook. `ask` sends the token with a proof. */
const site = async (over: Partial<DpopOptions> = {}, more: Partial<NonNullable<JwtOptions['bound']>> = {}) => {
  const [asked, hook]: [string[], unknown[]] = [[], []]
  const { use } = oneTimeIds(memoryStore())
  const spent = { use: (id: string, lifetime: number) => (asked.push(id), use(id, lifetime)) }
  const served = await jwtSite({
    bound: { dpop: { spent, origin: ORIGIN, ...over }, ...more },
    authenticate: (_request, claims) => (hook.push(claims), claims),
  })
  const client = await dpopClient()
  const token = await client.token(served.provider)
  const ask = async (changes?: ProofChanges, sender = client, sent = token) =>
    served.get(undefined, withProof(sent, await sender.proof(sent, changes)))
  return { ...served, client, token, ask, asked, hook }
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

describe('a token that is bound to a key passes', () => {
  it('with a proof, once, and the hook gets its claims', async () => {
    const { ask, client, asked, hook } = await site()
    const passed = await ask()
    expect([passed.status, passed.ran]).toEqual([200, 1])
    expect(JSON.parse(passed.text)).toMatchObject({ sub: 'anna', cnf: { jkt: client.thumbprint } })
    expect([asked.length, hook.length]).toEqual([1, 1])
  })

  it.each(['RS256', 'EdDSA'])('with a proof that is signed with %s', async (alg) => {
    const { ask, provider } = await site()
    const client = await dpopClient(alg)
    expect((await ask({}, client, await client.token(provider))).status).toBe(200)
  })

  it('whatever Host and X-Forwarded-Host say', async () => {
    const { outcome, client, token } = await site()
    const foreign = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http' }
    for (const [htu, expected] of [
      [`${ORIGIN}/me`, [200, 1]],
      ['https://evil.example/me', [401, 0]],
    ] as const) {
      const sent = withProof(token, await client.proof(token, { claims: { htu } }))
      expect(await outcome(undefined, { ...sent, ...foreign })).toEqual(expected)
    }
  })

  it('with a kid and an x5c, which are ignored, in any letter case of the scheme', async () => {
    const { status, client, token } = await site()
    const proof = await client.proof(token, { header: { kid: 'other', x5c: ['x'] } })
    expect(await status(undefined, { Authorization: `dpop ${token}`, DPoP: proof })).toBe(200)
  })
})

describe('B-35: a proof is refused with', () => {
  it.each(refusals)('$proof', async ({ change, challenge }) => {
    stoppedClock()
    const given = await site()
    const refused = await given.ask(await change(given))
    expectRefused(refused, challenge)
    expect(JSON.parse(refused.text)).toMatchObject({ status: 401, detail: 'Unauthorized' })
    expect([given.asked, given.hook]).toEqual([[], []])
  })

  it('nothing, two of them, or rubbish', async () => {
    const { get, port, client, token, asked, hook } = await site()
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
      expectRefused(await get(undefined, fields), proofRefused(description))
    }
    const lines = [`Authorization: DPoP ${token}`, `DPoP: ${one}`, `DPoP: ${two}`]
    const doubled = await sendLines(port, 'GET /me', lines)
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
      expectRefused(await get(token, fields), `${INVALID}, ${CHALLENGE}`)
    }
    expect([asked, hook]).toEqual([[], []])
  })

  it('that is not bound passes as a bearer token, and is refused under DPoP', async () => {
    const { status, ask, client, provider, asked } = await site()
    const plain = await provider.token()
    expect(await status(plain)).toBe(200)
    expectRefused(await ask({}, client, plain), challenged('invalid_token', 'the token is bound to no key'))
    expect(asked).toEqual([])
  })

  it('that is bad under DPoP is refused before its proof is read', async () => {
    const { get, client, provider, asked } = await site()
    const expired = await client.token(provider, { exp: seconds() - 60 })
    expectRefused(
      await get(undefined, withProof(expired, 'rubbish')),
      challenged('invalid_token', 'The access token expired'),
    )
    expect(asked).toEqual([])
  })

  it.each([
    ['nothing', {}],
    ['a certificate', { 'x5t#S256': 'x' }],
    ['a key and a certificate', { jkt: 'x', 'x5t#S256': 'x' }],
    ['something unknown', { kid: 'x' }],
  ])('that is bound to %s is refused under both schemes', async (_what, cnf) => {
    const { outcome, client, provider, asked, hook } = await site()
    const token = await provider.token({ cnf })
    expect(await outcome(token)).toEqual([401, 0])
    expect(await outcome(undefined, withProof(token, await client.proof(token)))).toEqual([401, 0])
    expect([asked, hook]).toEqual([[], []])
  })

  it('is refused if it must be bound and is not: `required`', async () => {
    const { provider, get, ask } = await site({}, { required: true })
    expectRefused(await get(await provider.token()), CHALLENGE)
    expect((await ask()).status).toBe(200)
  })

  it('without credentials, both schemes are offered', async () => {
    const { get } = await site()
    const refused = await get()
    expectRefused(refused, `Bearer realm="api", ${CHALLENGE}`)
    expect(refused.headers.get('vary')).toBe('Authorization, DPoP')
  })
})

describe('B-36: the jti of a proof', () => {
  const jti = { claims: { jti: 'x' } }

  it('is good once: a replay is refused, also for another method, token or jti of the same key', async () => {
    const { get, ask, client, provider, token, hook } = await site()
    const proof = withProof(token, await client.proof(token, jti))
    expect((await get(undefined, proof)).status).toBe(200)
    expectRefused(await get(undefined, proof), proofRefused(USED))
    const again = await client.token(provider, { sub: 'anna', jti: 'another' })
    expectRefused(await ask(jti, client, again), proofRefused(USED))
    expect(hook).toHaveLength(1)
  })

  it('of another client is another one', async () => {
    const { ask, provider } = await site()
    const other = await dpopClient()
    expect((await ask(jti)).status).toBe(200)
    expect((await ask(jti, other, await other.token(provider))).status).toBe(200)
  })

  it('lets one of twenty parallel requests in', async () => {
    const { status, client, token } = await site()
    const sent = withProof(token, await client.proof(token))
    const statuses = await Promise.all(Array.from({ length: 20 }, () => status(undefined, sent)))
    expect(statuses.sort()).toEqual([200, ...Array<number>(19).fill(401)])
  })

  it('is kept until the proof is too old, and not a millisecond less', async () => {
    const clock = stoppedClock()
    clock.set(-(Date.now() % 1000))
    const { ask } = await site()
    const same = { claims: { jti: 'x', iat: seconds() + 5 } }
    expect((await ask(same)).status).toBe(200)
    clock.move(70_000)
    expectRefused(await ask(same), proofRefused(USED))
    clock.move(1)
    expectRefused(await ask(same), proofRefused(TIME))
  })

  const down = (): never => {
    throw new Error('down')
  }
  it.each<[string, number, () => Promise<unknown>]>([
    ['rejects', 503, async () => down()],
    ['throws', 503, down],
    ...[undefined, 'yes', 1, {}].map((answer): [string, number, () => Promise<unknown>] => [
      `answers ${JSON.stringify(answer)}`,
      401,
      async () => answer,
    ]),
  ])('is not used if the store %s: %i, and the hook is not called', async (_how, status, use) => {
    const { ask, hook } = await site({ spent: { use: use as () => Promise<boolean> } })
    const refused = await ask()
    expectRefused(refused, status === 503 ? null : proofRefused(USED), status)
    expect([refused.headers.get('retry-after'), hook]).toEqual([status === 503 ? '5' : null, []])
  })
})

describe('B-37: the nonce of a proof', () => {
  const KEYS = ['0123456789abcdef0123456789abcdef'] as const
  const STALE = 'a new nonce is needed'
  const nonceOf = ({ headers }: { readonly headers: Headers }) => headers.get('dpop-nonce')

  it('is asked for with DPoP-Nonce, and every answer has a new one', async () => {
    const { ask, asked, hook } = await site({ nonce: { keys: KEYS } })
    const first = await ask()
    expectRefused(first, challenged('use_dpop_nonce', STALE))
    const nonce = nonceOf(first)
    expect(nonce).toMatch(/^[\x21\x23-\x5b\x5d-\x7e]{20,}$/)
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect([asked, hook]).toEqual([[], []])
    const passed = await ask({ claims: { nonce } })
    expect([passed.status, nonceOf(passed)]).toEqual([200, nonce])
  })

  it('is good for its lifetime, at most twice as long, and not in another process with another key', async () => {
    const clock = stoppedClock()
    const { get, ask } = await site({ nonce: { keys: KEYS, lifetime: 60_000 } })
    const statusWith = async (nonce: unknown) => (await ask({ claims: { nonce } })).status
    const nonce = nonceOf(await get())
    clock.move(59_000)
    expect(await statusWith(nonce)).toBe(200)
    clock.move(62_000)
    expect(await statusWith(nonce)).toBe(401)
    const now = nonceOf(await get())
    expect(now).not.toBe(nonce)
    expect(await statusWith(now)).toBe(200)
    for (const bad of ['', 'x', 7, [now], `${now}x`]) expect(await statusWith(bad)).toBe(401)
  })

  it('stays good while its key is one of the keys', async () => {
    const other = '1'.repeat(32)
    const nonce = nonceOf(await (await site({ nonce: { keys: KEYS } })).get())
    const rotated = await site({ nonce: { keys: [other, ...KEYS] } })
    const removed = await site({ nonce: { keys: [other] } })
    expect((await rotated.ask({ claims: { nonce } })).status).toBe(200)
    expect((await removed.ask({ claims: { nonce } })).status).toBe(401)
  })

  it('is no guess: a client without one is not throttled, and a bad signature is reported first', async () => {
    const { ask } = await site({ nonce: { keys: KEYS } })
    expectRefused(await ask({ key: (await signingKey('ES256', 'x')).privateKey }), proofRefused(KEY))
  })
})
