/** Spec 5.1.5 and 7.1 to 7.3: exceptions of authenticators and of operations that have a registered handler. */
import Router from '@koa/router'
import Koa from 'koa'
import { apiApp, authSettings, httpBearer, onError, withAuth, type ExceptionHandler } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { ask, listen } from '../../support/servers/server.js'

class InvalidToken extends Error {}
class Revoked extends InvalidToken {}
class Unrelated extends Error {}

/** Two operations, on plain Koa and on `apiApp`: an authenticator that throws, and a handler that throws. */
const serveBoth = async (make: () => unknown, ...handlers: ReadonlyArray<ExceptionHandler>) => {
  const raise = throwing(make)
  let runs = 0
  const raising = httpBearer({ authenticate: () => raise() })
  const passing = httpBearer({ authenticate: () => true })
  const api = apiApp({ onError: handlers, realm: 'pets' })
  const router = new Router()
  for (const target of [api, router] as Router[]) {
    target.get('/auth', withAuth(raising), () => void runs++)
    target.get('/operation', withAuth(passing), () => raise())
    target.get('/public', () => raise())
  }
  const served = await Promise.all([
    listen(new Koa().use(api.routes())),
    listen(new Koa().use(authSettings({ onError: handlers, realm: 'pets' })).use(router.routes())),
  ])
  const get = (path: string) =>
    Promise.all(served.map(({ url }) => ask(`${url}${path}`, { headers: { Authorization: 'Bearer secret-token' } })))
  return { get, runs: () => runs, errors: () => served.flatMap(({ errors }) => errors) }
}

const throwing = (make: () => unknown) => (): never => {
  throw make()
}

describe('5.1.5, 7.1 an exception with a registered handler', () => {
  for (const [kind, answer] of [
    ['at once', () => ({ status: 418, headers: { 'X-From': 'handler' }, body: { detail: 'teapot' } })],
    ['later', async () => ({ status: 418, headers: { 'X-From': 'handler' }, body: { detail: 'teapot' } })],
  ] as const) {
    it(`gets the response of its handler ${kind}, wherever it was thrown`, async () => {
      const { get, runs, errors } = await serveBoth(() => new InvalidToken('x'), onError(InvalidToken, answer))
      for (const path of ['/auth', '/operation', '/public']) {
        for (const response of await get(path)) {
          expect(response.status).toBe(418)
          expect(response.text).toBe('{"detail":"teapot"}')
          expect(response.headers.get('x-from')).toBe('handler')
          expect(response.headers.get('content-type')).toBe('application/json')
          expect(response.challenge).toBeNull()
        }
      }
      expect(runs()).toBe(0)
      expect(errors()).toEqual([])
    })
  }

  it('is passed to its handler with the request', async () => {
    const seen: unknown[] = []
    const exception = new InvalidToken('x')
    const { get } = await serveBoth(
      () => exception,
      onError(InvalidToken, (request, error) => {
        seen.push(request.path, error)
        return { status: 400, body: null }
      }),
    )
    await get('/auth')
    expect(seen).toEqual(['/auth', exception, '/auth', exception])
  })
})

describe('7.2 an exception handler that answers 401', () => {
  it("has the operation's challenge and is not stored, unless the exception handler says otherwise", async () => {
    const invalid = onError(InvalidToken, () => ({ status: 401, body: { detail: 'Invalid token' } }))
    const { get } = await serveBoth(() => new InvalidToken('x'), invalid)
    for (const path of ['/auth', '/operation']) {
      for (const { status, text, challenge, headers } of await get(path)) {
        expect([status, text, challenge]).toEqual([401, '{"detail":"Invalid token"}', 'Bearer realm="pets"'])
        expect(headers.get('cache-control')).toContain('no-store')
        expect(headers.get('vary')).toBe('Authorization')
      }
    }
  })

  it('keeps a challenge that the exception handler set', async () => {
    const own = onError(InvalidToken, () => ({ status: 401, headers: { 'WWW-Authenticate': 'Own realm="x"' } }))
    const { get } = await serveBoth(() => new InvalidToken('x'), own)
    for (const { status, challenge } of await get('/auth')) expect([status, challenge]).toEqual([401, 'Own realm="x"'])
  })
})

describe('7.3 the exception handler that is chosen', () => {
  it('is none if no class fits: Koa answers 500 and emits the exception, and the response does not show it', async () => {
    const exception = new Unrelated('the secret-token was bad')
    const other = onError(InvalidToken, () => ({ status: 400 }))
    const { get, runs, errors } = await serveBoth(() => exception, other)
    for (const path of ['/auth', '/operation', '/public']) {
      for (const { status, text } of await get(path)) expect([status, text]).toEqual([500, 'Internal Server Error'])
    }
    expect(runs()).toBe(0)
    expect(new Set(errors())).toEqual(new Set([exception]))
  })

  for (const [description, answer] of [
    ['throws', throwing(() => new Error('of the handler'))],
    ['throws a 200', throwing(() => Object.assign(new Error('x'), { status: 200, expose: true }))],
    ['throws null', throwing(() => null)],
    ['rejects', () => Promise.reject(new Error('x'))],
  ] as const) {
    it(`is a 500 that shows nothing if its handler ${description}`, async () => {
      const { get, runs } = await serveBoth(() => new InvalidToken('x'), onError(InvalidToken, answer))
      for (const path of ['/auth', '/operation']) {
        for (const { status, text } of await get(path)) expect([status, text]).toEqual([500, 'Internal Server Error'])
      }
      expect(runs()).toBe(0)
    })
  }

  it('comes from the inner level, which adds to the outer level and overrides it class by class', async () => {
    const named = (name: string) => () => ({ status: 400, body: name })
    const inner = apiApp({ onError: [onError(Revoked, named('inner Revoked'))] })
    for (const [path, Thrown] of Object.entries({ '/revoked': Revoked, '/invalid': InvalidToken })) {
      const fail = throwing(() => new Thrown())
      inner.get(path, fail)
    }
    const outer = [onError(Revoked, named('outer Revoked')), onError(InvalidToken, named('outer InvalidToken'))]
    const served = await listen(new Koa().use(authSettings({ onError: outer })).use(inner.routes()))
    expect((await ask(`${served.url}/revoked`)).text).toBe('inner Revoked')
    expect((await ask(`${served.url}/invalid`)).text).toBe('outer InvalidToken')
  })
})
