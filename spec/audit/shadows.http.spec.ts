/**
 * D-R8: the operation that answers first is the one that the audit names. Each row has two operations in the order of
 * their registration, on a real server. Two requests are sent: the one that the audit names, and one that only the
 * second operation answers.
 */
import Router, { type RouterInstance } from '@koa/router'
import Koa, { type Context } from 'koa'
import { audit, type AnyRouter, type ShadowExtent } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { get } from '../support/models/levels.js'
import { serve } from '../support/servers/server.js'

type Named = readonly [method: 'get' | 'head' | 'put' | 'all', path: string | RegExp]

interface Row {
  readonly first: Named
  readonly second: Named
  /** How many of the second operation's requests the first one answers. */
  readonly extent: ShadowExtent | 'none'
  /** A request that the second operation answers, although the first is registered before it. */
  readonly left?: string
  /** A request that the first operation answers where the audit cannot decide. */
  readonly taken?: string
  readonly options?: ConstructorParameters<typeof Router>[0]
  /** A router that both operations are mounted in. */
  readonly build?: (first: Register, second: Register) => RouterInstance
  readonly why?: string
}
type Register = (router: RouterInstance) => RouterInstance

const rows: ReadonlyArray<Row> = [
  { first: ['get', '/users/:id'], second: ['get', '/users/me'], extent: 'all' },
  { first: ['get', '/users/me'], second: ['get', '/users/:id'], extent: 'none', left: 'GET /users/1', why: 'narrower' },
  { first: ['get', '/x'], second: ['get', '/x'], extent: 'all' },
  { first: ['get', '/x'], second: ['get', '/y'], extent: 'none', left: 'GET /y' },
  { first: ['get', '/x'], second: ['get', '/x/y'], extent: 'none', left: 'GET /x/y' },
  { first: ['get', '/:a'], second: ['get', '/:b'], extent: 'all' },
  { first: ['get', '/:a'], second: ['get', '/:a/:b'], extent: 'none', left: 'GET /x/x' },
  { first: ['get', '/:a/x'], second: ['get', '/y/:b'], extent: 'part', left: 'GET /y/z' },
  { first: ['get', '/X'], second: ['get', '/x'], extent: 'all', why: 'case counts for nothing' },
  { first: ['get', '/x/'], second: ['get', '/x'], extent: 'part', left: 'GET /x', why: 'the slash of a path counts' },
  { first: ['get', '/x'], second: ['get', '/x/'], extent: 'part', left: 'GET /x//', why: 'and one more is optional' },
  { first: ['get', '/x'], second: ['get', '/x/'], extent: 'none', left: 'GET /x/', options: { strict: true } },
  { first: ['get', '/X'], second: ['get', '/x'], extent: 'none', left: 'GET /x', options: { sensitive: true } },
  {
    first: ['get', '/in/X'],
    second: ['get', '/in/x'],
    extent: 'none',
    left: 'GET /in/x',
    why: 'one spelling in front of all',
    build: (first, second) => second(new Router().use(first(new Router({ sensitive: true })).routes())),
  },
  {
    first: ['get', '/in/X'],
    second: ['get', '/in/x'],
    extent: 'all',
    why: 'all spellings in front of one',
    build: (first, second) => first(new Router()).use(second(new Router({ sensitive: true })).routes()),
  },
  { first: ['get', '/*rest'], second: ['get', '/a/b/c'], extent: 'all' },
  { first: ['get', '/a/b/c'], second: ['get', '/*rest'], extent: 'none', left: 'GET /a/b', why: 'narrower' },
  { first: ['get', '/files/*path'], second: ['get', '/files/:id/raw'], extent: 'all' },
  { first: ['get', '/files/*path'], second: ['get', '/files'], extent: 'none', left: 'GET /files' },
  { first: ['get', '/:a/*rest'], second: ['get', '/files/*path'], extent: 'all' },
  { first: ['get', '/*a/end'], second: ['get', '/start/*b'], extent: 'part', left: 'GET /start/x' },
  { first: ['get', '/x{/:id}'], second: ['get', '/x/1'], extent: 'all' },
  { first: ['get', '/x/1'], second: ['get', '/x{/:id}'], extent: 'none', left: 'GET /x' },
  { first: ['get', '/:name.json'], second: ['get', '/:file'], extent: 'none', left: 'GET /a', why: 'narrower' },
  { first: ['get', '/:file'], second: ['get', '/:name.json'], extent: 'all' },
  { first: ['get', '/a-:x'], second: ['get', '/:y-b'], extent: 'part', left: 'GET /b-b' },
  { first: ['get', '/:from-:to'], second: ['get', '/:id'], extent: 'none', left: 'GET /1', why: 'narrower' },
  { first: ['get', '/:id'], second: ['get', '/:from-:to'], extent: 'all' },
  { first: ['get', '/1-:to'], second: ['get', '/:from-:to'], extent: 'part', left: 'GET /2-3' },
  { first: ['get', '/:from-:to'], second: ['get', '/x-:to'], extent: 'part', left: 'GET /x-y-' },
  { first: ['get', '/x'], second: ['head', '/x'], extent: 'all', why: 'GET answers HEAD' },
  { first: ['head', '/x'], second: ['get', '/x'], extent: 'none', left: 'GET /x', why: 'narrower' },
  { first: ['head', '/:a'], second: ['get', '/x'], extent: 'part', left: 'GET /x' },
  { first: ['put', '/:a'], second: ['get', '/x'], extent: 'none', left: 'GET /x' },
  { first: ['all', '/:a'], second: ['get', '/x'], extent: 'all' },
  { first: ['get', '/x'], second: ['all', '/x'], extent: 'none', left: 'PUT /x', why: 'narrower' },
  { first: ['get', '/:a'], second: ['all', '/x'], extent: 'part', left: 'PUT /x' },
  { first: ['all', '/x'], second: ['get', '/:a'], extent: 'part', left: 'GET /y' },
  { first: ['get', /^\/x/i], second: ['get', '/x/y'], extent: 'all', why: 'one path can be tried' },
  { first: ['get', /^\/x/], second: ['get', '/x/y'], extent: 'part', left: 'GET /X/Y' },
  { first: ['get', /^\/x$/], second: ['get', '/x'], extent: 'part', left: 'GET /x/' },
  { first: ['get', /^\/y/], second: ['get', '/x'], extent: 'none', left: 'GET /x' },
  { first: ['get', '/x'], second: ['get', /^\/x$/], extent: 'part', taken: 'GET /x' },
  { first: ['get', '/x'], second: ['get', /^\/./], extent: 'none', left: 'GET /y', why: 'narrower' },
  {
    first: ['get', '/a'],
    second: ['get', /^\/a(\/x)?$/i],
    extent: 'none',
    left: 'GET /a/x',
    options: { strict: true },
  },
  { first: ['get', /^\/x\/\w+$/], second: ['get', '/*rest'], extent: 'none', left: 'GET /y', why: 'narrower' },
  { first: ['get', '/*rest'], second: ['get', /^\/x\/\w+$/], extent: 'all', why: 'all of them begin below it' },
  { first: ['get', /^\/\d+$/], second: ['get', '/:id'], extent: 'part', left: 'GET /x' },
  { first: ['get', /^\/\d{4}$/], second: ['get', '/:id'], extent: 'unknown', left: 'GET /x', taken: 'GET /1234' },
  { first: ['get', '/:id'], second: ['get', /^\/[0-9a-f]{8}$/], extent: 'unknown', taken: 'GET /0123abcd' },
  { first: ['get', /^\/x/], second: ['get', /^\/x/], extent: 'all', taken: 'GET /x' },
  { first: ['get', /^\/x/], second: ['get', /^\/y/], extent: 'none', left: 'GET /y' },
  { first: ['get', /^\/x/gi], second: ['get', '/x'], extent: 'all', why: 'asked anew each time' },
  {
    first: ['get', '/:a'],
    second: ['get', '/p/x'],
    extent: 'all',
    options: { prefix: '/p' },
    build: (first, second) => second(new Router().use(first(new Router({ prefix: '/p' })).routes())),
  },
  {
    first: ['get', '/x'],
    second: ['get', '/'],
    extent: 'all',
    build: (first, second) =>
      new Router().use('/:team', first(new Router()).routes()).use('/a', second(new Router({ prefix: '/x' })).routes()),
    why: '/:team/x and /a/x',
  },
]

const nameOf = ({ first, second, why = '', options, extent }: Row) =>
  `${first.join(' ')}, ${second.join(' ')}${options === undefined ? '' : ` ${JSON.stringify(options)}`}: ${extent} (${why})`

let current: RouterInstance | undefined
const served = serve(() => new Koa().use((ctx, next) => current!.routes()(ctx as never, next)))

/** Which of the two answers. Both say so in a header, because HEAD has no body. */
const answered = async (router: RouterInstance, request: string): Promise<string | undefined> => {
  current = router
  const [method = '', path = ''] = request.split(' ')
  const { status, headers } = await get(served.port, path, undefined, { method })
  const by = headers['x-by']
  expect(by === undefined ? 404 : 200).toBe(status)
  return typeof by === 'string' ? by : undefined
}

const registering =
  (id: string, [method, path]: Named): Register =>
  (router) =>
    router[method](path, (ctx: Context) => {
      ctx.set('X-By', id)
      ctx.body = ''
      ctx.status = 200
    })

const together = ({ first, second, options, build = (one, other) => other(one(new Router(options))) }: Row) =>
  build(registering('first', first), registering('second', second))

// The second operation, in a router without the first
const alone = ({ second, options, build = (one, other) => other(one(new Router(options))) }: Row) =>
  build((router) => router, registering('second', second))

const shadowIn = (router: AnyRouter) => {
  const [first, second] = audit(router).operations
  expect(first?.shadowedBy).toEqual([])
  return second?.shadowedBy[0]
}

describe('D-R8 the audit names the operation that answers', () => {
  it.each(rows.map((row) => ({ row, name: nameOf(row) })))('$name', async ({ row }) => {
    const router = together(row)
    const shadow = shadowIn(router)
    expect(shadow?.extent ?? 'none').toBe(row.extent)
    if (row.extent === 'none') expect(shadow).toBeUndefined()
    if (row.extent === 'all') expect(row.left).toBeUndefined()
    const example = shadow?.example ?? row.taken
    expect(example !== undefined).toBe(row.extent !== 'none' && !(row.extent === 'unknown' && row.taken === undefined))
    if (example !== undefined) {
      expect(await answered(router, example)).toBe('first')
      expect(await answered(alone(row), example)).toBe('second')
    }
    if (row.left !== undefined) expect(await answered(router, row.left)).toBe('second')
  })
})

describe('D-R8 with the option exclusive', () => {
  const named = (...paths: string[]): Named[] => paths.map((path) => ['get', path])
  const [users, reversed] = [named('/users/:id', '/users/me'), named('/users/me', '/users/:id')]
  const none = [undefined, undefined] as const
  const build = (exclusive: true | 'specificity', [first, second]: Named[]) =>
    registering('second', second!)(registering('first', first!)(new Router({ exclusive })))

  it.each([
    { exclusive: true, order: users, by: ['second', 'first'], shadowed: none },
    { exclusive: true, order: reversed, by: ['second', 'second'], shadowed: ['GET /users/:id', undefined] },
    { exclusive: 'specificity', order: users, by: ['second', 'first'], shadowed: none },
    { exclusive: 'specificity', order: reversed, by: ['first', 'second'], shadowed: none },
    {
      exclusive: 'specificity',
      order: named('/users/:id', '/:any/me'),
      by: ['first', 'first'],
      shadowed: [undefined, 'GET /users/:id'],
    },
    { exclusive: 'specificity', order: named('/:a/:b', '/x/:b'), by: none, shadowed: none },
  ] as const)('$exclusive, $order.0.1 first', async ({ exclusive, order, by, shadowed }) => {
    const router = build(exclusive, [...order])
    expect(audit(router).operations.map(({ shadowedBy }) => shadowedBy[0]?.operation)).toEqual(shadowed)
    if (by[0] === undefined) return
    expect(await answered(router, 'GET /users/me')).toBe(by[0])
    expect(await answered(router, 'GET /users/1')).toBe(by[1])
  })
})
