/**
 * Ends upgrades whose user signs out while they are decided. Their socket is not registered yet, so only the guard can
 * end them.
 *
 * If the sign-in is over when the decision is made, the upgrade is refused. After that, a sign-out destroys the socket,
 * until the caller of the guard had a turn of the event loop to register it.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { invalid } from '../core/AuthError.js'
import { make, rebuildOf, type Authenticator, type Wrap } from '../core/Authenticator.js'
import { constantFailure } from '../core/Description.js'
import { andThen } from '../core/Evaluation.js'
import { signedOut } from '../core/events/channels.js'
import { endsSignIn, type SignedOutEvent, type SignInDigests } from '../core/events/SignInEvent.js'
import { hearingMark } from '../core/marks.js'
import { signInDigestsOf } from '../core/session/SessionSource.js'

interface Hearing {
  readonly records: SignedOutEvent[]
  signIn: SignInDigests | undefined
}

type Heard = IncomingMessage & { [hearingMark]?: Hearing }

/**
 * Listens to sign-outs from now on, if the application listens too; otherwise it does not end sockets. Returns a
 * function that stops this.
 */
export const hearSignOuts = (request: Heard, socket: Duplex): (() => void) => {
  if (!signedOut.hasSubscribers) return () => {}
  const hearing: Hearing = { records: [], signIn: undefined }
  request[hearingMark] = hearing
  const hear = (record: unknown): void => {
    // Safe: only records of this type are published on the channel
    const over = record as SignedOutEvent
    if (hearing.signIn === undefined) hearing.records.push(over)
    else if (endsSignIn(over, hearing.signIn)) socket.destroy()
  }
  signedOut.subscribe(hear)
  return () => void signedOut.unsubscribe(hear)
}

/** Makes an authenticator that also refuses a request whose sign-in ended while it was decided. */
export const stillSignedIn = (self: Authenticator<unknown>): Authenticator<unknown> => {
  const { description } = self
  const refused = constantFailure(description, invalid)
  const within = rebuildOf(self)
  return make(
    description,
    (request) => andThen(self.evaluate(request), (result) => (E.isRight(result) && isOver(request) ? refused : result)),
    within && ((wrap: Wrap) => stillSignedIn(within(wrap))),
  )
}

// Safe: `hearSignOuts` put it there, if anything did
const isOver = ({ ctx, req }: Request): boolean => {
  const hearing = (req as Heard)[hearingMark]
  if (hearing === undefined) return false
  const signIn = signInDigestsOf(ctx)
  hearing.signIn = signIn
  return signIn !== undefined && hearing.records.some((record) => endsSignIn(record, signIn))
}
