/** A guard with authenticators that break their contract, and what it leaves on the request. */
import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { types } from 'node:util'
import Router from '@koa/router'
import { either as E } from 'fp-ts'
import createError from 'http-errors'
import Koa, { type Context, type Next } from 'koa'
import {
  apiApp,
  apiKeyHeader,
  apiKeyQuery,
  AuthError,
  authorize,
  authSettings,
  guardApp,
  httpBearer,
  onError,
  operation as described,
  owned,
  rateLimit,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { expect, onTestFinished, test, vi } from 'vitest'
import { decideOf, make } from '../../src/core/Authenticator.js'
import { leaves } from '../../src/core/Description.js'
import { channels } from '../../src/core/events.js'
import { exchangeOf, shownObjects } from '../../src/core/Exchange.js'
import { expectGone, goneMark } from '../../src/koa/gone.js'
import { bearer, expectCrashed, operation, running } from '../support/models/behavior.js'

const anna = { user: 'anna' }
const raise = (error: unknown): never => {
  throw error
}
const gone = (onGone: unknown) => Object.assign(new Error('gone'), { [goneMark]: { onGone } })
const token = httpBearer({ authenticate: () => anna })

// Safe: a program without types could make this authenticator
const evaluating = (evaluate: () => unknown): Authenticator<unknown> =>
  Object.assign(() => () => Promise.resolve(E.right(anna)), { description: token.description, evaluate }) as never

test.each<[string, unknown]>([
  ['a value that is not an Either', { _tag: 'Both' }],
  ['nothing', {}],
  ['a promise of undefined', Promise.resolve({})],
])('an authenticator that returns %s admits no request', async (_, result) => {
  const { ask, errors } = await operation(withAuth(evaluating(() => result)))
  expectCrashed(await ask('/x', bearer('t')))
  expect(errors).toMatchObject([new TypeError('an authenticator must return an Either')])
})

test('an evaluation that rejects, which none should do, is handled like an exception', async () => {
  const { ask, errors } = await operation(withAuth(evaluating(() => Promise.reject(new Error('late')))))
  expectCrashed(await ask('/x', bearer('t')))
  expect(errors).toMatchObject([new Error('late')])
})

test('a failure without a challenge gets that of the operation', async () => {
  const { ask } = await operation(withAuth(evaluating(() => E.left(AuthError.invalid))))
  expect(await ask('/x', bearer('t'))).toMatchObject({ status: 401, challenges: ['Bearer realm="api"'], seen: [] })
})

test('an HTTP error of a hook gets the response of its exception handler, if there is one', async () => {
  const limited = httpBearer({ authenticate: () => raise(new createError.TooManyRequests()) })
  const handler = onError(createError.HttpError, () => ({ status: 420, body: { detail: 'calm down' } }))
  const api = apiApp({ onError: [handler], prefix: '/api', docs: false })
  api.get('/x', withAuth(limited), () => expect.unreachable())
  const { ask } = await running((app) => app.use(api.routes()))
  expect(await ask('/api/x', bearer('t'))).toMatchObject({ status: 420, body: { detail: 'calm down' } })
  const { ask: bare } = await operation(withAuth(limited))
  expect(await bare('/x', bearer('t'))).toMatchObject({ status: 429, seen: [] })
})

test('upstream middleware reads the principal afterwards, as for a log', async () => {
  const seen: unknown[] = []
  const log: Koa.Middleware = ({ request }, next) => next().then(() => seen.push(Reflect.get(request, 'auth')))
  const { ask } = await operation(withAuth(token), (app) => app.use(log))
  await ask('/x', bearer('t'))
  await ask()
  expect(seen).toStrictEqual([anna, undefined])
})

test('the limit of header lines is that of the server, 0 is none, and a socket without a server has that of Node', async () => {
  const app = new Koa()
  app.use(authSettings({}))
  app.use(new Router().get('/x', withAuth(token), (ctx) => void (ctx.body = ctx.request.auth)).routes())
  const answered = async (lines: ReadonlyArray<readonly [string, string]>, server?: object) => {
    // Safe: Node only uses the methods of a stream
    const socket = Object.assign(new PassThrough(), { server }) as unknown as Socket
    const request = new IncomingMessage(socket)
    const headers = Object.fromEntries(lines.map(([name, value]) => [name.toLowerCase(), value]))
    Object.assign(request, { method: 'GET', url: '/x', rawHeaders: lines.flat(), headers })
    const response = new ServerResponse(request)
    response.assignSocket(socket)
    await app.callback()(request, response)
    return response.statusCode
  }
  const many = (length: number) => Array.from({ length }, () => ['A', 'a'] as const)
  expect(await answered([])).toBe(401)
  expect(await answered([['Authorization', 'Bearer t']])).toBe(200)
  for (const server of [undefined, {}, { maxHeadersCount: 1000 }]) {
    expect([await answered(many(999), server), await answered(many(1000), server)]).toStrictEqual([401, 431])
  }
  for (const lines of [many(1000), []]) expect(await answered(lines, { maxHeadersCount: 0 })).toBe(401)
})

test('after the first request, no function of a layer inherits a proxy, which is slow at each further one', async () => {
  const router = new Router()
  router.get('/x', described({ summary: 'x' }), withAuth(token), (ctx) => void (ctx.body = 'x'))
  const proxied = () =>
    router.stack.flatMap(({ stack }) => stack.filter((f) => types.isProxy(Object.getPrototypeOf(f)))).length
  const { ask } = await running((app) => app.use(router.routes()))
  expect(proxied()).toBe(2)
  expect(await ask('/x', bearer('t'))).toMatchObject({ status: 200 })
  expect(proxied()).toBe(0)
})

test('a guard charges whom it lets in, and writes the fields of the charge', async () => {
  const left = [1, 0]
  const consume = async () => {
    const remainingPoints = left.shift()
    if (remainingPoints === undefined) throw Object.assign(new Error('too many'), { msBeforeNext: 1500 })
    return { remainingPoints, msBeforeNext: 1500 }
  }
  const { ask } = await operation(withAuth(token, rateLimit({ limiter: { consume }, by: () => 'anna' })))
  expect((await ask()).status).toBe(401)
  for (const [status, left] of [
    [200, 1],
    [200, 0],
    [429, 0],
  ])
    expect(await ask('/x', bearer('t'))).toMatchObject({ status, headers: { ratelimit: `"default";r=${left};t=2` } })
})

test('who waits for the outcome hears it before middleware above goes on: a 2xx without an exception is done', async () => {
  const heard: unknown[] = []
  const waiting = httpBearer({
    authenticate: ({ ctx }) => {
      const tell = async (isDone: boolean) => {
        await new Promise(setImmediate)
        heard.push(isDone)
      }
      exchangeOf(ctx).outcomes = [tell]
      return anna
    },
  })
  const { ask } = await running((app) => {
    app.use(async ({ path }, next) => {
      await next().catch(() => {})
      heard.push(path)
    })
    const router = new Router()
    // the layer that it goes on to hears nothing again
    router.get('/:any', withAuth(waiting), (_ctx, next) => next())
    router.get('/:status', withAuth(token), (ctx) => {
      const { status = '' } = ctx.params
      if (status === 'throws') throw new Error('no')
      ctx.status = Number(status)
    })
    app.use(router.routes())
  })
  for (const path of ['/200', '/302', '/404', '/throws']) await ask(path, bearer('t'))
  expect(heard).toStrictEqual([true, '/200', false, '/302', false, '/404', false, '/throws'])
})

// What sessions read: whether an operation runs, and whether something threw, also if middleware above answers it
const noting = (notes: unknown[]) => async (ctx: Context, next: Next) => {
  const exchange = exchangeOf(ctx)
  if (ctx.path !== '/then') exchange.source = {}
  const thrown: unknown = await next().catch((error: unknown) => error)
  notes.push([exchange.operations, exchange.hasThrown, thrown instanceof Error])
}
const throwNull = () => raise(null)

test('an operation is noted while it runs, and what it throws is noted, as a value that Koa can answer', async () => {
  const notes: unknown[] = []
  const { ask } = await running((app) => {
    const router = new Router()
    router.get('/signed', withAuth(token), (ctx) => {
      notes.push(exchangeOf(ctx).operations)
      if (ctx.querystring !== '') throwNull()
      ctx.body = 'x'
    })
    router.get('/then', withAuth(token, { then: [throwNull] }), (ctx) => void (ctx.body = 'x'))
    // a function behind the guard answers it, and matters only while a user signs in or out
    const answering = (_ctx: Context, next: Next) => next().catch(() => {})
    router.get('/answered', withAuth(token), answering, (ctx) => {
      exchangeOf(ctx).isSigning = ctx.querystring !== ''
      throwNull()
    })
    app.use(noting(notes)).use(router.routes())
  })
  for (const path of ['/signed', '/signed?throws', '/then']) await ask(path, bearer('t'))
  expect(notes.splice(0)).toStrictEqual([1, [0, undefined, false], 1, [0, true, true], [0, true, true]])
  for (const path of ['/answered', '/answered?signing']) await ask(path, bearer('t'))
  expect(notes).toStrictEqual([
    [0, undefined, false],
    [0, true, false],
  ])
})

test('what a function behind the guard of the application throws is noted', async () => {
  const notes: unknown[] = []
  const above = noting(notes)
  const { ask } = await running((app) => {
    guardApp(token, { middleware: [above] })(app.use(above)).use(() => raise(new Error('no')))
  })
  await ask('/x', bearer('t'))
  expect(notes).toStrictEqual([[0, true, true]])
})

test('where guards are within each other, all their ends and the inner objects count, and as long as each runs', async () => {
  const key = (paramName: string) =>
    apiKeyHeader({ paramName, authenticate: () => ({ paramName, expiresAt: new Date('2100-01-01') }) })
  const seen: unknown[] = []
  const see = (ctx: Context) => {
    const { accepted, ending } = exchangeOf(ctx)
    seen.push([accepted.length, ending?.length, { ...shownObjects(ctx.request) }])
  }
  const around = async (ctx: Context, next: Next) => {
    see(ctx)
    await next()
    see(ctx)
  }
  const { ask } = await running((app) => {
    const router = new Router()
    router.get('/:first', withAuth(key('X-B')), around)
    const note = owned('note', { param: 'id', find: () => 'milk' })
    router.get('/:id', withAuth(key('X-C'), note), (ctx) => ((ctx.body = 'x'), see(ctx)))
    guardApp(key('X-A'))(app).use(around).use(router.routes())
  })
  expect(await ask('/x', { headers: { 'X-A': 'a', 'X-B': 'b', 'X-C': 'c' } })).toMatchObject({ status: 200 })
  const ofApplication = [1, undefined, {}]
  const ofFirst = [1, 2, {}]
  expect(seen).toStrictEqual([ofApplication, ofFirst, [1, 3, { note: 'milk' }], ofFirst, ofApplication])
})

test('a refused request shows no objects to middleware above', async () => {
  const seen: unknown[] = []
  const note = owned('note', { param: 'id', find: () => 'milk' })
  const { ask } = await running((app, answering) => {
    app.use(async ({ request }, next) => {
      await next()
      seen.push(shownObjects(request))
    })
    const never = authorize(() => false)
    app.use(new Router().get('/:id', withAuth(token, note, never), answering).routes())
  })
  expect((await ask('/x', bearer('t'))).status).toBe(403)
  expect(seen).toStrictEqual([undefined])
})

test('an optional parameter that the path does not have is not that of another route', async () => {
  const asked: string[] = []
  const note = owned('note', { param: 'id', find: (id) => (asked.push(id), id) })
  const { ask } = await running((app, answering) => {
    const router = new Router().get('/:id', (_ctx, next) => next()).get('/x{/:id}', withAuth(token, note), answering)
    app.use(router.routes())
  })
  expect((await ask('/x', bearer('t'))).status).toBe(404)
  expect((await ask('/x/n1', bearer('t'))).status).toBe(200)
  expect(asked).toStrictEqual(['n1'])
})

test('a challenge is shown to scripts of other origins if one alternative says so', async () => {
  const [leaf] = leaves(token.description)
  const saying = (isExposed: boolean) => make({ ...leaf!, exposesChallenges: () => isExposed }, decideOf(token))
  const exposed = async (...all: ReadonlyArray<boolean>) => {
    // Safe: there are two
    const { ask } = await operation(withAuth(all.map(saying) as [Authenticator<unknown>]))
    const answers = [await ask(), await ask('/x', { headers: { Origin: 'https://a.example' } })]
    return answers.map(({ headers }) => headers['access-control-expose-headers'])
  }
  expect(await exposed(true, false)).toStrictEqual([undefined, 'WWW-Authenticate'])
  expect(await exposed(false, false)).toStrictEqual([undefined, undefined])
})

test('the address of a page whose key is in its query is not sent to other sites', async () => {
  const { ask } = await operation(withAuth(apiKeyQuery({ authenticate: () => anna })))
  for (const path of ['/x', '/x?key=k']) expect((await ask(path)).headers['referrer-policy']).toBe('same-origin')
})

test.each<[string, ((ctx: Context) => unknown) | undefined, number]>([
  ['is a 401 that says so', undefined, 401],
  ['is answered by the hook of the application', (ctx) => (ctx.status = 418), 418],
  ['is a 401 if that hook meets it again', () => raise(gone(undefined)), 401],
  ['is a 500 if that hook fails', () => raise(new Error('no')), 500],
])('a grant that ends while the operation runs %s', async (_what, onGone, status) => {
  expectGone()
  onTestFinished(() => void Reflect.deleteProperty(channels.upstream, goneMark))
  const failing = new Router().get('/x', withAuth(token), () => raise(gone(onGone)))
  const { ask } = await running((app) => app.use(failing.routes()))
  const answer = await ask('/x', bearer('t'))
  expect(answer.status).toBe(status)
  if (status === 401) expect(answer).toMatchObject({ body: { why: 'upstream' }, challenges: ['Bearer realm="api"'] })
})

test('the hook of the application answers ended grants once in a request', async () => {
  expectGone()
  onTestFinished(() => void Reflect.deleteProperty(channels.upstream, goneMark))
  const onGone = vi.fn((ctx: Context) => void (ctx.status = 418))
  const { ask } = await running((app) => {
    const router = new Router()
    router.get('/:any', withAuth(token), (_ctx, next) => next().then(() => raise(gone(onGone))))
    router.get('/x', withAuth(token), () => raise(gone(onGone)))
    app.use(router.routes())
  })
  expect(await ask('/x', bearer('t'))).toMatchObject({ status: 401, body: { why: 'upstream' } })
  expect(onGone).toHaveBeenCalledOnce()
})
