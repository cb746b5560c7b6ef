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
  it.each<[name: string, router: () => RouterInstance, says: string[], options?: SealOptions]>([
    [
      'undecided',
      () => new Router().get('/x', handle),
      ['GET /x is undecided: guard it or its router, or write withAuth(null) and list it'],
    ],
    [
      'undecided and listed: the list does not replace a decision',
      () => new Router().get('/x', handle),
      ['GET /x is undecided: guard it or its router, or write withAuth(null) and list it'],
      { public: ['GET /x'] },
    ],
    [
      'a guard after its handler',
      () => addUnchecked(new Router(), '/x', handle, guard),
      ['GET /x: its withAuth(...) comes after the handler and guards nothing; write it right after the path'],
    ],
    [
      'two guards: each request would be a 500',
      () => addUnchecked(new Router(), '/x', open, guard, handle),
      ['GET /x: withAuth(...) is in it twice; remove one'],
      { public: ['GET /x'] },
    ],
    [
      'public',
      () => closed({ prefix: '/api' }).get('/x', open, handle),
      ["GET /api/x is public: guard it, or list 'GET /api/x' in public"],
    ],
    [
      'optional and lenient',
      () =>
        closed()
          .get('/x', perhaps, handle)
          .all('/y', guardOf(lenient(bearer)) as never, handle),
      [
        "GET /x lets anonymous callers in (optional bearer): remove that, or list 'GET /x' in public",
        "ALL /y lets anonymous callers in (lenient bearer): remove that, or list 'ALL /y' in public",
      ],
    ],
    [
      'D-R8: answered first by a public operation',
      () => closed().get('/users/:id', open, handle).get('/users/me', handle),
      [
        `GET /users/me is guarded, but GET /users/:id, which is public, answers it first: ${before('GET /users/me', 'GET /users/:id')}`,
      ],
      { public: ['GET /users/:id'] },
    ],
    [
      'answered first in part, by an optional operation',
      () => closed().get('/:a/x', perhaps, handle).get('/y/:b', handle),
      [
        `GET /y/:b is guarded, but GET /:a/x, which is optional, answers GET /y/x first: ${before('GET /y/:b', 'GET /:a/x')}`,
      ],
      { public: ['GET /:a/x'] },
    ],
    [
      'a RegExp that is not understood',
      () =>
        closed()
          .get(/^\/\d{4}$/, open, handle)
          .get('/:id', handle),
      [
        `GET /:id is guarded, and it is not known whether GET /^\\/\\d{4}$/, which is public, answers it first, because of a RegExp or of several captures in one segment: ${before('GET /:id', 'GET /^\\/\\d{4}$/')}`,
      ],
      { public: ['GET /^\\/\\d{4}$/'] },
    ],
    [
      'the option exclusive: only the last operation runs, and it is public',
      () => closed({ exclusive: true }).get('/users/me', handle).get('/users/:id', open, handle),
      [
        `GET /users/me is guarded, but GET /users/:id, which is public, answers it first: ${before('GET /users/me', 'GET /users/:id')}`,
      ],
      { public: ['GET /users/:id'] },
    ],
    [
      'middleware',
      () => closed({ prefix: '/api' }).use(cors).use('/x', go).get('/x', handle),
      ['use /api/x/*: no guard covers go: list the function itself in middleware, or remove it'],
      { middleware: [cors] },
    ],
    [
      'middleware that is not the listed function',
      () => closed().use(cors).get('/x', handle),
      ['use /*: no guard covers cors: list the function itself in middleware, or remove it'],
      { middleware: [go] },
    ],
    [
      'a function before a guard',
      () => new Router().get('/x', go, guard, handle),
      ['GET /x: go runs before the guard: put it after withAuth(...), or list the function in middleware'],
    ],
    [
      'a function that is no body parser before a guard that reads a form',
      () =>
        new Router().post(
          '/x',
          bodyParser(),
          go,
          withAuth(formAuth({ fields: ['a'], authenticate: () => true })),
          handle,
        ),
      ['POST /x: go runs before the guard: put it after withAuth(...), or list the function in middleware'],
    ],
    [
      'a body parser before any other guard',
      () => new Router().post('/x', bodyParser(), guard, handle),
      ['POST /x: bodyParser runs before the guard: put it after withAuth(...), or list the function in middleware'],
    ],
    [
      'a param hook before a guard',
      () => new Router().param('id', go as never).get('/:id', cors, guard, handle),
      ['GET /:id: param id: go runs before the guard: put it after withAuth(...), or list the function in middleware'],
      { middleware: [cors] },
    ],
    [
      'listed, but not in the router',
      () => closed().get('/health', open, handle).get('/x', handle),
      ['GET /helth', 'POST /health', 'get /health'].map(
        (entry) =>
          `'${entry}' is listed in public, but there is no such operation; anonymous callers reach: 'GET /health'`,
      ),
      { public: ['GET /health', 'GET /helth', 'POST /health', 'get /health'] },
    ],
    [
      'listed, but guarded',
      () => closed().get('/x', handle),
      [
        "'GET /x' is listed in public, but it is guarded (bearer): take it off the list",
        "'GET /y' is listed in public, but there is no such operation; anonymous callers reach: none",
      ],
      { public: ['GET /x', 'GET /y'] },
    ],
    [
      'several findings',
      () => new Router().use(go).get('/a', handle).get('/b', open, handle).get('/b', guard, handle),
      [
        'GET /a is undecided: guard it or its router, or write withAuth(null) and list it',
        "GET /b is public: guard it, or list 'GET /b' in public",
        `GET /b is guarded, but GET /b, which is public, answers it first: ${before('GET /b', 'GET /b')}`,
        'use /*: no guard covers go: list the function itself in middleware, or remove it',
      ],
    ],
  ])('%s', (_name, router, says, options) => expect(findings(router(), options)).toEqual(says))
})

describe('a router that seal accepts', () => {
  it.each<[name: string, router: () => RouterInstance, options?: SealOptions]>([
    ['a router without operations', () => new Router()],
    ['guarded operations', () => closed().get('/x', handle).all('/y', handle).get(/^\/z/, handle)],
    [
      'listed operations',
      () => closed().get('/x', open, handle).get('/y', perhaps, handle).all('/z', open, handle),
      { public: ['GET /x', 'GET /y', 'ALL /z'] },
    ],
    [
      'a public operation with a narrower path before a guarded one with a wider path',
      () => closed().get('/users/login', open, handle).get('/users/:id', handle).all('/*rest', handle),
      { public: ['GET /users/login'] },
    ],
    ['a guarded operation before a guarded one', () => closed().get('/:a', handle).get('/x', handle)],
    [
      'a guarded operation before a public one: it refuses more',
      () => closed().get('/:a', handle).get('/x', open, handle),
      { public: ['GET /x'] },
    ],
    ['middleware that a guard covers', () => closed().get('/x', handle).use(go)],
    ['middleware where there is no operation', () => closed().get('/x', handle).use('/y', go)],
    [
      'middleware, functions and param hooks that are listed',
      () =>
        new Router()
          .param('id', go as never)
          .use(cors)
          .get('/:id', cors, guard, handle),
      { middleware: [cors, go] },
    ],
    ['a function before the guard of a level', () => closed().get('/x', cors, guard, handle), { middleware: [cors] }],
    [
      'settings and descriptions of this package',
      () => {
        const api = apiApp({
          prefix: '/api',
          auth: bearer,
          docs: false,
          onError: [onError(Error, () => ({ status: 500 }))],
        })
        api.use(authSettings({ realm: 'inner' })).get('/x', operation({ summary: 's' }), guard, handle)
        return new Router().use('/v1', api.routes())
      },
    ],
  ])('%s', (_name, router, options) => {
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
