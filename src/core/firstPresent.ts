/**
 * The first alternative whose credential is present decides. Unlike `anyOf`, it tries no later one.
 *
 * So a good key never hides a bad token before it, and the failure is that of the credential which the client sent. The credential
 * of a plain function always counts as present.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { skipped } from './allOf.js'
import type { Evaluation } from './Evaluation.js'
import * as AuthErrors from './AuthError.js'
import type { AuthError } from './AuthError.js'
import { isList, tagged, type Tagged } from './anyOf.js'
import { fromFunction, make } from './Authenticator.js'
import type { Authenticator, AuthenticatorLike, PrincipalOf, Wrap } from './Authenticator.js'
import type { AnyOf } from './Description.js'
import { declareFactory } from './hooks.js'
import { checkGroup, checkOrder } from './members.js'

/**
 * Tries the alternatives in order. The first one that is not absent decides. Given an object, it also reports which member passed.
 * A failure offers the challenges of all members. Throws a TypeError for groups that `anyOf` refuses.
 *
 * @example
 * import { apiKeyHeader, firstPresent, httpBearer } from 'koa-with-auth'
 *
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const key = apiKeyHeader({ authenticate: (_request, key) => key === 'k1' && { client: 'Acme' } })
 *
 * const strict = firstPresent([user, key]) // a wrong token is refused, whatever key is sent with it
 */
export function firstPresent<const L extends readonly [AuthenticatorLike, ...AuthenticatorLike[]]>(
  list: L,
): Authenticator<PrincipalOf<L[number]>>
export function firstPresent<const L extends Readonly<Record<string, AuthenticatorLike>>>(
  record: L,
): Authenticator<Tagged<L>>
export function firstPresent(
  group: ReadonlyArray<AuthenticatorLike> | Readonly<Record<string, AuthenticatorLike>>,
): Authenticator<unknown> {
  checkGroup('firstPresent', group)
  const members = isList(group) ? group.map((member) => fromFunction(member)) : tagged(group)
  checkOrder('firstPresent', members)
  const description: AnyOf = {
    _tag: 'AnyOf',
    members: members.map((member) => member.description),
    firstPresent: true,
  }

  const from = (at: number, before: ReadonlyArray<AuthError>, request: Request): Evaluation<unknown> => {
    const member = members[at]
    // a group has a member, so there is at least one failure
    if (member === undefined) return E.left({ ...AuthErrors.absent, branches: before })
    const goOn = (result: E.Either<AuthError, unknown>): Evaluation<unknown> => {
      if (E.isRight(result)) return result
      const error = result.left
      const branches = [...before, ...AuthErrors.branchesOf(error)]
      if (error._tag === 'absent') return from(at + 1, branches, request)
      // after an outage no other challenge is offered, because no caller can be let in now
      const behind = AuthErrors.stops(error) ? [] : description.members.slice(at + 1).flatMap(skipped)
      return E.left({ ...error, branches: [...branches, ...behind] })
    }
    const evaluation = member.evaluate(request)
    return evaluation instanceof Promise ? evaluation.then(goOn) : goOn(evaluation)
  }
  // Safe: there are as many members as before, at least one. Members of an object already report their names
  const again = (wrap: Wrap) =>
    firstPresent(members.map(wrap) as ReadonlyArray<AuthenticatorLike> as readonly [AuthenticatorLike])
  return make(description, (request) => from(0, [], request), again)
}

declareFactory('firstPresent', firstPresent)
