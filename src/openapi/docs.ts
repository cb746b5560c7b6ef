/**
 * `docs`: the docs page of a router, and its OpenAPI document. On the page, a user enters credentials once and tries
 * operations.
 *
 * It consists of operations, so `withAuth` guards it. None of them is in the document. The document describes the
 * router as it is mounted; if koa-mount mounts it, which the router cannot see, set `servers`.
 */
import type { Context, DefaultContext, DefaultState, Next } from 'koa'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, type Checks } from '../core/options.js'
import type { OperationNote, Part } from '../koa/layer.js'
import { levelOf } from '../koa/levels.js'
import { docsAmong } from '../koa/operations.js'
import { planOf, writtenIn, type ApplicationLevel } from '../koa/plan.js'
import { checkRouter, newRouter, type Layer, type RouterInstance } from '../koa/router.js'
import { withAuth } from '../koa/withAuth.js'
import type * as Page from './docsPage.js'
import { documentChecks, type OpenApiOptions } from './documentOptions.js'
import { docsOperation, withoutExtensions } from './operation.js'
import { loadOnce, pageFiles, requireSwaggerUi } from './swaggerUi.js'
import type { Routed } from './routes.js'

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

/** Registers the page, its document, and each file under its own path on `target`. They describe `described`, perhaps the same router. */
export const addDocs = <S, C, T, D>(
  target: RouterInstance<S, C>,
  described: RouterInstance<T, D>,
  where: string,
  options: DocsOptions,
  // of swagger-ui-dist; without it, there is only the document
  folder: string | undefined,
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
    if (ctx.path.endsWith('/')) {
      // the references of the page are relative to the path without the slash
      ctx.set('Location', `../${ctx.path.slice(0, -1).split('/').at(-1)}`)
      return Object.assign(ctx, { status: 308, body: '' })
    }
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

// The document for a request, as an asset. Most applications never serve it, so its code is loaded for the first request
const documentAsset = (routed: Routed<DefaultState, DefaultContext>, options: OpenApiOptions) => {
  const loaded = loadOnce(async () => {
    const [{ cachedOpenApi }, { assetOf }] = await Promise.all([import('./document.js'), import('./docsPage.js')])
    return { edition: cachedOpenApi(routed, options), assetOf }
  })
  let last: { readonly json: string; readonly asset: Page.Asset } | undefined
  return async ({ request }: Context): Promise<Page.Asset> => {
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
  addDocs(own, router, 'docs', options, requireSwaggerUi('docs'))
  return own.routes()
}

declareFactory('docs', docs)

// The operations that a page describes: those of its router, as they are mounted where the request came in. Mounting clones layers with
// their prefixes, and a level above puts its guards into the clones. So the page lists the layers of `ctx.router` whose path starts with
// the path where the page's router was mounted, and whose plan belongs to its application (R13). A plain router is known by its path
// alone: mounted without a router, the document also describes its siblings. A page beside its router describes the router as it is.

interface MountedRouter {
  readonly stack: Layer[]
  readonly exclusive?: boolean | undefined
  readonly opts: { readonly prefix?: string | undefined; readonly exclusive?: boolean | 'specificity' | undefined }
}

// The layers of the dispatching router with the path of the running one
const layersAt = (ctx: Context): ReadonlyArray<Layer> => {
  const { stack }: MountedRouter = ctx['router']
  return stack.filter(({ path }) => path === ctx['routerPath'])
}

const isPartOf =
  (part: Part) =>
  (layer: Layer): boolean =>
    docsAmong(writtenIn(planOf(layer))) === part

// The described application at the running operation; `undefined` for a plain router
const applicationAt = (own: MountedRouter, part: Part, ctx: Context): ApplicationLevel | undefined => {
  const application = levelOf(own)?.application
  if (application === undefined) return undefined
  const isPart = isPartOf(part)
  const written = own.stack.find(isPart)
  const running = layersAt(ctx).find(isPart)
  if (written === undefined || running === undefined) return application
  // outer applications come first, and a copy of the router has another layer at the same position
  const { applications } = planOf(written)
  return planOf(running).applications.at(applications.indexOf(application) - applications.length)
}

/** Whether a layer can belong to the described router. A plain router is recognized only by its path. */
const isOf =
  (application: ApplicationLevel | undefined) =>
  (layer: Layer): boolean =>
    application === undefined || planOf(layer).applications.includes(application)

/** Makes something of the operations to describe, as they are mounted where a request came in, once for each place. */
const describing = <A>(own: MountedRouter, part: Part, describe: (described: MountedRouter) => A) => {
  const made = new WeakMap<MountedRouter, Map<string, A>>()
  return (ctx: Context): A => {
    const layer = own.stack.find(isPartOf(part))
    const router: MountedRouter = layer === undefined ? own : ctx['router']
    const base = layer === undefined ? '' : baseOf(String(ctx['routerPath']), String(layer.path), own.opts.prefix ?? '')
    const application = applicationAt(own, part, ctx)
    const ofRouter = made.get(router) ?? new Map<string, A>()
    made.set(router, ofRouter)
    const one = ofRouter.get(base) ?? describe(layer === undefined ? own : mountedPart(base, router, own, application))
    ofRouter.set(base, one)
    return one
  }
}

// The path after the router's own prefix is the same wherever the router is mounted
const baseOf = (mounted: string, unmounted: string, prefix: string): string => {
  const tail = unmounted.startsWith(prefix) ? unmounted.slice(prefix.length) : unmounted
  return mounted.endsWith(tail) ? mounted.slice(0, -tail.length) : ''
}

// A getter, because routes can be added between requests
const mountedPart = (
  base: string,
  router: MountedRouter,
  own: MountedRouter,
  application: ApplicationLevel | undefined,
): MountedRouter => ({
  ...(router.exclusive !== undefined && { exclusive: router.exclusive }),
  opts: router.opts,
  get stack() {
    const isOwn = isOf(application)
    return router.stack.filter((layer) => isOwn(layer) && (isBelow(base, layer) || isOwnPattern(own, layer)))
  },
})

const isBelow = (base: string, { path }: Layer): boolean =>
  base === '' || (typeof path === 'string' && path.startsWith(base) && /^(?:[/{]|$)/.test(path.slice(base.length)))

// Mounting does not change a RegExp
const isOwnPattern = (own: MountedRouter, { path }: Layer): boolean =>
  path instanceof RegExp && own.stack.some((layer) => layer.path === path)

/** Whether an operation of the application, at the same path, answers instead of a part, wherever it was registered. */
const isTaken = (own: MountedRouter, part: Part, ctx: Context): boolean => {
  const isOwn = isOf(applicationAt(own, part, ctx))
  const layers = layersAt(ctx).filter((layer) => layer.methods.includes('GET') && isOwn(layer))
  // at least one of them is this part, even if a tracer hides its mark
  return layers.length > Math.max(1, layers.filter(isPartOf(part)).length)
}
