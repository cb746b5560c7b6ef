/**
 * Reads the session of a koa-session that was set up by hand, with a store. Its middleware reads and writes, so an
 * upgrade runs only the part that reads. Without a store, koa-session reads the cookie when the session is first used.
 */
import type { Middleware } from 'koa'
import { sourceOf } from '../core/session/SessionSource.js'

interface Reader {
  readonly store?: unknown
  readonly initFromExternal: () => Promise<void>
}

/** Reads the session of a koa-session that `koa-with-auth/sessions` did not set up. */
export const readPlainSession: Middleware = async (ctx, next) => {
  if (sourceOf(ctx) === undefined) {
    const key = Object.getOwnPropertySymbols(ctx.app.context).find(({ description }) => description === READER)
    // Safe: only koa-session puts it there (koa-session 7, lib/index.js)
    const reader = key === undefined ? undefined : (Reflect.get(ctx, key) as Reader)
    if (reader?.store !== undefined) await reader.initFromExternal()
  }
  return next()
}

const READER = 'get contextSession'
