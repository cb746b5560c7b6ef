/**
 * `describedAs`: the way back from fp-ts's own combinators, which return a bare function without a description.
 */
import * as E from 'fp-ts/lib/Either.js'
import type * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import type { Request } from 'koa'
import { answerTo, fromAnswer, fromAnswerToAnonymous, type AnonymousOf, type PrincipalFromAnswer } from './Answer.js'
import type { AuthError } from './AuthError.js'
import { concluding, isAuthenticator, make, type Authenticator } from './Authenticator.js'
import { admitsAnonymous } from './Description.js'
import { checkMember, declareFactory } from './misuse.js'

/**
 * Gives a bare ReaderTaskEither, as fp-ts's own combinators return it, the description of the authenticator that it was
 * made from. If that one can be sent by a browser itself, so can this.
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
  if (!isAuthenticator(original)) throw new TypeError('describedAs(a)(rte): the first is no authenticator')
  const { description } = original
  const conclude = concluding(description)
  const isOptional = admitsAnonymous(description)
  const read = isOptional ? fromAnswerToAnonymous : fromAnswer
  return <P>(
    rte: RTE.ReaderTaskEither<Request, AuthError, P>,
  ): Authenticator<PrincipalFromAnswer<P> | AnonymousOf<O, P>> => {
    checkMember('describedAs(a)(rte)', rte)
    const ask = (request: Request): unknown => (isOptional ? anonymousBare(rte(request)) : rte(request))
    // Safe: `fromAnswer` lets through exactly what `PrincipalFromAnswer` computes, and an anonymous caller where `original` does
    return make(description, (request) => answerTo(() => ask(request), conclude, request, read)) as Authenticator<
      PrincipalFromAnswer<P> | AnonymousOf<O, P>
    >
  }
}

// A Right of nothing is an anonymous caller, where such are admitted
const anonymousBare = async (task: () => Promise<E.Either<AuthError, unknown>>): Promise<unknown> => {
  const result = await task()
  return E.isRight(result) && result.right === undefined ? undefined : () => Promise.resolve(result)
}

declareFactory('describedAs', describedAs)
