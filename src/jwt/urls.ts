/**
 * Addresses of providers: https, or http on the same machine.
 */

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Whether it is http on a loopback address. */
export const isLoopback = (url: string): boolean => {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && loopback.test(hostname)
}

/** Whether it is a URL that can be trusted for tokens: https, or http on a loopback address. */
export const isSecure = (u: unknown): u is string =>
  typeof u === 'string' && URL.canParse(u) && (new URL(u).protocol === 'https:' || isLoopback(u))

/** Checks the identifier of an issuer or a resource, or an address. Throws a TypeError that names the place. */
export const checkUrl = (place: string, url: unknown, mayHaveQuery = false): void => {
  if (!isSecure(url)) {
    throw new TypeError(`${place} must be an https:// URL; http:// is allowed on a loopback address such as 127.0.0.1`)
  }
  const { username, password } = new URL(url)
  if (username !== '' || password !== '') throw new TypeError(`${place} must contain no user name and no password`)
  if (url.includes('#')) throw new TypeError(`${place} must have no fragment (#...)`)
  if (!mayHaveQuery && url.includes('?')) throw new TypeError(`${place} must have no query (?...)`)
}
