/** What `oidc` and `oauth2` refuse when they are written. */
import { httpIntrospection, httpJwt } from 'koa-with-auth/jwt'
import {
  backChannelLogout,
  exchange,
  rpLogout,
  oauth2,
  oidc,
  providerAnswer,
  afterRpLogout,
  type OAuth2Options,
  type OidcOptions,
} from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it } from 'vitest'

const good: OidcOptions = {
  issuer: 'https://provider.example',
  client: { id: 'shop', secret: 'secret' },
  callback: '/sign-in/callback',
}

const endpoints = {
  authorization_endpoint: 'https://provider.example/authorize',
  token_endpoint: 'http://keycloak:8080/token',
  jwks_uri: 'http://10.0.0.7/jwks',
}

const plain: OAuth2Options = {
  name: 'plain',
  authorize: 'https://plain.example/authorize',
  token: 'https://plain.example/token',
  client: { id: 'shop', secret: 'secret' },
  callback: '/sign-in/callback',
  subject: () => 1,
}

describe('oidc', () => {
  const wrong: ReadonlyArray<readonly [string, object]> = [
    ['issuer', { issuer: 'http://provider.example' }],
    ['issuer', { issuer: 'provider' }],
    ['issuer', { issuer: '' }],
    ['client', { client: undefined }],
    ['client', { client: { id: '' } }],
    ['secret', { client: { id: 'shop', secret: '' } }],
    ['client_secret_post', { client: { id: 'shop', authentication: 'client_secret_post' } }],
    ['none', { client: { id: 'shop', secret: 'secret', authentication: 'none' } }],
    ['private_key_jwt', { client: { id: 'shop', authentication: 'private_key_jwt' } }],
    ['key', { client: { id: 'shop', key: 'pem' } }],
    ['callback', { callback: 'https://shop.example/callback' }],
    ['callback', { callback: '//evil.example' }],
    ['callback', { callback: '/callback?x=1' }],
    ['callback', { callback: '' }],
    ['callback', { callback: undefined }],
    ['openid', { scope: ['email'] }],
    ['scope', { scope: 'openid' }],
    ['scope', { scope: ['openid email'] }],
    ['prompt', { prompt: 'never' }],
    ['maxAge', { maxAge: -1 }],
    ['acrValues', { acrValues: [] }],
    ['state belongs to the protocol; leave it out', { parameters: { state: 'x' } }],
    ['write the option loginHint of oidc', { parameters: { login_hint: 'x' } }],
    ['nonce', { parameters: { nonce: 'x' } }],
    ['redirect_uri', { parameters: { redirect_uri: 'https://evil.example' } }],
    ['write the option prompt of oidc', { parameters: { prompt: 'none' } }],
    ['lifetime', { lifetime: 0 }],
    ['responseMode', { responseMode: 'fragment' }],
    ['timeout', { keys: { timeout: 0 } }],
    ['email', { email: true }],
    ['32', { idTokenAlgorithm: 'HS256' }],
    ['secret', { idTokenAlgorithm: 'HS256', client: { id: 'shop', secret: () => 'a'.repeat(32) } }],
    ['idTokenAlgorithm', { idTokenAlgorithm: 'none' }],
    ['nonce', { nonce: 'no' }],
    ['pkce', { nonce: false, pkce: false }],
    ['discovery', { discovery: 'http://login.example/openid-configuration' }],
    ['discovery', { discovery: 'http://172.32.0.1/openid-configuration' }],
    ['write discovery or metadata', { discovery: 'https://inner.example/', metadata: endpoints }],
    ['token_endpoint', { metadata: { ...endpoints, token_endpoint: undefined } }],
    ['jwks_uri', { metadata: { ...endpoints, jwks_uri: undefined } }],
    ['userinfo_endpoint', { metadata: { ...endpoints, userinfo_endpoint: 'http://login.example/me' } }],
  ]
  it.each(wrong)('names what is wrong: %s', (name, change) => {
    const options = { ...good, ...change }
    expect(() => oidc(options)).toThrow(TypeError)
    expect(() => oidc(options)).toThrow(name)
  })

  const inside = [
    'keycloak:8080',
    'key_cloak',
    'auth.internal',
    'keycloak.login.svc',
    'keycloak.login.svc.cluster.local',
  ]
  const addressesInside = ['10.0.0.7', '172.20.1.2', '100.64.0.3', '[::1]:8080', '[fd12:3456::1]']
  const [client, tokenEndpoint] = [{ id: 'shop', secret: 's' }, (host: string) => `http://${host}/token`]

  it.each([...inside, ...addressesInside])('%s is in a private network, for each address that is asked', (host) => {
    expect(oidc({ ...good, discovery: `http://${host}/a?p=b` }).issuer).toBe(good.issuer)
    oauth2({ ...plain, token: tokenEndpoint(host) })
    exchange({ tokenEndpoint: tokenEndpoint(host), client, audience: 'a' })
    httpJwt({ issuer: { issuer: 'x', jwksUri: `http://${host}/keys` }, audience: 'a' })
    httpIntrospection({ endpoint: `http://${host}/introspect`, client, audience: 'a' })
  })

  it.each([
    'login.example',
    '172.32.0.1',
    '11.0.0.7',
    '100.128.0.1',
    '[fe00::1]',
    'svc.example',
    'a@keycloak',
    'keycloak/#a',
  ])('%s is not', (host) => {
    expect(() => oidc({ ...good, discovery: `http://${host}` })).toThrow(/private network|user name|fragment/)
    expect(() => exchange({ tokenEndpoint: `http://${host}`, client, audience: 'a' })).toThrow(TypeError)
  })

  it('takes metadata whose inner addresses are in a private network', () => {
    expect(oidc({ ...good, metadata: endpoints }).issuer).toBe(good.issuer)
  })

  it('names no secret in a message', () => {
    const secret = { id: 'shop', secret: 'a-very-secret-thing', authentication: 'none' } as const
    expect(() => oidc({ ...good, client: secret })).toThrow(/^(?!.*very-secret)/)
  })

  it('makes kinds of different names for different callbacks', () => {
    const names = [good, { ...good, callback: '/other' }, { ...good, issuer: 'https://other.example' }].map(
      (one) => oidc(one).name,
    )
    expect(new Set(names).size).toBe(3)
  })
})

describe('oauth2', () => {
  it.each([
    ['name', { name: '' }],
    ['authorize', { authorize: 'http://plain.example' }],
    ['token', { token: 'ftp://plain.example' }],
    ['callback', { callback: undefined }],
    ['subject', { subject: undefined }],
    ['scope', { scope: [''] }],
    ['issuer', { issuer: 'plain' }],
    ['pkce', { pkce: 0 }],
    ['secret', { pkce: false, client: { id: 'shop' } }],
  ])('names what is wrong: %s', (name, change) => {
    expect(() => oauth2({ ...plain, ...change } as OAuth2Options)).toThrow(TypeError)
    expect(() => oauth2({ ...plain, ...change } as OAuth2Options)).toThrow(name)
  })
})

it('rpLogout and backChannelLogout take what oidc returned', () => {
  const kind = oidc(good)
  const callback = '/signed-out'
  for (const make of [rpLogout, afterRpLogout]) {
    expect(() => make({ ...kind }, { callback })).toThrow(TypeError)
    expect(() => make(kind, { callback: '//evil.example' })).toThrow('callback')
    // @ts-expect-error the callback is missing
    expect(() => make(kind, {})).toThrow('callback')
    expect(make(kind, { callback })).toBeTypeOf('function')
  }
  // @ts-expect-error the hook is missing
  expect(() => backChannelLogout(kind, {})).toThrow('user')
})

it('a proof that was kept carries no answer', () => {
  expect(providerAnswer({ method: 'oidc', at: 0, issuer: 'https://provider.example', subject: 'anna' })).toBeUndefined()
})
