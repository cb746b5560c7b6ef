/** Alternatives: a list is tried in order, and an object also reports which member passed. */
import * as E from 'fp-ts/lib/Either.js'
import { showObjects, type Attempt } from './Exchange.js'
import * as AuthErrors from './AuthError.js'
import type { AuthError } from './AuthError.js'
import { combined, decideOf, fromFunction, changed, combinedMembers } from './Authenticator.js'
import type { Authenticator, AuthenticatorLike, Halves, PrincipalOf } from './Authenticator.js'
import { admitsAnonymous, anyOfDescriptions, constantFailure, isSent, noted, skipped } from './Description.js'
import type { AnyOf, Description } from './Description.js'
import { isAnonymous, type Evaluation, type Result } from './Result.js'
import { keepingScopes } from './granted.js'
import { checkMember, declareFactories, checkGroup, isList } from './options.js'

/**
 * Tries another authenticator if this authenticator fails, and keeps both failures. After an outage or an exception, it does not try the
 * other. `altW` lets the principals differ.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { apiKeyHeader, httpBearer } from 'koa-with-auth'
 * import { altW } from 'koa-with-auth/fp'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const key = apiKeyHeader({ authenticate: (_request, key) => key === 'k1' && { client: 'Acme' } })
 * const either = pipe(bearer, altW(() => key)) // Authenticator<{ user: string } | { client: string }>
 */
export const altW =
  <B>(that: () => Authenticator<B>) =>
  <A>(self: Authenticator<A>): Authenticator<A | B> => {
    const given: ReadonlyArray<Authenticator<unknown>> = [self, that()]
    for (const member of given) checkMember('alt(...)', member)
    const members = given.map((member) => fromFunction(member))
    checkOptionalLast('alt(...)', members)
    // Safe: one of the two lets in
    return alternatives(members) as Authenticator<A | B>
  }

/** The members as one list. A list in it is taken apart, so that `alt` is associative. */
const alternatives = (members: ReadonlyArray<Authenticator<unknown>>): Authenticator<unknown> => {
  const all = members.flatMap((member) => combinedMembers(member, firstPassing))
  return keepingScopes(combined(all, firstPassing), ...all)
}

/** Tries members in order. It decides as a fold of the list from the right, two members at a time. */
const firstPassing = (members: ReadonlyArray<Authenticator<unknown>>): Halves => {
  const decides = members.map((member) => decideOf(member))
  const descriptions = members.map(({ description }) => description)
  const last = members.length - 1
  // The demands of the members from here on
  const rests = descriptions.map((_, at) => anyOfDescriptions(descriptions.slice(at)))
  const bare = rests.map((rest) => constantFailure(rest, AuthErrors.absent))
  // After a bad credential, an optional alternative does not admit a caller who sent no credential for it
  const isOptional = members.slice(-1).some(({ description }) => admitsAnonymous(description))

  const from = (at: number, attempt: Attempt): Evaluation<unknown> => {
    const evaluation = decides[at]!(attempt)
    if (at === last) return evaluation
    return evaluation instanceof Promise ? later(evaluation, at, attempt) : goOn(evaluation, at, attempt)
  }
  // Apart, so that a sync decision makes no closure
  const later = (evaluation: Promise<Result<unknown>>, at: number, attempt: Attempt): Evaluation<unknown> =>
    evaluation.then((first) => goOn(first, at, attempt))
  const goOn = (first: Result<unknown>, at: number, attempt: Attempt): Evaluation<unknown> => {
    if (E.isRight(first) || AuthErrors.stops(first.left)) return first
    showObjects(attempt.request, attempt.objects)
    const before = first.left
    if (isOptional && !AuthErrors.leavesAnonymous(before) && !isSent(rests[at + 1]!, attempt.request)) {
      return collect(before, bare[at + 1]!, at)
    }
    const second = from(at + 1, attempt)
    return second instanceof Promise ? collectLate(before, second, at) : collect(before, second, at)
  }
  const collectLate = (before: AuthError, second: Promise<Result<unknown>>, at: number): Evaluation<unknown> =>
    second.then((late) => collect(before, late, at))
  const collect = (before: AuthError, after: Result<unknown>, at: number): Result<unknown> => {
    const second = isOptional && !AuthErrors.leavesAnonymous(before) && isAnonymous(after) ? bare[at + 1]! : after
    return E.isRight(second) ? second : E.left(AuthErrors.Semigroup.concat(before, second.left))
  }
  return { description: anyOfDescriptions(descriptions), decide: (attempt) => from(0, attempt) }
}

/**
 * `altW` for principals of one type.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { apiKeyHeader, apiKeyQuery } from 'koa-with-auth'
 * import { alt } from 'koa-with-auth/fp'
 *
 * const authenticate = (_request: unknown, key: string) => key === 'k1' && { client: 'Acme' }
 * const key = pipe(apiKeyHeader({ authenticate }), alt(() => apiKeyQuery({ authenticate }))) // Authenticator<{ client: string }>
 */
export const alt: <P>(that: () => Authenticator<P>) => (self: Authenticator<P>) => Authenticator<P> = altW

/**
 * Folds a list with `alt`: members are tried in order, the first that passes wins, and no later member is called (spec 5.5).
 * Given an object, it also reports the member that won: `{ via, principal }`.
 *
 * Throws a TypeError for an empty group, a list in a list, a member that is not a function of the request, and keys that look like
 * integers (JavaScript would reorder them).
 *
 * @example
 * import { anyOf, apiKeyHeader, apiKeyQuery } from 'koa-with-auth'
 *
 * const authenticate = (_request: unknown, key: string) => key === 'supersecret' && { client: 'Acme' }
 * const listed = anyOf([apiKeyQuery({ authenticate }), apiKeyHeader({ authenticate })])
 * const tagged = anyOf({ query: apiKeyQuery({ authenticate }), header: apiKeyHeader({ authenticate }) })
 */
export function anyOf<const L extends readonly [AuthenticatorLike, ...AuthenticatorLike[]]>(
  list: L,
): Authenticator<PrincipalOf<L[number]>>
export function anyOf<const L extends Readonly<Record<string, AuthenticatorLike>>>(record: L): Authenticator<Tagged<L>>
export function anyOf(group: Group): Authenticator<unknown> {
  const members = groupMembers('anyOf', group)
  const [only, ...others] = members
  return only !== undefined && others.length === 0 ? only : alternatives(members)
}

/** @internal The authenticator of one member, or `anyOf` for a list. Throws a TypeError that names the place for anything else. */
export const authenticatorOf = (caller: string, auth: unknown, member = `${caller}(...)`): Authenticator<unknown> => {
  if (Array.isArray(auth)) {
    checkGroup(caller, auth)
    // Safe: anything but a list of members was refused
    return anyOf(auth as unknown as [AuthenticatorLike])
  }
  checkMember(member, auth)
  // Safe: anything but a function was refused
  return fromFunction(auth as AuthenticatorLike)
}

type Group = ReadonlyArray<AuthenticatorLike> | Readonly<Record<string, AuthenticatorLike>>

/** The members of a group that are tried in order. Those of an object report their names when they pass. */
const groupMembers = (caller: string, group: Group): ReadonlyArray<Authenticator<unknown>> => {
  checkGroup(caller, group)
  const members: ReadonlyArray<Authenticator<unknown>> = isList(group)
    ? group.map((member) => fromFunction(member))
    : Object.entries(group).map(([via, member]) => tag(via, fromFunction(member)))
  checkOptionalLast(caller, members)
  return members
}

const tag = (via: string, self: Authenticator<unknown>): Authenticator<unknown> =>
  combined([self] as const, ([member]) => changed(member, ({ right }) => E.right({ via, principal: right })))

/** Which member of an object passed, and its principal. */
export type Tagged<L> = { [K in keyof L]: { readonly via: K; readonly principal: PrincipalOf<L[K]> } }[keyof L]

/**
 * Tries the alternatives in order. The first that is not absent decides. Given an object, it also reports the member that passed.
 * A failure offers the challenges of all members. Throws a TypeError for groups that `anyOf` refuses.
 *
 * Unlike `anyOf`, it tries no later alternative. So a good key never hides a bad token before it, and the failure is that of
 * the credential which the client sent. The credential of a plain function always counts as present.
 *
 * @example
 * import { apiKeyHeader, httpBearer } from 'koa-with-auth'
 * import { firstPresent } from 'koa-with-auth/fp'
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
export function firstPresent(group: Group): Authenticator<unknown> {
  const members = groupMembers('firstPresent', group)
  return keepingScopes(combined(members, firstSent), ...members)
}

const firstSent = (members: ReadonlyArray<Authenticator<unknown>>): Halves => {
  const decides = members.map((member) => decideOf(member))
  const description = noted<AnyOf>(
    { _tag: 'AnyOf', members: members.map((member) => member.description), firstPresent: true },
    // the policy file says it beside each member, because a list lets in requests that this refuses
    { wrappers: ['first sent'] },
  )
  const from = (at: number, before: ReadonlyArray<AuthError>, attempt: Attempt): Evaluation<unknown> => {
    const decide = decides[at]
    // a group has a member, so there is at least one failure
    if (decide === undefined)
      return E.left({ ...(before.find(({ _tag }) => _tag !== 'absent') ?? AuthErrors.absent), branches: before })
    const goOn = (result: E.Either<AuthError, unknown>): Evaluation<unknown> => {
      if (E.isRight(result)) return result
      const error = result.left
      showObjects(attempt.request, attempt.objects)
      const branches = [...before, ...AuthErrors.branchesOf(error)]
      if (AuthErrors.leavesAnonymous(error)) return from(at + 1, branches, attempt)
      // after an outage no other challenge is offered, because no caller can be let in now
      const later = AuthErrors.stops(error) ? [] : description.members.slice(at + 1).flatMap(skipped)
      return E.left({ ...error, branches: [...branches, ...later] })
    }
    const evaluation = decide(attempt)
    return evaluation instanceof Promise ? evaluation.then(goOn) : goOn(evaluation)
  }
  return { description, decide: (attempt) => from(0, [], attempt) }
}

declareFactories({ altW, anyOf, firstPresent })

/** Throws a TypeError if an optional alternative is not the last: members after it would never be called. */
const checkOptionalLast = (caller: string, members: ReadonlyArray<{ readonly description: Description }>): void => {
  const at = members.slice(0, -1).findIndex(({ description }) => admitsAnonymous(description))
  if (at >= 0) {
    throw new TypeError(
      `${caller}: alternative ${at + 1} is optional, so those after it would never be asked; put it last`,
    )
  }
}
