/**
 * How a guard is known from other middleware, and kept ahead of `param` hooks.
 *
 * Whoever reads what protects a route (levels, OpenAPI, the audit) reads what its guard carries. All of it is properties of
 * the function, so that a tracer's wrapper that copies properties is the same guard.
 */
import type { Context, Next } from 'koa'
import { aheadOfParams, guardMark } from '../core/marks.js'
import type { Requirement } from '../core/Requirement.js'
import { notWrapped } from './notWrapped.js'

/** What a level is known by: the guards that it put in and the router that it made carry the same one. */
export interface Level {
  readonly name: string
}

/** Middleware that runs behind a guard, and how many levels above its innermost decision it was written. */
export interface Step {
  readonly run: (ctx: Context, next: Next) => unknown
  readonly above: number
}

/** Where a guard comes from, and what is behind it. */
export interface Origin {
  /** Where it was decided, from the outermost that counts to the innermost: `operation`, or which router. */
  readonly levels: ReadonlyArray<string>
  /** The level that put it into its layer; `undefined` for one that is written in an operation. */
  readonly level?: Level | undefined
  /** The guard of the operation that it replaces, because that one adds to the levels above. */
  readonly replaces?: (Function & Marked) | undefined
  /** What runs behind it, see `behindGuard.ts`; `undefined` for none. */
  readonly then?: ReadonlyArray<Step> | undefined
  /** Whether it admits everyone, for tests: the handlers behind it are not protected. */
  readonly isForTests?: boolean
}

/** What a guard carries, and other functions do not. */
export interface Marked extends Origin {
  readonly requirement: Requirement
}

/** Marks a function as the guard of a requirement. */
export const markGuard = <F extends Function>(guard: F, requirement: Requirement, origin: Origin): F & Marked =>
  notWrapped(Object.assign(guard, { ...origin, requirement, param: aheadOfParams, [guardMark]: true }))

/** Whether a function is a guard. */
export const isGuard = (f: unknown): f is Function & Marked => typeof f === 'function' && guardMark in f
