/**
 * What `koa-with-auth/sessions` tells the session authenticators about a request: whether its session can be known, and who
 * is signed in. A plain koa-session tells nothing.
 */
import type { Context } from 'koa'

/** Where the user of a request's session comes from. */
export interface SessionSource {
  /** Whether the store could not be asked, or not in time. */
  readonly isUnavailable: () => boolean
  /** Whether somebody is signed in. */
  readonly isSignedIn: (session: object) => boolean
  /** Loads who is signed in: a value, a promise, an Option, an Either or a TaskEither. */
  readonly load: (session: object) => unknown
}

const key = Symbol.for('koa-with-auth/session')

/** Lets a request carry it. */
export const carrySource = (ctx: Context, source: SessionSource): void => {
  ctx[key] = source
}

/** What a request carries. */
export const sourceOf = (ctx: Context): SessionSource | undefined => ctx[key]
