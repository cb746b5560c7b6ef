/** Every line of the table in `src/core/Result.ts`: what a hook returns, and what is made of it. */
import vm from 'node:vm'
import { either as E, option as O, taskEither as TE } from 'fp-ts'
import { AuthError, Challenge } from 'koa-with-auth'
import { expect } from 'vitest'
import { row, type Row } from './row.js'

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

type Answers = ReadonlyArray<readonly [description: string, answer: unknown]>

// What `table[key]` and clients of stores return if nothing is found
const nothing: Answers = [
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
  ...Object.getOwnPropertyNames(Object.prototype)
    .filter((name) => name !== '__proto__')
    .map((name) => [`{}['${name}']`, Reflect.get({}, name)] as const),
  ...['call', 'apply', 'bind'].map((name) => [`a function's ${name}`, Reflect.get(() => 1, name)] as const),
]

class Expired extends Error {
  readonly _tag = 'Expired'
}

// What `catch((error) => error)` returns; also for prototypes of Errors
const errors: Answers = [
  ['an Error', new Error('expired')],
  ['an Error of its own class, with a tag', new Expired('expired')],
  ['an Error of another realm', elsewhere('new TypeError("expired")')],
  ['an AggregateError', new AggregateError([])],
  ['a DOMException', new DOMException('aborted', 'AbortError')],
  ['an Error without a prototype', Object.setPrototypeOf(new Error('expired'), null)],
  ['an Error with the prototype of plain objects', Object.setPrototypeOf(new Error('expired'), Object.prototype)],
  ['an object that inherits from an Error', Object.create(new Error('expired'))],
  ['a Proxy of an Error', new Proxy(new Error('expired'), {})],
]

const withGetter = (tag: string, key: string) =>
  Object.defineProperty({ _tag: tag }, key, { get: () => ({ username: 'root' }), enumerable: true })

// Rows and claims whose owner wrote a `_tag` into them
const root = { username: 'root', isSuperuser: true }
const strange: Answers = [
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
const somebody: Answers = [
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
export type AnswerRow = Row<unknown, E.Either<{ readonly _tag: AuthError['_tag'] }, unknown>>

export const atOnce: ReadonlyArray<AnswerRow> = [
  ...[false, 0, -0, 0n, NaN, '', null, undefined].map((input) => ({
    description: `5.1.2 ${Object.is(input, -0) ? '-0' : typeof input === 'bigint' ? '0n' : JSON.stringify(input)} fails`,
    input,
    expected: invalid,
  })),
  row('5.1.2 an empty array fails', [], invalid),
  ...nothing.map(([what, input]) => row(`R04 ${what} found nothing`, input, invalid)),
  ...errors.map(([what, input]) => row(`R04 ${what} is raised`, input, E.left(AuthError.raised(input)))),
  ...strange.map(([what, input]) => row(`R05 ${what} is a configuration error`, input, configuration)),
  ...failures.map((input) =>
    row(`an AuthError is that failure: ${Object.keys(input).join(', ')} of ${input._tag}`, input, E.left(input)),
  ),
  ...somebody.map(([what, input]) => row(`R04 ${what} passes`, input, E.right(input))),
  row('R05 Some of a strange tag is a configuration error', O.some(strange[0]?.[1]), configuration),
  row('R04 Some of {} fails', O.some({}), invalid),
  row('R04 Right of an Error is raised', E.right(error), raised),
  row('R04 an IO of a Right of {} fails', () => E.right({}), invalid),
  row('5.1.1 an array passes', [0], E.right([0])),
  row('5.1.1 true passes', true, E.right(true)),
  row('5.1.1 a number passes', -1, E.right(-1)),
  row('5.1.1 a string passes', '0', E.right('0')),
  row('5.1.1 a bigint passes', 1n, E.right(1n)),
  row('5.1.1 an object passes', user, E.right(user)),
  row('an object with its own tag passes', { _tag: 'User' }, E.right({ _tag: 'User' })),
  row('an AuthError without a Left is a failure', AuthError.expired, E.left(AuthError.expired)),
  row('a generator object, which is never run, is a configuration error', (function* () {})(), configuration),
  row('any iterator is a configuration error', [1].values(), configuration),
  row('an object whose `next` is not a function passes', { next: 1 }, E.right({ next: 1 })),
  row('an object whose `then` is not a function passes', { then: 1 }, E.right({ then: 1 })),
  row('A-31 None fails', O.none, invalid),
  row('A-31 Some is unwrapped', O.some(user), E.right(user)),
  row('A-31 Some of falsy fails', O.some(0), invalid),
  row('A-31 Some of an empty array fails', O.some([]), invalid),
  row('A-31 Some of None fails', O.some(O.none), invalid),
  row('A-31 Right is unwrapped', E.right(user), E.right(user)),
  row('A-31 Right of falsy fails', E.right(''), invalid),
  row('A-31 Right of Left fails', E.right(E.left('x')), invalid),
  row('a Left of an AuthError is this failure', E.left(AuthError.expired), E.left(AuthError.expired)),
  row('any other Left is invalid', E.left('user anna unknown'), invalid),
  row('a Left of an Error is invalid', E.left(error), invalid),
  row('a Left of another tag is invalid', E.left({ _tag: 'toString' }), invalid),
  row('a Right inside a Left is invalid', E.left(E.right(user)), invalid),
  row('A-31 an IO of an Either is run', () => E.right(user), E.right(user)),
  row('A-31 an IO of a Left fails', () => E.left('x'), invalid),
  row('A-31 a function of a truthy value is a configuration error', () => user, configuration),
  row('A-31 a function of a falsy value is a configuration error', () => false, configuration),
  row('A-31 a function of a function is a configuration error', () => () => E.right(user), configuration),
  row('A-31 a function of an Option is a configuration error', () => O.some(user), configuration),
  row('A-30 a function that throws is raised', thrown, raised),
]

const throwing: unknown = Object.defineProperty({}, '_tag', { get: thrown })
class Query extends Promise<unknown> {}
type Go = (value: unknown) => void

/** The same for what comes later; `input` makes it. */
export const later: ReadonlyArray<AnswerRow & { readonly input: () => unknown }> = [
  row('5.7.1 a promise of a principal', async () => user, E.right(user)),
  row('5.1.2 a promise of falsy', async () => 0, invalid),
  row('5.1.2 a promise of an empty array', async () => [], invalid),
  row('A-31 a promise of None', async () => O.none, invalid),
  row('A-31 a promise of a Left', async () => E.left('x'), invalid),
  row('a promise of a Left of an AuthError', async () => E.left(AuthError.expired), E.left(AuthError.expired)),
  row('A-31 a promise of a TaskEither', async () => TE.right(user), E.right(user)),
  row('A-30 a promise that rejects', () => Promise.reject(error), raised),
  row('A-30 a promise that rejects with undefined', () => Promise.reject(), E.left(AuthError.raised(undefined))),
  row('A-30 a promise that rejects with null', () => Promise.reject(null), E.left(AuthError.raised(null))),
  row('a thenable is awaited', () => resolved, E.right(user)),
  row('a thenable function', () => Object.assign(() => true, resolved), E.right(user)),
  row('a thenable whose then is inherited', () => Object.create(resolved), E.right(user)),
  row('a class of promises', () => Query.resolve(user), E.right(user)),
  row('a thenable of false', () => ({ then: (go: Go) => go(false) }), invalid),
  row('a thenable of a promise of null', () => ({ then: (go: Go) => go(Promise.resolve(null)) }), invalid),
  row('a Right of a thenable of 0', () => E.right({ then: (go: Go) => go(0) }), invalid),
  row('a TaskEither of a promise of false', () => TE.right(Promise.resolve(false)), invalid),
  row('A-30 a thenable that throws', () => ({ then: thrown }), raised),
  row('a Some of a promise', () => O.some(Promise.resolve(user)), E.right(user)),
  row('a Right of a promise of falsy', () => E.right(Promise.resolve(null)), invalid),
  row('A-31 a TaskEither that is right', () => TE.right(user), E.right(user)),
  row('A-31 a TaskEither that is right of falsy', () => TE.right(false), invalid),
  row('A-31 a TaskEither that is left', () => TE.left('x'), invalid),
  row('a TaskEither of an AuthError', () => TE.left(AuthError.unavailable(3)), E.left(AuthError.unavailable(3))),
  row('A-31 a Task that does not yield an Either', () => async () => user, configuration),
  row('A-31 a Task of a TaskEither', () => async () => TE.right(user), configuration),
  row('A-30 a Task of an Either whose tag throws', () => async () => throwing, raised),
  row('A-30 a Task that rejects', () => () => Promise.reject(error), raised),
  row('A-31 a lazy thenable of an Either', () => () => ({ then: (go: Go) => go(E.right(1)) }), E.right(1)),
]
