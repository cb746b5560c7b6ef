/**
 * `withAuth(a, { then })` over HTTP: when the functions after a guard run, in which order, with which principal, and
 * what happens if they throw.
 */
import Router from '@koa/router'
import Koa, { type Context, type Next } from 'koa'
import {
  also,
  apiApp,
  apiKeyHeader,
  authSettings,
  httpBearer,
  withAuth,
  type AuthContext,
  type AfterGuard,
} from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { expectGuarded, withPrincipal } from 'koa-with-auth/testing'
import { beforeEach, describe, expect, it } from 'vitest'
import { ask, listen, serve } from '../../support/servers/server.js'

const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { name: 'anna' } })
const client = apiKeyHeader({ authenticate: (_request, key) => key === 'k1' && { name: 'Acme' } })
const asUser = { Authorization: 'Bearer supersecret' }
const asClient = { key: 'k1' }

// What ran, in order, each with the principal that it saw
let ran: string[] = []
beforeEach(() => {
  ran = []
})
const authOf = (ctx: Context): string => JSON.stringify(Reflect.get(ctx.request, 'auth') ?? null)
const noted = (name: string): AfterGuard<unknown> =>
  Object.defineProperty(
    async (ctx: AuthContext<unknown>, next: Next) => {
      ran.push(`${name} ${JSON.stringify(ctx.request.auth)}`)
      await next()
      ran.push(`${name} again ${JSON.stringify(ctx.request.auth)}`)
    },
    'name',
    { value: name },
  )
const handle = (ctx: Context): void => {
  ran.push(`handler ${authOf(ctx)}`)
  ctx.body = 'ok'
}
const anna = '{"name":"anna"}'
const acme = '{"name":"Acme"}'

class OutOfStock extends Error {}

const site = serve(() => {
  const app = new Koa()
  app.silent = true

  const router = withAuth(user, { then: [noted('first'), noted('second')] })(new Router({ prefix: '/r' }))
  router.param('id', (_id, ctx, next) => {
    ran.push(`param ${authOf(ctx)}`)
    return next()
  })
  router.get('/mine', handle)
  router.get('/of/:id', handle)
  router.get('/public', withAuth(null), handle)
  router.get('/client', withAuth(client), handle)
  router.get('/client-then', withAuth(client, { then: [noted('own')] }), handle)
  router.get('/both', withAuth(also(client), { then: [noted('own')] }), handle)
  const inner = new Router()
  inner.get('/undecided', handle)
  router.use('/deep', new Router().use('/deeper', inner.routes()).routes())
  router.use('/replaced', withAuth(client, { then: [noted('call')] })(inner).routes())
  router.use('/opened', withAuth(null)(inner).routes())
  router.use('/three', withAuth(also(client), { then: [noted('call')] })(withBoth()).routes())
  app.use(router.routes())

  // A second guard for the same level replaces the first, with the functions after it
  app.use(withAuth(client)(withAuth(user, { then: [noted('lost')] })(new Router().get('/again', handle))).routes())
  app.use(new Router().get('/operation', withAuth(user, { then: [noted('own')] }), handle).routes())

  const api = apiApp({ prefix: '/api', auth: user, then: [noted('application'), outOfStock], state: 'who' })
  api.onError(OutOfStock, () => ({ status: 409, body: { detail: 'Out of stock' } }))
  api.get('/x', handle)
  app.use(api.routes())

  const errors = new Router({ prefix: '/errors' })
  const failing = (path: string, ...then: ReadonlyArray<AfterGuard<unknown>>) =>
    errors.get(path, withAuth(user, { then }), handle)
  failing('/limit', (ctx) => void (ctx.status = 429))
  failing('/sync', () => raise())
  failing('/async', async () => raise())
  for (const nothing of [null, undefined]) failing(`/rejects-${nothing}`, () => Promise.reject(nothing))
  const twice: AfterGuard<unknown> = async (_ctx, next) => {
    await next()
    await next()
  }
  failing('/twice', twice, noted('second'))
  failing('/throw-401', (ctx) => ctx.throw(401, 'of my own'))
  app.use(errors.routes())

  const stated = withAuth(user, { then: [inState('outer')] })(new Router({ prefix: '/state' }))
  stated.get('/both', withAuth(also(client), { then: [inState('inner')] }), (ctx) => {
    ran.push(`handler ${JSON.stringify(ctx.state['who'])}`)
    ctx.body = 'ok'
  })
  app.use(authSettings({ state: 'who' })).use(stated.routes())
  return app
})
const withBoth = () => new Router().get('/x', withAuth(also(user), { then: [noted('operation')] }), handle)
const raise = (): never => {
  throw new Error('the tenant is not known')
}
const outOfStock: AfterGuard<unknown> = (ctx, next) => {
  if (ctx.query['fail'] !== undefined) throw new OutOfStock()
  return next()
}
const inState =
  (name: string): AfterGuard<unknown> =>
  (ctx, next) => {
    ran.push(`${name} ${JSON.stringify(ctx.state['who'])}`)
    return next()
  }
const get = (path: string, headers: Record<string, string> = {}) => ask(site.url + path, { headers })
// Without the lines that are written after next()
const entered = () => ran.filter((line) => !line.includes(' again '))

describe('for an accepted request', () => {
  it('each function runs once, in order, before param hooks and the handler, with the principal', async () => {
    expect((await get('/r/of/1', asUser)).status).toBe(200)
    const order = ['first', 'second', 'param', 'handler', 'second again', 'first again']
    expect(ran).toStrictEqual(order.map((one) => `${one} ${anna}`))
  })

  it.each([
    { description: 'a router', path: '/r/mine', expected: ['first', 'second'] },
    { description: 'a router two levels up', path: '/r/deep/deeper/undecided', expected: ['first', 'second'] },
    { description: 'an operation', path: '/operation', expected: ['own'] },
    { description: 'an application', path: '/api/x', expected: ['application'] },
  ])('those of $description run once for the operation', async ({ path, expected }) => {
    expect((await get(path, asUser)).text).toBe('ok')
    expect(entered()).toStrictEqual([...expected.map((name) => `${name} ${anna}`), `handler ${anna}`])
  })
})

describe('no function runs', () => {
  it.each([
    { description: 'no', headers: {}, expected: 'Bearer realm="api"' },
    {
      description: 'another',
      headers: { Authorization: 'Bearer x' },
      expected: 'Bearer realm="api", error="invalid_token"',
    },
  ])('for a request with $description token: 401', async ({ headers, expected }) => {
    for (const path of ['/r/mine', '/operation', '/api/x', '/r/deep/deeper/undecided']) {
      const { status, challenge, text } = await get(path, { ...headers })
      expect([status, challenge]).toStrictEqual([401, expected])
      expect(text).toContain('"detail":"Unauthorized"')
    }
    expect(ran).toStrictEqual([])
  })

  it.each([
    { description: 'an operation that is public', path: '/r/public' },
    { description: 'a mounted router that is public', path: '/r/opened/undecided' },
  ])('for $description', async ({ path }) => {
    expect((await get(path, asUser)).status).toBe(200)
    expect(ran).toStrictEqual(['handler null'])
  })

  it.each([
    { description: 'an operation', path: '/r/client', expected: [] },
    { description: 'an operation with its own functions', path: '/r/client-then', expected: [`own ${acme}`] },
    { description: 'a mounted router', path: '/r/replaced/undecided', expected: [`call ${acme}`] },
    { description: 'a second guard of the same router', path: '/again', expected: [] },
  ])('if $description replaces the guard', async ({ path, expected }) => {
    expect((await get(path, asClient)).status).toBe(200)
    expect(entered()).toStrictEqual([...expected, `handler ${acme}`])
  })
})

describe('functions after guards, and `also`', () => {
  const both = { ...asUser, ...asClient }
  const pair = `{"inherited":${anna},"own":${acme}}`

  it('those of the outer level run with the principal of that level, before and after those of the operation', async () => {
    expect((await get('/r/both', both)).status).toBe(200)
    expect(ran).toStrictEqual([
      `first ${anna}`,
      `second ${anna}`,
      `own ${pair}`,
      `handler ${pair}`,
      `own again ${pair}`,
      `second again ${anna}`,
      `first again ${anna}`,
    ])
  })

  it('those of three levels run, each with the principal of its level', async () => {
    expect((await get('/r/three/x', both)).status).toBe(200)
    const three = `{"inherited":${pair},"own":${anna}}`
    const inner = [`call ${pair}`, `operation ${three}`, `handler ${three}`]
    expect(entered()).toStrictEqual([`first ${anna}`, `second ${anna}`, ...inner])
  })

  it('none runs if one of two authenticators refuses', async () => {
    expect((await get('/r/both', asUser)).status).toBe(401)
    expect(ran).toStrictEqual([])
  })

  it('the setting `state` has the same principal', async () => {
    expect((await get('/state/both', both)).status).toBe(200)
    expect(ran).toStrictEqual([`outer ${anna}`, `inner ${pair}`, `handler ${pair}`])
  })
})

describe('functions after a guard, which answer or throw like a handler', () => {
  it('their own response: the handler does not run, and no shared cache stores it', async () => {
    const { status, headers } = await get('/errors/limit', asUser)
    expect([status, headers.get('cache-control'), ran]).toStrictEqual([429, 'private, no-store', []])
  })

  it.each(['sync', 'async'])('/errors/%s: 500, no handler runs, and the body does not show the cause', async (kind) => {
    const { status, text, headers } = await get(`/errors/${kind}`, asUser)
    expect([status, text]).toStrictEqual([500, 'Internal Server Error'])
    expect([headers.get('cache-control'), ran]).toStrictEqual(['private, no-store', []])
    expect(site.errors.at(-1)).toMatchObject({ message: 'the tenant is not known' })
  })

  it('an exception is answered by the handler of its application', async () => {
    const { status, text } = await get('/api/x?fail', asUser)
    expect([status, JSON.parse(text)]).toMatchObject([409, { detail: 'Out of stock' }])
    expect(entered()).toStrictEqual([`application ${anna}`])
  })

  it('a 401 that is thrown gets the challenge of the operation', async () => {
    const { status, text, challenge } = await get('/errors/throw-401', asUser)
    expect([status, text, challenge, ran]).toStrictEqual([401, 'of my own', 'Bearer realm="api"', []])
  })

  it.each([
    ['a rejection with null', 'rejects-null', []],
    ['a rejection with undefined', 'rejects-undefined', []],
    ['a second next(), after which what comes after it runs once', 'twice', [`second ${anna}`, `handler ${anna}`]],
  ])('%s is a 500, and the request gets a response', async (_what, path, expected) => {
    expect((await get(`/errors/${path}`, asUser)).status).toBe(500)
    expect(entered()).toStrictEqual(expected)
  })
})

describe('other readers of a guard with functions after it', () => {
  const build = (options: { readonly then?: ReadonlyArray<AfterGuard<unknown>> } = {}) => {
    const router = withAuth(user, options)(new Router())
    router.get('/mine', handle)
    router.get('/both', withAuth(also(client), options), handle)
    router.get('/public', withAuth(null), handle)
    return router
  }
  const router = build({ then: [noted('loadTenant'), noted('limit')] })

  it('the audit lists the functions, and they do not count as protection', () => {
    const { operations } = audit(router)
    const both = ['loadTenant', 'limit']
    expect(operations.map(({ behindGuard }) => behindGuard)).toStrictEqual([both, [...both, ...both], []])
    expect(String(audit(router))).toMatch(/^GET \/mine +bearer +router +behind its guard: loadTenant, limit$/m)
    const bare = audit(build()).operations.map(({ protection, access }) => [protection, access])
    expect(operations.map(({ protection, access }) => [protection, access])).toStrictEqual(bare)
  })

  it('withPrincipal runs the functions with its principal', async () => {
    const app = new Koa().use(withPrincipal({ name: 'bob' })(router).routes())
    const { url } = await listen(app)
    expect((await ask(`${url}/mine`)).status).toBe(200)
    expect(entered()).toStrictEqual(['loadTenant {"name":"bob"}', 'limit {"name":"bob"}', 'handler {"name":"bob"}'])
  })

  it('expectGuarded runs no function', async () => {
    const open = withAuth(() => 'anyone', { then: [noted('loadTenant')] })(new Router()).get('/x', handle)
    await expect(expectGuarded(new Koa().use(open.routes()), open)).rejects.toThrow('GET /x')
    const checked = await expectGuarded(new Koa().use(router.routes()), router, { public: ['GET /public'] })
    expect(checked.map(({ protection }) => protection)).toStrictEqual(['guarded', 'guarded', 'public'])
    expect(ran).toStrictEqual([])
  })
})

describe('a wrong value of `then` is a TypeError when it is written', () => {
  it.each<[mistake: string, options: unknown, message: string]>([
    ['a function', { then: handle }, 'withAuth(a, { then }) must be an array'],
    ['null', { then: null }, 'withAuth(a, { then }) must be an array'],
    ['a member that is not a function', { then: ['limit'] }, '{ then })[0] must be a function'],
    ['a hole', { then: new Array(1) }, '{ then })[0] must be a function, not undefined'],
    ['a guard', { then: [handle, withAuth(user)] }, '{ then })[1] is a guard'],
    ['a factory', { then: [withAuth] }, 'is withAuth itself; call it'],
    ['a class', { then: [OutOfStock] }, 'is the class OutOfStock'],
    ['another option', { than: [] }, 'no option "than"; there are then'],
    ['a handler', handle, 'withAuth: argument 2 is no condition, or fails: '],
    ['a function with a mistake', (0, eval)('() => missing'), 'withAuth: argument 2 is no condition, or fails: '],
    ['a plain function', () => {}, 'withAuth: argument 2 returned undefined'],
    ['undefined', undefined, 'withAuth: argument 2 is undefined'],
    ['an index', 0, 'withAuth(a, options) takes an object of options'],
  ])('%s', (_mistake, options, message) => {
    expect(() => withAuth(user, options as never)).toThrow(TypeError)
    expect(() => withAuth(user, options as never)).toThrow(message)
    const then: unknown = typeof options === 'object' && options !== null ? Reflect.get(options, 'then') : undefined
    if (then !== undefined) expect(() => apiApp({ auth: user, then: then as never })).toThrow(TypeError)
  })

  it('a public operation with `then`', () => {
    // @ts-expect-error: null takes no options
    expect(() => withAuth(null, { then: [handle] })).toThrow(
      new TypeError('withAuth(null, { then }): a public operation has no guard to run after; use router.use'),
    )
    for (const options of [{}, { auth: null }]) {
      expect(() => apiApp({ ...options, then: [handle] } as never)).toThrow(
        new TypeError('apiApp({ then }) runs after the guard of `auth`, and this application has none; use api.use'),
      )
    }
  })

  it('undefined and [] are the same as no option', () => {
    for (const then of [undefined, []]) {
      expect(audit(withAuth(user, { then })(new Router()).get('/x', handle)).operations[0]?.behindGuard).toEqual([])
      expect(() => apiApp({ then } as never)).not.toThrow()
    }
  })
})
