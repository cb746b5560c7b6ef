/**
 * `seal(router)`: what it refuses, the fix that each message names, what may be listed, and that a sealed router does
 * not change.
 */
import { bodyParser } from '@koa/bodyparser'
import Router, { type RouterInstance } from '@koa/router'
import { apiApp, authSettings, formAuth, httpBearer, onError, operation, optional, withAuth } from 'koa-with-auth'
import { lenient } from 'koa-with-auth/fp'
import { audit, seal, type SealOptions } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { guardOf, addUnchecked } from '../support/models/levels.js'

const handle = (): void => {}
const go = (_ctx: unknown, next: () => Promise<unknown>) => next()
const cors = (_ctx: unknown, next: () => Promise<unknown>) => next()
const bearer = httpBearer({ authenticate: () => true })
const open = guardOf(null) as never
const guard = guardOf(bearer) as never
const perhaps = guardOf(optional(bearer)) as never
const closed = (opts = {}) => withAuth(bearer)(new Router(opts)) as unknown as RouterInstance

const findings = (router: RouterInstance, options?: SealOptions): string[] => {
  try {
    seal(router, options)
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    const [head, ...lines] = (error as TypeError).message.split('\n- ')
    expect(head).toBe(`seal(router): ${lines.length === 1 ? '1 finding' : `${lines.length} findings`}`)
    return lines
  }
}

describe('a finding of seal', () => {
  const before = (name: string, other: string) => `register ${name} where it is tried before ${other}`
  it.each<{ name: string; router: () => RouterInstance; options?: SealOptions; says: string[] }>([
    {
      name: 'undecided',
      router: () => new Router().get('/x', handle),
      says: ['GET /x is undecided: guard it or its router, or write withAuth(null) and list it'],
    },
    {
      name: 'undecided and listed: the list does not replace a decision',
      router: () => new Router().get('/x', handle),
      options: { public: ['GET /x'] },
      says: ['GET /x is undecided: guard it or its router, or write withAuth(null) and list it'],
    },
    {
      name: 'a guard after its handler',
      router: () => addUnchecked(new Router(), '/x', handle, guard),
      says: ['GET /x: its withAuth(...) comes after the handler and guards nothing; write it right after the path'],
    },
    {
      name: 'two guards: each request would be a 500',
      router: () => addUnchecked(new Router(), '/x', open, guard, handle),
      options: { public: ['GET /x'] },
      says: ['GET /x: withAuth(...) is in it twice; remove one'],
    },
    {
      name: 'public',
      router: () => closed({ prefix: '/api' }).get('/x', open, handle),
      says: ["GET /api/x is public: guard it, or list 'GET /api/x' in public"],
    },
    {
      name: 'optional and lenient',
      router: () =>
        closed()
          .get('/x', perhaps, handle)
          .all('/y', guardOf(lenient(bearer)) as never, handle),
      says: [
        "GET /x lets anonymous callers in (optional bearer): remove that, or list 'GET /x' in public",
        "ALL /y lets anonymous callers in (lenient bearer): remove that, or list 'ALL /y' in public",
      ],
    },
    {
      name: 'D-R8: answered first by a public operation',
      router: () => closed().get('/users/:id', open, handle).get('/users/me', handle),
      options: { public: ['GET /users/:id'] },
      says: [
        `GET /users/me is guarded, but GET /users/:id, which is public, answers it first: ${before('GET /users/me', 'GET /users/:id')}`,
      ],
    },
    {
      name: 'answered first in part, by an optional operation',
      router: () => closed().get('/:a/x', perhaps, handle).get('/y/:b', handle),
      options: { public: ['GET /:a/x'] },
      says: [
        `GET /y/:b is guarded, but GET /:a/x, which is optional, answers GET /y/x first: ${before('GET /y/:b', 'GET /:a/x')}`,
      ],
    },
    {
      name: 'a RegExp that is not understood',
      router: () =>
        closed()
          .get(/^\/\d{4}$/, open, handle)
          .get('/:id', handle),
      options: { public: ['GET /^\\/\\d{4}$/'] },
      says: [
        `GET /:id is guarded, and it is not known whether GET /^\\/\\d{4}$/, which is public, answers it first, because of a RegExp or of several captures in one segment: ${before('GET /:id', 'GET /^\\/\\d{4}$/')}`,
      ],
    },
    {
      name: 'the option exclusive: only the last operation runs, and it is public',
      router: () => closed({ exclusive: true }).get('/users/me', handle).get('/users/:id', open, handle),
      options: { public: ['GET /users/:id'] },
      says: [
        `GET /users/me is guarded, but GET /users/:id, which is public, answers it first: ${before('GET /users/me', 'GET /users/:id')}`,
      ],
    },
    {
      name: 'middleware',
      router: () => closed({ prefix: '/api' }).use(cors).use('/x', go).get('/x', handle),
      options: { middleware: [cors] },
      says: ['use /api/x/*: no guard covers go: list the function itself in middleware, or remove it'],
    },
    {
      name: 'middleware that is not the listed function',
      router: () => closed().use(cors).get('/x', handle),
      options: { middleware: [go] },
      says: ['use /*: no guard covers cors: list the function itself in middleware, or remove it'],
    },
    {
      name: 'a function before a guard',
      router: () => new Router().get('/x', go, guard, handle),
      says: ['GET /x: go runs before the guard: put it after withAuth(...), or list the function in middleware'],
    },
    {
      name: 'a function that is no body parser before a guard that reads a form',
      router: () =>
        new Router().post(
          '/x',
          bodyParser(),
          go,
          withAuth(formAuth({ fields: ['a'], authenticate: () => true })),
          handle,
        ),
      says: ['POST /x: go runs before the guard: put it after withAuth(...), or list the function in middleware'],
    },
    {
      name: 'a body parser before any other guard',
      router: () => new Router().post('/x', bodyParser(), guard, handle),
      says: [
        'POST /x: bodyParser runs before the guard: put it after withAuth(...), or list the function in middleware',
      ],
    },
    {
      name: 'a param hook before a guard',
      router: () => new Router().param('id', go as never).get('/:id', cors, guard, handle),
      options: { middleware: [cors] },
      says: [
        'GET /:id: param id: go runs before the guard: put it after withAuth(...), or list the function in middleware',
      ],
    },
    {
      name: 'listed, but not in the router',
      router: () => closed().get('/health', open, handle).get('/x', handle),
      options: { public: ['GET /health', 'GET /helth', 'POST /health', 'get /health'] },
      says: ['GET /helth', 'POST /health', 'get /health'].map(
        (entry) =>
          `'${entry}' is listed in public, but there is no such operation; anonymous callers reach: 'GET /health'`,
      ),
    },
    {
      name: 'listed, but guarded',
      router: () => closed().get('/x', handle),
      options: { public: ['GET /x', 'GET /y'] },
      says: [
        "'GET /x' is listed in public, but it is guarded (bearer): take it off the list",
        "'GET /y' is listed in public, but there is no such operation; anonymous callers reach: none",
      ],
    },
    {
      name: 'several findings',
      router: () => new Router().use(go).get('/a', handle).get('/b', open, handle).get('/b', guard, handle),
      says: [
        'GET /a is undecided: guard it or its router, or write withAuth(null) and list it',
        "GET /b is public: guard it, or list 'GET /b' in public",
        `GET /b is guarded, but GET /b, which is public, answers it first: ${before('GET /b', 'GET /b')}`,
        'use /*: no guard covers go: list the function itself in middleware, or remove it',
      ],
    },
  ])('$name', ({ router, options, says }) => expect(findings(router(), options)).toEqual(says))
})

describe('a router that seal accepts', () => {
  it.each<{ name: string; router: () => RouterInstance; options?: SealOptions }>([
    { name: 'a router without operations', router: () => new Router() },
    { name: 'guarded operations', router: () => closed().get('/x', handle).all('/y', handle).get(/^\/z/, handle) },
    {
      name: 'listed operations',
      router: () => closed().get('/x', open, handle).get('/y', perhaps, handle).all('/z', open, handle),
      options: { public: ['GET /x', 'GET /y', 'ALL /z'] },
    },
    {
      name: 'a public operation with a narrower path before a guarded one with a wider path',
      router: () => closed().get('/users/login', open, handle).get('/users/:id', handle).all('/*rest', handle),
      options: { public: ['GET /users/login'] },
    },
    { name: 'a guarded operation before a guarded one', router: () => closed().get('/:a', handle).get('/x', handle) },
    {
      name: 'a guarded operation before a public one: it refuses more',
      router: () => closed().get('/:a', handle).get('/x', open, handle),
      options: { public: ['GET /x'] },
    },
    { name: 'middleware that a guard covers', router: () => closed().get('/x', handle).use(go) },
    { name: 'middleware where there is no operation', router: () => closed().get('/x', handle).use('/y', go) },
    {
      name: 'middleware, functions and param hooks that are listed',
      router: () =>
        new Router()
          .param('id', go as never)
          .use(cors)
          .get('/:id', cors, guard, handle),
      options: { middleware: [cors, go] },
    },
    {
      name: 'a function before the guard of a level',
      router: () => closed().get('/x', cors, guard, handle),
      options: { middleware: [cors] },
    },
    {
      name: 'settings and descriptions of this package',
      router: () => {
        const api = apiApp({
          prefix: '/api',
          auth: bearer,
          docs: false,
          onError: [onError(Error, () => ({ status: 500 }))],
        })
        api.use(authSettings({ realm: 'inner' })).get('/x', operation({ summary: 's' }), guard, handle)
        return new Router().use('/v1', api.routes())
      },
    },
  ])('$name', ({ router, options }) => {
    const one = router()
    expect(seal(one, options)).toBe(one)
  })
})

describe('R06 a function that a tracer wrapped and gave the same name', () => {
  const wrapped = Object.defineProperty(
    (ctx: never, next: () => Promise<unknown>) => Reflect.apply(cors, undefined, [ctx, next]) as unknown,
    'name',
    { value: 'cors' },
  )

  it('counts as the listed function if that one is not in the router itself', () => {
    expect(findings(closed().use(wrapped).get('/x', handle), { middleware: [cors] })).toEqual([])
  })

  it('does not count as the listed function if that one is in the router, too, or if it has no name', () => {
    const router = closed().use(cors).use('/x', wrapped).get('/x', handle)
    expect(findings(router, { middleware: [cors] })).toHaveLength(1)
    const [anonymous, other] = [() => (_ctx: unknown, next: () => Promise<unknown>) => next()].flatMap((f) => [
      f(),
      f(),
    ])
    expect(findings(closed().use(anonymous!).get('/x', handle), { middleware: [other!] })).toHaveLength(1)
  })
})

describe('misuse of seal', () => {
  it.each([
    [{ publik: [] }, 'seal(router, options): no option "publik"; there are public, middleware, lock, objects'],
    [['GET /x'], 'seal(router, options) takes an object of options, not an array'],
    [{ public: 'GET /x' }, "seal(router, { public }) must be an array of operations such as 'GET /health'"],
    [{ public: [/x/] }, "seal(router, { public }) must be an array of operations such as 'GET /health'"],
    [
      { middleware: [{}] },
      'seal(router, { middleware }) must be an array of the functions that were passed to router.use',
    ],
  ])('the options %j are a TypeError', (options, message) => {
    expect(() => seal(closed(), options as never)).toThrow(new TypeError(message))
  })

  it('what is not a router is a TypeError', () => {
    expect(() => seal(closed().routes() as never)).toThrow('seal(router) takes the router itself, not its routes()')
    expect(() => seal(undefined as never)).toThrow('seal(router) takes a router of @koa/router')
  })

  it('a router that was refused can still be changed', () => {
    const router = closed().get('/x', open, handle)
    expect(findings(router)).toHaveLength(1)
    expect(() => router.get('/y', handle)).not.toThrow()
    expect(audit(router).operations).toHaveLength(2)
  })
})
