/**
 * Middleware after a guard: `withAuth(a, { then: [loadTenant, limitPerUser] })`. It belongs to the guard. It runs if
 * this guard lets the caller in, before `param` hooks and the handler. A level that replaces the guard replaces it too.
 * With `also`, the middleware of the levels above still runs, each with the principal of its own level.
 *
 * It protects nothing, so only the audit lists it.
 */
import type { Context, Next } from 'koa'
import { isAuthenticator } from '../core/Authenticator.js'
import { checkHook } from '../core/hooks.js'
import { checkOptions, maybe, type Check, type Checks } from '../core/options.js'
import type { AuthContext } from './AuthRouter.js'
import { isGuard, type Step } from './guardMark.js'
import { runAs } from './principal.js'
import { isRouter } from './routers.js'

/** Middleware that runs after a guard, so it knows the principal. */
export type BehindGuard<P> = (ctx: AuthContext<P>, next: Next) => unknown

/** The options of `withAuth`. */
export interface GuardOptions<P> {
  /** Middleware that runs after the guard, in this order, before the handler. Default: none. */
  readonly then?: ReadonlyArray<BehindGuard<P>> | undefined
}

/** An array of middleware. */
export const middlewareList: Check = (place, value) => {
  if (!Array.isArray(value)) throw new TypeError(`${place} must be an array of middleware`)
  // `entries` also visits holes
  for (const [at, one] of value.entries()) {
    if (isGuard(one)) {
      throw new TypeError(
        `${place}[${at}] is a guard, which works only in an operation or on a router; use also or allOf`,
      )
    }
    checkHook(`${place}[${at}]`, one, 2)
  }
}

const checks: Checks<GuardOptions<never>> = { then: maybe(middlewareList) }

/** The middleware of `withAuth`'s options. Throws a TypeError for anything else. */
export const stepsOfOptions = (options: GuardOptions<never> | undefined): ReadonlyArray<Step> => {
  if (options === undefined) return []
  if (isRouter(options))
    throw new TypeError('withAuth(a, options) takes an object of options, not a router; write withAuth(a)(router)')
  if (isAuthenticator(options))
    throw new TypeError(
      'withAuth(a, options) takes an object of options, not an authenticator; write withAuth([a, b]), or withAuth(allOf([a, b])) if both must pass',
    )
  if (typeof options === 'function')
    throw new TypeError(
      'withAuth(a, options) takes an object of options, not a function; write router.get(path, withAuth(a), handler)',
    )
  return stepsOf(checkOptions('withAuth(a, options)', options, checks).then)
}

/** The middleware of one level, checked. */
export const stepsOf = (then: ReadonlyArray<BehindGuard<never>> = []): ReadonlyArray<Step> =>
  // Safe: it is called with the principal of its guard, and its type was checked against that guard
  then.map((run) => ({ run: run as unknown as Step['run'], above: 0 }))

/** The middleware of a level, then that of a guard that adds `added` authenticators to those of the level. */
export const stepsWithin = (
  outer: ReadonlyArray<Step>,
  inner: ReadonlyArray<Step> = [],
  added: number,
): ReadonlyArray<Step> => [...outer.map((step) => ({ ...step, above: step.above + added })), ...inner]

/** Runs middleware one after the other, then `next`. An exception of it is a rejection, as of a handler. */
export const runBehind = (steps: ReadonlyArray<Step>): ((ctx: Context, next: Next) => Promise<unknown>) => {
  const isMixed = steps.some(({ above }) => above > 0)
  return async (ctx, next) => {
    const principal: unknown = Reflect.get(ctx.request, 'auth')
    const from = (at: number): Promise<unknown> => {
      const step = steps[at]
      let isCalled = false
      const goOn = (): Promise<unknown> => {
        if (isCalled) return Promise.reject(new Error('next() called multiple times'))
        isCalled = true
        return from(at + 1)
      }
      const run = async (): Promise<unknown> => {
        try {
          return await (step === undefined ? next() : step.run(ctx, goOn))
        } catch (error) {
          // Koa treats null and undefined as no error, and would never answer
          // eslint-disable-next-line @typescript-eslint/only-throw-error -- as it was thrown
          throw error ?? new Error('null or undefined was thrown behind a guard')
        }
      }
      return isMixed ? runAs(ctx, inherited(principal, step?.above ?? 0), true, run) : run()
    }
    return from(0)
  }
}

// `also` lets in `{ inherited, own }`
const inherited = (principal: unknown, above: number): unknown =>
  above === 0 || typeof principal !== 'object' || principal === null
    ? principal
    : inherited(Reflect.get(principal, 'inherited'), above - 1)
