/** One request through several layers, and guards in layers that others have changed. */
import Router, { type RouterInstance } from '@koa/router'
import type { Next } from 'koa'
import { also, apiKeyHeader, authSettings, httpBearer, onError, withAuth } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, challenge, running, type Sending } from '../../support/models/behavior.js'
import {
  appOf,
  bearerFor,
  callsOf,
  count,
  denied,
  guardOf,
  handler,
  outcome,
  tokenOf,
} from '../../support/models/levels.js'
import { listen } from '../../support/servers/server.js'

const user = httpBearer({ authenticate: (_request, token) => token === 't' && { user: 'anna' } })
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => sent === 'k' && { client: 'Acme' } })

interface Ctx {
  readonly request: object
  body: unknown
}
const authOf = ({ request }: Ctx): unknown => Reflect.get(request, 'auth')

describe('a handler whose next() reaches a second layer of the same URL finds its own principal afterwards', () => {
  const through = async (second: unknown, handle: (ctx: Ctx) => unknown, sent: Sending = bearer('t')) => {
    const met: Record<string, unknown> = {}
    const { ask } = await running((app) => {
      const first = (ctx: Ctx, next: Next) => {
        met['before'] = authOf(ctx)
        return next().finally(() => void (met['after'] = authOf(ctx)))
      }
      const last = (ctx: Ctx) => {
        met['inside'] = authOf(ctx)
        return handle(ctx)
      }
      const router = new Router().get('/:id', withAuth(user), first)
      app.use(router.get('/x', guardOf(second), last).routes())
    })
    const { status, challenges } = await ask('/x', sent)
    return { ...met, status, challenges }
  }
  const anna = { user: 'anna' }
  const acme = { client: 'Acme' }
  const answer = (ctx: Ctx) => {
    ctx.body = 'ok'
  }
  const fail = () => Promise.reject(new Error('inside'))
  const failSync = (): never => JSON.parse('{') as never
  const withKey = { headers: { ...bearer('t').headers, 'X-Key': 'k' } }

  test.each<[second: string, auth: unknown, handle: (ctx: Ctx) => unknown, sent: Sending | undefined, seen: object]>([
    ['is public', null, answer, undefined, { inside: undefined, status: 200, challenges: [] }],
    ['is public and rejects', null, fail, undefined, { inside: undefined, status: 500 }],
    ['is public and throws', null, failSync, undefined, { inside: undefined, status: 500 }],
    ['has another principal', key, answer, withKey, { inside: acme, status: 200 }],
    ['has another principal, and rejects', key, fail, withKey, { inside: acme, status: 500 }],
    ['refuses', key, answer, undefined, { status: 401, challenges: [challenge.key('header', 'X-Key')] }],
    ['has a hook that throws', failSync, answer, undefined, { status: 500 }],
  ])('if the second layer %s', async (_second, auth, handle, sent, expected) => {
    const seen = await through(auth, handle, sent)
    expect(seen).toMatchObject({ before: anna, after: anna, ...expected })
    expect('inside' in seen).toBe('inside' in expected)
  })
})

describe('the response of two guarded layers', () => {
  test.each(['answers', 'throws'])('has what both read in Vary, if the second layer %s', async (what) => {
    const { ask } = await running((app, answering) => {
      const router = new Router().get('/:id', withAuth(user), (_ctx, next) => next())
      const last = (ctx: Ctx) => (what === 'throws' ? Promise.reject(new Error('inside')) : answering(ctx))
      app.use(router.get('/x', withAuth(key), last).routes())
    })
    const { headers } = await ask('/x', { headers: { ...bearer('t').headers, 'X-Key': 'k' } })
    expect(headers.vary?.split(', ').toSorted()).toEqual(['Authorization', 'X-Key'])
    expect(headers['cache-control']).toBe('private, no-store')
  })
})

describe('an exception after a part of the response was sent', () => {
  test('is emitted as it is, and no onError handler is called', async () => {
    class Broken extends Error {}
    let asked = 0
    const { ask, errors } = await running((app) => {
      const answer = () => {
        asked++
        return { status: 409, body: { detail: 'handled' } }
      }
      app.use(authSettings({ onError: [onError(Broken, answer)] }))
      const router = new Router()
      router.get('/x', withAuth(user), (ctx) => {
        if (ctx.query['early'] !== undefined) throw new Broken('early')
        ctx.respond = false
        ctx.res.writeHead(200, { 'Content-Type': 'text/plain' }).write('part')
        setTimeout(() => ctx.res.end(' of it'), 5)
        throw new Broken('the real one')
      })
      app.use(router.routes())
    })
    expect(await ask('/x', bearer('t'))).toMatchObject({ status: 200, body: 'part of it' })
    expect(asked).toBe(0)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toBeInstanceOf(Broken)
    expect(errors[0]).toMatchObject({ message: 'the real one' })
    expect(await ask('/x?early', bearer('t'))).toMatchObject({ status: 409, body: { detail: 'handled' } })
    expect([asked, errors.length]).toEqual([1, 1])
  })
})

describe('a guard that a second withAuth replaces is found by its identity', () => {
  const [a, b] = [guardOf(bearerFor('a')), guardOf(bearerFor('b'))]
  const ahead = (_ctx: object, next: Next): unknown => {
    count('ahead')
    return next()
  }
  const before = (router: RouterInstance): RouterInstance => {
    for (const { stack } of router.stack) stack.unshift(ahead)
    return router
  }
  const served = async (routers: Readonly<Record<string, RouterInstance>>, use: (port: number) => Promise<void>) => {
    const root = new Router()
    for (const [path, router] of Object.entries(routers)) root.use(path, router.routes())
    const { port, close } = await listen(appOf(root.routes()))
    await use(port).finally(close)
  }
  const first = () => before(a(new Router().get('/x', handler('x')).get('/own', b, handler('own'))))

  test('if another function is before it: the new guard decides, the old one is removed, and the function stays', () =>
    served(
      { '/b': b(first()), '/open': guardOf(null)(first()), '/also': guardOf(also(bearerFor('b')))(first()) },
      async (port) => {
        expect(await outcome(port, '/b/x', 'x', tokenOf('a'))).toEqual(denied('b', ', error="invalid_token"'))
        expect(callsOf('ahead')).toBe(0)
        expect(await outcome(port, '/b/x', 'x', tokenOf('b'))).toMatchObject({ status: 200, says: 'b', calls: 1 })
        expect(callsOf('ahead')).toBe(1)
        expect(await outcome(port, '/open/x', 'x')).toMatchObject({ status: 200, says: null, calls: 1 })
        expect(await outcome(port, '/also/x', 'x', tokenOf('b'))).toMatchObject({ says: { own: 'b' }, calls: 1 })
        expect(await outcome(port, '/also/x', 'x', tokenOf('a'))).toMatchObject({ status: 401, calls: 0 })
      },
    ))

  test('if it is the guard of an operation itself, it stays', () =>
    served({ '/b': guardOf(null)(first()) }, async (port) => {
      expect(await outcome(port, '/b/own', 'own')).toEqual(denied('b'))
    }))

  test('if it adds at an operation, it is found again by the next level', () => {
    const inner = () => before(a(new Router().get('/x', guardOf(also(bearerFor('b'))), handler('x'))))
    return served({ '/once': inner(), '/open': guardOf(null)(inner()), '/b': b(inner()) }, async (port) => {
      // One Authorization line cannot have two tokens
      expect(await outcome(port, '/once/x', 'x', tokenOf('b'))).toMatchObject({ status: 401, calls: 0 })
      expect(await outcome(port, '/open/x', 'x', tokenOf('b'))).toMatchObject({ status: 200, says: { own: 'b' } })
      expect(await outcome(port, '/b/x', 'x', tokenOf('b'))).toMatchObject({ says: { inherited: 'b', own: 'b' } })
      expect(await outcome(port, '/b/x', 'x', tokenOf('a'))).toMatchObject({ status: 401, calls: 0 })
    })
  })
})
