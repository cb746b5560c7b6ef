/**
 * `seal(router)`: what it refuses, the fix that each message names, what may be listed, and that a sealed router does
 * not change.
 */
import { bodyParser } from '@koa/bodyparser'
import Router, { type RouterInstance } from '@koa/router'
import { apiApp, authSettings, formAuth, onError, operation, withAuth } from 'koa-with-auth'
import { lenient } from 'koa-with-auth/fp'
import { audit, seal, type SealOptions } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { bearer, closed, cors, go, guard, handle, open, perhaps } from '../support/models/audits.js'
import { guardOf, addUnchecked } from '../support/models/levels.js'

const one = () => new Router()
const hooked = () => one().param('id', go as never)

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
  const undecided = (name: string) =>
    `${name} is undecided: guard it or its router, or write withAuth(null) and list it`
  const isPublic = (name: string) => `${name} is public: guard it, or list '${name}' in public`
  const lets = (name: string, how: string) =>
    `${name} lets anonymous callers in (${how} bearer): remove that, or list '${name}' in public`
  const first = (name: string, other: string, access = 'public', what = 'it') =>
    `${name} is guarded, but ${other}, which is ${access}, answers ${what} first: register ${name} where it is tried before ${other}`
  const uncovered = (path: string, f: string) =>
    `use ${path}: no guard covers ${f}: list the function itself in middleware, or remove it`
  const early = (name: string, f: string) =>
    `${name}: ${f} runs before the guard: put it after withAuth(...), or list the function in middleware`
  const nowhere = (entry: string, open: string) =>
    `'${entry}' is listed in public, but there is no such operation; anonymous callers reach: ${open}`
  const form = withAuth(formAuth({ fields: ['a'], authenticate: () => true }))
  const unlike = /^\/\d{4}$/
  const listing = { middleware: [cors] }
  const logged = () => closed({ prefix: '/api' }).use(cors).use('/x', go).get('/x', handle)
  it.each<[name: string, router: () => RouterInstance, says: string[], options?: SealOptions]>([
    ['undecided', () => one().get('/x', handle), [undecided('GET /x')]],
    ['undecided, although listed', () => one().get('/x', handle), [undecided('GET /x')], { public: ['GET /x'] }],
    [
      'a guard after its handler',
      () => addUnchecked(one(), '/x', handle, guard),
      ['GET /x: its withAuth(...) comes after the handler and guards nothing; write it right after the path'],
    ],
    [
      'two guards: each request would be a 500',
      () => addUnchecked(one(), '/x', open, guard, handle),
      ['GET /x: withAuth(...) is in it twice; remove one'],
      { public: ['GET /x'] },
    ],
    ['public', () => closed({ prefix: '/api' }).get('/x', open, handle), [isPublic('GET /api/x')]],
    [
      'optional and lenient',
      () => closed().get('/x', perhaps, handle).all('/y', guardOf(lenient(bearer)) as never, handle), // prettier-ignore
      [lets('GET /x', 'optional'), lets('ALL /y', 'lenient')],
    ],
    [
      'D-R8: answered first by a public operation',
      () => closed().get('/users/:id', open, handle).get('/users/me', handle),
      [first('GET /users/me', 'GET /users/:id')],
      { public: ['GET /users/:id'] },
    ],
    [
      'answered first in part, by an optional operation',
      () => closed().get('/:a/x', perhaps, handle).get('/y/:b', handle),
      [first('GET /y/:b', 'GET /:a/x', 'optional', 'GET /y/x')],
      { public: ['GET /:a/x'] },
    ],
    [
      'a RegExp that is not understood',
      () => closed().get(unlike, open, handle).get('/:id', handle),
      [
        `GET /:id is guarded, and it is not known whether GET ${unlike}, which is public, answers it first, because of a RegExp or of several captures in one segment: register GET /:id where it is tried before GET ${unlike}`,
      ],
      { public: [`GET ${unlike}`] },
    ],
    [
      'the option exclusive: only the last operation runs, and it is public',
      () => closed({ exclusive: true }).get('/users/me', handle).get('/users/:id', open, handle),
      [first('GET /users/me', 'GET /users/:id')],
      { public: ['GET /users/:id'] },
    ],
    ['middleware', logged, [uncovered('/api/x/*', 'go')], listing],
    ['another function', () => closed().use(cors).get('/x', handle), [uncovered('/*', 'cors')], { middleware: [go] }],
    ['a function before a guard', () => one().get('/x', go, guard, handle), [early('GET /x', 'go')]],
    ['no body parser before a form', () => one().post('/x', bodyParser(), go, form, handle), [early('POST /x', 'go')]],
    ['a body parser', () => one().post('/x', bodyParser(), guard, handle), [early('POST /x', 'bodyParser')]],
    ['a param hook', () => hooked().get('/:id', cors, guard, handle), [early('GET /:id', 'param id: go')], listing],
    [
      'listed, but not in the router',
      () => closed().get('/health', open, handle).get('/x', handle),
      ['GET /helth', 'POST /health', 'get /health'].map((entry) => nowhere(entry, "'GET /health'")),
      { public: ['GET /health', 'GET /helth', 'POST /health', 'get /health'] },
    ],
    [
      'listed, but guarded',
      () => closed().get('/x', handle),
      ["'GET /x' is listed in public, but it is guarded (bearer): take it off the list", nowhere('GET /y', 'none')],
      { public: ['GET /x', 'GET /y'] },
    ],
    [
      'several findings',
      () => one().use(go).get('/a', handle).get('/b', open, handle).get('/b', guard, handle),
      [undecided('GET /a'), isPublic('GET /b'), first('GET /b', 'GET /b'), uncovered('/*', 'go')],
    ],
  ])('%s', (_name, router, says, options) => expect(findings(router(), options)).toEqual(says))
})

describe('a router that seal accepts', () => {
  it.each<[name: string, router: () => RouterInstance, options?: SealOptions]>([
    ['a router without operations', one],
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
    ['guarded before public', () => closed().get('/:a', handle).get('/x', open, handle), { public: ['GET /x'] }],
    ['middleware that a guard covers', () => closed().get('/x', handle).use(go)],
    ['middleware where there is no operation', () => closed().get('/x', handle).use('/y', go)],
    ['what is listed', () => hooked().use(cors).get('/:id', cors, guard, handle), { middleware: [cors, go] }],
    ['a function before the guard of a level', () => closed().get('/x', cors, guard, handle), { middleware: [cors] }],
    [
      'settings and descriptions of this package',
      () => {
        const failing = [onError(Error, () => ({ status: 500 }))]
        const api = apiApp({ prefix: '/api', auth: bearer, docs: false, onError: failing })
        api.use(authSettings({ realm: 'inner' })).get('/x', operation({ summary: 's' }), guard, handle)
        return one().use('/v1', api.routes())
      },
    ],
  ])('%s', (_name, router, options) => {
    const own = router()
    expect(seal(own, options)).toBe(own)
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

  it('does not count as the listed function if that one is in the router, too, or if it has another length or no name', () => {
    const router = closed().use(cors).use('/x', wrapped).get('/x', handle)
    expect(findings(router, { middleware: [cors] })).toHaveLength(1)
    const other = Object.defineProperty((_ctx: unknown) => {}, 'name', { value: 'cors' })
    expect(findings(closed().use(other).get('/x', handle), { middleware: [cors] })).toHaveLength(1)
    const anonymous = () => (_ctx: unknown, next: () => Promise<unknown>) => next()
    expect(findings(closed().use(anonymous()).get('/x', handle), { middleware: [anonymous()] })).toHaveLength(1)
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
