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

const level = () => withAuth(a)(new Router())
const open = () => withAuth(null)(new Router())
const ways: ReadonlyArray<readonly [description: string, make: () => RouterInstance, limits?: true]> = [
  ['plain router, hooks before the operation', () => guarded(hooks(new Router()))],
  ['plain router, hooks after the operation', () => hooks(guarded(new Router()))],
  ['derived router, hooks before the operation', () => bare(hooks(level()))],
  ['derived router, hooks after the operation', () => hooks(bare(level()))],
  ['router derived from one with hooks', () => withAuth(a)(hooks(bare(new Router())))],
  ['derived router, operation with its own guard, hooks before it', () => guarded(hooks(open()))],
  ['derived router, operation with its own guard, hooks after it', () => hooks(guarded(open()))],
  ['wrapped twice, hooks added between', () => hooks(withAuth(a)(hooked(bare(open()), 'two')))],
  ['mounted in a derived router with hooks', () => hooks(level()).use(bare(new Router()).routes())],
  [
    'mounted with its own guard in a plain router with hooks before and after',
    () => hooked(hooked(new Router(), 'one').use(guarded(new Router()).routes()), 'two'),
  ],
  ['limiter, derived router, hooks before the operation', () => limited(hooks(open())), true],
  ['limiter, derived router, hooks after the operation', () => hooks(limited(open())), true],
  [
    'limiter, router derived from one with hooks, and wrapped again',
    () => withAuth(null)(hooked(withAuth(null)(hooked(limited(new Router()), 'two')), 'one')),
    true,
  ],
  ['limiter, mounted in a derived router with hooks', () => hooks(open()).use(limited(new Router()).routes()), true],
]

describe('D-R10 param hooks', () => {
  const served = serve(() => {
    const root = new Router()
    for (const [at, [, make]] of ways.entries()) root.use(`/w${at}`, make().routes())
    return appOf(root.routes())
  })

  const rows = ways.map(([description, , limits], at) => [description, `/w${at}/o/1/2`, limits] as const)
  test.each(rows)('D-R10 %s: no hook runs for a refused request, and both in order else', async (_, path, limits) => {
    order.length = 0
    callsOf('hook')
    expect(await outcome(served.port, path, 'param')).toEqual(denied('a'))
    expect(callsOf('hook')).toBe(0)
    expect(order).toEqual(limits ? ['limiter'] : [])
    order.length = 0
    expect(await outcome(served.port, path, 'param', tokenOf('a'))).toEqual(admitted('a'))
    expect([...new Set(order)]).toEqual([...(limits ? ['limiter'] : []), 'hook one', 'hook two'])
  })

  test('D-R10 a guard given to `param` is a 500, and no request passes', async () => {
    // Safe: this test passes a function that is not a hook
    const misused = bare(new Router().param('one', withAuth(a) as never))
    const own = await listen(appOf(misused.routes()))
    expect(await outcome(own.port, '/o/1/2', 'param', tokenOf('a'))).toMatchObject({ status: 500, calls: 0 })
    expect(String(own.errors[0])).toContain('router.get(path, withAuth(a), handler)')
  })
})
