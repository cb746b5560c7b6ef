/**
 * Tokens as providers issue them: in another field or a cookie, without an audience, of many tenants, and revoked. The claims of each
 * row are those that the provider documents.
 */
import Router from '@koa/router'
import { fromCookie, fromHeader, fromQuery, UnavailableError, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { httpIntrospection, httpJwt, type FindIssuer, type Issuer, type JwtClaims } from 'koa-with-auth/jwt'
import { mockRequest } from 'koa-with-auth/testing'
import type { Request } from '../../src/core/Request.js'
import { createClient } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { linesOf, lineText } from '../../src/audit/policy.js'
import { API, identityProvider, seconds, signedWith, signingKey } from '../support/servers/identityProvider.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { restartable } from '../support/servers/server.js'
import { expectRefused, tokenSite } from '../support/sites/tokenSite.js'

type Options = Parameters<typeof httpJwt<JwtClaims, JwtClaims>>[0]

const siteOf = (options: Partial<Options> & Pick<Options, 'issuer'>) =>
  tokenSite(httpJwt({ audience: API, ...options }))

const verdict = async (answer: ReturnType<Awaited<ReturnType<typeof tokenSite>>['get']>) => {
  const { status, ran } = await answer
  return [status, ran]
}

describe('from', () => {
  it('a header: Authorization is not read, Vary names the field, and a write of another site passes', async () => {
    const provider = await identityProvider()
    const token = await provider.token()
    const site = await siteOf({ issuer: provider.issuer, from: fromHeader('Cf-Access-Jwt-Assertion') })
    const good = await site.get(undefined, { 'cf-access-jwt-assertion': token })
    expect([good.status, good.ran]).toEqual([200, 1])
    expect(good.headers.get('vary')).toMatch(/Cf-Access-Jwt-Assertion/i)
    const other = await site.get(token)
    expectRefused(other, 'Bearer realm="api"')
    const write = await site.get(
      undefined,
      { 'cf-access-jwt-assertion': token, 'sec-fetch-site': 'cross-site' },
      'POST',
    )
    expect([write.status, write.ran]).toEqual([200, 1])
  })

  it.each([
    ['a cookie', { from: fromCookie('session') }, (token: string) => ({ cookie: `session=${token}` })],
    [
      'a header that a proxy makes of a cookie',
      { from: fromHeader('X-Jwt'), ambient: true },
      (token: string) => ({ 'x-jwt': token }),
    ],
  ])('%s: a write of another site is refused, and reads pass', async (_case, options, sent) => {
    const provider = await identityProvider()
    const site = await siteOf({ issuer: provider.issuer, ...options })
    const headers = sent(await provider.token())
    expect((await site.get(undefined, headers)).ran).toBe(1)
    const forged = await site.get(undefined, { ...headers, origin: 'https://evil.example' }, 'POST')
    expect([forged.status, forged.ran]).toEqual([403, 0])
    expect(forged.text).toContain('CSRF check Failed')
    const own = await site.get(undefined, { ...headers, 'sec-fetch-site': 'same-origin' }, 'POST')
    expect([own.status, own.ran]).toEqual([200, 1])
  })

  it('a query, for EventSource: the response asks for no Referer', async () => {
    const provider = await identityProvider()
    const site = await siteOf({ issuer: provider.issuer, from: fromQuery('access_token') })
    const answer = await fetch(`${site.url}/me?access_token=${await provider.token()}`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('referrer-policy')).not.toBeNull()
  })

  it('twice, or something else than a token, is a 401', async () => {
    const provider = await identityProvider()
    const site = await siteOf({ issuer: provider.issuer, from: fromCookie('s') })
    const token = await provider.token()
    for (const cookie of [`s=${token}; s=${token}`, 's=', 's="x"', `s=${token} x`]) {
      const answer = await site.get(undefined, { cookie })
      expect([cookie.length, answer.status, answer.ran]).toEqual([cookie.length, 401, 0])
    }
  })

  it('another function, or a key-bound token, is a TypeError', () => {
    const base = { issuer: 'https://login.example', audience: API }
    expect(() => httpJwt({ ...base, from: (() => undefined) as never })).toThrow(/from \}\) must be fromHeader/)
    const dpop = { spent: { use: async () => true }, origin: 'https://api.example' }
    expect(() => httpJwt({ ...base, from: fromCookie('s'), bound: { dpop } })).toThrow(
      /is sent in the Authorization field/,
    )
  })
})

describe('audience: false', () => {
  it.each<readonly [string, object, number]>([
    ['Cognito: client_id, and no aud', { aud: undefined, client_id: 'web', token_use: 'access' }, 200],
    ['Clerk: azp, and no aud', { aud: undefined, azp: 'web', sid: 'sess_1' }, 200],
    ['Hydra: an empty aud', { aud: [], client_id: 'web', scp: ['read'] }, 200],
    ['another client', { aud: undefined, client_id: 'other' }, 401],
    ['another party beside the right client', { aud: undefined, client_id: 'web', azp: 'other' }, 401],
    ['no client at all', { aud: undefined }, 401],
    ['an aud that is no string', { aud: 5, client_id: 'web' }, 401],
  ])('%s: %#', async (_case, claims, status) => {
    const provider = await identityProvider()
    const site = await siteOf({ issuer: provider.issuer, audience: false, authorizedParties: ['web'] })
    const answer = await site.get(await provider.token(claims as never))
    expect([answer.status, answer.ran]).toEqual([status, status === 200 ? 1 : 0])
  })

  it('introspection alike: no aud, or an empty one, for the right client', async () => {
    let says: object = {}
    const server = await restartable((_req, res) => res.end(JSON.stringify({ active: true, ...says })))
    const site = await tokenSite(
      httpIntrospection({
        endpoint: `${server.origin}/introspect`,
        client: { id: 'api', secret: 's' },
        audience: false,
        authorizedParties: ['web'],
        cache: false,
      }),
    )
    for (const [answer, status] of [
      [{ client_id: 'web' }, 200],
      [{ client_id: 'web', aud: [] }, 200],
      [{ client_id: 'other' }, 401],
      [{}, 401],
    ] as const) {
      says = answer
      expect((await site.get('opaque')).status).toBe(status)
    }
  })

  it('the table of the audit and the policy file say it', () => {
    const of = { audience: false, authorizedParties: ['web'] } as const
    const endpoint = 'https://login.example/introspect'
    const router = new Router()
      .get('/jwt', withAuth(httpJwt({ issuer: 'https://login.example', ...of })), () => {})
      .get('/opaque', withAuth(httpIntrospection({ endpoint, client: { id: 'api', secret: 's' }, ...of })), () => {})
    const audited = audit(router)
    expect(audited.operations.map(({ protection }) => protection)).toStrictEqual(
      Array(2).fill('bearer of any audience'),
    )
    expect(linesOf(audited).map(lineText).join()).toMatch(
      /GET \/jwt; who=\[bearer of any audience .*GET \/opaque; who=\[bearer of any audience /s,
    )
  })

  it('without authorizedParties it is a TypeError', () => {
    expect(() => httpJwt({ issuer: 'https://login.example', audience: false })).toThrow(/needs authorizedParties/)
    expect(() => httpJwt({ issuer: 'https://login.example', audience: false, authorizedParties: [] })).toThrow(
      TypeError,
    )
  })
})

/** Issuers that share one address of keys. */
const tenants = async () => {
  const key = await signingKey('ES256', 'shared')
  let fetched = 0
  const server = await restartable((_req, res) => {
    fetched += 1
    res.end(JSON.stringify({ keys: [key.jwk] }))
  })
  const jwksUri = `${server.origin}/keys`
  const asked: string[] = []
  const known = new Set(Array.from({ length: 20 }, (_, n) => `https://login.example/tenant-${n}/v2.0`))
  const issuer: FindIssuer = (iss) => {
    asked.push(iss)
    return known.has(iss) ? { issuer: iss, jwksUri } : undefined
  }
  const token = (iss: string, over: object = {}) =>
    signedWith(key, { iss, aud: API, sub: 'anna', iat: seconds(), exp: seconds() + 300, ...over })
  return { issuer, asked, known, token, jwksUri, fetched: () => fetched }
}

describe('issuers', () => {
  it('a list that comes from a data base is typed, and an empty one is a TypeError', () => {
    const list: string[] = ['https://one.example', 'https://two.example']
    expect(() => httpJwt({ issuer: list, audience: API })).not.toThrow()
    expect(() => httpJwt({ issuer: [], audience: API })).toThrow(/name at least one issuer/)
  })

  it('twenty tenants with one address of keys: one fetch, also at once; unknown ones are never fetched', async () => {
    const { issuer, token, known, fetched } = await tenants()
    const site = await siteOf({ issuer })
    const answers = await Promise.all([...known].map(async (iss) => site.get(await token(iss))))
    expect(answers.map(({ status }) => status)).toEqual([...known].map(() => 200))
    expect(fetched()).toBe(1)
    for (let n = 0; n < 5; n++) {
      const answer = await site.get(await token(`https://login.example/unknown-${n}/v2.0`))
      expect([answer.status, answer.ran]).toEqual([401, 0])
    }
    expect(fetched()).toBe(1)
  })

  it('200 issuers of a list with one address of keys: one fetch', async () => {
    const { jwksUri, token, fetched } = await tenants()
    const all = Array.from({ length: 200 }, (_, n) => `https://login.example/listed-${n}`)
    const jwt = httpJwt({ issuer: all.map((issuer) => ({ issuer, jwksUri })), audience: API })
    await jwt.ready()
    const site = await tokenSite(jwt)
    const answers = await Promise.all([all[0], all[199]].map(async (iss = '') => site.get(await token(iss))))
    expect([answers.map(({ status }) => status), fetched()]).toEqual([[200, 200], 1])
  })

  it('that depends on iss alone is asked once for a known one, and again for an unknown one', async () => {
    const { issuer, asked, token, known } = await tenants()
    const ofIssuerAlone = (...given: readonly [string]) => {
      expect(given).toHaveLength(1)
      return Reflect.apply(issuer, undefined, given) as Issuer | undefined
    }
    const site = await siteOf({ issuer: { ofIssuerAlone } })
    const [first = ''] = known
    for (let n = 0; n < 3; n++) expect((await site.get(await token(first, { jti: `${n}` }))).status).toBe(200)
    expect(asked).toEqual([first])
    const late = 'https://login.example/late/v2.0'
    expect((await site.get(await token(late))).status).toBe(401)
    known.add(late)
    expect((await site.get(await token(late))).status).toBe(200)
  })

  it('R26 one that takes the request is asked for each: an issuer that was found for one tenant is none of another', async () => {
    const { jwksUri, token, known, fetched } = await tenants()
    const [red = '', blue = ''] = known
    const issuers = new Map(Object.entries({ red, blue }))
    const ofTenant: FindIssuer = (iss, request) =>
      issuers.get(request.get('tenant')) === iss ? { issuer: iss, jwksUri } : undefined
    const forms: ReadonlyArray<FindIssuer> = [
      ofTenant,
      async (...given: Parameters<FindIssuer>) => ofTenant(...given),
      (iss, request = mockRequest()) => ofTenant(iss, request),
      (iss, ...[request]) => ofTenant(iss, request),
      function (iss) {
        // eslint-disable-next-line prefer-rest-params -- Safe: it is called with two
        return ofTenant(iss, arguments[1] as Request)
      },
    ]
    for (const issuer of forms) {
      const site = await siteOf({ issuer })
      const ofRed = await token(red)
      const answers = [await site.get(ofRed, { tenant: 'red' }), await site.get(ofRed, { tenant: 'blue' })]
      expect(answers.flatMap(({ status, ran }) => [status, ran])).toEqual([200, 1, 401, 0])
      expect((await site.get(await token(blue), { tenant: 'blue' })).status).toBe(200)
    }
    expect(fetched()).toBe(forms.length)
  })

  it.each(['changes and returns again', 'changes inside of a list', 'makes anew'])(
    'an object that the function %s is another issuer',
    async (how) => {
      const { jwksUri, token, known } = await tenants()
      const [issuer = ''] = known
      const made = () => ({ issuer, jwksUri, audience: ['red'] as [string] })
      const same = made()
      const site = await siteOf({
        issuer: (_iss, request) => {
          const own = how === 'makes anew' ? made() : same
          if (how === 'changes inside of a list') own.audience[0] = request.get('tenant')
          else own.audience = [request.get('tenant')]
          return own
        },
      })
      const [ofRed, ofBlue] = [await token(issuer, { aud: 'red' }), await token(issuer, { aud: 'blue' })]
      // while the keys are fetched
      const atOnce = await Promise.all(['red', 'blue'].map((tenant) => site.get(ofBlue, { tenant })))
      const statuses = [...atOnce, await site.get(ofRed, { tenant: 'red' }), await site.get(ofRed, { tenant: 'blue' })]
      expect(statuses.map(({ status }) => status)).toEqual([401, 200, 200, 401])
    },
  )

  it('an issuer whose name is not the iss of the token admits no caller', async () => {
    const { jwksUri, token, known } = await tenants()
    const [first = '', second = ''] = known
    const site = await siteOf({ issuer: () => ({ issuer: first, jwksUri }) })
    expect((await site.get(await token(second))).status).toBe(401)
    expect((await site.get(await token(first))).status).toBe(200)
  })

  it('one that is asynchronous is awaited; one that throws is a 500, and an outage of it a 503', async () => {
    const { jwksUri, token, known } = await tenants()
    const [first = ''] = known
    const late = await siteOf({ issuer: async (iss) => ({ issuer: iss, jwksUri }) })
    expect((await late.get(await token(first))).status).toBe(200)
    const bug = await siteOf({ issuer: async () => Promise.reject(new Error('bug')) })
    expect(await verdict(bug.get(await token(first)))).toEqual([500, 0])
    const failing = (): never => {
      throw new UnavailableError('the data base is down')
    }
    const down = await siteOf({ issuer: failing })
    expect(await verdict(down.get(await token(first)))).toEqual([503, 0])
  })

  it('keeps a bounded number of tenants', async () => {
    const { jwksUri, token, asked, fetched } = await tenants()
    const ofIssuerAlone = (iss: string) => (asked.push(iss), { issuer: iss, jwksUri })
    const site = await siteOf({ issuer: { ofIssuerAlone }, verified: false })
    const first = 'https://login.example/t-0'
    await site.get(await token(first))
    for (let n = 1; n <= 1000; n++) await site.get(await token(`https://login.example/t-${n}`))
    const before = asked.length
    await site.get(await token(first))
    expect(asked.length).toBe(before + 1)
    expect(fetched()).toBe(1)
  })
})

describe('revoked', () => {
  it('is asked after the signature, at each request; only false lets in', async () => {
    const provider = await identityProvider()
    let answer: unknown = false
    const asked: unknown[] = []
    const site = await siteOf({
      issuer: provider.issuer,
      revoked: ({ jti }) => {
        asked.push(jti)
        if (answer instanceof Error) throw answer
        return (typeof answer === 'function' ? (answer as () => unknown)() : answer) as boolean
      },
    })
    const token = await provider.token({ jti: 'j1' })
    expect((await site.get(token)).status).toBe(200)
    for (const [at, [next, status]] of [
      [true, 401],
      [undefined, 401],
      ['false', 401],
      [Promise.resolve(true), 401],
      [Promise.resolve(), 401],
      [Promise.resolve(false), 200],
      [new Error('bug'), 500],
      [new UnavailableError('down'), 503],
      [() => Promise.reject(new UnavailableError('down')), 503],
      [false, 200] as const,
    ].entries()) {
      answer = next
      const got = await site.get(token)
      expect([at, got.status, got.ran]).toEqual([at, status, status === 200 ? 1 : 0])
      if (status === 401) expect(got.challenge).toContain('error="invalid_token"')
    }
    const before = asked.length
    expect((await site.get(`${token.slice(0, -4)}AAAA`)).status).toBe(401)
    expect(asked.length).toBe(before)
  })
})

describeWithRedis('revoked, by a store of keys', () => {
  const redis = redisDatabase()

  it('one token by its jti, or all of a user until now; an outage of the store is a 503', async () => {
    const provider = await identityProvider()
    const client = createClient({ url: redis().url })
    client.on('error', () => {})
    await client.connect()
    onTestFinished(() => client.destroy())
    const site = await siteOf({
      issuer: provider.issuer,
      revoked: async ({ jti = '', sub = '', iat = 0 }) => {
        const asked = client.mGet([`revoked:${jti}`, `since:${sub}`]).catch(() => {
          throw new UnavailableError('the store of revoked tokens')
        })
        const [id, since] = await asked
        return id !== null || (since !== null && iat <= Number(since))
      },
    })
    const now = seconds()
    const [one, two, other] = await Promise.all([
      provider.token({ jti: 'j1', sub: 'anna', iat: now - 10 }),
      provider.token({ jti: 'j2', sub: 'anna', iat: now - 10 }),
      provider.token({ sub: 'bert', iat: now - 10 }),
    ])
    const statuses = async () =>
      Promise.all([one, two, other].map((token) => site.get(token).then(({ status }) => status)))
    expect(await statuses()).toEqual([200, 200, 200])
    await client.set('revoked:j1', '1', { EX: 3600 })
    expect(await statuses()).toEqual([401, 200, 200])
    await client.set('since:anna', String(now - 5), { EX: 3600 })
    expect(await statuses()).toEqual([401, 401, 200])
    expect((await site.get(await provider.token({ sub: 'anna', iat: now }))).status).toBe(200)
    client.destroy()
    expect(await statuses()).toEqual([503, 503, 503])
  })
})

describe('Entra, for all tenants', () => {
  it('a known tenant whose tid is that of iss gets in; another tid, none, or an unknown tenant does not', async () => {
    const { jwksUri, token, fetched } = await tenants()
    const [ours, others] = ['9188040d-6c67-4c5b-b112-36a304b66dad', '72f988bf-86f1-41af-91ab-2d7cd011db47']
    const entra = /^https:\/\/login\.microsoftonline\.com\/([0-9a-f-]{36})\/v2\.0$/
    const jwt = httpJwt({
      issuer: (iss) => (entra.exec(iss)?.[1] === ours ? { issuer: iss, jwksUri } : undefined),
      audience: API,
      authenticate: (_request, claims) => entra.exec(claims.iss)?.[1] === claims['tid'] && claims,
    })
    const site = await tokenSite(jwt)
    const of = async (tenant: string, tid: string | undefined) => {
      const iss = `https://login.microsoftonline.com/${tenant}/v2.0`
      return site.get(await token(iss, tid === undefined ? {} : { tid }))
    }
    expect(await verdict(of(others, others))).toEqual([401, 0])
    expect(fetched()).toBe(0)
    expect(await verdict(of(ours, ours))).toEqual([200, 1])
    for (const tid of [others, undefined]) {
      expect(await verdict(of(ours, tid))).toEqual([401, 0])
    }
    expect(fetched()).toBe(1)
  })
})
