/**
 * `logIn` and `logOut` for files that cannot see the application, such as a router in its own file. They find the sessions by the
 * request.
 */
import { sourceOf } from '../core/session/SessionSource.js'
import { requestSessionOf } from './RequestSession.js'
import { contextOf, type LogInOptions, type Signing, type WithRequest } from './SignInFunctions.js'

/**
 * Calls the `logIn` that `sessions(app, ...)` returned for the application of this request. `user` must be a user of its
 * `loadUser`; the compiler cannot check that here. Rejects if the request came through no sessions, or if `identify` of the
 * application cannot identify the user.
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

/** Calls the `logOut` of the same application. Rejects if the request came through no sessions. */
export const logOut = async (ctx: WithRequest): Promise<void> => signingOf('logOut(ctx)', ctx).logOut(ctx)

const signingOf = (place: string, given: WithRequest): Signing<never> => {
  const ctx = contextOf(place, given)
  const signing = requestSessionOf(ctx).signing
  if (signing !== undefined) return signing
  throw new Error(
    sourceOf(ctx) === undefined
      ? `${place}: the application has no sessions; call sessions(app, ...) of koa-with-auth/sessions, for the outermost application`
      : `${place}: the request did not come through the sessions; call sessions(app, ...) before the routers are mounted`,
  )
}
