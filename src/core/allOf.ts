/**
 * All of several authenticators: each must pass, in order, and the result has all of their principals.
 *
 * It stops at the first that does not pass. A group is absent only if none of its credentials was sent. A caller who sends one of
 * two is refused, so `optional(allOf([...]))` does not let that caller in as anonymous. So a credential of a group cannot also be a
 * later alternative in `firstPresent`. It cannot be another member of an `allOf` that contains the group as optional, either.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { isList } from './anyOf.js'
import type { Evaluation } from './Evaluation.js'
import * as AuthErrors from './AuthError.js'
import type { AuthError } from './AuthError.js'
import {
  fromFunction,
  make,
  type Authenticator,
  type AuthenticatorLike,
  type PrincipalOf,
  type Wrap,
} from './Authenticator.js'
import { explained, isSent, type AllOf } from './Description.js'
import { declareFactory } from './hooks.js'
import { checkGroup } from './members.js'

// `& {}` makes editors show the principals instead of this name
/** The principals of a group: a tuple for a tuple, an object for an object. */
export type Together<G> = { -readonly [K in keyof G]: PrincipalOf<G[K]> } & {}

/**
 * Requires that all members pass. A tuple gives a tuple of principals, and an object gives an object. A failure offers the
 * challenges of all members that had not passed. Throws a TypeError for an empty group, a list in a list, a member that is not a
 * function of the request, and keys that look like integers.
 *
 * @example
 * import { allOf, apiKeyHeader, httpBearer } from 'koa-with-auth'
 *
 * const key = apiKeyHeader({ authenticate: (_request, key) => key === 'k1' && { client: 'Acme' } })
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 *
 * const pair = allOf([key, user]) // Authenticator<[{ client: string }, { user: string }]>
 * const both = allOf({ key, user }) // Authenticator<{ key: { client: string }; user: { user: string } }>
 */
export function allOf<const L extends readonly [AuthenticatorLike, ...AuthenticatorLike[]]>(
  list: L,
): Authenticator<Together<L>>
export function allOf<const L extends Readonly<Record<string, AuthenticatorLike>>>(
  record: L,
): Authenticator<Together<L>>
export function allOf(
  group: ReadonlyArray<AuthenticatorLike> | Readonly<Record<string, AuthenticatorLike>>,
): Authenticator<unknown> {
  checkGroup('allOf', group)
  const members = Object.values(group).map((member) => fromFunction(member))
  const description: AllOf = { _tag: 'AllOf', members: members.map((member) => member.description) }
  const names = isList(group) ? undefined : Object.keys(group)
  const together = (passed: ReadonlyArray<unknown>): unknown =>
    names === undefined ? passed : Object.fromEntries(names.map((name, at) => [name, passed[at]]))

  const failing = (at: number, error: AuthError, request: Request): E.Either<AuthError, never> => {
    if (AuthErrors.stops(error)) return E.left(error)
    const isPartial = description.members.some((member, other) => other !== at && isSent(member, request))
    const behind = description.members.slice(at + 1).flatMap(skipped)
    const branches = [...AuthErrors.branchesOf(error), ...behind]
    return E.left({ ...(error._tag === 'absent' && isPartial ? AuthErrors.invalid : error), branches })
  }
  const from = (at: number, passed: ReadonlyArray<unknown>, request: Request): Evaluation<unknown> => {
    const member = members[at]
    if (member === undefined) return E.right(together(passed))
    const goOn = (result: E.Either<AuthError, unknown>): Evaluation<unknown> =>
      E.isLeft(result) ? failing(at, result.left, request) : from(at + 1, [...passed, result.right], request)
    const evaluation = member.evaluate(request)
    return evaluation instanceof Promise ? evaluation.then(goOn) : goOn(evaluation)
  }
  const again = (wrap: Wrap): Authenticator<unknown> => {
    const wrapped = members.map(wrap)
    // Safe: there are as many members as before, at least one
    const together = names === undefined ? wrapped : Object.fromEntries(names.map((name, at) => [name, wrapped[at]!]))
    return allOf(together as Readonly<Record<string, AuthenticatorLike>>)
  }
  return make(description, (request) => from(0, [], request), again)
}

/** The branches of a member that was not asked, because another one had decided. It still offers its challenge. */
export const skipped = (description: AllOf['members'][number]): ReadonlyArray<AuthError> =>
  AuthErrors.branchesOf(explained(description, AuthErrors.absent)).map((branch) => ({ ...branch, skipped: true }))

declareFactory('allOf', allOf)
