/**
 * Says which sign-in a request belongs to. A socket or a stream outlives the request, and must end with the session.
 */
import type { SignInDigests } from '../core/events/SignInEvent.js'
import { signInDigestsOf } from '../core/session/SessionSource.js'
import type { WithRequest } from './SignInFunctions.js'

/**
 * Returns the digests of the user and the session of a request, which the records of `onSignedOut` contain, too. Returns
 * `undefined` if the caller is not signed in, or if the session is unknown because of an outage. Store the digests with a socket or
 * a stream, and compare them with `endsSignIn`.
 *
 * It reports what was true when the session was read. A listener that is added later does not hear of a sign-out in between; the
 * guide "Sessions" shows how to hear of it.
 *
 * @example
 * import type { Middleware } from 'koa'
 * import { endsSignIn, onSignedOut } from 'koa-with-auth/events'
 * import { signInDigests } from 'koa-with-auth/sessions'
 *
 * const events: Middleware = (ctx) => {
 *   const signIn = signInDigests(ctx)
 *   const end = onSignedOut((record) => {
 *     if (signIn !== undefined && endsSignIn(record, signIn)) ctx.res.end()
 *   })
 *   ctx.res.once('close', end)
 * }
 */
export const signInDigests = ({ request }: WithRequest): SignInDigests | undefined => signInDigestsOf(request.ctx)
