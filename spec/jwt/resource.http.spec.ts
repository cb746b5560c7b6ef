/**
 * A protected resource that clients can discover (RFC 9728): challenges, the document, origins, and a 403 from a
 * handler.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import { pipe } from 'fp-ts/lib/function.js'
import Koa, { type Context, type Middleware, type Request } from 'koa'
import {
  allOf,
  anyOf,
  apiKeyHeader,
  AuthError,
  authorize,
  httpBearer,
  optional,
  requireScopes,
  withAuth,
} from 'koa-with-auth'
import { describedAs, firstPresent, flatMap, lenient, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import {
  httpJwt,
  insufficientScope,
  mcpAuth,
  protectedResource,
  scopesOf,
  type HttpJwt,
  type JwtClaims,
  type ProtectedResourceOptions,
} from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { identityProvider } from '../support/servers/identityProvider.js'
import { ask, listen } from '../support/servers/server.js'
import { expectRefused, tokenSite } from '../support/sites/tokenSite.js'

const MCP = 'https://api.example/mcp'
const DOCUMENT = 'https://api.example/.well-known/oauth-protected-resource/mcp'
const METADATA = `resource_metadata="${DOCUMENT}"`
const forbidden = { type: 'about:blank', title: 'Forbidden', status: 403 }

const given: ProtectedResourceOptions = {
  resource: MCP,
  authorizationServers: ['https://login.example/'],
  scopes: ['files:read', 'files:write'],
}

const behind = async (over: Partial<ProtectedResourceOptions> = {}, handler?: (ctx: Context) => unknown) => {
  const provider = await identityProvider()
  const { issuer, jwksUri } = provider
  const resource = protectedResource({ ...given, ...over })
  const jwt = httpJwt({ issuer: { issuer, jwksUri }, protectedResource: resource })
  const reader = pipe(jwt, requireScopes(['files:read'], { granted: scopesOf }))
  const token = (scope: string, aud = resource.resource) => provider.token({ aud, scope, client_id: 'app' })
  const site = await tokenSite(reader, { above: () => [resource.metadata], ...(handler !== undefined && { handler }) })
  return { ...site, provider, jwt, resource, token }
}

describe('challenges', () => {
  it('of a 401 name the document and the scopes; the audience is the resource', async () => {
    const { get, token } = await behind()
    const none = await get()
    expectRefused(none, `Bearer realm="api", ${METADATA}, scope="files:read"`)
    const other = await get(await token('files:read', 'https://api.example'))
    expectRefused(other, `Bearer realm="api", ${METADATA}, error="invalid_token", scope="files:read"`)
    expect((await get(await token('files:read'))).status).toBe(200)
  })

  it('of a 403 name the document and the scopes', async () => {
    const { get, token } = await behind()
    const low = await get(await token('files:write'))
    expectRefused(low, `Bearer realm="api", ${METADATA}, error="insufficient_scope", scope="files:read"`, 403)
    expect(JSON.parse(low.text)).toMatchObject(forbidden)
  })

  it('also come from an authenticator with its own audience, which replaces the resource', async () => {
    const provider = await identityProvider()
    const resource = protectedResource(given)
    const jwt = httpJwt({ issuer: provider.issuer, audience: 'api://guid', protectedResource: resource })
    const { get } = await tokenSite(jwt)
    expect((await get(await provider.token({ aud: MCP }))).status).toBe(401)
    expect((await get(await provider.token({ aud: 'api://guid' }))).status).toBe(200)
  })
})

describe('the metadata document', () => {
  it.each([
    { resource: MCP, path: '/.well-known/oauth-protected-resource/mcp' },
    { resource: 'https://api.example/a/b/', path: '/.well-known/oauth-protected-resource/a/b/' },
    { resource: 'https://api.example', path: '/.well-known/oauth-protected-resource' },
    { resource: 'https://api.example/', path: '/.well-known/oauth-protected-resource' },
  ])('RFC 9728 §3.1: that of $resource is at $path, and nowhere else', async ({ resource, path }) => {
    const { url } = await behind({ resource, name: 'Files', documentation: 'https://docs.example/?q' })
    const answer = await ask(`${url}${path}`, { headers: { Host: 'evil.example' } })
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toEqual({
      resource,
      authorization_servers: ['https://login.example/'],
      scopes_supported: ['files:read', 'files:write'],
      bearer_methods_supported: ['header'],
      resource_name: 'Files',
      resource_documentation: 'https://docs.example/?q',
    })
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(answer.headers.get('cache-control')).toBe('public, max-age=3600')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    for (const other of [`${path}x`, '/.well-known', '/.well-known/oauth-protected-resource/other', '/mcp']) {
      expect((await ask(`${url}${other}`)).status).toBe(404)
    }
  })

  it('allows no credentials, whatever a handler of CORS above has set: browsers refuse both together', async () => {
    const { metadata } = protectedResource(given)
    const allowing: Middleware = (ctx, next) => {
      ctx.set('Access-Control-Allow-Credentials', 'true')
      return next()
    }
    const { url } = await listen(new Koa().use(allowing).use(metadata))
    const answer = await ask(`${url}/.well-known/oauth-protected-resource/mcp`)
    expect([answer.status, answer.headers.get('access-control-allow-credentials')]).toEqual([200, null])
  })

  it.each([
    { method: 'HEAD', status: 200 },
    { method: 'OPTIONS', status: 204 },
    { method: 'POST', status: 405 },
    { method: 'DELETE', status: 405 },
  ])('$method: $status, from every origin', async ({ method, status }) => {
    const { url } = await behind({ origins: ['https://app.example'] })
    const path = '/.well-known/oauth-protected-resource/mcp'
    for (const origin of ['https://evil.example', 'null', 'https://app.example']) {
      const answer = await ask(`${url}${path}`, { method, headers: { Origin: origin } })
      expect([answer.status, answer.text]).toEqual([status, status === 405 ? 'Method Not Allowed' : ''])
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('allow')).toBe(method === 'HEAD' ? null : 'GET, HEAD, OPTIONS')
    }
    const preflight = await ask(`${url}${path}`, {
      method: 'OPTIONS',
      headers: { Origin: 'https://evil.example', 'Access-Control-Request-Headers': 'mcp-protocol-version' },
    })
    expect(preflight.headers.get('access-control-allow-headers')).toBe('*')
    expect(preflight.headers.get('access-control-allow-methods')).toContain('GET')
  })
})

describe('origins of a protected resource', () => {
  const methods = ['GET', 'HEAD', 'POST', 'DELETE']

  it.each(methods)(
    '%s from an origin that is not allowed is a 403, with a valid token, a bad one and none',
    async (method) => {
      const { get, token, ran } = await behind({ origins: ['https://app.example'] })
      const good = await token('files:read')
      const evil = ['https://evil.example', 'https://app.example.evil', 'https://app.example:444', 'http://app.example']
      for (const origin of [...evil, 'null']) {
        for (const sent of [good, `${good}x`, undefined]) {
          const answer = await get(sent, { Origin: origin }, method)
          expect([answer.status, answer.challenge]).toEqual([403, null])
          expect(answer.headers.get('access-control-expose-headers')).toBeNull()
        }
      }
      expect(ran()).toBe(0)
    },
  )

  it.each(methods)('%s from an allowed origin, or without an origin, gets the usual response', async (method) => {
    const { get, token } = await behind({ origins: ['https://app.example', 'https://other.example:8443'] })
    const good = await token('files:read')
    const none: Record<string, string> = {}
    for (const headers of [{ Origin: 'https://app.example' }, { Origin: 'https://other.example:8443' }, none]) {
      expect((await get(good, headers, method)).status).toBe(200)
      expect((await get(undefined, headers, method)).status).toBe(401)
    }
  })

  it('an allowed origin may read the challenge, and responses vary by Origin', async () => {
    const { get, token } = await behind({ origins: ['https://app.example'] }, (ctx) => {
      if (ctx.query['fail'] !== undefined) throw new Error('hidden')
      ctx.set('Access-Control-Expose-Headers', 'X-Own')
      ctx.status = 204
    })
    const origin = { Origin: 'https://app.example' }
    const refused = await get(undefined, origin)
    expect(refused.headers.get('access-control-expose-headers')).toBe('WWW-Authenticate')
    expect(refused.headers.get('vary')).toBe('Authorization, Origin')
    const passed = await get(await token('files:read'), origin)
    expect(passed.headers.get('access-control-expose-headers')).toBe('X-Own, WWW-Authenticate')
    const elsewhere = await get(undefined)
    expect(elsewhere.headers.get('access-control-expose-headers')).toBeNull()
    expect(elsewhere.headers.get('vary')).toBe('Authorization, Origin')
  })

  it("'any' allows all origins except null; without the option origins are not checked", async () => {
    const any = await behind({ origins: 'any' })
    expect((await any.get(await any.token('files:read'), { Origin: 'https://evil.example' })).status).toBe(200)
    expect((await any.get(await any.token('files:read'), { Origin: 'null' })).status).toBe(403)
    const open = await behind()
    expect((await open.get(await open.token('files:read'), { Origin: 'null' })).status).toBe(200)
  })
})

describe('insufficientScope', () => {
  it('answers 403 with these scopes and those of the operation, and the handler ends', async () => {
    const { get, token, errors } = await behind({}, (ctx) => {
      if (!mcpAuth(ctx)?.scopes.includes('files:write')) return insufficientScope(ctx, ['files:write'])
      ctx.body = 'saved'
    })
    const low = await get(await token('files:read'))
    expect([low.status, low.challenge]).toEqual([
      403,
      `Bearer realm="api", ${METADATA}, error="insufficient_scope", scope="files:write files:read"`,
    ])
    expect(JSON.parse(low.text)).toMatchObject(forbidden)
    expect((await get(await token('files:read files:write'))).text).toBe('saved')
    expect(errors).toEqual([])
  })

  it('reports only the bearer scheme of a list, or all if there is none; outside of a guarded operation it is a TypeError', async () => {
    const { jwt } = await behind()
    const key = apiKeyHeader({ paramName: 'X-API-Key', authenticate: () => ({ key: true }) })
    const { get } = await tokenSite([jwt, key], { handler: (ctx) => insufficientScope(ctx, ['admin']) })
    const answer = await get(undefined, { 'X-API-Key': 'k' })
    expect([answer.status, answer.challenge]).toEqual([
      403,
      `Bearer realm="api", ${METADATA}, error="insufficient_scope", scope="admin"`,
    ])
    const alone = await tokenSite(key, { handler: (ctx) => insufficientScope(ctx, ['admin']) })
    const { status, challenge } = await alone.get(undefined, { 'X-API-Key': 'k' })
    expect([status, challenge]).toEqual([403, 'ApiKey realm="api", in="header", name="X-API-Key"'])
    const app = new Koa()
    app.use((ctx) => insufficientScope(ctx, ['admin']))
    const { url, errors } = await listen(app)
    expect((await ask(url)).status).toBe(500)
    expect(String(errors[0])).toMatch(/TypeError: insufficientScope\(ctx, scopes\) must be called by the handler/)
  })
})

describe('mcpAuth', () => {
  type Guards = (jwt: HttpJwt<JwtClaims>, slow: HttpJwt<JwtClaims>) => unknown
  const reporting = async (auth: Guards) => {
    const reported: unknown[] = []
    const { jwt, token, provider, resource } = await behind()
    const { issuer, jwksUri } = provider
    const slow = httpJwt({
      issuer: { issuer, jwksUri },
      protectedResource: resource,
      authenticate: (_request, claims: JwtClaims) => sleep(30).then(() => claims),
    })
    const router = new Router()
    // Safe: `withAuth` checks its argument when it runs
    router.get('/me', withAuth(auth(jwt, slow) as typeof jwt), (ctx) => {
      reported.push(mcpAuth(ctx))
      ctx.status = 204
    })
    const { url, errors } = await listen(new Koa().use(router.routes()))
    const get = (headers: Record<string, string>) => ask(`${url}/me`, { headers })
    return { reported, errors, token, get, provider }
  }

  it('returns the AuthInfo of the MCP SDK', async () => {
    const { reported, token, get, provider } = await reporting((jwt) => jwt)
    const sent = await token('files:read files:write')
    await get({ Authorization: `Bearer ${sent}` })
    expect(reported).toEqual([
      {
        token: sent,
        clientId: 'app',
        scopes: ['files:read', 'files:write'],
        expiresAt: expect.any(Number),
        resource: new URL(MCP),
        resourceMetadataUrl: DOCUMENT,
        extra: expect.objectContaining({ sub: 'anna', iss: provider.issuer }),
      },
    ])
  })

  it.each([
    { claims: { azp: 'a' }, expected: 'a' },
    { claims: { cid: 'c' }, expected: 'c' },
    { claims: { cid: 7, appid: 'd' }, expected: 'd' },
    { claims: {}, expected: '' },
  ])('the client of $claims is $expected', async ({ claims, expected }) => {
    const { reported, get, provider } = await reporting((jwt) => jwt)
    await get({ Authorization: `Bearer ${await provider.token({ aud: MCP, ...claims })}` })
    expect(reported).toEqual([expect.objectContaining({ clientId: expected })])
  })

  it('returns undefined if no token was accepted', async () => {
    const anonymous = await reporting((jwt) => optional(jwt))
    await anonymous.get({})
    expect(anonymous.reported).toEqual([undefined])
    const key = apiKeyHeader({ paramName: 'X-API-Key', authenticate: () => ({ key: true }) })
    const listed = await reporting((jwt) => [jwt, key])
    const bad = await listed.provider.token({ aud: 'other' })
    await listed.get({ Authorization: `Bearer ${bad}`, 'X-API-Key': 'k' })
    expect(listed.reported).toEqual([undefined])
  })

  const key = apiKeyHeader({ paramName: 'X-API-Key', authenticate: () => ({ key: true }) })
  const down = () => E.left(AuthError.unavailable())
  const refusing = authorize(() => false)
  const empty = flatMap(() => null)
  const recovered = recoverUnavailable(() => ({ cached: true }))

  it.each<readonly [string, Guards]>([
    ['authorize', (jwt) => [refusing(jwt), key]],
    ['authorize, async', (jwt) => [authorize(async () => false)(jwt), key]],
    ['flatMap', (jwt) => [empty(jwt), key]],
    ['flatMap to absent', (jwt) => firstPresent([flatMap(() => E.left(AuthError.absent))(jwt), key])],
    ['requireScopes', (jwt) => [pipe(jwt, requireScopes(['admin'], { granted: scopesOf })), key]],
    [
      'another part of allOf',
      (jwt) => [allOf([jwt, apiKeyHeader({ paramName: 'X-Other', authenticate: () => 'x' })]), key],
    ],
    ['a part of an object', (jwt) => anyOf({ jwt: flatMap(async () => undefined)(jwt), key })],
    ['lenient', (jwt) => lenient(flatMap(() => false)(jwt))],
    ['recoverUnavailable', (jwt) => recovered(flatMap(down)(jwt))],
    ['a list in allOf', (jwt) => allOf([key, anyOf([refusing(jwt), key])])],
    ['a plain function', (jwt) => [(request: Request) => refusing(jwt)(request), key]],
    [
      'a plain function that asks another one',
      (jwt) => (request: Request) => async () => {
        await jwt(request)()
        return key(request)()
      },
    ],
    [
      'a plain function that decides by itself',
      (jwt) => (request: Request) => async () => {
        await jwt(request)()
        return E.right({ guest: true })
      },
    ],
    [
      "fp-ts's own alternative",
      (jwt) => {
        const none = RTE.filterOrElseW(
          () => false,
          () => AuthError.invalid,
        )
        return pipe(jwt, none, RTE.altW(() => key), describedAs(jwt)) // prettier-ignore
      },
    ],
    [
      'recoverUnavailable after a timeout',
      (jwt) => recovered(timeout(5)(flatMap((claims) => sleep(30).then(() => claims))(jwt))),
    ],
    [
      'a slow recoverUnavailable after a timeout',
      (_jwt, slow) => recoverUnavailable(() => sleep(60).then(() => ({ cached: true })))(timeout(5)(slow)),
    ],
  ])('returns undefined if %s went on without the token', async (_what, auth) => {
    const { reported, errors, token, get } = await reporting(auth)
    const answer = await get({ Authorization: `Bearer ${await token('files:read')}`, 'X-API-Key': 'k' })
    expect([errors.map(String), answer.status, reported]).toEqual([[], 204, [undefined]])
  })

  it.each<readonly [string, Guards]>([
    ['a later member', (jwt) => [refusing(jwt), jwt]],
    ['the first part of allOf', (jwt) => allOf([jwt, anyOf([empty(jwt), key])])],
    ['a plain function', (jwt) => [(request: Request) => jwt(request), key]],
    ['a plain function beside another', (jwt) => allOf([jwt, (request: Request) => key(request)])],
    ["fp-ts's own combinators", (jwt) => describedAs(jwt)(RTE.map((claims: JwtClaims) => claims)(jwt))],
    ['what recovered', (jwt) => pipe(httpBearer({ authenticate: down }), recoverUnavailable(jwt))],
  ])('returns the token that %s accepted', async (_what, auth) => {
    const { reported, errors, token, get } = await reporting(auth)
    const sent = await token('files:read')
    const answer = await get({ Authorization: `Bearer ${sent}`, 'X-API-Key': 'k' })
    expect([errors.map(String), answer.status, reported]).toEqual([[], 204, [expect.objectContaining({ token: sent })]])
  })
})

describe('S07 two guards for one request', () => {
  it('each has the token that let its own caller in', async () => {
    const { jwt, token } = await behind()
    const seen: unknown[] = []
    const note = (ctx: Context) => seen.push(mcpAuth(ctx)?.extra['scope'])
    const router = new Router()
    router.get('/:a', withAuth(jwt), async (ctx, next) => {
      note(ctx)
      await next()
      note(ctx)
    })
    router.get('/:b', withAuth(null), (ctx) => {
      note(ctx)
      ctx.status = 204
    })
    const { url } = await listen(new Koa().use(router.routes()))
    await ask(`${url}/x`, { headers: { Authorization: `Bearer ${await token('files:read')}` } })
    expect(seen).toEqual(['files:read', undefined, 'files:read'])
  })
})

describe('scopesOf', () => {
  it.each([
    { claims: { scope: 'a b' }, expected: ['a', 'b'] },
    { claims: { scope: ' a  b ' }, expected: ['a', 'b'] },
    { claims: { scope: '' }, expected: [] },
    { claims: { scp: 'a b' }, expected: ['a', 'b'] },
    { claims: { scp: ['a', 'b', 1, ''] }, expected: ['a', 'b'] },
    { claims: { scope: 'a', scp: ['b'] }, expected: ['a'] },
    { claims: { scope: 1 }, expected: [] },
    { claims: {}, expected: [] },
  ])('of $claims', ({ claims, expected }) => {
    expect(scopesOf(claims)).toEqual(expected)
  })
})
