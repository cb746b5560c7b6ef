/**
 * When a session is saved: after the operation, if it changed or is about to end, and never after an exception. A
 * request that was refused prolongs nothing (koa-session's `rolling` would).
 */
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import { withCode } from '../core/data.js'
import { hasData } from '../kinds/plainSession.js'
import { setGiven, type WriteHead } from '../koa/responseHeaders.js'
import { StoreUnavailable } from '../stores/within.js'
import { endGrants } from './grants.js'
import type { RequestSession } from './RequestSession.js'
import { textOf, type KoaSession } from './StoredSession.js'
import type { SessionCookie } from './SessionCookie.js'
import { sessionKey, type SessionRecords } from './SessionRecords.js'
import { unavailable } from './SignIn.js'
import { endListed } from './SignInList.js'

export interface Saving extends SessionRecords {
  /** Whether browsers use only https. */
  readonly isSecure: boolean
  readonly cookieName: string
}

/**
 * Undoes the changes of the request. Never rejects: in an outage the store may keep a session whose cookie was not sent.
 *
 * It is for an operation that threw, even if a handler answers the exception. An id that was made in the request is ended, and the old data
 * of an older id are written back. A session that was ended stays ended. The grants of a sign-in end with it.
 */
export const undoRequest = async (
  ctx: Context,
  session: RequestSession,
  { store, cookieName, idle, absolute }: Saving,
): Promise<void> => {
  const { stored } = session
  await stored.changing
  dropCookies(ctx, cookieName)
  for (const [id, { textRead, isWritten, isEnded }] of stored.ids) {
    if (!isWritten || isEnded) continue
    const key = sessionKey(id)
    const undo = textRead === undefined ? store.end(key, absolute) : store.update(key, textRead, idle)
    await undo.then(
      () => stored.ended(id),
      () => undefined,
    )
  }
  const { begun, host } = session
  if (begun === undefined || host === undefined) return
  const { user, listed } = begun
  await endGrants(host, user, begun).catch(() => undefined)
  if (host.list !== undefined && listed !== undefined) await endListed(host.list, user, listed).catch(() => undefined)
}

const dropCookies = ({ res, headerSent }: Context, cookieName: string): void => {
  if (headerSent) return
  const lines = [res.getHeader('Set-Cookie') ?? []].flat().map(String)
  const others = lines.filter((line) => !line.startsWith(`${cookieName}=`))
  if (others.length === lines.length) return
  if (others.length === 0) res.removeHeader('Set-Cookie')
  else res.setHeader('Set-Cookie', others)
}

/** Throws if a `Secure` cookie would have to be sent over an unencrypted connection. */
export const checkSecure = (ctx: Context, isSecure: boolean): void => {
  if (isSecure && !ctx.secure) {
    throw withCode(
      new Error(
        'sessions: the request came over http; behind a proxy that ends TLS, set app.proxy = true; for development, write sessions(app, { https: false })',
      ),
      'ERR_INSECURE_REQUEST',
    )
  }
}

/** Runs a change of the store. An outage is a refusal, and the session is not changed again in this request. */
export const changeInStore = async (session: RequestSession, change: () => Promise<void>): Promise<void> => {
  try {
    await session.stored.runInOrder(async () => {
      if (session.stored.error !== undefined) throw unavailable(session.stored.error.error)
      await change()
    })
  } catch (error) {
    throw error instanceof StoreUnavailable ? unavailable(error) : error
  }
}

/** Whether a session was only looked at, and is young enough: there is nothing to save. */
export const isKept = (ctx: Context, session: RequestSession, { idle }: Saving): boolean =>
  !session.isRead && session.stored.changing === undefined && !session.isOfOlderKey && !isAgingIn(ctx, session, idle)

/** Saves a session that changed, and prolongs a session that was used. */
export const commit = async (ctx: Context, session: RequestSession, { isSecure, idle }: Saving): Promise<void> => {
  const { unfinished } = session.stored
  // waits for a sign-in that the operation forgot to await
  await session.stored.changing
  // its result is in no response
  if (unfinished > 0)
    throw new Error('askSecondFactor(ctx, kind, first) is not awaited; write await askSecondFactor(...)')
  const now = session.sessionOf(ctx) ?? null
  const { koaSession, stored } = session
  if (koaSession === undefined) return
  if (stored.error !== undefined) {
    // an operation that needs no session is served during an outage
    if (now === null || hasData(now) || stored.isRefused) throw unavailable(stored.error.error)
    return
  }
  // the session after a sign-out, into which nothing was written
  if (stored.text === null && now !== null && !hasData(now)) return
  if (session.isRead && textOf(now) !== stored.text) {
    checkSecure(ctx, isSecure)
    return changeInStore(session, () => {
      if (now === null) return koaSession.manuallyCommit()
      // or its record would stay bound to a key that may be dropped, in a session that is written in each request
      if (session.isOfOlderKey) session.bindAnew(ctx)
      // a session that was ended in this request continues under another id
      return stored.text === null ? koaSession.regenerate() : saved(ctx, session, koaSession)
    })
  }
  if (now === null || ctx.status >= 400 || !(session.sendsCookie || session.isOfToken(koaSession.externalKey ?? '')))
    return
  if (!isAgingIn(ctx, session, idle) && !session.isOfOlderKey) return
  checkSecure(ctx, isSecure)
  session.bindAnew(ctx)
  // if it cannot be prolonged now, the next request does it
  await saved(ctx, session, koaSession).catch(() => undefined)
}

// The store needs no header. koa-session saves, and then sets the cookie, which the browser has already, or got with the head
const saved = async (ctx: Context, session: RequestSession, koaSession: KoaSession): Promise<void> => {
  const isAtBrowser = session.stored.ids.size > 0 || session.isGivenAtHead
  try {
    await koaSession.save()
  } catch (error) {
    const isSent = ctx.headerSent && error instanceof Error && 'code' in error && error.code === 'ERR_HTTP_HEADERS_SENT'
    if (!isSent) throw error
    if (!isAtBrowser)
      throw new Error(
        'sessions: the changes of ctx.session by the handler are lost, because it had sent the head already, and the browser has no session yet; write into ctx.session before the head is sent',
        { cause: error },
      )
  }
}

// Gives the browser the cookie of a session that must be saved, when a handler sends the head by itself (`ctx.respond = false`,
// `flushHeaders`). The session is saved when the request ends.
const giveAtHead = (ctx: Context, session: RequestSession, status: number, options: Saving): void => {
  const now = session.sessionOf(ctx)
  const { koaSession, stored } = session
  if (!now || koaSession === undefined || stored.error !== undefined) return
  const isNew = session.isRead && stored.ids.size === 0 && hasData(now)
  const isOlder = status < 400 && isAgingIn(ctx, session, options.idle)
  if (!(isNew || isOlder) || (options.isSecure && !ctx.secure)) return
  const id = koaSession.externalKey ?? ''
  // a session that got another id has its cookie
  if (stored.ids.get(id)?.isEnded === true) return
  session.giveCookie(ctx, id)
  session.isGivenAtHead = true
}

const isAgingIn = (ctx: Context, session: RequestSession, idle: number): boolean => {
  const { _expire: expire } = session.sessionOf(ctx) ?? {}
  return typeof expire === 'number' && expire - Date.now() < (session.details(ctx).idle ?? idle) / 2
}

/**
 * Makes a function that watches the head of a response.
 *
 * A shared cache would send the session to the next visitor, because it may store all fields of a response (RFC 9111
 * §3). So a response that sets the session's cookie is kept out of it.
 *
 * This happens when the head is written, so no later `Cache-Control` of a handler or of middleware can undo it.
 * Middleware above that replaced `writeHead` itself is called after it, and decides itself about the fields that it writes.
 */
export const headWatcher = ({ name }: SessionCookie, options: Saving) => {
  const isOurs = (line: unknown) => String(line).startsWith(`${name}=`)
  return (ctx: Context, session: RequestSession): void => {
    // Safe: it is called in the same way
    const writeHead = ctx.res.writeHead as WriteHead
    const writeOwnHead: WriteHead = function (status, message, headers) {
      const left = message === undefined && headers === undefined ? [] : setGiven(this, [message, headers])
      if (!session.isSettled) giveAtHead(ctx, session, status, options)
      // a token has nothing to do with the cookie of the browser, and that of a session that has ended must not replace the cookie of
      // the sign-in that ended it
      if (!session.sendsCookie || session.stored.isLost) dropCookies(ctx, name)
      const cookies = this.getHeader('set-cookie')
      if (cookies !== undefined && [cookies].flat().some(isOurs)) forbidCaching(this)
      return writeHead.call(this, status, ...left)
    }
    ctx.res.writeHead = writeOwnHead
  }
}

const forbidCaching = (response: ServerResponse): void => {
  for (const name of response.getHeaderNames()) {
    if (decidesCaching(name) && name.toLowerCase() !== 'cache-control') response.removeHeader(name)
  }
  if (!isUncached(response.getHeader('Cache-Control'))) response.setHeader('Cache-Control', 'private, no-store')
}

// RFC 9213: a field for particular caches replaces Cache-Control for them. Their makers defined the others
const decidesCaching = (name: string): boolean =>
  /^(?:cache-control|.*-cache-control|surrogate-control|edge-control|x-accel-expires)$/i.test(name)

// The directives that forbid shared caches, and those that shared caches ignore; anything else is replaced
const harmless = /^(?:private|no-store|no-cache|must-revalidate|no-transform|max-age=\d+)$/i

const isUncached = (value: ReturnType<ServerResponse['getHeader']>): boolean => {
  const directives = [value ?? []].flat().flatMap((line) => String(line).split(','))
  const trimmed = directives.map((directive) => directive.trim())
  return trimmed.every((one) => harmless.test(one)) && trimmed.some((one) => /^(?:private|no-store)$/i.test(one))
}
