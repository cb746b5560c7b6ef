/**
 * `docs`: the docs page of a router, and its OpenAPI document. On the page, a user enters credentials once and tries
 * operations.
 *
 * It consists of operations, so `withAuth` guards it. None of them is in the document. The document describes the
 * router as it is mounted (`view.ts`); if koa-mount mounts it, which the router cannot see, set `servers`.
 *
 * The page is the same for every request, and contains nothing of a request. The texts of the API's author are only in HTML text and
 * attributes. There is no inline script, so nothing must be escaped for one. All references are relative, so the page works after any
 * prefix.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Context, Next } from 'koa'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import * as is from '../core/checks.js'
import { escapeHtml } from '../core/data.js'
import { checkOptions, declareFactory, type Checks } from '../core/options.js'
import type { OperationNote, Part } from '../koa/layer.js'
import { newRouter } from '../koa/newRouter.js'
import { checkRouter, type RouterInstance } from '../koa/router.js'
import { withAuth } from '../koa/withAuth.js'
import { cachedOpenApi, documentChecks, type OpenApiOptions } from './document.js'
import { here } from './here.js'
import { docsOperation, withoutExtensions } from './operation.js'
import { pageScript, pageStyle } from './pageFiles.js'
import { describing, isTaken } from './view.js'

export interface DocsPageOptions {
  /** The path of the page in its router. Default `/docs`. */
  readonly path?: string | undefined
  /** The path of the document in its router. Default `/openapi.json`. */
  readonly documentPath?: string | undefined
  /**
   * What guards the page, its document and its files, as for `withAuth`. Browsers must send the credential by
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

// --- the page

interface PageContent {
  readonly title: string
  readonly description?: string | undefined
  /** The path of the page under its router, such as `/docs`. */
  readonly path: string
  /** The path of the document, such as `/openapi.json`. */
  readonly documentPath: string
  /** The servers that the document names, which test calls go to. */
  readonly servers: ReadonlyArray<{ readonly url: string }>
}

/** A relative reference from a page at one path to another path, both without a slash at the end. */
export const relativeReference = (from: string, to: string): string => {
  const up = '../'.repeat(from.split('/').length - 2)
  return `${up === '' ? './' : up}${to.slice(1)}`
}

const htmlOf = ({ title, description, path, documentPath }: PageContent): string => {
  const asset = (name: string) => escapeHtml(relativeReference(path, `${path}/${name}`))
  const document = escapeHtml(relativeReference(path, documentPath))
  const meta = description === undefined ? '' : `\n    <meta name="description" content="${escapeHtml(description)}">`
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>${escapeHtml(title)}</title>${meta}
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <link rel="icon" type="image/png" sizes="16x16" href="${asset('favicon-16x16.png')}">
    <link rel="icon" type="image/png" sizes="32x32" href="${asset('favicon-32x32.png')}">
    <link rel="stylesheet" href="${asset('swagger-ui.css')}">
    <link rel="stylesheet" href="${asset('page.css')}">
    <script defer src="${asset('swagger-ui-bundle.js')}"></script>
    <script defer src="${asset('page.js')}"></script>
  </head>
  <body>
    <div id="docs" data-document="${document}"></div>
    <noscript>This page needs JavaScript. The description itself: <a href="${document}">${document}</a></noscript>
  </body>
</html>
`
}

/**
 * The header fields of the page. They allow nothing from elsewhere, no inline script, and no frame around the page.
 * Test calls go to its own origin, and to those of the servers that the document names.
 */
const fieldsOf = ({ servers }: PageContent): Readonly<Record<string, string>> => ({
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // the icons in Swagger UI's style sheet
    "img-src 'self' data:",
    ['connect-src', "'self'", ...originsOf(servers)].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
})

/**
 * The origins of the servers in a document. A relative URL is the page's own origin, and one with variables is unknown.
 */
const originsOf = (servers: PageContent['servers']): ReadonlyArray<string> => [
  ...new Set(
    servers.flatMap(({ url }) => (/^https?:\/\/[^{}]+$/i.test(url) && URL.canParse(url) ? [new URL(url).origin] : [])),
  ),
]

// --- its files

/** A file that is served unchanged. */
interface Asset {
  readonly type: string
  readonly content: Buffer
  /** A validator (RFC 9110 §8.8.3) that depends only on the content. */
  readonly etag: string
}

const SCRIPT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'
const IMAGE = 'image/png'

// An exact list, not a folder: no part of a request becomes part of a path. What has no content here is in swagger-ui-dist
const files: ReadonlyArray<readonly [name: string, type: string, content?: string]> = [
  ['swagger-ui.css', STYLE],
  ['swagger-ui-bundle.js', SCRIPT],
  ['favicon-16x16.png', IMAGE],
  ['favicon-32x32.png', IMAGE],
  ['page.css', STYLE, pageStyle],
  ['page.js', SCRIPT, pageScript],
]

const assetOf = (type: string, content: Buffer | string): Asset => {
  const bytes = Buffer.from(content)
  return { type, content: bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}

export const pageOf = (content: PageContent) => ({
  html: assetOf('text/html; charset=utf-8', htmlOf(content)),
  fields: fieldsOf(content),
})

/**
 * The folder of the installed `swagger-ui-dist`, as the module at `from` finds it; `undefined` if it is not installed.
 */
export const findSwaggerUi = (from: string | URL = here): string | undefined => {
  try {
    return dirname(createRequire(from).resolve('swagger-ui-dist/package.json'))
  } catch {
    return undefined
  }
}

/** The folder of the installed `swagger-ui-dist`. Throws a TypeError that says what to install if it is missing. */
export const requireSwaggerUi = (where: string, from?: string | URL): string => {
  const folder = findSwaggerUi(from)
  if (folder === undefined) {
    throw new TypeError(
      `${where}: the docs page of koa-with-auth/openapi needs swagger-ui-dist; install it: npm install swagger-ui-dist`,
    )
  }
  return folder
}

/** The files of the page by name; `load` rejects while a file cannot be read. */
export const assetsIn = (folder: string) =>
  files.map(([name, type, content]) => ({
    name,
    load: once(async () => assetOf(type, content ?? (await readFile(join(folder, name))))),
  }))

// A file that cannot be read now is tried again
const once = <A>(load: () => Promise<A>): (() => Promise<A>) => {
  let loading: Promise<A> | undefined
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
}

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

// --- its operations

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
    throw new TypeError(`${where}({ path, documentPath }) are the same; the page and the document need different paths`)
  }
  // `auth: undefined` is a mistake that `withAuth` refuses. Only a missing `auth` leaves them undecided
  const guards = 'auth' in options ? [withAuth(auth as AuthenticatorLike)] : []
  const get = (at: string, handler: Handler, serves: OperationNote['docs']): void => {
    // Safe: a guard is middleware, and nothing here reads the router's own context
    const functions = [docsOperation(serves), ...guards, handler] as unknown as never[]
    target.get(at, ...functions)
  }

  // Safe: it is only read
  const seen = described as unknown as Parameters<typeof isTaken>[0]
  const documentPart: Part = { path: documentPath, ...(folder === undefined && { missingPage: path }) }
  const documentAt = describing(seen, documentPart, (routed) => asAsset(cachedOpenApi(routed, document)))
  const serveDocument: Handler = (ctx, next) =>
    isTaken(seen, documentPart, ctx) ? next() : serveAsset(ctx, documentAt(ctx)(ctx), { keepCaching: true })
  get(documentPath, serveDocument, documentPart)
  if (folder === undefined) return

  const { title, description, servers = [] } = document
  const { html, fields } = pageOf({ path, documentPath, title, description, servers })
  const pagePart: Part = { path }
  const servePage: Handler = (ctx, next) => {
    if (isTaken(seen, pagePart, ctx)) return next()
    return ctx.path.endsWith('/') ? withoutSlash(ctx) : serveAsset(ctx, html, { fields, keepCaching: true })
  }
  get(path, servePage, pagePart)
  for (const { name, load } of assetsIn(folder)) {
    get(`${path}/${name}`, async (ctx: Context) => serveAsset(ctx, await load()), 'file')
  }
}

type Handler = (ctx: Context, next: Next) => unknown

// The document for a request, as an asset
const asAsset = (edition: ReturnType<typeof cachedOpenApi>): ((ctx: Context) => Asset) => {
  let last: { readonly json: string; readonly asset: Asset } | undefined
  return ({ request }) => {
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
