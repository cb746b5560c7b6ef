/**
 * Alternatives: a list is tried in order, and an object also reports which member passed.
 */
import * as E from 'fp-ts/lib/Either.js'
import { showObjects, type Attempt, type Objects } from './Exchange.js'
import * as AuthErrors from './AuthError.js'
import type { AuthError } from './AuthError.js'
import {
  combined,
  decideOf,
  fromFunction,
  type Authenticator,
  type AuthenticatorLike,
  type Halves,
  type PrincipalOf,
  changed,
  membersOf,
} from './Authenticator.js'
import {
  admitsAnonymous,
  anyOf as anyOfDescriptions,
  constantFailure,
  withChallenges,
  isSent,
  type AllOf,
  type AnyOf,
  type Description,
} from './Description.js'
import { isAnonymous, withPrincipalOf, type Evaluation, type Result } from './Result.js'
import { keepingScopes } from './granted.js'
import { checkMember, declareFactory, typeName } from './options.js'

/**
 * Tries another authenticator if this one fails, and keeps both failures. After an outage or an exception, it does not try the
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
    const other = that()
    for (const member of [self, other]) checkMember('alt(...)', member)
    checkOrder('alt(...)', [self, other])
    // Safe: one of the two lets in
    return alternatives([self, other]) as Authenticator<A | B>
  }

/** The members as one list. A list in it is taken apart, so that `alt` is associative. */
const alternatives = (members: ReadonlyArray<Authenticator<unknown>>): Authenticator<unknown> => {
  const all = members.flatMap((member) => membersOf(member, firstPassing))
  return keepingScopes(combined(all, firstPassing), ...all)
}

/** Tries members in order. It decides as a fold of the list from the right, two members at a time. */
const firstPassing = (members: ReadonlyArray<Authenticator<unknown>>): Halves => {
  const decides = members.map((member) => decideOf(member))
  const descriptions = members.map(({ description }) => description)
  const last = members.length - 1
  // What the members from here on demand
  const rests = descriptions.map((_, at) => anyOfDescriptions(descriptions.slice(at)))
  const bare = rests.map((rest) => constantFailure(rest, AuthErrors.absent))
  // After a bad credential, an optional alternative does not admit a caller who sent no credential for it
  const isOptional = members.slice(-1).some(({ description }) => admitsAnonymous(description))

  const from = (at: number, attempt: Attempt): Evaluation<unknown> => {
    const { accepted, objects } = attempt
    const evaluation = decides[at]!(attempt)
    if (at === last) return evaluation
    return evaluation instanceof Promise
      ? later(evaluation, at, attempt, accepted, objects)
      : goOn(evaluation, at, attempt, accepted, objects)
  }
  // Apart, so that a sync decision makes no closure
  const later = (
    evaluation: Promise<Result<unknown>>,
    at: number,
    attempt: Attempt,
    accepted: Attempt['accepted'],
    objects: Objects | undefined,
  ): Evaluation<unknown> => evaluation.then((first) => goOn(first, at, attempt, accepted, objects))
  const goOn = (
    first: Result<unknown>,
    at: number,
    attempt: Attempt,
    accepted: Attempt['accepted'],
    objects: Objects | undefined,
  ): Evaluation<unknown> => {
    if (E.isRight(first) || AuthErrors.stops(first.left)) return first
    attempt.accepted = accepted
    if (attempt.objects !== objects) showObjects(attempt, objects)
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
  const [only, ...others] = members
  return only !== undefined && others.length === 0 ? only : alternatives(members)
}

/**
 * @internal The authenticator of one member, or `anyOf` for a list. Throws a TypeError for anything else, which names
 * the place.
 */
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

/** The members of an object, each of which reports its name when it passes. */
const tagged = (record: Readonly<Record<string, AuthenticatorLike>>): ReadonlyArray<Authenticator<unknown>> =>
  Object.entries(record).map(([via, member]) => tag(via, fromFunction(member)))

const tag = (via: string, self: Authenticator<unknown>): Authenticator<unknown> =>
  combined([self] as const, ([member]) =>
    changed(member, (result) => withPrincipalOf(result, { via, principal: result.right })),
  )

const isList = <A>(group: ReadonlyArray<A> | Readonly<Record<string, A>>): group is ReadonlyArray<A> =>
  Array.isArray(group)

/** Which member of an object passed, and its principal. */
export type Tagged<L> = { [K in keyof L]: { readonly via: K; readonly principal: PrincipalOf<L[K]> } }[keyof L]

declareFactory('anyOf', anyOf)

// `& {}` makes editors show the principals instead of this name
/** The principals of a group: a tuple for a tuple, an object for an object. */
export type Together<G> = { -readonly [K in keyof G]: PrincipalOf<G[K]> } & {}

/**
 * Requires that all members pass. A tuple gives a tuple of principals, and an object gives an object. A failure offers the
 * challenges of all members that had not passed. Throws a TypeError for an empty group, a list in a list, a member that is not a
 * function of the request, and keys that look like integers.
 *
 * It asks them in order, and stops at the first that does not pass. A group is absent only if none of its credentials
 * was sent. A caller who sends one of two is refused, so `optional(allOf([...]))` does not let that caller in as
 * anonymous. For the same reason `firstPresent([allOf([a, b]), a])` refuses a caller who sends only `a`, and so does
 * `allOf([optional(allOf([a, b])), a])`.
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
  const names = isList(group) ? undefined : Object.keys(group)
  return combined(members, (each) => allPassing(each, names))
}

const allPassing = (
  members: ReadonlyArray<Authenticator<unknown>>,
  names: ReadonlyArray<string> | undefined,
): Halves => {
  const decides = members.map((member) => decideOf(member))
  const description: AllOf = { _tag: 'AllOf', members: members.map((member) => member.description) }
  const together = (passed: ReadonlyArray<unknown>): unknown =>
    names === undefined ? passed : Object.fromEntries(names.map((name, at) => [name, passed[at]]))

  const failing = (at: number, error: AuthError, { request }: Attempt): E.Either<AuthError, never> => {
    if (AuthErrors.stops(error)) return E.left(error)
    const isPartial = description.members.some((member, other) => other !== at && isSent(member, request))
    const later = description.members.slice(at + 1).flatMap(skipped)
    const branches = [...AuthErrors.branchesOf(error), ...later]
    return E.left({ ...(error._tag === 'absent' && isPartial ? partial : error), branches })
  }
  const from = (at: number, passed: ReadonlyArray<unknown>, attempt: Attempt): Evaluation<unknown> => {
    const decide = decides[at]
    if (decide === undefined) return E.right(together(passed))
    const goOn = (result: E.Either<AuthError, unknown>): Evaluation<unknown> =>
      E.isLeft(result) ? failing(at, result.left, attempt) : from(at + 1, [...passed, result.right], attempt)
    const evaluation = decide(attempt)
    return evaluation instanceof Promise ? evaluation.then(goOn) : goOn(evaluation)
  }
  return { description, decide: (attempt) => from(0, [], attempt) }
}

const partial = AuthErrors.because(AuthErrors.invalid, 'partial')

/** The branches of a member that was not asked, because another one had decided. It still offers its challenge. */
const skipped = (description: AllOf['members'][number]): ReadonlyArray<AuthError> =>
  AuthErrors.branchesOf(withChallenges(description, AuthErrors.absent)).map((branch) => ({ ...branch, skipped: true }))

declareFactory('allOf', allOf)

/**
 * Tries the alternatives in order. The first one that is not absent decides. Given an object, it also reports which member passed.
 * A failure offers the challenges of all members. Throws a TypeError for groups that `anyOf` refuses.
 *
 * Unlike `anyOf`, it tries no later one. So a good key never hides a bad token before it, and the failure is that of
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
export function firstPresent(
  group: ReadonlyArray<AuthenticatorLike> | Readonly<Record<string, AuthenticatorLike>>,
): Authenticator<unknown> {
  checkGroup('firstPresent', group)
  const members = isList(group) ? group.map((member) => fromFunction(member)) : tagged(group)
  checkOrder('firstPresent', members)
  return keepingScopes(combined(members, firstSent), ...members)
}

const firstSent = (members: ReadonlyArray<Authenticator<unknown>>): Halves => {
  const decides = members.map((member) => decideOf(member))
  const description: AnyOf = {
    _tag: 'AnyOf',
    members: members.map((member) => member.description),
    firstPresent: true,
  }
  const from = (at: number, before: ReadonlyArray<AuthError>, attempt: Attempt): Evaluation<unknown> => {
    const decide = decides[at]
    // a group has a member, so there is at least one failure
    if (decide === undefined)
      return E.left({ ...(before.find(({ _tag }) => _tag !== 'absent') ?? AuthErrors.absent), branches: before })
    const { accepted, objects } = attempt
    const goOn = (result: E.Either<AuthError, unknown>): Evaluation<unknown> => {
      if (E.isRight(result)) return result
      const error = result.left
      attempt.accepted = accepted
      if (attempt.objects !== objects) showObjects(attempt, objects)
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

declareFactory('firstPresent', firstPresent)

// Each of these mistakes would let everybody in, or refuse everybody

/** Throws a TypeError for a value that is not a list or an object of members. */
const checkGroup = (caller: string, group: unknown): void => {
  if (Array.isArray(group)) {
    if (group.length === 0) throw new TypeError(`${caller}([]): an empty list; pass at least one authenticator`)
    // `entries` also visits holes, which `forEach` would skip
    for (const [at, member] of group.entries()) checkMember(`${caller}([...])[${at}]`, member)
    return
  }
  if (typeof group !== 'object' || group === null) {
    throw new TypeError(
      `${caller} takes a list or an object of authenticators, not ${typeName(group)}; write ${caller}([a, b])`,
    )
  }
  const prototype: unknown = Object.getPrototypeOf(group)
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(`${caller} takes a plain object; one with its own prototype (__proto__) hides members`)
  }
  const entries = Object.entries(group)
  if (entries.length === 0) throw new TypeError(`${caller}({}): an empty object; pass at least one authenticator`)
  for (const [key, member] of entries) {
    // engines put integer-like keys first, whatever the order written
    if (/^\d+$/.test(key))
      throw new TypeError(
        `${caller}({ ${key}: ... }): the key looks like an integer, and would change the order; use a name`,
      )
    checkMember(`${caller}({ ${key} })`, member)
  }
}

/** Throws a TypeError if an optional alternative is not the last one: those after it would never be asked. */
const checkOrder = (caller: string, members: ReadonlyArray<{ readonly description: Description }>): void => {
  const at = members.slice(0, -1).findIndex(({ description }) => admitsAnonymous(description))
  if (at >= 0) {
    throw new TypeError(
      `${caller}: alternative ${at + 1} is optional, so those after it would never be asked; put it last`,
    )
  }
}
