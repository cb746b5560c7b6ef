/**
 * A protected resource that clients can discover (RFC 9728), which MCP requires of a server. It says which authorization servers issue
 * its tokens, and which pages may call it.
 *
 * Its name is configured. It is never read from the Host header.
 */
import * as O from 'fp-ts/lib/Option.js'
import type { Context, Middleware, Next } from 'koa'
import { isOrigin } from '../core/CrossOrigin.js'
import type { Request } from '../core/Request.js'
import { fromHeader } from '../core/RequestFields.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, type Check, type Checks } from '../core/options.js'
import { nonEmptyStrings, type StringOrStrings } from '../jwt/Provider.js'
import { checkUrl } from '../jwt/fetching.js'

/** Origins such as `https://app.example`, or all of them. */
export type AllowedOrigins = 'any' | ReadonlyArray<string>

// By the `Origin` that a browser sends (RFC 6454 §7). The MCP transport requires it for every method. A page whose own name points to
// 127.0.0.1 (DNS rebinding) still sends its own origin
const originCheck = (where: string, origins: AllowedOrigins | undefined) => {
  if (origins === undefined) return undefined
  if (origins !== 'any' && !Array.isArray(origins))
    throw new TypeError(`${where} must be an array of origins, or 'any'`)
  const wrong = origins === 'any' ? undefined : origins.find((one) => !isOrigin(one))
  if (wrong !== undefined) {
    throw new TypeError(
      `${where}: ${JSON.stringify(wrong)} is not an origin; write scheme://host or scheme://host:port, such as "https://app.example"`,
    )
  }
  const allowed = origins === 'any' ? undefined : new Set(origins)
  const field = fromHeader('Origin')
  return (request: Request): boolean => {
    const sent = field(request)
    if (O.isNone(sent)) return true
    // no browser sends two, and `null` hides the origin
    if (typeof sent.value !== 'string' || sent.value === 'null') return false
    return allowed === undefined || allowed.has(sent.value)
  }
}

export interface ProtectedResourceOptions {
  /** Its identifier, an https URL. Tokens must name it in `aud`. */
  readonly resource: string
  /** The issuers of its tokens. */
  readonly authorizationServers: StringOrStrings
  /** The scopes that a client can ask for. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /** Its name, for humans. */
  readonly name?: string | undefined
  /** The URL of its documentation, for humans. */
  readonly documentation?: string | undefined
  /**
   * The origins whose pages may call it, or `'any'`. A request with another `Origin`, or with `null`, gets a 403, also for safe
   * methods, unless another member of a list lets it in. Without this option, `Origin` is not checked.
   */
  readonly origins?: AllowedOrigins | undefined
}

/** A protected resource; `app.use(resource.metadata)` publishes it, `httpJwt({ protectedResource })` protects it. */
export interface ProtectedResource {
  readonly resource: string
  /** The URL of the document. */
  readonly metadataUrl: string
  /** Middleware that serves the document, and no other path. Mount it above the routers, at the root. */
  readonly metadata: Middleware
  /** Whether the request's origin may call; `undefined` if origins are not checked. */
  readonly isAllowedOrigin: ((request: Request) => boolean) | undefined
  /** @internal These origins, for the audit. */
  readonly origins: AllowedOrigins | undefined
  /** @internal Adds the checks of the authenticator of its tokens, such as how they must be bound. */
  readonly adds: (fields: BoundFields) => void
}

/** The members of the document about tokens that are bound to their client (RFC 9728 §2). */
export interface BoundFields {
  readonly dpop_signing_alg_values_supported?: ReadonlyArray<string> | undefined
  readonly dpop_bound_access_tokens_required?: true | undefined
  readonly tls_client_certificate_bound_access_tokens?: true | undefined
}

const METADATA_PATH = '/.well-known/oauth-protected-resource'

// Pages of every origin may read it, with any request fields
const corsFields = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET, HEAD, OPTIONS',
  'Access-Control-Allow-Headers': '*',
  'Access-Control-Max-Age': '86400',
}

// A client asks its authorization server for refresh tokens, never a resource
const resourceScopes: Check = (where, value) => {
  is.listOf(is.isFilled, "must be an array of strings, such as ['files:read']")(where, value)
  // Safe: it is an array
  if (!(value as ReadonlyArray<unknown>).includes('offline_access')) return
  throw new TypeError(`${where} names offline_access, which is not a scope of a resource; clients add it themselves`)
}

const checks: Checks<ProtectedResourceOptions> = {
  resource: checkUrl,
  // `severalOf` and `originCheck` check these
  authorizationServers: is.unchecked,
  scopes: is.maybe(resourceScopes),
  name: is.maybe(is.string),
  documentation: is.maybe((where, value) => checkUrl(where, value, true)),
  origins: is.unchecked,
}

/**
 * Makes a protected resource. Its document is at `/.well-known/oauth-protected-resource`, followed by the path of the resource. It
 * answers GET, HEAD and OPTIONS from every origin. Throws a TypeError for a URL without https (http is allowed on a loopback
 * address).
 *
 * @example
 * import { httpJwt, protectedResource } from 'koa-with-auth/jwt'
 *
 * const resource = protectedResource({
 *   resource: 'https://api.example/mcp',
 *   authorizationServers: ['https://login.example/'],
 *   scopes: ['files:read', 'files:write'],
 * })
 * assert.strictEqual(resource.metadataUrl, 'https://api.example/.well-known/oauth-protected-resource/mcp')
 *
 * const jwt = httpJwt({ issuer: 'https://login.example/', protectedResource: resource })
 */
export const protectedResource = (options: ProtectedResourceOptions): ProtectedResource => {
  const caller = 'protectedResource'
  const given = checkOptions(caller, options, checks)
  const { resource, authorizationServers, scopes = [], name, documentation, origins } = given
  const servers = nonEmptyStrings(`${caller}({ authorizationServers })`, authorizationServers)
  for (const server of servers) checkUrl(`${caller}({ authorizationServers })`, server)
  const { origin, pathname } = new URL(resource)
  // RFC 9728 §3.1: between host and path; a path of only `/` is left out
  const path = `${METADATA_PATH}${pathname === '/' ? '' : pathname}`
  let fields: object = {
    resource,
    authorization_servers: servers,
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    ...(name !== undefined && { resource_name: name }),
    ...(documentation !== undefined && { resource_documentation: documentation }),
  }
  return {
    resource,
    metadataUrl: `${origin}${path}`,
    metadata: publishing(path, () => JSON.stringify(fields)),
    adds: (more) => {
      fields = { ...fields, ...more }
    },
    isAllowedOrigin: originCheck(`${caller}({ origins })`, origins),
    origins,
  }
}

const publishing =
  (path: string, document: () => string): Middleware =>
  (ctx: Context, next: Next) => {
    if (ctx.path !== path) return next()
    // browsers refuse `*` together with this field
    ctx.remove('Access-Control-Allow-Credentials')
    ctx.set(corsFields)
    if (ctx.method === 'GET' || ctx.method === 'HEAD') {
      ctx.set({ 'Content-Type': 'application/json', 'Cache-Control': 'public, max-age=3600' })
      ctx.body = document()
    } else {
      ctx.set('Allow', 'GET, HEAD, OPTIONS')
      ctx.status = ctx.method === 'OPTIONS' ? 204 : 405
    }
    return Promise.resolve()
  }

declareFactory('protectedResource', protectedResource)
