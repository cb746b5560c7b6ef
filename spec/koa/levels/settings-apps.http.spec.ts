/**
 * Settings of an `apiApp` apply to its own operations, wherever it is mounted, and to no sibling in the same router.
 */
import Router, { type RouterInstance } from '@koa/router'
import {
  apiApp,
  AuthError,
  httpBasicAuth,
  httpBearer,
  onError,
  perFailure,
  withAuth,
  type ApiAppOptions,
  type AuthSettings,
} from 'koa-with-auth'
import { either as E } from 'fp-ts'
import { afterEach, describe, expect, test } from 'vitest'
import { basic, bearer, crossSite, running } from '../../support/models/behavior.js'
import type { Answering, Running, Sending } from '../../support/models/behavior.js'
import { copying } from '../../support/models/wrapping.js'

class Boom extends Error {}

const slow = () => new Promise<unknown>((resolve) => setTimeout(() => resolve({ user: 'slow' }), 60))
const hook = (_request: unknown, token: string): unknown =>
  token === 'boom' ? Promise.reject(new Boom()) : token === 'slow' ? slow() : token === 'good' && { user: 'anna' }
const staff = () =>
  [
    httpBearer({ authenticate: hook }),
    httpBasicAuth({ authenticate: (_request, user, password) => user === 'anna' && password === 'good' && { user } }),
  ] as const

/** One setting, how to observe it, and the result with it and without it. */
type Case = readonly [
  name: string,
  options: AuthSettings,
  look: (ask: Running['ask'], path: string) => Promise<unknown>,
  held: unknown,
  otherwise: unknown,
]

const status =
  (sending?: Sending, query = '') =>
  async (ask: Running['ask'], path: string) =>
    (await ask(path + query, sending)).status
const boom = { onError: [onError(Boom, () => ({ status: 402, body: { detail: 'boom' } }))] }
const tea = perFailure({ absent: () => ({ status: 418, body: 'tea' }) })
const friend = 'https://friend.example'
const forged = (more = {}) => ({ method: 'POST', headers: { ...basic('anna:good').headers, ...more } })

const realmOf: Case[2] = async (ask, path) => /"\w+"/.exec((await ask(path)).challenges[0]!)![0]
const cases: ReadonlyArray<Case> = [
  ['csrf: false', { csrf: false }, status(forged(crossSite.headers)), 200, 403],
  ['trustedOrigins', { trustedOrigins: [friend] }, status(forged({ Origin: friend })), 200, 403],
  ['realm', { realm: 'weak' }, realmOf, '"weak"', '"api"'],
  ['timeout', { timeout: 10 }, status(bearer('slow')), 503, 200],
  ['errorMapper', { errorMapper: tea }, status(), 418, 401],
  ['explain', { explain: true }, async (ask, path) => 'tried' in Object((await ask(path)).body), true, false],
  ['onError, for an authenticator', boom, status(bearer('boom')), 402, 500],
  ['onError, for an operation', boom, status(bearer('good'), '?throw'), 402, 500],
]

const operations = <R extends RouterInstance>(router: R, answering: Answering, path = '/own'): R => {
  const answer: Answering = (ctx) => {
    answering(ctx)
    if (Reflect.get(ctx, 'querystring') === 'throw') throw new Boom()
  }
  router.get(path, answer)
  router.post(path, answer)
  return router
}

const weakApp = (options: ApiAppOptions, answering: Answering) =>
  operations(apiApp({ auth: staff(), docs: false, ...options }) as unknown as RouterInstance, answering)
const sibling = (answering: Answering) =>
  operations(withAuth(staff())(new Router({ prefix: '/admin' })), answering, '/o')
const siblingApp = (answering: Answering) =>
  operations(apiApp({ auth: staff(), docs: false, prefix: '/admin' }) as unknown as RouterInstance, answering, '/o')

/** What is put into one router: the application with the settings, and the routes of the sibling at `/admin`. */
interface Parts {
  readonly options: AuthSettings
  readonly answering: Answering
  readonly weak: (more?: ApiAppOptions) => ReturnType<RouterInstance['routes']>
  readonly other: () => ReturnType<RouterInstance['routes']>
}
type Mounting = (parts: Parts) => RouterInstance

const tenant = { prefix: '/:tenant' }
const mountings: ReadonlyArray<readonly [name: string, own: string, mounting: Mounting]> = [
  ['without a prefix, before the sibling', '/own', ({ weak, other }) => new Router().use(weak()).use(other())],
  ['without a prefix, after the sibling', '/own', ({ weak, other }) => new Router().use(other()).use(weak())],
  ['below a parameter', '/t1/own', ({ weak, other }) => new Router().use(weak(tenant), other()).use('/in', other())],
  ['mounted at a parameter', '/t1/own', ({ weak, other }) => new Router().use('/:tenant', weak()).use(other())],
  [
    'nested in a router without a prefix',
    '/n/own',
    ({ weak, other }) => new Router().use(new Router().use('/n', weak()).use(weak()).routes()).use(other()),
  ],
  [
    'nested in an application',
    '/n/own',
    ({ weak, other }) => apiApp({ auth: null, docs: false }).use('/n', weak()).use(weak()).use(other()),
  ],
  [
    'without auth, in a router that guards it',
    '/own',
    ({ options, answering, other }) =>
      withAuth(staff())(new Router())
        .use(operations(apiApp({ docs: false, ...options }) as unknown as RouterInstance, answering).routes())
        .use(other()),
  ],
  [
    'with a second level, and a route of the copy',
    '/late/own',
    ({ options, answering, other }) => {
      const derived = withAuth(staff())(weakApp(options, answering))
      derived.use('/late', operations(new Router(), answering).routes())
      return withAuth(staff())(new Router().use(derived.routes()).use(other()))
    },
  ],
  [
    'with its own middleware',
    '/own',
    ({ options, answering, other }) => {
      const app = apiApp({ auth: staff(), docs: false, ...options })
      app.use((_ctx, next) => next()).use((_ctx, next) => next().then(() => undefined))
      operations(app as unknown as RouterInstance, answering)
      return new Router().use(app.routes()).use(other())
    },
  ],
  [
    'with an operation that calls next()',
    '/own',
    ({ options, answering, other }) => {
      const app = apiApp({ auth: null, docs: false, ...options })
      app.all('/:any/:thing', (_ctx, next) => next())
      app.all('/:any/:thing', (_ctx, next) => next().then(() => undefined))
      app.use(operations(withAuth(staff())(new Router()), answering).routes())
      return new Router().use(app.routes()).use(other())
    },
  ],
  ['in an exclusive router', '/own', ({ weak, other }) => new Router({ exclusive: true }).use(weak()).use(other())],
]

const mounted = (mounting: Mounting, options: AuthSettings, answering: Answering, other: typeof sibling) => {
  const weak: Parts['weak'] = (more) => weakApp({ ...options, ...more }, answering).routes()
  return mounting({ options, answering, weak, other: () => other(answering).routes() })
}

describe.each(cases)('the setting %s of one application', (_name, options, look, held, otherwise) => {
  describe.each(mountings)('mounted %s', (_mounting, own, mounting) => {
    test.each([
      ['a plain router', sibling],
      ['an application', siblingApp],
    ])('R08 applies to its operations, not to those of %s beside it', async (_sibling, other) => {
      const { ask } = await running((app, to) => app.use(mounted(mounting, options, to, other).routes()))
      expect(await look(ask, own)).toBe(held)
      expect(await look(ask, '/admin/o')).toBe(otherwise)
      expect(await look(ask, '/ADMIN/O')).toBe(otherwise)
    })
  })
})

// As tracers do, each function of a layer is replaced by one that calls it
const originals = { register: Router.prototype.register, use: Router.prototype.use }
const wrapLayers = (wrap: (f: Function) => Function): void => {
  for (const name of ['register', 'use'] as const) {
    const original: Function = originals[name]
    Object.assign(Router.prototype, {
      [name](this: RouterInstance, ...args: unknown[]): unknown {
        const result: unknown = original.apply(this, args)
        for (const layer of this.stack) layer.stack = layer.stack.map((f) => wrap(f) as never)
        return result
      },
    })
  }
}
afterEach(() => {
  Object.assign(Router.prototype, originals)
})
describe('R08 under tracers that wrap the functions of layers', () => {
  test.each(mountings)(
    'R08 settings of an application %s are for its operations only',
    async (_name, own, mounting) => {
      wrapLayers(copying)
      for (const [, options, look, held, otherwise] of cases) {
        const { ask } = await running((app, to) => app.use(mounted(mounting, options, to, sibling).routes()))
        expect(await look(ask, own)).toBe(held)
        expect(await look(ask, '/admin/o')).toBe(otherwise)
      }
    },
  )
})

describe('settings of an application, middleware and exceptions', () => {
  test('an exception passes through the middleware of its application before a handler answers it', async () => {
    const passed: unknown[] = []
    const { ask } = await running((app, answering) => {
      const api = apiApp({ auth: null, docs: false })
      api.use(async (_ctx, next) => {
        await next().catch((error: unknown) => {
          passed.push(error)
          throw error
        })
      })
      api.get('/o', (ctx) => {
        answering(ctx)
        throw new Boom()
      })
      api.onError(Boom, () => ({ status: 402, body: 'boom' }))
      app.use(new Router().use(api.routes()).routes())
    })
    expect(await ask('/o')).toMatchObject({ status: 402, body: 'boom', seen: [undefined] })
    expect(passed).toEqual([expect.any(Boom)])
  })

  test('an exception of its middleware is answered, also if middleware made it of another one', async () => {
    const { ask } = await running((app, answering) => {
      const api = apiApp({ auth: null, docs: false })
      api.use('/early', () => {
        throw new Boom()
      })
      api.use('/other', async (_ctx, next) => {
        await next().catch(() => {
          throw new Boom()
        })
      })
      api.get('/early', answering)
      api.get('/other', () => {
        throw new RangeError()
      })
      api.onError(Boom, () => ({ status: 402, body: 'boom' }))
      app.use(new Router().use(api.routes()).routes())
    })
    expect(await ask('/early')).toMatchObject({ status: 402, body: 'boom', seen: [] })
    expect(await ask('/other')).toMatchObject({ status: 402, body: 'boom', seen: [] })
  })

  test('an exception of a sibling after its middleware is not answered; an exception of its own second operation is', async () => {
    const { ask, errors } = await running((app) => {
      const api = apiApp({ auth: null, docs: false })
      api.use((_ctx, next) => next())
      api.get('/:a', (_ctx, next) => next())
      api.get('/:a', (ctx, next) => {
        if (ctx.params['a'] === 'own') throw new Boom()
        return next()
      })
      api.onError(Boom, () => ({ status: 402, body: 'boom' }))
      const other = new Router().get('/sibling', () => {
        throw new Boom()
      })
      app.use(new Router().use(api.routes()).use(other.routes()).routes())
      app.use(() => {
        throw new Boom()
      })
    })
    expect(await ask('/own')).toMatchObject({ status: 402, body: 'boom' })
    expect(errors).toEqual([])
    expect(await ask('/sibling')).toMatchObject({ status: 500 })
    expect(await ask('/below')).toMatchObject({ status: 500 })
    expect(errors).toEqual([expect.any(Boom), expect.any(Boom)])
  })

  test('middleware finds the settings of its application after await next(), too', async () => {
    const realms: string[] = []
    const probe = withAuth(httpBearer({ authenticate: () => E.left(AuthError.invalid) }))
    const { ask } = await running((app) => {
      const api = apiApp({ auth: null, docs: false, realm: 'own' })
      api.use(async (ctx, next) => {
        await next()
        realms.push(String(settingsRealm(ctx)))
      })
      const other = apiApp({ auth: null, docs: false, realm: 'other' })
      other.get('/o', probe, () => {})
      app.use(new Router().use(api.routes()).use(other.routes()).routes())
    })
    expect((await ask('/o')).challenges).toEqual(['Bearer realm="other"'])
    expect(realms).toEqual(['own'])
  })
})

const settingsRealm = (ctx: object): unknown =>
  Reflect.get(Object(Reflect.get(Object(Reflect.get(ctx, Symbol.for('koa-with-auth/exchange'))), 'settings')), 'realm')
