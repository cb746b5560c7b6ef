/**
 * The type of the principal that a hook's result leads to: the table of `fromAnswer.ts`, for the compiler.
 */
import type * as E from 'fp-ts/lib/Either.js'
import type * as O from 'fp-ts/lib/Option.js'
import type { AuthError } from './AuthError.js'

type Falsy = false | 0 | 0n | '' | null | undefined | void | readonly []

/** The principal in a hook's result. Promises, Option, Either and TaskEither are unwrapped; failures are left out. */
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
