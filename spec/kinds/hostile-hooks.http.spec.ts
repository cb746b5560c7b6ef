/** whatever a hook returns, throws or forgets, no request passes by mistake, and nothing hangs. */
import { either as E, option as O, task as T, taskEither as TE } from 'fp-ts'
import createError from 'http-errors'
import { AuthError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { expectAccepted, expectDenied } from '../support/sites/guardedApp.js'
import { hookedKinds, kinds } from '../support/sites/hookedKinds.js'
import { valuesOf, type RawAnswer } from '../support/servers/rawSocket.js'
import { serve } from '../support/servers/server.js'

const { app, send } = hookedKinds()
const served = serve(() => app)
const LEAK = 'detail that must stay inside'

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

describe.each(kinds)('A-30 %s', (...kind) => {
  it('A-30 a principal passes, so the hooks are called', async () => {
    expectAccepted(await send(served, kind, () => ({ username: 'anna' })))
    expectAccepted(await send(served, kind, () => thenable((resolve) => resolve({ username: 'anna' }))))
  })

  it.each([
    ['false', false],
    ['undefined', undefined],
    ['NaN', NaN],
    ["''", ''],
    ['0n', 0n],
    ['null', null],
    ['0', 0],
    ['-0', -0],
    ['[]', []],
  ])('A-30 %s is not a principal, sync or async', async (_what, value) => {
    const ways: ReadonlyArray<() => unknown> = [
      () => value,
      () => Promise.resolve(value),
      () => new Promise((resolve) => setTimeout(resolve, 1, value)),
      () => thenable((resolve) => resolve(value)),
      () => thenable((resolve) => resolve(Promise.resolve(value))),
      () => O.some(value),
      () => E.right(value),
      () => Promise.resolve(O.some(E.right(value))),
      () => TE.right(value),
      () => () => E.right(value),
    ]
    for (const way of ways) expectDenied(await send(served, kind, way))
  })

  const frozen = () => Object.freeze(new Error(LEAK))
  const thrown: ReadonlyArray<readonly [what: string, make: () => unknown]> = [
    ['an Error', () => new Error(LEAK)],
    ['a string', () => LEAK],
    ['null', () => null],
    ['undefined', () => undefined],
    ['a symbol', () => Symbol(LEAK)],
    ['false', () => false],
    ['{ status: 200 }', () => ({ status: 200, message: LEAK, expose: true })],
    ['{ status: 204 }', () => ({ status: 204, message: LEAK })],
    ['{ status: 302, headers }', () => ({ status: 302, headers: { location: 'https://evil.example' }, message: LEAK })],
    ['an Error of status 200 that is exposed', () => Object.assign(new Error(LEAK), { status: 200, expose: true })],
    ['an Error of status 204', () => Object.assign(new Error(LEAK), { status: 204 })],
    [
      'an Error of status 302 with a location',
      () => Object.assign(new Error(LEAK), { status: 302, headers: { location: 'https://evil.example' } }),
    ],
    ['an Error of statusCode 200', () => Object.assign(new Error(LEAK), { statusCode: 200, expose: true })],
    ['an exposed Error of status 500', () => Object.assign(new Error(LEAK), { status: 500, expose: true })],
    ['an exposed Error', () => Object.assign(new Error(LEAK), { expose: true })],
    ['a frozen Error', frozen],
    [
      'a frozen Error of status 200',
      () => Object.freeze(Object.assign(new Error(LEAK), { status: 200, expose: true })),
    ],
    [
      'an Error of Axios for a 404',
      () => Object.assign(new Error(LEAK), { status: 404, isAxiosError: true, code: 'ERR_BAD_REQUEST' }),
    ],
    ['an Error of a missing file', () => Object.assign(new Error(LEAK), { code: 'ENOENT', errno: -2 })],
    ['an Error whose status is a string', () => Object.assign(new Error(LEAK), { status: '200', statusCode: '200' })],
    [
      'an Error whose headers Node refuses',
      () => Object.assign(new Error(LEAK), { headers: { 'no token': 'x', x: 'a\r\nb' } }),
    ],
    ['an HTTP error 500', () => createError(500, LEAK)],
  ]
  it.each(thrown)('A-30 %s is a 500: thrown, rejected with, or thrown by a thenable', async (_what, make) => {
    const ways: ReadonlyArray<() => unknown> = [
      () => raise(make()),
      () => Promise.reject(make()),
      async () => {
        await Promise.resolve()
        raise(make())
      },
      () => thenable((_resolve, reject) => reject(make())),
      () => thenable(() => raise(make())),
      () => () => Promise.reject(make()),
      () => () => raise(make()),
      () => Promise.resolve(() => raise(make())),
    ]
    for (const way of ways) expectCrash(await send(served, kind, way))
  })

  it.each([401, 403, 404, 418, 429, 503])(
    'A-30 an HTTP error %i keeps its status, and the response shows nothing else of it',
    async (status) => {
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
    },
  )

  it('A-30 a promise that never settles is a 503 with Retry-After', async () => {
    for (const way of [() => new Promise(() => {}), () => thenable(() => {}), () => () => new Promise(() => {})]) {
      const answer = await send(served, kind, way)
      expectCrash(answer, 503)
      expect(valuesOf(answer, 'Retry-After')).toEqual(['5'])
      expect(valuesOf(answer, 'Cache-Control')).toEqual(['no-store'])
    }
  })

  it('A-30 a principal that comes too late is not admitted', async () => {
    const late = () => new Promise((resolve) => setTimeout(resolve, 120, { username: 'anna' }))
    const answer = await send(served, kind, late)
    expectCrash(answer, 503)
    await new Promise((resolve) => setTimeout(resolve, 120))
    expectAccepted(await send(served, kind, () => ({ username: 'anna' })))
  })

  it.each([
    ['O.none', () => O.none],
    ['O.some(0)', () => O.some(0)],
    ['O.some(O.none)', () => O.some(O.none)],
    ['E.left', () => E.left(LEAK)],
    ['E.left of a principal', () => E.left({ username: 'anna' })],
    ["E.right('')", () => E.right('')],
    ['E.right(E.left)', () => E.right(E.left(LEAK))],
    ['a promise of O.none', () => Promise.resolve(O.none)],
    ['a promise of E.left', () => Promise.resolve(E.left(LEAK))],
    ['TE.left', () => TE.left(LEAK)],
    ['TE.right of null', () => TE.right(null)],
    ['E.left of an AuthError', () => E.left(AuthError.expired)],
  ])('A-31 %s is not a principal', async (_what, answer) => expectDenied(await send(served, kind, answer)))

  it.each([
    ['a Task that was not run', () => T.of({ username: 'anna' })],
    ['an IO that was not run', () => () => ({ username: 'anna' })],
    ['an IO of true', () => () => true],
    ['an IO of undefined', () => () => undefined],
    ['a Task of an Option', () => T.of(O.some({ username: 'anna' }))],
    ['a reader of a TaskEither that was not run', () => () => () => Promise.resolve(E.right({ username: 'anna' }))],
    ['a class', () => class {}],
  ])('A-31 %s is a mistake: a 500, and no request passes', async (_what, answer) =>
    expectCrash(await send(served, kind, answer)),
  )

  it.each([
    [
      'a generator object',
      () =>
        (function* () {
          yield { username: 'anna' }
        })(),
    ],
    [
      'an asynchronous generator object',
      () =>
        (async function* () {
          yield { username: 'anna' }
        })(),
    ],
  ])('A-31 %s is not run, and no request passes', async (_what, answer) => {
    const { status, ran } = await send(served, kind, answer)
    expect([status === 401 || status === 500, ran]).toEqual([true, 0])
  })
})

describe('A-30 a failure that a hook returns', () => {
  const [bearer] = kinds.filter(([kind]) => kind === 'bearer')

  it.each([['pets\r\nSet-Cookie: a=1'], ['Löwe'], ['\0']])(
    'A-30 with a scope that is not valid in a header is a crash: %j',
    async (scope) => {
      const failure = E.left(AuthError.insufficient([scope]))
      for (const way of [() => failure, () => Promise.resolve(failure), () => () => Promise.resolve(failure)]) {
        expectCrash(await send(served, bearer!, way))
      }
    },
  )
})
