/** What `oidc` and `oauth2` refuse when they are written. */
import {
  backChannelLogout,
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
    ['state', { parameters: { state: 'x' } }],
    ['nonce', { parameters: { nonce: 'x' } }],
    ['redirect_uri', { parameters: { redirect_uri: 'https://evil.example' } }],
    ['prompt', { parameters: { prompt: 'none' } }],
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
    ['write one of them', { discovery: 'https://inner.example/', metadata: endpoints }],
    ['token_endpoint', { metadata: { ...endpoints, token_endpoint: undefined } }],
    ['jwks_uri', { metadata: { ...endpoints, jwks_uri: undefined } }],
    ['userinfo_endpoint', { metadata: { ...endpoints, userinfo_endpoint: 'http://login.example/me' } }],
  ]
  it.each(wrong)('names what is wrong: %s', (name, change) => {
    const options = { ...good, ...change }
    expect(() => oidc(options)).toThrow(TypeError)
    expect(() => oidc(options)).toThrow(name)
  })

  it.each(['http://keycloak:8080/realms/a', 'http://auth.internal/a?p=b', 'http://10.0.0.7/a', 'http://[::1]:8080/a'])(
    'takes %s as the address of discovery',
    (discovery) => expect(oidc({ ...good, discovery }).issuer).toBe(good.issuer),
  )

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
