/**
 * The providers of the guide, each with its settings: a token of the claims that the provider documents is good, and what the same
 * provider issues for others is refused. The keys come by HTTP, in the form in which the provider publishes them.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import * as t from 'io-ts'
import { fromHeader, requireScopes, type Authenticator } from 'koa-with-auth'
import { httpJwt, type HttpJwtOptions, type JwtClaims } from 'koa-with-auth/jwt'
import type { JWTPayload } from 'jose'
import { expect, describe, it, vi } from 'vitest'
import { repository } from '../support/projects/typecheck.js'
import { seconds, signedWith, signingKey, type SigningKey } from '../support/servers/identityProvider.js'
import { listening } from '../support/servers/server.js'
import { tokenSite, type Guard } from '../support/sites/tokenSite.js'

const keysOf = new Map<string, Promise<SigningKey>>()
const keyOf = (alg: string) => {
  const key = keysOf.get(alg) ?? signingKey(alg, 'k1')
  keysOf.set(alg, key)
  return key
}

type Settings = Omit<HttpJwtOptions<JwtClaims, unknown>, 'issuer'>

interface Row {
  readonly alg?: string
  readonly iss: string
  /** The settings of the guide, beside the issuer. */
  readonly settings: Settings
  /** What the provider documents and a verifier could read, beside iss, iat and exp. */
  readonly claims: JWTPayload
  readonly header?: Readonly<Record<string, unknown>>
  /** The field of the request. Default: Authorization. */
  readonly field?: string
  /** The key set of the provider has this beside the keys. */
  readonly beside?: object
  readonly scope?: string
  /** What the same provider issues, and what is not for this API. */
  readonly others: Readonly<Record<string, JWTPayload>>
}

const TENANT = '9188040d-6c67-4c5b-b112-36a304b66dad'
const OWN = '6e74172b-be56-4843-9ff4-e66a39bb12e3'
const CLIENT = '7example23clientid'
const BACKEND = '/projects/1/global/backendServices/2'
const API = 'https://api.example'
const POOL = 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_abc'

const ofCognito: Settings = { audience: false, authorizedParties: [CLIENT] }

const rows: Readonly<Record<string, Row>> = {
  Auth0: {
    iss: 'https://my-domain.eu.auth0.com/',
    settings: { audience: API },
    claims: {
      sub: 'auth0|1',
      aud: [API, 'https://my-domain.eu.auth0.com/userinfo'],
      azp: CLIENT,
      scope: 'read:patients',
    },
    header: { typ: 'JWT' },
    scope: 'read:patients',
    others: {
      'an ID token': { aud: CLIENT, nonce: 'n', azp: undefined },
      'a token for userinfo alone': { aud: 'https://my-domain.eu.auth0.com/userinfo' },
      'the issuer without its slash': { iss: 'https://my-domain.eu.auth0.com' },
    },
  },
  'AWS load balancer': {
    iss: POOL,
    settings: { ...ofCognito, from: fromHeader('X-Amzn-Oidc-Accesstoken'), ambient: true },
    claims: { sub: 'b1', client_id: CLIENT, token_use: 'access', scope: 'openid', username: 'anna', version: 2 },
    field: 'x-amzn-oidc-accesstoken',
    others: { 'a token of another client of the pool': { client_id: 'other' } },
  },
  'Cloudflare Access': {
    iss: 'https://team.cloudflareaccess.com',
    settings: { audience: 'aud-tag', from: fromHeader('Cf-Access-Jwt-Assertion'), ambient: true },
    claims: {
      aud: ['aud-tag'],
      email: 'anna@example.com',
      nbf: seconds(),
      type: 'app',
      sub: '7335d417',
      country: 'US',
    },
    field: 'cf-access-jwt-assertion',
    beside: { public_cert: { kid: 'k1', cert: 'x' }, public_certs: [{ kid: 'k1', cert: 'x' }] },
    others: { 'a token of another application of the team': { aud: ['other-tag'] } },
  },
  Clerk: {
    iss: 'https://name.clerk.accounts.dev',
    settings: { audience: false, authorizedParties: ['https://your.site'] },
    claims: {
      azp: 'https://your.site',
      fva: [15, -1],
      jti: 'b7d4',
      nbf: seconds() - 10,
      sub: 'user_2',
      o: { id: 'org_2' },
    },
    header: { typ: 'JWT', cat: 'cl_B7d4PD111AAA' },
    others: {
      'a token of another site': { azp: 'https://evil.example' },
      'a token that names no site': { azp: undefined },
    },
  },
  Cognito: {
    iss: POOL,
    settings: ofCognito,
    claims: {
      sub: 'aaaaaaaa',
      client_id: CLIENT,
      token_use: 'access',
      scope: 'openid profile',
      auth_time: seconds(),
      jti: 'j',
    },
    scope: 'profile',
    others: {
      'an ID token': { client_id: undefined, aud: CLIENT, token_use: 'id', at_hash: 'x' },
      'a token of another client of the pool': { client_id: 'other' },
      'a token of another pool': { iss: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_xyz' },
    },
  },
  Entra: {
    iss: `https://login.microsoftonline.com/${TENANT}/v2.0`,
    settings: { audience: OWN },
    claims: {
      aud: OWN,
      nbf: seconds(),
      azp: '6e74172b-12e4',
      scp: 'access_as_user',
      sub: 'HKZpf',
      tid: TENANT,
      ver: '2.0',
    },
    header: { typ: 'JWT' },
    scope: 'access_as_user',
    others: {
      'a token for Graph': { aud: '00000003-0000-0000-c000-000000000000' },
      'a token of another tenant': { iss: 'https://login.microsoftonline.com/other/v2.0', tid: 'other' },
      'a token of version 1': { iss: `https://sts.windows.net/${TENANT}/`, ver: '1.0' },
    },
  },
  Firebase: {
    iss: 'https://securetoken.google.com/acme',
    settings: { audience: 'acme' },
    claims: { aud: 'acme', user_id: 'u1', sub: 'u1', firebase: { sign_in_provider: 'anonymous' } },
    header: { typ: 'JWT' },
    others: { 'a token of another project': { iss: 'https://securetoken.google.com/evil', aud: 'evil' } },
  },
  'GitHub Actions': {
    iss: 'https://token.actions.githubusercontent.com',
    settings: {
      audience: API,
      authenticate: (_request, claims) =>
        claims['repository'] === 'acme/shop' && claims['ref'] === 'refs/heads/main' && claims,
    },
    claims: { sub: 'repo:acme/shop:ref:refs/heads/main', aud: API, ref: 'refs/heads/main', repository: 'acme/shop' },
    header: { typ: 'JWT', x5t: 'k1' },
    others: {
      'a token of another repository': { repository: 'evil/shop', sub: 'repo:evil/shop:ref:refs/heads/main' },
      'a token of a pull request': { ref: 'refs/pull/1/merge' },
    },
  },
  'Google IAP': {
    alg: 'ES256',
    iss: 'https://cloud.google.com/iap',
    settings: { audience: BACKEND, from: fromHeader('x-goog-iap-jwt-assertion'), ambient: true },
    claims: {
      aud: BACKEND,
      azp: BACKEND,
      sub: 'accounts.google.com:11',
      google: { access_levels: ['accessPolicies/1'] },
    },
    field: 'x-goog-iap-jwt-assertion',
    others: { 'a token for another backend': { aud: '/projects/1/global/backendServices/3' } },
  },
  'Google accounts': {
    iss: 'https://accounts.google.com',
    settings: {
      audience: API,
      authenticate: (_request, claims) =>
        claims['email'] === 'push@acme.iam.gserviceaccount.com' && claims['email_verified'] === true && claims,
    },
    claims: { sub: '11', aud: API, azp: '11', email: 'push@acme.iam.gserviceaccount.com', email_verified: true },
    header: { typ: 'JWT' },
    others: {
      'a token of the service account of another project': { email: 'push@evil.iam.gserviceaccount.com' },
      'an address that was not verified': { email_verified: false },
    },
  },
  Keycloak: {
    iss: 'https://id.example/realms/shop',
    settings: {
      audience: false,
      authorizedParties: ['web'],
      claims: t.intersection([t.type({ typ: t.literal('Bearer') }), t.UnknownRecord]) as never,
    },
    claims: {
      aud: 'account',
      sub: 'f:1',
      typ: 'Bearer',
      azp: 'web',
      acr: '1',
      scope: 'email',
      realm_access: { roles: ['x'] },
    },
    header: { typ: 'JWT' },
    scope: 'email',
    others: {
      'an ID token of the same client': { aud: 'web', typ: 'ID', at_hash: 'x' },
      'a token of another client': { azp: 'admin-cli' },
      'a token of another realm': { iss: 'https://id.example/realms/master' },
    },
  },
  Okta: {
    iss: 'https://dev-1.okta.com/oauth2/default',
    settings: { audience: 'api://default' },
    claims: { aud: 'api://default', cid: 'nmdP1', uid: '00uj', scp: ['read:item'], auth_time: seconds(), sub: 'anna' },
    scope: 'read:item',
    others: {
      'an ID token': { aud: 'nmdP1fcyvdVO11AL7ECm', scp: undefined, nonce: 'n' },
      'a token of the organization': { iss: 'https://dev-1.okta.com', aud: 'https://dev-1.okta.com' },
    },
  },
  Supabase: {
    alg: 'ES256',
    iss: 'https://ref.supabase.co/auth/v1',
    settings: { audience: 'authenticated' },
    claims: { sub: 'u1', aud: 'authenticated', role: 'authenticated', session_id: 's1', is_anonymous: false },
    header: { typ: 'JWT' },
    others: { 'the public key of the project (anon)': { iss: 'supabase', role: 'anon' } },
  },
}

const served = async ({ alg = 'RS256', beside, settings, ...row }: Row) => {
  const key = await keyOf(alg)
  const { alg: _alg, ...jwk } = key.jwk
  // Entra publishes no `alg`
  const server = createServer((_req, res) => res.end(JSON.stringify({ keys: [jwk], ...beside })))
  const jwksUri = `http://127.0.0.1:${await listening(server)}/keys`
  const auth = httpJwt({ issuer: { issuer: row.iss, jwksUri }, ...settings }) as Authenticator<JwtClaims>
  const tokenOf = (over: JWTPayload = {}, by = key) => {
    const claims = { iss: row.iss, iat: seconds(), exp: seconds() + 300, ...row.claims, ...over }
    return signedWith(by, claims, row.header)
  }
  const send = async (token: string, headers: Record<string, string> = {}, method = 'GET', guard: Guard = auth) => {
    const { get } = await tokenSite(guard)
    const sent = row.field === undefined ? {} : { [row.field]: token }
    return get(row.field === undefined ? token : undefined, { ...sent, ...headers }, method)
  }
  return { auth, tokenOf, send }
}

describe.each(Object.entries(rows))('%s', (_name, row) => {
  it('its documented token is good, and its claims are the principal', async () => {
    const { tokenOf, send } = await served(row)
    const answer = await send(await tokenOf())
    expect([answer.status, answer.ran]).toEqual([200, 1])
    const { sub } = row.claims
    expect(JSON.parse(answer.text)).toMatchObject({ iss: row.iss, ...(sub !== undefined && { sub }) })
  })

  it.each(Object.entries(row.others))('%s is refused, though the provider has signed it', async (_what, claims) => {
    const { tokenOf, send } = await served(row)
    expect(await send(await tokenOf(claims))).toMatchObject({ status: 401, ran: 0 })
  })

  it('a token of another key, one that is over, and one without an end are refused', async () => {
    const { tokenOf, send } = await served(row)
    const foreign = await signingKey('ES256', 'k1')
    const tokens = [tokenOf({}, foreign), tokenOf({ exp: seconds() - 60 }), tokenOf({ exp: undefined } as never)]
    for (const token of await Promise.all(tokens)) expect(await send(token)).toMatchObject({ status: 401, ran: 0 })
  })

  it('its scopes are read, and what has no scope is a 403', async () => {
    const { auth, tokenOf, send } = await served(row)
    const token = await tokenOf()
    const statusOf = async (guard: Guard) => (await send(token, {}, 'GET', guard)).status
    expect(await statusOf(requireScopes(['never'])(auth))).toBe(403)
    if (row.scope !== undefined) expect(await statusOf(requireScopes([row.scope])(auth))).toBe(200)
  })

  it('in a field that a proxy writes for a cookie, a write of another site is refused; else it passes', async () => {
    const { tokenOf, send } = await served(row)
    const { status, ran } = await send(await tokenOf(), { 'sec-fetch-site': 'cross-site' }, 'POST')
    expect([status, ran]).toEqual(row.field === undefined ? [200, 1] : [403, 0])
  })
})

it('an issuer that signs for everybody is a warning, if nothing looks at the claims', async () => {
  const given = { issuer: 'https://token.actions.githubusercontent.com', audience: API }
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
  httpJwt({ ...given, authenticate: (_request, claims) => claims['repository'] === 'acme/shop' && claims })
  httpJwt({ ...given, claims: t.type({ repository: t.literal('acme/shop') }) })
  httpJwt({ ...given, issuer: 'https://login.example/' })
  expect(warned.mock.calls).toEqual([])
  httpJwt(given)
  httpJwt({ ...given, issuer: ['https://login.example/', 'https://accounts.google.com'] })
  expect(warned.mock.calls.map(([text]) => text)).toEqual([
    expect.stringContaining('https://token.actions.githubusercontent.com signs tokens for everybody'),
    expect.stringContaining('https://accounts.google.com signs tokens for everybody'),
  ])
  warned.mockRestore()
})

it('the guide has these providers, and no others', () => {
  const guide = readFileSync(`${repository}examples/guides/tokens.md`, 'utf8')
  const [, table = ''] = /## Settings of providers\n\n((?:\|.*\n)+)/.exec(guide) ?? []
  const names = table
    .trim()
    .split('\n')
    .slice(2)
    .map((line) => line.split('|')[1]?.trim())
  expect(names).toEqual(Object.keys(rows))
})
