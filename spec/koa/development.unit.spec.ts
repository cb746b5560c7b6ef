import Router from '@koa/router'
import Koa from 'koa'
import { apiApp, httpBearer, withAuth } from 'koa-with-auth'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

const user = httpBearer({ authenticate: () => false })
const emitted = vi.spyOn(process, 'emitWarning')
beforeEach(() => {
  emitted.mockReset()
  vi.useFakeTimers({ toFake: ['setTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllEnvs()
})

const warningsOf = (mount: (app: Koa, router: Router) => void): ReadonlyArray<unknown> => {
  mount(
    new Koa(),
    new Router({ prefix: '/reports' }).get('/x', () => {}),
  )
  vi.advanceTimersByTime(1000)
  return emitted.mock.calls
}

const warning = [
  'withAuth(a)(router) of /reports: the guarded copy that it returned is not mounted, but the router itself is, without that guard; mount withAuth(a)(router).routes()',
  'UnusedGuardWarning',
]

describe('a warning: a guarded copy is not mounted, but its router is', () => {
  it.each<[string, (app: Koa, router: Router) => void]>([
    [
      'on the application',
      (app, router) => {
        withAuth(user)(router)
        app.use(router.routes())
      },
    ],
    [
      'in another router',
      (app, router) => {
        withAuth(user)(router)
        app.use(new Router().use(router.middleware()).routes())
      },
    ],
    [
      'once, however often it is mounted, and whatever copies exist',
      (app, router) => {
        withAuth(user)(router).get('/late', () => {})
        withAuth(null)(router)
        app.use(router.routes()).use(router.routes())
      },
    ],
    [
      'a copy of a copy is not mounted either, but the router is',
      (app, router) => {
        const copy = withAuth(user)(router)
        withAuth(null)(copy)
        app.use(copy.routes())
      },
    ],
  ])('%s', (_description, mount) => {
    expect(warningsOf(mount)).toEqual([warning])
  })
})

describe('no warning', () => {
  it.each<[string, (app: Koa, router: Router) => void]>([
    ['the copy is mounted', (app, router) => void app.use(withAuth(user)(router).routes())],
    [
      'both are mounted',
      (app, router) => {
        app.use(router.routes())
        app.use(new Router().use('/staff', withAuth(user)(router).routes()).routes())
      },
    ],
    [
      'the copy is mounted later, while the application starts',
      (app, router) => {
        const copy = withAuth(user)(router)
        app.use(router.routes())
        vi.advanceTimersByTime(900)
        app.use(copy.routes())
      },
    ],
    ['a copy of the copy is mounted', (app, router) => void app.use(withAuth(null)(withAuth(user)(router)).routes())],
    ['neither is mounted', (_app, router) => void withAuth(user)(router)],
    ['an application', (app) => void app.use(apiApp({ auth: user, docs: false }).routes())],
    [
      'in production',
      (app, router) => {
        vi.stubEnv('NODE_ENV', 'production')
        withAuth(user)(router)
        app.use(router.routes())
      },
    ],
  ])('%s', (_description, mount) => {
    expect(warningsOf(mount)).toEqual([])
  })

  it('a router that is watched looks as before', () => {
    const router = new Router({ prefix: '/reports' }).get('/x', () => {})
    const [keys, before] = [Object.keys(router), JSON.stringify(router)]
    withAuth(user)(router)
    expect(Object.keys(router)).toEqual(keys)
    expect(JSON.stringify(router)).toBe(before)
    expect(() => withAuth(user)(Object.freeze(new Router()) as Router)).not.toThrow()
  })
})
