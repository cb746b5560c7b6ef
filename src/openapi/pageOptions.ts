/** The options of the docs page, and what they are without being given. */
import type { AuthenticatorLike } from '../core/Authenticator.js'
import type { OpenApiOptions } from './documentOptions.js'

/** What an application may decide about its docs page. */
export interface DocsPageOptions {
  /** Where the page is below its router. Default `/docs`. */
  readonly path?: string
  /** Where the document is below its router. Default `/openapi.json`. */
  readonly documentPath?: string
  /**
   * Whether the browser keeps the credentials that were entered when the page is left; the next user of the browser has
   * them, too. Default `false`.
   */
  readonly persistAuthorization?: boolean
  /**
   * What the page, the document and all that the page loads demand; as `withAuth` takes it. Browsers must send it by
   * themselves: Basic, a session, a key in a cookie.
   */
  readonly auth?: AuthenticatorLike | readonly [AuthenticatorLike, ...AuthenticatorLike[]] | null
}

/** The names of these options. */
export const pageOptionNames = ['path', 'documentPath', 'persistAuthorization', 'auth']

/** The options with their defaults, `auth` left out. */
export interface PageSettings {
  readonly path: string
  readonly documentPath: string
  readonly persistAuthorization: boolean
}

/** Checks options and adds the defaults. TypeError for a path with a pattern in it, and for two that are one. */
export const checkPage = (
  place: string,
  { path = '/docs', documentPath = '/openapi.json', persistAuthorization = false }: DocsPageOptions,
): PageSettings => {
  for (const [name, value] of Object.entries({ path, documentPath })) {
    // what means itself in a URL and in a pattern of the router
    if (typeof value !== 'string' || !/^(?:\/[\w~-][\w.~-]*)+$/.test(value)) {
      throw new TypeError(
        `${place}({ ${name} }) must be a path as "/docs": letters, digits, ".", "-", "_", "~"; no slash at its end`,
      )
    }
  }
  // the router takes letters for one, whatever their case
  if (path.toLowerCase() === documentPath.toLowerCase()) {
    throw new TypeError(`${place}({ path, documentPath }) are the same; the document needs a path of its own`)
  }
  if (typeof persistAuthorization !== 'boolean') {
    throw new TypeError(`${place}({ persistAuthorization }) must be true or false`)
  }
  return { path, documentPath, persistAuthorization }
}

/** What of options for page and document is the document's. */
export const documentPart = (options: DocsPageOptions & OpenApiOptions): OpenApiOptions =>
  // Safe: no option of the page is one of the document
  Object.fromEntries(
    Object.entries(options).filter(([name]) => !pageOptionNames.includes(name)),
  ) as unknown as OpenApiOptions
