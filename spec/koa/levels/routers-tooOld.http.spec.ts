/**
 * Routers that do not say which layer runs: koa-router 7 and @koa/router 8. They are refused, and no request passes.
 */
import type Router from '@koa/router'
import Koa from 'koa'
import { httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { ask, listen } from '../../support/servers/server.js'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const routerOf = async (name: string): Promise<typeof Router> =>
  ((await import(name)) as { default: typeof Router }).default

const why = 'this router is too old to be guarded; install @koa/router 12 or later (or koa-router 12)'

describe.each(['koa-router-classic-7', 'koa-router-8'])('%s', (name) => {
  it('withAuth(a)(router) is a TypeError that names the fix', async () => {
    const Old = await routerOf(name)
    expect(() => withAuth(bearer)(new Old())).toThrow(new TypeError(`withAuth(a)(router): ${why}`))
  })

  it('an operation with a guard is a 500, even with a valid token, and does not run', async () => {
    const Old = await routerOf(name)
    let ran = 0
    const router = new Old().get('/x', withAuth(bearer), () => void (ran += 1))
    // Safe: the middleware of an old router is middleware, too
    const { url, errors } = await listen(new Koa().use(router.routes() as unknown as Koa.Middleware))
    for (const init of [{}, { headers: { Authorization: 'Bearer good' } }])
      expect(await ask(`${url}/x`, init)).toMatchObject({ status: 500, text: 'Internal Server Error' })
    expect(ran).toBe(0)
    expect(errors.map(String)).toStrictEqual([`Error: withAuth(a): ${why}`, `Error: withAuth(a): ${why}`])
  })
})
