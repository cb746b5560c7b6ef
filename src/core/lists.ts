/**
 * Alternatives: a list is tried in order, and an object also reports which member passed.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
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
import {
  admitsAnonymous,
  anyOf as anyOfDescriptions,
  constantFailure,
  explained,
  isSent,
  type AllOf,
  type AnyOf,
} from './Description.js'
import { isAnonymous, type Evaluation } from './Result.js'
import { changing, mapAll } from './map.js'
import { checkGroup, checkMember, checkOrder } from './members.js'
import { declareFactory } from './options.js'

/*
 * Two alternatives: the second is tried when the first one fails. `anyOf` folds a list with it.
 */

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
    return make(anyOfDescriptions([self.description, other.description]), evaluate, again)
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

/**
 * Folds a list with `alt`: members are tried in order, the first that passes wins, and no later one is called (spec 5.5).
 * Given an object, it also reports which one won: `{ via, principal }`.
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
export function anyOf(
  group: ReadonlyArray<AuthenticatorLike> | Readonly<Record<string, AuthenticatorLike>>,
): Authenticator<unknown> {
  checkGroup('anyOf', group)
  const members: ReadonlyArray<Authenticator<unknown>> = isList(group)
    ? group.map((member) => fromFunction(member))
    : tagged(group)
  checkOrder('anyOf', members)
  // From the right, so that no failures are collected before it is known that all members fail
  return members.reduceRight((rest, member) => altW(() => rest)(member))
}

/**
 * @internal The authenticator of one member, or `anyOf` for a list. Throws a TypeError for anything else, which names
 * the place.
 */
export const authenticatorOf = (place: string, auth: unknown, member = `${place}(...)`): Authenticator<unknown> => {
  if (Array.isArray(auth)) {
    checkGroup(place, auth)
    // Safe: anything but a list of members was refused
    return anyOf(auth as unknown as [AuthenticatorLike])
  }
  checkMember(member, auth)
  // Safe: anything but a function was refused
  return fromFunction(auth as AuthenticatorLike)
}

/** The members of an object, each of which reports its name when it passes. */
const tagged = (record: Readonly<Record<string, AuthenticatorLike>>): ReadonlyArray<Authenticator<unknown>> =>
  Object.entries(record).map(([via, member]) => tag(via, fromFunction(member)))

const tag = (via: string, self: Authenticator<unknown>): Authenticator<unknown> => {
  const { description, evaluate } = changing(
    self,
    mapAll((principal) => ({ via, principal })),
  )
  return make<unknown>(description, evaluate, (wrap) => tag(via, wrap(self)))
}

/** Whether a group is a list. */
const isList = <A>(group: ReadonlyArray<A> | Readonly<Record<string, A>>): group is ReadonlyArray<A> =>
  Array.isArray(group)

/** Which member of an object passed, and its principal. */
export type Tagged<L> = { [K in keyof L]: { readonly via: K; readonly principal: PrincipalOf<L[K]> } }[keyof L]

declareFactory('anyOf', anyOf)

/*
 * All of several authenticators: each must pass, in order, and the result has all of their principals.
 *
 * It stops at the first that does not pass. A group is absent only if none of its credentials was sent. A caller who sends one of
 * two is refused, so `optional(allOf([...]))` does not let that caller in as anonymous. So a credential of a group cannot also be a
 * later alternative in `firstPresent`. It cannot be another member of an `allOf` that contains the group as optional, either.
 */

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
const skipped = (description: AllOf['members'][number]): ReadonlyArray<AuthError> =>
  AuthErrors.branchesOf(explained(description, AuthErrors.absent)).map((branch) => ({ ...branch, skipped: true }))

declareFactory('allOf', allOf)

/*
 * The first alternative whose credential is present decides. Unlike `anyOf`, it tries no later one.
 *
 * So a good key never hides a bad token before it, and the failure is that of the credential which the client sent. The credential
 * of a plain function always counts as present.
 */

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
