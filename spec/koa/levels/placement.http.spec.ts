/**
 * R22: a guard in a place where it cannot protect. It is a TypeError when it is written, if that can be seen then; otherwise
 * a 500. No request passes.
 */
import Router from '@koa/router'
import type { Next } from 'koa'
import compose from 'koa-compose'
import { operation, withAuth } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import {
  addUnchecked,
  appOf,
  bearerFor,
  callsOf,
  denied,
  get,
  guardOf,
  handler,
  outcome,
  tokenOf,
} from '../../support/models/levels.js'
import { listen, serve } from '../../support/servers/server.js'

const a = bearerFor('a')
type Any = (ctx: never, next: Next) => Promise<unknown>
// Safe: a guard is middleware, and is used as middleware here
const asMiddleware = (auth: unknown): Any => guardOf(auth) as Any
const [guard, open] = [asMiddleware(a), asMiddleware(null)]
const hidden = (...middleware: Any[]) => compose(middleware as never) as Any
const last = handler('p') as unknown as Any

const levelled = () => withAuth(a)(new Router())
const goOn: Any = (_ctx, next) => next()

const operationOrRouter = 'write router.get(path, withAuth(a), handler), or guard the whole router: withAuth(a)(router)'

const byPrefix = (of: string) =>
  `${of}.use(withAuth(a)) would guard by path prefix, which other spellings of the path evade; ${operationOrRouter}`
const twice = (method: string) => `${method} /x: withAuth(...) is in it twice; remove one`
const before = (method: string) => `${method} /x: withAuth(...) comes before the path; write it right after the path`
const noHandler = (route: string) => `${route}: withAuth(...) has no handler after it; write it right after the path`

describe('a misplaced guard that is seen when it is written', () => {
  const cases: ReadonlyArray<[description: string, message: string, run: () => unknown]> = [
    ['app.use(withAuth(a))', byPrefix('app'), () => appOf(guard)],
    ['router.use(withAuth(a))', byPrefix('router'), () => new Router().use(guard)],
    ["router.use('/p', withAuth(a))", byPrefix('router'), () => new Router().use('/p', guard)],
    ["router.use('/p', middleware, withAuth(null))", byPrefix('router'), () => new Router().use('/p', goOn, open)],
    ['twice in a derived router', twice('GET'), () => levelled().get('/x', withAuth(a), guard as never, last as never)],
    ['twice, derived later', twice('ALL'), () => withAuth(a)(new Router().all('/x', guard, open, last))],
    ['twice in a plain router', twice('GET'), () => new Router().get('/x', guard, guard, last)],
    ['public and another, apart', twice('PUT'), () => new Router().put('/x', open, goOn, guard, last)],
    ['no handler after it', noHandler('GET /x'), () => levelled().get('/x', goOn as never, guard as never)],
    ['before the path', before('GET'), () => levelled().get(guard as never, '/x' as never, last as never)],
    ['before the path, in a plain router', before('POST'), () => new Router().post(guard as never, '/x', last)],
    ['no handler, derived later', noHandler('GET /x'), () => withAuth(a)(new Router().get('/x', guard))],
  ]

  test.each(cases)('%s is a TypeError that names the place and the fix', (_description, message, run) => {
    expect(run).toThrow(new TypeError(message))
  })

  const noRouters: ReadonlyArray<[string, unknown]> = [
    ['router.routes()', new Router().routes()],
    ['a Koa application', appOf()],
    ['an object', {}],
    ['null', null],
    ['a guard', withAuth(a)],
  ]

  test.each(noRouters)('withAuth(a)(%s) is a TypeError that names the fix', (description, given) => {
    const wrong = description.endsWith('.routes()')
      ? 'takes the router itself, not its routes(): write withAuth(a)(router).routes()'
      : description === 'a Koa application'
        ? 'takes a router of @koa/router, not an application; guard each of its routers, or write apiApp({ auth: a })'
        : 'takes a router of @koa/router'
    expect(() => (withAuth(a) as (u: unknown) => unknown)(given)).toThrow(new TypeError(`withAuth(a)(router) ${wrong}`))
  })
})

// Safe: a router takes any number of functions
const register =
  (method: string, ...given: unknown[]) =>
  (router: object) =>
    Reflect.apply(Reflect.get(router, method) as Function, router, given)

describe('R22 a guard after the handler, in a router that knows no guard', () => {
  const late: ReadonlyArray<[string, (router: object) => unknown]> = [
    ['GET /x', register('get', '/x', last, guard)],
    ['GET /x', register('get', 'named', '/x', last, guard)],
    ['POST /x', register('post', '/x', goOn, last, open)],
    ['GET /x,/y', register('get', ['/x', '/y'], last, guard)],
    ['ALL /x', register('all', '/x', last, guard)],
    ['DELETE /x', register('register', '/x', ['delete'], [last, guard])],
    ['GET /^\\/x/', register('get', /^\/x/, last, guard)],
    ['PUT /x', register('put', '/x', last, asMiddleware([a, () => undefined]))],
  ]
  const routers: ReadonlyArray<[string, () => object]> = [
    ['a router', () => new Router()],
    ['a router of a class of its own', () => new (class extends Router {})()],
    ['a copy of a router', () => Object.assign(Object.create(Object.getPrototypeOf(new Router())), new Router())],
  ]
  describe.each(routers)('%s', (_name, made) => {
    test.each(late)('%s: throws when it is written, and has no such route', (label, write) => {
      const router = made()
      expect(() => write(router)).toThrow(new TypeError(noHandler(label)))
      expect(Reflect.get(router, 'stack')).toEqual([])
    })
  })

  test('everything else is registered as before', () => {
    const router = new Router()
    const added = [
      router.get('/a', guard, last),
      router.get('/b', goOn, guard, last),
      router.get('/c', guard),
      router.get('/d', last),
      router.use('/e', goOn),
      router.get('/f', operation({ summary: 'f' }) as never, guard),
      router.get('/g', guard, operation({ summary: 'g' }) as never),
    ]
    expect(new Set(added)).toEqual(new Set([router]))
    expect(router.stack.map(({ path }) => path)).toEqual(['/a', '/b', '/c', '/d', '/e', '/f', '/g'])
    expect(router.register('/h', ['GET'], [last] as never)).toBe(router.stack.at(-1))
  })
})

describe('a misplaced guard that is seen when a request comes', () => {
  const served = serve(() => {
    const router = new Router()
    router.use('/used', hidden(guard))
    router.get('/used/x', handler('p'))
    router.use('/same', hidden(guard))
    router.get('/same', handler('p'))
    addUnchecked(router, '/twice', guard, guard, handler('p'))
    addUnchecked(router, '/apart', open, goOn, guard, handler('p'))
    router.get('/composed', guard, hidden(guard, last))
    router.get('/ahead', hidden(guard), handler('p'))
    const derived = withAuth(a)(new Router())
    derived.get('/derived', hidden(guard) as never, handler('p'))
    derived.use('/below', hidden(open) as never)
    derived.get('/below', handler('p'))
    return appOf(router.routes(), derived.routes())
  })

  test.each([
    ['/used/x', 'outside of an operation'],
    ['/twice', 'is in one operation twice; remove one'],
    ['/apart', 'is in one operation twice; remove one'],
    ['/composed', 'is in one operation twice; remove one'],
    ['/derived', 'is in one operation twice; remove one'],
  ])('%s is a 500 for a valid credential, and the error names the fix', async (path, message) => {
    served.errors.length = 0
    const crashed = { status: 500, challenge: undefined, says: 'Internal Server Error', calls: 0 }
    expect(await outcome(served.port, path, 'p', tokenOf('a'))).toEqual(crashed)
    expect(String(served.errors[0])).toContain(message)
    if (message.startsWith('outside')) expect(String(served.errors[0])).toContain(operationOrRouter)
  })

  // If a route has the same path as the middleware, the two cannot be distinguished: then the guard protects the route
  const paths = ['/used/x', '/same', '/below', '/twice', '/apart', '/composed', '/derived', '/ahead']
  test.each(paths)('%s admits no request without a credential', async (path) => {
    const { status, calls } = await outcome(served.port, path, 'p')
    expect([[401, 500].includes(status), calls]).toEqual([true, 0])
  })

  test('a guard that is hidden in the middleware of an operation guards it', async () => {
    expect(await outcome(served.port, '/ahead', 'p', tokenOf('a'))).toMatchObject({ status: 200, calls: 1 })
  })

  test('a guard that is hidden in app.use before the routers admits no request', async () => {
    for (const first of [guard, open]) {
      const own = await listen(appOf(hidden(first), last))
      for (const token of [undefined, tokenOf('a')]) {
        expect((await get(own.port, '/x', token)).status).toBe(500)
        expect(callsOf('p')).toBe(0)
      }
      expect(String(own.errors[0])).toContain(operationOrRouter)
    }
  })

  test('a guard without a handler after it in a plain router admits no request and writes no response', async () => {
    const own = await listen(appOf(new Router().get('/x', guard).routes()))
    expect(await outcome(own.port, '/x', 'p')).toEqual(denied('a'))
    expect((await get(own.port, '/x', tokenOf('a'))).status).toBe(404)
  })

  test('a router inside of an operation keeps its own guards', async () => {
    const inner = new Router().get('/outer/x', asMiddleware(bearerFor('b')), handler('p'))
    const outer = new Router().get('/outer{/*rest}', open, inner.routes() as never)
    const own = await listen(appOf(outer.routes()))
    expect(await outcome(own.port, '/outer/x', 'p')).toEqual(denied('b'))
    expect(await outcome(own.port, '/outer/x', 'p', tokenOf('b'))).toMatchObject({ status: 200, calls: 1 })
  })
})
