/**
 * `docs`: the docs page of a router, and its OpenAPI document. On the page, a user enters credentials once and tries
 * operations.
 *
 * It consists of operations, so `withAuth` guards it. None of them is in the document. The document describes the
 * router as it is mounted; if koa-mount mounts it, which the router cannot see, set `servers`. Operations of a plain
 * router are recognized by their path: if it is mounted without one, the document also describes its siblings. Those of
 * an `apiApp` have marks.
 */
import type { Context, Next } from 'koa'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { levelOf } from '../koa/levels.js'
import { newRouter } from '../koa/newRouter.js'
import { partAmong } from '../koa/operations.js'
import type { OperationNote, Part } from '../koa/layer.js'
import { planOf, writtenIn, type Application } from '../koa/plan.js'
import { checkRouter, type Layer, type RouterInstance } from '../koa/router.js'
import { withAuth } from '../koa/withAuth.js'
import { cachedOpenApi, documentChecks, type OpenApiOptions } from './document.js'
import { docsOperation, withoutExtensions } from './operation.js'
import {
  assetOf,
  assetsIn,
  pageChecks,
  pageOf,
  pageSettings,
  requireSwaggerUi,
  type Asset,
  type DocsPageOptions,
} from './page.js'

/*
 * Which operations a docs page describes: those of its router, as they are mounted where the request came in.
 *
 * Mounting clones layers with their prefixes, and a level above puts its guards into the clones. So the page
 * lists the layers of `ctx.router` whose path starts with the path where the page's router was mounted. The plan of a layer says which applications it belongs to (R13). Layers of a plain router are recognized by their path. A page that is
 * mounted beside its router describes the router as it is.
 */

/** The part of a router that is read here. */
interface MountedRouter {
  readonly stack: Layer[]
  readonly exclusive?: boolean | undefined
  readonly opts: { readonly prefix?: string | undefined; readonly exclusive?: boolean | 'specificity' | undefined }
}

/** Where a request came in: the router that dispatches, and the path of the running layer in it. */
interface Mount {
  readonly router: MountedRouter
  readonly layerPath: string
}

/** Returns the operations to describe: the same value for the same router and place. */
type DescribedOperations = (mount: Mount) => MountedRouter

/** Whether a layer serves a part. */
const isPartOf =
  (part: Part) =>
  (layer: Layer): boolean =>
    partAmong(writtenIn(planOf(layer))) === part

// The described application at the running operation; `undefined` for a plain router
const applicationAt = (own: MountedRouter, part: Part, { router, layerPath }: Mount): Application | undefined => {
  const application = levelOf(own)?.application
  if (application === undefined) return undefined
  const isPart = isPartOf(part)
  const written = own.stack.find(isPart)
  const running = router.stack.find((layer) => layer.path === layerPath && isPart(layer))
  if (written === undefined || running === undefined) return application
  // outer applications come first, and a copy of the router has another one at the same position
  const { applications } = planOf(written)
  return planOf(running).applications.at(applications.indexOf(application) - applications.length)
}

/** Whether a layer can belong to the described router. A plain router is recognized only by its path. */
const belongsTo = (own: MountedRouter, part: Part, mount: Mount): ((layer: Layer) => boolean) => {
  const application = applicationAt(own, part, mount)
  return (layer) => application === undefined || planOf(layer).applications.includes(application)
}

/** The operations of a router, seen from its operation that serves a part, wherever it is mounted. */
const viewOf = (own: MountedRouter, part: Part): DescribedOperations => {
  const views = new WeakMap<MountedRouter, Map<object | string, MountedRouter>>()
  return (mount) => {
    const { router, layerPath } = mount
    const layer = own.stack.find(isPartOf(part))
    if (layer === undefined) return own
    const base = baseOf(layerPath, String(layer.path), own.opts.prefix ?? '')
    const application = applicationAt(own, part, mount)
    if (base === '' && application === undefined) return router
    const ofRouter = views.get(router) ?? new Map<object | string, MountedRouter>()
    views.set(router, ofRouter)
    const key = base === '' && application !== undefined ? application : base
    const view = ofRouter.get(key) ?? mountedPart(base, router, own, belongsTo(own, part, mount))
    ofRouter.set(key, view)
    return view
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
  isOwn: (layer: Layer) => boolean,
): MountedRouter => ({
  ...(router.exclusive !== undefined && { exclusive: router.exclusive }),
  opts: router.opts,
  get stack() {
    return router.stack.filter((layer) => isOwn(layer) && (isBelow(base, layer) || isOwnPattern(own, layer)))
  },
})

const isBelow = (base: string, { path }: Layer): boolean =>
  base === '' || (typeof path === 'string' && path.startsWith(base) && /^(?:[/{]|$)/.test(path.slice(base.length)))

// Mounting does not change a RegExp
const isOwnPattern = (own: MountedRouter, { path }: Layer): boolean =>
  path instanceof RegExp && own.stack.some((layer) => layer.path === path)

/*
 * Responses of the docs page: an asset with its validator, or a 304 if the client has it already. They read only the
 * path and the preconditions of a request.
 */

/**
 * Serves an asset. Caches keep it, but ask before each use, so updates are seen immediately. With `keepCaching`, a
 * `Cache-Control` that a guard or middleware above has set stays.
 */
const serveAsset = (
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
const withoutSlash = (ctx: Context): void => {
  ctx.status = 308
  ctx.set('Location', `../${ctx.path.slice(0, -1).split('/').at(-1)}`)
  ctx.body = ''
}

/*
 * The operations of a docs page: the page, its document, and each asset under its own path. So the router's matching
 * decides what is served, and nothing else can be.
 */

/** The parts of a docs page. */
interface DocsParts {
  /** The function that makes it, for messages. */
  readonly where: string
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
  { where, options, folder }: DocsParts,
): void => {
  checkOptions(where, withoutExtensions(options), { ...documentChecks, ...pageChecks })
  const document = documentOptionsOf(options)
  const settings = pageSettings(where, options)
  const { path, documentPath } = settings
  // `auth: undefined` is a mistake that `withAuth` refuses. Only a missing `auth` leaves them undecided
  const guards = 'auth' in options ? [withAuth(options.auth as AuthenticatorLike)] : []
  const get = (at: string, handler: Handler, serves: OperationNote['docs']): void => {
    // Safe: a guard is middleware, and nothing here reads the router's own context
    const functions = [docsOperation(serves), ...guards, handler] as unknown as never[]
    target.get(at, ...functions)
  }

  // Safe: it is only read
  const seen = described as unknown as MountedRouter
  const documentPart: Part = { path: documentPath, ...(folder === undefined && { missingPage: path }) }
  const serveDocument: Handler = (ctx, next) =>
    isTaken(ctx, documentPart, seen) ? next() : serveAsset(ctx, describe(ctx), { keepCaching: true })
  const describe = describing(viewOf(seen, documentPart), document)
  get(documentPath, serveDocument, documentPart)
  if (folder === undefined) return

  const { title, description, servers = [] } = document
  const { html, fields } = pageOf({ ...settings, title, description, servers })
  const pagePart: Part = { path }
  const servePage: Handler = (ctx, next) => {
    if (isTaken(ctx, pagePart, seen)) return next()
    return ctx.path.endsWith('/') ? withoutSlash(ctx) : serveAsset(ctx, html, { fields, keepCaching: true })
  }
  get(path, servePage, pagePart)
  for (const { name, load } of assetsIn(folder)) {
    get(`${path}/${name}`, async (ctx: Context) => serveAsset(ctx, await load()), 'file')
  }
}

type Handler = (ctx: Context, next: Next) => unknown

const mountOf = (ctx: Context): Mount => ({ router: ctx['router'], layerPath: String(ctx['routerPath']) })

// An operation of the application at the same path replaces the page, wherever it was registered
const isTaken = (ctx: Context, part: Part, own: MountedRouter): boolean => {
  const mount = mountOf(ctx)
  const isOwn = belongsTo(own, part, mount)
  const layers = mount.router.stack.filter(
    (layer) => layer.path === mount.layerPath && layer.methods.includes('GET') && isOwn(layer),
  )
  // at least one of them is this part, even if a tracer hides its mark
  return layers.length > Math.max(1, layers.filter(isPartOf(part)).length)
}

// The document for a request, as an asset
const describing = (view: DescribedOperations, options: OpenApiOptions): ((ctx: Context) => Asset) => {
  const editions = new WeakMap<ReturnType<DescribedOperations>, ReturnType<typeof cachedOpenApi>>()
  let last: { readonly json: string; readonly asset: Asset } | undefined
  return (ctx) => {
    const routed = view(mountOf(ctx))
    const edition = editions.get(routed) ?? cachedOpenApi(routed, options)
    editions.set(routed, edition)
    const { json } = edition(ctx.request)
    if (last?.json !== json) last = { json, asset: assetOf('application/json; charset=utf-8', json) }
    return last.asset
  }
}

/** The options of a docs page and of its document. */
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
 * import { httpBasicAuth, httpBearer, withAuth } from 'koa-with-auth'
 * import { docs } from 'koa-with-auth/openapi'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const router = new Router()
 * router.get('/me', withAuth(bearer), (ctx) => {
 *   ctx.body = ctx.request.auth.user
 * })
 *
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

/** The options of the document, without those of the page. */
const documentOptionsOf = (options: DocsPageOptions & OpenApiOptions): OpenApiOptions =>
  // Safe: only options of the page are removed
  Object.fromEntries(Object.entries(options).filter(([name]) => !(name in pageChecks))) as unknown as OpenApiOptions
