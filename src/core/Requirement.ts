/**
 * The decision of a level about the operations below it: none, "public", "require this", or "require this, too".
 *
 * Requirements are a monoid: the innermost decision wins, unless it adds. This module does not know where levels come
 * from (`koa/levels.ts`).
 *
 * | outer     | inner     | `concat(outer, inner)`                              |
 * |-----------|-----------|-----------------------------------------------------|
 * | anything  | inherit   | the outer requirement                               |
 * | anything  | public    | public                                              |
 * | anything  | require b | require b                                           |
 * | require a | also b    | require both: `{ inherited: a, own: b }`            |
 * | public    | also b    | require b: `{ inherited: undefined, own: b }`       |
 * | also a    | also b    | also a, then also b                                 |
 * | inherit   | also b    | also b; without a level above, as under public      |
 */
import * as E from 'fp-ts/lib/Either.js'
import type * as monoid from 'fp-ts/lib/Monoid.js'
import { allOf } from './allOf.js'
import { authenticatorOf } from './lists.js'
import { isAuthenticator, type Authenticator, type AuthenticatorLike, type PrincipalOf } from './Authenticator.js'
import { deepFreeze } from './data.js'
import type { Finding, ObjectsOf } from './Exchange.js'
import { onSuccess } from './map.js'
import { declareFactory } from './options.js'

/** The decision of a level. */
export type Requirement = Inherit | Public | Require | Also

/** Nothing: the level above decides. */
export interface Inherit {
  readonly _tag: 'Inherit'
}

/** Anyone may call: `withAuth(null)`. */
export interface Public {
  readonly _tag: 'Public'
}

/** The authenticator must pass. */
export interface Require {
  readonly _tag: 'Require'
  readonly authenticator: Authenticator<unknown>
}

/**
 * These must pass, too, from the outermost to the innermost. `P` is the principal of the innermost. It is not an
 * Authenticator.
 */
export interface Also<P = unknown> {
  readonly _tag: 'Also'
  readonly authenticators: readonly [...ReadonlyArray<Authenticator<unknown>>, Authenticator<P>]
}

export const inherit: Requirement = deepFreeze({ _tag: 'Inherit' })

export const open: Requirement = deepFreeze({ _tag: 'Public' })

export const guardedBy = (authenticator: Authenticator<unknown>): Requirement => ({ _tag: 'Require', authenticator })

/**
 * Adds an authenticator to the inherited requirement, instead of replacing it. `withAuth` takes the result. `request.auth` is
 * `{ inherited, own }`; if nothing or "public" is inherited, `inherited` is `undefined`. A list means `anyOf`.
 *
 * @example
 * import Router from '@koa/router'
 * import { also, apiKeyHeader, httpBearer, withAuth } from 'koa-with-auth'
 *
 * const key = apiKeyHeader({ authenticate: (_request, key) => key === 'k1' && { client: 'Acme' } })
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 *
 * const router = withAuth(key)(new Router())
 * router.get('/me', withAuth(also(user)), (ctx) => {
 *   ctx.body = `${ctx.request.auth.own.user} by ${ctx.request.auth.inherited.client}`
 * })
 */
export function also<const L extends readonly [AuthenticatorLike, ...AuthenticatorLike[]]>(
  list: L,
): Finding<Also<PrincipalOf<L[number]>>, ObjectsOf<L[number]>>
export function also<M extends AuthenticatorLike>(member: M): Finding<Also<PrincipalOf<M>>, ObjectsOf<M>>
export function also(auth: unknown): Also {
  return { _tag: 'Also', authenticators: [authenticatorOf('also', auth)] }
}

declareFactory('also', also)

export const isAlso = (u: unknown): u is Also =>
  typeof u === 'object' && u !== null && '_tag' in u && u._tag === 'Also' && 'authenticators' in u

/** @internal Throws a TypeError for an Also without authenticators, written by hand: it would let everybody in. */
export const checkAlso = (where: string, { authenticators }: { readonly authenticators: unknown }): void => {
  if (Array.isArray(authenticators) && authenticators.length > 0 && authenticators.every(isAuthenticator)) return
  throw new TypeError(`${where}: also(...) holds no authenticator`)
}

const addAuthenticator = (
  inherited: Authenticator<unknown> | undefined,
  own: Authenticator<unknown>,
): Authenticator<unknown> =>
  inherited === undefined
    ? onSuccess(own, ({ right }) => E.right({ inherited: undefined, own: right }))
    : allOf({ inherited, own })

const withAlso = (inherited: Authenticator<unknown> | undefined, own: Also): Requirement => {
  checkAlso('a requirement', own)
  return guardedBy(demanded(own.authenticators.reduce<Authenticator<unknown> | undefined>(addAuthenticator, inherited)))
}

// A requirement of another version, or one that was changed by hand, must not become "public"
const demanded = (authenticator: unknown): Authenticator<unknown> => {
  if (isAuthenticator(authenticator)) return authenticator
  throw new TypeError('a requirement without an authenticator would let everybody in')
}

/** The innermost decision wins (spec 5.6); the table above has every case. */
export const Monoid: monoid.Monoid<Requirement> = deepFreeze({
  empty: inherit,
  concat: (outer: Requirement, inner: Requirement): Requirement => {
    if (inner._tag === 'Inherit') return outer
    if (inner._tag !== 'Also' || outer._tag === 'Inherit') return inner
    if (outer._tag === 'Also') {
      for (const one of [outer, inner]) checkAlso('a requirement', one)
      return { _tag: 'Also', authenticators: [...outer.authenticators, ...inner.authenticators] }
    }
    return withAlso(effective(outer), inner)
  },
})

/** The authenticator that is enforced if there is no level above; `undefined` if anyone may call. */
export const effective = (requirement: Requirement): Authenticator<unknown> | undefined => {
  if (requirement._tag === 'Also') return effective(withAlso(undefined, requirement))
  if (requirement._tag === 'Inherit' || requirement._tag === 'Public') return undefined
  return demanded(requirement.authenticator)
}
