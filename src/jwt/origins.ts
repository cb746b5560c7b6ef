/**
 * Checks which pages may call a protected resource, by the `Origin` that a browser sends (RFC 6454 §7).
 *
 * The MCP transport requires it for every method. A page whose own name points to 127.0.0.1 (DNS rebinding) still sends
 * its own origin.
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

/**
 * Makes a check of requests; `undefined` if no origins are named. Throws a TypeError for an origin that no browser
 * sends.
 */
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
    // no browser sends two, and `null` hides the origin
    if (typeof sent.value !== 'string' || sent.value === 'null') return false
    return allowed === undefined || allowed.has(sent.value)
  }
}
