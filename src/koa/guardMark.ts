/**
 * How a guard is told from other middleware, and kept in front of `param` hooks.
 *
 * Whoever reads what protects a route (levels, OpenAPI, the audit) reads the `requirement` that its guard carries.
 */
import type { Requirement } from '../core/Requirement.js'

const mark = Symbol.for('koa-with-auth/guard')

/**
 * The router sorts `param` hooks among the functions of a layer by their `param`, and puts them in front of the first that
 * has none. No path has a parameter of this name, so what carries it stays in front of them (SECURITY D-R10).
 */
export const aheadOfParams = Symbol('ahead of param hooks')

/** What tells a guard from other functions. */
export interface Marked {
  readonly requirement: Requirement
  /** Where it was decided, from the outermost that counts to the innermost: `operation`, or which router. */
  readonly levels: ReadonlyArray<string>
}

/** Marks a function as the guard of a requirement. */
export const markGuard = <F extends Function>(
  guard: F,
  requirement: Requirement,
  levels: ReadonlyArray<string> = ['operation'],
): F & Marked => Object.assign(guard, { requirement, levels, param: aheadOfParams, [mark]: true })

/** Whether a function is a guard. */
export const isGuard = (f: unknown): f is Marked => typeof f === 'function' && mark in f
