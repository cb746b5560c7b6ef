/** The options of the docs page, and what they are without being given. */
import type { AuthenticatorLike } from '../core/Authenticator.js'
import { flag, maybe, unchecked, type Check, type Checks } from '../core/options.js'
import type { OpenApiOptions } from './documentOptions.js'

/** What an application may decide about its docs page. */
export interface DocsPageOptions {
  /** Where the page is below its router. Default `/docs`. */
  readonly path?: string | undefined
  /** Where the document is below its router. Default `/openapi.json`. */
  readonly documentPath?: string | undefined
  /**
   * Whether the browser keeps the credentials that were entered when the page is left; the next user of the browser has
   * them, too. Default `false`.
   */
  readonly persistAuthorization?: boolean | undefined
  /**
   * What the page, the document and all that the page loads demand; as `withAuth` takes it. Browsers must send it by
   * themselves: Basic, a session, a key in a cookie.
   */
  readonly auth?: AuthenticatorLike | readonly [AuthenticatorLike, ...AuthenticatorLike[]] | null
}

const plainPath: Check = (place, value) => {
  // what means itself in a URL and in a pattern of the router
  if (typeof value === 'string' && /^(?:\/[\w~-][\w.~-]*)+$/.test(value)) return
  throw new TypeError(
    `${place} must be a path such as "/docs": letters, digits, ".", "-", "_", "~"; no slash at the end`,
  )
}

/** The checks of these options. */
export const pageChecks: Checks<DocsPageOptions> = {
  path: maybe(plainPath),
  documentPath: maybe(plainPath),
  persistAuthorization: maybe(flag),
  // `withAuth` checks it
  auth: unchecked,
}

/** The options with their defaults, `auth` left out. */
export interface PageSettings {
  readonly path: string
  readonly documentPath: string
  readonly persistAuthorization: boolean
}

/** Checked options with the defaults. TypeError for two paths that are one. */
export const pageSettings = (
  place: string,
  { path = '/docs', documentPath = '/openapi.json', persistAuthorization = false }: DocsPageOptions,
): PageSettings => {
  // the router takes letters for one, whatever their case
  if (path.toLowerCase() === documentPath.toLowerCase()) {
    throw new TypeError(`${place}({ path, documentPath }) are the same; the page and the document need different paths`)
  }
  return { path, documentPath, persistAuthorization }
}

/** What of options for page and document is the document's. */
export const documentPart = (options: DocsPageOptions & OpenApiOptions): OpenApiOptions =>
  // Safe: no option of the page is one of the document
  Object.fromEntries(Object.entries(options).filter(([name]) => !(name in pageChecks))) as unknown as OpenApiOptions
