/** The options of the docs page, and their defaults. */
import type { AuthenticatorLike } from '../core/Authenticator.js'
import { flag, maybe, unchecked, type Check, type Checks } from '../core/options.js'
import type { OpenApiOptions } from './documentOptions.js'

/** The options of a docs page. */
export interface DocsPageOptions {
  /** The path of the page in its router. Default `/docs`. */
  readonly path?: string | undefined
  /** The path of the document in its router. Default `/openapi.json`. */
  readonly documentPath?: string | undefined
  /**
   * Whether the browser keeps the entered credentials when the user leaves the page. Then the next user of the browser
   * has them, too. Default `false`.
   */
  readonly persistAuthorization?: boolean | undefined
  /**
   * What guards the page, its document and its files, as for `withAuth`. Browsers must send the credential by
   * themselves: Basic, a session, or a key in a cookie.
   */
  readonly auth?: AuthenticatorLike | readonly [AuthenticatorLike, ...AuthenticatorLike[]] | null
}

const plainPath: Check = (place, value) => {
  // only characters without a special meaning in URLs and in patterns of the router
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

/** Checked options with the defaults. Throws a TypeError for two equal paths. */
export const pageSettings = (
  place: string,
  { path = '/docs', documentPath = '/openapi.json', persistAuthorization = false }: DocsPageOptions,
): PageSettings => {
  // the router ignores the case of letters
  if (path.toLowerCase() === documentPath.toLowerCase()) {
    throw new TypeError(`${place}({ path, documentPath }) are the same; the page and the document need different paths`)
  }
  return { path, documentPath, persistAuthorization }
}

/** The options of the document, without those of the page. */
export const documentPart = (options: DocsPageOptions & OpenApiOptions): OpenApiOptions =>
  // Safe: only options of the page are removed
  Object.fromEntries(Object.entries(options).filter(([name]) => !(name in pageChecks))) as unknown as OpenApiOptions
