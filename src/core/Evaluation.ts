/**
 * What evaluating an authenticator gives: an Either, sync while nothing in it is async, else a promise that never rejects.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { AuthError } from './AuthError.js'
import { anonymousMark } from './marks.js'

/** Why not, or who. */
export type Result<P> = E.Either<AuthError, P>

/** What evaluating gives: an Either where nothing was async, else a promise of it that never rejects. */
export type Evaluation<P> = Result<P> | Promise<Result<P>>

/**
 * @internal Goes on with a result: sync where the evaluation is. `f` must not throw where it is not. `altW`, `allOf`,
 * `firstPresent` and `optional` write it out: there the shared call costs 2 to 4 % of a sync decision.
 */
export const andThen = <A, B>(evaluation: Evaluation<A>, f: (result: Result<A>) => Evaluation<B>): Evaluation<B> =>
  evaluation instanceof Promise ? evaluation.then(f) : f(evaluation)

/** @internal A Right with a mark that says that no credential was sent; not enumerable, so that it equals any other Right. */
const passAnonymous = <A>(right: A): Result<A> =>
  Object.freeze(Object.defineProperty(E.right(right), anonymousMark, { value: true }))

/** @internal What `optional` lets pass where no credential was sent. */
export const anonymous: Result<undefined> = passAnonymous(undefined)

/** @internal Whether no credential was sent for a result, whatever `flatMap` made of it since. */
export const isAnonymous = (result: Result<unknown>): boolean => anonymousMark in result

/** @internal Marks a result that was made of an anonymous one. */
export const keepAnonymous = <A>(result: Result<A>): Result<A> =>
  E.isLeft(result) || isAnonymous(result) ? result : passAnonymous(result.right)
