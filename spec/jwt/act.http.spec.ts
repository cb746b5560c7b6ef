/** C-17 Who acts for whom (RFC 8693 §4.1): in records, never in scopes. */
import Router from '@koa/router'
import Koa from 'koa'
import { allOf, apiKeyHeader, authorize, authSettings, httpBearer, requireScopes, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { httpIntrospection, httpJwt, requireAuthentication, type JwtClaims } from 'koa-with-auth/jwt'
import * as t from 'io-ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { recordsOf } from '../support/runs/eventRecords.js'
import { API, identityProvider } from '../support/servers/identityProvider.js'
import { ask, listen, restartable } from '../support/servers/server.js'
import { expectRefused, tokenSite } from '../support/sites/tokenSite.js'

type Events = NonNullable<Parameters<typeof authSettings>[0]['events']>

const bySub: Events = { subject: ({ sub = '' }: JwtClaims) => sub }

const sited = async (auth: unknown, events: Events | null = bySub) => {
  const records = recordsOf('decision', ({ route }) => route === '/notes/:id')
  const router = new Router()
  router.get('/notes/:id', withAuth(auth as never), (ctx) => {
    ctx.body = 'in'
  })
  const app = new Koa().use(authSettings(events === null ? {} : { events })).use(router.routes())
  app.silent = true
  const { url } = await listen(app)
  const get = async (token: string, headers: Record<string, string> = {}) => {
    const { status, text } = await ask(`${url}/notes/7`, { headers: { authorization: `Bearer ${token}`, ...headers } })
    return { status, text, record: records.at(-1) }
  }
  return { get, router, records }
}

describe('C-17 the actor of a token', () => {
  it('is in the record beside the subject; of nested ones the outermost', async () => {
    const provider = await identityProvider()
    const { get } = await sited(httpJwt({ issuer: provider.issuer, audience: API }))
    const act = { sub: 'sam', act: { sub: 'first-service' } }
    expect((await get(await provider.token({ sub: 'anna', act }))).record).toMatchObject({
      outcome: 'accepted',
      subject: 'anna',
      actor: 'sam',
      route: '/notes/:id',
    })
    expect((await get(await provider.token({ sub: 'anna', act: { client_id: 'batch' } }))).record).toMatchObject({
      subject: 'anna',
      actor: 'batch',
    })
    expect((await get(await provider.token({ sub: 'anna' }))).record).not.toHaveProperty('actor')
  })

  it.each<[string, (claims: JwtClaims) => unknown]>([
    ['a hook that returns another principal', ({ sub }) => ({ sub })],
    ['a hook that returns a string', ({ sub }) => sub ?? ''],
  ])('is not lost by %s, by a schema, or beside another credential', async (_case, authenticate) => {
    const provider = await identityProvider()
    const general = { issuer: provider.issuer, audience: API }
    const token = await provider.token({ sub: 'anna', act: { sub: 'sam' } })
    const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, value) => value === 'k' })
    for (const auth of [
      httpJwt({ ...general, authenticate: (_request, claims) => authenticate(claims) as object }),
      httpJwt({ ...general, claims: t.strict({ sub: t.string }) }),
      allOf([key, httpJwt(general)]),
      authorize(() => true)(httpJwt(general)),
    ]) {
      const { get } = await sited(auth, { subject: () => 'anna' })
      const { status, record } = await get(token, { 'x-key': 'k' })
      expect([status, record?.subject, record?.actor]).toEqual([200, 'anna', 'sam'])
    }
  })

  it('is in no record of an application that names no subject, and in none of a refused request', async () => {
    const provider = await identityProvider()
    const jwt = httpJwt({ issuer: provider.issuer, audience: API })
    const token = await provider.token({ sub: 'anna', act: { sub: 'sam' } })
    const { get } = await sited(jwt, null)
    expect(JSON.stringify((await get(token)).record)).not.toMatch(/anna|sam/)
    const strict = await sited(authorize(() => false)(jwt))
    const { status, record } = await strict.get(token)
    expect([status, record?.outcome]).toEqual([403, 'forbidden'])
    expect(JSON.stringify(record)).not.toMatch(/anna|sam/)
  })

  it('is what the setting says, if there is one; one that throws changes no response', async () => {
    const provider = await identityProvider()
    const jwt = httpJwt({ issuer: provider.issuer, audience: API })
    const token = await provider.token({ sub: 'anna', act: { sub: 'sam', iss: 'https://staff.example' } })
    const actor = ({ act }: JwtClaims) => act && `${String(act['iss'])} ${act.sub}`
    const { get } = await sited(jwt, { ...bySub, actor })
    expect((await get(token)).record).toMatchObject({ actor: 'https://staff.example sam' })
    const throwing = (): never => {
      throw new Error('actor')
    }
    const broken = await sited(jwt, { ...bySub, actor: throwing })
    const { status, record } = await broken.get(token)
    expect([status, record?.subject, record?.actor]).toEqual([200, 'anna', undefined])
  })

  it.each([[null], ['sam'], [7], [[]], [[{ sub: 'sam' }]], [{}], [{ sub: '' }], [{ sub: 7 }], [{ act: { sub: 'x' } }]])(
    '%j names no actor: the token is a 401, so that no record says that the subject acted alone',
    async (act) => {
      const provider = await identityProvider()
      const site = await tokenSite(httpJwt({ issuer: provider.issuer, audience: API }))
      const answer = await site.get(await provider.token({ act }))
      expectRefused(answer, 'Bearer realm="api", error="invalid_token"')
      const server = await restartable((_req, res) => res.end(JSON.stringify({ active: true, aud: API, act })))
      const client = { id: 'api', secret: 's' }
      const endpoint = `${server.origin}/introspect`
      const opaque = await tokenSite(httpIntrospection({ endpoint, client, audience: API, cache: false }))
      expect(await opaque.get('opaque').then(({ status, ran }) => [status, ran])).toEqual([401, 0])
    },
  )

  it('of introspection is in the record alike', async () => {
    const says = { active: true, aud: API, sub: 'anna', act: { sub: 'sam' } }
    const server = await restartable((_req, res) => res.end(JSON.stringify(says)))
    const client = { id: 'api', secret: 's' }
    const { get } = await sited(httpIntrospection({ endpoint: `${server.origin}/i`, client, audience: API }))
    for (const _first of [true, false]) {
      expect((await get('opaque')).record).toMatchObject({ subject: 'anna', actor: 'sam' })
    }
  })

  it('has no scopes, no class and no time: only those of the token count', async () => {
    const provider = await identityProvider()
    const jwt = httpJwt({ issuer: provider.issuer, audience: API })
    const act = { sub: 'sam', scope: 'write', scp: ['write'], acr: 'high', auth_time: Date.now() / 1000 }
    const token = await provider.token({ sub: 'anna', scope: 'read', act })
    const scoped = await sited(requireScopes(['write'])(jwt))
    expect((await scoped.get(token)).status).toBe(403)
    expect((await scoped.get(await provider.token({ scope: 'write', act: { sub: 'sam' } }))).status).toBe(200)
    const careful = await sited(requireAuthentication({ acr: ['high'] })(jwt))
    expect((await careful.get(token)).status).toBe(401)
    const other = await tokenSite(httpJwt({ issuer: provider.issuer, audience: API, authorizedParties: ['web'] }))
    expect((await other.get(await provider.token({ act: { sub: 'x', client_id: 'web' } }))).status).toBe(401)
  })
})

describe('who acts for a principal of the application', () => {
  it('is its `act`, also a getter of its class', async () => {
    class Acting {
      readonly user = 'anna'
      get act(): string {
        return 'sam'
      }
    }
    for (const principal of [{ user: 'anna', act: 'sam' }, { user: 'anna', act: { sub: 'sam' } }, new Acting()]) {
      const auth = httpBearer({ authenticate: () => principal })
      const { get } = await sited(auth, { subject: ({ user }: { user: string }) => user })
      expect((await get('x')).record).toMatchObject({ subject: 'anna', actor: 'sam' })
    }
  })

  it('an `act` that throws or names no one leaves the record without an actor, and the response as it is', async () => {
    const throwing = {
      user: 'anna',
      get act(): never {
        throw new Error('act')
      },
    }
    for (const principal of [throwing, { user: 'anna', act: 7 }, { user: 'anna', act: { sub: 7 } }]) {
      const auth = httpBearer({ authenticate: () => principal })
      const { get } = await sited(auth, { subject: ({ user }: { user: string }) => user })
      const { status, record } = await get('x')
      expect([status, record?.subject, record?.actor]).toEqual([200, 'anna', undefined])
    }
  })

  it('is no inherited property', async () => {
    Object.defineProperty(Object.prototype, 'act', { value: 'sam', configurable: true })
    onTestFinished(() => void Reflect.deleteProperty(Object.prototype, 'act'))
    const { get } = await sited(httpBearer({ authenticate: () => ({ user: 'anna' }) }), { subject: () => 'anna' })
    expect((await get('x')).record).not.toHaveProperty('actor')
  })

  it('a rule about the actor is in the audit by its name', () => {
    const jwt = httpJwt({ issuer: 'https://login.example', audience: API })
    const router = new Router()
    router.delete(
      '/account',
      withAuth(
        jwt,
        authorize(({ act }) => act === undefined, { name: 'the user' }),
      ),
      () => {},
    )
    expect(audit(router).operations[0]?.protection).toContain('the user')
  })
})
