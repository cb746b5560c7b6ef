/**
 * whatever a hook of any kind returns, throws or forgets, no request passes by mistake, and nothing hangs.
 * Result.unit has the same table without a server.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { either as E, option as O, task as T, taskEither as TE, type readerTaskEither as RTE } from 'fp-ts'
import createError from 'http-errors'
import type { Request } from 'koa'
import { apiKeyHeader, AuthError, authSettings, Challenge, httpBearer, onError, withAuth } from 'koa-with-auth'
import { describedAs } from 'koa-with-auth/fp'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { bearer, challenge, expectPassed, operation } from '../support/models/behavior.js'
import * as Behavior from '../support/models/behavior.js'
import { atOnce, later, type AnswerRow } from '../support/models/hookAnswers.js'
import { unhandledRejections } from '../support/runs/unhandled.js'
import { valuesOf, type RawAnswer } from '../support/servers/rawSocket.js'
import { serve } from '../support/servers/server.js'
import { expectAccepted, expectDenied } from '../support/sites/guardedApp.js'
import { hookedKinds, kinds } from '../support/sites/hookedKinds.js'

const { app, send } = hookedKinds()
const served = serve(() => app)
const unhandled = unhandledRejections()
afterAll(async () => {
  await sleep(20)
  expect(unhandled()).toEqual([])
})

const LEAK = 'detail that must stay inside'
const anna = { username: 'anna' }
const thenable = (then: (resolve: (value: unknown) => void, reject: (reason: unknown) => void) => void) => ({ then })
// Node's types want Errors to be thrown; hooks throw anything
const raise = (thrown: unknown): never => {
  throw thrown
}

const expectCrash = (answer: RawAnswer & { ran: number; asked: number }, status = 500): void => {
  expect({ status: answer.status, ran: answer.ran, asked: answer.asked }).toEqual({ status, ran: 0, asked: 1 })
  expect(JSON.stringify([answer.headers, answer.body])).not.toContain(LEAK)
  expect([...valuesOf(answer, 'Location'), ...valuesOf(answer, 'Set-Cookie')]).toEqual([])
}

const statuses = { notFound: 404, insufficient: 403, forged: 403, throttled: 429, unavailable: 503, raised: 500 }
const expectRow = async (kind: (typeof kinds)[number], answer: () => unknown, { expected }: AnswerRow) => {
  const got = await send(served, kind, answer)
  if (E.isRight(expected)) return expectAccepted(got)
  const { _tag: tag } = expected.left
  if (tag in statuses) expectCrash(got, statuses[tag as keyof typeof statuses])
  else expectDenied(got)
}
// A session's user must have a name, what an RTE yields is in a Right already, and JSON has no bigint
const isFor = (kind: string, { expected }: AnswerRow): boolean =>
  !(E.isRight(expected) && typeof expected.right === 'bigint') &&
  (kind !== 'session' || E.isLeft(expected)) &&
  (kind !== 'bare RTE' || E.isRight(expected) || ['invalid', 'raised'].includes(expected.left._tag))

const promiseWith = (then: (resolve: (u: unknown) => unknown, reject: (u: unknown) => unknown) => unknown): object =>
  Object.assign(Promise.resolve(false), { then })
// Promises of Node whose `then` was replaced, as by instrumentation
const replaced: ReadonlyArray<readonly [what: string, promise: () => object]> = [
  ['returns an object', () => promiseWith(() => ({}))],
  ['returns a string', () => promiseWith(() => 'yes')],
  ['returns a Right', () => promiseWith(() => E.right(anna))],
  ['returns nothing', () => promiseWith((resolve) => void resolve(false))],
  ['resolves to false', () => promiseWith((resolve) => resolve(false))],
  ['rejects', () => promiseWith((_resolve, reject) => reject(new Error('no')))],
  ['throws', () => promiseWith(() => JSON.parse('{'))],
]

describe.each(kinds)('5.7.2 A-30 R05 %s', (...kind) => {
  it('5.1.1 a principal passes, and the operation runs after it (spec 1.2)', async () => {
    for (const way of [() => anna, async () => anna, () => TE.right(anna), () => thenable((go) => go(anna))])
      expectAccepted(await send(served, kind, way))
  })

  it.each(atOnce.filter((row) => isFor(kind[0], row)))('$description', (row) => expectRow(kind, () => row.input, row))
  it.each(later.filter((row) => isFor(kind[0], row)))('$description', (row) => expectRow(kind, row.input, row))

  const dressed = (fields: object) => () => Object.assign(new Error(LEAK), fields)
  const headers = { location: 'https://evil.example' }
  it.each<readonly [what: string, make: () => unknown]>([
    ['an Error', () => new Error(LEAK)],
    ['a string', () => LEAK],
    ['null', () => null],
    ['undefined', () => undefined],
    ['a symbol', () => Symbol(LEAK)],
    ['0', () => 0],
    ['{ status: 200 }', () => ({ status: 200, message: LEAK, expose: true })],
    ['{ status: 302, headers }', () => ({ status: 302, headers, message: LEAK })],
    ['an Error of status 200 that is exposed', dressed({ status: 200, expose: true })],
    ['an Error of status 204', dressed({ status: 204 })],
    ['an Error of status 302 with a location', dressed({ status: 302, headers })],
    ['an Error of statusCode 200', dressed({ statusCode: 200, expose: true })],
    ['an exposed Error of status 500', dressed({ status: 500, expose: true })],
    ['a frozen Error of status 200', () => Object.freeze(dressed({ status: 200, expose: true })())],
    ['an Error of Axios for a 404', dressed({ status: 404, isAxiosError: true, code: 'ERR_BAD_REQUEST' })],
    ['an Error of a missing file, of which Koa makes a 404', dressed({ code: 'ENOENT', errno: -2 })],
    ['an Error whose status is a string', dressed({ status: '401', statusCode: '200' })],
    ['an Error whose headers Node refuses', dressed({ headers: { 'no token': 'x', x: 'a\r\nb' } })],
    ['an HTTP error 500', () => createError(500, LEAK)],
  ])('%s is a 500: thrown, rejected with, or thrown by a thenable or a Task', async (_what, make) => {
    const ways: ReadonlyArray<() => unknown> = [
      () => raise(make()),
      () => Promise.reject(make()),
      () => Promise.resolve().then(() => raise(make())),
      () => thenable((_resolve, reject) => reject(make())),
      () => thenable(() => raise(make())),
      () => () => Promise.reject(make()),
      () => () => raise(make()),
      () => Promise.resolve(() => raise(make())),
    ]
    for (const way of ways) expectCrash(await send(served, kind, way))
  })

  it.each([401, 403, 404, 418, 429, 503])('an HTTP error %i keeps its status, and nothing else', async (status) => {
    const make = () => createError(status, LEAK, { expose: true, headers: { 'Set-Cookie': 'a=1', Location: '/' } })
    for (const way of [() => raise(make()), () => Promise.reject(make())]) {
      const answer = await send(served, kind, way)
      // Only 4xx errors become responses; others are crashes
      expectCrash(answer, status === 503 ? 500 : status)
      if (status === 503) continue
      expect(JSON.parse(answer.body)).toMatchObject({ status })
      expect(valuesOf(answer, 'Cache-Control')).toEqual(['no-store'])
      expect(valuesOf(answer, 'WWW-Authenticate').length > 0).toBe(status === 401)
    }
  })

  it('a promise that never settles, or too late, is a 503 with Retry-After, and the next request is served', async () => {
    const never = () => new Promise(() => {})
    for (const way of [
      never,
      () => thenable(() => {}),
      () => never,
      async () => O.some(never()),
      () => sleep(120, anna),
    ]) {
      const answer = await send(served, kind, way)
      expectCrash(answer, 503)
      expect([valuesOf(answer, 'Retry-After'), valuesOf(answer, 'Cache-Control')]).toEqual([['5'], ['no-store']])
    }
    await sleep(120)
    expectAccepted(await send(served, kind, () => anna))
  })

  it.each(replaced)('no request passes because of a promise whose `then` %s', async (_what, promise) => {
    for (const way of [promise, () => O.some(promise()), () => promise]) {
      const { status, ran } = await send(served, kind, way)
      expect([Number(status) >= 400, ran]).toEqual([true, 0])
    }
  })

  it.each<readonly [what: string, answer: () => unknown]>([
    ['a Task that was not run', () => T.of(anna)],
    ['a Task of an Option', () => T.of(O.some(anna))],
    ['a reader of a TaskEither that was not run', () => () => () => Promise.resolve(E.right(anna))],
    ['a class', () => class {}],
    ['an asynchronous generator', () => (async function* () {})()],
  ])('A-31 %s is a 500, and no request passes', async (_what, answer) => expectCrash(await send(served, kind, answer)))
})

describe('a failure of a hook that is not well-formed', () => {
  const own = Challenge.make('Odd')
  it.each<readonly [what: string, failure: object]>([
    ['branches that are not a list', { _tag: 'invalid', challenge: own, branches: 1 }],
    ['branches that are null', { _tag: 'invalid', challenge: own, branches: null }],
    ['branches that are not failures', { _tag: 'invalid', challenge: own, branches: [null] }],
    ['a challenge that is null', { _tag: 'invalid', challenge: null }],
    ['a challenge that is a string', { _tag: 'invalid', challenge: 'Odd realm="a"' }],
    ['a line break', { _tag: 'invalid', challenge: { scheme: 'A\r\nSet-Cookie: a=1', parameters: {} } }],
  ])('is an error, alone and in a list: %s', async (_what, failure) => {
    const key = apiKeyHeader({ authenticate: () => false })
    for (const say of [() => E.left(failure), async () => E.left(failure)] as ReadonlyArray<() => unknown>) {
      const hooked = httpBearer<unknown>({ authenticate: say })
      for (const auth of [[hooked] as const, [hooked, key] as const]) {
        const { status, seen, headers } = await (await operation(withAuth(auth))).ask('/x', bearer('t'))
        expect([[401, 500].includes(status), seen, headers['set-cookie']]).toEqual([true, [], undefined])
      }
    }
  })
})

describe('5.1.3 any function is accepted', () => {
  const desk = {
    known: 'Acme',
    find(request: Request): unknown {
      const client = request.get('X-Client')
      return client === this.known && { client }
    },
  }
  it.each<readonly [what: string, callable: (request: Request) => unknown]>([
    ['an arrow', (request) => desk.find(request)],
    ['an async function', async (request) => desk.find(request)],
    ['a bound method', desk.find.bind(desk)],
    ['a proxy of a function', new Proxy((request: Request) => desk.find(request), {})],
  ])('5.1.3 %s that takes only the request', async (_what, callable) => {
    const { ask } = await operation(withAuth(callable))
    expectPassed(await ask('/x', { headers: { 'X-Client': 'Acme' } }), { client: 'Acme' })
    Behavior.expectDenied(await ask('/x', { headers: { 'X-Client': 'Ecma' } }), 401, [challenge.custom])
  })

  it('a raw `ReaderTaskEither` passed as `auth`: alone, in a list, and with describedAs', async () => {
    const known: RTE.ReaderTaskEither<Request, AuthError, string> = (request) =>
      request.get('X-Client') === 'Acme' ? TE.right('Acme') : TE.left(AuthError.invalid)
    const key = apiKeyHeader({ authenticate: (_request, sent) => sent })
    const sent = { headers: { 'X-Client': 'Acme' } }
    for (const [guard, challenges] of [
      [withAuth(known), [challenge.custom]],
      [withAuth([known, key]), [challenge.custom, challenge.key('header')]],
      [withAuth(describedAs(key)(known)), [challenge.key('header')]],
    ] as const) {
      const { ask } = await operation(guard)
      expectPassed(await ask('/x', sent), 'Acme')
      Behavior.expectDenied(await ask(), 401, challenges)
    }
  })
})

it('5.1.5 R04 an Error that is returned gets the response of the handler of its class', async () => {
  class Expired extends Error {}
  const settings = authSettings({ onError: [onError(Expired, () => ({ status: 418, body: { short: true } }))] })
  const guard = withAuth(httpBearer({ authenticate: () => new Expired('x') }))
  const { ask } = await operation(guard, (on) => void on.use(settings))
  expect(await ask('/x', bearer('t'))).toMatchObject({ status: 418, seen: [] })
})

it('5.7.1 a slow hook within the time limit passes, a sync one has no limit, and none is asked twice', async () => {
  const slow = vi.fn(() => sleep(30, 'slow'))
  const hour = await operation(withAuth(slow), (on) => void on.use(authSettings({ timeout: 600_000 })))
  expectPassed(await hour.ask(), 'slow')
  expect(slow).toHaveBeenCalledTimes(1)
  const busy = () => {
    const end = performance.now() + 20
    while (performance.now() < end);
    return 'busy'
  }
  const moment = await operation(withAuth(busy), (on) => void on.use(authSettings({ timeout: 1 })))
  expectPassed(await moment.ask(), 'busy')
})
