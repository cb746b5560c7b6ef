/** Hook results that an attacker would like: nothing found, an Error, a record with a `_tag`. */
import Router from '@koa/router'
import { either as E } from 'fp-ts'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  AuthError,
  authSettings,
  defaultErrorMapper,
  httpBearer,
  onError,
  optional,
  withAuth,
} from 'koa-with-auth'
import { recoverUnavailable } from 'koa-with-auth/fp'
import { pipe } from 'fp-ts/lib/function.js'
import { describe, expect, test } from 'vitest'
import {
  bearer,
  challenge,
  expectCrashed,
  expectDenied,
  expectPassed,
  operation,
  running,
} from '../support/models/behavior.js'

const inherited = ['__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty', '__defineGetter__']

describe('R04 a table of keys that is an object literal', () => {
  const keys: Readonly<Record<string, unknown>> = { k1: { client: 'Acme' } }
  const authenticate = (_request: unknown, key: string) => keys[key]

  test.each(inherited)('the credential %s is refused, wherever it is sent', async (name) => {
    const byBearer = await operation(withAuth(httpBearer({ authenticate })))
    expectDenied(await byBearer.ask('/x', bearer(name)), 401, [challenge.refusedBearer])
    expectPassed(await byBearer.ask('/x', bearer('k1')), { client: 'Acme' })
    const byHeader = await operation(withAuth(apiKeyHeader({ authenticate })))
    expectDenied(await byHeader.ask('/x', { headers: { key: name } }), 401, [challenge.key('header')])
    const byQuery = await operation(withAuth(apiKeyQuery({ authenticate })))
    expectDenied(await byQuery.ask(`/x?key=${name}`), 401, [challenge.key('query')])
    const byCookie = await operation(withAuth(apiKeyCookie({ authenticate })))
    expectDenied(await byCookie.ask('/x', { headers: { Cookie: `key=${name}` } }), 401, [challenge.key('cookie')])
  })

  test.each(inherited)('%s does not make a caller of an optional operation known', async (name) => {
    const { ask } = await operation(withAuth(optional(httpBearer({ authenticate }))))
    expectDenied(await ask('/x', bearer(name)), 401, [challenge.refusedBearer])
  })

  test('the empty object that HGETALL returns for a missing hash is refused, sync and async', async () => {
    for (const answer of [{}, Object.create(null) as unknown]) {
      const { ask } = await operation(withAuth(httpBearer({ authenticate: async () => answer })))
      expectDenied(await ask('/x', bearer('anonymous')), 401, [challenge.refusedBearer])
    }
  })
})

describe('R04 an Error that is returned', () => {
  class Expired extends Error {}

  test('is a 500 that shows nothing, and Koa emits it', async () => {
    const authenticate = async () => Promise.reject(new Expired('token t-1 expired')).catch((error: unknown) => error)
    const { ask, errors } = await operation(withAuth(httpBearer({ authenticate })))
    expectCrashed(await ask('/x', bearer('t')))
    expect(errors).toStrictEqual([expect.any(Expired)])
  })

  test('gets the response of the handler of its class, as if it was thrown', async () => {
    const settings = authSettings({ onError: [onError(Expired, () => ({ status: 418, body: { short: true } }))] })
    const { ask } = await operation(withAuth(httpBearer({ authenticate: () => new Expired('x') })), (app) =>
      app.use(settings),
    )
    const { status, seen } = await ask('/x', bearer('t'))
    expect({ status, seen }).toStrictEqual({ status: 418, seen: [] })
  })
})

describe('R05 a `_tag` in data', () => {
  const root = { username: 'root', isSuperuser: true }
  const stored = (more: object) => httpBearer({ authenticate: async () => ({ username: 'mallory', ...more }) })

  test.each([
    ['Right', { right: root }],
    ['Some', { value: root }],
    ['Left', { left: AuthError.absent }],
    ['None', {}],
    ['absent', {}],
    ['unavailable', {}],
    ['invalid', { challenge: { scheme: 'Login', parameters: {} } }],
  ])('%s is a 500, even with `optional`', async (tag, payload) => {
    const { ask } = await operation(withAuth(stored({ _tag: tag, ...payload })))
    expectCrashed(await ask('/x', bearer('t')))
  })

  test('an outage that stored data pretend does not reach `recoverUnavailable`', async () => {
    let asked = 0
    const recovered = pipe(
      stored({ _tag: 'unavailable' }),
      recoverUnavailable(() => {
        asked++
        return root
      }),
    )
    const { ask } = await operation(withAuth(recovered))
    expectCrashed(await ask('/x', bearer('t')))
    expect(asked).toBe(0)
  })

  test('an absence that stored data pretend is not anonymous with `optional`', async () => {
    const { ask } = await operation(withAuth(optional(stored({ _tag: 'absent' }))))
    expectCrashed(await ask('/x', bearer('t')))
  })

  test('a `_tag` of another kind is data', async () => {
    const { ask } = await operation(withAuth(stored({ _tag: 'User' })))
    expectPassed(await ask('/x', bearer('t')), { username: 'mallory', _tag: 'User' })
  })
})

describe('R15 constants that all requests share', () => {
  const never = httpBearer({ authenticate: () => false })

  test('a hook that writes to them by mistake gets a 500, and no other request is affected', async () => {
    const user = optional(never)
    const slips = {
      '/guest': withAuth((request) => async () => {
        const result = await user(request)()
        if (E.isRight(result)) Object.assign(result, { right: { guest: request.get('X-Guest') } })
        return result
      }),
      '/old': withAuth(
        httpBearer({
          authenticate: (_request, token) =>
            E.left(Object.assign(AuthError.expired, { challenge: { scheme: 'Login', parameters: { hint: token } } })),
        }),
      ),
    }
    const clean = {
      '/optional': withAuth(user),
      '/denied': withAuth(never),
      '/expired': withAuth(httpBearer({ authenticate: () => E.left(AuthError.expired) })),
    }
    const { ask } = await running((app, answering) => {
      const tenants = new Router({ prefix: '/t' })
      tenants.use(
        '',
        authSettings({
          errorMapper: (error, request) =>
            Object.assign(defaultErrorMapper(error, request), { headers: { 'X-Id': request.get('X-Id') } }),
        }),
      )
      tenants.get('/x', withAuth(never), answering)
      const router = new Router()
      for (const [path, guard] of Object.entries({ ...slips, ...clean })) router.get(path, guard, answering)
      app.use(tenants.routes()).use(router.routes())
    })
    expectCrashed(await ask('/guest', { headers: { 'X-Guest': 'anna' } }))
    expectCrashed(await ask('/old', bearer('annas-token')))
    expectCrashed(await ask('/t/x', { headers: { 'X-Id': 'anna' } }))
    expectPassed(await ask('/optional'), undefined)
    const denied = await ask('/denied')
    expectDenied(denied, 401, [challenge.bearer])
    expect(denied.headers['x-id']).toBeUndefined()
    expectDenied(await ask('/expired', bearer('b')), 401, [challenge.refusedBearer])
  })

  test('a failure that a mapper gets is read-only', async () => {
    const writes = [
      (error: AuthError) => Object.assign(error, { retryAfter: 1 }),
      (error: AuthError) => Object.assign(error.challenge ?? {}, { scheme: 'Login' }),
      (error: AuthError) => Object.assign(error.challenge?.parameters ?? {}, { hint: 'anna' }),
    ]
    for (const write of writes) {
      const settings = authSettings({
        errorMapper: (error, request) => {
          write(error)
          return defaultErrorMapper(error, request)
        },
      })
      const { ask } = await operation(withAuth(never), (app) => app.use(settings))
      expectCrashed(await ask('/x'))
      expectCrashed(await ask('/x', bearer('t')))
    }
  })
})
