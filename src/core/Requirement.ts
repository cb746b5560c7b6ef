/**
 * What a level says about the operations below it: nothing, "public", or "require this authenticator".
 *
 * The monoid in which the innermost decision wins. It does not know where levels come from (`koa/levels.ts`).
 *
 * | outer     | inner     | `concat(outer, inner)` |
 * |-----------|-----------|------------------------|
 * | anything  | inherit   | the outer one          |
 * | anything  | public    | public                 |
 * | anything  | require b | require b              |
 */
import type { monoid } from 'fp-ts'
import type { Authenticator } from './Authenticator.js'

/** What a level decided. */
export type Requirement = Inherit | Public | Require

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

/** @see Inherit */
export const inherit: Requirement = { _tag: 'Inherit' }

/** @see Public */
export const open: Requirement = { _tag: 'Public' }

/** @see Require */
export const require = (authenticator: Authenticator<unknown>): Requirement => ({ _tag: 'Require', authenticator })

/**
 * The innermost decision wins (spec 5.6).
 *
 * @example
 * import { Requirement } from 'koa-with-auth'
 *
 * const { concat, empty } = Requirement.Monoid
 * assert.strictEqual(concat(Requirement.open, empty), Requirement.open)
 */
export const Monoid: monoid.Monoid<Requirement> = {
  empty: inherit,
  concat: (outer, inner) => (inner._tag === 'Inherit' ? outer : inner),
}
