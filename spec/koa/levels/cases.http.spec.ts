/** Spec 5.6 for routers that are reused, filled late, wrapped twice, or have layers of different owners. */
import { createRequire } from 'node:module'
import Router, { type RouterInstance } from '@koa/router'
import { apiKeyHeader, withAuth } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import {
  admitted,
  appOf,
  bearerFor,
  count,
  denied,
  handler,
  notFound,
  outcome,
  tokenOf,
} from '../../support/models/levels.js'
import { listen, serve } from '../../support/servers/server.js'

const [a, b] = [bearerFor('a'), bearerFor('b')]

describe('5.6.2 the same router mounted twice', () => {
  const shared = new Router()
  shared.get('/x', handler('shared'))
  const before = shared.stack.map((layer) => [layer, layer.path, [...layer.stack]])
  const served = serve(() => {
    const root = new Router()
    root.use('/a', withAuth(a)(shared).routes())
    root.use('/b', withAuth(b)(shared).routes())
    root.use('/open', withAuth(null)(withAuth(a)(shared)).routes())
    root.use('/plain', shared.routes())
    return appOf(root.routes())
  })

  test('5.6.2 each registration has its own requirement', async () => {
    expect(await outcome(served.port, '/a/x', 'shared')).toEqual(denied('a'))
    expect(await outcome(served.port, '/b/x', 'shared')).toEqual(denied('b'))
    expect(await outcome(served.port, '/b/x', 'shared', tokenOf('a'))).toEqual(denied('b', ', error="invalid_token"'))
    expect(await outcome(served.port, '/b/x', 'shared', tokenOf('b'))).toEqual(admitted('b'))
    expect(await outcome(served.port, '/open/x', 'shared')).toEqual(admitted(null))
    expect(await outcome(served.port, '/plain/x', 'shared')).toEqual(admitted(null))
  })

  test('withAuth does not change its argument', () => {
    expect(shared.stack.map((layer) => [layer, layer.path, [...layer.stack]])).toEqual(before)
  })
})

describe('routes that are added late are guarded or not served', () => {
  const base = new Router()
  const derived = withAuth(a)(base)
  const served = serve(() => {
    base.get('/before-all', handler('late'))
    derived.get('/after-with-auth', handler('late'))
    const app = appOf(derived.routes())
    derived.get('/after-routes', handler('late'))
    base.get('/into-the-argument', handler('late'))

    const child = new Router()
    child.get('/early', handler('late'))
    const guardedChild = withAuth(b)(child)
    derived.use('/child', child.routes())
    derived.use('/guarded-child', guardedChild.routes())
    child.get('/after-mounting', handler('late'))
    guardedChild.get('/after-mounting', handler('late'))

    const [layer] = child.stack
    for (const put of ['push', 'unshift'] as const) derived.stack[put](relocated(layer!, `/${put}`))
    derived.stack.splice(1, 0, relocated(layer!, '/splice'))
    return app
  })
  const relocated = (layer: RouterInstance['stack'][number], path: string) => {
    const router = new Router()
    router.use(
      path,
      Object.assign(() => undefined, { router: Object.assign(new Router(), { stack: [layer] }) }),
    )
    return router.stack[0]!
  }

  const late = ['/after-with-auth', '/after-routes', '/child/early', '/push/early', '/unshift/early', '/splice/early']
  test.each(late)('%s is guarded', async (path) => {
    expect(await outcome(served.port, path, 'late')).toEqual(denied('a'))
    expect(await outcome(served.port, path, 'late', tokenOf('a'))).toEqual(admitted('a'))
  })

  test('a guarded child keeps its own guard', async () => {
    expect(await outcome(served.port, '/guarded-child/early', 'late', tokenOf('a'))).toMatchObject({ calls: 0 })
    expect(await outcome(served.port, '/guarded-child/early', 'late', tokenOf('b'))).toEqual(admitted('b'))
  })

  const apart = ['/before-all', '/into-the-argument', '/child/after-mounting', '/guarded-child/after-mounting']
  test.each(apart)('%s is not served', async (path) => {
    expect(await outcome(served.port, path, 'late', tokenOf('a'))).toEqual(notFound)
  })
})

// `@koa/router` 14 drops middleware of a router whose prefix has parameters (CVE-2026-9495); a guard is no such middleware
const versions = ['koa-router-12', 'koa-router-13', 'koa-router-14', '@koa/router']
test.each(versions)('a guard of a router whose prefix has parameters, in %s', async (name) => {
  // Safe: these versions have the methods that are used here. Newer ones have a default export
  const loaded = createRequire(import.meta.url)(name) as typeof Router & { readonly default?: typeof Router }
  const teams = withAuth(a)(new (loaded.default ?? loaded)({ prefix: '/teams/:team' }))
  teams.get('/notes', handler('notes')).get('/notes/:id', handler('notes'))
  const { port } = await listen(appOf(teams.routes()))
  for (const path of ['/teams/1/notes', '/teams/1/notes/7']) {
    expect(await outcome(port, path, 'notes')).toEqual(denied('a'))
    expect(await outcome(port, path, 'notes', tokenOf('a'))).toEqual(admitted('a'))
  }
})

describe('decisions of operations stay', () => {
  const served = serve(() => {
    const guard = withAuth(a)
    const own = guard(new Router())
    own.get('/own', guard, handler('own'))
    own.get('/inherited', handler('own'))
    const root = new Router()
    root.use('/opened', withAuth(null)(own).routes())
    root.use('/replaced', withAuth(b)(own).routes())
    return appOf(root.routes())
  })

  test('5.6.3 an operation with the same guard value as its router keeps it when the router is wrapped again', async () => {
    expect(await outcome(served.port, '/opened/own', 'own')).toEqual(denied('a'))
    expect(await outcome(served.port, '/replaced/own', 'own', tokenOf('a'))).toEqual(admitted('a'))
    expect(await outcome(served.port, '/opened/inherited', 'own')).toEqual(admitted(null))
    expect(await outcome(served.port, '/replaced/inherited', 'own')).toEqual(denied('b'))
  })
})

describe('D-R8 each of two layers that match one URL keeps its guard', () => {
  const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => sent === 'k' && 'key' })
  const served = serve(() => {
    const router = withAuth(a)(new Router())
    const passing = (_ctx: object, next: () => Promise<unknown>) => {
      count('first')
      return next()
    }
    router.get('/open/:id', withAuth(null), passing)
    router.get('/open/me', handler('second'))
    router.get('/both/:id', withAuth(key), passing)
    router.get('/both/me', handler('second'))
    router.get('/shadow/me', handler('second'))
    router.get('/shadow/:id', withAuth(null), handler('first'))
    return appOf(router.routes())
  })

  test('D-R8 a public layer that calls next() does not open the guarded layer after it', async () => {
    expect(await outcome(served.port, '/open/me', 'second')).toEqual(denied('a'))
    expect(await outcome(served.port, '/open/me', 'first')).toMatchObject({ status: 401, calls: 1 })
    expect(await outcome(served.port, '/open/me', 'second', tokenOf('a'))).toEqual(admitted('a'))
  })

  test('D-R8 both guards must pass, and each handler gets the principal of its own guard', async () => {
    const headers = { 'X-Key': 'k' }
    const challenge = 'ApiKey realm="api", in="header", name="X-Key"'
    expect(await outcome(served.port, '/both/me', 'first', tokenOf('a'))).toEqual({ ...denied('a'), challenge })
    expect(await outcome(served.port, '/both/me', 'second', undefined, { headers })).toEqual(denied('a'))
    expect(await outcome(served.port, '/both/me', 'second', tokenOf('a'), { headers })).toEqual(admitted('a'))
  })

  test('D-R8 a refused layer does not continue with a public one', async () => {
    expect(await outcome(served.port, '/shadow/me', 'first')).toEqual(denied('a'))
  })
})

describe('middleware and guards', () => {
  const counting = (id: string) => (_ctx: object, next: () => Promise<unknown>) => {
    count(id)
    return next()
  }
  const served = serve(() => {
    const router = withAuth(a)(new Router())
    router.use(counting('used'))
    router.get('/x', counting('behind'), handler('x'))
    router.get('/limited', counting('limiter'), withAuth(b), handler('x'))
    const plain = new Router()
    plain.use(counting('used'))
    plain.get('/plain', counting('limiter'), withAuth(b), counting('behind'), handler('x'))
    return appOf(router.routes(), plain.routes())
  })

  const used = { '/x': 'a', '/plain': 'b' }
  test.each(Object.entries(used))('of %s: that before the guard alone runs for a refused request', async (path, by) => {
    expect(await outcome(served.port, path, 'used')).toEqual({ ...denied(by), calls: 1 })
    expect(await outcome(served.port, path, 'behind')).toEqual(denied(by))
    expect(await outcome(served.port, path, 'x')).toEqual(denied(by))
  })

  test.each(['/limited', '/plain'])('a function before the guard of %s runs for a refused request', async (path) => {
    expect(await outcome(served.port, path, 'limiter')).toEqual({ ...denied('b'), calls: 1 })
    expect(await outcome(served.port, path, 'x')).toEqual(denied('b'))
    expect(await outcome(served.port, path, 'x', tokenOf('b'))).toEqual(admitted('b'))
  })
})
