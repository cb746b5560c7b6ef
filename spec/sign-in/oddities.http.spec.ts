/** Providers with oddities of their own, over HTTP: other algorithms, no nonce, no PKCE, other places, tenants, and names that come once. */
import { SignJWT, type JWTPayload } from 'jose'
import { on } from 'koa-with-auth/events'
import type { OidcOptions, ProviderAnswer } from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it, onTestFinished } from 'vitest'
import { signedWith } from '../support/servers/identityProvider.js'
import { navigation } from '../support/servers/userAgent.js'
import { json, SECRET, wrongProvider, type WrongProvider } from '../support/servers/wrongProvider.js'
import { newBrowser, siteOf, type ProviderSite } from '../support/sites/providerSite.js'
import { plainSite, tried as triedAt, wrongSite } from '../support/sites/wrongProviderSite.js'

const macOf = (alg: string, secret: string) => (claims: JWTPayload) =>
  new SignJWT(claims).setProtectedHeader({ alg }).sign(Buffer.from(secret))

/** Signs in, and says who that is, or the status and the reason. */
const tried = async (site: ProviderSite): Promise<string> => {
  const { page, reason = '', who } = await triedAt(site)
  return who ?? `${page.status} ${reason}`.trim()
}

const started = async (over: Partial<OidcOptions> = {}, change: (provider: WrongProvider) => void = () => {}) => {
  const made = await wrongSite(over)
  change(made.provider)
  return made
}

const problems = (): string[] => {
  const found: string[] = []
  onTestFinished(on('provider-answer', ({ problem }) => found.push(problem)))
  return found
}

// O-07
describe('ID tokens by HS256', () => {
  const hs256 = { idTokenAlgorithm: 'HS256' } as const

  it.each([
    ['the secret of the client', macOf('HS256', SECRET), 'provider-anna'],
    ['another secret', macOf('HS256', `${SECRET}.`), '400 provider'],
    ['the secret, by HS512', macOf('HS512', SECRET), '400 provider'],
  ])('are signed by %s', async (_name, idToken, expected) => {
    const { provider, site } = await started({ ...hs256, userinfo: true }, (one) => Object.assign(one, { idToken }))
    provider.metadata = { jwks_uri: undefined, id_token_signing_alg_values_supported: ['RS256'] }
    expect(await tried(site)).toBe(expected)
    expect(provider.asked('/jwks')).toBe(0)
  })

  it('may not be by a key instead, and userinfo may not be signed', async () => {
    const { provider, site } = await started(hs256)
    expect(await tried(site)).toBe('400 provider')
    const found = problems()
    const signed = await started({ ...hs256, userinfo: true }, (one) => (one.idToken = macOf('HS256', SECRET)))
    signed.provider.answers['/userinfo'] = async (res) =>
      res
        .writeHead(200, { 'Content-Type': 'application/jwt' })
        .end(await signedWith(provider.keys[0]!, { iss: signed.provider.issuer, sub: 'anna', aud: 'shop' }))
    expect([await tried(signed.site), found]).toEqual(['400 provider', ['signed userinfo']])
  })

  it('are refused unless that is written, whatever the metadata say', async () => {
    const { provider, site } = await started({}, (one) => (one.idToken = macOf('HS256', SECRET)))
    provider.metadata = { id_token_signing_alg_values_supported: ['HS256'] }
    const found = problems()
    expect([await tried(site), found]).toEqual(['400 provider', ['algorithm: HS256']])
  })
})

it('one algorithm can be demanded', async () => {
  expect(await tried((await started({ idTokenAlgorithm: 'RS256' })).site)).toBe('provider-anna')
  expect(await tried((await started({ idTokenAlgorithm: 'ES256' })).site)).toBe('400 provider')
})

describe('nonce: false', () => {
  it('takes ID tokens without a nonce, and asks for none', async () => {
    const { provider, site } = await started({ nonce: false })
    expect(await tried(site)).toBe('provider-anna')
    expect([...provider.authorizationRequest().keys()]).not.toContain('nonce')
    expect(provider.tokenRequest().has('code_verifier')).toBe(true)
    provider.claims = (claims) => ({ ...claims, nonce: 'of another' })
    expect(await tried(site)).toBe('400 provider')
  })
})

const answer = { access_token: 'a', token_type: 'bearer' }

// RFC 6749 §5.1
describe('a token endpoint may answer', () => {
  it.each([
    ['no token_type', { access_token: 'a' }],
    ['an empty token_type', { ...answer, token_type: '' }],
    ['a token_type in capitals', { ...answer, token_type: 'BEARER' }],
    ['a list of scopes', { ...answer, scope: ['openid', 'email'] }],
    ['null for what there is not', { ...answer, scope: null, refresh_token: null, expires_in: null }],
    ['an empty string for what there is not', { ...answer, scope: '', refresh_token: '', expires_in: '' }],
    ['a lifetime in a string', { ...answer, expires_in: '3600' }],
    ['a lifetime in words', { ...answer, expires_in: 'never' }],
  ])('%s', async (_name, body) => {
    const { provider, site } = await started()
    provider.tokens = ({ id_token: token }) => ({ ...body, id_token: token })
    expect(await tried(site)).toBe('provider-anna')
    const plain = await plainSite()
    plain.provider.answers['/token'] = json(201, body)
    expect(await tried(plain.site)).toBe('plain-7')
  })
})

it.each([
  ['text/plain', 'access_token=a&expires=5183999'],
  ['application/json', `\ufeff${JSON.stringify(answer)}`],
])('a token endpoint without OpenID Connect may answer, as %s, %s', async (type, body) => {
  const { provider, site } = await plainSite()
  provider.answers['/token'] = (res) => res.writeHead(200, { 'Content-Type': type }).end(body)
  expect(await tried(site)).toBe('plain-7')
})

it.each([
  [undefined, true],
  [false, false],
])('oauth2({ pkce: %s }) sends a code_verifier: %s', async (pkce, isSent) => {
  const { provider, site } = await plainSite({ pkce })
  expect(await tried(site)).toBe('plain-7')
  const sent = [provider.authorizationRequest().has('code_challenge'), provider.tokenRequest().has('code_verifier')]
  expect(sent).toEqual([isSent, isSent])
})

describe('the record of a wrong answer names what was wrong', () => {
  const wrong: ReadonlyArray<readonly [string, (provider: WrongProvider) => unknown]> = [
    ['nonce', (one) => (one.claims = ({ nonce: _, ...claims }) => claims)],
    ['aud', (one) => (one.claims = (claims) => ({ ...claims, aud: 'another' }))],
    ['iss', (one) => (one.claims = (claims) => ({ ...claims, iss: 'https://stranger.example' }))],
    ['sub', (one) => (one.claims = ({ sub: _, ...claims }) => claims)],
    ['clock: exp', (one) => (one.claims = (claims) => ({ ...claims, exp: 1 }))],
    ['algorithm: HS256', (one) => (one.idToken = macOf('HS256', SECRET))],
    ['id_token', (one) => (one.tokens = ({ id_token: _, ...rest }) => rest)],
    ['scope', (one) => (one.tokens = (tokens) => ({ ...tokens, scope: 7 }))],
    ['token_type', (one) => (one.tokens = (tokens) => ({ ...tokens, token_type: 'stranger' }))],
  ]
  it.each(wrong)('%s', async (problem, change) => {
    const { site } = await started({}, change)
    const found = problems()
    expect([await tried(site), found]).toEqual(['400 provider', [problem]])
  })
})

describe('the name that Apple posts once', () => {
  const user = { name: { firstName: 'Anna', lastName: 'Berg' }, email: 'anna@shop.example' }

  /** Posts the answer with further fields, as another site does, and follows. */
  const posted = async (fields: Readonly<Record<string, string>>) => {
    const { site } = await started({ responseMode: 'form_post' })
    const browser = newBrowser()
    const url = new URL(await site.toCallback(browser))
    const body = new URLSearchParams({ ...Object.fromEntries(url.searchParams), ...fields }).toString()
    const { location = '' } = await newBrowser().send(url.origin + url.pathname, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: 'https://appleid.apple.com' },
      body,
    })
    await browser.send(location, { headers: navigation })
    return { location, who: await site.me(browser), answer: site.answers[0] as ProviderAnswer }
  }

  it('is given to the hook, as what is not signed, and is in no address', async () => {
    const { location, who, answer } = await posted({ user: JSON.stringify(user) })
    expect([who, answer.unsigned]).toEqual(['provider-anna', { user }])
    expect(decodeURIComponent(location)).not.toMatch(/Berg|Anna/)
    expect(location).toContain('user=')
  })

  it.each([
    ['too long', JSON.stringify({ name: 'a'.repeat(2000) })],
    ['no JSON object', '["Anna"]'],
  ])('is left out if it is %s', async (_name, text) => {
    const { who, answer } = await posted({ user: text })
    expect([who, answer.unsigned]).toEqual(['provider-anna', undefined])
  })

  it('is not taken from an address that somebody else wrote', async () => {
    const { site } = await started({ responseMode: 'form_post' })
    const browser = newBrowser()
    await browser.send(`${await site.toCallback(browser)}&user=${JSON.stringify(user)}`, { headers: navigation })
    expect(site.answers).toMatchObject([{ unsigned: undefined }])
  })
})

describe('a provider that is reached at another address', () => {
  const issuer = 'https://login.example/realms/shop'
  const inner = async (over: (provider: WrongProvider) => Partial<OidcOptions>) => {
    const provider = await wrongProvider()
    provider.metadata = { issuer }
    provider.claims = (claims) => ({ ...claims, iss: issuer })
    provider.response = (parameters) => parameters.set('iss', issuer)
    return { provider, site: await siteOf(issuer, over(provider)) }
  }
  const discovered = ({ issuer: origin }: WrongProvider) => ({
    discovery: `${origin}/inner/.well-known/openid-configuration?p=sign-in`,
  })
  const written = ({ issuer: origin }: WrongProvider) => ({
    metadata: {
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      jwks_uri: `${origin}/jwks`,
    },
  })

  it.each([
    ['discovery', discovered, 1],
    ['metadata', written, 0],
  ])('is found by %s, and is who it says', async (_name, over, asked) => {
    const { provider, site } = await inner(over)
    expect([await tried(site), site.done[0]?.proof.issuer]).toEqual(['provider-anna', issuer])
    expect(provider.asked('/discovery')).toBe(asked)
    provider.claims = (claims) => ({ ...claims, iss: provider.issuer })
    expect(await tried(site)).toBe('400 provider')
  })

  it('has a document that names exactly the issuer', async () => {
    const { provider, site } = await inner(discovered)
    provider.metadata = { issuer: provider.issuer }
    expect((await newBrowser().send(`${site.origin}/sign-in/provider`)).status).toBe(503)
  })
})

describe.each(['organizations', 'common'])('the tenants of %s', (name) => {
  const [ours, other] = ['0d9ae2ef-3c0e-4f9e-9d1f-2d0c5e4f7a10', '9188040d-6c67-4c5b-b112-36a304b66dad']

  const entra = async () => {
    const provider = await wrongProvider()
    const issuerOf = (tenant: string) => `${provider.issuer}/${tenant}/v2.0`
    provider.metadata = { issuer: issuerOf('{tenantid}'), authorization_response_iss_parameter_supported: undefined }
    provider.response = (parameters) => parameters.delete('iss')
    provider.claims = (claims) => ({ ...claims, iss: issuerOf(ours), tid: ours })
    return { provider, issuerOf, site: await siteOf(issuerOf(name)) }
  }

  it('have an issuer each, which the proof names', async () => {
    const { provider, issuerOf, site } = await entra()
    expect([await tried(site), site.done[0]?.proof.issuer]).toEqual(['provider-anna', issuerOf(ours)])
    provider.response = (parameters) => parameters.set('iss', issuerOf(ours))
    expect(await tried(site)).toBe('provider-anna')
    provider.response = (parameters) => parameters.set('iss', issuerOf(other))
    expect(await tried(site)).toBe('400 provider')
  })

  it.each([
    ['of another tenant than its tid', (of: (tenant: string) => string) => ({ iss: of(other), tid: ours })],
    ['without a tid', (of: (tenant: string) => string) => ({ iss: of(ours), tid: undefined })],
    ['whose tid is no id of a tenant', (of: (tenant: string) => string) => ({ iss: of('a'), tid: 'a' })],
    ['of the template', (of: (tenant: string) => string) => ({ iss: of('{tenantid}'), tid: '{tenantid}' })],
    ['of another host', () => ({ iss: `https://evil.example/${ours}/v2.0`, tid: ours })],
  ])('are refused by a token %s', async (_name, change) => {
    const { provider, issuerOf, site } = await entra()
    provider.claims = (claims) => ({ ...claims, ...change(issuerOf) })
    expect(await tried(site)).toBe('400 provider')
  })

  it('are refused by a key that signs for another tenant alone', async () => {
    const { provider, issuerOf, site } = await entra()
    const { jwk } = provider.keys[0]!
    const keysOf = (issuer: string) => json(200, { keys: [{ ...jwk, issuer }] })
    provider.answers['/jwks'] = keysOf(issuerOf(other))
    expect(await tried(site)).toBe('400 provider')
    const { provider: good, issuerOf: goodOf, site: next } = await entra()
    good.answers['/jwks'] = json(200, { keys: [{ ...jwk, issuer: goodOf('{tenantid}') }] })
    expect(await tried(next)).toBe('provider-anna')
  })
})

it('an issuer that is one tenant is not the issuer of all', async () => {
  const { provider, site } = await started()
  provider.metadata = { issuer: `${provider.issuer}/{tenantid}` }
  expect((await newBrowser().send(`${site.origin}/sign-in/provider`)).status).toBe(503)
})
