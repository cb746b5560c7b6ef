/**
 * What a hook may answer, and how every answer becomes an `Either`: the only place that knows about truthiness.
 *
 * | answer                                          | verdict                                             |
 * |-------------------------------------------------|-----------------------------------------------------|
 * | `false 0 -0 0n NaN '' null undefined`, `[]`      | `invalid` (spec 5.1.2)                              |
 * | any other value                                 | the principal (spec 5.1.1)                          |
 * | a promise, or anything with a `then`             | awaited, then tested again; a rejection is `raised`, of an `UnavailableError` `unavailable` |
 * | `None`, `Left`                                  | `invalid`; a `Left` that holds an AuthError: that    |
 * | an AuthError                                    | that failure, as if it stood on the left            |
 * | `Some`, `Right`                                 | unwrapped and tested again                          |
 * | a function (Task, TaskEither, a bare RTE's answer) | run; must yield an Either, else `raised`          |
 * | an iterator (of a generator that nobody runs)   | `raised`                                            |
 */
import { either as E } from 'fp-ts'
import type { option as O } from 'fp-ts'
import { invalid, isAuthError, raised, type AuthError } from './AuthError.js'
import { failureOf } from './UnavailableError.js'

/** What evaluating gives: at once where nothing was asynchronous. A promise of it never rejects. */
export type Evaluation<P> = E.Either<AuthError, P> | Promise<E.Either<AuthError, P>>

type Falsy = false | 0 | 0n | '' | null | undefined | void | readonly []

/** The principal behind a hook's answer: promises, Option, Either and TaskEither unwrapped, what fails left out. */
export type PrincipalOf<R> = 0 extends 1 & R
  ? unknown
  : R extends Falsy
    ? never
    : R extends AuthError
      ? never
      : R extends PromiseLike<infer A>
        ? PrincipalOf<A>
        : R extends O.None | E.Left<unknown>
          ? never
          : R extends O.Some<infer A>
            ? PrincipalOf<A>
            : R extends E.Right<infer A>
              ? PrincipalOf<A>
              : R extends (...args: never[]) => infer A
                ? Awaited<A> extends E.Either<unknown, infer B>
                  ? PrincipalOf<B>
                  : never
                : R

/** What an answer about nobody (`optional`) leaves of nobody: `undefined`, where it can be that. */
export type NobodyOf<A, R> = undefined extends A ? Extract<Awaited<R>, undefined> : never

/** @internal The failure of an answer that is no principal. */
export const refused: E.Either<AuthError, never> = E.left(invalid)

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
    if (typeof answer === 'function') return fromTask(answer, conclude, from)
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
 * replaced: what that answers nobody knows.
 */
export const adopted = (answer: unknown): Promise<unknown> =>
  answer instanceof Promise && answer.then === Promise.prototype.then
    ? answer
    : new Promise((resolve) => resolve(answer))

/** @internal Nobody: what `optional` passes where no credential was sent. */
export const nobody: E.Either<AuthError, undefined> = E.right(undefined)

const madeOfNobody = new WeakSet<object>([nobody])

/** @internal Whether a result is nobody, or what a `map` made of nobody. */
export const isNobody = (result: object): boolean => madeOfNobody.has(result)

/** @internal Remembers of a result that it was made of nobody. */
export const ofNobody = <R extends E.Either<AuthError, unknown>>(result: R): R => {
  if (E.isRight(result)) madeOfNobody.add(result)
  return result
}

/** @internal The same for what was asked about nobody: there `undefined` is no refusal, but nobody still. */
export const fromAnswerAboutNobody: typeof fromAnswer = (
  answer: unknown,
  conclude: Conclude<never> = asItIs,
  from?: unknown,
): Evaluation<unknown> => {
  if (answer === undefined) return nobody
  // Safe: `from` is what `conclude` is asked with
  if (!isThenable(answer)) return fromAnswer(answer, conclude as Conclude<unknown>, from)
  return adopted(answer).then(
    (value) => fromAnswerAboutNobody(value, conclude as Conclude<unknown>, from),
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
  if (!('_tag' in answer)) return conclude(E.right(answer), from)
  // a failure that was not put on the left is one all the same
  if (isAuthError(answer)) return conclude(E.left(answer), from)
  switch (answer._tag) {
    case 'None':
      return conclude(refused, from)
    case 'Some':
      return fromAnswer('value' in answer && answer.value, conclude, from)
    case 'Right':
      return fromAnswer('right' in answer && answer.right, conclude, from)
    case 'Left':
      return conclude('left' in answer && isAuthError(answer.left) ? E.left(answer.left) : refused, from)
    default:
      return conclude(E.right(answer), from)
  }
}

// A function is truthy, whatever it would answer: only a Task of an Either can have been meant (SECURITY A-31)
const fromTask = (task: Function, conclude: Conclude<unknown>, from: unknown): Evaluation<unknown> => {
  const yielded: unknown = Reflect.apply(task, undefined, [])
  const eitherOnly = (value: unknown): unknown => (isEither(value) ? value : E.left(raised(new TypeError(noEither))))
  return isThenable(yielded)
    ? fromAnswer(adopted(yielded).then(eitherOnly), conclude, from)
    : fromAnswer(eitherOnly(yielded), conclude, from)
}

const isEither = (u: unknown): boolean =>
  typeof u === 'object' && u !== null && '_tag' in u && (u._tag === 'Left' || u._tag === 'Right')

const noIterator = 'an authenticator answered an iterator, which nobody runs; is its hook a generator?'

const noEither =
  'an authenticator answered a function that yields no Either; answer a value, a promise, an Option, an Either or a TaskEither'
