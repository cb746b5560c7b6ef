/**
 * Whether another site made a browser send this request (CSRF). Like Go's CrossOriginProtection, it looks at Fetch
 * Metadata first and at Origin second. It needs no tokens and no cookies, and ignores the content type.
 *
 * The check runs after a credential that browsers send by themselves has passed (`Authenticator.ts`). It does not run for other
 * requests.
 */
import { channel } from 'node:diagnostics_channel'
import type { Request } from './Request.js'
import { unawaited } from './data.js'
import { fieldIn, hostsOf } from './RequestFields.js'

export interface CrossOriginPolicy {
  readonly csrf: boolean
  /** Origins (`scheme://host[:port]`) whose pages may send writes with cookies. */
  readonly trustedOrigins: ReadonlySet<string>
  /** Whether a proxy asks here about requests with other methods (nginx `auth_request`, Traefik `ForwardAuth`). */
  readonly forwarded?: boolean
}

/** Whether a method is safe: RFC 9110 §9.2.1, without TRACE. */
export const isSafe = (method: string): boolean => method === 'GET' || method === 'HEAD' || method === 'OPTIONS'

// RFC 6454 §6.2: an origin has no user, no path, no query and no fragment, and is ASCII. A host name has at most 253 characters; to parse
// a longer one takes a time that grows with the square of its length
const serializedOrigin = /^[a-z][a-z0-9+.-]{0,30}:\/\/([!-~]{1,300})$/
const notOfOrigins = /[/?#@\\,*%]/

const originHost = (origin: string): string | undefined => {
  const host = serializedOrigin.exec(origin)?.[1]
  return host === undefined || notOfOrigins.test(host) ? undefined : host
}

/** @internal Reports the two origins of a request that another site caused, for `NODE_DEBUG`. */
export const foreignOrigins = channel('koa-with-auth:foreign-origin')

/** Whether a request that changes state comes from an origin that is neither the application's own nor trusted. */
export const isForged = (request: Request, { csrf, trustedOrigins, forwarded }: CrossOriginPolicy): boolean =>
  csrf &&
  !(isSafeRequest(request) && (forwarded !== true || isSafeForwarded(request))) &&
  isFromElsewhere(request, trustedOrigins)

/**
 * The same for actions that change state with any method, such as signing in. If another site caused a safe request, it must be a
 * top-level navigation (a link, a redirect). The browser says so in Sec-Fetch-Mode and Sec-Fetch-Dest. An image, a frame, a script,
 * a fetch or a prefetch is not a navigation.
 */
export const isForgedChange = (request: Request, { csrf, trustedOrigins }: CrossOriginPolicy): boolean =>
  csrf && isFromElsewhere(request, trustedOrigins) && !(isSafeRequest(request) && isTopLevelNavigation(request))

// A WebSocket handshake is a GET that opens a channel for writes
const isSafeRequest = ({ method, headers }: Request): boolean => isSafe(method) && headers.upgrade === undefined

// A client can write the field that its proxy does not, so each that is there must name a safe method
const isSafeForwarded = (request: Request): boolean => {
  const fields = ['x-forwarded-method', 'x-original-method'].map((name) => fieldIn(request, name))
  const named = fields.filter((value) => value !== '')
  return named.length > 0 && named.every(isSafe)
}

const isTopLevelNavigation = (request: Request): boolean =>
  fieldIn(request, 'sec-fetch-mode') === 'navigate' &&
  fieldIn(request, 'sec-fetch-dest') === 'document' &&
  fieldIn(request, 'sec-purpose') === ''

/** Whether a page of another site made a browser send it, whatever its method. The sites whose origins are trusted do not count. */
export const isFromElsewhere = (request: Request, trustedOrigins: ReadonlySet<string>): boolean => {
  const site = fieldIn(request, 'sec-fetch-site')
  const origin = fieldIn(request, 'origin')
  if (site === 'same-origin' || site === 'none') return false
  // Without both fields, the client is no browser, or an old browser that sends no Origin to its own origin
  if (site === '' && (origin === '' || isSameOrigin(origin, request))) return false
  const isForeign = !trustedOrigins.has(origin)
  if (isForeign && foreignOrigins.hasSubscribers) {
    foreignOrigins.publish({ site, origin, own: `${request.protocol}://${request.host}` })
  }
  return isForeign
}

/**
 * Whether an Origin field is the origin of the request. The scheme is not compared, because a proxy may have ended TLS. A default
 * port is that of the origin's scheme: `https://x` is the origin of `Host: x:443` (RFC 9110 §4.2.3), also in upper case.
 */
const isSameOrigin = (origin: string, request: Request): boolean => {
  const { host } = request
  const hosts = hostsOf(request)
  // with two hosts, or a user before a host, the intended host is unknown
  if (hosts.length > 1 || hosts[0]?.includes('@') === true) return false
  const sent = originHost(origin)
  if (sent === undefined || sent === host) return sent !== undefined
  const own = `${origin.slice(0, -sent.length)}${host.toLowerCase()}`
  // a Host that is none (`a/b`) has no origin
  return (
    originHost(own) !== undefined &&
    URL.canParse(own) &&
    URL.canParse(origin) &&
    canonicalOrigin(own) === canonicalOrigin(origin)
  )
}

/** Decides about an origin that no list can name, such as those of previews. */
type OriginRule = (origin: string) => boolean

const ruled = new WeakMap<ReadonlySet<string>, ReadonlyArray<OriginRule>>()

/** @internal Sets of origins, and the functions whose names are in them. */
export const originRules = {
  in: (origins: ReadonlySet<string>): ReadonlyArray<OriginRule> => ruled.get(origins) ?? [],
  /** The origins, and the functions, of both. */
  joined: (one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlySet<string> => {
    const made = new Set([...one, ...other])
    ruled.set(made, [one, other].flatMap(originRules.in))
    return made
  },
}

const MAX_RULED_ORIGINS = 1000

/**
 * Origins that a function trusts. It is called once for each origin while its result is cached, and only for origins as a browser writes them. For
 * readers of a list it has one member, the name of the function with a digest of its text, which is no origin.
 */
class RuledOrigins extends Set<string> {
  readonly #rule: OriginRule
  readonly #answers = new Map<string, boolean>()

  constructor(rule: OriginRule, label: string) {
    super([`function ${label}`])
    this.#rule = rule
    ruled.set(this, [rule])
  }

  override has(origin: string): boolean {
    if (super.has(origin) || !isOrigin(origin)) return super.has(origin)
    const before = this.#answers.get(origin)
    if (before !== undefined) return before
    const answer: unknown = this.#rule(origin)
    if (typeof answer !== 'boolean') {
      unawaited(answer)
      throw new TypeError('authSettings({ trustedOrigins }): the function must return true or false')
    }
    if (this.#answers.size >= MAX_RULED_ORIGINS) this.#answers.clear()
    this.#answers.set(origin, answer)
    return answer
  }
}

/**
 * Checks a list of trusted origins. Throws a TypeError for an origin that no browser would send: one with a path, a query, a user,
 * upper case or a default port, an origin without a scheme, or `null`. `labelOf` makes the name of a function in policy files.
 */
export const trustedOrigins = (
  origins: ReadonlyArray<string> | OriginRule,
  labelOf: (rule: OriginRule) => string = ({ name }) => name,
): ReadonlySet<string> => {
  if (typeof origins === 'function') return new RuledOrigins(origins, labelOf(origins))
  for (const origin of origins) {
    // a browser sends the origin as the URL standard serializes it, so anything else could never match
    if (!isOrigin(origin)) {
      const shown = typeof origin === 'string' ? JSON.stringify(origin) : String(origin)
      throw new TypeError(
        `trustedOrigins: ${shown} is not an origin; write scheme://host or scheme://host:port, such as "https://app.example"; for origins that no list can name, pass a function of the origin`,
      )
    }
  }
  return new Set(origins)
}

/** Whether it is an origin as a browser writes it: no path, no user, no default port, in lower case. */
export const isOrigin = (origin: unknown): origin is string =>
  typeof origin === 'string' &&
  originHost(origin) !== undefined &&
  URL.canParse(origin) &&
  canonicalOrigin(origin) === origin

const canonicalOrigin = (origin: string): string => {
  const { protocol, host } = new URL(origin)
  return `${protocol}//${host}`
}
