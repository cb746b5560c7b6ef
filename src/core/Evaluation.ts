/**
 * The result of evaluating an authenticator: an Either if nothing in it is async, otherwise a promise that never
 * rejects.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { AuthError } from './AuthError.js'
import { anonymousMark } from './marks.js'

/** A failure or a principal. */
export type Result<P> = E.Either<AuthError, P>

/** A result, or a promise of it that never rejects. */
export type Evaluation<P> = Result<P> | Promise<Result<P>>

/**
 * @internal Calls `f` with the result, sync if the evaluation is. If it is async, `f` must not throw. `altW`, `allOf`,
 * `firstPresent` and `optional` have this code inline, because the call would cost 2 to 4 % of a sync decision.
 */
export const andThen = <A, B>(evaluation: Evaluation<A>, f: (result: Result<A>) => Evaluation<B>): Evaluation<B> =>
  evaluation instanceof Promise ? evaluation.then(f) : f(evaluation)

/** @internal A Right with a mark: no credential was sent. The mark is not enumerable, so the Right equals any other. */
const passAnonymous = <A>(right: A): Result<A> =>
  Object.freeze(Object.defineProperty(E.right(right), anonymousMark, { value: true }))

/** @internal The result of `optional` if no credential was sent. */
export const anonymous: Result<undefined> = passAnonymous(undefined)

/** @internal Whether no credential was sent for a result. `flatMap` keeps this. */
export const isAnonymous = (result: Result<unknown>): boolean => anonymousMark in result

/** @internal Marks a result that was made from an anonymous one. */
export const keepAnonymous = <A>(result: Result<A>): Result<A> =>
  E.isLeft(result) || isAnonymous(result) ? result : passAnonymous(result.right)
