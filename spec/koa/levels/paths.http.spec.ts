/**
 * Spec 5.6 for every form of path: prefixes with parameters, arrays, regular expressions, exclusive routers.
 */
import Router from '@koa/router'
import { withAuth } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { admitted, appOf, bearerFor, denied, handler, notFound, outcome, tokenOf } from '../../support/models/levels.js'
import { serve } from '../../support/servers/server.js'

const [a, b] = [bearerFor('a'), bearerFor('b')]
const next = (_ctx: object, go: () => Promise<unknown>) => go()

describe('A-02 prefixes with parameters', () => {
  const served = serve(() => {
    const own = withAuth(a)(new Router({ prefix: '/own/:id' }))
    own.use(next)
    own.get('/x', handler('prefixed'))
    const before = new Router({ prefix: '/before/:id' })
    before.get('/x', handler('prefixed'))
    const late = withAuth(a)(new Router())
    late.get('/x', handler('prefixed'))
    late.prefix('/late/:id')
    late.get('/y', handler('prefixed'))

    const child = new Router({ prefix: '/c/:c' })
    child.use(next)
    child.get('/x', handler('prefixed'))
    child.get('/own', withAuth(b), handler('prefixed'))
    const parent = new Router({ prefix: '/p/:p' })
    parent.use('/m/:m', child.routes())
    const root = withAuth(a)(new Router({ prefix: '/r/:r' }))
    root.use('/n/:n', parent.routes())
    const mounted = new Router()
    mounted.use('/mounted/:id', withAuth(a)(child).routes())
    return appOf(own.routes(), withAuth(a)(before).routes(), late.routes(), root.routes(), mounted.routes())
  })

  test.each([
    ['/own/1/x', 'a'],
    ['/before/1/x', 'a'],
    ['/late/1/x', 'a'],
    ['/late/1/y', 'a'],
    ['/mounted/1/c/2/x', 'a'],
    ['/mounted/1/c/2/own', 'b'],
    ['/r/1/n/2/p/3/m/4/c/5/x', 'a'],
    ['/r/1/n/2/p/3/m/4/c/5/own', 'b'],
  ])('A-02, D-R1 %s is guarded, also in capitals and with a trailing slash', async (path, realm) => {
    for (const spelling of [path, path.toUpperCase(), `${path}/`, path.replace('1', '%31')]) {
      expect(await outcome(served.port, spelling, 'prefixed')).toEqual(denied(realm))
      expect(await outcome(served.port, spelling, 'prefixed', tokenOf(realm))).toEqual(admitted(realm))
    }
  })
})

describe('arrays of paths', () => {
  const served = serve(() => {
    const router = withAuth(a)(new Router())
    router.param('id', (_id, _ctx, go) => go())
    router.get(['/one', '/two/:id', '/three/:id'], handler('array'))
    router.get(['/four', '/five/:id'], withAuth(b), handler('array'))
    const plain = new Router()
    plain.get(['/six', '/seven/:id'], withAuth(b), handler('array'))
    plain.get(['/eight', '/nine/:id'], handler('array'))
    plain.use(['/in', '/too'], router.routes())
    return appOf(router.routes(), withAuth(a)(plain).routes(), withAuth(a)(withAuth(b)(plain)).routes())
  })

  test.each([
    ['/one', 'a'],
    ['/two/1', 'a'],
    ['/three/1', 'a'],
    ['/four', 'b'],
    ['/five/1', 'b'],
    ['/six', 'b'],
    ['/seven/1', 'b'],
    ['/eight', 'a'],
    ['/nine/1', 'a'],
    ['/in/one', 'a'],
    ['/too/five/1', 'b'],
  ])('every path of an array is guarded: %s', async (path, realm) => {
    expect(await outcome(served.port, path, 'array')).toEqual(denied(realm))
    expect(await outcome(served.port, path, 'array', tokenOf(realm))).toEqual(admitted(realm))
  })
})

describe('D-R7 regular expressions', () => {
  const served = serve(() => {
    const router = withAuth(a)(new Router({ prefix: '/p' }))
    router.get(/^\/re\/(\w+)$/, handler('regex'))
    router.get(/^\/own\/\w+$/i, withAuth(b), handler('regex'))
    const child = new Router()
    child.get(/^\/child$/, handler('regex'))
    router.use('/sub', child.routes())
    const stateful = new Router()
    stateful.get(/^\/g\/\w+/g, handler('regex'))
    stateful.get(/\/y\/\w+/y, withAuth(b), handler('regex'))
    stateful.use(/^\/g/g, next)
    return appOf(router.routes(), withAuth(a)(stateful).routes())
  })

  test.each([
    ['/re/x', 'a'],
    ['/own/x', 'b'],
    ['/OWN/x', 'b'],
    ['/child', 'a'],
  ])('D-R7 %s, which ignores the prefix, is guarded', async (path, realm) => {
    expect(await outcome(served.port, path, 'regex')).toEqual(denied(realm))
    expect(await outcome(served.port, path, 'regex', tokenOf(realm))).toEqual(admitted(realm))
  })

  test.each([
    ['/g/x', 'a'],
    ['/y/x', 'b'],
  ])('D-R7 an expression that keeps its lastIndex admits no stranger to %s', async (path, realm) => {
    const seen = new Set<number>()
    for (const [turn, asked] of [path, path, `${path}/none`, path, '/none', path, path].entries()) {
      const bare = await outcome(served.port, asked, 'regex')
      expect(bare, `request ${turn}`).toEqual(bare.status === 404 ? notFound : denied(realm))
      seen.add(bare.status)
    }
    expect(seen).toContain(401)
  })
})

describe('D-R4 exclusive routers', () => {
  const served = serve(() => {
    const last = withAuth(a)(new Router({ exclusive: true }))
    last.use((_ctx, go) => go())
    last.get('/last/:id', withAuth(null), handler('open'))
    last.get('/last/me', handler('guarded'))
    const fewest = withAuth(a)(new Router({ exclusive: 'specificity' }))
    fewest.get('/few/me', handler('guarded'))
    fewest.get('/few/:id', withAuth(null), handler('open'))
    const used = withAuth(a)(new Router({ exclusive: 'specificity' }))
    used.use((_ctx, go) => go())
    used.get('/used/me', handler('guarded'))
    return appOf(last.routes(), fewest.routes(), used.routes())
  })

  test.each(['/last/me', '/few/me'])('D-R4 the layer that runs for %s has its guard', async (path) => {
    expect(await outcome(served.port, path, 'guarded')).toEqual(denied('a'))
    expect(await outcome(served.port, path, 'guarded', tokenOf('a'))).toEqual(admitted('a'))
    expect(await outcome(served.port, path.replace('me', '7'), 'open')).toEqual(admitted(null))
  })

  test('D-R4 if middleware runs instead of the route, nothing is served', async () => {
    expect(await outcome(served.port, '/used/me', 'guarded', tokenOf('a'))).toEqual(notFound)
  })
})
