/** `requireScopes([...])` without `granted` reads what the token or the key says, or does not compile a guard. */
import Router from '@koa/router'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import {
  allOf,
  anyOf,
  apiKeyHeader,
  authorize,
  httpBearer,
  requireScopes,
  sessionAuth,
  throttled,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { describedAs, firstPresent, flatMap, map, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { httpIntrospection, httpJwt, requireAuthentication } from 'koa-with-auth/jwt'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { API, identityProvider, type IdentityProvider } from '../support/servers/identityProvider.js'
import { listen } from '../support/servers/server.js'

const limiter = new RateLimiterMemory({ points: 99, duration: 9 })

let provider: IdentityProvider
beforeEach(async () => {
  provider = await identityProvider()
})

const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: keys.authenticate })
const jwtWith = <O extends object>(options: O) =>
  httpJwt({ issuer: { issuer: provider.issuer, jwksUri: provider.jwksUri }, audience: API, ...options })

/** The status of a request to an operation that is guarded so, for each credential. */
const statuses = async (guarding: Authenticator<unknown>, all: ReadonlyArray<Record<string, string>>) => {
  const router = new Router()
  let ran = 0
  router.get('/', withAuth(guarding), (ctx) => {
    ran++
    ctx.body = 'x'
  })
  const { port } = await listen(new Koa().use(router.routes()))
  const found: number[] = []
  for (const headers of all) found.push((await fetch(`http://127.0.0.1:${port}/`, { headers })).status)
  expect(ran).toBe(found.filter((status) => status === 200).length)
  return found
}
const bearer = async (claims: Readonly<Record<string, unknown>>) => ({
  authorization: `Bearer ${await provider.token(claims)}`,
})
const writing = requireScopes(['write'])
const oneUser = { name: 'anna', scopes: ['write'] }

describe('requireScopes([...]) reads', () => {
  it.each([
    ['the claims of httpJwt', () => jwtWith({})],
    ['also through throttled', () => throttled({ limiter })(jwtWith({}))],
    [
      'also through timeout, authorize and requireScopes',
      () =>
        pipe(
          jwtWith({}),
          timeout(999),
          authorize(() => true),
          writing,
        ),
    ],
    [
      'in requireAuthentication',
      () => pipe(jwtWith({}), requireAuthentication({ claims: () => ({ acr: 'a' }), acr: ['a'] })),
    ],
    ['also in a list', () => anyOf([jwtWith({}), jwtWith({ audience: 'https://other.example' })])],
    ['also where the hook returned a user of its own', () => jwtWith({ authenticate: () => ({ scope: 'write' }) })],
    ['also where it returned the same user for all', () => jwtWith({ authenticate: () => oneUser })],
    ['also if a schema leaves them out', () => jwtWith({ claims: z.object({ sub: z.string() }) })],
  ])('%s', async (_name, make) => {
    const all = [{ scope: 'read write' }, { scp: ['write'] }, { scope: 'read' }, {}, { scopes: ['write'] }]
    const sent = await Promise.all(all.map((claims) => bearer({ sub: 'anna', ...claims })))
    expect(await statuses(writing(make()), sent)).toEqual([200, 200, 403, 403, 403])
  })

  it('`scopes` of apiKeys', async () => {
    const [good, bad] = await Promise.all([['write'], ['read']].map((scopes) => keys.issue({ owner: 'anna', scopes })))
    const sent = [{ 'X-Key': good!.key }, { 'X-Key': bad!.key }, {}]
    expect(await statuses(writing(key), sent)).toEqual([200, 403, 401])
  })

  it.each([
    ['anyOf', () => anyOf([jwtWith({}), key])],
    ['anyOf with a user of its own', () => anyOf([key, jwtWith({ authenticate: () => oneUser })])],
    ['firstPresent', () => firstPresent([jwtWith({}), key])],
  ])('%s of tokens and keys: what the member says that passed', async (_name, make) => {
    const [good, bad] = await Promise.all([['write'], ['read']].map((scopes) => keys.issue({ owner: 'bert', scopes })))
    const sent = [
      { 'X-Key': good!.key },
      { 'X-Key': bad!.key },
      await bearer({ scope: 'write' }),
      await bearer({ scopes: ['write'] }),
    ]
    expect(await statuses(writing(make()), sent)).toEqual([200, 403, 200, 403])
  })

  it('what introspection says', () => {
    const opaque = httpIntrospection({
      endpoint: 'https://login.example/x',
      client: { id: 'a', secret: 'b' },
      audience: API,
    })
    expect(writing(opaque).description).toMatchObject({ _tag: 'Scoped', scopes: ['write'] })
  })
})

describe('requireScopes([...]) is a TypeError that names `granted`', () => {
  const own = httpBearer({ authenticate: () => ({ scopes: ['write'], scope: 'write' }) })
  it.each<readonly [string, () => Authenticator<unknown>]>([
    ['for another principal', () => own],
    ['for a session', () => sessionAuth()],
    ['for a function', () => (() => ({ scope: 'write' })) as never],
    ['for a hook that asks apiKeys', () => apiKeyHeader({ authenticate: async (r, k) => keys.authenticate(r, k) })],
    ['for a list with one that does not say it', () => anyOf([jwtWith({}), own])],
    ['for a list that has it nested', () => anyOf([jwtWith({}), anyOf([key, own])])],
    ['for an object of alternatives', () => anyOf({ jwt: jwtWith({}), key })],
    ['for allOf', () => allOf([jwtWith({}), key])],
    ['after map', () => map((claims: object) => claims)(jwtWith({}))],
    ['after flatMap', () => flatMap((claims: object) => claims)(jwtWith({}))],
    ['after map in a list', () => anyOf([key, map((claims: object) => claims)(jwtWith({}))])],
    ['after throttled of map', () => throttled({ limiter })(map((it: object) => it)(key))],
    ['after recoverUnavailable', () => recoverUnavailable(() => ({ scope: 'write' }))(jwtWith({}))],
    ['after describedAs', () => describedAs(key)(key)],
  ])('%s', (_name, make) => {
    const made = make()
    expect(() => writing(made)).toThrow(TypeError)
    expect(() => writing(made)).toThrow(/requireScopes\(\[\.\.\.\], \{ granted: /)
    expect(() => withAuth(made, writing)).toThrow(TypeError)
    expect(() => requireScopes(['write'], { granted: () => [] })(made)).not.toThrow()
  })

  it('and for an option that is undefined, which may be imported too early', () => {
    expect(() => requireScopes(['write'], { granted: undefined as never })).toThrow(/granted/)
  })
})
