/**
 * Which sign-in a request came by, for what outlives it: a socket or a stream that must end with the session.
 */
import type { SignInDigests } from '../core/events/SignInEvent.js'
import { signInDigestsOf } from '../core/session/SessionSource.js'
import type { WithRequest } from './SignInFunctions.js'

/**
 * Who is signed in at this time by the session of a request, as the records of `onSignedOut` name it; `undefined` for a
 * caller who is not signed in, and where the session cannot be known (an outage). Keep it beside a socket or a stream, and ask `endsSignIn`.
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
