/** Opaque tokens (RFC 7662): a real authorization server is asked over HTTP. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import * as t from 'io-ts'
import { pipe } from 'fp-ts/lib/function.js'
import { requireScopes } from 'koa-with-auth'
import { httpIntrospection, protectedResource, scopesOf } from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { API, processWarnings, seconds } from '../support/servers/identityProvider.js'
import { listening } from '../support/servers/server.js'
import { causeOf, eventsSite } from '../support/sites/eventsSite.js'
import { EXPIRED, INVALID, expectRefused, tokenSite } from '../support/sites/tokenSite.js'

const TIMEOUT = 2000

interface Asked {
  readonly path: string
  readonly authorization: string | undefined
  readonly type: string | undefined
  readonly body: string
}

type Answer = object | ((res: ServerResponse) => unknown)

const bodyOf = async (req: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** A server whose answers about tokens the test chooses. */
const authorizationServer = async () => {
  const asked: Asked[] = []
  const state: { answer: Answer; documents: Record<string, object> } = { answer: { active: false }, documents: {} }
  const handle = async (req: IncomingMessage, res: ServerResponse) => {
    const path = req.url ?? ''
    const { authorization, 'content-type': type } = req.headers
    asked.push({ path, authorization, type, body: await bodyOf(req) })
    if (req.method === 'GET') {
      const document = state.documents[path]
      return document === undefined ? res.writeHead(404).end() : res.end(JSON.stringify(document))
    }
    if (typeof state.answer === 'function') return state.answer(res)
    res.end(JSON.stringify(state.answer))
  }
  const server = createServer((req, res) => void handle(req, res))
  const issuer = `http://127.0.0.1:${await listening(server)}`
  return { issuer, endpoint: `${issuer}/introspect`, asked, state }
}

const active = (over: object = {}) => ({
  active: true,
  aud: API,
  sub: 'anna',
  scope: 'read',
  exp: seconds() + 300,
  ...over,
})

const behind = async (over: Partial<Parameters<typeof httpIntrospection>[0]> = {}) => {
  const server = await authorizationServer()
  const made = httpIntrospection({
    endpoint: server.endpoint,
    client: { id: 'api', secret: 's3cret' },
    audience: API,
    timeout: TIMEOUT,
    ...over,
  } as Parameters<typeof httpIntrospection>[0])
  return { ...server, made, ...(await tokenSite(made)) }
}

describe('the request to the server', () => {
  it('follows RFC 7662 §2.1, with form-encoded credentials in Basic (RFC 6749 §2.3.1)', async () => {
    const { state, asked, get } = await behind({ client: { id: 'my api:ü', secret: 'a+b%&=' } })
    state.answer = active()
    expect((await get('opaque.token~1+/=')).status).toBe(200)
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
      const server = await authorizationServer()
      const { issuer, endpoint, state, asked } = server
      const client = { id: 'api', secret: 's' }
      const { get } = await tokenSite(httpIntrospection({ issuer, client, audience: API, cache: false }))
      state.documents[path] = { issuer, introspection_endpoint: endpoint }
      state.answer = active({ iss: issuer })
      for (let time = 0; time < 2; time++) expect((await get('t')).status).toBe(200)
      expect(asked.filter((one) => one.path === path)).toHaveLength(1)
      state.answer = active({ iss: 'https://evil.example' })
      expect((await get('t')).status).toBe(401)
      state.documents[path] = { issuer: 'https://evil.example', introspection_endpoint: endpoint }
      const other = await tokenSite(httpIntrospection({ issuer, client, audience: API }))
      const before = asked.filter((one) => one.path === '/introspect').length
      expect((await other.get('t')).status).toBe(503)
      expect(asked.filter((one) => one.path === '/introspect')).toHaveLength(before)
    },
  )
})

describe('the answer of the server', () => {
  it('active and for this audience: 200, with its claims', async () => {
    const { state, get } = await behind()
    state.answer = active({ aud: ['https://other.example', API] })
    const answer = await get('t')
    expect([answer.status, answer.ran]).toEqual([200, 1])
    expect(JSON.parse(answer.text)).toEqual(state.answer)
  })

  it.each<[string, object, string?]>([
    ['active: false', { active: false }],
    ['active: "true"', active({ active: 'true' })],
    ['active: 1', active({ active: 1 })],
    ['no active', { aud: API }],
    ['no aud', active({ aud: undefined })],
    ['another aud', active({ aud: 'https://other.example' })],
    ['bound to a key', active({ cnf: { jkt: 'x' } })],
    ['of type DPoP', active({ token_type: 'DPoP' })],
    ['with a list of token types', active({ token_type: ['DPoP'] })],
    ['with a subject that is not a string', active({ sub: 7 })],
    ['with a client that is not a string', active({ client_id: ['cron'] })],
    ['exp as a string', active({ exp: '99999999999' })],
    ['nbf in the future', active({ nbf: seconds() + 3600 })],
    ['over', active({ exp: seconds() - 60 }), EXPIRED],
  ])('%s: 401, and it is not cached', async (_what, answer, challenge = INVALID) => {
    const { state, asked, get } = await behind()
    state.answer = answer
    for (let time = 1; time <= 2; time++) {
      const refused = await get('t')
      expectRefused(refused, challenge)
      expect(asked).toHaveLength(time)
    }
    state.answer = active()
    expect((await get('t')).status).toBe(200)
  })

  it.each<[string, Answer]>([
    ['500', (res: ServerResponse) => res.writeHead(500).end('{"active":true}')],
    ['401 to our own credentials', (res: ServerResponse) => res.writeHead(401).end()],
    ['201', (res: ServerResponse) => res.writeHead(201).end(JSON.stringify(active()))],
    ['a redirect', (res: ServerResponse) => res.writeHead(307, { Location: '/elsewhere' }).end()],
    ['a body that is not JSON', (res: ServerResponse) => res.end('<html>')],
    ['an array', []],
    ['no response', () => undefined],
    [
      'a body that ends early',
      (res: ServerResponse) => res.writeHead(200, { 'Content-Length': 99 }).end('{').destroy(),
    ],
  ])('%s: 503 within the time limit, a process warning, and the next request asks again', async (_what, answer) => {
    const warnings = processWarnings()
    const { state, get, endpoint } = await behind()
    state.answer = answer
    const refused = await get('t')
    expect([refused.status, refused.challenge, refused.ran]).toEqual([503, null, 0])
    expect(refused.headers.get('retry-after')).toBe('5')
    expect((await get('t')).status).toBe(503)
    await new Promise((resolve) => setImmediate(resolve))
    const own = warnings().filter((warning) => warning.includes(endpoint))
    expect(own).toEqual([expect.stringMatching(/^ProviderWarning: httpIntrospection: http/)])
    expect(own.join()).not.toMatch(/s3cret|html/)
    state.answer = active()
    expect((await get('t')).status).toBe(200)
  })

  it('is not needed for a missing or malformed token', async () => {
    const { asked, get } = await behind()
    expect((await get()).challenge).toBe('Bearer realm="api"')
    expect((await get('a b')).challenge).toBe(INVALID)
    expect(asked).toEqual([])
  })

  it('works with scopes, the claims decoder, the hook and the protected resource, as in httpJwt', async () => {
    const { issuer, endpoint, state } = await authorizationServer()
    const resource = protectedResource({ resource: API, authorizationServers: issuer, scopes: ['read'] })
    const opaque = httpIntrospection({
      endpoint,
      client: { id: 'api', secret: 's' },
      protectedResource: resource,
      claims: t.type({ sub: t.string, scope: t.string }),
      authenticate: (_request, claims) => claims.sub !== 'revoked' && claims,
    })
    const { get } = await tokenSite(pipe(opaque, requireScopes(['read'], { granted: scopesOf })))
    const metadata = `resource_metadata="${resource.metadataUrl}"`
    expect((await get()).challenge).toBe(`Bearer realm="api", ${metadata}, scope="read"`)
    state.answer = active()
    expect((await get('good')).status).toBe(200)
    state.answer = active({ scope: 'write' })
    expect((await get('low')).challenge).toBe(
      `Bearer realm="api", ${metadata}, error="insufficient_scope", scope="read"`,
    )
    state.answer = active({ sub: 1 })
    expect((await get('undecodable')).status).toBe(401)
    state.answer = active({ sub: 'revoked' })
    expect((await get('revoked')).status).toBe(401)
  })
})

describe('koa-with-auth:introspection-outage', () => {
  const down: Answer = (res: ServerResponse) => res.writeHead(502).end('s3cret')

  it('`begun` once with the first 503, `over` once with the next answer, also if that refuses the token', async () => {
    processWarnings()
    const records = recordsOf('introspection-outage')
    const { state, get, endpoint } = await behind({ cache: false })
    state.answer = active()
    expect([(await get('t')).status, records]).toEqual([200, []])
    state.answer = down
    expect((await Promise.all([get('a'), get('b'), get('c')])).map(({ status }) => status)).toEqual([503, 503, 503])
    expect((await get('d')).status).toBe(503)
    expect(records).toEqual([{ event: 'begun', server: endpoint, problem: 'answered 502' }])
    state.answer = { active: false }
    expect((await get('t')).status).toBe(401)
    state.answer = active()
    expect((await get('t')).status).toBe(200)
    expect(records.slice(1)).toEqual([{ event: 'over', server: endpoint, durationMs: expect.any(Number) as number }])
    state.answer = () => undefined
    expect((await get('t')).status).toBe(503)
    expect(records.slice(2)).toEqual([{ event: 'begun', server: endpoint, problem: 'did not answer in time' }])
  })

  it('an answer to a question from before the outage does not end it', async () => {
    processWarnings()
    const records = recordsOf('introspection-outage')
    const { state, get } = await behind({ cache: false, timeout: 5000 })
    const waiting: ServerResponse[] = []
    state.answer = (res: ServerResponse) => void waiting.push(res)
    const slow = get('slow')
    await expect.poll(() => waiting.length).toBe(1)
    state.answer = down
    expect((await get('t')).status).toBe(503)
    waiting[0]?.end(JSON.stringify(active()))
    expect((await slow).status).toBe(200)
    expect(records.map(({ event }) => event)).toEqual(['begun'])
  })

  it('each server has its own outages; a discovery that fails is one; neither token, secret nor query is in a record', async () => {
    const warnings = processWarnings()
    const records = recordsOf('introspection-outage')
    const { issuer } = await authorizationServer()
    const client = { id: 'api', secret: 's3cret' }
    const found = await tokenSite(httpIntrospection({ issuer, client, audience: API }))
    expect((await found.get('tok3n')).status).toBe(503)
    const asked = await authorizationServer()
    asked.state.answer = down
    const endpoint = `${asked.endpoint}?code=k3y`
    const { get } = await tokenSite(httpIntrospection({ endpoint, client, audience: API }))
    expect((await get('tok3n')).status).toBe(503)
    expect(records).toEqual([
      { event: 'begun', server: issuer, problem: 'answered 404' },
      { event: 'begun', server: asked.endpoint, problem: 'answered 502' },
    ])
    await new Promise((resolve) => setImmediate(resolve))
    expect(JSON.stringify([records, warnings()])).not.toMatch(/tok3n|s3cret|k3y/)
  })
})

describe('the cache of answers', () => {
  it('200 parallel requests with one token ask once; later ones do not ask until maxAge', async () => {
    const clock = stoppedClock()
    const { state, asked, get } = await behind({ timeout: 5000 })
    state.answer = active()
    const answers = await Promise.all(Array.from({ length: 200 }, () => get('t')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
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
    const { state, get } = await behind()
    state.answer = active()
    expect((await get('t')).status).toBe(200)
    state.answer = { active: false }
    clock.move(29_999)
    clock.set(-29_999)
    expect((await get('t')).status).toBe(200)
    clock.move(1)
    expect((await get('t')).status).toBe(401)
  })

  it('ends at exp; a revoked token is refused after maxAge', async () => {
    const clock = stoppedClock()
    const { state, asked, get } = await behind()
    state.answer = active({ exp: seconds() + 10 })
    expect((await get('short')).status).toBe(200)
    state.answer = active()
    expect((await get('long')).status).toBe(200)
    state.answer = { active: false }
    clock.move(11_000)
    expect((await get('short')).status).toBe(401)
    expect((await get('long')).status).toBe(200)
    clock.move(20_000)
    expect((await get('long')).status).toBe(401)
    expect(asked).toHaveLength(4)
  })

  it('its time begins with the question, not with the answer', async () => {
    const clock = stoppedClock()
    const { state, asked, get } = await behind()
    state.answer = (res: ServerResponse) => {
      clock.move(1000)
      res.end(JSON.stringify(active()))
    }
    expect((await get('t')).status).toBe(200)
    clock.move(28_999)
    expect([(await get('t')).status, asked.length]).toEqual([200, 1])
    clock.move(1)
    expect([(await get('t')).status, asked.length]).toEqual([200, 2])
  })

  it('with cache: false each request asks; a hook cannot change the claims of another request', async () => {
    const seen: unknown[] = []
    const authenticate = (_request: unknown, claims: { roles?: string[] }) => {
      seen.push([...(claims.roles ?? [])])
      claims.roles?.push('admin')
      return claims
    }
    for (const cache of [false, undefined] as const) {
      const { state, get } = await behind({ authenticate, ...(cache === false && { cache }) } as object)
      state.answer = active({ roles: ['user'] })
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
