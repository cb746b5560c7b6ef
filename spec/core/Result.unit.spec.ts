/** Every line of the table in src/core/Result.ts, sync and async. */
import vm from 'node:vm'
import { either as E, option as O, taskEither as TE } from 'fp-ts'
import { AuthError, Challenge, UnavailableError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import {
  isAnonymous,
  anonymous,
  fromAnswer,
  fromAnswerToAnonymous,
  toPromise,
  isThenable,
} from '../../src/core/Result.js'
import { polluted } from '../support/runs/pollute.js'

const invalid = E.left(AuthError.invalid)
const error = new Error('store')
const raised = E.left(AuthError.raised(error))
const thrown = (): never => {
  throw error
}
const configuration = E.left({ _tag: 'raised', error: expect.any(TypeError) as unknown })
const user = { user: 'anna' }
const resolved = { then: (go: (value: unknown) => void) => go(user) }

const elsewhere = (code: string): unknown => vm.runInNewContext(code)

// What `table[key]` and clients of stores return if nothing is found
const nothing: ReadonlyArray<readonly [description: string, answer: unknown]> = [
  ['{}', {}],
  ['{} without a prototype', Object.create(null)],
  ['{} of another realm', elsewhere('({})')],
  ['Object.prototype', Object.prototype],
  ['Object.prototype of another realm', elsewhere('Object.prototype')],
  ['Array.prototype', Array.prototype],
  ['Function.prototype', Function.prototype],
  ['Map.prototype', Map.prototype],
  ['Map.prototype of another realm', elsewhere('Map.prototype')],
  ['String.prototype', String.prototype],
  ['the prototype of a class', Reflect.get(class User {}, 'prototype')],
  ['the prototype of a class that extends another', Reflect.get(class User extends Map {}, 'prototype')],
  ['the prototype of process.env', Object.getPrototypeOf(process.env)],
  ["{}['constructor']", {}.constructor],
  ["{}['constructor'] of another realm", elsewhere('({}).constructor')],
  ...Object.getOwnPropertyNames(Object.prototype)
    .filter((name) => name !== '__proto__')
    .map((name) => [`{}['${name}']`, Reflect.get({}, name)] as const),
  ...['call', 'apply', 'bind'].map((name) => [`a function's ${name}`, Reflect.get(() => 1, name)] as const),
]

class Expired extends Error {
  readonly _tag = 'Expired'
}

// What `catch((error) => error)` returns; also for prototypes of Errors
const errors: ReadonlyArray<readonly [description: string, answer: unknown]> = [
  ['an Error', new Error('expired')],
  ['an Error of its own class, with a tag', new Expired('expired')],
  ['an Error of another realm', elsewhere('new TypeError("expired")')],
  ['an AggregateError', new AggregateError([])],
  ['a DOMException', new DOMException('aborted', 'AbortError')],
  ['an Error without a prototype', Object.setPrototypeOf(new Error('expired'), null)],
  ['an Error with the prototype of plain objects', Object.setPrototypeOf(new Error('expired'), Object.prototype)],
  ['an object that inherits from an Error', Object.create(new Error('expired'))],
  ['an object that inherits from an Error of another realm', elsewhere('Object.create(RangeError.prototype)')],
  ['an object that inherits from Error of another realm', elsewhere('Object.create(Error.prototype)')],
  ['a Proxy of an Error', new Proxy(new Error('expired'), {})],
]

const withGetter = (tag: string, key: string) =>
  Object.defineProperty({ _tag: tag }, key, { get: () => ({ username: 'root' }), enumerable: true })

// Rows and claims whose owner wrote a `_tag` into them
const root = { username: 'root', isSuperuser: true }
const strange: ReadonlyArray<readonly [description: string, answer: unknown]> = [
  ['a Right with another key', { _tag: 'Right', right: root, username: 'mallory' }],
  ['a Right with its keys in another order', { username: 'mallory', right: root, _tag: 'Right' }],
  ['a Some with another key', { _tag: 'Some', value: root, username: 'mallory' }],
  ['a Left with another key', { _tag: 'Left', left: AuthError.absent, username: 'mallory' }],
  ['a None with another key', { _tag: 'None', username: 'mallory' }],
  ['a None that has a value', { _tag: 'None', value: user }],
  ['a Right without right', { _tag: 'Right' }],
  ['a Right with value', { _tag: 'Right', value: root }],
  ['a Right with a symbol', { _tag: 'Right', right: root, [Symbol('own')]: 1 }],
  ['a Right with a hidden key', Object.defineProperty({ _tag: 'Right', right: root }, 'id', { value: 1 })],
  ['a Right with a getter', withGetter('Right', 'right')],
  ['a Some with a getter', withGetter('Some', 'value')],
  ['an inherited tag', Object.create({ _tag: 'Right', right: root }, { username: { value: 'mallory' } })],
  ['an inherited tag and payload', Object.create(E.right(root))],
  ['a Proxy of a Right with another key', new Proxy({ _tag: 'Right', right: root, username: 'mallory' }, {})],
  ['an outage with another key', { _tag: 'unavailable', username: 'mallory' }],
  ['an absence with another key', { _tag: 'absent', username: 'mallory' }],
  ['an invalid with a scope', { _tag: 'invalid', scope: ['a'] }],
  ['an invalid with a getter', withGetter('invalid', 'challenge')],
  ['an inherited failure', Object.create(AuthError.expired, { username: { value: 'mallory' } })],
]

const failures: ReadonlyArray<AuthError> = [
  AuthError.insufficient(['read']),
  AuthError.throttled(7),
  AuthError.unavailable(7),
  AuthError.raised(error),
  { ...AuthError.invalid, challenge: Challenge.make('Own') },
  { ...AuthError.absent, skipped: true },
  AuthError.Semigroup.concat(AuthError.invalid, AuthError.expired),
]

// Values that look similar, and are principals
const somebody: ReadonlyArray<readonly [description: string, answer: unknown]> = [
  ['an object with a symbol key', { [Symbol('id')]: 1 }],
  ['an object with a hidden key', Object.defineProperty({}, 'id', { value: 1 })],
  ['an object whose values are undefined', { user: undefined }],
  ['an object of a class, without keys', new (class User {})()],
  ['an object that inherits from a record', Object.create({ user: 'anna' })],
  ['an object with its own constructor', { constructor: 'Acme' }],
  ['a record with a message and a name', { name: 'anna', message: 'hello' }],
  ['a Date', new Date(0)],
]

const atOnce: ReadonlyArray<{ description: string; input: unknown; expected: unknown }> = [
  ...[false, 0, -0, 0n, NaN, '', null, undefined].map((input) => ({
    description: `5.1.2 ${Object.is(input, -0) ? '-0' : typeof input === 'bigint' ? '0n' : JSON.stringify(input)} fails`,
    input,
    expected: invalid,
  })),
  { description: '5.1.2 an empty array fails', input: [], expected: invalid },
  ...nothing.map(([description, input]) => ({
    description: `R04 ${description} found nothing`,
    input,
    expected: invalid,
  })),
  ...errors.map(([description, input]) => ({
    description: `R04 ${description} is raised`,
    input,
    expected: E.left(AuthError.raised(input)),
  })),
  ...strange.map(([description, input]) => ({
    description: `R05 ${description} is a configuration error`,
    input,
    expected: configuration,
  })),
  ...failures.map((input) => ({
    description: `an AuthError is that failure: ${Object.keys(input).join(', ')} of ${input._tag}`,
    input,
    expected: E.left(input),
  })),
  ...somebody.map(([description, input]) => ({
    description: `R04 ${description} passes`,
    input,
    expected: E.right(input),
  })),
  {
    description: 'R05 Some of a strange tag is a configuration error',
    input: O.some(strange[0]?.[1]),
    expected: configuration,
  },
  { description: 'R04 Some of {} fails', input: O.some({}), expected: invalid },
  { description: 'R04 Right of an Error is raised', input: E.right(error), expected: raised },
  { description: 'R04 an IO of a Right of {} fails', input: () => E.right({}), expected: invalid },
  { description: '5.1.1 an array passes', input: [0], expected: E.right([0]) },
  { description: '5.1.1 true passes', input: true, expected: E.right(true) },
  { description: '5.1.1 a number passes', input: -1, expected: E.right(-1) },
  { description: '5.1.1 a string passes', input: '0', expected: E.right('0') },
  { description: '5.1.1 a bigint passes', input: 1n, expected: E.right(1n) },
  { description: '5.1.1 an object passes', input: user, expected: E.right(user) },
  {
    description: 'an object with its own tag passes',
    input: { _tag: 'User' },
    expected: E.right({ _tag: 'User' }),
  },
  {
    description: 'an AuthError without a Left is a failure',
    input: AuthError.expired,
    expected: E.left(AuthError.expired),
  },
  {
    description: 'a generator object, which is never run, is a configuration error',
    input: (function* () {})(),
    expected: configuration,
  },
  { description: 'any iterator is a configuration error', input: [1].values(), expected: configuration },
  {
    description: 'an object whose `next` is not a function passes',
    input: { next: 1 },
    expected: E.right({ next: 1 }),
  },
  {
    description: 'an object whose `then` is not a function passes',
    input: { then: 1 },
    expected: E.right({ then: 1 }),
  },
  { description: 'A-31 None fails', input: O.none, expected: invalid },
  { description: 'A-31 Some is unwrapped', input: O.some(user), expected: E.right(user) },
  { description: 'A-31 Some of falsy fails', input: O.some(0), expected: invalid },
  { description: 'A-31 Some of an empty array fails', input: O.some([]), expected: invalid },
  { description: 'A-31 Some of None fails', input: O.some(O.none), expected: invalid },
  { description: 'A-31 Right is unwrapped', input: E.right(user), expected: E.right(user) },
  { description: 'A-31 Right of falsy fails', input: E.right(''), expected: invalid },
  { description: 'A-31 Right of Left fails', input: E.right(E.left('x')), expected: invalid },
  {
    description: 'a Left of an AuthError is this failure',
    input: E.left(AuthError.expired),
    expected: E.left(AuthError.expired),
  },
  { description: 'any other Left is invalid', input: E.left('user anna unknown'), expected: invalid },
  { description: 'a Left of an Error is invalid', input: E.left(error), expected: invalid },
  { description: 'a Left of another tag is invalid', input: E.left({ _tag: 'toString' }), expected: invalid },
  { description: 'a Right inside a Left is invalid', input: E.left(E.right(user)), expected: invalid },
  { description: 'A-31 an IO of an Either is run', input: () => E.right(user), expected: E.right(user) },
  { description: 'A-31 an IO of a Left fails', input: () => E.left('x'), expected: invalid },
  {
    description: 'A-31 a function of a truthy value is a configuration error',
    input: () => user,
    expected: configuration,
  },
  {
    description: 'A-31 a function of a falsy value is a configuration error',
    input: () => false,
    expected: configuration,
  },
  {
    description: 'A-31 a function of a function is a configuration error',
    input: () => () => E.right(user),
    expected: configuration,
  },
  {
    description: 'A-31 a function of an Option is a configuration error',
    input: () => O.some(user),
    expected: configuration,
  },
  { description: 'A-30 a function that throws is raised', input: thrown, expected: raised },
]

const later: ReadonlyArray<{ description: string; input: () => unknown; expected: unknown }> = [
  { description: '5.7.1 a promise of a principal', input: async () => user, expected: E.right(user) },
  { description: '5.1.2 a promise of falsy', input: async () => 0, expected: invalid },
  { description: '5.1.2 a promise of an empty array', input: async () => [], expected: invalid },
  { description: 'A-31 a promise of None', input: async () => O.none, expected: invalid },
  { description: 'A-31 a promise of a Left', input: async () => E.left('x'), expected: invalid },
  {
    description: 'a promise of a Left of an AuthError',
    input: async () => E.left(AuthError.expired),
    expected: E.left(AuthError.expired),
  },
  { description: 'A-31 a promise of a TaskEither', input: async () => TE.right(user), expected: E.right(user) },
  { description: 'A-30 a promise that rejects', input: () => Promise.reject(error), expected: raised },
  {
    description: 'A-30 a promise that rejects with undefined',
    input: () => Promise.reject(),
    expected: E.left(AuthError.raised(undefined)),
  },
  {
    description: 'A-30 a promise that rejects with null',
    input: () => Promise.reject(null),
    expected: E.left(AuthError.raised(null)),
  },
  { description: 'a thenable is awaited', input: () => resolved, expected: E.right(user) },
  { description: 'A-30 a thenable that throws', input: () => ({ then: thrown }), expected: raised },
  { description: 'a Some of a promise', input: () => O.some(Promise.resolve(user)), expected: E.right(user) },
  { description: 'a Right of a promise of falsy', input: () => E.right(Promise.resolve(null)), expected: invalid },
  { description: 'A-31 a TaskEither that is right', input: () => TE.right(user), expected: E.right(user) },
  { description: 'A-31 a TaskEither that is right of falsy', input: () => TE.right(false), expected: invalid },
  { description: 'A-31 a TaskEither that is left', input: () => TE.left('x'), expected: invalid },
  {
    description: 'a TaskEither of an AuthError',
    input: () => TE.left(AuthError.unavailable(3)),
    expected: E.left(AuthError.unavailable(3)),
  },
  { description: 'A-31 a Task that does not yield an Either', input: () => async () => user, expected: configuration },
  { description: 'A-31 a Task of a TaskEither', input: () => async () => TE.right(user), expected: configuration },
  {
    description: 'A-30 a Task of an Either whose tag throws',
    input: () => async () => Object.defineProperty({}, '_tag', { get: thrown }),
    expected: raised,
  },
  { description: 'A-30 a Task that rejects', input: () => () => Promise.reject(error), expected: raised },
  {
    description: 'A-31 a lazy thenable of an Either',
    input: () => () => ({ then: (go: (u: unknown) => void) => go(E.right(1)) }),
    expected: E.right(1),
  },
]

describe('fromAnswer of a sync answer', () => {
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
