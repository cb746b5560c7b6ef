/**
 * Answers of the docs page: an asset with its validator, or 304 for who has it already. They read nothing of a request but
 * its path and its preconditions.
 */
import type { Context } from 'koa'
import type { Asset } from './assets.js'

/**
 * Serves an asset. Caches keep it and ask every time, so that an update is seen immediately; where a guard or upstream
 * middleware said more about caching, `keepCaching` leaves that as it is.
 */
export const serveAsset = (
  ctx: Context,
  { type, content, etag }: Asset,
  { fields = {}, keepCaching = false }: { fields?: Readonly<Record<string, string>>; keepCaching?: boolean } = {},
): void => {
  ctx.set({ ...fields, 'X-Content-Type-Options': 'nosniff', ETag: etag })
  if (!keepCaching || !ctx.res.hasHeader('Cache-Control')) ctx.set('Cache-Control', 'private, no-cache')
  ctx.status = 200
  if (ctx.fresh) {
    ctx.status = 304
    return
  }
  ctx.set('Content-Type', type)
  ctx.body = content
}

/** Sends who asked for `/docs/` to `/docs`, below which everything that the page refers to is found. */
export const withoutSlash = (ctx: Context): void => {
  ctx.status = 308
  ctx.set('Location', `../${ctx.path.slice(0, -1).split('/').at(-1)}`)
  ctx.body = ''
}
