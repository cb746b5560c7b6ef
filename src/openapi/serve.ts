/**
 * Responses of the docs page: an asset with its validator, or a 304 if the client has it already. They read only the
 * path and the preconditions of a request.
 */
import type { Context } from 'koa'
import type { Asset } from './assets.js'

/**
 * Serves an asset. Caches keep it, but ask before each use, so updates are seen immediately. With `keepCaching`, a
 * `Cache-Control` that a guard or middleware above has set stays.
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

/** Redirects `/docs/` to `/docs`, because the references of the page are relative to that. */
export const withoutSlash = (ctx: Context): void => {
  ctx.status = 308
  ctx.set('Location', `../${ctx.path.slice(0, -1).split('/').at(-1)}`)
  ctx.body = ''
}
