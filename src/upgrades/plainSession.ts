/**
 * A koa-session with a store that somebody set up by hand. Its middleware reads and writes, so an upgrade does only the part
 * that reads. Without a store koa-session reads the cookie where it is first asked for.
 */
import type { Middleware } from 'koa'
import { sourceOf } from '../core/session/SessionSource.js'

interface Reader {
  readonly store?: unknown
  readonly initFromExternal: () => Promise<void>
}

/** Reads the session of koa-session, where there is one that `koa-with-auth/sessions` did not set up. */
export const readPlainSession: Middleware = async (ctx, next) => {
  if (sourceOf(ctx) === undefined) {
    const key = Object.getOwnPropertySymbols(ctx.app.context).find(({ description }) => description === READER)
    // Safe: koa-session alone puts it there (koa-session 7, lib/index.js)
    const reader = key === undefined ? undefined : (Reflect.get(ctx, key) as Reader)
    if (reader?.store !== undefined) await reader.initFromExternal()
  }
  return next()
}

const READER = 'get contextSession'
