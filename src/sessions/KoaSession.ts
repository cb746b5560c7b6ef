/**
 * The part of koa-session's session that is used here.
 */
import type { Context } from 'koa'
import { sessionData } from '../core/session/sessionFields.js'

/** What koa-session has at `ctx.session`. */
export interface KoaSession {
  readonly _expire?: number
  readonly save: () => Promise<void>
  readonly regenerate: () => Promise<void>
  readonly manuallyCommit: () => Promise<void>
}

/** The session of a context; `null` when it was ended. */
export const sessionOf = (ctx: Context): KoaSession | null => ctx['session']

/** Whether the operation ended the session. */
export const isDropped = (ctx: object): boolean => 'session' in ctx && ctx.session === null

/** The data of a session as JSON, to find changes. */
export const textOf = (session: KoaSession | null): string | null =>
  session === null ? null : JSON.stringify(sessionData(session))
