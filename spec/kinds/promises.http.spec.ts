/**
 * Promises and principals that are not what they seem: no request passes because of them, wherever they are returned,
 * and nothing is left that could end the process.
 */
import { either as E, option as O, readerTaskEither as RTE, taskEither as TE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  anyOf,
  apiKeyHeader,
  AuthError,
  authorize,
  authSettings,
  httpBearer,
  optional,
  type Authenticator,
} from 'koa-with-auth'
import { describedAs, firstPresent, lenient, flatMap, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { describe, expect, test } from 'vitest'
import { bearer } from '../support/models/behavior.js'
import { behind } from '../support/models/combining.js'
import { unhandledRejections } from '../support/runs/unhandled.js'

const unhandled = unhandledRejections()

const settled = async (): Promise<ReadonlyArray<unknown>> => {
  await new Promise((resolve) => setTimeout(resolve, 5))
  return unhandled()
}

const token = bearer('t')
const hooked = (hook: () => unknown) => httpBearer<unknown>({ authenticate: hook })
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: () => false })

// A promise of Node whose `then` was replaced, as by instrumentation
const promiseWith = (then: (resolve: (u: unknown) => unknown, reject: (u: unknown) => unknown) => unknown): object =>
  Object.assign(Promise.resolve(false), { then })

const promises: ReadonlyArray<readonly [what: string, promise: () => object]> = [
  ['whose then returns an object', () => promiseWith(() => ({}))],
  ['whose then returns a string', () => promiseWith(() => 'yes')],
  ['whose then returns a Right', () => promiseWith(() => E.right({ user: 'anybody' }))],
  ['whose then returns nothing', () => promiseWith((resolve) => void resolve(false))],
  ['whose then resolves to false', () => promiseWith((resolve) => resolve(false))],
  ['whose then rejects', () => promiseWith((_resolve, reject) => reject(new Error('no')))],
  ['whose then throws', () => promiseWith(() => JSON.parse('{'))],
]

describe('a promise with another `then`', () => {
  const places: ReadonlyArray<readonly [place: string, make: (answer: () => unknown) => unknown]> = [
    ['a hook returns', (answer) => hooked(answer)],
    ['a function returns', (answer) => answer],
    ['a task returns', (answer) => hooked(() => answer)],
    ['a Some contains', (answer) => hooked(() => O.some(answer()))],
    ['a list gets', (answer) => [hooked(answer), key]],
    ['a group gets', (answer) => allOf([hooked(answer), hooked(() => 'second')])],
    ['optional', (answer) => optional(hooked(answer))],
    ['a time limit gets', (answer) => pipe(hooked(answer), timeout(50))],
    [
      'map returns',
      (answer) =>
        pipe(
          hooked(() => 'anna'),
          flatMap(answer),
        ),
    ],
    ['map returns for an anonymous caller', (answer) => pipe(optional(key), flatMap(answer))],
    [
      'authorize gets',
      (answer) =>
        pipe(
          hooked(() => 'anna'),
          authorize<unknown>(answer as () => boolean),
        ),
    ],
    [
      'recovers',
      (answer) =>
        pipe(
          hooked(() => E.left(AuthError.unavailable())),
          recoverUnavailable(answer),
        ),
    ],
  ]
  test.each(
    promises.flatMap(([what, promise]) => places.map(([place, make]) => [what, place, promise, make] as const)),
  )('%s: no request passes if it is what %s', async (_what, _place, promise, make) => {
    // A promise that never settles is unavailable
    const { ask } = await behind(make(promise), (app) => {
      app.use(authSettings({ timeout: 60 }))
    })
    const answer = await ask('/x', token)
    expect({ seen: answer.seen, unhandled: await settled() }).toEqual({ seen: [], unhandled: [] })
    expect(answer.status).toBeGreaterThanOrEqual(400)
  })
})

describe('thenables as principals', () => {
  const flipping = (): object => {
    let looks = 0
    return {
      get then() {
        return looks++ === 0 ? undefined : (go: (u: unknown) => void) => go(false)
      },
    }
  }
  test.each<[string, () => unknown]>([
    ['a thenable of false', () => ({ then: (go: (u: unknown) => void) => go(false) })],
    ['a thenable of a thenable of null', () => ({ then: (go: (u: unknown) => void) => go(Promise.resolve(null)) })],
    ['a Right of a thenable of false', () => E.right({ then: (go: (u: unknown) => void) => go(false) })],
    ['a TaskEither of a promise of false', () => TE.right(Promise.resolve(false))],
    ['a Some of a Some of None', () => O.some(O.some(O.none))],
    ['a then that throws', () => Object.defineProperty({}, 'then', { get: () => JSON.parse('{') as unknown })],
  ])('%s: is not a principal, in every combinator', async (_what, answer) => {
    const one = hooked(answer)
    const rte: Authenticator<unknown> = pipe(
      one,
      RTE.map((p) => p),
      describedAs(one),
    )
    const all = [one, [key, one], allOf([one, one]), anyOf({ one }), firstPresent({ one }), optional(one), rte]
    for (const auth of [
      ...all,
      pipe(one, timeout(50)),
      pipe(
        hooked(() => 'anna'),
        flatMap(answer),
      ),
    ]) {
      const { status, seen } = await (await behind(auth)).ask('/x', token)
      expect(seen).toEqual([])
      expect([401, 500]).toContain(status)
    }
    // A bad credential counts as none; an exception does not
    const { status, seen } = await (await behind(lenient(one))).ask('/x', token)
    expect([200, 500]).toContain(status)
    expect(seen).toEqual(status === 200 ? [undefined] : [])
  })

  test('an object that gets a `then` later is not a promise', async () => {
    const { status } = await (await behind(allOf([hooked(flipping), hooked(async () => flipping())]))).ask('/x', token)
    expect([200, 401]).toContain(status)
    expect(await settled()).toEqual([])
  })
})
