/**
 * Providers that do wrong, over HTTP. The names in brackets are those of the relying-party modules of the OpenID
 * Foundation's conformance suite.
 */
import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { decodeJwt, SignJWT, type JWTPayload } from 'jose'
import { oidc } from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it, vi } from 'vitest'
import { seconds, signedByHand, signedWith, signingKey } from '../support/servers/identityProvider.js'
import { limitFor, newBrowser, providerSite, shopAt, type ProviderSite } from '../support/sites/providerSite.js'
import { tried, wrongSite as start } from '../support/sites/wrongProviderSite.js'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { navigation, type Page } from '../support/servers/userAgent.js'
import {
  failing,
  json,
  SECRET,
  wrongProvider,
  type Endpoint,
  type WrongProvider,
} from '../support/servers/wrongProvider.js'
import { noting } from '../support/stores/stores.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { pollute } from '../support/runs/pollute.js'

const reasonOf = ({ status, body }: Page): readonly [number, string | undefined] => [
  status,
  body.startsWith('{') ? (JSON.parse(body) as { reason?: string }).reason : undefined,
]

const expectRefused = async (site: ProviderSite, expected: readonly [number, string | undefined]) => {
  const hooks = site.done.length
  const { page, reason, who } = await tried(site)
  expect([page.status, reason, who, site.done.length - hooks]).toEqual([...expected, undefined, 0])
  return page
}

const isolated = (key: 'RS256' | 'ES256') => signingKey(key, 'k2')

/** The left half of a hash (OpenID Connect Core §3.1.3.6). */
const halfHash = (token: string, hash = 'sha256'): string => {
  const digest = createHash(hash).update(token).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

// O-07
describe('an ID token', () => {
  const claims: ReadonlyArray<readonly [string, (given: JWTPayload) => JWTPayload]> = [
    ['a wrong nonce [nonce-invalid]', (given) => ({ ...given, nonce: 'another' })],
    ['a wrong iss [invalid-iss]', (given) => ({ ...given, iss: 'https://evil.example' })],
    ['a wrong aud [invalid-aud]', (given) => ({ ...given, aud: 'another' })],
    ['no aud [missing-aud]', ({ aud: _, ...given }) => given],
    ['no iat [missing-iat]', ({ iat: _, ...given }) => given],
    ['an iat that is a string', (given) => ({ ...given, iat: String(seconds()) as unknown as number })],
    ['an iat in the future', (given) => ({ ...given, iat: seconds() + 3600, exp: seconds() + 7200 })],
    ['an iat of yesterday', (given) => ({ ...given, iat: seconds() - 86_400 })],
    ['no sub [missing-sub]', ({ sub: _, ...given }) => given],
    ['an empty sub', (given) => ({ ...given, sub: '' })],
    ['a blank sub', (given) => ({ ...given, sub: ' ' })],
    ['an at_hash of another access token [invalid-athash]', (given) => ({ ...given, at_hash: halfHash('another') })],
    ['an at_hash by another hash', (given) => ({ ...given, at_hash: halfHash('an-access-token', 'sha512') })],
    ['an at_hash that is no string', (given) => ({ ...given, at_hash: 7 })],
    ['a sub that is a number', (given) => ({ ...given, sub: 7 as unknown as string })],
    ['a sub of 300 characters', (given) => ({ ...given, sub: 'a'.repeat(300) })],
    ['an auth_time in the future', (given) => ({ ...given, auth_time: seconds() + 3600 })],
  ]
  it.each(claims)('with %s is refused', async (_name, change) => {
    const { provider, site } = await start()
    provider.claims = change
    await expectRefused(site, [400, 'provider'])
    expect(site.errors).toEqual([])
  })

  it.each([
    ['sub', 'anna'],
    ['iss', undefined],
    ['acr', 'gold'],
  ])('with an inherited %s alone is refused', async (name, value) => {
    const { provider, site } = await start({ acrValues: ['gold'] })
    provider.claims = ({ [name]: _, ...given }) => (name === 'acr' ? given : { ...given, acr: 'gold' })
    pollute({ [name]: value ?? provider.issuer })
    await expectRefused(site, [400, 'provider'])
  })

  const tokens: ReadonlyArray<
    readonly [string, (provider: WrongProvider, claims: JWTPayload) => string | Promise<string>]
  > = [
    ['alg none [idtoken-sig-none]', (_p, given) => `${part({ alg: 'none' })}.${part(given)}.`],
    [
      'HS256 by the client secret [invalid-sig-hs256]',
      (_p, given) => new SignJWT(given).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(SECRET)),
    ],
    [
      'a signature by another key [invalid-sig-rs256]',
      async (_p, given) => signedWith({ ...(await isolated('RS256')), kid: 'k1' }, given),
    ],
    [
      'a signature by another kind of key [invalid-sig-es256]',
      async (_p, given) => signedWith({ ...(await isolated('ES256')), kid: 'k1' }, given),
    ],
    ['rubbish', () => 'rubbish'],
    ['five parts, encrypted', () => `${part({ alg: 'RSA-OAEP', enc: 'A128GCM' })}.a.b.c.d`],
  ]
  it.each(tokens)('with %s is refused', async (_name, make) => {
    const { provider, site } = await start()
    provider.metadata = { id_token_signing_alg_values_supported: ['RS256', 'ES256', 'HS256', 'none'] }
    provider.idToken = (given) => make(provider, given)
    await expectRefused(site, [400, 'provider'])
    expect(site.errors).toEqual([])
  })

  it('of another answer is refused, even with a good signature', async () => {
    const { provider, site } = await start()
    const kept: string[] = []
    const make = provider.idToken
    provider.idToken = async (given) => {
      kept.push(await make(given))
      return kept[0]!
    }
    expect((await tried(site)).who).toBe('provider-anna')
    await expectRefused(site, [400, 'provider'])
    // nor is an answer good without one
    provider.tokens = ({ id_token: _, ...rest }) => rest
    await expectRefused(site, [400, 'provider'])
  })

  it.each([
    ['no kid and one key [kid-absent-single-jwks]', 'RS256'],
    ['ES256 and without at_hash [missing-athash]', 'ES256'],
  ] as const)('with %s is good', async (name, alg) => {
    const { provider, site } = await start()
    provider.claims = ({ at_hash: _, ...given }) => given
    if (alg === 'ES256') provider.keys.splice(0, 1, await signingKey('ES256', 'k1'))
    else provider.idToken = (given) => signedByHand({ alg }, JSON.stringify(given), provider.keys[0]!)
    expect((await tried(site)).who, name).toBe('provider-anna')
  })

  it.each([
    ['RS256', 'sha256'],
    ['PS384', 'sha384'],
    ['Ed25519', 'sha512'],
  ] as const)('by %s with the at_hash of the access token is good', async (alg, hash) => {
    const { provider, site } = await start()
    provider.metadata = { id_token_signing_alg_values_supported: [alg] }
    provider.keys.splice(0, 1, await signingKey(alg, 'k1'))
    provider.claims = (given) => ({ ...given, at_hash: halfHash('an-access-token', hash) })
    expect((await tried(site)).who).toBe('provider-anna')
    provider.claims = (given) => ({ ...given, at_hash: halfHash('another', hash) })
    await expectRefused(site, [400, 'provider'])
  })

  it('with a key that was rotated just before is good [signing-key-rotation-just-before-signing] [signing-key-rotation]', async () => {
    const { provider, site } = await start()
    expect((await tried(site)).who).toBe('provider-anna')
    provider.keys.splice(0, 1, await isolated('RS256'))
    expect((await tried(site)).who).toBe('provider-anna')
    expect(provider.asked('/jwks')).toBe(2)
  })

  it('with an unknown kid does not fetch the keys each time', async () => {
    const { provider, site } = await start()
    const unknown = await isolated('RS256')
    provider.idToken = (given) => signedWith(unknown, given)
    for (let count = 0; count < 4; count++) await expectRefused(site, [400, 'provider'])
    expect(provider.asked('/jwks')).toBeLessThanOrEqual(2)
  })

  // O-07
  it.each([
    ['5 minutes behind', -300, 'provider-anna'],
    ['20 seconds ahead', 20, 'provider-anna'],
    ['5 minutes ahead', 300, undefined],
  ])('of a provider whose clock is %s', async (_name, off, who) => {
    const { provider, site } = await start()
    provider.claims = (given) => ({ ...given, iat: seconds() + off, exp: seconds() + off + 600 })
    const records = recordsOf('provider-answer')
    const result = await tried(site)
    expect([result.who, result.page.status]).toEqual([who, who === undefined ? 400 : 303])
    expect(records.map(({ problem }) => problem.slice(0, 6))).toEqual(who === undefined ? ['clock:'] : [])
  })
})

describe('O-07 koa-with-auth:provider-answer', () => {
  it('reports what was wrong, and nothing that was sent', async () => {
    const { provider, site } = await start()
    const records = recordsOf('provider-answer')
    expect((await tried(site)).who).toBe('provider-anna')
    provider.claims = (given) => ({ ...given, azp: 'words of a stranger' })
    await tried(site)
    provider.answers['/token'] = json(400, { error: 'words of a stranger', error_description: 'words of a stranger' })
    await tried(site)
    await tried(site, (url) => url.searchParams.set('iss', 'https://stranger.example'))
    provider.answers['/token'] = failing.error
    await tried(site)
    const { issuer } = provider
    expect(records).toMatchObject([
      { issuer, failure: 'invalid', reason: 'provider' },
      { issuer, failure: 'raised', problem: 'an unknown error' },
      { issuer, failure: 'invalid', reason: 'provider' },
      { issuer, failure: 'unavailable', problem: 'answered 500' },
    ])
    expect(JSON.stringify(records)).not.toMatch(/stranger|secret|eyJ/)
  })
})

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('userinfo', () => {
  it.each([
    ['another sub [userinfo-invalid-sub]', { sub: 'bert' }],
    ['no sub', { email: 'anna@shop.example' }],
  ])('with %s is refused', async (_name, userinfo) => {
    const { provider, site } = await start({ userinfo: true })
    provider.userinfo = userinfo
    await expectRefused(site, [400, 'provider'])
  })

  it('that is signed is verified [userinfo-signed]', async () => {
    const { provider, site } = await start({ userinfo: true })
    const other = { ...(await isolated('RS256')), kid: 'k1' }
    provider.metadata = { userinfo_signing_alg_values_supported: ['RS256'] }
    const answer = (key: typeof other) => async (res: ServerResponse) => {
      const token = await signedWith(key, { iss: provider.issuer, aud: 'shop', sub: 'anna' })
      res.writeHead(200, { 'Content-Type': 'application/jwt' }).end(token)
    }
    provider.answers['/userinfo'] = answer(other)
    await expectRefused(site, [400, 'provider'])
    provider.answers['/userinfo'] = answer(provider.keys[0]!)
    expect((await tried(site)).who).toBe('provider-anna')
  })
})

// O-04
describe('an authorization response', () => {
  const bad: ReadonlyArray<readonly [string, string, (url: URL) => void]> = [
    ['iss of another issuer', 'provider', (url) => url.searchParams.set('iss', 'https://evil.example')],
    ['no iss, though it was promised', 'provider', (url) => url.searchParams.delete('iss')],
    ['two states', 'unknown', (url) => url.searchParams.append('state', 'x')],
    ['two codes', 'unknown', (url) => url.searchParams.append('code', 'x')],
    ['an empty state', 'unknown', (url) => url.searchParams.set('state', '')],
    ['no state', 'unknown', (url) => url.searchParams.delete('state')],
    ['no code', 'unknown', (url) => url.searchParams.delete('code')],
    ['a code and an error', 'unknown', (url) => url.searchParams.set('error', 'access_denied')],
    ['a long state', 'unknown', (url) => url.searchParams.set('state', 'a'.repeat(8192))],
    ['a long code', 'unknown', (url) => url.searchParams.set('code', 'a'.repeat(8192))],
    ['a state that is not base64url', 'unknown', (url) => url.searchParams.set('state', '%%%\u0000')],
  ]
  it.each(bad)('with %s is refused as %s', async (_name, reason, change) => {
    const { provider, site } = await start()
    const { page, reason: found, who } = await tried(site, change)
    expect([page.status, found, who, site.done, site.errors]).toEqual([400, reason, undefined, [], []])
    expect(provider.asked('/token')).toBe(0)
  })

  it('with iss from a provider that promised none is checked all the same', async () => {
    const { provider, site } = await start()
    provider.metadata = { authorization_response_iss_parameter_supported: undefined }
    const wrong = await tried(site, (url) => url.searchParams.set('iss', 'https://evil.example'))
    expect(reasonOf(wrong.page)).toEqual([400, 'provider'])
    expect((await tried(site, (url) => url.searchParams.delete('iss'))).who).toBe('provider-anna')
  })

  it('with a foreign state and an error uses nothing up', async () => {
    const { site, browser } = await start()
    const url = await site.toCallback(browser)
    await browser.send(`${site.origin}/sign-in/provider/callback?error=access_denied&state=x`, { headers: navigation })
    await browser.open(url)
    expect(await site.me(browser)).toBe('provider-anna')
  })

  // O-04, O-13
  it.each([
    ['access_denied', 400, 'declined'],
    ['user_cancelled_login', 400, 'declined'],
    ['user_cancelled_authorize', 400, 'declined'],
    ['login_required', 400, 'provider'],
    ['interaction_required', 400, 'provider'],
    ['invalid_scope', 400, 'provider'],
    // a pushed request that is too old
    ['invalid_request_uri', 400, 'provider'],
    ['<script>', 400, 'provider'],
    ['server_error', 503, undefined],
    ['temporarily_unavailable', 503, undefined],
  ])('with the error %s is %i %s, and shows nothing of what was sent', async (error, status, reason) => {
    const { provider, site } = await start()
    const records = recordsOf('provider-answer')
    const { page } = await tried(site, (url) => {
      url.searchParams.delete('code')
      url.searchParams.set('error', error)
      url.searchParams.set('error_description', 'words of a stranger')
    })
    expect(reasonOf(page)).toEqual([status, reason])
    expect(page.body).not.toMatch(/stranger|<script>/)
    expect([provider.asked('/token'), site.done, site.errors]).toEqual([0, [], []])
    // a sign-in that needs the user may begin again
    const failure = status === 503 ? 'unavailable' : error.endsWith('_required') ? 'absent' : 'invalid'
    expect(records).toMatchObject([{ event: 'refused', failure }])
  })

  // O-03
  it('of one provider at the callback of another is refused, and the other never sees the code', async () => {
    const [one, other] = [await wrongProvider(), await wrongProvider()]
    const site = await providerSite({
      kinds: (callback) => ({
        one: oidc(shopAt(one.issuer, callback('one'))),
        other: oidc(shopAt(other.issuer, callback('other'))),
      }),
    })
    const browser = newBrowser()
    const url = (await site.toCallback(browser, 'one')).replace('/one/', '/other/')
    expect(reasonOf(await browser.send(url, { headers: navigation }))).toEqual([400, 'unknown'])
    expect([one.asked('/token'), other.asked('/token')]).toEqual([0, 0])
  })
})

// O-05
describe('a provider that is down', () => {
  const keysFor = (way: string) => ({ timeout: limitFor(way), retry: 1 })
  const expectIn = async (site: ProviderSite) =>
    // on a busy machine an answer may take longer than the limit for one that never answers
    vi.waitFor(async () => expect((await tried(site)).who).toBe('provider-anna'), 120_000)

  it.each(Object.keys(failing) as ReadonlyArray<keyof typeof failing>)(
    'at the token endpoint (%s) is a 503',
    async (way) => {
      const { provider, site } = await start({ keys: keysFor(way) })
      // so that metadata and keys are known
      await expectIn(site)
      provider.answers['/token'] = failing[way]
      const page = await expectRefused(site, [503, undefined])
      expect(Number(page.headers.get('retry-after'))).toBeLessThanOrEqual(10)
      expect(page.body).not.toContain('secret')
      delete provider.answers['/token']
      await expectIn(site)
      expect(site.errors).toEqual([])
    },
  )

  it.each(['/discovery', '/jwks', '/userinfo'] as const)('at %s is a 503, and recovers', async (endpoint: Endpoint) => {
    for (const way of ['error', 'html', 'hanging', 'slow', 'cutOff'] as const) {
      const { provider, site } = await start({ keys: keysFor(way), userinfo: true })
      provider.answers[endpoint] = failing[way]
      const browser = newBrowser()
      const first = await browser.open(`${site.origin}/sign-in/provider`)
      expect([way, first.status], first.way.join(' ')).toEqual([way, 503])
      delete provider.answers[endpoint]
      await expectIn(site)
    }
  })

  it('serves its known keys and metadata while it is down', async () => {
    const { provider, site } = await start({ keys: { ...keysFor('hanging'), maxAge: 1 } })
    await expectIn(site)
    provider.answers['/jwks'] = failing.error
    provider.answers['/discovery'] = failing.hanging
    await expectIn(site)
    await expectIn(site)
  })

  it.each([undefined, null, 5])('with the jwks_uri %j is a 500 that says so', async (jwks_uri) => {
    const { provider, site } = await start()
    provider.metadata = { jwks_uri }
    await expectRefused(site, [500, undefined])
    expect(String(site.errors[0])).toContain('jwks_uri')
  })

  it('is asked for its metadata once by twenty visitors', async () => {
    const { provider, site } = await start()
    await Promise.all(Array.from({ length: 20 }, () => newBrowser().send(`${site.origin}/sign-in/provider`)))
    expect(provider.asked('/discovery')).toBe(1)
  })

  it('at its pushed request endpoint is a 503; a client that it refuses there is a 500', async () => {
    const { provider, site } = await start({ keys: keysFor('hanging'), pushed: true })
    await expectIn(site)
    provider.answers['/par'] = failing.error
    expect((await newBrowser().send(`${site.origin}/sign-in/provider`)).status).toBe(503)
    provider.answers['/par'] = failing.hanging
    expect((await newBrowser().send(`${site.origin}/sign-in/provider`)).status).toBe(503)
    provider.answers['/par'] = json(401, { error: 'invalid_client', error_description: 'secret words' })
    const page = await newBrowser().send(`${site.origin}/sign-in/provider`)
    expect([page.status, page.body]).toEqual([500, 'Internal Server Error'])
    expect(site.errors).toHaveLength(1)
    expect(String(site.errors[0])).toContain('invalid_client')
    delete provider.answers['/par']
    await expectIn(site)
    expect(provider.authorizationRequest().get('nonce')).toMatch(/^[\w-]{43}$/)
  })

  it.each([
    ['another issuer', () => 'https://evil.example'],
    ['the name of a container', () => 'http://keycloak:8080/realms/shop'],
    ['the same with a slash at the end', (issuer: string) => `${issuer}/`],
  ])('of %s is a 503, and a warning that says so, once [discovery-issuer-mismatch]', async (_name, named) => {
    const warn = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
    const { provider, site } = await start()
    provider.metadata = { issuer: named(provider.issuer) }
    for (let time = 0; time < 2; time++) {
      expect((await newBrowser().send(`${site.origin}/sign-in/provider`)).status).toBe(503)
    }
    const warnings = warn.mock.calls.filter(([, type]) => (type as unknown) === 'ProviderWarning').map(([text]) => text)
    warn.mockRestore()
    expect(warnings).toEqual([
      `oidc: ${provider.issuer} cannot be used: it names another issuer in its discovery document: "${named(provider.issuer)}". Sign-ins that need it are answered with 503`,
    ])
  })
})

describe('the token endpoint', () => {
  it.each([
    ['invalid_grant', 400, 400, 'late'],
    ['invalid_grant', 200, 400, 'late'],
    ['temporarily_unavailable', 400, 503, undefined],
  ])('that answers %s is %i', async (error, sent, status, reason) => {
    const { provider, site } = await start()
    provider.answers['/token'] = json(sent, { error })
    await expectRefused(site, [status, reason])
    // beside good tokens, too
    delete provider.answers['/token']
    provider.tokens = (answer) => ({ ...answer, error: 'invalid_grant' })
    await expectRefused(site, [400, 'late'])
  })

  // O-05
  it.each([
    ['invalid_client', {}],
    ['invalid_client', { 'WWW-Authenticate': 'Basic realm="a"' }],
    ['unauthorized_client', {}],
  ])('that answers %s is a 500, which is logged, without a detail for the user', async (error, headers) => {
    const { provider, site } = await start()
    provider.answers['/token'] = json(401, { error, error_description: 'about a secret' }, headers)
    const { page, who } = await tried(site)
    expect([page.status, page.body, who]).toEqual([500, 'Internal Server Error', undefined])
    expect(site.errors).toHaveLength(1)
    expect(JSON.stringify(site.errors)).not.toContain('secret')
  })

  it('gets the secret by Basic, form-encoded [client-secret-basic]', async () => {
    const { provider, site } = await start({ client: { id: 'shop', secret: 'a+b%&=: c' } })
    expect((await tried(site)).who).toBe('provider-anna')
    const [, given = ''] = (provider.tokenAuthorization() ?? '').split(' ')
    expect(Buffer.from(given, 'base64').toString()).toBe('shop:a%2Bb%25%26%3D%3A+c')
    expect(provider.tokenRequest().has('client_secret')).toBe(false)
  })

  it.each([
    [
      'client_secret_post',
      { id: 'shop', secret: SECRET, authentication: 'client_secret_post' },
      ['client_id', 'client_secret'],
    ],
    ['none', { id: 'shop' }, ['client_id']],
    [
      'a secret that is made for each request',
      { id: 'shop', secret: () => Promise.resolve('made'), authentication: 'client_secret_post' },
      ['client_id', 'client_secret'],
    ],
  ] as const)('gets %s', async (_name, client, members) => {
    const { provider, site } = await start({ client })
    expect((await tried(site)).who).toBe('provider-anna')
    expect(provider.tokenAuthorization()).toBeUndefined()
    expect([...provider.tokenRequest().keys()].filter((key) => key.startsWith('client_')).sort()).toEqual([...members])
  })

  it('gets an assertion that is signed by a private key', async () => {
    const { privateKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, [
      'sign',
      'verify',
    ])
    const { provider, site } = await start({ client: { id: 'shop', key: { key: privateKey, kid: 'mine' } } })
    expect((await tried(site)).who).toBe('provider-anna')
    expect(decodeJwt(provider.tokenRequest().get('client_assertion') ?? '')).toMatchObject({
      iss: 'shop',
      aud: provider.issuer,
    })
  })

  it('is not asked if the secret cannot be made, which is a 500', async () => {
    const { provider, site } = await start({
      client: { id: 'shop', secret: () => Promise.reject(new Error('no key')) },
    })
    const { page } = await tried(site)
    expect([page.status, provider.asked('/token')]).toEqual([500, 0])
    expect(String(site.errors[0])).toBe('Error: no key')
  })
})

// O-05, O-01
describe('the store of one-time ids', () => {
  it('that is down is a 503, the provider is never asked, and the same answer is good afterwards', async () => {
    const store = memoryStore()
    const isOfSession = (key: string) => /^koa-with-auth\/(?:session|stamp)\//.test(key)
    let isDown = true
    const insert: Store['insert'] = (key, ...rest) =>
      isOfSession(key) || !isDown ? store.insert(key, ...rest) : Promise.reject(new Error('down'))
    const { provider, site, browser } = await start({}, { store: { ...store, insert } })
    const url = await site.toCallback(browser)
    expect(reasonOf(await browser.send(url, { headers: navigation }))).toEqual([503, undefined])
    expect([provider.asked('/token'), site.done, await site.me(browser)]).toEqual([0, [], undefined])
    isDown = false
    await browser.send(url, { headers: navigation })
    expect(await site.me(browser)).toBe('provider-anna')
  })
})

// O-16
it('keeps no token: none is in a cookie, a session, an error, a body or a header', async () => {
  const { store, given } = noting(memoryStore())
  const { provider, site } = await start({}, { store })
  const { page, browser } = await tried(site)
  const me = await browser.send(`${site.origin}/me`)
  provider.claims = (given) => ({ ...given, nonce: 'wrong' })
  const failed = await tried(site)
  const seen = JSON.stringify([given, page.setCookie, [...page.headers], page.body, me.body, failed.page, site.errors])
  expect(seen).not.toMatch(/an-access-token|a-refresh-token|eyJ/)
  expect(seen).not.toContain(provider.tokenRequest().get('code_verifier'))
})

// T15
describe('max_age and acr_values', () => {
  it('are checked where they were asked', async () => {
    const { provider, site } = await start({ maxAge: 60_000, acrValues: ['gold'] })
    provider.claims = (given) => ({ ...given, auth_time: seconds() - 30, acr: 'gold', amr: ['otp'], sid: 's1' })
    expect((await tried(site)).who).toBe('provider-anna')
    expect(provider.authorizationRequest().get('max_age')).toBe('60')
    expect(site.done[0]?.proof).toMatchObject({ acr: 'gold', amr: ['otp'], sid: 's1' })
    for (const change of [
      { auth_time: seconds() - 3600, acr: 'gold' },
      { acr: 'gold' },
      { auth_time: seconds(), acr: 'tin' },
      { auth_time: seconds() },
    ]) {
      provider.claims = (given) => ({ ...given, ...change })
      await expectRefused(site, [400, 'provider'])
    }
  })
})
