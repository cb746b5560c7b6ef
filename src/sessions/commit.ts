/**
 * When a session is kept: after the operation, if it changed or is about to end, and never after an exception. A request
 * that was refused prolongs nothing (koa-session's `rolling` would).
 */
import type { Context } from 'koa'
import { sessionOf, textOf, type KoaSession, type Visit } from './Visit.js'
import { unavailable } from './SignInRefused.js'
import { StoreUnavailable } from '../stores/within.js'

/** What is asked about. */
export interface CommitOptions {
  readonly https: boolean
  /** In milliseconds. */
  readonly idle: number
}

/** Throws where a `Secure` cookie would have to be sent over an unencrypted connection. */
export const checkSecure = (ctx: Context, https: boolean): void => {
  if (https && !ctx.secure) {
    throw new Error(
      'sessions: the request came over http; behind a proxy that ends TLS set app.proxy = true, for development sessions(app, { https: false })',
    )
  }
}

/** Runs a change of the store; its outage is a refusal, and the session is not touched again in this request. */
export const changing = (visit: Visit, change: () => Promise<void>): Promise<void> => {
  const changed = tryChange(visit, change)
  visit.changing = changed.catch(() => undefined)
  return changed
}

const tryChange = async (visit: Visit, change: () => Promise<void>): Promise<void> => {
  if (visit.fault !== undefined) throw unavailable(visit.fault)
  try {
    await change()
  } catch (error) {
    visit.fault = error
    throw error instanceof StoreUnavailable ? unavailable(error) : error
  }
}

/** Keeps what changed, and prolongs what was used. */
export const commit = async (ctx: Context, visit: Visit, { https, idle }: CommitOptions): Promise<void> => {
  // an operation that forgot to wait for a sign-in
  await visit.changing
  const session = sessionOf(ctx)
  const { handle, kept } = visit
  if (handle === undefined) return
  if (visit.fault !== undefined) {
    // an operation that needs no session is served all the same
    if (session === null || session.populated) throw unavailable(visit.fault)
    return
  }
  if (textOf(session) !== kept) {
    checkSecure(ctx, https)
    return changing(visit, () => {
      if (session === null) return handle.manuallyCommit()
      // a session that was ended in this request goes on under another id
      return kept === null ? handle.regenerate() : saved(ctx, visit, handle)
    })
  }
  if (session === null || !isAging(session._expire, idle) || ctx.status >= 400 || ctx.headerSent) return
  checkSecure(ctx, https)
  // a session that cannot be prolonged now is at the next request
  await saved(ctx, visit, handle).catch(() => undefined)
}

// The cookie of a session that is gone must not replace that of the sign-in that ended it
const saved = async (ctx: Context, visit: Visit, handle: KoaSession): Promise<void> => {
  const cookies = [ctx.res.getHeader('Set-Cookie') ?? []].flat().map(String)
  await handle.save()
  if (visit.isGone !== true) return
  if (cookies.length === 0) ctx.res.removeHeader('Set-Cookie')
  else ctx.res.setHeader('Set-Cookie', cookies)
}

const isAging = (expire: unknown, idle: number): boolean => typeof expire === 'number' && expire - Date.now() < idle / 2
