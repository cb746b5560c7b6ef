/** D-R10: a `param` hook looks something up, so it must not run for a request that is refused. */
import Router, { type RouterInstance } from '@koa/router'
import { withAuth } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import {
  admitted,
  appOf,
  bearerFor,
  callsOf,
  count,
  denied,
  handler,
  outcome,
  tokenOf,
} from '../../support/models/levels.js'
import { listen, serve } from '../../support/servers/server.js'

const a = bearerFor('a')

const order: string[] = []

const hooked = (router: RouterInstance, name: string) =>
  router.param(name, (_value, _ctx, next) => {
    count('hook')
    order.push(`hook ${name}`)
    return next()
  })

const limiter = (_ctx: object, next: () => Promise<unknown>) => {
  count('limiter')
  order.push('limiter')
  return next()
}

const guarded = (router: RouterInstance) => router.get('/o/:one/:two', withAuth(a), handler('param'))
const bare = (router: RouterInstance) => router.get('/o/:one/:two', handler('param'))
const limited = (router: RouterInstance) => router.get('/o/:one/:two', limiter, withAuth(a), handler('param'))
const hooks = (router: RouterInstance) => hooked(hooked(router, 'two'), 'one')

interface Way {
  readonly description: string
  readonly make: () => RouterInstance
  readonly limits?: true
}

const ways: ReadonlyArray<Way> = [
  { description: 'plain router, hooks before the operation', make: () => guarded(hooks(new Router())) },
  { description: 'plain router, hooks after the operation', make: () => hooks(guarded(new Router())) },
  { description: 'derived router, hooks before the operation', make: () => bare(hooks(withAuth(a)(new Router()))) },
  { description: 'derived router, hooks after the operation', make: () => hooks(bare(withAuth(a)(new Router()))) },
  { description: 'router derived from one with hooks', make: () => withAuth(a)(hooks(bare(new Router()))) },
  {
    description: 'derived router, operation with its own guard, hooks before it',
    make: () => guarded(hooks(withAuth(null)(new Router()))),
  },
  {
    description: 'derived router, operation with its own guard, hooks after it',
    make: () => hooks(guarded(withAuth(null)(new Router()))),
  },
  {
    description: 'wrapped twice, hooks added between',
    make: () => hooks(withAuth(a)(hooked(bare(withAuth(null)(new Router())), 'two'))),
  },
  {
    description: 'mounted in a derived router with hooks',
    make: () => {
      const root = hooks(withAuth(a)(new Router()))
      root.use(bare(new Router()).routes())
      return root
    },
  },
  {
    description: 'mounted with its own guard in a plain router with hooks before and after',
    make: () => {
      const root = hooked(new Router(), 'one')
      root.use(guarded(new Router()).routes())
      return hooked(root, 'two')
    },
  },
  {
    description: 'limiter before the guard, derived router, hooks before the operation',
    make: () => limited(hooks(withAuth(null)(new Router()))),
    limits: true,
  },
  {
    description: 'limiter before the guard, derived router, hooks after the operation',
    make: () => hooks(limited(withAuth(null)(new Router()))),
    limits: true,
  },
  {
    description: 'limiter before the guard, router derived from one with hooks, and wrapped again',
    make: () => withAuth(null)(hooked(withAuth(null)(hooked(limited(new Router()), 'two')), 'one')),
    limits: true,
  },
  {
    description: 'limiter before the guard, mounted in a derived router with hooks',
    make: () => {
      const root = hooks(withAuth(null)(new Router()))
      root.use(limited(new Router()).routes())
      return root
    },
    limits: true,
  },
]

describe('D-R10 param hooks', () => {
  const served = serve(() => {
    const root = new Router()
    for (const [at, { make }] of ways.entries()) root.use(`/w${at}`, make().routes())
    return appOf(root.routes())
  })

  test.each(ways.map(({ description, limits }, at) => ({ description, path: `/w${at}/o/1/2`, limits })))(
    'D-R10 $description: no hook runs for a refused request',
    async ({ path, limits }) => {
      order.length = 0
      callsOf('hook')
      expect(await outcome(served.port, path, 'param')).toEqual(denied('a'))
      expect(callsOf('hook')).toBe(0)
      expect(order).toEqual(limits ? ['limiter'] : [])
    },
  )

  test.each(ways.map(({ description, limits }, at) => ({ description, path: `/w${at}/o/1/2`, limits })))(
    'D-R10 $description: both hooks run for an accepted request, in the order of the path',
    async ({ path, limits }) => {
      order.length = 0
      expect(await outcome(served.port, path, 'param', tokenOf('a'))).toEqual(admitted('a'))
      expect([...new Set(order)]).toEqual([...(limits ? ['limiter'] : []), 'hook one', 'hook two'])
    },
  )

  test('a hook of a derived router does not run in the original router', () => {
    const base = bare(new Router())
    hooks(withAuth(a)(base))
    expect([Object.keys(base.params), base.stack[0]?.stack.length]).toEqual([[], 1])
  })

  test('D-R10 a guard given to `param` is a 500, and no request passes', async () => {
    // Safe: this test passes a function that is not a hook
    const misused = bare(new Router().param('one', withAuth(a) as never))
    const own = await listen(appOf(misused.routes()))
    expect(await outcome(own.port, '/o/1/2', 'param', tokenOf('a'))).toMatchObject({ status: 500, calls: 0 })
    expect(String(own.errors[0])).toContain('router.get(path, withAuth(a), handler)')
    await own.close()
  })
})
