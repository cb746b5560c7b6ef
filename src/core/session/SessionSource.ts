/**
 * What `koa-with-auth/sessions` knows about the session of a request: whether its store failed, and who is signed in.
 * The session authenticators read it. A plain koa-session has none.
 */
import type { Context } from 'koa'
import type { SignInDigests } from '../events/SignInEvent.js'
import type { Rights } from './Rights.js'

/** Where the user of a request's session comes from. */
export interface SessionSource {
  /** Identifies the call of `sessions` that it belongs to. */
  readonly owner: object
  /** Decides who is let in. */
  readonly rights: Rights
  /** Whether the store failed, or did not answer in time. */
  readonly isUnavailable: () => boolean
  /** Whether a user is signed in. */
  readonly isSignedIn: (session: object) => boolean
  /** Loads the user who is signed in: a value, a promise, an Option, an Either or a TaskEither. */
  readonly load: (session: object) => unknown
  /** Who is signed in, as records of signing in and out name it. */
  readonly digests: (session: object) => SignInDigests | undefined
}

const key = Symbol.for('koa-with-auth/session')

/** Puts the source on a context. */
export const carrySource = (ctx: Context, source: SessionSource): void => {
  ctx[key] = source
}

/** Who is signed in by the session of a context, as records of signing in and out name it. */
export const signInDigestsOf = (ctx: Context): SignInDigests | undefined => {
  const session: unknown = ctx['session']
  return typeof session === 'object' && session !== null ? sourceOf(ctx)?.digests(session) : undefined
}

/** The source on a context. */
export const sourceOf = (ctx: Context): SessionSource | undefined => ctx[key]
