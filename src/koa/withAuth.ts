/**
 * `withAuth`: mounts an authenticator on an operation, on a router, or on a router where it is registered (spec 5.6).
 *
 * Its result is a guard. A guard is a value, so many places can use the same guard. It guards operations, not
 * middleware.
 */
import type { Context, DefaultContext, DefaultState, Next, Request } from 'koa'
import { authenticatorOf } from '../core/lists.js'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import * as is from '../core/checks.js'
import { checkHook, checkOptions, declareFactory, type Check, type Checks } from '../core/options.js'
import type { Finds } from '../core/Exchange.js'
import * as Requirement from '../core/Requirement.js'
import type { AlsoGuard, AlsoPrincipal, AuthContext, Guard } from './AuthRouter.js'
import {
  composed,
  type Condition,
  type ObjectsAsked,
  type GuardWith,
  type Guarding,
  type Members,
  type PrincipalAsked,
  type PrincipalWith,
} from './conditions.js'
import { enforce, fix } from './guard.js'
import { isApplication, isGuard, markGuard, refuseUse, type ThenMiddleware } from './layer.js'
import { atLevel, refuseLateGuards } from './levels.js'
import { refuseOwnedObjects } from './parameters.js'
import { checkRouter, isRouter, newRouter, shownByTrial, routerTooOld, type RouterInstance } from './router.js'

declare global {
  interface KoaWithAuthHost {
    /** Koa's `ctx.request`: the first argument of hooks. */
    readonly request: Request
  }
}

/**
 * Makes a guard from an authenticator, from any function of the request, or from a list of them, which is tried in order. `null`
 * makes operations public that a higher level guards. `also(a)` adds to the level above.
 *
 * - `router.get('/x', withAuth(a), handler)`: this operation. Write it once, after the path.
 * - `withAuth(a)(router)`: a router whose operations, present and future, are guarded unless they decide themselves. The
 *   argument is not changed. A second call replaces the first: `withAuth(b)(withAuth(a)(r))` is `withAuth(b)(r)`.
 *
 * Each further argument is a condition: a function from an authenticator to an authenticator, such as the results of `authorize` and
 * `requireScopes`. They are applied from left to right, as in `pipe(a, ...conditions)`, when the guard is made.
 *
 * Middleware in the option `then` runs after the guard, with its principal, once for each request to an operation of this guard. It
 * does not run if a lower level replaces the guard.
 *
 * Throws a TypeError for anything else, and for a guard in a place where it could not protect.
 *
 * @example
 * import Router from '@koa/router'
 * import { httpBearer, withAuth } from 'koa-with-auth'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const router = withAuth(bearer)(new Router())
 *
 * router.get('/me', (ctx) => {
 *   ctx.body = ctx.request.auth.user
 * })
 * router.get('/health', withAuth(null), (ctx) => {
 *   ctx.body = 'ok'
 * })
 */
export function withAuth(auth: null): Guard<undefined>
// The most conditions first: a compiler types the content of an argument by the first overload that it tries
export function withAuth<const M extends Guarding, A, B, C, D, E, F, U, V, W, X, Y, Z>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A, ObjectsAsked<M>, U>,
  second: Condition<A, B, U, V>,
  third: Condition<B, C, V, W>,
  fourth: Condition<C, D, W, X>,
  fifth: Condition<D, E, X, Y>,
  sixth: Condition<E, F, Y, Z>,
  options?: GuardOptions<PrincipalWith<M, F>, U & V & W & X & Y & Z>,
): GuardWith<M, F, U & V & W & X & Y & Z>
export function withAuth<const M extends Guarding, A, B, C, D, E, U, V, W, X, Y>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A, ObjectsAsked<M>, U>,
  second: Condition<A, B, U, V>,
  third: Condition<B, C, V, W>,
  fourth: Condition<C, D, W, X>,
  fifth: Condition<D, E, X, Y>,
  options?: GuardOptions<PrincipalWith<M, E>, U & V & W & X & Y>,
): GuardWith<M, E, U & V & W & X & Y>
export function withAuth<const M extends Guarding, A, B, C, D, U, V, W, X>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A, ObjectsAsked<M>, U>,
  second: Condition<A, B, U, V>,
  third: Condition<B, C, V, W>,
  fourth: Condition<C, D, W, X>,
  options?: GuardOptions<PrincipalWith<M, D>, U & V & W & X>,
): GuardWith<M, D, U & V & W & X>
export function withAuth<const M extends Guarding, A, B, C, U, V, W>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A, ObjectsAsked<M>, U>,
  second: Condition<A, B, U, V>,
  third: Condition<B, C, V, W>,
  options?: GuardOptions<PrincipalWith<M, C>, U & V & W>,
): GuardWith<M, C, U & V & W>
export function withAuth<const M extends Guarding, A, B, U, V>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A, ObjectsAsked<M>, U>,
  second: Condition<A, B, U, V>,
  options?: GuardOptions<PrincipalWith<M, B>, U & V>,
): GuardWith<M, B, U & V>
export function withAuth<const M extends Guarding, A, U>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A, ObjectsAsked<M>, U>,
  options?: GuardOptions<PrincipalWith<M, A>, U>,
): GuardWith<M, A, U>
export function withAuth<P, O = unknown>(
  auth: Requirement.Also<P> & Finds<O>,
  options?: GuardOptions<AlsoPrincipal<unknown, P>, O>,
): AlsoGuard<P, O>
export function withAuth<const M extends AuthenticatorLike | Members>(
  auth: M,
  options?: GuardOptions<PrincipalAsked<M>, ObjectsAsked<M>>,
): Guard<PrincipalAsked<M>, ObjectsAsked<M>>
// A compiler reports the error of the last overload: this overload names the property that the principal lacks for a condition
export function withAuth<const M extends AuthenticatorLike | Members, A, U>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A, ObjectsAsked<M>, U> | GuardOptions<PrincipalAsked<M>, ObjectsAsked<M>>,
): GuardWith<M, A, U>
export function withAuth(given: unknown, ...rest: ReadonlyArray<unknown>): unknown {
  const { auth, options } = composed('withAuth', given, rest)
  const requirement = requirementOf('withAuth', auth)
  const then = stepsOfOptions(options)
  if (then.length > 0 && requirement === Requirement.open) {
    throw new TypeError('withAuth(null, { then }): a public operation has no guard to run after; use router.use')
  }
  ownClass ??= classOfRouters()
  refuseLateGuards(ownClass)
  const origin = { levels: ['operation'], then }
  const run = enforce(requirement, origin)
  const guard = markGuard(
    // Safe: with a `next` it is called as middleware; otherwise `guardable` checks the argument
    (target: unknown, next?: Next): unknown => {
      if (next !== undefined) return run(target as Context, next)
      return atLevel(requirement, { then })(guardable(target))
    },
    requirement,
    origin,
  )
  refuseUse(
    guard,
    (caller) => `${caller}(withAuth(a)) would guard by path prefix, which other spellings of the path evade; ${fix}`,
  )
  return guard
}

// The class of the routers that the application imports
let ownClass: Function | undefined

// An application may have another package than @koa/router
const classOfRouters = (): Function | undefined => {
  try {
    return newRouter().constructor
  } catch {
    return undefined
  }
}

declareFactory('withAuth', withAuth)

/** The requirement of an authenticator, a list or `null`. Throws a TypeError that begins with the place for anything else. */
export const requirementOf = (
  caller: 'withAuth' | 'guardApp' | 'apiApp({ auth })',
  auth: unknown,
): Requirement.Requirement => {
  const written = (what: string) => (caller === 'apiApp({ auth })' ? `apiApp({ auth: ${what} })` : `${caller}(${what})`)
  if (auth === null) return Requirement.open
  if (auth === undefined) {
    throw new TypeError(
      `${written('undefined')}: is it imported before it is defined? Only a literal null makes an operation public`,
    )
  }
  if (isGuard(auth))
    throw new TypeError(`${written('withAuth(a)')}: it is a guard already; pass the authenticator itself`)
  if (Requirement.isAlso(auth)) {
    Requirement.checkAlso('withAuth(also(...))', auth)
    return auth
  }
  if (isRouter(auth))
    throw new TypeError(`${written('router')}: a router is no authenticator; write withAuth(a)(router)`)
  const authenticator =
    caller === 'apiApp({ auth })' ? authenticatorOf(caller, auth, caller) : authenticatorOf(caller, auth)
  if (caller !== 'withAuth')
    refuseOwnedObjects(caller === 'guardApp' ? 'guardApp(a)' : caller, authenticator.description)
  return Requirement.guardedBy(authenticator)
}

const guardable = (u: unknown): RouterInstance<never, never> => {
  if (isApplication(u)) {
    throw new TypeError(
      'withAuth(a)(router) takes a router of @koa/router, not an application; guard each of its routers, or write apiApp({ auth: a })',
    )
  }
  const router = checkRouter<never, never>('withAuth(a)(router)', u, 'withAuth(a)(router).routes()')
  refuseLateGuards(router.constructor)
  if (!saysWhatRuns(router)) throw new TypeError(`withAuth(a)(router): ${routerTooOld}`)
  return router
}

/** Middleware that runs after a guard, so it knows the principal. */
export type AfterGuard<P, O = unknown> = (ctx: AuthContext<P, DefaultState, DefaultContext, O>, next: Next) => unknown

export interface GuardOptions<P, O = unknown> {
  /** Middleware that runs after the guard, in this order, before the handler. Default: none. */
  readonly then?: ReadonlyArray<AfterGuard<P, O>> | undefined
}

export const middlewareList: Check = (where, value) => {
  if (!Array.isArray(value)) throw new TypeError(`${where} must be an array of middleware`)
  // `entries` also visits holes
  for (const [at, one] of value.entries()) {
    if (isGuard(one)) {
      throw new TypeError(
        `${where}[${at}] is a guard, which works only in an operation or on a router; use also or allOf`,
      )
    }
    checkHook(`${where}[${at}]`, one, 2)
  }
}

const withAuthChecks: Checks<GuardOptions<never>> = { then: is.maybe(middlewareList) }

const stepsOfOptions = (options: unknown): ReadonlyArray<ThenMiddleware> => {
  if (options === undefined) return []
  if (isRouter(options))
    throw new TypeError('withAuth(a, options) takes an object of options, not a router; write withAuth(a)(router)')
  // Safe: anything but an object of these options is refused
  return stepsOf(checkOptions('withAuth(a, options)', options as GuardOptions<never>, withAuthChecks).then)
}

export const stepsOf = (then: ReadonlyArray<AfterGuard<never>> = []): ReadonlyArray<ThenMiddleware> =>
  // Safe: it is called with the principal of its guard, and its type was checked against that guard
  then.map((run) => ({ run: run as unknown as ThenMiddleware['run'], above: 0 }))

const PATH = '/koa-with-auth'

/** Whether routers of this class say which layer runs; guards must know it, and check it again. */
const saysWhatRuns = shownByTrial((type) => {
  let path: unknown = PATH
  try {
    // Safe: the constructor of a router needs no argument, and any exception is caught
    const router = Reflect.construct(type, []) as RouterInstance
    router.register(PATH, ['GET'], (ctx) => {
      path = ctx.routerPath
    })
    const context = { path: PATH, method: 'GET', request: {}, state: {} }
    // A router calls its first function before it returns
    void Promise.resolve(Reflect.apply(router.routes(), undefined, [context, () => undefined])).catch(() => undefined)
  } catch {
    return true
  }
  return path === PATH
}, true)
