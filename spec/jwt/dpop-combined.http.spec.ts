/** Tokens that are bound to a key, in everything that is made of authenticators, and from a real provider to a real client. */
import Router from '@koa/router'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import {
  allOf,
  also,
  apiKeyHeader,
  guardApp,
  requireScopes,
  throttled,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import {
  httpJwt,
  insufficientScope,
  mcpAuth,
  protectedResource,
  scopesOf,
  type DpopOptions,
  type JwtClaims,
  httpIntrospection,
} from 'koa-with-auth/jwt'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { guardUpgrade } from 'koa-with-auth/upgrades'
import {
  allowInsecureRequests,
  ClientSecretBasic,
  clientCredentialsGrant,
  discovery,
  fetchProtectedResource,
  getDPoPHandle,
  randomDPoPKeyPair,
} from 'openid-client'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it, onTestFinished } from 'vitest'
import { authorizationServer, CLIENT, RESOURCE_SERVER } from '../support/servers/authorizationServer.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { dpopClient, ORIGIN, withProof } from '../support/servers/dpopClient.js'
import { API, identityProvider } from '../support/servers/identityProvider.js'
import { listen } from '../support/servers/server.js'
import { tokenSite, INVALID, expectRefused } from '../support/sites/tokenSite.js'
import { listenWithUpgrades, sendUpgrade } from '../support/servers/upgradeServer.js'

const parts = async (over: Partial<DpopOptions> = {}) => {
  let uses = 0
  const { use } = oneTimeIds(memoryStore())
  const spent = { use: (id: string, lifetime: number) => (uses++, use(id, lifetime)) }
  const dpop = { spent, origin: ORIGIN, ...over }
  const provider = await identityProvider()
  const jwt = httpJwt({ issuer: provider.issuer, audience: API, bound: { dpop } })
  const client = await dpopClient()
  const token = await client.token(provider, { scope: 'read' })
  const sent = async () => withProof(token, await client.proof(token))
  return { provider, jwt, dpop, client, token, sent, uses: () => uses }
}

const scoped = (jwt: Authenticator<JwtClaims>, scope: string) => requireScopes([scope], { granted: scopesOf })(jwt)

describe('a token that is bound to a key', () => {
  it('is an alternative of a list, before and after other kinds', async () => {
    const { jwt, sent, token, client } = await parts()
    const key = apiKeyHeader({ authenticate: (_request, key) => key === 'k1' && { client: 'Acme' } })
    for (const list of [
      [jwt, key],
      [key, jwt],
    ]) {
      const { status } = await tokenSite(list)
      const bad = withProof(token, await client.proof(token, { claims: { htm: 'POST' } }))
      for (const [headers, expected] of [
        [await sent(), 200],
        [{ key: 'k1' }, 200],
        [bad, 401],
        [{ ...bad, key: 'k1' }, 200],
      ] as const) {
        expect(await status(undefined, headers)).toBe(expected)
      }
    }
  })

  it('lets in by one proof, however many members and levels ask about it, and uses its jti once', async () => {
    const { jwt, sent, uses } = await parts()
    const both = allOf([jwt, scoped(jwt, 'read')])
    const { status } = await tokenSite([scoped(jwt, 'admin'), both])
    expect(await status(undefined, await sent())).toBe(200)
    expect(uses()).toBe(1)

    const router = withAuth(also(jwt))(new Router())
    router.get('/me', withAuth(also(scoped(jwt, 'read'))), (ctx) => {
      ctx.body = 'in'
    })
    const app = guardApp(jwt)(new Koa())
    app.use(router.routes())
    const { url } = await listen(app)
    const twice = await sent()
    expect((await fetch(`${url}/me`, { headers: twice })).status).toBe(200)
    expect(uses()).toBe(2)
    expect((await fetch(`${url}/me`, { headers: twice })).status).toBe(401)
  })

  it('is spent in each store, if two kinds have two', async () => {
    const [one, two] = [await parts(), await parts()]
    const other = httpJwt({ issuer: one.provider.issuer, audience: API, bound: { dpop: two.dpop } })
    const { status } = await tokenSite(allOf([one.jwt, other]))
    expect(await status(undefined, await one.sent())).toBe(200)
    expect([one.uses(), two.uses()]).toEqual([1, 1])
  })

  it('without the scope is a 403 that names it for both schemes', async () => {
    const { jwt, sent } = await parts()
    const { get } = await tokenSite(scoped(jwt, 'write'))
    const refused = await get(undefined, await sent())
    expect([refused.status, refused.ran]).toEqual([403, 0])
    expect(refused.challenge).toMatch(/^Bearer .*error="insufficient_scope", scope="write", DPoP .*scope="write"$/)
    const bare = await get()
    expect(bare.challenge).toMatch(/^Bearer realm="api", scope="write", DPoP .*scope="write"$/)
  })

  it('is refused with the scopes in the challenge of its proof', async () => {
    const { jwt, client, token } = await parts()
    const { get } = await tokenSite(scoped(jwt, 'write'))
    const refused = await get(undefined, withProof(token, await client.proof(token, { claims: { ath: 'x' } })))
    expect(refused.challenge).toMatch(/DPoP .*error="invalid_dpop_proof", error_description="[^"]+", scope="write"$/)
  })

  it('is a guess if its proof is bad, and none if only the nonce is missing', async () => {
    const { jwt, token, client, sent } = await parts({ nonce: { keys: ['k'.repeat(32)] } })
    const limiter = new RateLimiterMemory({ points: 2, duration: 60 })
    const { status } = await tokenSite(throttled({ limiter })(jwt))
    for (let round = 0; round < 5; round++) expect(await status(undefined, await sent())).toBe(401)
    const guess = async () => status(undefined, withProof(token, await client.proof(token, { claims: { htm: 'PUT' } })))
    expect([await guess(), await guess(), await guess()]).toEqual([401, 401, 429])
  })

  it('is known to mcpAuth, and a handler asks for more scopes under both schemes', async () => {
    const { provider, dpop, client } = await parts()
    const resource = protectedResource({
      resource: API,
      authorizationServers: [provider.issuer],
      origins: ['https://app.example'],
    })
    const nonce = { keys: ['k'.repeat(32)] } as const
    const jwt = httpJwt({ issuer: provider.issuer, protectedResource: resource, bound: { dpop: { ...dpop, nonce } } })
    const { get } = await tokenSite(jwt, {
      handler: (ctx) => {
        if (ctx.get('X-Write') !== '') return insufficientScope(ctx, ['write'])
        ctx.body = mcpAuth(ctx)
      },
    })
    const page = { Origin: 'https://app.example' }
    const first = await get(undefined, page)
    expect(first.challenge).toContain(`DPoP realm="api", resource_metadata="${resource.metadataUrl}", algs=`)
    // a page of another origin must be able to read the nonce
    expect(first.headers.get('access-control-expose-headers')).toBe('WWW-Authenticate, DPoP-Nonce')
    const token = await client.token(provider, { client_id: 'app' })
    const send = async (headers: Readonly<Record<string, string>>) => {
      const claims = { nonce: first.headers.get('dpop-nonce') }
      return get(undefined, { ...withProof(token, await client.proof(token, { claims })), ...page, ...headers })
    }
    expect(JSON.parse((await send({})).text)).toMatchObject({ token, clientId: 'app' })
    const forbidden = await send({ 'X-Write': '1' })
    expect(forbidden.status).toBe(403)
    expect(forbidden.challenge).toMatch(/^Bearer .*scope="write", DPoP .*scope="write"$/)
    const stale = await get(undefined, { ...withProof(token, await client.proof(token)), ...page })
    expect(stale.challenge).toContain(`resource_metadata="${resource.metadataUrl}"`)
    expect(stale.challenge).toContain('error="use_dpop_nonce"')
  })

  it('opens a WebSocket once, with a proof for GET and the path of the upgrade', async () => {
    const { jwt, token, client, sent } = await parts()
    const guard = guardUpgrade(new Koa(), jwt)
    const { port, admitted, close } = await listenWithUpgrades(new Koa(), () => guard)
    onTestFinished(close)
    const lines = Object.entries(await sent()).map((one) => one.join(': '))
    expect((await sendUpgrade(port, 'GET /me?a=b', lines)).status).toBe(101)
    expect((await sendUpgrade(port, 'GET /me', lines)).status).toBe(401)
    const bearer = await sendUpgrade(port, 'GET /me', [`Authorization: Bearer ${token}`])
    expect([bearer.status, admitted.length]).toEqual([401, 1])
    const elsewhere = Object.entries(withProof(token, await client.proof(token))).map((one) => one.join(': '))
    expect((await sendUpgrade(port, 'GET /live', elsewhere)).status).toBe(401)
  })

  it('is reported as its scheme, without the proof', async () => {
    const { jwt, sent } = await parts()
    const records = recordsOf('decision')
    const { status } = await tokenSite(jwt)
    const fields = await sent()
    for (let time = 0; time < 2; time++) await status(undefined, fields)
    expect(records.map(({ outcome, failure }) => [outcome, failure])).toEqual([
      ['accepted', undefined],
      ['refused', 'invalid'],
    ])
    expect(JSON.stringify(records)).not.toContain(fields['DPoP'])
  })
})

describe('oidc-provider and openid-client', () => {
  it.each([false, true])('a token is issued with a proof, and used with one; nonce: %s', async (withNonce) => {
    const { issuer } = await authorizationServer('jwt')
    const nonce = withNonce ? { nonce: { keys: ['k'.repeat(32)] as const } } : {}
    const asked: unknown[] = []
    // the port is known when the server listens
    const jwtAt = (origin: string) =>
      httpJwt({
        issuer,
        audience: API,
        profile: 'rfc9068',
        bound: { dpop: { spent: oneTimeIds(memoryStore()), origin, ...nonce }, required: true },
        authenticate: (_request, claims) => (asked.push(claims), claims),
      })
    const site: { routes?: Koa.Middleware } = {}
    const { url } = await listen(new Koa().use((ctx, next) => site.routes?.(ctx, next)))
    const router = new Router()
    router.post('/notes/:id', withAuth(jwtAt(url)), (ctx) => {
      ctx.body = ctx.request.auth
    })
    site.routes = router.routes() as Koa.Middleware
    const config = await discovery(new URL(issuer), CLIENT.id, {}, ClientSecretBasic(CLIENT.secret), {
      execute: [allowInsecureRequests],
    })
    const DPoP = getDPoPHandle(config, await randomDPoPKeyPair('ES256'))
    const parameters = { resource: API, scope: 'notes:read' }
    const issued = await clientCredentialsGrant(config, parameters, { DPoP })
    expect(issued.token_type).toBe('dpop')
    const call = (path: string, options: object) =>
      fetchProtectedResource(config, issued.access_token, new URL(path, url), 'POST', null, undefined, options)
    for (const path of ['/notes/7', '/notes/a%20b?c=d']) {
      const response = await call(path, { DPoP })
      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject({ iss: issuer, client_id: CLIENT.id, cnf: {} })
    }
    expect(asked).toHaveLength(2)
    const plain = await fetch(new URL('/notes/7', url), {
      method: 'POST',
      headers: { Authorization: `Bearer ${issued.access_token}` },
    })
    expect(plain.status).toBe(401)
    const stranger = getDPoPHandle(config, await randomDPoPKeyPair('ES256'))
    await expect(call('/notes/7', { DPoP: stranger })).rejects.toThrow()
    expect(asked).toHaveLength(2)
  })
})

describe('oidc-provider', () => {
  it.each(['ES256', 'RS256', 'EdDSA'])(
    'issues a client-credentials token signed with %s, which discovery can verify',
    async (alg) => {
      const { issuer, token, asked } = await authorizationServer('jwt', alg)
      const jwt = httpJwt({ issuer, audience: API, profile: 'rfc9068' })
      await jwt.ready()
      const { get } = await tokenSite(pipe(jwt, requireScopes(['notes:read'], { granted: scopesOf })))
      const sent = await token(API, 'notes:read')
      const passed = await get(sent)
      expect([passed.status, passed.ran]).toEqual([200, 1])
      expect(JSON.parse(passed.text)).toMatchObject({
        iss: issuer,
        aud: API,
        client_id: CLIENT.id,
        scope: 'notes:read',
      })
      expect((await get(await token(API, 'notes:write'))).challenge).toBe(
        'Bearer realm="api", error="insufficient_scope", scope="notes:read"',
      )
      const other = await get(await token('https://other.example', 'notes:read'))
      expectRefused(other, `${INVALID}, scope="notes:read"`)
      expect(
        asked.filter((one) => one.startsWith('GET /.well-known') || one === 'GET /jwks').length,
      ).toBeLessThanOrEqual(3)
    },
  )

  it('issues an opaque token, which introspection can verify', async () => {
    const { issuer, token } = await authorizationServer('opaque')
    const { get } = await tokenSite(
      httpIntrospection({ issuer, client: RESOURCE_SERVER, audience: API, timeout: 5000 }),
    )
    const passed = await get(await token(API, 'notes:read'))
    expect([passed.status, passed.ran]).toEqual([200, 1])
    expect(JSON.parse(passed.text)).toMatchObject({ active: true, aud: API, scope: 'notes:read' })
    for (const bad of [await token('https://other.example', 'notes:read'), 'rubbish']) {
      const refused = await get(bad)
      expectRefused(refused, INVALID)
    }
  })
})
