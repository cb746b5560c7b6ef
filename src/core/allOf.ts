/**
 * `allOf`: all members must pass, their credentials before their objects.
 *
 * If members look objects up (`owned`), it decides in two steps, so that a caller without one of the credentials gets no look-up. The
 * parts of the tree without objects are asked in the first step, once, and their results are kept for the second.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as AuthErrors from './AuthError.js'
import type { AuthError } from './AuthError.js'
import { combined, decideOf, fromFunction, make, nodeOf } from './Authenticator.js'
import type { Authenticator, AuthenticatorLike, Decide, Halves, PrincipalOf } from './Authenticator.js'
import { isSent, objectsIn, skipped, type AllOf } from './Description.js'
import { accept, evidenceOf, merge, plainEvidence, objectsOf, type Evidence } from './Evidence.js'
import type { Attempt } from './Exchange.js'
import { checkGroup, declareFactory, isList } from './options.js'
import { andThen, type Evaluation, type Result } from './Result.js'

// `& {}` makes editors show the principals instead of this name
/** The principals of a group: a tuple for a tuple, an object for an object. */
export type Together<G> = { -readonly [K in keyof G]: PrincipalOf<G[K]> } & {}

/**
 * Requires that all members pass. A tuple gives a tuple of principals, and an object gives an object. A failure offers the
 * challenges of all members that had not passed. Throws a TypeError for an empty group, a list in a list, a member that is not a
 * function of the request, and keys that look like integers.
 *
 * It asks them in order, and stops at the first that does not pass. All credentials are checked before `owned` looks anything up. A
 * group is absent only if none of its credentials was sent. A caller who sends one of two is refused, so `optional(allOf([...]))`
 * does not let that caller in as anonymous. For the same reason `firstPresent([allOf([a, b]), a])` refuses a caller who sends only
 * `a`, and so does `allOf([optional(allOf([a, b])), a])`.
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
  const description: AllOf = { _tag: 'AllOf', members: members.map((member) => member.description) }
  const together = (passed: ReadonlyArray<unknown>): unknown =>
    names === undefined ? passed : Object.fromEntries(names.map((name, at) => [name, passed[at]]))

  const passing = (all: ReadonlyArray<Authenticator<unknown>>): Decide => {
    const decides = all.map((member) => decideOf(member))
    const from = (
      at: number,
      passed: ReadonlyArray<unknown>,
      before: Evidence,
      attempt: Attempt,
    ): Evaluation<unknown> => {
      const decide = decides[at]
      if (decide === undefined) return accept(together(passed), before)
      const goOn = (result: E.Either<AuthError, unknown>): Evaluation<unknown> =>
        E.isLeft(result)
          ? failedAt(at, description, result.left, attempt)
          : from(at + 1, [...passed, result.right], merge(before, evidenceOf(result)), attempt)
      const evaluation = decide(attempt.knowing(objectsOf(attempt.objects, before.objects)))
      return evaluation instanceof Promise ? evaluation.then(goOn) : goOn(evaluation)
    }
    // its result for anonymous callers is a principal: a list of them
    return (attempt) => from(0, [], plainEvidence, attempt)
  }
  if (!members.slice(0, -1).some(looksUp)) return { description, decide: passing(members) }
  const steps = members.map(inSteps)
  const credentials = passing(steps.map(({ first }) => first))
  const objects = passing(steps.map(({ rest }) => rest))
  const decide: Decide = (attempt) =>
    andThen(credentials(attempt), (result) => (E.isLeft(result) ? result : objects(attempt)))
  return { description, decide }
}

// The failure of a member, with the branches of those that were not asked
const failedAt = (
  at: number,
  { members }: AllOf,
  error: AuthError,
  { request }: Attempt,
): E.Either<AuthError, never> => {
  if (AuthErrors.stops(error)) return E.left(error)
  const isPartial = members.some((member, other) => other !== at && isSent(member, request))
  const branches = [...AuthErrors.branchesOf(error), ...members.slice(at + 1).flatMap(skipped)]
  return E.left({ ...(error._tag === 'absent' && isPartial ? partial : error), branches })
}

const partial = AuthErrors.because(AuthErrors.invalid, 'partial')

declareFactory('allOf', allOf)

/** The part of an authenticator before any object is looked up, and all of it after that. */
interface CredentialsFirst {
  /** A Left is the failure. A Right says that the second step may begin. */
  readonly first: Authenticator<unknown>
  readonly rest: Authenticator<unknown>
}

/** Whether an authenticator looks objects up. For a function, this is unknown. */
const looksUp = (self: Authenticator<unknown>): boolean =>
  nodeOf(self)?._tag === 'Combined' && objectsIn(self.description).length > 0

/** The results of parts of the tree in the first step of a decision. */
const askedAhead = new WeakMap<Attempt, Map<object, Result<unknown>>>()

const inSteps = (self: Authenticator<unknown>): CredentialsFirst => {
  const { description } = self
  const node = nodeOf(self)
  const members = node?._tag === 'Combined' && looksUp(self) ? node.members.map(inSteps) : []
  const assembled = (step: keyof CredentialsFirst): Authenticator<unknown> =>
    node?._tag === 'Combined' && members.length > 0
      ? combined(
          members.map((member) => member[step]),
          node.assemble,
        )
      : self
  const decide = decideOf(assembled('rest'))
  const rest: Authenticator<unknown> = make(description, (attempt) => {
    return askedAhead.get(attempt.whole)?.get(rest) ?? decide(attempt)
  })
  const keeping =
    (ask: Decide, isKept: (result: Result<unknown>) => boolean): Decide =>
    (attempt) =>
      andThen(ask(attempt), (result) => {
        if (!isKept(result)) return result
        const all = askedAhead.get(attempt.whole) ?? new Map<object, Result<unknown>>()
        askedAhead.set(attempt.whole, all.set(rest, result))
        return result
      })
  const whole = keeping(decide, () => true)
  const [only, ...others] = members
  if (only === undefined) return { first: make(description, whole), rest }
  if (others.length > 0) return { first: make(description, keeping(decideOf(assembled('first')), E.isLeft)), rest }
  // a wrapper of one member, such as a condition, may read objects. It decides now only if the member fails
  const credentials = decideOf(only.first)
  const first: Decide = (attempt) =>
    andThen(credentials(attempt), (result) => (E.isLeft(result) ? whole(attempt) : result))
  return { first: make(description, first), rest }
}
