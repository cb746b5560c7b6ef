/** Every line of the table in `src/core/Result.ts`: what a hook returns, and what is made of it. */
import vm from 'node:vm'
import { either as E, option as O, taskEither as TE } from 'fp-ts'
import { AuthError, Challenge } from 'koa-with-auth'
import { expect } from 'vitest'

export const invalid = E.left(AuthError.invalid)
export const error = new Error('store')
const raised = E.left(AuthError.raised(error))
export const thrown = (): never => {
  throw error
}
const configuration = E.left({ _tag: 'raised' as const, error: expect.any(TypeError) as unknown })
export const user = { user: 'anna' }
export const resolved = { then: (go: (value: unknown) => void) => go(user) }

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

/** What a hook may return. */
export interface AnswerRow {
  readonly description: string
  readonly input: unknown
  readonly expected: E.Either<{ readonly _tag: AuthError['_tag'] }, unknown>
}

export const atOnce: ReadonlyArray<AnswerRow> = [
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

class Query extends Promise<unknown> {}
type Go = (value: unknown) => void

/** The same for what comes later; `input` makes it. */
export const later: ReadonlyArray<AnswerRow & { readonly input: () => unknown }> = [
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
  { description: 'a thenable function', input: () => Object.assign(() => true, resolved), expected: E.right(user) },
  { description: 'a thenable whose then is inherited', input: () => Object.create(resolved), expected: E.right(user) },
  { description: 'a class of promises', input: () => Query.resolve(user), expected: E.right(user) },
  { description: 'a thenable of false', input: () => ({ then: (go: Go) => go(false) }), expected: invalid },
  {
    description: 'a thenable of a promise of null',
    input: () => ({ then: (go: Go) => go(Promise.resolve(null)) }),
    expected: invalid,
  },
  { description: 'a Right of a thenable of 0', input: () => E.right({ then: (go: Go) => go(0) }), expected: invalid },
  {
    description: 'a TaskEither of a promise of false',
    input: () => TE.right(Promise.resolve(false)),
    expected: invalid,
  },
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
