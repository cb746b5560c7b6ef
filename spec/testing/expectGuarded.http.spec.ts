/** `expectGuarded` finds what is open over real HTTP, reports all of it together, and runs no handler. */
import Router from '@koa/router'
import Koa, { type Context, type Next } from 'koa'
import {
  allOf,
  apiApp,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authSettings,
  httpBasicAuth,
  httpBearer,
  optional,
  withAuth,
} from 'koa-with-auth'
import { lenient } from 'koa-with-auth/fp'
import { seal } from 'koa-with-auth/audit'
import { LawViolations, expectGuarded, withBearer, type Application, type GuardedOptions } from 'koa-with-auth/testing'
import { beforeEach, describe, expect, it } from 'vitest'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
const basic = httpBasicAuth({
  authenticate: (_request, user, password) => user === 'admin' && password === 'secret' && { user },
})
const authenticate = (_request: unknown, key: string) => key === 'Partner-Key' && { client: 'Acme' }
const keys = [
  apiKeyHeader({ paramName: 'X-API-Key', authenticate }),
  apiKeyQuery({ authenticate }),
  apiKeyCookie({ authenticate }),
] as const

let handled = 0
beforeEach(() => {
  handled = 0
})
const handler = (ctx: { body: unknown }) => {
  handled++
  ctx.body = 'data'
}

const serving = (router: Router, ...above: Array<(ctx: Context, next: Next) => unknown>) => {
  const app = new Koa()
  app.silent = true
  for (const middleware of above) app.use(middleware)
  return app.use(router.routes()).use(router.allowedMethods())
}

/** The laws that are broken, as `<operation>: <law>`. */
const broken = async (
  app: Application,
  router: Parameters<typeof expectGuarded>[1],
  options?: GuardedOptions,
): Promise<ReadonlyArray<string>> => {
  const error: unknown = await expectGuarded(app, router, options).then(
    () => undefined,
    (rejected: unknown) => rejected,
  )
  expect(handled).toBe(0)
  if (error === undefined) return []
  expect(error).toBeInstanceOf(LawViolations)
  return (error as LawViolations).violations.map(({ law }) => law)
}

describe('a guarded application keeps the laws', () => {
  it('for every kind, level, method and path, and the result lists each operation', async () => {
    const router = new Router({ prefix: '/v1/:tenant' })
    router.get('/pets/:id', withAuth(bearer), handler)
    router.post('/pets', withAuth(basic), handler)
    router.put('/pets{/:id}', withAuth([bearer, ...keys]), handler)
    router.delete('/files/*path', withAuth(allOf([bearer, keys[0]])), handler)
    router.all('/any', withAuth(bearer), handler)
    router.get('/perhaps', withAuth(optional(bearer)), handler)
    router.get('/guest', withAuth(lenient(bearer)), handler)
    router.get('/health', withAuth(null), handler)
    const open = ['GET /v1/:tenant/perhaps', 'GET /v1/:tenant/guest', 'GET /v1/:tenant/health']
    const checked = await expectGuarded(serving(router), router, { public: open, valid: [withBearer('supersecret')] })
    expect(checked.map(({ operation, protection }) => `${operation} ${protection}`)).toStrictEqual([
      'GET /v1/:tenant/pets/:id guarded',
      'POST /v1/:tenant/pets guarded',
      'PUT /v1/:tenant/pets{/:id} guarded',
      'DELETE /v1/:tenant/files/*path guarded',
      'ALL /v1/:tenant/any guarded',
      'GET /v1/:tenant/perhaps optional',
      'GET /v1/:tenant/guest optional',
      'GET /v1/:tenant/health public',
    ])
    expect(Math.min(...checked.slice(0, 7).map(({ requests }) => requests))).toBeGreaterThan(30)
    expect(handled).toBe(0)
  })

  it('for an apiApp, below its own settings and mapper, and with nested routers', async () => {
    const inner = new Router()
    inner.get('/deep', handler)
    const api = apiApp({ prefix: '/api', auth: bearer, realm: 'pets', docs: false })
    api.use('/inner', inner.routes())
    api.get('/me', handler)
    const app = new Koa()
    app.use(authSettings({ errorMapper: () => ({ status: 401, body: 'no' }) })).use(api.routes())
    expect(await broken(app, api)).toStrictEqual([])
  })

  it('and afterwards the router and the application are unchanged: handlers run, and nothing listens', async () => {
    const router = new Router()
    router.get('/x', withAuth(bearer), handler)
    const stacks = router.stack.map(({ stack }) => stack)
    const app = serving(router)
    await expectGuarded(app, router)
    expect(router.stack.map(({ stack }) => stack)).toStrictEqual(stacks)
    expect(app.listenerCount('error')).toBe(0)
    const server = app.listen(0)
    const { port } = server.address() as { port: number }
    const answer = await fetch(`http://127.0.0.1:${port}/x`, { headers: { authorization: 'Bearer supersecret' } })
    expect([answer.status, await answer.text(), handled]).toStrictEqual([200, 'data', 1])
    server.close()
  })
})

describe('a sealed router can be checked', () => {
  const sealed = () => {
    const router = withAuth(bearer)(new Router()).get('/x/:id', handler).get('/health', withAuth(null), handler)
    router.register('/two', ['GET', 'POST'], [withAuth(null), handler] as never)
    return seal(router as unknown as Router, { public: open })
  }
  const open = ['GET /health', 'GET /two', 'POST /two']

  it('several times, and stays sealed; the option public is the same as that of seal', async () => {
    const router = sealed()
    const app = serving(router)
    for (let turn = 0; turn < 2; turn++) {
      const checked = await expectGuarded(app, router, { public: open })
      expect(checked.map(({ operation, protection }) => `${operation} ${protection}`)).toStrictEqual([
        'GET /x/:id guarded',
        'GET /health public',
        'GET /two public',
        'POST /two public',
      ])
    }
    expect(handled).toBe(0)
    expect(() => router.get('/late', handler)).toThrow(/after seal/)
    expect(() => router.stack[0]!.stack.pop()).toThrow(TypeError)
    router.stack[0]!.stack[0] = handler as never
    expect(() => router.match('/x/1', 'GET')).toThrow(/its guard was replaced/)
  })

  it('once at a time; a check that ends with an error changes nothing', async () => {
    const router = sealed()
    const app = serving(router)
    const first = expectGuarded(app, router, { public: open })
    await expect(expectGuarded(app, router)).rejects.toThrow(/running on this router already/)
    await first
    expect(await broken(app, router, { public: ['GET /x/:id'] })).not.toStrictEqual([])
    expect(await broken(app, router, { public: open })).toStrictEqual([])
  })
})

describe('violations', () => {
  it('are reported together, each with its operation, what was sent, and the fix', async () => {
    const router = new Router()
    router.get('/open', withAuth(() => ({ user: 'anybody' })), handler) // prettier-ignore
    router.get('/throws', withAuth(() => { throw new Error('no') }), handler) // prettier-ignore
    router.get('/guarded', withAuth(bearer), handler)
    router.get('/forgotten', handler)
    const error: unknown = await expectGuarded(serving(router), router).catch((e: unknown) => e)
    expect(handled).toBe(0)
    const { violations, message } = error as LawViolations
    expect(violations.map(({ law }) => law)).toStrictEqual([
      'GET /open: a handler ran without authentication',
      'GET /throws: an error instead of a refusal',
      'GET /forgotten: public, but not listed',
    ])
    expect(message).toContain('GET /open\n')
    expect(message).toContain('Error: no')
    expect(message).toContain('fix: ')
  })

  it.each([
    ['an empty token', (token: string) => 'supersecret'.startsWith(token)],
    ['any token', () => true],
    ['the beginning of a token', (token: string) => token !== '' && 'supersecret'.startsWith(token)],
    ['a token in any letter case', (token: string) => token.toLowerCase() === 'supersecret'],
  ])('a hook that accepts %s', async (_what, takes) => {
    const router = new Router()
    const careless = (request: { get: (name: string) => string }) =>
      takes(request.get('Authorization').replace(/^Bearer /, '')) && { user: 'anna' }
    router.get(
      '/x',
      withAuth(httpBearer({ authenticate: (_request, token) => takes(token) && { user: 'anna' } })),
      handler,
    )
    router.get('/y', withAuth(careless), handler)
    expect((await broken(serving(router), router, { valid: [withBearer('supersecret')] })).length).toBeGreaterThan(0)
  })

  it('A-04 A-35 a method that passes without credentials', async () => {
    const router = new Router()
    router.get(
      '/x',
      withAuth((request) => request.method === 'HEAD' && { user: 'anybody' }),
      handler,
    )
    router.all(
      '/y',
      withAuth((request) => request.method === 'TRACE' && { user: 'anybody' }),
      handler,
    )
    expect(await broken(serving(router), router)).toStrictEqual([
      'GET /x: a handler ran without authentication',
      'ALL /y: a handler ran without authentication',
    ])
  })

  it('an optional operation that gives every caller a principal', async () => {
    const router = new Router()
    router.get('/x', withAuth(optional(httpBearer({ authenticate: (_request, token) => ({ token }) }))), handler)
    expect(await broken(serving(router), router, { public: ['GET /x'] })).toStrictEqual([
      'GET /x: a handler ran without authentication',
    ])
  })

  it('D-R8 a public operation before a guarded one', async () => {
    const router = new Router()
    router.get('/users/:id', withAuth(null), handler)
    router.get('/users/me', withAuth(bearer), handler)
    expect(await broken(serving(router), router, { public: ['GET /users/:id'] })).toStrictEqual([
      'GET /users/me: GET /users/:id answers instead',
    ])
  })

  it('a router that is not mounted', async () => {
    const router = new Router()
    router.get('/x', withAuth(bearer), handler)
    expect(await broken(new Koa().use(new Router().routes()), router)).toStrictEqual(['GET /x: no request reached it'])
    const open = new Router()
    open.get('/y', withAuth(null), handler)
    expect(await broken(new Koa(), open, { public: ['GET /y'] })).toStrictEqual(['GET /y: no request reached it'])
  })

  it('D-R10 a param hook that runs before the guard counts as a handler that ran', async () => {
    const router = new Router()
    router.param('id', (_id, _ctx, next) => {
      handled++
      return next()
    })
    router.get('/x/:id', withAuth(bearer), handler)
    expect(await broken(serving(router), router)).toStrictEqual([])
  })

  it.each([
    ['a mapper that answers 200', () => ({ status: 200 }), 'answers 200 instead of 401'],
    ['a mapper that answers 404', () => ({ status: 404 }), 'answers 404 instead of 401'],
    ['a mapper that throws', () => { throw new Error('mapper') }, 'an error instead of a refusal'], // prettier-ignore
    [
      'a mapper that echoes the credential',
      (_: unknown, request: Context['request']) => ({ status: 401, body: request.header }),
      'a credential that was sent',
    ],
  ])('%s', async (_what, errorMapper, reported) => {
    const router = new Router()
    router.get('/x', withAuth(bearer), handler)
    const laws = await broken(serving(router, authSettings({ errorMapper })), router)
    expect(laws).toContainEqual(expect.stringContaining(reported))
  })

  it('B-01 upstream middleware that removes the challenge', async () => {
    const router = new Router()
    router.get('/x', withAuth([bearer, keys[0]]), handler)
    const losing = async (ctx: Context, next: Next) => {
      await next()
      ctx.res.setHeader('WWW-Authenticate', 'Bearer realm="api"')
    }
    expect(await broken(serving(router, losing), router)).toStrictEqual(['GET /x: a 401 without the challenge ApiKey'])
  })

  it('a request that gets no response', async () => {
    const router = new Router()
    router.get('/x', withAuth(bearer), handler)
    const stuck = (): Promise<void> => new Promise(() => {})
    expect(await broken(serving(router, stuck), router, { within: 100 })).toStrictEqual(['GET /x: it gave no answer'])
  })

  it('a public operation that is refused, and a list that is not up to date', async () => {
    const router = new Router()
    router.get('/health', withAuth(null), handler)
    const refusing = (ctx: Context) => ctx.throw(403)
    expect(await broken(serving(router, refusing), router, { public: ['GET /health', 'GET /gone'] })).toStrictEqual([
      'GET /health: it is public, but refused',
      'GET /gone: listed as public, but it is not',
    ])
  })
})

describe('options of expectGuarded', () => {
  it('statuses allows other statuses of a refusal', async () => {
    const router = new Router()
    router.get('/x', withAuth(bearer), handler)
    const app = serving(router, authSettings({ errorMapper: () => ({ status: 404 }) }))
    expect(await broken(app, router, { statuses: [404] })).toStrictEqual([])
  })

  it('paths, params and fields reach operations that cannot be guessed', async () => {
    const router = new Router({ host: 'api.example' })
    router.get(/^\/r\d+$/, withAuth(bearer), handler)
    router.get('/pets/:id', withAuth(bearer), handler)
    const onlyNumbers = (ctx: Context, next: Next) => (/\/(r\d+|42)$/.test(ctx.path) ? next() : ctx.throw(404))
    const app = serving(router, onlyNumbers)
    const fields = [['Host', 'api.example']] as const
    const [name = ''] = (await broken(app, router, { fields })).map((law) => law.replace(/: .*/, ''))
    expect(name).toMatch(/^GET \/\^/)
    expect(await broken(app, router, { fields, paths: { [name]: '/r7' }, params: { id: '42' } })).toStrictEqual([])
    expect(await broken(app, router, { paths: { [name]: '/r7' }, params: { id: '42' } })).toContain(
      'GET /pets/:id: no request reached it',
    )
  })

  it('a wrong argument is a TypeError; two checks of one router at the same time are refused', async () => {
    const router = new Router()
    const app = serving(router)
    await expect(expectGuarded(app, router)).rejects.toThrow(/no operations/)
    // @ts-expect-error: a router has a stack; options and what routes() returns have none
    await expect(expectGuarded(app, router.routes())).rejects.toThrow(
      /takes the router itself, not its routes\(\): write /,
    )
    await expect(expectGuarded(app, router, { pubic: [] } as never)).rejects.toThrow(/no option "pubic"/)
    router.get('/x', withAuth(bearer), handler)
    const [first, second] = await Promise.allSettled([expectGuarded(app, router), expectGuarded(app, router)])
    expect([first.status, second.status]).toStrictEqual(['fulfilled', 'rejected'])
    expect(await broken(app, router)).toStrictEqual([])
  })
})
