/**
 * Undoes the changes of a session by an operation that threw, even if a handler answers the exception. Its cookie is
 * not sent, an id that was made in the request is ended, and the old data of an older id are written back.
 *
 * A session that was ended stays ended.
 */
import type { Context } from 'koa'
import type { RequestSession } from './RequestSession.js'
import { digestOf, type SessionStore } from './SessionStore.js'

/** The options of the application that this needs. All times are in milliseconds. */
export interface TakeBackOptions {
  readonly store: SessionStore
  readonly cookieName: string
  readonly idle: number
  readonly absolute: number
}

/**
 * Undoes what the request did. Never rejects: in an outage something may stay in the store, but its cookie was not
 * sent.
 */
export const takeBack = async (
  ctx: Context,
  { stored }: RequestSession,
  { store, cookieName, idle, absolute }: TakeBackOptions,
): Promise<void> => {
  await stored.settled()
  dropCookies(ctx, cookieName)
  for (const [id, { textRead, isWritten, isEnded }] of stored.ids) {
    if (!isWritten || isEnded) continue
    const undo = textRead === undefined ? store.end(digestOf(id), absolute) : store.update(digestOf(id), textRead, idle)
    await undo.then(
      () => stored.ended(id),
      () => undefined,
    )
  }
}

/** Sends no cookie of the session. */
export const dropCookies = ({ res, headerSent }: Context, cookieName: string): void => {
  if (headerSent) return
  const lines = [res.getHeader('Set-Cookie') ?? []].flat().map(String)
  const others = lines.filter((line) => !line.startsWith(`${cookieName}=`) && !line.startsWith(`${cookieName}.sig=`))
  if (others.length === lines.length) return
  if (others.length === 0) res.removeHeader('Set-Cookie')
  else res.setHeader('Set-Cookie', others)
}
