/**
 * `docs`: the docs page of a router, and its OpenAPI document. On the page, a user enters credentials once and tries
 * operations.
 *
 * It consists of operations, so `withAuth` guards it. None of them is in the document. The document describes the
 * router as it is mounted (`view.ts`); if koa-mount mounts it, which the router cannot see, set `servers`.
 */
import type { Context, DefaultContext, DefaultState, Next } from 'koa'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, type Checks } from '../core/options.js'
import type { OperationNote, Part } from '../koa/layer.js'
import { checkRouter, newRouter, type RouterInstance } from '../koa/router.js'
import { withAuth } from '../koa/withAuth.js'
import type * as Page from './docsPage.js'
import { documentChecks, type OpenApiOptions } from './documentOptions.js'
import { docsOperation, withoutExtensions } from './operation.js'
import { loadOnce, pageFiles, requireSwaggerUi } from './swaggerUi.js'
import type { Routed } from './routes.js'
import { describing, isTaken } from './view.js'

export interface DocsPageOptions {
  /** The path of the page in its router. Default `/docs`. */
  readonly path?: string | undefined
  /** The path of the document in its router. Default `/openapi.json`. */
  readonly documentPath?: string | undefined
  /**
   * The guard of the page, its document and its files, as for `withAuth`. Browsers must send the credential by
   * themselves: Basic, a session, or a key in a cookie.
   */
  readonly auth?: AuthenticatorLike | readonly [AuthenticatorLike, ...AuthenticatorLike[]] | null
}

const plainPath = is.that(
  // only characters without a special meaning in URLs and in patterns of the router
  (value) => typeof value === 'string' && /^(?:\/[\w~-][\w.~-]*)+$/.test(value),
  'must be a path such as "/docs": letters, digits, ".", "-", "_", "~"; no slash at the end',
)

const pageChecks: Checks<DocsPageOptions> = {
  path: is.maybe(plainPath),
  documentPath: is.maybe(plainPath),
  // `withAuth` checks it
  auth: is.unchecked,
}

/** Serves an asset, which caches ask for before each use. `keepCaching`: a `Cache-Control` that a guard has set stays. */
const serveAsset = (
  ctx: Context,
  { type, content, etag }: Page.Asset,
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
const withoutSlash = (ctx: Context): void => {
  ctx.status = 308
  ctx.set('Location', `../${ctx.path.slice(0, -1).split('/').at(-1)}`)
  ctx.body = ''
}

interface DocsParts {
  readonly where: string
  readonly options: DocsPageOptions & OpenApiOptions
  /** The folder of swagger-ui-dist. Without it, there is only the document. */
  readonly folder: string | undefined
}

/**
 * Registers the page, its document, and each file under its own path on the router `target`, so the router's matching decides what is
 * served. They describe `described`, which may be the same router. Throws a TypeError
 * for options that cannot work.
 */
export const addDocs = <S, C, T, D>(
  target: RouterInstance<S, C>,
  described: RouterInstance<T, D>,
  { where, options, folder }: DocsParts,
): void => {
  checkOptions(where, withoutExtensions(options), { ...documentChecks, ...pageChecks })
  const { path = '/docs', documentPath = '/openapi.json', auth, ...document } = options
  // the router ignores the case of letters
  if (path.toLowerCase() === documentPath.toLowerCase()) {
    throw new TypeError(`${where}({ path, documentPath }) are equal; the page and the document need different paths`)
  }
  // `auth: undefined` is a mistake that `withAuth` refuses. Only a missing `auth` leaves them undecided
  const guards = 'auth' in options ? [withAuth(auth as AuthenticatorLike)] : []
  const get = (at: string, handler: DocsHandler, serves: OperationNote['docs']): void => {
    // Safe: a guard is middleware, and nothing here reads the router's own context
    const functions = [docsOperation(serves), ...guards, handler] as unknown as never[]
    target.get(at, ...functions)
  }

  // Safe: it is only read
  const seen = described as unknown as Parameters<typeof isTaken>[0]
  const documentPart: Part = { path: documentPath, ...(folder === undefined && { missingPage: path }) }
  const documentAt = describing(seen, documentPart, (routed) => documentAsset(routed, document))
  const serveDocument: DocsHandler = async (ctx, next) =>
    isTaken(seen, documentPart, ctx) ? next() : serveAsset(ctx, await documentAt(ctx)(ctx), { keepCaching: true })
  get(documentPath, serveDocument, documentPart)
  if (folder === undefined) return

  const { title, description, servers = [] } = document
  const page = loadOnce(async () => {
    const { pageOf, assetsIn } = await import('./docsPage.js')
    return { ...pageOf({ path, documentPath, title, description, servers }), assets: assetsIn(folder) }
  })
  const pagePart: Part = { path }
  const servePage: DocsHandler = async (ctx, next) => {
    if (isTaken(seen, pagePart, ctx)) return next()
    if (ctx.path.endsWith('/')) return withoutSlash(ctx)
    const { html, fields } = await page()
    return serveAsset(ctx, html, { fields, keepCaching: true })
  }
  get(path, servePage, pagePart)
  for (const [at, name] of pageFiles.entries()) {
    const serveFile: DocsHandler = async (ctx) => serveAsset(ctx, await (await page()).assets[at]!.load())
    get(`${path}/${name}`, serveFile, 'file')
  }
}

type DocsHandler = (ctx: Context, next: Next) => unknown

// The document for a request, as an asset. Most applications never serve it, so what makes it is loaded for the first request
const documentAsset = (
  routed: Routed<DefaultState, DefaultContext>,
  options: OpenApiOptions,
): ((ctx: Context) => Promise<Page.Asset>) => {
  const loaded = loadOnce(async () => {
    const [{ cachedOpenApi }, { assetOf }] = await Promise.all([import('./document.js'), import('./docsPage.js')])
    return { edition: cachedOpenApi(routed, options), assetOf }
  })
  let last: { readonly json: string; readonly asset: Page.Asset } | undefined
  return async ({ request }) => {
    const { edition, assetOf } = await loaded()
    const { json } = edition(request)
    if (last?.json !== json) last = { json, asset: assetOf('application/json; charset=utf-8', json) }
    return last.asset
  }
}

export interface DocsOptions extends OpenApiOptions, DocsPageOptions {}

/**
 * Returns middleware that serves the docs page of a router at `/docs`, and its document at `/openapi.json`. Mount it on the
 * application, or with `use` on that router or any other. Without `auth`, the router that it is mounted on decides, as for all
 * operations. On the application it is public.
 *
 * Throws a TypeError if `swagger-ui-dist` is not installed, and for options that cannot work.
 *
 * @example
 * import Koa from 'koa'
 * import Router from '@koa/router'
 * import { httpBasicAuth } from 'koa-with-auth'
 * import { docs } from 'koa-with-auth/openapi'
 *
 * const router = new Router()
 * const developers = httpBasicAuth({ authenticate: (_request, user, password) => user === 'dev' && password === 's3cret' })
 * const app = new Koa()
 * app.use(docs(router, { title: 'Users', version: '1.0.0', auth: developers }))
 * app.use(router.routes())
 */
export const docs = <S, C>(
  router: RouterInstance<S, C>,
  options: DocsOptions,
): ReturnType<RouterInstance['routes']> => {
  checkRouter('docs(router, options)', router)
  const own = newRouter()
  addDocs(own, router, { where: 'docs', options, folder: requireSwaggerUi('docs') })
  return own.routes()
}

declareFactory('docs', docs)
