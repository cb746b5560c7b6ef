/**
 * Which pages may call a protected resource: the `Origin` that a browser sends with a request (RFC 6454 §7).
 *
 * The MCP transport demands it for every method: a page that has a name of its own point to 127.0.0.1 (DNS rebinding) sends its
 * own origin.
 */
import type { Request } from 'koa'
import { fromHeader } from '../core/RequestFields.js'
import * as O from 'fp-ts/lib/Option.js'

/** Origins such as `https://app.example`, or all of them. */
export type Origins = 'any' | ReadonlyArray<string>

// As a browser writes it: no path, no user, no default port, in lower case
const isOrigin = (u: unknown): u is string => {
  if (typeof u !== 'string' || !URL.canParse(u)) return false
  const { protocol, host } = new URL(u)
  return host !== '' && `${protocol}//${host}` === u
}

/** A check of requests; `undefined` where no origins are named. TypeError for what no browser sends. */
export const originCheck = (
  place: string,
  origins: Origins | undefined,
): ((request: Request) => boolean) | undefined => {
  if (origins === undefined) return undefined
  if (origins !== 'any' && !Array.isArray(origins))
    throw new TypeError(`${place} must be an array of origins, or 'any'`)
  const wrong = origins === 'any' ? undefined : origins.find((one) => !isOrigin(one))
  if (wrong !== undefined) {
    throw new TypeError(
      `${place}: ${JSON.stringify(wrong)} is not an origin; write scheme://host or scheme://host:port, such as "https://app.example"`,
    )
  }
  const allowed = origins === 'any' ? undefined : new Set(origins)
  const field = fromHeader('Origin')
  return (request) => {
    const sent = field(request)
    if (O.isNone(sent)) return true
    // twice is nothing that a browser sends, and `null` is an origin that hides
    if (typeof sent.value !== 'string' || sent.value === 'null') return false
    return allowed === undefined || allowed.has(sent.value)
  }
}
