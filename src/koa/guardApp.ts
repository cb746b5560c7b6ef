/**
 * `guardApp`: guards a whole application, whatever it mounts: a GraphQL server, static files, another application. Levels inside only
 * add: a request to an operation of a guarded router must pass both, and `withAuth(null)` inside opens nothing.
 */
import type Koa from 'koa'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import { upgradeMark } from '../core/data.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { effective } from '../core/Requirement.js'
import type { Auth } from './AuthRouter.js'
import { composed, type Condition, type Members, type PrincipalAsked } from './conditions.js'
import { applicationGuard } from './guard.js'
import { isApplication, isGuard } from './layer.js'
import { requirementOf } from './withAuth.js'

export interface GuardAppOptions {
  /**
   * The functions that `app.use` was given before, and that may answer without the guard, such as CORS, which answers
   * preflights. Default: none. `authSettings` and `sessions` need not be listed.
   */
  readonly middleware?: ReadonlyArray<Function> | undefined
}

const functions = is.listOf(
  (f) => typeof f === 'function',
  'must be an array of the functions that were passed to app.use',
)

// The result of `routes()` has no name of use
const functionLabel = (f: Function): string => ('router' in f ? 'a router' : f.name || 'a function without a name')

/** Guards an application, and types the principal of the middleware that it uses later. */
type GuardsApp<P> = <S, C>(app: Koa<S, C>) => Koa<S, C & Auth<P>>

/**
 * Guards an application: `guardApp(a)(app)`, before `app.use`. It takes an authenticator, any function of the request, or a list of
 * them, which is tried in order. Conditions may follow, as in `withAuth(a, ...conditions)`. Handlers find the principal in
 * `ctx.request.auth`. Requests that no handler answers are refused too, and so are preflights of CORS, unless CORS middleware
 * answers them first: see `middleware`.
 *
 * Mount `authSettings` and `sessions` before it. Throws a TypeError for `null`, and if the application has other middleware
 * already, because its answers would not be guarded. Upgrades are guarded by `guardUpgrade`.
 *
 * @example
 * import Koa from 'koa'
 * import { guardApp, httpBearer } from 'koa-with-auth'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const app = guardApp(bearer)(new Koa())
 * app.use((ctx) => {
 *   ctx.body = ctx.request.auth.user
 * })
 */
// The most conditions first, as in `withAuth`
export function guardApp<const M extends AuthenticatorLike | Members, A, B, C, D, E, F>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A>,
  second: Condition<A, B>,
  third: Condition<B, C>,
  fourth: Condition<C, D>,
  fifth: Condition<D, E>,
  sixth: Condition<E, F>,
  options?: GuardAppOptions,
): GuardsApp<F>
export function guardApp<const M extends AuthenticatorLike | Members, A, B, C, D, E>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A>,
  second: Condition<A, B>,
  third: Condition<B, C>,
  fourth: Condition<C, D>,
  fifth: Condition<D, E>,
  options?: GuardAppOptions,
): GuardsApp<E>
export function guardApp<const M extends AuthenticatorLike | Members, A, B, C, D>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A>,
  second: Condition<A, B>,
  third: Condition<B, C>,
  fourth: Condition<C, D>,
  options?: GuardAppOptions,
): GuardsApp<D>
export function guardApp<const M extends AuthenticatorLike | Members, A, B, C>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A>,
  second: Condition<A, B>,
  third: Condition<B, C>,
  options?: GuardAppOptions,
): GuardsApp<C>
export function guardApp<const M extends AuthenticatorLike | Members, A, B>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A>,
  second: Condition<A, B>,
  options?: GuardAppOptions,
): GuardsApp<B>
export function guardApp<const M extends AuthenticatorLike | Members, A>(
  auth: M,
  first: Condition<PrincipalAsked<M>, A>,
  options?: GuardAppOptions,
): GuardsApp<A>
export function guardApp<const M extends AuthenticatorLike | Members>(
  auth: M,
  options?: GuardAppOptions,
): GuardsApp<PrincipalAsked<M>>
export function guardApp(given: unknown, ...rest: ReadonlyArray<unknown>): (app: Koa) => unknown {
  const { auth, options = {} } = composed('guardApp', given, rest)
  // Safe: anything but an object of these options is refused
  const { middleware = [] } = checkOptions('guardApp(a, options)', options as GuardAppOptions, {
    middleware: is.maybe(functions),
  })
  const requirement = requirementOf('guardApp', auth)
  const authenticator = requirement._tag === 'Require' ? effective(requirement) : undefined
  if (authenticator === undefined) {
    throw new TypeError('guardApp(a): a must be an authenticator; an application that anyone may call needs no guard')
  }
  const guard = applicationGuard(authenticator, requirement)
  return (app) => {
    if (!isApplication(app)) {
      throw new TypeError('guardApp(a)(app) takes a Koa application; guard a router with withAuth(a)(router)')
    }
    const earlier = app.middleware.find((f) => !(upgradeMark in f) && !isGuard(f) && !middleware.includes(f))
    if (earlier !== undefined) {
      throw new TypeError(
        `guardApp(a)(app): responses of ${functionLabel(earlier)} would not be guarded; call guardApp before app.use, or list the function in { middleware }`,
      )
    }
    return app.use(guard)
  }
}

declareFactory('guardApp', guardApp)
