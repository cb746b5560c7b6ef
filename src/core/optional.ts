/**
 * `optional` and `lenient` also admit anonymous callers. Their principal is `undefined`, not an Option, which would be
 * truthy.
 *
 * Both refuse a write that another site made a browser send, and a caller who is not allowed. An outage never makes a caller
 * anonymous. A plain function is never absent, so `optional` of a function does not admit anonymous callers.
 */
import * as E from 'fp-ts/lib/Either.js'
import { showObjects, type Attempt } from './Exchange.js'
import { anonymous, type Result } from './Result.js'
import { leavesAnonymous, type AuthError } from './AuthError.js'
import { combined, decideOf, fromFunction } from './Authenticator.js'
import type { Authenticator, AuthenticatorLike, Halves, PrincipalOf } from './Authenticator.js'
import { checkMember, declareFactories } from './options.js'

const unless =
  (factory: string, passes: (error: AuthError) => boolean, lenient: boolean) =>
  <M extends AuthenticatorLike>(member: M): Authenticator<PrincipalOf<M> | undefined> => {
    checkMember(`${factory}(a)`, member)
    const excuse = (result: Result<unknown>, { request, objects }: Attempt): Result<unknown> => {
      if (E.isRight(result) || !passes(result.left)) return result
      showObjects(request, objects)
      return anonymous
    }
    const optionally = ([self]: readonly [Authenticator<unknown>]): Halves => {
      const decide = decideOf(self)
      return {
        description: { _tag: 'Optional', member: self.description, lenient },
        decide: (attempt) => {
          const evaluation = decide(attempt)
          return evaluation instanceof Promise
            ? evaluation.then((late) => excuse(late, attempt))
            : excuse(evaluation, attempt)
        },
      }
    }
    // Safe: the result is a principal of `member`, or anonymous
    return combined([fromFunction(member)] as const, optionally) as Authenticator<PrincipalOf<M> | undefined>
  }

/**
 * Lets anonymous callers in. Without a credential, the principal is `undefined`. So it is with a session whose user is unknown or
 * inactive, because its cookie stays in the browser, and no page could be read with it. A bad credential is refused; in a list, also one
 * of another alternative. In a list, it must be the last member, because no later member would be tried. Otherwise it is a
 * TypeError.
 *
 * @example
 * import { httpBearer, optional, withAuth } from 'koa-with-auth'
 *
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const guard = withAuth(optional(user)) // ctx.request.auth: { user: string } | undefined
 */
export const optional: <M extends AuthenticatorLike>(member: M) => Authenticator<PrincipalOf<M> | undefined> = unless(
  'optional',
  leavesAnonymous,
  false,
)

/**
 * Like `optional`, but malformed, invalid and expired credentials also count as absent.
 *
 * @example
 * import { httpBearer } from 'koa-with-auth'
 * import { lenient } from 'koa-with-auth/fp'
 *
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const perhaps = lenient(user) // a caller with an old token is anonymous, not refused
 */
export const lenient: <M extends AuthenticatorLike>(member: M) => Authenticator<PrincipalOf<M> | undefined> = unless(
  'lenient',
  ({ _tag }) => _tag === 'absent' || _tag === 'malformed' || _tag === 'invalid' || _tag === 'expired',
  true,
)

declareFactories({ optional, lenient })
