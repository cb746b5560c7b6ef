/**
 * Marks guards, so that they are recognized among other middleware and stay ahead of `param` hooks.
 *
 * Levels, OpenAPI and the audit read from a guard what protects its route. What they read are properties of the
 * function, so a tracer's wrapper that copies properties is still the guard.
 */
import type { Context, Next } from 'koa'
import { aheadOfParams, guardMark } from '../core/marks.js'
import type { Requirement } from '../core/Requirement.js'
import { notWrapped } from './notWrapped.js'

/** Identifies a level. The guards that it inserted and the router that it returned have the same one. */
export interface Level {
  readonly name: string
}

/** Middleware that runs after a guard, and how many levels above its innermost decision it was written. */
export interface Step {
  readonly run: (ctx: Context, next: Next) => unknown
  readonly above: number
}

/** Where a guard comes from, and what runs after it. */
export interface Origin {
  /** The levels that decided, from the outermost that counts to the innermost: `operation`, or which router. */
  readonly levels: ReadonlyArray<string>
  /** The level that put it into its layer; `undefined` for one that is written in an operation. */
  readonly level?: Level | undefined
  /** The guard of the operation that it replaces, because that one adds to the levels above. */
  readonly replaces?: (Function & Marked) | undefined
  /** What runs after it, see `behindGuard.ts`; `undefined` for none. */
  readonly then?: ReadonlyArray<Step> | undefined
  /** Whether it admits everyone, for tests: the handlers after it are not protected. */
  readonly isForTests?: boolean
}

/** The properties of a guard. */
export interface Marked extends Origin {
  readonly requirement: Requirement
}

/** Marks a function as the guard of a requirement. */
export const markGuard = <F extends Function>(guard: F, requirement: Requirement, origin: Origin): F & Marked =>
  notWrapped(Object.assign(guard, { ...origin, requirement, param: aheadOfParams, [guardMark]: true }))

/** Whether a function is a guard. */
export const isGuard = (f: unknown): f is Function & Marked => typeof f === 'function' && guardMark in f
