/**
 * Settings for one router: `router.use('', authSettings({ ... }))` before its operations; for which paths they apply,
 * and for which other operations.
 */
import Router, { type RouterInstance } from '@koa/router'
import {
  apiApp,
  apiKeyCookie,
  authSettings,
  AuthError,
  httpBearer,
  perFailure,
  withAuth,
  type AuthSettings,
} from 'koa-with-auth'
import { either as E } from 'fp-ts'
import { describe, expect, test } from 'vitest'
import { crossSite, expectDenied, running, type Answering } from '../../support/models/behavior.js'

const failures: Readonly<Record<string, unknown>> = {
  wrong: E.left(AuthError.invalid),
  old: E.left(AuthError.expired),
  low: E.left(AuthError.insufficient(['read'])),
  down: E.left(AuthError.unavailable(3)),
}
const user = httpBearer({ authenticate: (_request, token) => failures[token] })
const teapot = perFailure({ absent: () => ({ status: 418, body: 'tea' }) })
const set = (options: AuthSettings) => (router: Router) => router.use('', authSettings(options))

describe('settings of one router', () => {
  const within = (router: RouterInstance, answering: Answering): RouterInstance =>
    router.get('/o', withAuth(user), answering)
  const statusesOf = async (build: (answering: Answering) => RouterInstance, paths: ReadonlyArray<string>) => {
    const { ask } = await running((app, answering) => app.use(build(answering).routes()))
    const statuses: Record<string, number> = {}
    for (const path of paths) {
      const { status, seen } = await ask(path)
      expect(seen).toEqual([])
      expect((await ask(path, { method: 'HEAD' })).status).toBe(status)
      statuses[path] = status
    }
    return statuses
  }
  const own = (prefix?: string) => set({ errorMapper: teapot })(new Router(prefix === undefined ? {} : { prefix }))

  test('apply to its prefix, in any letter case, and with a trailing slash', async () => {
    const paths = ['/a/o', '/A/O', '/a/o/', '/A/o?x=1']
    const statuses = await statusesOf((answering) => within(own('/a'), answering), paths)
    expect(statuses).toEqual(Object.fromEntries(paths.map((path) => [path, 418])))
  })

  test('apply if it is mounted at a path, and not to its siblings there', async () => {
    const nested = (answering: Answering) => {
      const parent = new Router({ prefix: '/p' })
      parent.use('/n', within(own(), answering).routes())
      parent.use('/t/:id', within(own('/f'), answering).routes())
      parent.use('/d', withAuth(user)(within(own(), answering)).routes())
      return parent.get('/sibling', withAuth(user), answering)
    }
    const held = ['/p/n/o', '/P/N/O', '/p/t/1/f/o', '/P/T/1/F/O', '/p/d/o', '/P/D/O']
    expect(await statusesOf(nested, [...held, '/p/sibling', '/P/SIBLING'])).toEqual({
      ...Object.fromEntries(held.map((path) => [path, 418])),
      '/p/sibling': 401,
      '/P/SIBLING': 401,
    })
  })

  test('apply only to what is registered after them', async () => {
    const late = (answering: Answering) => {
      const router = new Router().get('/before', withAuth(user), answering) as Router
      return within(set({ errorMapper: teapot })(router), answering)
    }
    expect(await statusesOf(late, ['/before', '/o'])).toEqual({ '/before': 401, '/o': 418 })
  })

  test('add to outer settings, which stay for others', async () => {
    const { ask } = await running((app, answering) => {
      const api = apiApp({ prefix: '/api', realm: 'outer', errorMapper: teapot })
      const inner = set({ realm: 'inner' })(new Router())
      set({ errorMapper: perFailure({}) })(inner)
      api.use('/in', within(inner, answering).routes())
      app.use(within(api, answering).routes())
    })
    expect(await ask('/api/o')).toMatchObject({ status: 418, challenges: [] })
    expectDenied(await ask('/api/in/o'), 401, ['Bearer realm="inner"'])
    expectDenied(await ask('/API/IN/O'), 401, ['Bearer realm="inner"'])
    expect(await ask('/api/o')).toMatchObject({ status: 418, challenges: [] })
  })

  // The `use` layers of a child that is mounted without a path become layers among its siblings (D-R5)
  test('D-R5 apply to siblings after a router that is mounted without a path, but not after one with a path', async () => {
    const cookie = apiKeyCookie({ authenticate: () => ({ user: 'anna' }) })
    const { ask } = await running((app, answering) => {
      const hooks = set({ csrf: false })(new Router()).post('/hook', withAuth(cookie), answering)
      const bank = new Router().post('/transfer', withAuth(cookie), answering)
      const parent = new Router()
      parent.use('/in', hooks.routes())
      parent.use(bank.routes())
      parent.use(set({ csrf: false })(new Router()).routes())
      parent.post('/late', withAuth(cookie), answering)
      app.use(parent.routes())
    })
    const forged = { ...crossSite, headers: { ...crossSite.headers, Cookie: 'key=k' } }
    expect(await ask('/in/hook', forged)).toMatchObject({ status: 200 })
    expect(await ask('/late', forged)).toMatchObject({ status: 200 })
    expectDenied(await ask('/transfer', forged), 403, [], 'CSRF check Failed')
  })
})
