/**
 * Listens to the ends of sessions. The channel is `koa-with-auth:signed-out`.
 */
import { signedOut } from '../core/events/channels.js'
import type { SignedOutEvent } from '../core/events/SignInEvent.js'
import { declareFactory } from '../core/hooks.js'
import { listening } from './listening.js'

/**
 * Calls `listener` with a record when a session has ended and the store knows it: by `logOut`, by `logOutEverywhere`, by a new
 * sign-in, or by expiry, when a request shows it. Returns a function that stops listening. If the listener throws, there is a
 * process warning, and no answer changes. `endsSignIn` compares a record with the sign-in of a socket or a stream.
 *
 * A record is published only in the process that ended the session. If there are several processes, send it to the others as JSON.
 *
 * @example
 * import { onSignedOut } from 'koa-with-auth/events'
 *
 * const end = onSignedOut(({ application, user, reason }) => console.log(`${application}: user ${user} is signed out, ${reason}`))
 * end()
 */
export const onSignedOut = (listener: (record: SignedOutEvent) => void): (() => void) =>
  listening('onSignedOut', signedOut, listener)

declareFactory('onSignedOut', onSignedOut)
