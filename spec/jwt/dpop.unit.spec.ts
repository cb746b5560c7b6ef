/** Bound tokens: the examples of the RFCs, the options that are refused, and what OpenAPI and the audit say. */
import { readFileSync } from 'node:fs'
import Router from '@koa/router'
import { pipe } from 'fp-ts/lib/function.js'
import * as E from 'fp-ts/lib/Either.js'
import { requireScopes, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { httpJwt, scopesOf, type BoundOptions, type HttpJwt, type JwtClaims } from 'koa-with-auth/jwt'
import { openApi } from 'koa-with-auth/openapi'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import { calculateJwkThumbprint } from 'jose'
import { describe, expect, it, vi } from 'vitest'
import { dpopOf } from '../../src/jwt/dpop.js'
import { keyOfProof } from '../../src/jwt/signature.js'
import { dpopClient } from '../support/servers/dpopClient.js'
import { stoppedClock } from '../support/runs/clock.js'
import { invalidIn } from '../support/papers/openapiTools.js'
import { repository } from '../support/projects/typecheck.js'

interface Example {
  readonly method: string
  readonly uri: string
  readonly iat: number
  readonly proof: string
}

// Safe: it is a file of this repository
const { dpop } = JSON.parse(readFileSync(`${repository}spec/data/bound-tokens.json`, 'utf8')) as {
  readonly dpop: {
    readonly thumbprint: string
    readonly jwk: Readonly<Record<string, string>>
    readonly resource: Example & { readonly token: string }
    readonly token: Example
  }
}

const spent = () => oneTimeIds(memoryStore())

const checked = async (
  { method, uri, iat, proof }: Example,
  token: string,
  now = iat,
  thumbprint = dpop.thumbprint,
) => {
  stoppedClock()
  vi.setSystemTime(now * 1000)
  const { origin, pathname } = new URL(uri)
  const check = dpopOf({ spent: spent(), origin }, 5).checking({}).ofToken
  const result = await check(mockRequest({ method, url: pathname, fields: [['DPoP', proof]] }), token, thumbprint)
  return E.isRight(result) ? 'good' : result.left.challenge?.parameters['error_description']
}

describe('the examples of RFC 9449', () => {
  it('§6.1: the thumbprint of the key', () => {
    expect(keyOfProof(dpop.jwk, dpop.thumbprint)).toHaveProperty('all')
    expect(keyOfProof(dpop.jwk, `${dpop.thumbprint}A`)).toBe('another')
  })

  it('§7.1: the proof for a protected resource is good then, and not a minute later, earlier, or for another token', async () => {
    const { resource } = dpop
    expect(await checked(resource, resource.token)).toBe('good')
    expect(await checked(resource, resource.token, resource.iat + 65)).toBe('good')
    expect(await checked(resource, resource.token, resource.iat - 5)).toBe('good')
    for (const at of [66, -6]) {
      expect(await checked(resource, resource.token, resource.iat + at)).toBe('iat is too old, or in the future')
    }
    expect(await checked(resource, 'another')).toBe('ath is not of this token')
    expect(await checked(resource, resource.token, resource.iat, 'x')).toBe('the token is bound to another key')
    expect(await checked({ ...resource, method: 'POST' }, resource.token)).toBe('htm or htu is not of this request')
    expect(await checked({ ...resource, method: 'HEAD' }, resource.token)).toBe('htm or htu is not of this request')
    const changed = { ...resource, proof: resource.proof.replace('.2oW9', '.2oW8') }
    expect(await checked(changed, resource.token)).toBe('the signature is not of the key in jwk')
  })

  it('§4.1: the proof for a token request has no ath, so it is good for no resource', async () => {
    expect(await checked(dpop.token, dpop.resource.token)).toBe('ath is not of this token')
  })
})

const matches = async (url: string, htu: string, origin = 'https://api.example') => {
  const client = await dpopClient()
  const proof = await client.proof('token', { claims: { htu } })
  const check = dpopOf({ spent: spent(), origin }, 5).checking({}).ofToken
  return E.isRight(await check(mockRequest({ url, fields: [['DPoP', proof]] }), 'token', client.thumbprint))
}

describe('the URI of a request', () => {
  const ORIGIN = 'https://api.example'

  it.each([
    ['/a%2fb', '/a%2Fb'],
    ['/a%2Fb', '/a%2fb'],
    ['/%7Eanna', '/~anna'],
    ['/~anna', '/%7eanna'],
    ['/caf%c3%a9', '/café'],
    ['/me?a=/../b', '/me'],
    ['http://inside.example', '/'],
    ['//me', '//me'],
    ['/', ''],
    ['/me', '/%6d%65'],
    ['/me', '/x/../me'],
    // RFC 9449 §4.3: both are ignored
    ['/me', '/me?a=b#c'],
  ])('%s is the URI of %s (RFC 3986 §6.2.2)', async (url, path) => {
    for (const origin of [ORIGIN, 'https://api.example:443', 'HTTPS://API.EXAMPLE'])
      expect(await matches(url, origin + path)).toBe(true)
  })

  it.each([
    ['/a/b', '/a%2Fb'],
    ['/me', '/me/'],
    ['/me', '//me'],
    ['/me', '/Me'],
    ['/%2525', '/%25'],
    // a router takes these literally
    ['/x/../me', '/me'],
    ['/x/%2e%2E/me', '/me'],
    ['/./me', '/me'],
    ['/me/..', '/'],
    ['/me/.', '/me/'],
  ])('%s is not the URI of %s', async (url, path) => {
    expect(await matches(url, ORIGIN + path)).toBe(false)
  })
})

describe('the URI behind a proxy that cuts off a prefix', () => {
  it.each([
    ['https://api.example/svc1/me', true],
    ['https://api.example/svc1', false],
    ['https://api.example/me', false],
    ['https://api.example/svc2/me', false],
    ['https://api.example/svc1/../me', false],
    ['https://evil.example/svc1/me', false],
    ['https://anna@api.example/svc1/me', false],
    ['https://:p@api.example/svc1/me', false],
  ])('%s is the URI of /me: %s', async (htu, expected) => {
    expect(await matches('/me', htu, 'https://api.example/svc1')).toBe(expected)
  })

  it.each([
    'https://api.example/svc1/',
    'https://api.example//svc1',
    'https://api.example/a%2fb',
    'https://api.example/x?y',
  ])('%s is a TypeError', (origin) => {
    expect(() => dpopOf({ spent: spent(), origin }, 5)).toThrow(TypeError)
  })
})

it('a proof of a stranger is checked, and its id is not used, so that nobody fills the store', async () => {
  const client = await dpopClient()
  const used: number[] = []
  const use = async (_id: string, lifetime: number) => used.push(lifetime) > 0
  const checks = dpopOf({ spent: { use }, origin: 'https://api.example' }, 5).checking({})
  const proof = await client.proof('', { claims: { ath: undefined } })
  const request = mockRequest({ url: '/me', fields: [['DPoP', proof]] })
  expect([await checks.ofStranger(request), used]).toEqual([E.right(client.thumbprint), []])
  // a minute, the tolerance before and after it, and the time of a decision
  expect([await checks.ofIssuing(request), used]).toEqual([E.right(client.thumbprint), [80_000]])
})

describe('the key of a proof', () => {
  it('is not so long that a check takes longer than other requests can wait', async () => {
    const rsa = async (n: number, e: string) => {
      const jwk = { kty: 'RSA', n: `w${'A'.repeat(n - 2)}B`, e }
      return keyOfProof(jwk, await calculateJwkThumbprint(jwk))
    }
    for (const good of [await rsa(342, 'AQAB'), await rsa(683, 'AQAB')]) expect(good).toHaveProperty('all.length', 1)
    expect([await rsa(684, 'AQAB'), await rsa(342, 'AQABAQ')]).toEqual([undefined, undefined])
  })
})

const of = { issuer: 'https://login.example/', audience: 'https://api.example' }
const good = { spent: spent(), origin: 'https://api.example' }

describe('httpJwt({ bound }) refuses these options with a TypeError', () => {
  const having = (own: object) => ({ dpop: { ...good, ...own } })
  it.each<[string, unknown, RegExp]>([
    ['nothing', {}, /bound: { \.\.\. } }\) must have dpop or certificate/],
    ['a string', 'dpop', /takes an object of options, not a string/],
    ['null', null, /takes an object of options, not null/],
    ['an unknown option', { dpop: good, dPoP: 1 }, /no option "dPoP"; there are/],
    ['required as a string', { dpop: good, required: 'yes' }, /bound: { required } }\) must be true or false/],
    [
      'no store',
      { dpop: { origin: good.origin } },
      /dpop: { spent } } }\) has no method use; pass oneTimeIds\(store\)/,
    ],
    ['a store of sessions', having({ spent: {} }), /has no method use/],
    ['no origin', { dpop: { spent: good.spent } }, /dpop: { origin } } }\)/],
    ['an origin by http', having({ origin: 'http://api.example' }), /https/],
    ['an origin with a path', having({ origin: 'https://api.example/' }), /such as "https:\/\/api.example"/],
    ['an origin with its default port', having({ origin: 'https://api.example:443' }), /must be an origin/],
    ['a prefix after its default port', having({ origin: 'https://api.example:443/a' }), /must be an origin/],
    ['no algorithms', having({ algorithms: [] }), /at least one algorithm/],
    ['a secret', having({ algorithms: ['HS256'] }), /HS256 needs/],
    ['none', having({ algorithms: ['none'] }), /"none" is not allowed/],
    ['maxAge 0', having({ maxAge: 0 }), /maxAge } } }\) must be a number of milliseconds, at least 1000/],
    ['no keys of nonces', having({ nonce: { keys: [] } }), /nonce: { keys } } } }\) must be an array of secrets/],
    ['a short key', having({ nonce: { keys: ['x'.repeat(31)] } }), /32 bytes or more/],
    ['a key that is a number', having({ nonce: { keys: [7] } }), /32 bytes or more/],
    ['a lifetime of 0', having({ nonce: { keys: ['x'.repeat(32)], lifetime: 0 } }), /lifetime/],
  ])('%s', (_what, bound, message) => {
    const make = () => httpJwt({ ...of, bound: bound as BoundOptions })
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })
})

const documentOf = (auth: HttpJwt<JwtClaims>) => {
  const router = new Router()
  router.get('/me', withAuth(pipe(auth, requireScopes(['read'], { granted: scopesOf }))), () => {})
  return { document: openApi(router, { title: 't', version: '1' }), router }
}

describe('a bound token', () => {
  const issuer = { issuer: 'https://login.example/', jwksUri: 'https://login.example/jwks' }
  it('is in OpenAPI as the http scheme dpop beside bearer, and alone if it is required', async () => {
    const { document } = documentOf(httpJwt({ ...of, issuer, bound: { dpop: good } }))
    expect(document.components?.securitySchemes).toEqual({
      bearer_JWT: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
      dpop: { type: 'http', scheme: 'dpop' },
    })
    expect(document.paths?.['/me']?.get?.security).toEqual([{ bearer_JWT: ['read'] }, { dpop: ['read'] }])
    expect(await invalidIn(document)).toBeUndefined()
    const required = documentOf(httpJwt({ ...of, issuer, bound: { dpop: good, required: true } }))
    expect(required.document.paths?.['/me']?.get?.security).toEqual([{ dpop: ['read'] }])
  })

  it('has a name for each scheme', () => {
    const { document } = documentOf(httpJwt({ ...of, issuer, bound: { dpop: good }, schemeName: 'login' }))
    expect(Object.keys(document.components?.securitySchemes ?? {})).toEqual(['login', 'loginDPoP'])
  })

  it('is in the audit, so a policy file notices if the binding is dropped', () => {
    const wordsOf = (bound: BoundOptions | undefined) =>
      audit(documentOf(httpJwt({ ...of, bound })).router).operations[0]?.ways
    const [plain, both, required] = [
      wordsOf(undefined),
      wordsOf({ dpop: good }),
      wordsOf({ dpop: good, required: true }),
    ].map((ways) => JSON.stringify(ways))
    expect(both).toContain('dpop issuer https://login.example/ audience https://api.example bound to a key')
    expect(required).not.toContain('bearer')
    const byHeader = { from: { header: 'Client-Cert', proxies: ['10.0.0.1'] } } as const
    const [socket, header] = [{ from: 'socket' } as const, byHeader].map((certificate) =>
      JSON.stringify(wordsOf({ certificate })),
    )
    expect(socket).toContain('audience https://api.example bound to a certificate from socket')
    expect(header).toContain('bound to a certificate from header Client-Cert of 10.0.0.1')
    expect(new Set([plain, both, required, socket, header]).size).toBe(5)
    expect(dpopOf({ ...good, algorithms: ['ES256'], maxAge: 9000 }, 5).words).toMatch(/ES256.*9000/)
  })
})
