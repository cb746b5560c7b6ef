/**
 * `withPrincipal` lets tests call guarded handlers without credentials.
 *
 * It calls no authenticator, and it skips the cross-site check. Everything else runs as in production.
 */
import * as E from 'fp-ts/lib/Either.js'
import { make, type Authenticator } from '../core/Authenticator.js'
import * as is from '../core/checks.js'
import { checkOptions } from '../core/options.js'
import * as Requirement from '../core/Requirement.js'
import { guardFor } from '../koa/guard.js'
import { copyLayer, copyRouter, onMutation, type GuardFunction, type GuardProperties } from '../koa/layer.js'
import { planned, planOf, writePlan } from '../koa/plan.js'
import { checkRouter, type RouterInstance } from '../koa/router.js'

const refuseOutsideTests = ({ outsideTests = false }: PrincipalOptions): void => {
  const env = process.env['NODE_ENV']
  if (env === 'test' || (outsideTests && env !== 'production')) return
  throw new Error(
    `withPrincipal admits every request, so it works only where NODE_ENV is test; ${
      env === 'production'
        ? 'here it is production'
        : `here it is ${env === undefined ? 'not set' : env}: set it, or write withPrincipal(principal, { outsideTests: true })`
    }`,
  )
}

/** Where `withPrincipal` may admit every caller. */
export interface PrincipalOptions {
  /** Whether it also works if NODE_ENV is not `test`, for a developer's server. It never works in `production`. Default false. */
  readonly outsideTests?: boolean | undefined
}

/**
 * Copies a router. The guarded operations of the copy admit every request as this principal: handlers find it in
 * `ctx.request.auth`, and after `also` as `{ inherited, own }`. Public operations stay public. The original router does
 * not change. You cannot add operations to the copy.
 *
 * Throws if NODE_ENV is not `test`, also at every request. The audit calls the operations of the copy public, and `seal` refuses
 * them. Throws a TypeError if the argument is not a router.
 *
 * @example
 * import Router from '@koa/router'
 * import Koa from 'koa'
 * import { httpBearer, withAuth } from 'koa-with-auth'
 * import { withPrincipal } from 'koa-with-auth/testing'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const router = withAuth(bearer)(new Router())
 * router.get('/me', (ctx) => {
 *   ctx.body = ctx.request.auth.user
 * })
 *
 * const app = new Koa().use(withPrincipal({ user: 'anna' })(router).routes()) // GET /me answers "anna" to every caller
 */
export const withPrincipal = (
  principal: unknown,
  given: PrincipalOptions = {},
): (<R extends object>(router: R) => R) => {
  const options = checkOptions('withPrincipal', given, { outsideTests: is.maybe(is.flag) })
  refuseOutsideTests(options)
  const letIn = (authenticator: Authenticator<unknown>): Authenticator<unknown> =>
    make(authenticator.description, () => {
      refuseOutsideTests(options)
      return E.right(principal)
    })
  const openGuard = ({ requirement, levels, then }: GuardProperties): GuardFunction => {
    const authenticator = Requirement.effective(requirement)
    return authenticator === undefined
      ? guardFor(Requirement.open, { levels })
      : guardFor(Requirement.guardedBy(letIn(authenticator)), {
          levels: ['withPrincipal, for tests'],
          isForTests: true,
          then,
        })
  }
  return <R extends object>(router: R): R =>
    // Safe: it has the prototype and the properties of `router`
    openCopy(checkRouter('withPrincipal(principal)(router)', router), openGuard) as RouterInstance & R
}

const openCopy = (router: RouterInstance, openGuard: (guard: GuardProperties) => GuardFunction): RouterInstance => {
  const layers = router.stack.map((layer) => {
    const copy = copyLayer(layer)
    const plan = planOf(layer)
    const guard = plan.guard && openGuard(plan.guard)
    writePlan(copy, planned({ ...plan, own: guard, levels: [], guard }))
    return copy
  })
  // The decision of the original's levels about a new operation is unknown
  const refuse = (): never => {
    throw new Error('withPrincipal(principal)(router) is a copy; register on the router itself, and copy it then')
  }
  return Object.defineProperty(copyRouter(router), 'stack', {
    value: Object.freeze(onMutation(layers, refuse)),
    enumerable: true,
  })
}
