/**
 * Alternatives: a list is tried in order, and an object also reports which member passed.
 */
import { altW } from './alt.js'
import { fromFunction, make } from './Authenticator.js'
import type { Authenticator, AuthenticatorLike, PrincipalOf } from './Authenticator.js'
import { changing, mapAll } from './map.js'
import { declareFactory } from './hooks.js'
import { checkGroup, checkMember, checkOrder } from './members.js'

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

/** @internal The members of an object, each of which reports its name when it passes. */
export const tagged = (record: Readonly<Record<string, AuthenticatorLike>>): ReadonlyArray<Authenticator<unknown>> =>
  Object.entries(record).map(([via, member]) => tag(via, fromFunction(member)))

const tag = (via: string, self: Authenticator<unknown>): Authenticator<unknown> => {
  const { description, evaluate } = changing(
    self,
    mapAll((principal) => ({ via, principal })),
  )
  return make<unknown>(description, evaluate, (wrap) => tag(via, wrap(self)))
}

/** @internal Whether a group is a list. */
export const isList = <A>(group: ReadonlyArray<A> | Readonly<Record<string, A>>): group is ReadonlyArray<A> =>
  Array.isArray(group)

/** Which member of an object passed, and its principal. */
export type Tagged<L> = { [K in keyof L]: { readonly via: K; readonly principal: PrincipalOf<L[K]> } }[keyof L]

declareFactory('anyOf', anyOf)
