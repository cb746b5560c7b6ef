/**
 * The type of the principal behind what a hook answers: the table of `fromAnswer.ts`, for the compiler.
 */
import type * as E from 'fp-ts/lib/Either.js'
import type * as O from 'fp-ts/lib/Option.js'
import type { AuthError } from './AuthError.js'

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

/** Behind `optional`, `f` is called with `undefined` too; this is the part of its result that stays anonymous. */
export type AnonymousOf<A, R> = undefined extends A ? Extract<Awaited<R>, undefined> : never
