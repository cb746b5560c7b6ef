/**
 * fp-ts instances of Authenticator, each with the laws of its class (spec/core/instances.law.spec.ts).
 *
 * `Functor` and `Alt` are `map` and `alt`, for generic code of fp-ts. `getSemigroup` combines authenticators that are
 * known only at run time.
 *
 * @example
 * import { concatAll } from 'fp-ts/lib/Semigroup.js'
 * import { apiKeyHeader, httpBearer } from 'koa-with-auth'
 * import { Authenticator } from 'koa-with-auth/fp'
 *
 * const configured = ['X-Old-Key', 'X-Key'] // from a file
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && 'anna' })
 * const keys = configured.map((paramName) =>
 *   apiKeyHeader({ paramName, authenticate: (_request, key) => key === 'k1' && 'cron' }),
 * )
 * const any = concatAll(Authenticator.getSemigroup<string>())(bearer)(keys)
 */
import type { Alt1 } from 'fp-ts/lib/Alt.js'
import type { Functor1 } from 'fp-ts/lib/Functor.js'
import type * as S from 'fp-ts/lib/Semigroup.js'
import { alt } from './lists.js'
import type { Authenticator } from './Authenticator.js'
import { map, type Principal } from './map.js'

/** The name of the type for fp-ts. */
export const URI = 'koa-with-auth/Authenticator'

/** The type of that name. */
export type URI = typeof URI

declare module 'fp-ts/HKT.js' {
  interface URItoKind<A> {
    readonly [URI]: Authenticator<A>
  }
}

// Safe: `map` turns a result that is no principal into `raised` at run time
const unconstrained = <A, B>(f: (principal: A) => B) =>
  map<A, Principal>(f as (principal: Exclude<A, undefined>) => Principal) as unknown as (
    self: Authenticator<A>,
  ) => Authenticator<B>

/** `map` as a type class. After `optional` use `map`: this type ignores anonymous callers, who stay anonymous. */
export const Functor: Functor1<URI> = Object.freeze({
  URI,
  map: <A, B>(self: Authenticator<A>, f: (principal: A) => B) => unconstrained(f)(self),
})

/** `alt` as a type class: associative, and `map` distributes over it. An outage is final, as with `alt`. */
export const Alt: Alt1<URI> = Object.freeze({
  ...Functor,
  alt: <A>(self: Authenticator<A>, that: () => Authenticator<A>) => alt(that)(self),
})

/** Authenticators of one principal, with `alt`: the first that passes wins. */
export const getSemigroup = <P>(): S.Semigroup<Authenticator<P>> => ({
  concat: (self, that) => alt(() => that)(self),
})
