/** `requireAuthentication`: how, and how long ago, the user of a token authenticated (C-11, RFC 9470). */
import { pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
import { createServer, type ServerResponse } from 'node:http'
import Router from '@koa/router'
import {
  allOf,
  anyOf,
  apiKeyHeader,
  httpBasicAuth,
  httpBearer,
  optional,
  requireScopes,
  sessionAuth,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import {
  httpIntrospection,
  httpJwt,
  requireAuthentication,
  scopesOf,
  type AuthenticationClaims,
} from 'koa-with-auth/jwt'
import { audit } from 'koa-with-auth/audit'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { descriptionInWords } from '../../src/audit/Way.js'
import { linesOf, lineText } from '../../src/audit/policy.js'
import { lineFrom } from '../support/papers/policyLines.js'
import { guardedBy } from '../../src/core/Requirement.js'
import { failuresOf, securityOf } from '../../src/openapi/security.js'
import { stoppedClock } from '../support/runs/clock.js'
import { API, identityProvider } from '../support/servers/identityProvider.js'
import { listening } from '../support/servers/server.js'
import { INVALID, tokenSite } from '../support/sites/tokenSite.js'

const loa2 = 'urn:example:loa2'
const seconds = () => Math.floor(Date.now() / 1000)
const step = (parameters: string) =>
  `Bearer realm="api", error="insufficient_user_authentication", error_description="Another authentication of the user is needed", ${parameters}`

const provided = async () => {
  const provider = await identityProvider()
  const { issuer, jwksUri } = provider
  return { provider, jwt: httpJwt({ issuer: { issuer, jwksUri }, audience: API }) }
}

describe('C-11 requireAuthentication', () => {
  it('a token of an accepted class, whose user authenticated recently, is in; any other is 401 and says what is needed', async () => {
    const { provider, jwt } = await provided()
    const { get } = await tokenSite(
      pipe(jwt, requireAuthentication({ acr: [loa2, 'urn:example:loa3'], maxAge: 300_000 })),
    )
    const now = seconds()
    const good = { acr: loa2, auth_time: now - 200 }
    expect(await get(await provider.token(good))).toMatchObject({ status: 200, ran: 1 })
    expect(await get(await provider.token({ ...good, acr: 'urn:example:loa3' }))).toMatchObject({ status: 200, ran: 1 })
    const wrong: ReadonlyArray<Record<string, unknown>> = [
      { acr: loa2 },
      { auth_time: now },
      {},
      { ...good, auth_time: now - 301 },
      { ...good, auth_time: now + 60 },
      { ...good, auth_time: String(now) },
      { ...good, auth_time: null },
      { ...good, auth_time: [now] },
      { ...good, acr: 'urn:example:loa1' },
      { ...good, acr: [loa2] },
      { ...good, acr: `${loa2} urn:example:loa1` },
      { ...good, acr: '' },
      { ...good, acr: loa2.toUpperCase() },
    ]
    for (const claims of wrong) {
      const answer = await get(await provider.token(claims))
      expect(answer, JSON.stringify(claims)).toMatchObject({
        status: 401,
        ran: 0,
        challenge: step(`acr_values="${loa2} urn:example:loa3", max_age="300"`),
      })
      expect(JSON.parse(answer.text)).toMatchObject({
        status: 401,
        reason: 'insufficient',
        authentication: { acr: [loa2, 'urn:example:loa3'], maxAge: 300 },
      })
    }
    expect(await get('x')).toMatchObject({ status: 401, ran: 0, challenge: INVALID })
    expect(await get()).toMatchObject({ status: 401, ran: 0, challenge: 'Bearer realm="api"' })
  })

  it('the challenge names only what is demanded', async () => {
    const { provider, jwt } = await provided()
    const token = await provider.token({ sub: 'anna' })
    const recent = await tokenSite(pipe(jwt, requireAuthentication({ maxAge: 60_000 })))
    expect((await recent.get(token)).challenge).toBe(step('max_age="60"'))
    const strong = await tokenSite(pipe(jwt, requireAuthentication({ acr: [loa2] })))
    expect((await strong.get(token)).challenge).toBe(step(`acr_values="${loa2}"`))
  })

  it('at maxAge it is in, a second later it is not, for a token that was verified before, too', async () => {
    const clock = stoppedClock()
    const { provider, jwt } = await provided()
    const { get } = await tokenSite(pipe(jwt, requireAuthentication({ maxAge: 300_000 })))
    const token = await provider.token({ auth_time: seconds(), exp: seconds() + 3600 })
    expect((await get(token)).status).toBe(200)
    clock.move(299_000)
    expect((await get(token)).status).toBe(200)
    clock.move(2000)
    expect((await get(token)).status).toBe(401)
  })

  it('introspected tokens too', async () => {
    let claims: object = {}
    const answered = (_request: unknown, response: ServerResponse) =>
      response.end(JSON.stringify({ active: true, aud: API, sub: 'anna', ...claims }))
    const endpoint = `http://127.0.0.1:${await listening(createServer(answered))}/introspect`
    const opaque = httpIntrospection({ endpoint, client: { id: 'api', secret: 's' }, audience: API, cache: false })
    const { get } = await tokenSite(pipe(opaque, requireAuthentication({ acr: [loa2], maxAge: 60_000 })))
    claims = { acr: loa2, auth_time: seconds() }
    expect((await get('x')).status).toBe(200)
    claims = { acr: loa2, auth_time: seconds() - 90 }
    expect(await get('x')).toMatchObject({ status: 401, challenge: step(`acr_values="${loa2}", max_age="60"`) })
  })

  it('a missing scope stays 403; both are named where both are missing', async () => {
    const { provider, jwt } = await provided()
    const scoped = requireScopes(['pay'], { granted: scopesOf })
    const inner = await tokenSite(pipe(jwt, scoped, requireAuthentication({ maxAge: 60_000 })))
    const fresh = { auth_time: seconds() }
    expect(await inner.get(await provider.token(fresh))).toMatchObject({
      status: 403,
      challenge: 'Bearer realm="api", error="insufficient_scope", scope="pay"',
    })
    expect(await inner.get(await provider.token({ scope: 'pay' }))).toMatchObject({
      status: 401,
      challenge: step('max_age="60", scope="pay"'),
    })
    expect((await inner.get(await provider.token({ ...fresh, scope: 'pay' }))).status).toBe(200)
    const outer = await tokenSite(pipe(jwt, requireAuthentication({ maxAge: 60_000 }), scoped))
    expect(await outer.get(await provider.token({}))).toMatchObject({
      status: 401,
      challenge: step('max_age="60", scope="pay"'),
    })
  })

  it('in a list, another alternative lets in; otherwise every challenge is offered', async () => {
    const { provider, jwt } = await provided()
    const basic = httpBasicAuth({ authenticate: (_request, name, password) => password === 'good' && { name } })
    const site = await tokenSite([pipe(jwt, requireAuthentication({ maxAge: 60_000 })), basic])
    const Authorization = `Basic ${Buffer.from('anna:good').toString('base64')}`
    expect((await site.get(undefined, { Authorization })).status).toBe(200)
    expect(await site.get(await provider.token({}))).toMatchObject({
      status: 401,
      challenge: `${step('max_age="60"')}, Basic realm="api", charset="UTF-8"`,
    })
  })

  it('around a list and a group, with the claims of the principal; only tokens get the parameters', async () => {
    const { provider, jwt } = await provided()
    const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => sent === 'good' && { key: sent } })
    const both = allOf([jwt, key])
    const guard = pipe(both, requireAuthentication({ maxAge: 60_000, claims: ([token]) => token }))
    const { get } = await tokenSite(guard)
    const fresh = await provider.token({ auth_time: seconds() })
    const stale = await provider.token({ auth_time: seconds() - 90 })
    expect((await get(fresh, { 'X-Key': 'good' })).status).toBe(200)
    expect((await get(fresh)).status).toBe(401)
    expect(await get(stale, { 'X-Key': 'good' })).toMatchObject({
      status: 401,
      challenge: `${step('max_age="60"')}, ApiKey realm="api", in="header", name="X-Key"`,
    })
    const maybe = await tokenSite(optional(pipe(jwt, requireAuthentication({ maxAge: 60_000 }))))
    expect([(await maybe.get()).status, (await maybe.get(stale)).status]).toEqual([204, 401])
    const some = await tokenSite(
      pipe(anyOf([jwt, key]), requireAuthentication({ maxAge: 60_000, claims: (p) => ('key' in p ? {} : p) })),
    )
    expect((await some.get(fresh)).status).toBe(200)
    expect((await some.get(undefined, { 'X-Key': 'good' })).status).toBe(401)
  })

  it('claims that throw are a 500, and the operation does not run', async () => {
    const { provider, jwt } = await provided()
    const broken = (): never => {
      throw new Error('mine')
    }
    const { get, errors } = await tokenSite(pipe(jwt, requireAuthentication({ maxAge: 60_000, claims: broken })))
    expect(await get(await provider.token({ auth_time: seconds() }))).toMatchObject({ status: 500, ran: 0 })
    expect(errors).toHaveLength(1)
  })

  it('inherited members are no claims', async () => {
    const bearer = httpBearer({
      authenticate: () =>
        Object.create({ auth_time: seconds(), acr: loa2 }, { sub: { value: 'x', enumerable: true } }) as {
          acr?: string
        },
    })
    const { get } = await tokenSite(pipe(bearer, requireAuthentication({ acr: [loa2] })))
    expect(await get('x')).toMatchObject({ status: 401, ran: 0 })
  })

  it('law: lets in exactly the tokens whose class and time are right', async () => {
    const claims = fc.record(
      { acr: fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.anything()), age: fc.integer({ min: -100, max: 400 }) },
      { requiredKeys: [] },
    )
    const demand = fc.record(
      {
        acr: fc.constantFrom<ReadonlyArray<string>>(['a'], ['a', 'b']),
        maxAge: fc.constantFrom<number>(1000, 100_000, 300_000),
      },
      { requiredKeys: [] },
    )
    stoppedClock()
    const now = Date.now() / 1000
    await fc.assert(
      fc.asyncProperty(claims, demand, async ({ age, ...own }, asked) => {
        fc.pre(Object.keys(asked).length > 0)
        const principal: AuthenticationClaims = { ...own, ...(age !== undefined && { auth_time: now - age }) }
        const bearer = httpBearer({ authenticate: () => ({ sub: 'x', ...principal }) })
        const result = await requireAuthentication(asked)(bearer).evaluate(
          mockRequest({ fields: [['Authorization', 'Bearer x']] }),
        )
        const { acr } = own
        const isRightClass = asked.acr === undefined || (typeof acr === 'string' && asked.acr.includes(acr))
        const isRecent = asked.maxAge === undefined || (age !== undefined && age >= -5 && age < asked.maxAge / 1000 + 1)
        expect(result._tag).toBe(isRightClass && isRecent ? 'Right' : 'Left')
      }),
      { numRuns: 500 },
    )
  })

  const jwt = httpJwt({ issuer: 'https://login.example/', audience: API })
  const router = (guard: Authenticator<unknown>) => new Router().get('/pay', withAuth(guard), () => {})

  it('the audit and the policy file say it, in a list and a group, too', () => {
    const careful = pipe(jwt, requireAuthentication({ acr: [loa2, 'b'], maxAge: 300_000 }))
    const key = apiKeyHeader({ authenticate: () => ({ key: 1 }) })
    const lineOf = (guard: Authenticator<unknown>) => lineText(linesOf(audit(router(guard)))[0]!)
    const bearer = 'bearer issuer https://login.example/ audience https://api.example'
    const words = `authorized by an authentication of ${loa2} or b, at most 5 min old`
    expect(lineOf(careful)).toContain(`${bearer} | ${words}]; by=operation`)
    expect(lineOf(anyOf([careful, key]))).toContain(`${bearer} | ${words}]; who=[API key`)
    expect(lineOf(allOf([key, careful]))).toContain(words)
    expect(descriptionInWords(careful.description)).not.toBe(descriptionInWords(jwt.description))
    expect(lineFrom(lineOf(careful))).toStrictEqual(linesOf(audit(router(careful)))[0])
    // a function that finds the claims decides, too
    const always = () => ({ auth_time: Date.now() / 1000 })
    expect(lineOf(pipe(jwt, requireAuthentication({ maxAge: 300_000, claims: always })))).toMatch(
      /\| authorized by an authentication, at most 5 min old, claims by always [0-9a-f]{12}\]; by=operation/,
    )
  })

  it('OpenAPI says it in the description, and lists no 403', () => {
    const careful = pipe(jwt, requireAuthentication({ acr: [loa2, 'b'], maxAge: 90_000 }))
    const { remark, description } = securityOf(guardedBy(careful))
    expect(remark).toBe(
      `The user of the token must have authenticated with \`acr\` \`${loa2}\` or \`b\`, at most 90 s ago. Otherwise the answer is 401 \`insufficient_user_authentication\` (RFC 9470).`,
    )
    expect(failuresOf(description, 'get')).toEqual([401, 503])
  })

  it('options that cannot work, and kinds that take no tokens, are a TypeError', () => {
    const wrong = (options: unknown) => () => requireAuthentication(options as { maxAge: number })
    for (const options of [
      {},
      { acr: [] },
      { acr: 'a' },
      { acr: ['a b'] },
      { acr: ['"'] },
      { acr: [''] },
      { maxage: 1 },
    ]) {
      expect(wrong(options)).toThrow(/^requireAuthentication[(:]/)
    }
    for (const maxAge of [0, -1, 300, 999.9, Infinity, '5', NaN])
      expect(wrong({ maxAge })).toThrow(/must be a number of milliseconds, at least 1000, not .+; a minute is 60_000/)
    for (const guard of [sessionAuth(), httpBasicAuth({ authenticate: () => ({ acr: 'a' }) })]) {
      expect(() => requireAuthentication({ maxAge: 1_000 })(guard as never)).toThrow('takes no tokens')
    }
    expect(() => requireAuthentication({ maxAge: 1_000 })(7 as never)).toThrow('requireAuthentication(...)(a)')
    expect(() => requireAuthentication({ maxAge: 1_000 })(optional(jwt) as never)).toThrow('optional')
  })

  it('a principal without the claims does not compile without the option', () => {
    const named = httpBearer({ authenticate: () => ({ name: 'anna' }) })
    // @ts-expect-error: it has no claims
    const made: unknown = requireAuthentication({ maxAge: 1_000 })(named)
    expect(made).toBeDefined()
    const claimed: Authenticator<{ name: string }> = pipe(
      named,
      requireAuthentication({ maxAge: 1_000, claims: ({ name }) => ({ acr: name }) }),
    )
    expect(claimed.description._tag).toBe('Scoped')
  })
})
