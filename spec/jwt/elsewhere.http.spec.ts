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
import { stoppedClock } from '../support/runs/clock.js'
import { API, seconds, signedWith, signingKey } from '../support/servers/identityProvider.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { active, introspectionServer } from '../support/servers/introspectionServer.js'
import { restartable } from '../support/servers/server.js'
import { expectRefused, jwtSite, tokenSite } from '../support/sites/tokenSite.js'

describe('from', () => {
  it('a header: Authorization is not read, Vary names the field, and a write of another site passes', async () => {
    const { provider, get, outcome } = await jwtSite({ from: fromHeader('Cf-Access-Jwt-Assertion') })
    const token = await provider.token()
    const headers = { 'cf-access-jwt-assertion': token }
    const good = await get(undefined, headers)
    expect([good.status, good.ran]).toEqual([200, 1])
    expect(good.headers.get('vary')).toMatch(/Cf-Access-Jwt-Assertion/i)
    expectRefused(await get(token), 'Bearer realm="api"')
    expect(await outcome(undefined, { ...headers, 'sec-fetch-site': 'cross-site' }, 'POST')).toEqual([200, 1])
  })

  it.each([
    ['a cookie', { from: fromCookie('session') }, 'cookie', 'session='],
    ['a header that a proxy makes of a cookie', { from: fromHeader('X-Jwt'), ambient: true }, 'x-jwt', ''],
  ])('%s: a write of another site is refused, and reads pass', async (_case, options, field, before) => {
    const { provider, get, outcome } = await jwtSite(options)
    const headers = { [field]: `${before}${await provider.token()}` }
    expect(await outcome(undefined, headers)).toEqual([200, 1])
    const forged = await get(undefined, { ...headers, origin: 'https://evil.example' }, 'POST')
    expect([forged.status, forged.ran]).toEqual([403, 0])
    expect(forged.text).toContain('CSRF check Failed')
    expect(await outcome(undefined, { ...headers, 'sec-fetch-site': 'same-origin' }, 'POST')).toEqual([200, 1])
  })

  it('a query, for EventSource: the response asks for no Referer', async () => {
    const { provider, url } = await jwtSite({ from: fromQuery('access_token') })
    const answer = await fetch(`${url}/me?access_token=${await provider.token()}`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('referrer-policy')).not.toBeNull()
  })

  it('twice, or something else than a token, is a 401', async () => {
    const { provider, outcome } = await jwtSite({ from: fromCookie('s') })
    const token = await provider.token()
    for (const cookie of [`s=${token}; s=${token}`, 's=', 's="x"', `s=${token} x`]) {
      expect(await outcome(undefined, { cookie }), cookie).toEqual([401, 0])
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
    const { provider, outcome } = await jwtSite({ audience: false, authorizedParties: ['web'] })
    expect(await outcome(await provider.token(claims as never))).toEqual([status, status === 200 ? 1 : 0])
  })

  it('introspection alike: no aud, or an empty one, for the right client', async () => {
    const { options, state } = await introspectionServer()
    const opaque = httpIntrospection({ ...options, audience: false, authorizedParties: ['web'] })
    const { status } = await tokenSite(opaque)
    for (const [says, expected] of [
      [{ client_id: 'web' }, 200],
      [{ client_id: 'web', aud: [] }, 200],
      [{ client_id: 'other' }, 401],
      [{}, 401],
    ] as const) {
      state.answer = active({ aud: undefined, ...says })
      expect(await status('opaque')).toBe(expected)
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
  const { origin, stop } = await restartable((_req, res) => {
    fetched += 1
    res.end(JSON.stringify({ keys: [key.jwk] }))
  })
  const jwksUri = `${origin}/keys`
  const asked: string[] = []
  const known = new Set(Array.from({ length: 20 }, (_, n) => `https://login.example/tenant-${n}/v2.0`))
  const issuer: FindIssuer = (iss) => {
    asked.push(iss)
    return known.has(iss) ? { issuer: iss, jwksUri } : undefined
  }
  const ofIssuerAlone = (...given: readonly [string]) => {
    expect(given).toHaveLength(1)
    return Reflect.apply(issuer, undefined, given) as Issuer | undefined
  }
  const token = (iss: string, over: object = {}) =>
    signedWith(key, { iss, aud: API, sub: 'anna', iat: seconds(), exp: seconds() + 300, ...over })
  const [first = '', second = ''] = known
  return { issuer, ofIssuerAlone, asked, known, first, second, token, jwksUri, fetched: () => fetched, stop }
}

describe('issuers', () => {
  it('a list that comes from a data base is typed, and an empty one is a TypeError', () => {
    const list: string[] = ['https://one.example', 'https://two.example']
    expect(() => httpJwt({ issuer: list, audience: API })).not.toThrow()
    expect(() => httpJwt({ issuer: [], audience: API })).toThrow(/name at least one issuer/)
  })

  it('twenty tenants with one address of keys: one fetch, also at once; unknown ones are never fetched', async () => {
    const { issuer, token, known, fetched } = await tenants()
    const { outcome } = await jwtSite({ issuer })
    const all = [...known]
    const outcomes = await Promise.all(all.map(async (iss) => outcome(await token(iss))))
    expect(outcomes.map(([status]) => status)).toEqual(all.map(() => 200))
    for (let n = 0; n < 5; n++) {
      expect(await outcome(await token(`https://login.example/unknown-${n}/v2.0`))).toEqual([401, 0])
    }
    expect(fetched()).toBe(1)
  })

  it('a tenant whose jwksUri is the issuer of another tenant changes no keys of the other', async () => {
    const { provider, status } = await jwtSite({
      issuer: (iss) => (iss === provider.issuer ? iss : { issuer: iss, jwksUri: provider.issuer }),
    })
    const [wrong, good] = [await provider.token({ iss: 'https://mallory.example' }), await provider.token()]
    expect([await status(wrong), await status(good)]).toEqual([503, 200])
  })

  it('200 issuers of a list with one address of keys: one fetch', async () => {
    const { jwksUri, token, fetched } = await tenants()
    const all = Array.from({ length: 200 }, (_, n) => `https://login.example/listed-${n}`)
    const { jwt, status } = await jwtSite({ issuer: all.map((issuer) => ({ issuer, jwksUri })) })
    await jwt.ready()
    const statuses = await Promise.all([all[0], all[199]].map(async (iss = '') => status(await token(iss))))
    expect([statuses, fetched()]).toEqual([[200, 200], 1])
  })

  it('that depends on iss alone is asked once for a known one, and again for an unknown one', async () => {
    const { ofIssuerAlone, asked, token, known, first } = await tenants()
    const { status } = await jwtSite({ issuer: { ofIssuerAlone } })
    for (let n = 0; n < 3; n++) expect(await status(await token(first, { jti: `${n}` }))).toBe(200)
    expect(asked).toEqual([first])
    const late = await token('https://login.example/late/v2.0')
    expect(await status(late)).toBe(401)
    known.add('https://login.example/late/v2.0')
    expect(await status(late)).toBe(200)
  })

  it('an outage after keys.maxAge: the issuer is asked about again, and the keys of its address are still known', async () => {
    const clock = stoppedClock()
    const { ofIssuerAlone, asked, token, first, stop } = await tenants()
    const { status } = await jwtSite({ issuer: { ofIssuerAlone } })
    const sent = await token(first, { exp: seconds() + 3600 })
    expect([await status(sent), asked.length]).toEqual([200, 1])
    await stop()
    clock.move(600_000)
    expect([await status(sent), asked.length]).toEqual([200, 2])
  })

  it('R26 one that takes the request is asked for each: an issuer that was found for one tenant is none of another', async () => {
    const { jwksUri, token, first, second, fetched } = await tenants()
    const issuers = new Map(Object.entries({ red: first, blue: second }))
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
      const { outcome } = await jwtSite({ issuer })
      const ofRed = await token(first)
      expect(await outcome(ofRed, { tenant: 'red' })).toEqual([200, 1])
      expect(await outcome(ofRed, { tenant: 'blue' })).toEqual([401, 0])
      expect(await outcome(await token(second), { tenant: 'blue' })).toEqual([200, 1])
    }
    expect(fetched()).toBe(forms.length)
  })

  it.each(['changes and returns again', 'changes inside of a list', 'makes anew'])(
    'an object that the function %s is another issuer',
    async (how) => {
      const { jwksUri, token, first: issuer } = await tenants()
      const made = () => ({ issuer, jwksUri, audience: ['red'] as [string] })
      const same = made()
      const { status } = await jwtSite({
        issuer: (_iss, request) => {
          const own = how === 'makes anew' ? made() : same
          if (how === 'changes inside of a list') own.audience[0] = request.get('tenant')
          else own.audience = [request.get('tenant')]
          return own
        },
      })
      const [ofRed, ofBlue] = [await token(issuer, { aud: 'red' }), await token(issuer, { aud: 'blue' })]
      // while the keys are fetched
      const atOnce = await Promise.all(['red', 'blue'].map((tenant) => status(ofBlue, { tenant })))
      const later = [await status(ofRed, { tenant: 'red' }), await status(ofRed, { tenant: 'blue' })]
      expect([atOnce, later]).toEqual([
        [401, 200],
        [200, 401],
      ])
    },
  )

  it('an issuer whose name is not the iss of the token admits no caller', async () => {
    const { jwksUri, token, first, second } = await tenants()
    const { status } = await jwtSite({ issuer: () => ({ issuer: first, jwksUri }) })
    expect([await status(await token(second)), await status(await token(first))]).toEqual([401, 200])
  })

  it('one that is asynchronous is awaited; one that throws is a 500, and an outage of it a 503', async () => {
    const { jwksUri, token, first } = await tenants()
    const down = new UnavailableError('the data base is down')
    for (const [issuer, expected] of [
      [async (iss: string) => ({ issuer: iss, jwksUri }), [200, 1]],
      [async () => Promise.reject(new Error('bug')), [500, 0]],
      [async () => Promise.reject(down), [503, 0]],
    ] as const) {
      const { outcome } = await jwtSite({ issuer })
      expect(await outcome(await token(first))).toEqual(expected)
    }
  })

  it('keeps a bounded number of tenants: the one that was not used for longest goes first', async () => {
    const { jwksUri, token, asked, fetched } = await tenants()
    const ofIssuerAlone = (iss: string) => (asked.push(iss), { issuer: iss, jwksUri })
    const { get } = await jwtSite({ issuer: { ofIssuerAlone }, verified: false })
    const all = [...Array(1000).keys(), 0, 1000, 0]
    for (const n of all) await get(await token(`https://login.example/t-${n}`))
    expect(asked).toHaveLength(1001)
    await get(await token('https://login.example/t-1'))
    expect([asked.length, fetched()]).toEqual([1002, 1])
  })
})

describe('revoked', () => {
  it.each<readonly [number, unknown]>([
    [200, false],
    [401, true],
    [401, undefined],
    [401, 'false'],
    [401, Promise.resolve(true)],
    [401, Promise.resolve()],
    [200, Promise.resolve(false)],
    [500, () => Promise.reject(new Error('bug'))],
    [503, () => Promise.reject(new UnavailableError('down'))],
    [
      503,
      () => {
        throw new UnavailableError('down')
      },
    ],
  ])('only false lets in, at each request: %i for %s', async (status, answer) => {
    const { provider, get } = await jwtSite({
      revoked: () => (typeof answer === 'function' ? (answer as () => unknown)() : answer) as boolean,
    })
    const got = await get(await provider.token())
    expect([got.status, got.ran]).toEqual([status, status === 200 ? 1 : 0])
    if (status === 401) expect(got.challenge).toContain('error="invalid_token"')
  })

  it('is asked at each request, after the signature', async () => {
    const asked: unknown[] = []
    const revoked = ({ jti }: JwtClaims) => asked.push(jti) > 2
    const { provider, status } = await jwtSite({ revoked })
    const token = await provider.token({ jti: 'j1' })
    expect([await status(token), await status(token), await status(token)]).toEqual([200, 200, 401])
    expect([await status(`${token.slice(0, -4)}AAAA`), asked]).toEqual([401, ['j1', 'j1', 'j1']])
  })
})

describeWithRedis('revoked, by a store of keys', () => {
  const redis = redisDatabase()

  it('one token by its jti, or all of a user until now; an outage of the store is a 503', async () => {
    const client = createClient({ url: redis().url })
    client.on('error', () => {})
    await client.connect()
    onTestFinished(() => client.destroy())
    const { provider, status } = await jwtSite({
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
    const statuses = () => Promise.all([one, two, other].map((token) => status(token)))
    expect(await statuses()).toEqual([200, 200, 200])
    await client.set('revoked:j1', '1', { EX: 3600 })
    expect(await statuses()).toEqual([401, 200, 200])
    await client.set('since:anna', String(now - 5), { EX: 3600 })
    expect(await statuses()).toEqual([401, 401, 200])
    expect(await status(await provider.token({ sub: 'anna', iat: now }))).toBe(200)
    client.destroy()
    expect(await statuses()).toEqual([503, 503, 503])
  })
})

describe('Entra, for all tenants', () => {
  it('a known tenant whose tid is that of iss gets in; another tid, none, or an unknown tenant does not', async () => {
    const { jwksUri, token, fetched } = await tenants()
    const [ours, others] = ['9188040d-6c67-4c5b-b112-36a304b66dad', '72f988bf-86f1-41af-91ab-2d7cd011db47']
    const entra = /^https:\/\/login\.microsoftonline\.com\/([0-9a-f-]{36})\/v2\.0$/
    const { outcome } = await jwtSite({
      issuer: (iss) => (entra.exec(iss)?.[1] === ours ? { issuer: iss, jwksUri } : undefined),
      authenticate: (_request, claims) => entra.exec(claims.iss)?.[1] === claims['tid'] && claims,
    })
    const of = async (tenant: string, tid: string | undefined) =>
      outcome(await token(`https://login.microsoftonline.com/${tenant}/v2.0`, { tid }))
    expect(await of(others, others)).toEqual([401, 0])
    expect(fetched()).toBe(0)
    expect(await of(ours, ours)).toEqual([200, 1])
    for (const tid of [others, undefined]) expect(await of(ours, tid)).toEqual([401, 0])
    expect(fetched()).toBe(1)
  })
})
