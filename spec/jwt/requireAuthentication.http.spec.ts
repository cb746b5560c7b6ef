/** `requireAuthentication`: how, and how long ago, the user of a token authenticated (C-11, RFC 9470). */
import { pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
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
  type HttpJwt,
  type JwtClaims,
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
import { API, seconds } from '../support/servers/identityProvider.js'
import { active, introspectionServer } from '../support/servers/introspectionServer.js'
import { expectRefused, INVALID, jwtSite, tokenSite, type Guard } from '../support/sites/tokenSite.js'

const loa2 = 'urn:example:loa2'
const step = (parameters: string) =>
  `Bearer realm="api", error="insufficient_user_authentication", error_description="Another authentication of the user is needed", ${parameters}`

const guarded = (guard: (jwt: HttpJwt<JwtClaims>) => Guard) => jwtSite({}, { guard })
const requiring = (options: Parameters<typeof requireAuthentication>[0] & { readonly claims?: undefined }) =>
  guarded(requireAuthentication(options))

describe('C-11 requireAuthentication', () => {
  it('a token of an accepted class, whose user authenticated recently, is in; any other is 401 and says what is needed', async () => {
    const acr = [loa2, 'urn:example:loa3']
    const { provider, get, outcome } = await requiring({ acr, maxAge: 300_000 })
    const now = seconds()
    const good = { acr: loa2, auth_time: now - 200 }
    for (const one of acr) expect(await outcome(await provider.token({ ...good, acr: one }))).toEqual([200, 1])
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
      expectRefused(answer, step(`acr_values="${loa2} urn:example:loa3", max_age="300"`))
      expect(JSON.parse(answer.text)).toMatchObject({
        status: 401,
        reason: 'insufficient',
        authentication: { acr, maxAge: 300 },
      })
    }
    expectRefused(await get('x'), INVALID)
    expectRefused(await get(), 'Bearer realm="api"')
  })

  it.each([
    ['max_age="60"', { maxAge: 60_000 }],
    [`acr_values="${loa2}"`, { acr: [loa2] }],
  ])('the challenge names only what is demanded: %s', async (parameters, options) => {
    const { provider, get } = await requiring(options)
    expectRefused(await get(await provider.token({ sub: 'anna' })), step(parameters))
  })

  it('at maxAge it is in, a second later it is not, for a token that was verified before, too', async () => {
    const clock = stoppedClock()
    const { provider, status } = await requiring({ maxAge: 300_000 })
    const token = await provider.token({ auth_time: seconds(), exp: seconds() + 3600 })
    for (const [ms, expected] of [
      [0, 200],
      [300_000, 200],
      [1000, 401],
    ] as const) {
      clock.move(ms)
      expect(await status(token)).toBe(expected)
    }
  })

  it('introspected tokens too', async () => {
    const { options, state } = await introspectionServer(active({ acr: loa2, auth_time: seconds() }))
    const guard = requireAuthentication({ acr: [loa2], maxAge: 60_000 })(httpIntrospection(options))
    const { get, status } = await tokenSite(guard)
    expect(await status('x')).toBe(200)
    state.answer = active({ acr: loa2, auth_time: seconds() - 90 })
    expectRefused(await get('x'), step(`acr_values="${loa2}", max_age="60"`))
  })

  it('a missing scope stays 403; both are named where both are missing', async () => {
    const scoped = requireScopes(['pay'], { granted: scopesOf })
    const recent = requireAuthentication({ maxAge: 60_000 })
    const { provider, get, status } = await guarded((jwt) => recent(scoped(jwt)))
    const fresh = { auth_time: seconds() }
    const forbidden = 'Bearer realm="api", error="insufficient_scope", scope="pay"'
    expectRefused(await get(await provider.token(fresh)), forbidden, 403)
    expectRefused(await get(await provider.token({ scope: 'pay' })), step('max_age="60", scope="pay"'))
    expect(await status(await provider.token({ ...fresh, scope: 'pay' }))).toBe(200)
    const outer = await guarded((jwt) => scoped(recent(jwt)))
    expectRefused(await outer.get(await outer.provider.token()), step('max_age="60", scope="pay"'))
  })

  it('in a list, another alternative lets in; otherwise every challenge is offered', async () => {
    const basic = httpBasicAuth({ authenticate: (_request, name, password) => password === 'good' && { name } })
    const { provider, get, status } = await guarded((jwt) => [requireAuthentication({ maxAge: 60_000 })(jwt), basic])
    const Authorization = `Basic ${Buffer.from('anna:good').toString('base64')}`
    expect(await status(undefined, { Authorization })).toBe(200)
    const both = `${step('max_age="60"')}, Basic realm="api", charset="UTF-8"`
    expectRefused(await get(await provider.token()), both)
  })

  it('around a list and a group, with the claims of the principal; only tokens get the parameters', async () => {
    const maxAge = 60_000
    const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => sent === 'good' && { key: sent } })
    const good = { 'X-Key': 'good' }
    const group = await guarded((jwt) =>
      requireAuthentication({ maxAge, claims: ([token]: readonly [JwtClaims, unknown]) => token })(allOf([jwt, key])),
    )
    const fresh = await group.provider.token({ auth_time: seconds() })
    const stale = await group.provider.token({ auth_time: seconds() - 90 })
    expect([await group.status(fresh, good), await group.status(fresh)]).toEqual([200, 401])
    expectRefused(
      await group.get(stale, good),
      `${step('max_age="60"')}, ApiKey realm="api", in="header", name="X-Key"`,
    )
    const maybe = await tokenSite(optional(requireAuthentication({ maxAge })(group.jwt)))
    expect([await maybe.status(), await maybe.status(stale)]).toEqual([204, 401])
    const either = anyOf([group.jwt, key])
    const some = await tokenSite(pipe(either, requireAuthentication({ maxAge, claims: (p) => ('key' in p ? {} : p) })))
    expect([await some.status(fresh), await some.status(undefined, good)]).toEqual([200, 401])
  })

  it('claims that throw are a 500, and the operation does not run', async () => {
    const broken = (): never => {
      throw new Error('mine')
    }
    const { provider, outcome, errors } = await guarded(requireAuthentication({ maxAge: 60_000, claims: broken }))
    expect(await outcome(await provider.token({ auth_time: seconds() }))).toEqual([500, 0])
    expect(errors).toHaveLength(1)
  })

  it('inherited members are no claims', async () => {
    const inherited = Object.create({ acr: loa2 }, { sub: { value: 'x', enumerable: true } }) as { acr?: string }
    const bearer = httpBearer({ authenticate: () => inherited })
    const { outcome } = await tokenSite(requireAuthentication({ acr: [loa2] })(bearer))
    expect(await outcome('x')).toEqual([401, 0])
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
    for (const acr of [undefined, [], 'a', ['a b'], ['"'], ['']])
      expect(wrong({ acr })).toThrow(/^requireAuthentication[(:]/)
    expect(wrong({ maxage: 1 })).toThrow(/^requireAuthentication[(:]/)
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
