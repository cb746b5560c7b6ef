/**
 * Signing in and out where the application is not at hand, as in a router of a file of its own: the request knows the sessions
 * that it came through.
 */
import { sourceOf } from '../core/session/SessionSource.js'
import { requestSessionOf } from './RequestSession.js'
import type { LogInOptions, Signing, WithRequest } from './SignInFunctions.js'

/**
 * The `logIn` that `sessions(app, ...)` returned for the application whose request it is. `user` is what its `loadUser` loads; the
 * compiler cannot check that here. Rejects where the request came through no sessions, and for a user whom `identify` of the
 * application cannot identify.
 *
 * @example
 * import Router from '@koa/router'
 * import { withAuth } from 'koa-with-auth'
 * import { logIn } from 'koa-with-auth/sessions'
 *
 * export const signIn = new Router()
 * signIn.post('/login', withAuth(null), async (ctx) => {
 *   await logIn(ctx, { username: 'anna' }) // once the password is verified
 *   ctx.status = 204
 * })
 */
export const logIn = async <U extends object>(ctx: WithRequest, user: U, options?: LogInOptions): Promise<void> =>
  // Safe: `identify` of the application refuses what it cannot identify
  signingOf('logIn(ctx, user)', ctx).logIn(ctx, user as never, options)

/** The `logOut` of the same. Rejects where the request came through no sessions. */
export const logOut = async (ctx: WithRequest): Promise<void> => signingOf('logOut(ctx)', ctx).logOut(ctx)

const signingOf = (place: string, given: WithRequest | undefined): Signing<never> => {
  const ctx = given?.request?.ctx
  if (ctx === undefined) throw new TypeError(`${place}: ctx must be the context of a request`)
  const signing = requestSessionOf(ctx).signing
  if (signing !== undefined) return signing
  throw new Error(
    sourceOf(ctx) === undefined
      ? `${place}: the application has no sessions; call sessions(app, ...) of koa-with-auth/sessions, for the outermost application`
      : `${place}: the request did not come through the sessions; call sessions(app, ...) before the routers are mounted`,
  )
}
