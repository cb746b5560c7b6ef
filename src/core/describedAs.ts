/**
 * `describedAs` gives the result of fp-ts's own combinators a description again. They return a bare function without one.
 */
import * as E from 'fp-ts/lib/Either.js'
import type * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import type { Request } from 'koa'
import type { AuthError } from './AuthError.js'
import { isAuthenticator, make, type Authenticator } from './Authenticator.js'
import { concluding } from './concluding.js'
import { admitsAnonymous } from './Description.js'
import { andThen, anonymous, type Evaluation, type Result } from './Evaluation.js'
import { answerTo, fromAnswer } from './fromAnswer.js'
import { declareFactory } from './hooks.js'
import { checkMember } from './members.js'
import type { AnonymousOf, PrincipalFromAnswer } from './PrincipalFromAnswer.js'
import { failureOf } from './UnavailableError.js'

/**
 * fp-ts's own combinators return a bare ReaderTaskEither. This adds the description of the authenticator that it was made from. If
 * browsers send the credential of that authenticator by themselves, the cross-site check also runs for the result.
 *
 * @example
 * import * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { describedAs, httpBearer } from 'koa-with-auth'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const name = pipe(bearer, RTE.map(({ user }) => user), describedAs(bearer))
 */
export const describedAs = <O>(original: Authenticator<O>) => {
  checkMember('describedAs(a)', original)
  if (!isAuthenticator(original))
    throw new TypeError('describedAs(a)(rte): the first argument must be an authenticator')
  const { description } = original
  const conclude = concluding(description)
  const isOptional = admitsAnonymous(description)
  return <P>(
    rte: RTE.ReaderTaskEither<Request, AuthError, P>,
  ): Authenticator<PrincipalFromAnswer<P> | AnonymousOf<O, P>> => {
    checkMember('describedAs(a)(rte)', rte)
    const ask = (request: Request): Evaluation<unknown> =>
      isOptional ? fromOptional(() => rte(request)()) : answerTo(() => rte(request))
    // Safe: `fromAnswer` lets through exactly what `PrincipalFromAnswer` computes, and anonymous callers where `original` does
    return make(description, (request) =>
      andThen(ask(request), (result) => conclude(result, request)),
    ) as Authenticator<PrincipalFromAnswer<P> | AnonymousOf<O, P>>
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

declareFactory('describedAs', describedAs)
