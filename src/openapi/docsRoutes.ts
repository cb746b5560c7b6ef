/**
 * The operations of a docs page: the page, its document, and each asset under its own path. So the router's matching
 * decides what is served, and nothing else can be.
 */
import type { RouterInstance } from '../koa/routerTypes.js'
import type { Context, Next } from 'koa'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import { checkOptions } from '../core/options.js'
import { markAsset, markPart, type Part } from '../koa/pageAsset.js'
import { withAuth } from '../koa/withAuth.js'
import { assetOf, assetsIn, type Asset } from './assets.js'
import { cachedOpenApi } from './cachedDocument.js'
import { documentChecks, type OpenApiOptions } from './documentOptions.js'
import { isOwnAt, isPartOf, viewOf, type MountedRouter, type Place, type View } from './mountedOperations.js'
import { operation, withoutExtensions } from './operation.js'
import { fieldsOf, htmlOf, originsOf, type Page } from './page.js'
import { documentPart as documentOptionsOf, pageChecks, pageSettings, type DocsPageOptions } from './pageOptions.js'
import { serveAsset, withoutSlash } from './serve.js'

/** The parts of a docs page. */
export interface DocsParts {
  /** The function that makes it, for messages. */
  readonly place: string
  readonly options: DocsPageOptions & OpenApiOptions
  /** The folder of swagger-ui-dist. Without it, there is only the document. */
  readonly folder: string | undefined
}

/**
 * Registers them on the router `target`. They describe `described`, which may be the same router. Throws a TypeError
 * for options that cannot work.
 */
export const addDocs = <S, C, T, D>(
  target: RouterInstance<S, C>,
  described: RouterInstance<T, D>,
  { place, options, folder }: DocsParts,
): void => {
  checkOptions(place, withoutExtensions(options), { ...documentChecks, ...pageChecks })
  const document = documentOptionsOf(options)
  const settings = pageSettings(place, options)
  const { path, documentPath } = settings
  // `auth: undefined` is a mistake that `withAuth` refuses. Only a missing `auth` leaves them undecided
  const guards = 'auth' in options ? [withAuth(options.auth as AuthenticatorLike)] : []
  const get = (at: string, handler: Handler, mark: (f: Function) => Function): void => {
    // Safe: a guard is middleware, and nothing here reads the router's own context
    const functions = [mark(operation({ undocumented: true })), ...guards, handler] as unknown as never[]
    target.get(at, ...functions)
  }

  // Safe: it is only read
  const seen = described as unknown as MountedRouter
  const documentPart: Part = { path: documentPath, ...(folder === undefined && { missingPage: path }) }
  const serveDocument: Handler = (ctx, next) =>
    isTaken(ctx, documentPart, seen) ? next() : serveAsset(ctx, describe(ctx), { keepCaching: true })
  const describe = describing(viewOf(seen, documentPart), document)
  get(documentPath, serveDocument, markPart(documentPart))
  if (folder === undefined) return

  const { title, description, servers = [] } = document
  const page: Page = { ...settings, title, description, origins: originsOf(servers) }
  const html = assetOf('text/html; charset=utf-8', htmlOf(page))
  const fields = fieldsOf(page)
  const pagePart: Part = { path }
  const servePage: Handler = (ctx, next) => {
    if (isTaken(ctx, pagePart, seen)) return next()
    return ctx.path.endsWith('/') ? withoutSlash(ctx) : serveAsset(ctx, html, { fields, keepCaching: true })
  }
  get(path, servePage, markPart(pagePart))
  for (const { name, load } of assetsIn(folder)) {
    get(`${path}/${name}`, async (ctx: Context) => serveAsset(ctx, await load()), markAsset)
  }
}

type Handler = (ctx: Context, next: Next) => unknown

const placeOf = (ctx: Context): Place => ({ router: ctx['router'], layerPath: String(ctx['routerPath']) })

// An operation of the application at the same path replaces the page, wherever it was registered
const isTaken = (ctx: Context, part: Part, own: MountedRouter): boolean => {
  const place = placeOf(ctx)
  const isOwn = isOwnAt(own, part, place)
  const layers = place.router.stack.filter(
    (layer) => layer.path === place.layerPath && layer.methods.includes('GET') && isOwn(layer),
  )
  // at least one of them is this part, even if a tracer hides its mark
  return layers.length > Math.max(1, layers.filter(isPartOf(part)).length)
}

// The document for a request, as an asset
const describing = (view: View, options: OpenApiOptions): ((ctx: Context) => Asset) => {
  const editions = new WeakMap<ReturnType<View>, ReturnType<typeof cachedOpenApi>>()
  let last: { readonly json: string; readonly asset: Asset } | undefined
  return (ctx) => {
    const routed = view(placeOf(ctx))
    const edition = editions.get(routed) ?? cachedOpenApi(routed, options)
    editions.set(routed, edition)
    const { json } = edition(ctx.request)
    if (last?.json !== json) last = { json, asset: assetOf('application/json; charset=utf-8', json) }
    return last.asset
  }
}
