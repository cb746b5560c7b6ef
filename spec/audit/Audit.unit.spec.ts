/** `audit(router)`: what a line reports, as data and as a table. For levels see router-levels.unit.spec.ts. */
import Router, { type RouterInstance } from '@koa/router'
import Koa from 'koa'
import { also, apiApp, authSettings, httpBearer, operation, optional, withAuth } from 'koa-with-auth'
import { audit, type Audit, type AuditedOperation } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { table, visible } from '../../src/audit/Audit.js'
import { findingsOf } from '../../src/audit/findings.js'
import { cookie, go, handle, open } from '../support/models/audits.js'
import { guardOf, addUnchecked } from '../support/models/levels.js'

const named = (schemeName: string) => httpBearer({ schemeName, authenticate: () => true })
const [a, b] = [named('a'), named('b')]

const only = (router: Parameters<typeof audit>[0]): AuditedOperation => {
  const { operations } = audit(router)
  expect(operations).toHaveLength(1)
  return operations[0]!
}
describe('operations of the audit', () => {
  it.each<[name: string, register: (router: Router) => unknown, operations: string[]]>([
    ['GET answers HEAD', (r) => r.get('/x', handle), ['GET /x']],
    ['all methods', (r) => r.all('/x', handle), ['ALL /x']],
    ['several methods have a line each', (r) => r.register('/x', ['GET', 'PUT', 'HEAD'], handle), ['GET /x', 'PUT /x']],
    ['several paths have a line each', (r) => r.get(['/x', '/y'], handle), ['GET /x', 'GET /y']],
    ['a RegExp', (r) => r.get(/^\/x\/\d+$/i, handle), ['GET /^\\/x\\/\\d+$/i']],
    [
      'prefixes are in the order of mounting',
      (r) => r.prefix('/api').use('/:team', new Router({ prefix: '/users' }).get('/:id', handle).routes()), // prettier-ignore
      ['GET /api/:team/users/:id'],
    ],
  ])('%s', (_name, register, operations) => {
    const router = new Router()
    register(router)
    expect(audit(router).operations.map(({ operation }) => operation)).toEqual(operations)
  })

  it('undescribed: a plain function, also inside of combinators, and a RegExp', () => {
    const router = new Router()
    router.get('/bearer', withAuth(a), handle).get('/public', withAuth(null), handle)
    const custom = guardOf(() => true) as never
    router.get('/custom', withAuth([a, () => true]), handle).get(/^\/x/, custom, handle)
    const undescribed = audit(router).operations.map((one) => one.undescribed.join())
    expect(undescribed).toEqual(['', '', 'authenticator', 'authenticator,path'])
  })

  it('before the guard: lists functions and the param hooks of plain routers, but no descriptions', () => {
    const limiter = (_ctx: unknown, next: () => Promise<unknown>) => next()
    const load = (_id: unknown, _ctx: unknown, next: () => Promise<unknown>) => next()
    const plain = new Router().param('id', load)
    plain.get('/:id', operation({ summary: 's' }), limiter, withAuth(a), handle)
    plain.get('/:id/x', operation({ summary: 's' }), withAuth(a), handle)
    plain.get('/:id/y', limiter, withAuth(null), handle)
    const before = audit(plain).operations.map(({ beforeGuard }) => beforeGuard)
    expect(before).toEqual([['param id: load', 'limiter'], [], []])
    const level = withAuth(b)(new Router()).get('/x', limiter, withAuth(a) as never, handle)
    expect(only(level).beforeGuard).toEqual(['limiter'])
  })

  it('a function without a name is listed as one, by a digest of its text: anonymous means a caller', () => {
    const router = new Router().get('/x', (_ctx, next) => next(), withAuth(a) as never, handle)
    expect(only(router).beforeGuard).toEqual([expect.stringMatching(/^function without a name [0-9a-f]{12}$/)])
  })

  it('a guard after the handler guards nothing', () => {
    const protection = 'undecided (withAuth(...) comes after the handler)'
    for (const auth of [a, null]) {
      const router = addUnchecked(new Router(), '/x', handle, guardOf(auth))
      expect(only(router)).toMatchObject({ access: 'undecided', protection })
    }
  })
})

describe('middleware of the audit', () => {
  const closed = (router: RouterInstance) => audit(router).middleware.map(({ path, guarded }) => [path, guarded])

  it('has its path and what is below it', () => {
    const router = new Router()
    router.use(go, go).use('/a', go).use('/', go).use(/^\/b/, go).use('', go)
    router.use('/c', new Router({ prefix: '/d' }).use(go).use('/e/:id', go).routes())
    router.use('/:t', new Router().use(go).routes())
    const paths = ['/*', '/*', '/a/*', '/', '/^\\/b/', '/*', '/c/d/*', '/c/d/e/:id/*', '/:t/*']
    expect(audit(router).middleware.map(({ path }) => path)).toEqual(paths)
    const prefixed = audit(router.prefix('/p')).middleware.slice(0, 3)
    expect(prefixed.map(({ path }) => path)).toEqual(['/p/*', '/p/*', '/p/a/*'])
  })

  const level = () => withAuth(a)(new Router())
  const exclusive = () => withAuth(a)(new Router({ exclusive: true }))
  it.each<[name: string, guarded: string, router: () => RouterInstance]>([
    ['before a guard', 'no', () => level().use(go).get('/x', handle)],
    ['after a guard', 'yes', () => level().get('/x', handle).use(go)],
    ['after the guard of a public operation', 'no', () => new Router().get('/x', open, handle).use(go)],
    ['after an optional guard', 'no', () => withAuth(optional(a))(new Router()).get('/x', handle).use(go)],
    ['after one guard and before another', 'no', () => level().get('/x', handle).use(go).get('/y', handle)],
    ['before a guard with another path', 'yes', () => level().get('/x/z', handle).use('/x', go).get('/y', handle)],
    ['where there is no operation', 'never runs', () => level().use('/x', go).get('/y', handle)],
    ['after a guard, if only one layer runs', 'no', () => exclusive().get('/x', handle).use(go)],
  ])('%s: %s', (_name, guarded, router) => expect(closed(router())).toEqual([[expect.any(String), guarded]]))
})

describe('the result of the audit', () => {
  const api = () => {
    const api = apiApp({ prefix: '/api', auth: a, docs: false })
    api.use('/log', go)
    api.get('/users/:id', withAuth(null), handle).get('/users/me', handle)
    api.get('/log', go, withAuth([b, () => true]), handle).post(/^\/x\n/, withAuth(optional(b)), handle)
    api.get('/:a/x', withAuth(also(b)), handle).get('/y/:b', handle)
    return api.use('/plain', new Router().get('/health', withAuth(null), handle).routes())
  }

  it('is plain data that JSON keeps', () => {
    const audited = audit(api())
    const kept = JSON.parse(JSON.stringify(audited)) as Audit
    expect(kept).toStrictEqual({ operations: audited.operations, middleware: audited.middleware })
    expect(structuredClone(audited)).toEqual(kept)
    expect(table(kept)).toBe(String(audited))
  })

  it('is the same each time, and the router does not change', () => {
    const router = api()
    const before = JSON.stringify(router)
    expect(audit(router)).toStrictEqual(audit(router))
    expect(audit(router)).toEqual(audit(api()))
    expect(JSON.stringify(router)).toBe(before)
  })

  it('is printed as a table', () => {
    expect(`\n${String(audit(api()))}\n`).toMatchInlineSnapshot(`
      "
      OPERATION              PROTECTED BY                         DECIDED BY              NOTES
      GET /api/users/:id     public                               operation
      GET /api/users/me      bearer "a"                           application             answered first by GET /api/users/:id (public)
      GET /api/log           bearer "b", or custom                operation               before its guard: go
      POST /^\\/x\\n/          optional bearer "b"                  operation
      GET /api/:a/x          all of (bearer "a", and bearer "b")  application, operation  partly answered first by GET /api/users/:id (public), as GET /api/users/x; no condition reads :a
      GET /api/y/:b          bearer "a"                           application             partly answered first by GET /api/:a/x (guarded), as GET /api/y/x; no condition reads :b
      GET /api/plain/health  public                               operation

      MIDDLEWARE  FUNCTIONS  GUARDED
      /api/log/*  go         no
      "
    `)
  })

  it('is printed without the second table if there is no middleware, and as a head alone if there is no operation', () => {
    expect(String(audit(new Router()))).toBe('OPERATION  PROTECTED BY  DECIDED BY  NOTES')
    expect(String(audit(new Router().get('/x', handle)))).toBe(
      'OPERATION  PROTECTED BY        DECIDED BY  NOTES\nGET /x     undecided (public)  nothing',
    )
  })
})

it('a name cannot hide a part of a line, and writes that other sites may send are noted', () => {
  const app = new Koa().use(authSettings({ csrf: false }))
  app.use(withAuth(cookie)(new Router().post('/a\u202eb', handle)).routes())
  const printed = String(audit(app))
  expect(printed).toContain('POST /a\\u{202e}b')
  expect(printed).toContain('takes writes from other sites')
  expect(findingsOf(audit(app))).toMatchObject([
    { rule: 'csrf-off', severity: 'warning', operation: 'POST /a\u202eb', at: [0] },
    { rule: 'unguarded-middleware', operation: 'USE /*' },
  ])
})

it.each([
  ['\u202e', '\\u{202e}'],
  ['\u2028', '\\u{2028}'],
  ['\u00a0', '\\u{a0}'],
  ['\ud800', '\\u{d800}'],
  ['\\u{202e}', '\\u{5c}u{202e}'],
  ['\\ \\u ä \u{1f600}', '\\ \\u ä \u{1f600}'],
])('%j is printed as %s', (name, printed) => expect(visible(name)).toBe(printed))

describe('misuse of audit', () => {
  it.each([undefined, null, {}, 'router', { stack: {} }])('audit(%j) is a TypeError', (router) => {
    expect(() => audit(router as never)).toThrow(new TypeError('audit(router) takes a router of @koa/router'))
  })

  it('audit(router.routes()) is a TypeError', () => {
    const routes = new Router().routes() as never
    expect(() => audit(routes)).toThrow('audit(router) takes the router itself, not its routes()')
  })
})
