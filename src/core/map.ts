/**
 * How to change the principal: `map` takes a function of the principal, and `flatMap` takes a hook that may refuse it. `describedAs`
 * changes the description of an authenticator.
 */
import * as E from 'fp-ts/lib/Either.js'
import type * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import type { Request } from './Request.js'
import type { AuthError } from './AuthError.js'
import { changed, combined, fromFunction, isAuthenticator, make, nodeOf, readerOf } from './Authenticator.js'
import type { Authenticator, Change, Decide, Halves } from './Authenticator.js'
import { admitsAnonymous, refuseObjects, withChallenges, wrappedBy } from './Description.js'
import { accept } from './Evidence.js'
import { askHook, evidenceFor, finishingHookResult } from './Exchange.js'
import {
  andThen,
  anonymous,
  answerTo,
  failureOf,
  fromAnswer,
  fromAnswerToAnonymous,
  isAnonymous,
  isThenable,
} from './Result.js'
import type { AnonymousOf, Evaluation, PrincipalFromAnswer, Result } from './Result.js'
import { functionName } from './functionName.js'
import { checkMember, checkHook, declareFactories } from './options.js'

/** A principal: no type that may be `false`, `null` or `undefined`. */
export type Principal = object | string | number | bigint | symbol | true

// A promise is truthy, whatever it resolves to
type NotAPromise<B> = B extends PromiseLike<unknown> ? never : unknown

/** @internal An authenticator with other principals, or other failures. */
export const onSuccess = (
  self: Authenticator<unknown>,
  change: Change,
  failed?: (failure: E.Left<AuthError>) => Result<unknown>,
): Authenticator<unknown> => continued(fromFunction(self), (member) => changed(member, change, failed))

/**
 * Changes the principal with a function. The result of `f` is the new principal, unchanged: an Option stays an Option. `f` is not
 * called for an anonymous caller, who stays anonymous. If the result type of `f` may be `false`, `null`, `undefined` or a promise,
 * it does not compile. Such a result is a bug, and so is an exception of `f`: the failure is `raised`. To refuse, or to wait, use
 * `flatMap`.
 *
 * It is a functor: `map(identity)` changes nothing, and `map(g)` after `map(f)` is `map` of `g` after `f`.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { httpBearer } from 'koa-with-auth'
 * import { map } from 'koa-with-auth/fp'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const name = pipe(bearer, map(({ user }) => user)) // Authenticator<string>
 */
export function map<A, B extends Principal>(
  f: (principal: Exclude<A, undefined>) => B & NotAPromise<B>,
): (self: Authenticator<A>) => Authenticator<B | Extract<A, undefined>>
export function map<A, B extends Principal>(
  f: (principal: A) => B & NotAPromise<B>,
): (self: Authenticator<A>) => Authenticator<B>
export function map(f: (principal: never) => unknown): (self: Authenticator<unknown>) => Authenticator<unknown> {
  checkHook('map(f)', f, 1)
  return (self) => {
    checkMember('map(f)(a)', self)
    const mistake = (error: unknown) => E.left(withChallenges(self.description, failureOf(error)))
    return onSuccess(self, (result) => {
      if (result.right === undefined && isAnonymous(result)) return result
      try {
        // Safe: `self` puts the argument of `f` on the right
        const principal = f(result.right as never)
        if (!principal || isThenable(principal)) return mistake(new TypeError(noPrincipal(principal)))
        return E.right(principal)
      } catch (error) {
        return mistake(error)
      }
    })
  }
}

const noPrincipal = (returned: unknown): string =>
  `map(f): f returned ${returned ? 'a promise' : 'a falsy value'}, not a principal; to wait for one or to refuse, use flatMap(f)`

/**
 * Changes the principal with a hook. A falsy result is refused, a promise is awaited, and an Option or Either is
 * unwrapped. If the hook throws, the failure is `raised`. After `optional`, the hook is called with `undefined` for an
 * anonymous caller. If it returns `undefined`, the caller stays anonymous.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { httpBearer } from 'koa-with-auth'
 * import { flatMap } from 'koa-with-auth/fp'
 *
 * const users = new Map([['anna', { name: 'anna', active: true }]])
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && 'anna' })
 * const user = pipe(bearer, flatMap(async (id) => users.get(id))) // an id that has no user is a 401
 */
export const flatMap = <A, B>(f: (principal: A) => B) => {
  checkHook('flatMap(f)', f, 1)
  const words = `flatMap ${functionName(f)}`
  return (self: Authenticator<A>): Authenticator<PrincipalFromAnswer<B> | AnonymousOf<A, B>> => {
    checkMember('flatMap(f)(a)', self)
    // The cross-site check has run in `self`, which knows the alternative that passed
    const finishResult = finishingHookResult(fromFunction(self).description, false)
    const check: Change = (result, request) => {
      // Safe: `self` puts an A on the right
      const ask = (): unknown => f(result.right as A)
      if (!isAnonymous(result)) return andThen(answerTo(ask), (answer) => finishResult(answer, request))
      return andThen(answerTo(ask, fromAnswerToAnonymous), (answer) => finishResult(answer, request))
    }
    const checked = continued(fromFunction(self), (member) => {
      const { description, decide } = changed(member, check)
      return { description: wrappedBy(description, words, {}, f), decide }
    })
    // Safe: see `authenticator`; an anonymous caller stays anonymous
    return checked as Authenticator<PrincipalFromAnswer<B> | AnonymousOf<A, B>>
  }
}

/**
 * fp-ts's own combinators return a bare ReaderTaskEither. This adds the description of the authenticator that it was made from. If
 * browsers send the credential of that authenticator by themselves, the cross-site check also runs for the result.
 *
 * @example
 * import * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { httpBearer } from 'koa-with-auth'
 * import { describedAs } from 'koa-with-auth/fp'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const name = pipe(bearer, RTE.map(({ user }) => user), describedAs(bearer))
 */
export const describedAs = <O>(original: Authenticator<O>) => {
  checkMember('describedAs(a)', original)
  if (!isAuthenticator(original))
    throw new TypeError('describedAs(a)(rte): the first argument must be an authenticator')
  const { description } = original
  refuseObjects('describedAs(a)(rte)', description, 'withAuth(describedAs(a)(rte), owned(...))')
  const finishResult = finishingHookResult(description)
  const isOptional = admitsAnonymous(description)
  return <P>(
    rte: RTE.ReaderTaskEither<Request, AuthError, P>,
  ): Authenticator<PrincipalFromAnswer<P> | AnonymousOf<O, P>> => {
    checkMember('describedAs(a)(rte)', rte)
    const ask = (request: Request): Evaluation<unknown> =>
      isOptional ? fromOptional(() => rte(request)()) : answerTo(() => rte(request))
    const decide: Decide = (attempt) => {
      askHook(attempt)
      return andThen(ask(attempt.request), (answer) => {
        const result = finishResult(answer, attempt.request)
        return E.isLeft(result) ? result : accept(result.right, evidenceFor(attempt, result, 'last'))
      })
    }
    // Safe: `fromAnswer` lets through exactly the type that `PrincipalFromAnswer` computes, and anonymous callers where `original` does
    return make(wrappedBy(description, 'describedAs'), decide, readerOf(original)) as Authenticator<
      PrincipalFromAnswer<P> | AnonymousOf<O, P>
    >
  }
}

// After `optional`, a Right of undefined is an anonymous caller: fp-ts's own combinators drop the mark that says so
const fromOptional = async (task: () => Promise<Result<unknown>>): Promise<Result<unknown>> => {
  try {
    const result = await task()
    return E.isRight(result) && result.right === undefined ? anonymous : await fromAnswer(() => result)
  } catch (error) {
    return E.left(failureOf(error))
  }
}

declareFactories({ map, flatMap, describedAs })

/**
 * @internal Continues after the decision of an authenticator. If that is of one credential, so is the result: `throttled` goes
 * around both. Otherwise it goes around each credential inside.
 */
const continued = (
  self: Authenticator<unknown>,
  assemble: (member: Authenticator<unknown>) => Halves,
): Authenticator<unknown> => {
  if (nodeOf(self)?._tag === 'Combined') return combined([self] as const, ([member]) => assemble(member))
  const { description, decide } = assemble(self)
  return make(description, decide, readerOf(self))
}
