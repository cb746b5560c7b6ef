/**
 * What a hook may answer, and how every answer becomes an `Either`: the only place that knows about truthiness.
 *
 * | answer                                          | verdict                                             |
 * |-------------------------------------------------|-----------------------------------------------------|
 * | `false 0 -0 0n NaN '' null undefined`            | `invalid` (spec 5.1.2)                              |
 * | what found nothing: `[]`, `{}` (plain or null prototype, no own keys), a prototype | `invalid`        |
 * | an Error, of any realm                          | `raised`, as if it had been thrown                  |
 * | any other value                                 | the principal (spec 5.1.1)                          |
 * | a promise, or anything with a `then`             | awaited, then tested again; a rejection is `raised`, of an `UnavailableError` `unavailable` |
 * | `None`, `Left`                                  | `invalid`; a `Left` that holds an AuthError: that    |
 * | an AuthError                                    | that failure, as if it were on the left             |
 * | `Some`, `Right`                                 | unwrapped and tested again                          |
 * | an object with one of these tags and other keys than fp-ts or this layer gives it | `raised`: data can hold a `_tag`, too |
 * | a function (Task, TaskEither, a bare RTE's answer) | run; must yield an Either, else `raised`          |
 * | an iterator (of a generator that is not run)    | `raised`                                            |
 */
import * as E from 'fp-ts/lib/Either.js'
import type * as O from 'fp-ts/lib/Option.js'
import { hasExactKeys, invalid, is as isAuthError, raised, type AuthError } from './AuthError.js'
import { deepFreeze } from './freeze.js'
import { foundNothing, isErrorObject, isInheritedFunction } from './noPrincipal.js'
import { failureOf } from './UnavailableError.js'

/** What evaluating gives: at once where nothing was asynchronous. A promise of it never rejects. */
export type Evaluation<P> = E.Either<AuthError, P> | Promise<E.Either<AuthError, P>>

type Falsy = false | 0 | 0n | '' | null | undefined | void | readonly []

/** The principal behind a hook's answer: promises, Option, Either and TaskEither unwrapped, what fails left out. */
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

/** What an answer about an anonymous caller (`optional`) leaves of it: `undefined`, where it can be that. */
export type AnonymousOf<A, R> = undefined extends A ? Extract<Awaited<R>, undefined> : never

/** @internal The failure of an answer that is no principal. */
export const refused: E.Either<AuthError, never> = deepFreeze(E.left(invalid))

/** How an evaluation ends, once the answer is known; `from` is what it was asked with. */
export type Conclude<Q> = (result: E.Either<AuthError, unknown>, from: Q) => E.Either<AuthError, unknown>

const asItIs: Conclude<unknown> = (result) => result

/**
 * Turns a hook's answer into an Either, at once where the answer is no promise and no function, and concludes with it, so
 * that an asynchronous answer costs one promise. Never throws.
 */
export function fromAnswer(answer: unknown): Evaluation<unknown>
export function fromAnswer<Q>(answer: unknown, conclude: Conclude<Q>, from: Q): Evaluation<unknown>
export function fromAnswer(answer: unknown, conclude: Conclude<unknown> = asItIs, from?: unknown): Evaluation<unknown> {
  if (!answer) return conclude(refused, from)
  if (typeof answer !== 'object' && typeof answer !== 'function') return conclude(E.right(answer), from)
  try {
    if ('then' in answer && typeof answer.then === 'function') {
      return adopted(answer).then(
        (value) => fromAnswer(value, conclude, from),
        (error: unknown) => conclude(E.left(failureOf(error)), from),
      )
    }
    if (typeof answer === 'function') {
      return isInheritedFunction(answer) ? conclude(refused, from) : fromTask(answer, conclude, from)
    }
    if (Array.isArray(answer)) return conclude(answer.length === 0 ? refused : E.right(answer), from)
    return fromObject(answer, conclude, from)
  } catch (error) {
    return conclude(E.left(failureOf(error)), from)
  }
}

/** @internal Whether an answer is like a promise. A getter that throws is the answer's own, and is caught where it is read again. */
export const isThenable = (answer: unknown): answer is PromiseLike<unknown> => {
  try {
    return typeof answer === 'object' && answer !== null && 'then' in answer && typeof answer.then === 'function'
  } catch {
    return false
  }
}

/**
 * @internal A promise of what a promise-like answer comes to. One of Node's own is taken as it is, unless its `then` was
 * replaced: what that answers is unknown.
 */
export const adopted = (answer: unknown): Promise<unknown> =>
  answer instanceof Promise && answer.then === Promise.prototype.then
    ? answer
    : new Promise((resolve) => resolve(answer))

/** @internal An anonymous caller: what `optional` passes where no credential was sent. */
export const anonymous: E.Either<AuthError, undefined> = deepFreeze(E.right(undefined))

const madeOfAnonymous = new WeakSet<object>([anonymous])

/** @internal Whether a result is an anonymous caller, or what a `map` made of one. */
export const isAnonymous = (result: object): boolean => madeOfAnonymous.has(result)

/** @internal Remembers of a result that it was made of an anonymous caller. */
export const keepAnonymous = <R extends E.Either<AuthError, unknown>>(result: R): R => {
  if (E.isRight(result)) madeOfAnonymous.add(result)
  return result
}

/** @internal The same for what was asked about an anonymous caller: there `undefined` is no refusal, but still anonymous. */
export const fromAnswerToAnonymous: typeof fromAnswer = (
  answer: unknown,
  conclude: Conclude<never> = asItIs,
  from?: unknown,
): Evaluation<unknown> => {
  if (answer === undefined) return anonymous
  // Safe: `from` is what `conclude` is asked with
  if (!isThenable(answer)) return fromAnswer(answer, conclude as Conclude<unknown>, from)
  return adopted(answer).then(
    (value) => fromAnswerToAnonymous(value, conclude as Conclude<unknown>, from),
    (error: unknown) => conclude(E.left(failureOf(error)), from as never),
  )
}

/** @internal What asking comes to; an exception is `raised`. */
export const answerTo = <Q>(
  ask: () => unknown,
  conclude: Conclude<Q>,
  from: Q,
  read: typeof fromAnswer = fromAnswer,
): Evaluation<unknown> => {
  try {
    return read(ask(), conclude, from)
  } catch (error) {
    return conclude(E.left(failureOf(error)), from)
  }
}

const fromObject = (answer: object, conclude: Conclude<unknown>, from: unknown): Evaluation<unknown> => {
  if ('next' in answer && typeof answer.next === 'function') {
    return conclude(E.left(raised(new TypeError(noIterator))), from)
  }
  if (isErrorObject(answer)) return conclude(E.left(failureOf(answer)), from)
  if (foundNothing(answer)) return conclude(refused, from)
  return '_tag' in answer ? fromTagged(answer, answer._tag, conclude, from) : conclude(E.right(answer), from)
}

const fromTagged = (answer: object, tag: unknown, conclude: Conclude<unknown>, from: unknown): Evaluation<unknown> => {
  // a failure that was not put on the left is one all the same
  if (isAuthError(answer)) {
    return conclude(E.left(hasExactKeys(answer) ? answer : raised(new TypeError(strangeTag(answer._tag)))), from)
  }
  const payload = payloads.get(tag)
  if (payload === undefined) return conclude(E.right(answer), from)
  if (!isMadeByFpTs(answer, payload)) return conclude(E.left(raised(new TypeError(strangeTag(String(tag))))), from)
  const value: unknown = payload === none ? undefined : Reflect.get(answer, payload)
  if (payload !== 'left') return fromAnswer(value, conclude, from)
  return conclude(isAuthError(value) ? E.left(value) : refused, from)
}

const none = ''

// What fp-ts puts beside `_tag`
const payloads: ReadonlyMap<unknown, string> = new Map([
  ['None', none],
  ['Some', 'value'],
  ['Left', 'left'],
  ['Right', 'right'],
])

// A row of a database can hold a `_tag` that its owner wrote; fp-ts's own values have these keys and no other
const isMadeByFpTs = (answer: object, payload: string): boolean => {
  const keys = payload === none ? ['_tag'] : ['_tag', payload]
  return Reflect.ownKeys(answer).length === keys.length && keys.every((key) => isOwnData(answer, key))
}

const isOwnData = (answer: object, key: string): boolean =>
  Object.getOwnPropertyDescriptor(answer, key)?.get === undefined && Object.hasOwn(answer, key)

// A function is truthy, whatever it would answer: only a Task of an Either can have been meant
const fromTask = (task: Function, conclude: Conclude<unknown>, from: unknown): Evaluation<unknown> => {
  const yielded: unknown = Reflect.apply(task, undefined, [])
  const eitherOnly = (value: unknown): unknown => (isEither(value) ? value : E.left(raised(new TypeError(noEither))))
  return isThenable(yielded)
    ? fromAnswer(adopted(yielded).then(eitherOnly), conclude, from)
    : fromAnswer(eitherOnly(yielded), conclude, from)
}

const isEither = (u: unknown): boolean =>
  typeof u === 'object' && u !== null && '_tag' in u && (u._tag === 'Left' || u._tag === 'Right')

const noIterator = 'an authenticator answered an iterator, which is never run; is its hook a generator?'

const strangeTag = (tag: string): string =>
  `an authenticator answered an object whose _tag is "${tag}" and whose keys are not those of such a value; if it is data, answer a record without _tag`

const noEither =
  'an authenticator answered a function that yields no Either; answer a value, a promise, an Option, an Either or a TaskEither'
