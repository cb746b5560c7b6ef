/** `withPrincipal` tests handlers without credentials. The router itself stays guarded, and production is refused. */
import Router, { type RouterInstance } from '@koa/router'
import Koa, { type Context } from 'koa'
import { also, apiApp, apiKeyCookie, apiKeyHeader, httpBearer, optional, withAuth } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { expectGuarded, withPrincipal } from 'koa-with-auth/testing'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { guardOf } from '../support/models/levels.js'
import { ask, listen } from '../support/servers/server.js'

const anna = { user: 'anna' }
const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'bob' } })
const isKey = (_request: unknown, key: string) => key === 'Partner-Key' && { user: 'bob' }
const cookie = apiKeyCookie({ authenticate: isKey })

const tell = (ctx: { body: unknown; readonly request: object }) => {
  ctx.body = { auth: Reflect.get(ctx.request, 'auth') ?? null }
}

const answered = async (router: RouterInstance, path: string, init: RequestInit = {}) => {
  const app = new Koa()
  app.silent = true
  const { url } = await listen(app.use(router.routes()))
  const { status, text, headers } = await ask(url + path, init)
  return { status, text, headers }
}

const reported = async (...args: Parameters<typeof answered>) => {
  const { status, text } = await answered(...args)
  return [status, status === 200 ? (JSON.parse(text) as { auth: unknown }).auth : text]
}

const routerOf = () => {
  const router = withAuth(bearer)(new Router())
  router.get('/inherited', tell)
  router.get('/own', withAuth([cookie, bearer]), tell)
  router.get('/optional', withAuth(optional(bearer)), tell)
  router.get('/both', withAuth(also(apiKeyHeader({ authenticate: isKey }))), tell)
  router.post('/write', withAuth(cookie), tell)
  router.get('/public', withAuth(null), tell)
  return router
}

afterEach(() => vi.unstubAllEnvs())

describe('the copy of withPrincipal', () => {
  const foreign = { method: 'POST', headers: { 'Sec-Fetch-Site': 'cross-site', Authorization: 'Bearer wrong' } }
  it.each<[what: string, principal: unknown, path: string, expected: unknown, init?: RequestInit]>([
    ['admits every request with this principal', anna, '/inherited', anna],
    ['also where an operation has its own guard', anna, '/own', anna],
    ['also where it is optional', anna, '/optional', anna],
    ['also where a level adds', anna, '/both', anna],
    ['leaves public operations public, without a principal', anna, '/public', null],
    ['calls no authenticator, and does not check for other sites', anna, '/write', anna, foreign],
    ['makes the caller anonymous with undefined, in an optional operation', undefined, '/optional', null],
  ])('%s', async (_what, principal, path, expected, init) => {
    expect(await reported(withPrincipal(principal)(routerOf()), path, init)).toStrictEqual([200, expected])
  })

  it('sends the same header fields as production, and runs the functions behind a guard', async () => {
    const router = routerOf()
    const behind = (ctx: Context, next: () => Promise<unknown>) => (ctx.set('X-Behind', 'yes'), next())
    router.get('/behind', withAuth([cookie, bearer], { then: [behind] }), tell)
    const { headers } = await answered(withPrincipal(anna)(router), '/behind')
    const fields = ['cache-control', 'vary', 'x-behind'].map((name) => headers.get(name))
    expect(fields).toStrictEqual(['private, no-store', 'Cookie, Authorization', 'yes'])
  })

  it('is a router like the original: nested routers, an apiApp, middleware and param hooks', async () => {
    const seen: string[] = []
    const inner = new Router()
    inner.param('id', (id, _ctx, next) => {
      seen.push(id)
      return next()
    })
    inner.get('/pets/:id', tell)
    const api = apiApp({ prefix: '/api', auth: bearer, docs: false })
    api.use((_ctx: Context, next: () => Promise<unknown>) => {
      seen.push('middleware')
      return next()
    })
    api.use('/inner', inner.routes())
    expect(await reported(withPrincipal(anna)(api), '/api/inner/pets/7')).toStrictEqual([200, anna])
    expect(seen).toStrictEqual(['middleware', '7'])
  })

  it('refuses new operations, because nothing would guard them', async () => {
    const copy = withPrincipal(anna)(routerOf())
    expect(() => copy.get('/later', tell)).toThrow(/register on the router itself/)
    expect(() => copy.use('/later', routerOf().routes())).toThrow(/register on the router itself/)
  })

  it('can get another principal', async () => {
    const copy = withPrincipal(anna)(routerOf())
    expect(await reported(withPrincipal({ user: 'sam' })(copy), '/inherited')).toStrictEqual([200, { user: 'sam' }])
    expect(await reported(copy, '/inherited')).toStrictEqual([200, anna])
  })

  it('can be mounted in another router', async () => {
    const outer = new Router({ prefix: '/v1' })
    outer.use(withPrincipal(anna)(routerOf()).routes())
    expect(await reported(outer, '/v1/own')).toStrictEqual([200, anna])
  })
})

describe('the original router of withPrincipal', () => {
  it('stays guarded, whatever is registered on it or on the copy', async () => {
    const router = routerOf()
    const copy = withPrincipal(anna)(router)
    expect((await reported(router, '/inherited'))[0]).toBe(401)
    expect(await reported(copy, '/inherited')).toStrictEqual([200, anna])
    router.get('/later', tell)
    expect((await reported(router, '/later'))[0]).toBe(401)
    const app = new Koa().use(router.routes())
    await expectGuarded(app, router, { public: ['GET /optional', 'GET /public'] })
  })

  it('a guard that is in several routers stays closed in each', async () => {
    const guard = withAuth(bearer)
    const [one, other] = [new Router(), new Router()]
    one.get('/x', guard, tell)
    other.get('/x', guard, tell)
    withPrincipal(anna)(one)
    expect((await reported(one, '/x'))[0]).toBe(401)
    expect((await reported(other, '/x'))[0]).toBe(401)
  })
})

describe('withPrincipal outside of tests', () => {
  it.each(['production', 'prod', 'Production', 'staging', 'development', '', undefined])(
    'R20 is refused with NODE_ENV %j when it is called',
    (env) => {
      vi.stubEnv('NODE_ENV', env)
      const fix = 'not set: set it, or write withPrincipal\\(.*outsideTests: true'
      expect(() => withPrincipal(anna)).toThrow(new RegExp(`NODE_ENV is test; here it is ${env ?? fix}`))
    },
  )

  it('is allowed by an option, except with NODE_ENV production', async () => {
    vi.stubEnv('NODE_ENV', 'development')
    const copy = withPrincipal(anna, { outsideTests: true })(routerOf())
    expect(await reported(copy, '/inherited')).toStrictEqual([200, anna])
    vi.stubEnv('NODE_ENV', 'production')
    expect((await reported(copy, '/inherited'))[0]).toBe(500)
    expect(() => withPrincipal(anna, { outsideTests: true })).toThrow(/here it is production/)
    expect(() => withPrincipal(anna, { outside: true } as never)).toThrow(/no option "outside"/)
  })

  it('R20 refuses every request of an earlier copy if NODE_ENV changes', async () => {
    const copy = withPrincipal(anna)(routerOf())
    for (const env of ['production', 'prod', undefined]) {
      vi.stubEnv('NODE_ENV', env)
      expect((await reported(copy, '/inherited'))[0]).toBe(500)
    }
  })

  it('is a TypeError that names the fix for a value that is not a router', () => {
    expect(() => withPrincipal(anna)(routerOf().routes())).toThrow(TypeError)
    expect(() => withPrincipal(anna)(routerOf().routes())).toThrow(
      /takes the router itself, not its routes\(\): write /,
    )
  })
})

describe('R20 the audit calls its operations public, and seal refuses them in every nesting', () => {
  const one = () => withAuth(bearer)(new Router()).get('/me', tell)
  const of = (auth: unknown) => new Router().get('/me', guardOf(auth) as never, tell)
  const nestings: ReadonlyArray<readonly [string, () => RouterInstance]> = [
    ['the copy', () => withPrincipal(anna)(one())],
    ['mounted', () => new Router().use(withPrincipal(anna)(one()).routes())],
    ['mounted in a guarded router', () => withAuth(bearer)(new Router()).use(withPrincipal(anna)(one()).routes())],
    ['guarded again', () => withAuth(bearer)(withPrincipal(anna)(one()))],
    ['guarded once more', () => withAuth(bearer)(withAuth(cookie)(withPrincipal(anna)(one())))],
    ['with a level that adds', () => withAuth(also(bearer))(withPrincipal(anna)(one()))],
    ['of a router with a level that adds', () => withPrincipal(anna)(of(also(bearer)))],
    ['of a router with an optional level', () => withPrincipal(anna)(of(optional(bearer)))],
    ['twice', () => withPrincipal(anna)(withPrincipal(anna)(one()))],
    ['of a sealed router', () => withPrincipal(anna)(seal(one()))],
  ]

  it.each(nestings)('%s', (_what, make) => {
    expect(audit(make()).operations).toMatchObject([
      { operation: 'GET /me', access: 'public', decidedBy: ['withPrincipal, for tests'] },
    ])
    expect(String(audit(make()))).toContain('public (withPrincipal, for tests)')
    for (const open of [[], ['GET /me']]) {
      expect(() => seal(make(), { public: open })).toThrow(
        /GET \/me: withPrincipal admits everyone and is for tests only: seal the original router/,
      )
    }
  })
})
