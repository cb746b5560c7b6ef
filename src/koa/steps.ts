/**
 * Middleware after a guard: `withAuth(a, { then: [loadTenant, limitPerUser] })`. It belongs to the guard. It runs if
 * this guard lets the caller in, before `param` hooks and the handler. A level that replaces the guard replaces it too.
 * With `also`, the middleware of the levels above still runs, each with the principal of its own level.
 *
 * It is not a check of access. OpenAPI ignores it; the audit lists it.
 */
import type { Context, Next } from 'koa'
import { isAuthenticator } from '../core/Authenticator.js'
import { exchangeOf, type Exchange } from '../core/Settings.js'
import { checkHook, checkOptions, maybe, type Check, type Checks } from '../core/options.js'
import type { AuthContext } from './AuthRouter.js'
import { isGuard, type ThenMiddleware } from './layer.js'
import { isRouter } from './router.js'
import { markThrown } from './settings.js'

/*
 * `ctx.request.auth` is set while an operation runs. Two layers of a router can match one URL. So the principal of an
 * outer guard is restored when the request comes back to it.
 *
 * With the setting `state` the principal is in `ctx.state` too, where older handlers read it.
 */

type Guarded = Context['request'] & { auth?: unknown }

/** Runs with this principal. `isNested`: whether a guard around this one has set another. */
export const runAs = <A>(
  ctx: Context,
  { settings: { state } }: Exchange,
  principal: unknown,
  isNested: boolean,
  run: () => Promise<A>,
): Promise<A> => {
  // `auth` is a property that this package adds to the request
  const request: Guarded = ctx.request
  if (isNested) return runInside(ctx, request, state, principal, run)
  request.auth = principal
  // a public operation does not change what others put there
  if (state !== undefined && principal !== undefined) ctx.state[state] = principal
  return run()
}

const runInside = async <A>(
  ctx: Context,
  request: Guarded,
  state: string | undefined,
  principal: unknown,
  run: () => Promise<A>,
): Promise<A> => {
  const outer = request.auth
  const outerState: unknown = state === undefined ? undefined : ctx.state[state]
  const set = (auth: unknown, inState: unknown): void => {
    request.auth = auth
    if (state === undefined) return
    if (inState === undefined) delete ctx.state[state]
    else ctx.state[state] = inState
  }
  set(principal, principal)
  try {
    return await run()
  } finally {
    set(outer, outerState)
  }
}

/** Middleware that runs after a guard, so it knows the principal. */
export type AfterGuard<P> = (ctx: AuthContext<P>, next: Next) => unknown

/** The options of `withAuth`. */
export interface GuardOptions<P> {
  /** Middleware that runs after the guard, in this order, before the handler. Default: none. */
  readonly then?: ReadonlyArray<AfterGuard<P>> | undefined
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
export const stepsOfOptions = (options: GuardOptions<never> | undefined): ReadonlyArray<ThenMiddleware> => {
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
export const stepsOf = (then: ReadonlyArray<AfterGuard<never>> = []): ReadonlyArray<ThenMiddleware> =>
  // Safe: it is called with the principal of its guard, and its type was checked against that guard
  then.map((run) => ({ run: run as unknown as ThenMiddleware['run'], above: 0 }))

/** The middleware of a level, then that of a guard that adds `added` authenticators to those of the level. */
export const stepsWithin = (
  outer: ReadonlyArray<ThenMiddleware> = [],
  inner: ReadonlyArray<ThenMiddleware> = [],
  added: number,
): ReadonlyArray<ThenMiddleware> => [...outer.map((step) => ({ ...step, above: step.above + added })), ...inner]

/** Runs middleware one after the other, then `next`. An exception of it is a rejection, as of a handler. */
export const runAfterGuard = (
  steps: ReadonlyArray<ThenMiddleware>,
): ((ctx: Context, next: Next) => Promise<unknown>) => {
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
          // an earlier function may answer it
          markThrown(ctx)
          // Koa treats null and undefined as no error, and would never answer
          // eslint-disable-next-line @typescript-eslint/only-throw-error -- as it was thrown
          throw error ?? new Error('null or undefined was thrown behind a guard')
        }
      }
      return isMixed ? runAs(ctx, exchangeOf(ctx), inherited(principal, step?.above ?? 0), true, run) : run()
    }
    return from(0)
  }
}

// `also` lets in `{ inherited, own }`
const inherited = (principal: unknown, above: number): unknown =>
  above === 0 || typeof principal !== 'object' || principal === null
    ? principal
    : inherited(Reflect.get(principal, 'inherited'), above - 1)
