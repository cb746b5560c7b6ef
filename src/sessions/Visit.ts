/**
 * What is known about the session of one request: whether its store failed, and what of it has been kept.
 */
import type { Context } from 'koa'

/** The part of koa-session's session that is used here. */
export interface KoaSession {
  readonly populated: boolean
  readonly _expire?: number
  readonly save: () => Promise<void>
  readonly regenerate: () => Promise<void>
  readonly manuallyCommit: () => Promise<void>
}

/** One request. */
export interface Visit {
  /** Why the session cannot be known or changed. */
  fault?: unknown
  /** Commits, also after the session was set to nothing. */
  handle?: KoaSession
  /** The session's text as the store has it; `null` when it was ended. */
  kept?: string | null
  /** Whether the session was ended by another request while this one was under way. */
  isGone?: boolean
  /** A sign-in or sign-out that is under way; never rejects. */
  changing?: Promise<unknown>
}

const visits = new WeakMap<object, Visit>()

/** The visit of a request; begins with its first question. */
export const visitOf = (ctx: object): Visit => {
  const known = visits.get(ctx)
  if (known !== undefined) return known
  const visit: Visit = {}
  visits.set(ctx, visit)
  return visit
}

/** The session of a request, `null` when it was ended. */
export const sessionOf = (ctx: Context): KoaSession | null => ctx['session']

/** The text by which a change is told. */
export const textOf = (session: KoaSession | null): string | null => (session === null ? null : JSON.stringify(session))
