/**
 * Records of signing in and out. They name users and sessions by digests. So a reader of a record cannot take a session
 * over or find it in a store. A user's name has different digests in different applications.
 */
import { createHash } from 'node:crypto'

/** Who is signed in, and by which session, as digests. They are the same in every process of a service. */
export interface SignInDigests {
  /** Of the application's name and the user's identifier. It is a pseudonym: names can be guessed. */
  readonly user: string
  /** Of the session's id. */
  readonly session: string
}

/** A user signed in; frozen. */
export interface SignedInEvent extends SignInDigests {
  /** The name of the application. */
  readonly application: string
  /** Who it is, if `authSettings({ events: { subject } })` says so. */
  readonly subject?: string
}

/**
 * Why a session is over.
 *
 * | reason             | what happened                                                                      |
 * |--------------------|------------------------------------------------------------------------------------|
 * | `logOut`           | `logOut`, or the application removed the sign-in from the session                  |
 * | `logOutEverywhere` | all sessions of the user were ended; without `session` in the process that did it  |
 * | `renewed`          | the session got a new id: somebody signed in again, or the application asked for it |
 * | `idle`             | it was not used for too long, which a request of it showed                          |
 * | `absolute`         | it was too old, which a request of it showed                                        |
 */
export type SignedOutReason = 'logOut' | 'logOutEverywhere' | 'renewed' | 'idle' | 'absolute'

/** A session is over, or all sessions of a user; frozen. */
export interface SignedOutEvent {
  readonly application: string
  readonly reason: SignedOutReason
  /** @see SignInDigests */
  readonly user: string
  /** Which session; left out if all sessions of the user are over. */
  readonly session?: string
}

/** The digest of a user. */
export const userDigest = (application: string, user: string): string => digest('user', application, user)

/** The digest of a session. It is not the one under which stores keep it. */
export const sessionDigest = (id: string): string => digest('session', id)

// A JSON array, so that different parts never make the same string
const digest = (...parts: ReadonlyArray<string>): string =>
  createHash('sha256')
    .update(JSON.stringify(['koa-with-auth/events', ...parts]))
    .digest('base64url')

/**
 * Whether a record says that a sign-in is over. What the sign-in opened must end then, such as a socket or a stream.
 * The record may come from another process, as JSON.
 *
 * @example
 * import { endsSignIn, onSignedOut, type SignInDigests } from 'koa-with-auth/events'
 *
 * const sockets = new Map<{ close: () => void }, SignInDigests>()
 * const end = onSignedOut((record) => {
 *   for (const [socket, signIn] of sockets) if (endsSignIn(record, signIn)) socket.close()
 * })
 * end()
 */
export const endsSignIn = (record: SignedOutEvent, signIn: SignInDigests): boolean =>
  record.session === undefined ? record.user === signIn.user : record.session === signIn.session
