/** Section 5.6 of the requirements: levels and precedence. levels.http.spec.ts tries all combinations. */
import Router from '@koa/router'
import { withAuth, type Guard } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, bearerOf, expectDenied, expectPassed, running, type Running } from '../../support/models/behavior.js'

const levels = ['application', 'router', 'call', 'operation']

/** Expects that the operation accepts one bearer token, and only that one. */
const expectGuardedBy = async ({ ask }: Running, path: string, level: string): Promise<void> => {
  expectPassed(await ask(path, bearer(level)), { via: level })
  expectDenied(await ask(path), 401, [`Bearer realm="${level}"`])
  for (const other of levels.filter((name) => name !== level)) {
    expectDenied(await ask(path, bearer(other)), 401, [`Bearer realm="${level}", error="invalid_token"`])
  }
}

const expectPublic = async ({ ask }: Running, path: string): Promise<void> => {
  expectPassed(await ask(path), undefined)
  expectPassed(await ask(path, bearer('application')), undefined)
}

const application = () => withAuth(bearerOf('application'))(new Router())
const router = () => withAuth(bearerOf('router'))(new Router())

test('5.6.1 auth on the application guards every operation, of any router, method and depth', async () => {
  const api = await running((app, answering) => {
    const deep = new Router().post('/deep', answering)
    const child = new Router().get('/child', answering).use('/nested', deep.routes())
    const root = application().get('/own', answering)
    root.use(child.routes())
    root.use('/prefix', child.routes())
    root.put('/later', answering)
    app.use(root.routes())
  })
  for (const path of ['/own', '/child', '/prefix/child']) await expectGuardedBy(api, path, 'application')
  for (const [method, path] of [
    ['POST', '/nested/deep'],
    ['POST', '/prefix/nested/deep'],
    ['PUT', '/later'],
  ] as const) {
    expectDenied(await api.ask(path, { method }), 401, ['Bearer realm="application"'])
    expectPassed(await api.ask(path, { method, ...bearer('application') }), { via: 'application' })
  }
})

describe('5.6.2 auth on a router applies to all its operations, and overrides the application', () => {
  test('5.6.2 on the router itself', async () => {
    const api = await running((app, answering) => {
      const child = router().get('/a', answering).get('/b', answering)
      const root = application().get('/own', answering)
      root.use('/router', child.routes())
      app.use(root.routes())
    })
    for (const path of ['/router/a', '/router/b']) await expectGuardedBy(api, path, 'router')
    await expectGuardedBy(api, '/own', 'application')
  })
})

test('5.6.3 auth on an operation overrides router, registration call and application', async () => {
  const api = await running((app, answering) => {
    const own = withAuth(bearerOf('operation'))
    const child = router().get('/x', own, answering).get('/neighbour', answering)
    const root = application().get('/x', own, answering)
    root.use('/router', child.routes())
    root.use('/called', withAuth(bearerOf('call'))(child).routes())
    app.use(root.routes())
  })
  for (const path of ['/x', '/router/x', '/called/x']) await expectGuardedBy(api, path, 'operation')
  await expectGuardedBy(api, '/router/neighbour', 'router')
  await expectGuardedBy(api, '/called/neighbour', 'call')
})

test('5.6.4 null on an operation makes this operation public, and no other', async () => {
  const api = await running((app, answering) => {
    const child = router().post('/token', answering).get('/open', withAuth(null), answering).get('/x', answering)
    const root = application().get('/open', withAuth(null), answering).get('/x', answering)
    root.use('/router', child.routes())
    app.use(root.routes())
  })
  await expectPublic(api, '/open')
  await expectPublic(api, '/router/open')
  await expectGuardedBy(api, '/x', 'application')
  await expectGuardedBy(api, '/router/x', 'router')
  expectDenied(await api.ask('/router/token', { method: 'POST' }), 401, ['Bearer realm="router"'])
})

describe('5.6.5 null on a router makes its operations skip the application', () => {
  const open = (guard: () => Guard<undefined>, how: (root: ReturnType<typeof application>, child: Router) => void) =>
    running((app, answering) => {
      const child = new Router().get('/a', answering)
      child.get('/guarded', withAuth(bearerOf('operation')), answering)
      const root = application().get('/x', answering)
      how(root, guard()(child))
      app.use(root.routes())
    })

  test('5.6.5 on the router itself', async () => {
    const api = await open(
      () => withAuth(null),
      (root, child) => root.use('/open', child.routes()),
    )
    await expectPublic(api, '/open/a')
    await expectGuardedBy(api, '/open/guarded', 'operation')
    await expectGuardedBy(api, '/x', 'application')
  })

  test('5.6.5 also for the routers inside of it, unless the registration call decides', async () => {
    const api = await open(
      () => withAuth(null),
      (root, child) => {
        root.use('/open', new Router().use('/nested', child.routes()).routes())
        root.use('/closed', withAuth(bearerOf('call'))(child).routes())
      },
    )
    await expectPublic(api, '/open/nested/a')
    await expectGuardedBy(api, '/closed/a', 'call')
    await expectGuardedBy(api, '/closed/guarded', 'operation')
  })

  test('5.6.5 with wrong credentials as without credentials', async () => {
    const api = await open(
      () => withAuth(null),
      (root, child) => root.use('/open', child.routes()),
    )
    const answer = await api.ask('/open/a', bearer('wrong'))
    expectPassed(answer, undefined)
    expect(answer.headers['cache-control']).toBeUndefined()
  })
})
