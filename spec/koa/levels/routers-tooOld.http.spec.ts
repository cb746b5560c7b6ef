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

describe.each(['koa-router-classic-7', 'koa-router-8'])('%s', (name) => {
  it('withAuth(a)(router) is a TypeError that names the fix', async () => {
    const Old = await routerOf(name)
    expect(() => withAuth(bearer)(new Old())).toThrow(
      new TypeError(
        'withAuth(a)(router): this router is too old to be guarded; install @koa/router 12 or later (or koa-router 12)',
      ),
    )
  })

  it('an operation with a guard is a 500, even with a valid token, and does not run', async () => {
    const Old = await routerOf(name)
    let ran = 0
    const errors: string[] = []
    const router = new Old()
    router.get('/x', withAuth(bearer), () => {
      ran += 1
    })
    const app = new Koa()
    app.on('error', (error: Error) => errors.push(error.message))
    // Safe: the middleware of an old router is middleware, too
    app.use(router.routes() as unknown as Koa.Middleware)
    const server = await listen(app)
    for (const headers of [{}, { Authorization: 'Bearer good' }]) {
      const { status, text } = await ask(`http://127.0.0.1:${server.port}/x`, {
        headers: new Headers(Object.entries(headers)),
      })
      expect([status, text]).toStrictEqual([500, 'Internal Server Error'])
    }
    expect(ran).toBe(0)
    expect(new Set(errors)).toStrictEqual(
      new Set([
        'withAuth(a): this router is too old to be guarded; install @koa/router 12 or later (or koa-router 12)',
      ]),
    )
  })
})
