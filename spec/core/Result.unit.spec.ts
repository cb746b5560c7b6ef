/** Every line of the table in src/core/Result.ts, sync and async. */
import { either as E } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import { AuthError, authorize, httpBearer, UnavailableError, type AuthenticatorLike } from 'koa-with-auth'
import { flatMap, fromFunction, recoverUnavailable } from 'koa-with-auth/fp'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import {
  isAnonymous,
  anonymous,
  failureOf,
  fromAnswer,
  fromAnswerToAnonymous,
  toPromise,
  isThenable,
} from '../../src/core/Result.js'
import { atOnce, error, invalid, later, resolved, thrown, user } from '../support/models/hookAnswers.js'
import { row } from '../support/models/row.js'
import { polluted } from '../support/runs/pollute.js'
import { ask, listen } from '../support/servers/server.js'

describe('R04 R05 fromAnswer of a sync answer', () => {
  it.each(atOnce)('$description', ({ input, expected }) => {
    expect(fromAnswer(input)).toEqual(expected)
  })

  it.each(atOnce)('as a promise: $description', async ({ input, expected }) => {
    expect(await fromAnswer(Promise.resolve(input))).toEqual(expected)
  })
})

describe('fromAnswer of an async answer', () => {
  it.each(later)('$description', async ({ input, expected }) => {
    const evaluation = fromAnswer(input())
    expect(evaluation).toBeInstanceOf(Promise)
    expect(await evaluation).toEqual(expected)
  })
})

describe('R09 fields of a polluted prototype are not keys', () => {
  it('{} still means that nothing was found', () => {
    const found = polluted({ user: 'mallory' }, () => [fromAnswer({}), 'user' in {}])
    expect(found).toStrictEqual([invalid, true])
  })
})

describe('unusual answers', () => {
  it('a Task is run without arguments', () => {
    expect(fromAnswer((...args: unknown[]) => E.right(args.length + 1))).toStrictEqual(E.right(1))
  })

  const messageOf = async (answer: unknown) => {
    const result = await fromAnswer(answer)
    return E.isLeft(result) && result.left._tag === 'raised' && result.left.error instanceof TypeError
      ? result.left.error.message
      : result
  }

  it.each([undefined, null, 1, 'Right', {}, { _tag: 'Some', value: 1 }, { then: 1 }])(
    'a Task of %j, or of a promise of it, is an error that says what a function must yield',
    async (yielded) => {
      const words =
        'a hook returned a function that gives no Either; return a value, a promise, an Option, an Either or a TaskEither'
      expect(await messageOf(() => yielded)).toBe(words)
      expect(await messageOf(() => Promise.resolve(yielded))).toBe(words)
    },
  )

  it.each(['Right', 'unavailable'])(
    'a %s with other keys is an error that says what to do, and prints no data',
    async (tag) => {
      expect(await messageOf({ _tag: tag, right: 'secret', username: 'mallory' })).toBe(
        `a hook returned an object whose _tag is "${tag}", but its keys are not those of such a value; if it is data, return an object without _tag`,
      )
    },
  )

  it('an UnavailableError that is returned is an outage, as if it was thrown', async () => {
    expect(await fromAnswer(new UnavailableError('down', { retryAfter: 3 }))).toStrictEqual(
      E.left(AuthError.unavailable(3)),
    )
  })

  it('an iterator is an error that says where it comes from', async () => {
    expect(await messageOf([][Symbol.iterator]())).toBe(
      'a hook returned an iterator, which is never run; is the hook a generator?',
    )
  })
})

describe('isThenable', () => {
  const throwing = Object.defineProperty({}, 'then', { get: thrown })
  it.each([
    undefined,
    null,
    0,
    'then',
    true,
    {},
    [],
    { then: 1 },
    { then: null },
    Object.assign(() => 1, { then: thrown }),
  ])('is false for %o', (answer) => expect(isThenable(answer)).toBe(false))
  it('is false for an object whose `then` throws', () => expect(isThenable(throwing)).toBe(false))
  it.each([Promise.resolve(1), resolved])('is true for %o', (answer) => expect(isThenable(answer)).toBe(true))
})

describe('toPromise', () => {
  it('returns a promise of Node as it is, and wraps others', async () => {
    const promise = Promise.resolve(user)
    expect(toPromise(promise)).toBe(promise)
    expect(await toPromise(resolved)).toBe(user)
    const replaced = Object.assign(Promise.resolve('own'), { then: resolved.then })
    expect(toPromise(replaced)).not.toBe(replaced)
    expect(await toPromise(replaced)).toBe(user)
  })
})

describe('an anonymous caller', () => {
  it('is marked on a pass, in a way that changes no comparison', () => {
    expect(isAnonymous(anonymous)).toBe(true)
    expect(anonymous).toStrictEqual(E.right(undefined))
    expect(isAnonymous(E.right(undefined))).toBe(false)
    expect(isAnonymous(E.left(AuthError.invalid))).toBe(false)
  })

  it('is no answer of a hook', () => {
    expect(fromAnswer(() => anonymous)).toStrictEqual(invalid)
  })

  describe('fromAnswerToAnonymous', () => {
    it('undefined is still anonymous, sync and async', async () => {
      expect(fromAnswerToAnonymous(undefined)).toBe(anonymous)
      expect(await fromAnswerToAnonymous(Promise.resolve())).toBe(anonymous)
    })

    it.each(atOnce.filter(({ input }) => input !== undefined))('$description', async ({ input, expected }) => {
      expect(await fromAnswerToAnonymous(input)).toStrictEqual(expected)
      expect(await fromAnswerToAnonymous(Promise.resolve(input))).toStrictEqual(expected)
    })

    it('a promise that rejects is raised', async () => {
      expect(await fromAnswerToAnonymous(Promise.reject(error))).toStrictEqual(E.left(AuthError.raised(error)))
    })
  })
})

// An exception that means an outage: wherever a hook throws it, the response is a 503.

const outage = new UnavailableError('the directory is down')
const down = (): never => {
  throw outage
}
const request = mockRequest({ fields: [['Authorization', 'Bearer t']] })
const bearer = (authenticate: () => unknown) => httpBearer({ authenticate })
const passing = bearer(() => ({ user: 'anna' }))

describe('an UnavailableError that a hook throws is unavailable', () => {
  it.each<{ description: string; input: AuthenticatorLike }>([
    ...Object.entries({
      'a hook that throws': down,
      'a hook that rejects': () => Promise.reject(outage),
      'an async hook that throws after an await': async () => (await Promise.reject(outage)) && { user: 'anna' },
      'a Task that rejects': () => () => Promise.reject(outage),
      'a thenable that throws': () => ({ then: down }),
    }).map(([description, hook]) => row(description, bearer(hook))),
    row('a plain function', down),
    row('map', pipe(passing, flatMap(down))),
    row('authorize', pipe(passing, authorize(down))),
    row(
      'authorize that rejects',
      pipe(
        passing,
        authorize(() => Promise.reject(outage)),
      ),
    ),
  ])('$description', async ({ input }) => {
    const result = await fromFunction(input).evaluate(request)
    expect(result).toMatchObject({ _tag: 'Left', left: { _tag: 'unavailable' } })
  })

  it('stops a list, and recoverUnavailable recovers from it', async () => {
    let calls = 0
    const list = fromFunction(bearer(down))
    const recovered = pipe(
      list,
      recoverUnavailable(() => {
        calls++
        return { user: 'cached' }
      }),
    )
    expect(await recovered.evaluate(request)).toEqual(E.right({ user: 'cached' }))
    expect(calls).toBe(1)
  })
})

describe('failureOf', () => {
  const mark = Symbol.for('koa-with-auth/unavailable')
  it.each<{ description: string; input: unknown; expected: AuthError }>([
    row('another error', 1, AuthError.raised(1)),
    row('null', null, AuthError.raised(null)),
    row('an error of another copy of the package', { [mark]: true }, AuthError.unavailable()),
    row('an error with another mark', { [mark]: 1 }, AuthError.raised({ [mark]: 1 })),
    row('an error with a time', new UnavailableError('x', { retryAfter: 7 }), AuthError.unavailable(7)),
    row('an error with an invalid time', { [mark]: true, retryAfter: '7' }, AuthError.unavailable()),
  ])('$description', ({ input, expected }) => {
    expect(failureOf(input)).toEqual(expected)
  })

  it('a proxy that throws is raised', () => {
    const hostile = new Proxy({}, { has: down })
    const failure = failureOf(hostile)
    expect(failure._tag).toBe('raised')
  })
})

it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5'])('an invalid time is a TypeError: %s', (retryAfter) => {
  expect(() => new UnavailableError('x', { retryAfter: retryAfter as number })).toThrow(
    /new UnavailableError\(message, \{ retryAfter \}\)/,
  )
})

it('of a handler is a 503 that does not show its message', async () => {
  const app = new Koa().use(down)
  app.silent = true
  const { url } = await listen(app)
  const { status, text } = await ask(url)
  expect([status, text.includes('directory')]).toEqual([503, false])
})
