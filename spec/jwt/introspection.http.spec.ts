/** Opaque tokens (RFC 7662): a real authorization server is asked over HTTP. */
import type { ServerResponse } from 'node:http'
import * as t from 'io-ts'
import { pipe } from 'fp-ts/lib/function.js'
import { requireScopes } from 'koa-with-auth'
import { httpIntrospection, protectedResource, scopesOf } from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { API, processWarnings, seconds } from '../support/servers/identityProvider.js'
import { active, introspectionServer, type Answer } from '../support/servers/introspectionServer.js'
import { causeOf, eventsSite } from '../support/sites/eventsSite.js'
import { EXPIRED, INVALID, expectRefused, tokenSite } from '../support/sites/tokenSite.js'

/** A site that keeps answers, unless `over` says otherwise. */
const behind = async (over: object = {}, answer?: Answer) => {
  const server = await introspectionServer(answer)
  const made = httpIntrospection({ ...server.options, cache: undefined, timeout: 2000, ...over })
  return { ...server, made, ...(await tokenSite(made)) }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the request to the server', () => {
  it('follows RFC 7662 §2.1, with form-encoded credentials in Basic (RFC 6749 §2.3.1)', async () => {
    const { asked, status } = await behind({ client: { id: 'my api:ü', secret: 'a+b%&=' } }, active())
    expect(await status('opaque.token~1+/=')).toBe(200)
    expect(asked).toEqual([
      {
        path: '/introspect',
        authorization: `Basic ${Buffer.from('my+api%3A%C3%BC:a%2Bb%25%26%3D').toString('base64')}`,
        type: 'application/x-www-form-urlencoded;charset=UTF-8',
        body: 'token=opaque.token%7E1%2B%2F%3D&token_type_hint=access_token',
      },
    ])
  })

  it.each([['/.well-known/oauth-authorization-server'], ['/.well-known/openid-configuration']])(
    'goes to the endpoint that discovery found, in %s',
    async (path) => {
      const { issuer, endpoint, state, asked, options } = await introspectionServer()
      const discovered = () => tokenSite(httpIntrospection({ ...options, endpoint: undefined, issuer }))
      const askedAt = (at: string) => asked.filter((one) => one.path === at).length
      const { status } = await discovered()
      state.documents[path] = { issuer, introspection_endpoint: endpoint }
      // RFC 7662 §2.2: it may be left out
      for (const iss of [issuer, undefined]) {
        state.answer = active({ iss })
        expect(await status('t')).toBe(200)
      }
      state.answer = active({ iss: 'https://evil.example' })
      expect(await status('t')).toBe(401)
      expect([askedAt(path), askedAt('/introspect')]).toEqual([1, 3])
      state.documents[path] = { issuer: 'https://evil.example', introspection_endpoint: endpoint }
      const other = await discovered()
      expect([await other.status('t'), askedAt('/introspect')]).toEqual([503, 3])
    },
  )
})

describe('the answer of the server', () => {
  it('active and for this audience: 200, with its claims', async () => {
    const { state, get } = await behind({}, active({ aud: ['https://other.example', API] }))
    const answer = await get('t')
    expect([answer.status, answer.ran, JSON.parse(answer.text)]).toEqual([200, 1, state.answer])
  })

  it.each<[string, object, string?]>([
    ['active: false', { active: false }],
    ['no active', { aud: API }],
    ['no aud', active({ aud: undefined })],
    ['another aud', active({ aud: 'https://other.example' })],
    ['bound to a key', active({ cnf: { jkt: 'x' } })],
    ['of type DPoP', active({ token_type: 'DPoP' })],
    ['nbf in the future', active({ nbf: seconds() + 3600 })],
    ['over', active({ exp: seconds() - 60 }), EXPIRED],
  ])('%s: 401, and it is not cached', async (_what, answer, challenge = INVALID) => {
    const { state, asked, get, status } = await behind({}, answer)
    for (let time = 1; time <= 2; time++) {
      expectRefused(await get('t'), challenge)
      expect(asked).toHaveLength(time)
    }
    state.answer = active()
    expect(await status('t')).toBe(200)
  })

  it.each<[string, Answer]>([
    ['500', (res: ServerResponse) => res.writeHead(500).end('{"active":true}')],
    ['401 to our own credentials', (res: ServerResponse) => res.writeHead(401).end()],
    ['201', (res: ServerResponse) => res.writeHead(201).end(JSON.stringify(active()))],
    ['a redirect', (res: ServerResponse) => res.writeHead(307, { Location: '/elsewhere' }).end()],
    ['a body that is not JSON', (res: ServerResponse) => res.end('<html>')],
    ['an array', []],
    ['no response', () => undefined],
    ['an early end', (res: ServerResponse) => res.writeHead(200, { 'Content-Length': 99 }).end('{').destroy()],
  ])('%s: 503 within the time limit, a process warning, and the next request asks again', async (_what, answer) => {
    const warnings = processWarnings()
    const { state, get, status, endpoint } = await behind({}, answer)
    const refused = await get('t')
    expectRefused(refused, null, 503)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(await status('t')).toBe(503)
    await settled()
    const own = warnings().filter((warning) => warning.includes(endpoint))
    expect(own).toEqual([expect.stringMatching(/^ProviderWarning: httpIntrospection: http/)])
    expect(own.join()).not.toMatch(/s3cret|html/)
    state.answer = active()
    expect(await status('t')).toBe(200)
  })

  it('is not needed for a missing or malformed token', async () => {
    const { asked, get } = await behind()
    expect((await get()).challenge).toBe('Bearer realm="api"')
    expect((await get('a b')).challenge).toBe(INVALID)
    expect(asked).toEqual([])
  })

  it('works with scopes, the claims decoder, the hook and the protected resource, as in httpJwt', async () => {
    const { issuer, options, state } = await introspectionServer()
    const resource = protectedResource({ resource: API, authorizationServers: issuer, scopes: ['read'] })
    const opaque = httpIntrospection({
      ...options,
      audience: undefined,
      protectedResource: resource,
      claims: t.type({ sub: t.string, scope: t.string }),
      authenticate: (_request, claims) => claims.sub !== 'revoked' && claims,
    })
    const { get } = await tokenSite(pipe(opaque, requireScopes(['read'], { granted: scopesOf })))
    const bare = `Bearer realm="api", resource_metadata="${resource.metadataUrl}"`
    expect((await get()).challenge).toBe(`${bare}, scope="read"`)
    for (const [over, status, error] of [
      [{}, 200],
      [{ scope: 'write' }, 403, 'insufficient_scope'],
      [{ sub: 1 }, 401, 'invalid_token'],
      [{ sub: 'revoked' }, 401, 'invalid_token'],
    ] as const) {
      state.answer = active(over)
      const answer = await get('t')
      expect([answer.status, answer.challenge]).toEqual([
        status,
        error ? `${bare}, error="${error}", scope="read"` : null,
      ])
    }
  })
})

describe('koa-with-auth:introspection-outage', () => {
  const down: Answer = (res: ServerResponse) => res.writeHead(502).end('s3cret')

  it('`begun` once with the first 503, `over` once with the next answer, also if that refuses the token', async () => {
    processWarnings()
    const records = recordsOf('introspection-outage')
    const { state, status, endpoint } = await behind({ cache: false }, active())
    expect([await status('t'), records]).toEqual([200, []])
    state.answer = down
    expect(await Promise.all(['a', 'b', 'c'].map((token) => status(token)))).toEqual([503, 503, 503])
    expect(await status('d')).toBe(503)
    expect(records).toEqual([{ event: 'begun', server: endpoint, problem: 'answered 502' }])
    state.answer = { active: false }
    expect(await status('t')).toBe(401)
    state.answer = active()
    expect(await status('t')).toBe(200)
    expect(records.slice(1)).toEqual([{ event: 'over', server: endpoint, durationMs: expect.any(Number) as number }])
    state.answer = () => undefined
    expect(await status('t')).toBe(503)
    expect(records.slice(2)).toEqual([{ event: 'begun', server: endpoint, problem: 'did not answer in time' }])
  })

  it('an answer to a question from before the outage does not end it', async () => {
    processWarnings()
    const records = recordsOf('introspection-outage')
    const waiting: ServerResponse[] = []
    const keeps = (res: ServerResponse) => void waiting.push(res)
    const { state, status } = await behind({ cache: false, timeout: 5000 }, keeps)
    const slow = status('slow')
    await expect.poll(() => waiting.length).toBe(1)
    state.answer = down
    expect(await status('t')).toBe(503)
    waiting[0]?.end(JSON.stringify(active()))
    expect(await slow).toBe(200)
    expect(records.map(({ event }) => event)).toEqual(['begun'])
  })

  it('each server has its own outages; a discovery that fails is one; neither token, secret nor query is in a record', async () => {
    const warnings = processWarnings()
    const records = recordsOf('introspection-outage')
    const { issuer, options } = await introspectionServer()
    const found = await tokenSite(httpIntrospection({ ...options, endpoint: undefined, issuer }))
    expect(await found.status('tok3n')).toBe(503)
    const asked = await introspectionServer(down)
    const endpoint = `${asked.endpoint}?code=k3y`
    const { status } = await tokenSite(httpIntrospection({ ...options, endpoint }))
    expect(await status('tok3n')).toBe(503)
    expect(records).toEqual([
      { event: 'begun', server: issuer, problem: 'answered 404' },
      { event: 'begun', server: asked.endpoint, problem: 'answered 502' },
    ])
    await settled()
    expect(JSON.stringify([records, warnings()])).not.toMatch(/tok3n|s3cret|k3y/)
  })
})

describe('the cache of answers', () => {
  it('200 parallel requests with one token ask once; later ones do not ask until maxAge', async () => {
    const clock = stoppedClock()
    const { asked, get, status } = await behind({ timeout: 5000 }, active())
    const statuses = await Promise.all(Array.from({ length: 200 }, () => status('t')))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(asked).toHaveLength(1)
    clock.move(29_999)
    await get('t')
    expect(asked).toHaveLength(1)
    clock.move(1)
    await get('t')
    expect(asked).toHaveLength(2)
  })

  it('a system clock that is set back does not extend the time of a revoked token', async () => {
    const clock = stoppedClock()
    const { state, status } = await behind({}, active())
    expect(await status('t')).toBe(200)
    state.answer = { active: false }
    clock.move(29_999)
    clock.set(-29_999)
    expect(await status('t')).toBe(200)
    clock.move(1)
    expect(await status('t')).toBe(401)
  })

  it('ends at exp; a revoked token is refused after maxAge', async () => {
    const clock = stoppedClock()
    const { state, asked, status } = await behind({}, active({ exp: seconds() + 10 }))
    expect(await status('short')).toBe(200)
    state.answer = active()
    expect(await status('long')).toBe(200)
    state.answer = { active: false }
    clock.move(11_000)
    expect([await status('short'), await status('long')]).toEqual([401, 200])
    clock.move(20_000)
    expect(await status('long')).toBe(401)
    expect(asked).toHaveLength(4)
  })

  it('its time begins with the question, not with the answer', async () => {
    const clock = stoppedClock()
    const { asked, status } = await behind({}, (res: ServerResponse) => {
      clock.move(1000)
      res.end(JSON.stringify(active()))
    })
    expect(await status('t')).toBe(200)
    clock.move(28_999)
    expect([await status('t'), asked.length]).toEqual([200, 1])
    clock.move(1)
    expect([await status('t'), asked.length]).toEqual([200, 2])
  })

  it('with cache: false each request asks; a hook cannot change the claims of another request', async () => {
    const seen: unknown[] = []
    const authenticate = (_request: unknown, claims: { roles?: string[] }) => {
      seen.push([...(claims.roles ?? [])])
      claims.roles?.push('admin')
      return claims
    }
    for (const cache of [false, undefined] as const) {
      const { get } = await behind({ authenticate, cache }, active({ roles: ['user'] }))
      await Promise.all([get('t'), get('t'), get('t')])
      await get('t')
    }
    expect(seen).toHaveLength(8)
    for (const roles of seen) expect(roles).toEqual(['user'])
  })
})

it('what a token has open ends when another request learns that it was revoked, and begins if it is active again', async () => {
  const { made, state } = await behind({ cache: false })
  const { open, signals } = eventsSite(made)
  const fields = { Authorization: 'Bearer t' }
  for (let time = 0; time < 2; time++) {
    state.answer = active()
    const stream = await open(fields)
    await stream.read()
    expect(causeOf(signals[time]!)).toBe(false)
    state.answer = { active: false }
    expect([(await open(fields)).status, causeOf(signals[time]!)]).toEqual([401, 'revoked'])
    expect(await stream.read()).toBe('end')
  }
})
