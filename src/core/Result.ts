/**
 * The results of hooks, and how each becomes an Either. Only this module knows about truthiness.
 *
 * | answer                                             | result                                               |
 * |----------------------------------------------------|------------------------------------------------------|
 * | `false 0 -0 0n NaN '' null undefined`              | `invalid` (spec 5.1.2)                               |
 * | a lookup that found nothing: `[]`, an object without keys (plain or null prototype), a prototype | `invalid` |
 * | an Error of any realm                              | as if it had been thrown                             |
 * | a promise, or anything with a `then`               | awaited, then judged; a rejection is `raised`, or `unavailable` for an `UnavailableError` |
 * | `None`, `Left`                                     | `invalid`; a `Left` of an AuthError is that failure  |
 * | an AuthError                                       | that failure, as if it were a `Left`                 |
 * | `Some`, `Right`                                    | unwrapped, then judged                               |
 * | an object with one of these tags that has other keys than fp-ts or this layer gives it | `raised`: data can hold a `_tag` |
 * | a function (Task, TaskEither, the result of a bare RTE) | called; it must give an Either, else `raised`    |
 * | an iterator (of a generator, which is never run)   | `raised`                                             |
 * | any other value                                    | the principal (spec 5.1.1)                           |
 */
import { types } from 'node:util'
import * as E from 'fp-ts/lib/Either.js'
import type * as O from 'fp-ts/lib/Option.js'
import { hasExactKeys, invalid, is as isAuthError, raised, unavailable, type AuthError } from './AuthError.js'
import { deepFreeze, isInstance, type ErrorCode } from './data.js'
import { accept, givenWith, nothingSent, withEvidence } from './Evidence.js'
import * as is from './checks.js'

export type Result<P> = E.Either<AuthError, P>

/** A result, or a promise of it that never rejects. It is a promise only if something in it is async. */
export type Evaluation<P> = Result<P> | Promise<Result<P>>

/**
 * @internal Calls `f` with a result or another value, in this tick unless it is a promise. If it is one, `f` must not throw. Lists
 * and kinds have this code inline, because a closure would cost 2 to 4 % of a sync decision.
 */
export const andThen = <A, B>(known: A | Promise<A>, f: (known: A) => B | Promise<B>): B | Promise<B> =>
  known instanceof Promise ? known.then(f) : f(known)

/** @internal The result of `optional` if no credential was sent. */
export const anonymous: Result<undefined> = Object.freeze(accept(undefined, nothingSent))

export const isAnonymous = (result: Result<unknown>): boolean => givenWith(result)?.isAnonymous === true

// --- truthy objects that are no principals

// An Error of another realm (a `vm` context, Jest's sandbox) has its own `stack`. To ask the engine takes longer
const isErrorObject = (answer: object): boolean =>
  answer instanceof Error || ('stack' in answer && types.isNativeError(answer))

/**
 * Whether an object is the result of a lookup that found nothing: a prototype (`table['__proto__']`), or an object
 * without keys whose prototype is plain or null (Redis returns `{}` for a missing hash).
 */
const foundNothing = (answer: object): boolean => (!hasKeys(answer) && hasPlainPrototype(answer)) || isPrototype(answer)

/** Whether a function is one that every object or function inherits: `table['constructor']`, `table['toString']`. */
const isInheritedFunction = (answer: Function): boolean =>
  isPrototype(answer) || [Function.prototype, Object.prototype].some((prototype) => isMethod(prototype, answer))

/** @internal Whether a value has properties: an object or a function. */
export const isObject = (u: unknown): u is object => (typeof u === 'object' && u !== null) || typeof u === 'function'

const isPrototype = (answer: object): boolean =>
  answer.constructor === Object
    ? answer === Object.prototype
    : Object.hasOwn(answer, 'constructor') &&
      typeof answer.constructor === 'function' &&
      answer.constructor.prototype === answer

const isMethod = (prototype: object, answer: Function): boolean =>
  prototype.constructor === answer || Object.getOwnPropertyDescriptor(prototype, answer.name)?.value === answer

const hasPlainPrototype = (answer: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(answer)
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

// In a loop, because making a list of the keys would take the longest time of the whole evaluation
const hasKeys = (answer: object): boolean => {
  for (const key in answer) if (Object.hasOwn(answer, key)) return true
  return Reflect.ownKeys(answer).length > 0
}

/** @internal Whether a value has a `then`. `false` for a getter that throws; code that reads it again must catch that. */
export const isThenable = (value: unknown): value is PromiseLike<unknown> => {
  try {
    return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
  } catch {
    return false
  }
}

/** @internal A promise for a value with a `then`; Node's own one as it is, unless its `then` was replaced. */
export const toPromise = (value: unknown): Promise<unknown> =>
  value instanceof Promise && value.then === Promise.prototype.then ? value : new Promise((resolve) => resolve(value))

// A mark, so that two copies of the package recognize each other's exceptions
const unavailableMark = Symbol.for('koa-with-auth/unavailable')

/**
 * The decision cannot be made now. In a hook it becomes `unavailable`; in a handler Koa answers 503. `retryAfter` is in
 * seconds. The message is for the log: the client does not see it. Never put a credential in it.
 *
 * A helper can throw it, even if a hook calls the helper through code that does not know this library, such as `(await
 * verify(stored, password)) && user`.
 *
 * @example
 * import { httpBearer, UnavailableError } from 'koa-with-auth'
 *
 * const directory = {
 *   ownerOf: async (_token: string): Promise<{ user: string } | undefined> => {
 *     throw new UnavailableError('the directory is down', { retryAfter: 30 })
 *   },
 * }
 * const bearer = httpBearer({ authenticate: (_request, token) => directory.ownerOf(token) }) // 503, Retry-After: 30
 */
export class UnavailableError extends Error {
  override readonly name: string = 'UnavailableError'
  readonly code = 'ERR_AUTH_UNAVAILABLE' satisfies ErrorCode
  /** The status that Koa answers if a handler throws it. */
  readonly status = 503
  readonly retryAfter?: number | undefined
  readonly [unavailableMark] = true
  /** @internal Also an error of another copy of this package, such as that of `require` beside that of `import`. */
  static override [Symbol.hasInstance](u: unknown): boolean {
    return isInstance(this, UnavailableError, u, 'ERR_AUTH_UNAVAILABLE')
  }
  constructor(message: string, options: { readonly cause?: unknown; readonly retryAfter?: number | undefined } = {}) {
    super(message, options)
    if (options.retryAfter === undefined) return
    is.positive('new UnavailableError(message, { retryAfter })', options.retryAfter)
    this.retryAfter = options.retryAfter
  }
}

const isUnavailableError = (u: unknown): u is { readonly retryAfter?: unknown } =>
  typeof u === 'object' && u !== null && unavailableMark in u && u[unavailableMark] === true

/** @internal The failure for an exception: `unavailable` of an UnavailableError, otherwise `raised`. Never throws. */
export const failureOf = (error: unknown): AuthError => {
  try {
    if (!isUnavailableError(error)) return raised(error)
    return unavailable(typeof error.retryAfter === 'number' ? error.retryAfter : undefined)
  } catch {
    // a proxy, or a getter, that throws
    return raised(error)
  }
}

export const refused: E.Either<AuthError, never> = deepFreeze(E.left(invalid))

/** Turns a hook's answer into an Either: sync if the answer is no promise and no function. Never throws. */
export const fromAnswer = (answer: unknown): Evaluation<unknown> => {
  if (!answer) return refused
  if (typeof answer !== 'object' && typeof answer !== 'function') return E.right(answer)
  try {
    if ('then' in answer && typeof answer.then === 'function') return toPromise(answer).then(fromAnswer, failureResult)
    if (typeof answer === 'function') return fromReturnedFunction(answer)
    if (Array.isArray(answer)) return answer.length === 0 ? refused : E.right(answer)
    return fromObject(answer)
  } catch (error) {
    return failureResult(error)
  }
}

/**
 * @internal The same for the result of a look-up. A truthy value is the object, also `{}` and `[]`. Options, Eithers and tasks are
 * unwrapped. A prototype or a method that every object inherits was not found: `table['__proto__']`.
 */
export const fromLookup = (answer: unknown): Evaluation<unknown> => {
  if (typeof answer !== 'object' || answer === null) return fromAnswer(answer)
  if (isThenable(answer)) return toPromise(answer).then(fromLookup, failureResult)
  try {
    if (isPrototype(answer)) return refused
    return isErrorObject(answer) || isWrapped(answer) ? fromAnswer(answer) : E.right(answer)
  } catch (error) {
    return failureResult(error)
  }
}

/** A hook's answer, completed by `finish`, which must not throw: one promise where `andThen(fromAnswer(answer), ...)` takes two. */
const finishedResult = <A>(answer: unknown, finish: Finish<A>, about: A): Evaluation<unknown> => {
  if (isThenable(answer)) return finishedLate(answer, finish, about)
  const evaluation = fromAnswer(answer)
  return evaluation instanceof Promise
    ? concludedLate(evaluation, finish, about, answer)
    : finish(evaluation, about, answer)
}

type Finish<A> = (result: Result<unknown>, about: A, answer: unknown) => Result<unknown>

// Hooks of this package that return results, or promises of them
const exactHooks = new WeakSet<Function>()

/** @internal Marks a hook that returns results, or promises of them, so that `finisherOf` judges none again. */
export const returningResults = <F extends Function>(hook: F): F => {
  exactHooks.add(hook)
  return hook
}

const hookWords = new WeakMap<Function, string>()

/** @internal A hook with something around it that the audit shows. */
export const sayingWords = <F extends Function>(hook: F, words: string): F => {
  hookWords.set(hook, words)
  return hook
}

export const wordsOfHook = (hook: Function): ReadonlyArray<string> => {
  const words = hookWords.get(hook)
  return words === undefined ? [] : [words]
}

export const finisherOf = (hook: Function): typeof finishedResult =>
  exactHooks.has(hook) ? finishedExactly : finishedResult

const finishedExactly: typeof finishedResult = (answer, finish, about) =>
  // Safe: the hook is marked
  answer instanceof Promise ? finishedLate(answer, finish, about) : finish(answer as Result<unknown>, about, answer)

// apart: a function whose parameters a closure reads keeps them on the heap, also if it makes no closure
const finishedLate = <A>(answer: PromiseLike<unknown>, finish: Finish<A>, about: A): Evaluation<unknown> =>
  toPromise(answer).then(
    (late) => andThen(fromAnswer(late), (result) => finish(result, about, late)),
    (error: unknown) => finish(failureResult(error), about, undefined),
  )

const concludedLate = <A>(
  evaluation: Promise<Result<unknown>>,
  finish: Finish<A>,
  about: A,
  answer: unknown,
): Evaluation<unknown> => evaluation.then((result) => finish(result, about, answer))

/** @internal The same for an anonymous caller: `undefined` is no refusal, the caller stays anonymous. */
export const fromAnswerToAnonymous = (answer: unknown): Evaluation<unknown> => {
  if (answer === undefined) return anonymous
  return isThenable(answer) ? toPromise(answer).then(fromAnswerToAnonymous, failureResult) : fromAnswer(answer)
}

/** @internal Calls `ask` and reads its answer. An exception becomes a failure. */
export const answerTo = (
  ask: () => unknown,
  read: (answer: unknown) => Evaluation<unknown> = fromAnswer,
): Evaluation<unknown> => {
  try {
    return read(ask())
  } catch (error) {
    return failureResult(error)
  }
}

const failureResult = (error: unknown): Result<never> => E.left(failureOf(error))

const mistake = (message: string): Result<never> => E.left(raised(new TypeError(message)))

const fromObject = (answer: object): Evaluation<unknown> => {
  if ('next' in answer && typeof answer.next === 'function') return mistake(iteratorMessage)
  if (isErrorObject(answer)) return failureResult(answer)
  if (foundNothing(answer)) return refused
  return '_tag' in answer ? fromTagged(answer, answer._tag) : E.right(answer)
}

const fromTagged = (answer: object, tag: unknown): Evaluation<unknown> => {
  if (isAuthError(answer)) return hasExactKeys(answer) ? E.left(answer) : mistake(tagMessage(answer._tag))
  const payload = payloads.get(tag)
  if (payload === undefined) return E.right(answer)
  if (!isMadeByFpTs(answer, payload)) return mistake(tagMessage(String(tag)))
  const value: unknown = payload === NO_PAYLOAD ? undefined : Reflect.get(answer, payload)
  if (payload === 'left') return isAuthError(value) ? E.left(value) : refused
  const given = givenWith(answer)
  if (given === undefined) return fromAnswer(value)
  return andThen(fromAnswer(value), (result) => (E.isLeft(result) ? result : withEvidence(result, given)))
}

const NO_PAYLOAD = ''

// The key that fp-ts puts beside each `_tag`
const payloads: ReadonlyMap<unknown, string> = new Map([
  ['None', NO_PAYLOAD],
  ['Some', 'value'],
  ['Left', 'left'],
  ['Right', 'right'],
])

// A row of a database can hold a `_tag` that its owner wrote. fp-ts's own values have only these keys
const isMadeByFpTs = (answer: object, payload: string): boolean => {
  const ours = payload === NO_PAYLOAD ? '_tag' : payload
  for (const key of Reflect.ownKeys(answer)) if (key !== '_tag' && key !== ours) return false
  return isOwnData(answer, '_tag') && isOwnData(answer, ours)
}

// Otherwise it is data that happens to hold a `_tag`
const isWrapped = (answer: object): boolean => {
  if (!('_tag' in answer)) return false
  if (isAuthError(answer)) return hasExactKeys(answer)
  const payload = payloads.get(answer._tag)
  return payload !== undefined && isMadeByFpTs(answer, payload)
}

const isOwnData = (answer: object, key: string): boolean =>
  Object.getOwnPropertyDescriptor(answer, key)?.get === undefined && Object.hasOwn(answer, key)

const fromReturnedFunction = (answer: Function): Evaluation<unknown> => {
  if (isInheritedFunction(answer)) return refused
  // `AuthError.invalid` is a failure that can be called
  return isAuthError(answer) ? E.left(answer) : fromTask(answer)
}

// A function is always truthy, so only a Task of an Either is accepted
const fromTask = (task: Function): Evaluation<unknown> => {
  const yielded: unknown = Reflect.apply(task, undefined, [])
  return isThenable(yielded)
    ? toPromise(yielded).then((late) => answerTo(() => late, eitherOnly), failureResult)
    : eitherOnly(yielded)
}

const eitherOnly = (yielded: unknown): Evaluation<unknown> => {
  const tag: unknown = typeof yielded === 'object' && yielded !== null && '_tag' in yielded ? yielded._tag : undefined
  return tag === 'Left' || tag === 'Right' ? fromAnswer(yielded) : mistake(taskMessage)
}

const iteratorMessage = 'a hook returned an iterator, which is never run; is the hook a generator?'

const tagMessage = (tag: string): string =>
  `a hook returned an object whose _tag is "${tag}", but its keys are not those of such a value; if it is data, return an object without _tag`

const taskMessage =
  'a hook returned a function that gives no Either; return a value, a promise, an Option, an Either or a TaskEither'

type Falsy = false | 0 | 0n | '' | null | undefined | void | readonly []

/**
 * The principal in a hook's result. Promises, Option, Either and TaskEither are unwrapped; failures are left out. It is
 * the table at the top of this file, for the compiler.
 */
export type PrincipalFromAnswer<R> = 0 extends 1 & R
  ? unknown
  : R extends Falsy
    ? never
    : R extends AuthError
      ? never
      : R extends PromiseLike<infer A>
        ? PrincipalFromAnswer<A>
        : R extends O.None | E.Left<unknown>
          ? never
          : R extends O.Some<infer A>
            ? PrincipalFromAnswer<A>
            : R extends E.Right<infer A>
              ? PrincipalFromAnswer<A>
              : R extends (...args: never[]) => infer A
                ? Awaited<A> extends E.Either<unknown, infer B>
                  ? PrincipalFromAnswer<B>
                  : never
                : R

/** After `optional`, `f` is called with `undefined` too. This is the part of its result that stays anonymous. */
export type AnonymousOf<A, R> = undefined extends A ? Extract<Awaited<R>, undefined> : never

/** @internal A decoded value. The content of a Left is for no reader. */
export type Decoded<A = unknown> = E.Either<unknown, A>

/** @internal Decodes. Throws if a schema throws. The result is async if the schema is, and then may reject. */
export type Decode<A = unknown> = (value: unknown) => Decoded<A> | Promise<Decoded<A>>
