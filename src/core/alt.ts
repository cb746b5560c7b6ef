/**
 * Two alternatives: the second is tried when the first one fails. `anyOf` folds a list with it.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { isAnonymous, type Evaluation } from './Evaluation.js'
import * as AuthErrors from './AuthError.js'
import type { AuthError } from './AuthError.js'
import { make, type Authenticator, type Wrap } from './Authenticator.js'
import { anyOf, constantFailure, isSent, admitsAnonymous } from './Description.js'
import { declareFactory } from './hooks.js'
import { checkMember, checkOrder } from './members.js'

/**
 * Tries another authenticator if this one fails, and keeps both failures. After an outage or an exception, it does not try the
 * other. `altW` lets the principals differ.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { altW, apiKeyHeader, httpBearer } from 'koa-with-auth'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const key = apiKeyHeader({ authenticate: (_request, key) => key === 'k1' && { client: 'Acme' } })
 * const either = pipe(bearer, altW(() => key)) // Authenticator<{ user: string } | { client: string }>
 */
export const altW =
  <B>(that: () => Authenticator<B>) =>
  <A>(self: Authenticator<A>): Authenticator<A | B> => {
    const other = that()
    for (const member of [self, other]) checkMember('alt(...)', member)
    checkOrder('alt(...)', [self, other])
    // After a bad credential, an optional alternative does not admit a caller who sent no credential for it
    const isOptional = admitsAnonymous(other.description)
    const bare = constantFailure(other.description, AuthErrors.absent)
    const collect = (before: AuthError, after: E.Either<AuthError, B>): E.Either<AuthError, B> => {
      const second = isAnonymous(after) && before._tag !== 'absent' ? bare : after
      return E.isRight(second) ? second : E.left(AuthErrors.Semigroup.concat(before, second.left))
    }
    const goOn = (first: E.Either<AuthError, A>, request: Request): Evaluation<A | B> => {
      if (E.isRight(first) || AuthErrors.stops(first.left)) return first
      if (isOptional && first.left._tag !== 'absent' && !isSent(other.description, request)) {
        return collect(first.left, bare)
      }
      const second = other.evaluate(request)
      return second instanceof Promise ? second.then((late) => collect(first.left, late)) : collect(first.left, second)
    }
    const evaluate = (request: Request): Evaluation<A | B> => {
      const first = self.evaluate(request)
      return first instanceof Promise ? first.then((late) => goOn(late, request)) : goOn(first, request)
    }
    const again = (wrap: Wrap) => altW(() => wrap(other))(wrap(self))
    return make(anyOf([self.description, other.description]), evaluate, again)
  }

/**
 * `altW` for principals of one type.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { alt, apiKeyHeader, apiKeyQuery } from 'koa-with-auth'
 *
 * const authenticate = (_request: unknown, key: string) => key === 'k1' && { client: 'Acme' }
 * const key = pipe(apiKeyHeader({ authenticate }), alt(() => apiKeyQuery({ authenticate }))) // Authenticator<{ client: string }>
 */
export const alt: <P>(that: () => Authenticator<P>) => (self: Authenticator<P>) => Authenticator<P> = altW

declareFactory('altW', altW)
