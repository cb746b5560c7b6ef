/** The options that `sessions(app, ...)` cannot do without, depending on the users of the application. Types alone. */
import type { PrincipalFromAnswer } from '../core/Result.js'

type Flag = boolean | null | undefined

// The type of a field in each member of a union of users
type FieldOf<U, K extends PropertyKey> = U extends unknown ? (K extends keyof U ? U[K] : undefined) : never

type Unless<Holds, Option> = Holds extends true ? unknown : Option

type Is<A, B> = [A] extends [B] ? true : false

/**
 * What the options must also have, depending on what `loadUser` loads: `identify` for users without a `username`, and a
 * function for each flag that is not a boolean.
 */
export type NeedsOf<R> = NeedsAsInferred<[R][R extends unknown ? 0 : never]>

type NeedsAsInferred<R> = unknown extends PrincipalFromAnswer<R> ? unknown : Needs<PrincipalFromAnswer<R>>

type Needs<U> = Unless<Is<U, object>, { readonly loadUser: (...args: never[]) => 'loadUser loads an object' }> &
  Unless<Is<FieldOf<U, 'username'>, string>, { readonly identify: (user: U) => string }> &
  Unless<Is<FieldOf<U, 'isActive'>, Flag>, { readonly isActive: (user: U) => boolean }> &
  Unless<Is<FieldOf<U, 'isStaff'>, Flag>, { readonly isStaff: (user: U) => boolean }> &
  Unless<Is<FieldOf<U, 'isSuperuser'>, Flag>, { readonly isSuperuser: (user: U) => boolean }>
