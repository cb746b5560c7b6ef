/**
 * A polluted prototype adds no claim: only what a token, an answer of introspection or a document of a provider
 * contains itself counts. Code elsewhere in the process that merges `{"__proto__":{"aud":"..."}}` puts a field on every
 * object.
 */
import { createHmac } from 'node:crypto'
import { pipe } from 'fp-ts/lib/function.js'
import { requireScopes } from 'koa-with-auth'
import { httpIntrospection, httpJwt, mcpAuth, scopesOf, type HttpJwtOptions, type JwtClaims } from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { pollute } from '../support/runs/pollute.js'
import { API, identityProvider, seconds } from '../support/servers/identityProvider.js'
import { introspectionServer } from '../support/servers/introspectionServer.js'
import { INVALID, expectRefused, tokenSite } from '../support/sites/tokenSite.js'

const SECRET = Buffer.alloc(32, 7)
const ISSUER = 'https://login.example/'
const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
/** Removes fields that are `undefined`. */
const signed = (claims: object, header: object = {}): string => {
  const all = { iss: ISSUER, aud: API, exp: seconds() + 300, sub: 'anna', ...claims }
  const input = `${base64url({ alg: 'HS256', ...header })}.${base64url(all)}`
  return `${input}.${createHmac('sha256', SECRET).update(input).digest('base64url')}`
}
const jwt = (over: Partial<HttpJwtOptions<JwtClaims, JwtClaims>> = {}) =>
  httpJwt({ issuer: { issuer: ISSUER, secret: SECRET }, audience: API, ...over })

const rfc9068 = { iat: seconds(), jti: 'j1', client_id: 'app' }
const lacking: ReadonlyArray<{
  readonly what: string
  readonly fields: object
  readonly token: string
  readonly options?: Parameters<typeof jwt>[0]
}> = [
  { what: 'exp', fields: { exp: seconds() + 300 }, token: signed({ exp: undefined }) },
  { what: 'aud', fields: { aud: API }, token: signed({ aud: undefined }) },
  { what: 'iss', fields: { iss: ISSUER }, token: signed({ iss: undefined }) },
  { what: 'alg', fields: { alg: 'HS256' }, token: signed({}, { alg: undefined }) },
  { what: 'iat', fields: { iat: seconds() }, token: signed({}), options: { maxTokenAge: 60_000 } },
  { what: 'azp', fields: { azp: 'app' }, token: signed({}), options: { authorizedParties: ['app'] } },
  { what: 'client_id', fields: { client_id: 'app' }, token: signed({}), options: { authorizedParties: ['app'] } },
  { what: 'typ', fields: { typ: 'at+jwt' }, token: signed(rfc9068), options: { profile: 'rfc9068' } },
  {
    what: 'jti',
    fields: { jti: 'j1' },
    token: signed({ ...rfc9068, jti: undefined }, { typ: 'at+jwt' }),
    options: { profile: 'rfc9068' },
  },
]

describe('a token with a missing claim', () => {
  it.each(lacking)(
    'is refused without $what, although every object inherits it',
    async ({ fields, token, options }) => {
      const { get, status } = await tokenSite(jwt(options))
      expect(await status(signed(rfc9068, { typ: 'at+jwt' }))).toBe(200)
      pollute(fields)
      expectRefused(await get(token), INVALID)
    },
  )

  it('does not have a scope that every object inherits', async () => {
    const { outcome } = await tokenSite(pipe(jwt(), requireScopes(['write'], { granted: scopesOf })))
    expect(await outcome(signed({ scope: 'read write' }))).toEqual([200, 1])
    for (const fields of [{ scope: 'write' }, { scp: ['write'] }]) {
      pollute(fields)
      expect(await outcome(signed({}))).toEqual([403, 0])
    }
  })

  it('does not have a client or a time in its AuthInfo that every object inherits', async () => {
    const { get } = await tokenSite(jwt(), { handler: (ctx) => (ctx.body = mcpAuth(ctx)) })
    pollute({ client_id: 'admin', azp: 'admin', cid: 'admin', appid: 'admin', scope: 'write' })
    expect(JSON.parse((await get(signed({}))).text)).toMatchObject({ clientId: '', scopes: [] })
  })
})

describe('a valid token', () => {
  it.each([
    { cnf: { jkt: 'x' } },
    { nbf: seconds() + 3600 },
    { iat: 'x' },
    { azp: 7, client_id: 7, jti: 7, sub: 7 },
    { b64: false },
    { typ: 'dpop+jwt' },
  ])('passes, at the first request and from the cache, although every object inherits %o', async (fields) => {
    const { status } = await tokenSite(jwt())
    pollute(fields)
    const token = signed({})
    for (let time = 0; time < 2; time++) expect(await status(token)).toBe(200)
  })
})

describe('introspection', () => {
  it.each([
    { what: 'active', answer: { aud: API }, fields: { active: true } },
    { what: 'an audience', answer: { active: true }, fields: { aud: API } },
  ])('refuses an answer without $what, although every object inherits it', async ({ answer, fields }) => {
    const { options } = await introspectionServer(answer)
    const { get } = await tokenSite(httpIntrospection(options))
    pollute(fields)
    expectRefused(await get('t'), INVALID)
  })

  it('accepts the answer about a valid token, whatever every object inherits', async () => {
    const { options } = await introspectionServer({ active: true, aud: API, sub: 'anna' })
    const { status } = await tokenSite(httpIntrospection({ ...options, cache: undefined }))
    pollute({ exp: 1, nbf: 9e15, cnf: {}, token_type: 'DPoP' })
    for (let time = 0; time < 2; time++) expect(await status('t')).toBe(200)
  })

  it('does not ask an endpoint that the document of the provider does not name', async () => {
    const evil = await introspectionServer({ active: true, aud: API })
    const { issuer, options, state } = await introspectionServer()
    state.documents['/.well-known/oauth-authorization-server'] = { issuer }
    const { outcome } = await tokenSite(httpIntrospection({ ...options, endpoint: undefined, issuer }))
    pollute({ introspection_endpoint: evil.endpoint })
    expect(await outcome('t')).toEqual([503, 0])
    expect(evil.asked).toEqual([])
  })
})

it('the keys of a provider are not taken from what every object inherits', async () => {
  const provider = await identityProvider()
  const { issuer, asked, state } = await introspectionServer()
  state.documents['/keys'] = {}
  const { outcome } = await tokenSite(jwt({ issuer: { issuer: ISSUER, jwksUri: `${issuer}/keys` } }))
  const token = await provider.token({ iss: ISSUER })
  pollute({ keys: provider.keys.map(({ jwk }) => jwk) })
  expect([await outcome(token), asked.map(({ path }) => path)]).toEqual([[503, 0], ['/keys']])
})
