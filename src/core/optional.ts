/**
 * Anonymous callers are admitted, too: no credential passes as `undefined`, never as an Option, which would be truthy.
 *
 * `optional` refuses bad credentials; `lenient` takes them for none. A write that another site made a browser send, and who
 * is not allowed, are refused by both, and an outage is never taken for an anonymous caller. A plain function is never absent, so
 * `optional` of one does not admit anonymous callers.
 */
import * as E from 'fp-ts/lib/Either.js'
import { anonymous, type Evaluation } from './Evaluation.js'
import type { AuthError } from './AuthError.js'
import { fromFunction, make, type Authenticator, type AuthenticatorLike, type PrincipalOf } from './Authenticator.js'
import { declareFactory } from './hooks.js'
import { checkMember } from './members.js'

const unless =
  (factory: string, passes: (error: AuthError) => boolean, lenient: boolean) =>
  <M extends AuthenticatorLike>(member: M): Authenticator<PrincipalOf<M> | undefined> => {
    checkMember(`${factory}(a)`, member)
    const self = fromFunction(member)
    const { description, evaluate } = self
    const excuse = <P>(result: E.Either<AuthError, P>): E.Either<AuthError, P | undefined> =>
      E.isLeft(result) && passes(result.left) ? anonymous : result
    return make(
      { _tag: 'Optional', member: description, lenient },
      (request): Evaluation<PrincipalOf<M> | undefined> => {
        const evaluation = evaluate(request)
        return evaluation instanceof Promise ? evaluation.then((late) => excuse(late)) : excuse(evaluation)
      },
      (wrap) => unless(factory, passes, lenient)(wrap(self)),
    )
  }

/**
 * Admits anonymous callers: without a credential the principal is `undefined`; a bad credential is refused. In a list it must be
 * last, else TypeError: no later member would be asked. In a list, a bad credential of another alternative is refused, too.
 *
 * @example
 * import { httpBearer, optional, withAuth } from 'koa-with-auth'
 *
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const guard = withAuth(optional(user)) // ctx.request.auth: { user: string } | undefined
 */
export const optional: <M extends AuthenticatorLike>(member: M) => Authenticator<PrincipalOf<M> | undefined> = unless(
  'optional',
  ({ _tag }) => _tag === 'absent',
  false,
)

/**
 * `optional`, and malformed, invalid and expired credentials count as absent, too.
 *
 * @example
 * import { httpBearer, lenient } from 'koa-with-auth'
 *
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const perhaps = lenient(user) // a caller with an old token is anonymous, not refused
 */
export const lenient: <M extends AuthenticatorLike>(member: M) => Authenticator<PrincipalOf<M> | undefined> = unless(
  'lenient',
  ({ _tag }) => _tag === 'absent' || _tag === 'malformed' || _tag === 'invalid' || _tag === 'expired',
  true,
)

declareFactory('optional', optional)
declareFactory('lenient', lenient)
