/**
 * What a hook may answer, and how every answer becomes an `Either`: the only place that knows about truthiness.
 *
 * | answer                                          | verdict                                             |
 * |-------------------------------------------------|-----------------------------------------------------|
 * | `false 0 -0 0n NaN '' null undefined`, `[]`      | `invalid` (spec 5.1.2)                              |
 * | any other value                                 | the principal (spec 5.1.1)                          |
 * | a promise, or anything with a `then`             | awaited, then tested again; a rejection is `raised` |
 * | `None`, `Left`                                  | `invalid`; a `Left` that holds an AuthError: that    |
 * | `Some`, `Right`                                 | unwrapped and tested again                          |
 * | a function (Task, TaskEither, a bare RTE's answer) | run; must yield an Either, else `raised`          |
 */
import { either as E } from 'fp-ts'
import type { option as O } from 'fp-ts'
import { invalid, isAuthError, raised, type AuthError } from './AuthError.js'

/** What evaluating gives: at once where nothing was asynchronous. A promise of it never rejects. */
export type Evaluation<P> = E.Either<AuthError, P> | Promise<E.Either<AuthError, P>>

type Falsy = false | 0 | 0n | '' | null | undefined | void | readonly []

/** The principal behind a hook's answer: promises, Option, Either and TaskEither unwrapped, what fails left out. */
export type PrincipalOf<R> = 0 extends 1 & R
  ? unknown
  : R extends Falsy
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

/** @internal The failure of an answer that is no principal. */
export const refused: E.Either<AuthError, never> = E.left(invalid)

/** Turns a hook's answer into an Either, at once where the answer is no promise and no function. Never throws. */
export const fromAnswer = (answer: unknown): Evaluation<unknown> => {
  if (!answer) return refused
  if (typeof answer !== 'object' && typeof answer !== 'function') return E.right(answer)
  try {
    if ('then' in answer && typeof answer.then === 'function') return awaited(answer, fromAnswer)
    if (typeof answer === 'function') return fromTask(answer)
    if (Array.isArray(answer)) return answer.length === 0 ? refused : E.right(answer)
    return fromObject(answer)
  } catch (error) {
    return E.left(raised(error))
  }
}

const fromObject = (answer: object): Evaluation<unknown> => {
  if (!('_tag' in answer)) return E.right(answer)
  switch (answer._tag) {
    case 'None':
      return refused
    case 'Some':
      return fromAnswer('value' in answer && answer.value)
    case 'Right':
      return fromAnswer('right' in answer && answer.right)
    case 'Left':
      return 'left' in answer && isAuthError(answer.left) ? E.left(answer.left) : refused
    default:
      return E.right(answer)
  }
}

const awaited = (promise: object, andThen: (value: unknown) => Evaluation<unknown>): Evaluation<unknown> =>
  Promise.resolve(promise).then(andThen, (error: unknown) => E.left(raised(error)))

// A function is truthy, whatever it would answer: only a Task of an Either can have been meant (SECURITY A-31)
const fromTask = (task: Function): Evaluation<unknown> => {
  const yielded: unknown = Reflect.apply(task, undefined, [])
  return typeof yielded === 'object' && yielded !== null && 'then' in yielded
    ? awaited(yielded, fromYielded)
    : fromYielded(yielded)
}

const fromYielded = (yielded: unknown): Evaluation<unknown> =>
  typeof yielded === 'object' &&
  yielded !== null &&
  '_tag' in yielded &&
  (yielded._tag === 'Left' || yielded._tag === 'Right')
    ? fromAnswer(yielded)
    : E.left(raised(new TypeError(noEither)))

const noEither =
  'an authenticator answered a function that yields no Either; answer a value, a promise, an Option, an Either or a TaskEither'
