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
  type Authenticator,
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
import { ask, listen } from '../support/servers/server.js'
import { expectRefused, jwtSite, tokenSite, type Guard } from '../support/sites/tokenSite.js'

const MCP = 'https://api.example/mcp'
const DOCUMENT = 'https://api.example/.well-known/oauth-protected-resource/mcp'
const METADATA = `resource_metadata="${DOCUMENT}"`
const forbidden = { type: 'about:blank', title: 'Forbidden', status: 403 }

const given: ProtectedResourceOptions = {
  resource: MCP,
  authorizationServers: ['https://login.example/'],
  scopes: ['files:read', 'files:write'],
}

const reading = (jwt: Authenticator<JwtClaims>) => requireScopes(['files:read'], { granted: scopesOf })(jwt)

const behind = async (over: Partial<ProtectedResourceOptions> = {}, handler?: (ctx: Context) => unknown) => {
  const resource = protectedResource({ ...given, ...over })
  const site = await jwtSite(
    { audience: undefined, protectedResource: resource },
    { guard: reading, above: () => [resource.metadata], ...(handler !== undefined && { handler }) },
  )
  const token = (scope = 'files:read', aud = resource.resource) => site.provider.token({ aud, scope, client_id: 'app' })
  return { ...site, token }
}

const byKey = apiKeyHeader({ paramName: 'X-API-Key', authenticate: () => ({ key: true }) })
const withKey = { 'X-API-Key': 'k' }

describe('challenges', () => {
  it('name the document and the scopes; the audience is the resource', async () => {
    const { get, token } = await behind()
    const challenge = (error?: string) =>
      `Bearer realm="api", ${METADATA}${error === undefined ? '' : `, error="${error}"`}, scope="files:read"`
    expectRefused(await get(), challenge())
    expectRefused(await get(await token('files:read', 'https://api.example')), challenge('invalid_token'))
    const low = await get(await token('files:write'))
    expectRefused(low, challenge('insufficient_scope'), 403)
    expect(JSON.parse(low.text)).toMatchObject(forbidden)
    expect((await get(await token())).status).toBe(200)
  })

  it('also come from an authenticator with its own audience, which replaces the resource', async () => {
    const { provider, status } = await jwtSite({ audience: 'api://guid', protectedResource: protectedResource(given) })
    expect(await status(await provider.token({ aud: MCP }))).toBe(401)
    expect(await status(await provider.token({ aud: 'api://guid' }))).toBe(200)
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
      const good = await token()
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
    const origins = ['https://app.example', 'https://other.example:8443']
    const { status, token } = await behind({ origins })
    const good = await token()
    for (const headers of [...origins.map((Origin) => ({ Origin })), {}]) {
      expect(await status(good, headers, method)).toBe(200)
      expect(await status(undefined, headers, method)).toBe(401)
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
    const passed = await get(await token(), origin)
    expect(passed.headers.get('access-control-expose-headers')).toBe('X-Own, WWW-Authenticate')
    const elsewhere = await get(undefined)
    expect(elsewhere.headers.get('access-control-expose-headers')).toBeNull()
    expect(elsewhere.headers.get('vary')).toBe('Authorization, Origin')
  })

  it.each([
    ['any', 'https://evil.example', 200],
    ['any', 'null', 403],
    [undefined, 'null', 200],
  ] as const)("'any' allows all origins except null; without the option none is checked: %s, %s", async (...row) => {
    const [origins, Origin, expected] = row
    const { status, token } = await behind({ origins })
    expect(await status(await token(), { Origin })).toBe(expected)
  })
})

describe('insufficientScope', () => {
  it('answers 403 with these scopes and those of the operation, and the handler ends', async () => {
    const { get, token, errors } = await behind({}, (ctx) => {
      if (!mcpAuth(ctx)?.scopes.includes('files:write')) return insufficientScope(ctx, ['files:write'])
      ctx.body = 'saved'
    })
    const low = await get(await token())
    const scopes = 'scope="files:write files:read"'
    expect([low.status, low.challenge]).toEqual([
      403,
      `Bearer realm="api", ${METADATA}, error="insufficient_scope", ${scopes}`,
    ])
    expect(JSON.parse(low.text)).toMatchObject(forbidden)
    expect((await get(await token('files:read files:write'))).text).toBe('saved')
    expect(errors).toEqual([])
  })

  it.each<readonly [string, (jwt: HttpJwt<JwtClaims>) => Guard, string]>([
    [
      'only the bearer scheme of a list',
      (jwt) => [jwt, byKey],
      `Bearer realm="api", ${METADATA}, error="insufficient_scope", scope="admin"`,
    ],
    ['all schemes if there is no bearer', () => byKey, 'ApiKey realm="api", in="header", name="X-API-Key"'],
  ])('reports %s', async (_what, guard, expected) => {
    const { jwt } = await behind()
    const { get } = await tokenSite(guard(jwt), { handler: (ctx) => insufficientScope(ctx, ['admin']) })
    const { status, challenge } = await get(undefined, withKey)
    expect([status, challenge]).toEqual([403, expected])
  })

  it('outside of a guarded operation is a TypeError', async () => {
    const { url, errors } = await listen(new Koa().use((ctx) => insufficientScope(ctx, ['admin'])))
    expect((await ask(url)).status).toBe(500)
    expect(String(errors[0])).toMatch(/TypeError: insufficientScope\(ctx, scopes\) must be called by the handler/)
  })
})

describe('mcpAuth', () => {
  type Guards = (jwt: HttpJwt<JwtClaims>, slow: HttpJwt<JwtClaims>) => unknown
  const reporting = async (auth: Guards) => {
    const reported: unknown[] = []
    const { jwt, token, provider } = await behind()
    const slow = httpJwt({
      issuer: provider.issuer,
      audience: MCP,
      authenticate: (_request, claims: JwtClaims) => sleep(30).then(() => claims),
    })
    // Safe: `withAuth` checks its argument when it runs
    const { status, errors } = await tokenSite(auth(jwt, slow) as Guard, {
      handler: (ctx) => {
        reported.push(mcpAuth(ctx))
        ctx.status = 204
      },
    })
    return { reported, errors, token, status, provider }
  }

  it('returns the AuthInfo of the MCP SDK', async () => {
    const { reported, token, status, provider } = await reporting((jwt) => jwt)
    const sent = await token('files:read files:write')
    await status(sent)
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
    { claims: { client_id: 'b', azp: 'a', cid: 'c', appid: 'd' }, expected: 'b' },
    { claims: { azp: 'a', cid: 'c' }, expected: 'a' },
    { claims: { cid: 'c', appid: 'd' }, expected: 'c' },
    { claims: { cid: 7, appid: 'd' }, expected: 'd' },
    { claims: {}, expected: '' },
  ])('the client of $claims is $expected', async ({ claims, expected }) => {
    const { reported, status, provider } = await reporting((jwt) => jwt)
    await status(await provider.token({ aud: MCP, ...claims }))
    expect(reported).toEqual([expect.objectContaining({ clientId: expected })])
  })

  it('returns undefined if no token was accepted', async () => {
    const anonymous = await reporting((jwt) => optional(jwt))
    await anonymous.status()
    expect(anonymous.reported).toEqual([undefined])
    const listed = await reporting((jwt) => [jwt, byKey])
    await listed.status(await listed.provider.token({ aud: 'other' }), withKey)
    expect(listed.reported).toEqual([undefined])
  })

  const key = byKey
  const absent = apiKeyHeader({ paramName: 'X-Other', authenticate: () => 'x' })
  const askedBefore =
    (decide: (request: Request) => unknown): Guards =>
    (jwt) =>
    (request: Request) =>
    async () => {
      await jwt(request)()
      return decide(request)
    }
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
    ['another part of allOf', (jwt) => [allOf([jwt, absent]), key]],
    ['a part of an object', (jwt) => anyOf({ jwt: flatMap(async () => undefined)(jwt), key })],
    ['lenient', (jwt) => lenient(flatMap(() => false)(jwt))],
    ['recoverUnavailable', (jwt) => recovered(flatMap(down)(jwt))],
    ['a list in allOf', (jwt) => allOf([key, anyOf([refusing(jwt), key])])],
    ['a plain function', (jwt) => [(request: Request) => refusing(jwt)(request), key]],
    ['a plain function that asks another one', askedBefore((request) => key(request)())],
    ['a plain function that decides by itself', askedBefore(() => E.right({ guest: true }))],
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
    const { reported, errors, token, status } = await reporting(auth)
    expect([await status(await token(), withKey), errors.map(String), reported]).toEqual([204, [], [undefined]])
  })

  it.each<readonly [string, Guards]>([
    ['a later member', (jwt) => [refusing(jwt), jwt]],
    ['the first part of allOf', (jwt) => allOf([jwt, anyOf([empty(jwt), key])])],
    ['a plain function', (jwt) => [(request: Request) => jwt(request), key]],
    ['a plain function beside another', (jwt) => allOf([jwt, (request: Request) => key(request)])],
    ["fp-ts's own combinators", (jwt) => describedAs(jwt)(RTE.map((claims: JwtClaims) => claims)(jwt))],
    ['what recovered', (jwt) => pipe(httpBearer({ authenticate: down }), recoverUnavailable(jwt))],
  ])('returns the token that %s accepted', async (_what, auth) => {
    const { reported, errors, token, status } = await reporting(auth)
    const sent = await token()
    const info = expect.objectContaining({ token: sent }) as unknown
    expect([await status(sent, withKey), errors.map(String), reported]).toEqual([204, [], [info]])
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
    await ask(`${url}/x`, { headers: { Authorization: `Bearer ${await token()}` } })
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
