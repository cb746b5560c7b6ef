/**
 * Listens to the ends of sessions. The channel is `koa-with-auth:signed-out`.
 */
import { signedOut } from '../core/events/channels.js'
import type { SignedOutEvent } from '../core/events/SignInEvent.js'
import { declareFactory } from '../core/hooks.js'
import { listening } from './listening.js'

/**
 * Calls `listener` with a record when a session is over, as soon as the store has it: by `logOut`, by `logOutEverywhere`, by a new
 * sign-in, and by expiry where a request shows it. Returns a function that ends it. What the listener throws becomes a process
 * warning; no answer changes. `endsSignIn` compares a record with who opened a socket or a stream.
 *
 * A record is published in the process that ended the session. Where there are several, send it to the others, as JSON.
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
