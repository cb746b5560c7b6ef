/**
 * `withPrincipal`: handlers are tested without credentials, for tests alone.
 *
 * It does not ask authenticators, nor whether a write comes from another site; everything else runs as in production.
 */
import type { Layer, RouterInstance } from '@koa/router'
import { either as E } from 'fp-ts'
import { make, type Authenticator } from '../core/Authenticator.js'
import * as Requirement from '../core/Requirement.js'
import { guardFor } from '../koa/guard.js'
import { isGuard, type Marked } from '../koa/guardMark.js'
import { checkRouter } from './operations.js'

const refuseProduction = (): void => {
  if (process.env['NODE_ENV'] === 'production') {
    throw new Error('withPrincipal lets everybody in; it refuses to where NODE_ENV is production')
  }
}

/**
 * A copy of a router whose guarded operations let in everybody as this principal: what handlers find in
 * `ctx.request.auth`, behind `also` as `{ inherited, own }`. Public operations stay public, the router itself stays as it is,
 * and the copy takes no operations of its own.
 *
 * Throws where NODE_ENV is `production`, also at every request. TypeError for what is no router.
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
 * const app = new Koa().use(withPrincipal({ user: 'anna' })(router).routes())
 * const server = app.listen(0)
 * const address = server.address()
 * const port = typeof address === 'object' ? address?.port : undefined
 * assert.strictEqual(await (await fetch(`http://127.0.0.1:${port}/me`)).text(), 'anna')
 * server.close()
 */
export const withPrincipal = (principal: unknown): (<R extends object>(router: R) => R) => {
  refuseProduction()
  const letIn = (asked: Authenticator<unknown>): Authenticator<unknown> =>
    make(asked.description, () => {
      refuseProduction()
      return E.right(principal)
    })
  const opened = (guard: Marked): Function => {
    const asked = Requirement.effective(guard.requirement)
    return guardFor(asked === undefined ? Requirement.open : Requirement.guardedBy(letIn(asked)), guard.levels)
  }
  return <R extends object>(router: R): R =>
    // Safe: it has the prototype and the properties of `router`
    copyOf(checkRouter('withPrincipal(principal)(router)', router), opened) as RouterInstance & R
}

const copyOf = (router: RouterInstance, opened: (guard: Marked) => Function): RouterInstance => {
  const copy: RouterInstance = Object.assign(Object.create(Object.getPrototypeOf(router)), router)
  copy.opts = { ...router.opts }
  copy.methods = [...router.methods]
  copy.params = { ...router.params }
  const stack = router.stack.map((layer): Layer =>
    Object.assign(Object.create(Object.getPrototypeOf(layer)), layer, {
      methods: [...layer.methods],
      stack: layer.stack.map((f) => (isGuard(f) ? opened(f) : f)),
    }),
  )
  // What the original's levels would decide about it is not known here
  Object.defineProperty(stack, 'push', {
    value: () => {
      throw new Error('withPrincipal(principal)(router) is a copy; register on the router itself, and copy it then')
    },
  })
  return Object.defineProperty(copy, 'stack', { value: Object.freeze(stack), enumerable: true })
}
