/**
 * Listens to sign-ins by sessions. The channel is `koa-with-auth:signed-in`.
 */
import { signedIn } from '../core/events/channels.js'
import type { SignedInEvent } from '../core/events/SignInEvent.js'
import { declareFactory } from '../core/hooks.js'
import { listening } from './listening.js'

/**
 * Calls `listener` with the record of each sign-in by `logIn`, when the request is over and the store has saved it.
 * Returns a function that stops this. If the listener throws, there is a process warning, and no response changes.
 *
 * @example
 * import { onSignedIn } from 'koa-with-auth/events'
 *
 * const end = onSignedIn(({ application, user }) => console.log(`${application}: user ${user} signed in`))
 * end()
 */
export const onSignedIn = (listener: (record: SignedInEvent) => void): (() => void) =>
  listening('onSignedIn', signedIn, listener)

declareFactory('onSignedIn', onSignedIn)
