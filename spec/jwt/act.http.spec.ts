/** C-17 Who acts for whom (RFC 8693 §4.1): in records, never in scopes. */
import Router from '@koa/router'
import {
  allOf,
  apiKeyHeader,
  authorize,
  authSettings,
  httpBearer,
  requireScopes,
  withAuth,
  fromHeader,
} from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { httpIntrospection, httpJwt, requireAuthentication, type JwtClaims } from 'koa-with-auth/jwt'
import * as t from 'io-ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { recordsOf } from '../support/runs/eventRecords.js'
import { API, identityProvider, seconds } from '../support/servers/identityProvider.js'
import { active, introspectionServer } from '../support/servers/introspectionServer.js'
import { expectRefused, INVALID, jwtSite, tokenSite, type Guard } from '../support/sites/tokenSite.js'

type Events = NonNullable<Parameters<typeof authSettings>[0]['events']>

const bySub: Events = { subject: ({ sub = '' }: JwtClaims) => sub }

/** Asks a site with these events with a token, and returns the status and the record of the decision. */
const sited = async (auth: Guard, events: Events | null = bySub) => {
  const records = recordsOf('decision', ({ route }) => route === '/me')
  const { status } = await tokenSite(auth, { above: () => [authSettings(events === null ? {} : { events })] })
  return async (token: string, headers: Record<string, string> = {}) => {
    const got = await status(token, headers)
    return { status: got, record: records.at(-1) }
  }
}

const SAM = { sub: 'anna', act: { sub: 'sam' } }

const provided = async () => {
  const provider = await identityProvider()
  const general = { issuer: provider.issuer, audience: API }
  return { provider, general, jwt: httpJwt(general), token: await provider.token(SAM) }
}

describe('C-17 the actor of a token', () => {
  it.each([
    [{ sub: 'sam', act: { sub: 'first-service' } }, 'sam'],
    [{ client_id: 'batch' }, 'batch'],
    [undefined, undefined],
  ])('is in the record beside the subject; of nested ones the outermost: of %j it is %s', async (act, actor) => {
    const { provider, jwt } = await provided()
    const ask = await sited(jwt)
    const { record } = await ask(await provider.token({ sub: 'anna', act }))
    expect([record?.outcome, record?.subject, record?.actor]).toEqual(['accepted', 'anna', actor])
    expect(Object.hasOwn(record ?? {}, 'actor')).toBe(actor !== undefined)
  })

  it.each<[string, (claims: JwtClaims) => unknown]>([
    ['a hook that returns another principal', ({ sub }) => ({ sub })],
    ['a hook that returns a string', ({ sub }) => sub ?? ''],
  ])('is not lost by %s, by a schema, or beside another credential', async (_case, authenticate) => {
    const { provider, general, jwt, token } = await provided()
    const first = await provider.token({ sub: 'anna', act: { sub: 'first-service' } })
    const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, value) => value === 'k' })
    for (const auth of [
      httpJwt({ ...general, authenticate: (_request, claims) => authenticate(claims) as object }),
      httpJwt({ ...general, claims: t.strict({ sub: t.string }) }),
      allOf([key, jwt]),
      // of two tokens, the second one names the actor, as it is the token of the request
      allOf([httpJwt({ ...general, from: fromHeader('X-First') }), jwt]),
      authorize(() => true)(jwt),
    ]) {
      const ask = await sited(auth, { subject: () => 'anna' })
      const { status, record } = await ask(token, { 'x-key': 'k', 'x-first': first })
      expect([status, record?.subject, record?.actor]).toEqual([200, 'anna', 'sam'])
    }
  })

  it('is in no record of an application that names no subject, and in none of a refused request', async () => {
    const { jwt, token } = await provided()
    for (const [auth, events, outcome] of [
      [jwt, null, 'accepted'],
      [authorize(() => false)(jwt), bySub, 'forbidden'],
    ] as const) {
      const ask = await sited(auth, events)
      const { record } = await ask(token)
      expect(record?.outcome).toBe(outcome)
      expect(JSON.stringify(record)).not.toMatch(/anna|sam/)
    }
  })

  it('is what the setting says, if there is one; one that throws changes no response', async () => {
    const { provider, jwt } = await provided()
    const token = await provider.token({ sub: 'anna', act: { sub: 'sam', iss: 'https://staff.example' } })
    const throwing = (): never => {
      throw new Error('actor')
    }
    for (const [actor, expected] of [
      [({ act }: JwtClaims) => act && `${String(act['iss'])} ${act.sub}`, 'https://staff.example sam'],
      [throwing, undefined],
    ] as const) {
      const ask = await sited(jwt, { ...bySub, actor })
      const { status, record } = await ask(token)
      expect([status, record?.subject, record?.actor]).toEqual([200, 'anna', expected])
    }
  })

  it.each([[null], ['sam'], [7], [[]], [[{ sub: 'sam' }]], [{}], [{ sub: '' }], [{ sub: 7 }], [{ act: { sub: 'x' } }]])(
    '%j names no actor: the token is a 401, so that no record says that the subject acted alone',
    async (act) => {
      const { provider, get } = await jwtSite()
      expectRefused(await get(await provider.token({ act })), INVALID)
      const { options } = await introspectionServer(active({ act }))
      const opaque = await tokenSite(httpIntrospection(options))
      expect(await opaque.outcome('opaque')).toEqual([401, 0])
    },
  )

  it('of introspection is in the record alike, from the cache, too', async () => {
    const { options } = await introspectionServer(active(SAM))
    const ask = await sited(httpIntrospection({ ...options, cache: undefined }))
    for (let time = 0; time < 2; time++) {
      expect((await ask('opaque')).record).toMatchObject({ subject: 'anna', actor: 'sam' })
    }
  })

  it('has no scopes, no class and no time: only those of the token count', async () => {
    const { provider, general, jwt } = await provided()
    const act = { sub: 'sam', client_id: 'web', scope: 'write', scp: ['write'], acr: 'high', auth_time: seconds() }
    const token = await provider.token({ sub: 'anna', scope: 'read', act })
    const scoped = await tokenSite(requireScopes(['write'])(jwt))
    expect(await scoped.status(token)).toBe(403)
    expect(await scoped.status(await provider.token({ scope: 'write', act: { sub: 'sam' } }))).toBe(200)
    for (const auth of [
      requireAuthentication({ acr: ['high'] })(jwt),
      httpJwt({ ...general, authorizedParties: ['web'] }),
    ])
      expect(await (await tokenSite(auth)).outcome(token)).toEqual([401, 0])
  })
})

describe('who acts for a principal of the application', () => {
  class Acting {
    readonly user = 'anna'
    get act(): string {
      return 'sam'
    }
  }
  class Throwing {
    readonly user = 'anna'
    get act(): never {
      throw new Error('act')
    }
  }

  it.each([
    ['its `act`', { user: 'anna', act: 'sam' }, 'sam'],
    ['the `sub` of its `act`', { user: 'anna', act: { sub: 'sam' } }, 'sam'],
    ['a getter of its class', new Acting(), 'sam'],
    ['not known if `act` throws, and the response is as it is', new Throwing(), undefined],
    ['not known if `act` is a number', { user: 'anna', act: 7 }, undefined],
    ['not known if its `sub` is a number', { user: 'anna', act: { sub: 7 } }, undefined],
  ])('is %s', async (_what, principal, actor) => {
    const ask = await sited(httpBearer({ authenticate: () => principal }), { subject: () => 'anna' })
    const { status, record } = await ask('x')
    expect([status, record?.subject, record?.actor]).toEqual([200, 'anna', actor])
  })

  it('is no inherited property', async () => {
    Object.defineProperty(Object.prototype, 'act', { value: 'sam', configurable: true })
    onTestFinished(() => void Reflect.deleteProperty(Object.prototype, 'act'))
    const ask = await sited(httpBearer({ authenticate: () => ({ user: 'anna' }) }), { subject: () => 'anna' })
    expect((await ask('x')).record).not.toHaveProperty('actor')
  })

  it('a rule about the actor is in the audit by its name', () => {
    const jwt = httpJwt({ issuer: 'https://login.example', audience: API })
    const byUser = authorize(({ act }: JwtClaims) => act === undefined, { name: 'the user' })
    const router = new Router().delete('/account', withAuth(jwt, byUser), () => {})
    expect(audit(router).operations[0]?.protection).toContain('the user')
  })
})
