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
  defaultErrorMapper,
  httpBasicAuth,
  httpBearer,
  optional,
  withAuth,
  guardApp,
  type AuthError,
  type Authenticator,
  type ErrorMapper,
  anyOf,
  throttled,
} from 'koa-with-auth'
import { lenient } from 'koa-with-auth/fp'
import { audit, seal } from 'koa-with-auth/audit'
import { expectGuarded, mergeRequests, withBearer, withHeader } from 'koa-with-auth/testing'
import type { Application, GuardedOptions } from 'koa-with-auth/testing'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { violationsOf } from '../support/models/brokenLaws.js'
import { guardOf } from '../support/models/levels.js'
import { listen } from '../support/servers/server.js'

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

const routed = (...auths: ReadonlyArray<unknown>): Router => {
  const router = new Router()
  for (const [at, auth] of auths.entries()) router.get(`/${at}`, guardOf(auth) as never, handler)
  return router
}

/** The laws that are broken, as `<operation>: <law>`. */
const broken = async (
  app: Application,
  router: Parameters<typeof expectGuarded>[1],
  options?: GuardedOptions,
): Promise<ReadonlyArray<string>> => {
  const violations = await violationsOf(expectGuarded(app, router, options))
  expect(handled).toBe(0)
  return violations.map(({ law }) => law)
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
    const sent = withBearer('supersecret')
    // of the group, only the challenge of the wrong member is offered
    const valid = [sent, mergeRequests(sent, withHeader('X-API-Key', 'Partner-Key'))]
    const checked = await expectGuarded(serving(router), router, { public: open, valid })
    expect(checked.map(({ operation }) => operation)).toStrictEqual(
      audit(router).operations.map((one) => one.operation),
    )
    const protections = checked.map(({ protection }) => protection)
    expect(protections).toStrictEqual([...Array.from({ length: 5 }, () => 'guarded'), 'optional', 'optional', 'public'])
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
    const callback = () => expect.unreachable('it does not start')
    await expect(expectGuarded(Object.assign(Object.create(app) as Koa, { callback }), router)).rejects.toThrow('start')
    expect(await broken(app, router, { public: ['GET /x/:id'] })).not.toStrictEqual([])
    expect(await broken(app, router, { public: open })).toStrictEqual([])
  })
})

const without = 'GET /0: a 401 without the challenge'

const challenging = (challenge: string) => async (ctx: Context, next: Next) => {
  await next()
  ctx.res.setHeader('WWW-Authenticate', challenge)
}

describe('violations', () => {
  it('are reported together, each with its operation, what was sent, and the fix', async () => {
    const throwing = () => { throw new Error('no') } // prettier-ignore
    const router = routed(() => ({ user: 'anybody' }), throwing, bearer).get('/forgotten', handler)
    const violations = await violationsOf(expectGuarded(serving(router), router))
    expect(handled).toBe(0)
    expect(violations.map(({ law }) => law)).toStrictEqual([
      'GET /0: a handler ran without authentication',
      'GET /1: an error instead of a refusal',
      'GET /forgotten: public, but not listed',
    ])
    expect(violations[0]?.counterexample).toContain('GET /0\n')
    expect(violations[1]?.counterexample).toContain('Error: no')
  })

  it.each([
    ['an empty token', (token: string) => token === ''],
    ['the beginning of a token', (token: string) => token !== '' && 'superSecret'.startsWith(token)],
    ['a token in lower case', (token: string) => token === 'supersecret'],
    ['a token in upper case', (token: string) => token === 'SUPERSECRET'],
  ])('a hook that accepts %s', async (_what, takes) => {
    const kind = httpBearer({ authenticate: (_request, token) => takes(token) && { user: 'anna' } })
    const careless = (request: { get: (name: string) => string }) =>
      takes(request.get('Authorization').replace(/^Bearer /, '')) && { user: 'anna' }
    const router = routed(kind, careless)
    expect((await broken(serving(router), router, { valid: [withBearer('superSecret')] })).length).toBeGreaterThan(0)
  })

  it('A-04 A-35 a method that passes without credentials', async () => {
    const passing = (method: string) =>
      guardOf((request: { method: string }) => request.method === method && { user: 'anybody' }) as never
    const router = new Router().get('/x', passing('HEAD'), handler).all('/y', passing('TRACE'), handler)
    expect(await broken(serving(router), router)).toStrictEqual([
      'GET /x: a handler ran without authentication',
      'ALL /y: a handler ran without authentication',
    ])
  })

  it('an optional operation that gives every caller a principal', async () => {
    const router = routed(optional(httpBearer({ authenticate: (_request, token) => ({ token }) })))
    expect(await broken(serving(router), router, { public: ['GET /0'] })).toStrictEqual([
      'GET /0: a handler ran without authentication',
    ])
  })

  it('D-R8 a public operation before a guarded one', async () => {
    const router = new Router().get('/users/:id', withAuth(null), handler).get('/users/me', withAuth(bearer), handler)
    expect(await broken(serving(router), router, { public: ['GET /users/:id'] })).toStrictEqual([
      'GET /users/me: GET /users/:id answers instead',
    ])
  })

  it('a router that is not mounted', async () => {
    for (const [auth, options] of [
      [bearer, {}],
      [null, { public: ['GET /0'] }],
    ] as const) {
      // the second one answers 405
      for (const other of [new Router(), new Router().post('/0', handler)])
        expect(await broken(serving(other), routed(auth), options)).toStrictEqual(['GET /0: no request reached it'])
    }
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
    ['a mapper that answers 404 to a wrong one', ({ _tag }: AuthError) => ({ status: _tag === 'absent' ? 401 : 404 }), 'answers 404 instead of 401'], // prettier-ignore
    ['a mapper that answers 403 without a credential', () => ({ status: 403 }), 'answers 403 instead of 401'],
    ['a mapper that throws', () => { throw new Error('mapper') }, 'an error instead of a refusal'], // prettier-ignore
    [
      'a mapper that echoes the credential',
      (_: unknown, request: Context['request']) => ({ status: 401, body: request.header }),
      'a credential that was sent',
    ],
  ])('%s', async (_what, errorMapper, reported) => {
    const router = routed(bearer)
    const laws = await broken(serving(router, authSettings({ errorMapper })), router)
    expect(laws).toContainEqual(expect.stringContaining(reported))
  })

  it.each<[string, unknown, (ctx: Context, next: Next) => unknown, GuardedOptions, ...laws: string[]]>([
    [
      'B-01 middleware that removes the challenge',
      [bearer, keys[0]],
      challenging('Bearer realm="api"'),
      {},
      `${without} ApiKey`,
    ],
    ['another challenge, which begins alike', bearer, challenging('Bearers'), {}, `${without} Bearer`],
    ['no challenge that is the second of a line', bearer, challenging('Other, Bearer'), {}],
    [
      'a public operation that is refused, and a list that is not up to date',
      null,
      (ctx) => ctx.throw(403),
      { public: ['GET /0', 'GET /gone'] },
      'GET /0: it is public, but refused',
      'GET /gone: listed as public, but it is not',
    ],
  ])('%s', async (_what, auth, above, options, ...laws) => {
    const router = routed(auth)
    expect(await broken(serving(router, above), router, options)).toStrictEqual(laws)
  })

  it('a request that gets no response; then no more are sent', async () => {
    const router = routed(bearer)
    let asked = 0
    const silent = () => new Promise(() => asked++)
    expect(await broken(serving(router, silent), router, { within: 100 })).toEqual(['GET /0: it gave no answer'])
    expect(asked).toBe(8)
  })

  it('no refusal of a wrong credential with 400 or 403', async () => {
    const router = routed(bearer)
    const statuses = { malformed: 400, invalid: 403 }
    // Safe: one of its keys
    const errorMapper: ErrorMapper = (error, request) => ({
      ...defaultErrorMapper(error, request),
      ...(error._tag in statuses && { status: statuses[error._tag as 'invalid'] }),
    })
    expect(await broken(serving(router, authSettings({ errorMapper })), router)).toEqual([])
  })
})

describe('options of expectGuarded', () => {
  it('statuses allows other statuses of a refusal', async () => {
    const router = routed(bearer)
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

  it('a wrong argument is a TypeError', async () => {
    const router = new Router()
    const app = serving(router)
    await expect(expectGuarded(app, router)).rejects.toThrow(/no operations/)
    // @ts-expect-error: a router has a stack; options and what routes() returns have none
    await expect(expectGuarded(app, router.routes())).rejects.toThrow(
      /takes the router itself, not its routes\(\): write /,
    )
    await expect(expectGuarded(app, router, { pubic: [] } as never)).rejects.toThrow(/no option "pubic"/)
  })
})

/** An application that this guards as a whole, and its router, whose operation has a guard of its own, is public, or has none. */
const below = (outer: Authenticator<unknown>, inner?: Authenticator<unknown> | null) => {
  const router = inner === undefined ? new Router().get('/0', handler) : routed(inner)
  // Safe: it is the application
  const app = guardApp(outer)(new Koa()) as never as Koa
  app.silent = true
  return [app.use(router.routes()), router] as const
}

describe('expectGuarded below guardApp', () => {
  it.each<[string, Authenticator<unknown> | null | undefined]>([
    ['without a guard of its own', undefined],
    ['that everyone may call', null],
    ['with the same guard', bearer],
    ['with another guard', keys[2]],
  ])('passes an operation %s', async (_what, inner) => {
    const [app, router] = below(bearer, inner)
    expect(await expectGuarded(app, router)).toMatchObject([{ operation: 'GET /0', protection: 'guarded' }])
    expect(await broken(seal(app), router)).toEqual([])
  })

  const careless = httpBearer({ authenticate: (_request, token) => token.length > 3 && { token } })
  it.each<[string, Authenticator<unknown>, GuardedOptions, ...laws: string[]]>([
    ['an operation that a careless guardApp opens', careless, {}, 'GET /0: a handler ran without authentication'],
    ['one below an optional guardApp that is not listed', optional(bearer), {}, 'GET /0: public, but not listed'],
    ['a list that calls it public', bearer, { public: ['GET /0'] }, 'GET /0: listed as public, but it is not'],
  ])('refuses %s', async (_what, outer, options, law) => {
    expect(await broken(...below(outer, null), options)).toEqual([law])
  })

  it('passes an operation below an optional guardApp that is listed', async () => {
    const checked = await expectGuarded(...below(optional(bearer), null), { public: ['GET /0'] })
    expect(checked).toMatchObject([{ protection: 'optional' }])
  })

  it('does not count a guard that comes after the router', async () => {
    const router = routed(null)
    const routes = router.routes()
    const app: Koa = guardApp(bearer, { middleware: [routes] })(new Koa().use(routes)) as never
    expect(await broken(app, router)).toEqual(['GET /0: public, but not listed'])
  })
})

const limited = (points: number) => {
  const limiter = new RateLimiterMemory({ points, duration: 900 })
  return { limiter, used: [vi.spyOn(limiter, 'consume'), vi.spyOn(limiter, 'reward')] }
}

describe('expectGuarded with throttled', () => {
  it.each<[string, Authenticator<unknown>]>([
    ['one kind', basic],
    ['a list', anyOf([basic, keys[0]])],
  ])('passes %s with a limiter of one point, and sends it nothing', async (_what, inner) => {
    const { limiter, used } = limited(1)
    const router = routed(throttled({ limiter })(inner))
    const app = serving(router)
    for (const _ of [1, 2]) expect(await expectGuarded(app, router)).toMatchObject([{ protection: 'guarded' }])
    for (const spy of used) expect(spy).not.toHaveBeenCalled()
  })

  it('passes where all guesses were used before, and gives none back', async () => {
    const router = routed(throttled({ limiter: limited(1).limiter })(basic))
    const app = serving(router)
    const { url } = await listen(app)
    const headers = { authorization: `Basic ${Buffer.from('anna:wrong').toString('base64')}` }
    const guess = async () => (await fetch(`${url}/0`, { headers })).status
    expect([await guess(), await guess()]).toEqual([401, 429])
    expect(await broken(app, router)).toEqual([])
    expect(await guess()).toBe(429)
  })

  it('fails where something else than throttled answers 429', async () => {
    const router = routed(basic)
    const refusing = (ctx: Context) => void (ctx.status = 429)
    expect(await broken(serving(router, refusing), router)).toContain('GET /0: it answers 429 instead of 401')
  })
})
