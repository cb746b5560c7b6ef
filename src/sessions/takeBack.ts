/**
 * What is done about the session of an operation that threw, whoever answers the exception: nothing of it is kept. Its
 * cookie is not sent, an id that was made in the request is ended, and what was written under an older one is put back.
 *
 * A session that was ended stays ended.
 */
import type { Context } from 'koa'
import type { RequestSession } from './RequestSession.js'
import { digestOf, type SessionStore } from './SessionStore.js'

/** What taking back needs to know of the application. All times are in milliseconds. */
export interface TakeBackOptions {
  readonly store: SessionStore
  readonly cookieName: string
  readonly idle: number
  readonly absolute: number
}

/** Takes back what the request did. Never rejects: in an outage something can be left in the store, but its cookie was not sent. */
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
