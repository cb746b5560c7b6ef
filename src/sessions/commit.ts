/**
 * When a session is saved: after the operation, if it changed or is about to end, and never after an exception. A
 * request that was refused prolongs nothing (koa-session's `rolling` would).
 */
import type { Context } from 'koa'
import { hasData } from '../core/session/sessionFields.js'
import { sessionOf, textOf } from './KoaSession.js'
import type { RequestSession } from './RequestSession.js'
import { unavailable } from './SignInRefused.js'
import { StoreUnavailable } from '../stores/within.js'
import { dropCookies } from './takeBack.js'

/** The options of the application that saving a session needs. */
export interface CommitOptions {
  readonly https: boolean
  readonly cookieName: string
  /** In milliseconds. */
  readonly idle: number
}

/** Throws if a `Secure` cookie would have to be sent over an unencrypted connection. */
export const checkSecure = (ctx: Context, https: boolean): void => {
  if (https && !ctx.secure) {
    throw new Error(
      'sessions: the request came over http; behind a proxy that ends TLS, set app.proxy = true; for development, write sessions(app, { https: false })',
    )
  }
}

/** Runs a change of the store. An outage is a refusal, and the session is not changed again in this request. */
export const changing = async (session: RequestSession, change: () => Promise<void>): Promise<void> => {
  try {
    await session.stored.changing(async () => {
      if (session.stored.error !== undefined) throw unavailable(session.stored.error.error)
      await change()
    })
  } catch (error) {
    throw error instanceof StoreUnavailable ? unavailable(error) : error
  }
}

/** Saves a session that changed, and prolongs one that was used. */
export const commit = async (ctx: Context, session: RequestSession, options: CommitOptions): Promise<void> => {
  await keep(ctx, session, options)
  // the cookie of a session that has ended must not replace that of the sign-in that ended it
  if (session.stored.isLost) dropCookies(ctx, options.cookieName)
}

const keep = async (ctx: Context, session: RequestSession, { https, idle }: CommitOptions): Promise<void> => {
  // waits for a sign-in that the operation forgot to await
  await session.stored.settled()
  const now = sessionOf(ctx)
  const { koaSession, stored } = session
  if (koaSession === undefined) return
  if (stored.error !== undefined) {
    // an operation that needs no session is served during an outage
    if (now === null || hasData(now)) throw unavailable(stored.error.error)
    return
  }
  if (textOf(now) !== stored.text) {
    checkSecure(ctx, https)
    return changing(session, () => {
      if (now === null) return koaSession.manuallyCommit()
      // a session that was ended in this request continues under another id
      return stored.text === null ? koaSession.regenerate() : koaSession.save()
    })
  }
  if (now === null || ctx.status >= 400 || ctx.headerSent) return
  if (!isAging(now._expire, idle) && !session.isSignedByOlderKey) return
  checkSecure(ctx, https)
  session.signedAnew(ctx)
  // if it cannot be prolonged now, the next request does it
  await koaSession.save().catch(() => undefined)
}

const isAging = (expire: unknown, idle: number): boolean => typeof expire === 'number' && expire - Date.now() < idle / 2
