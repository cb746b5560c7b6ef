/** Credentials as fast-check arbitraries. Well-formed ones are those that the codecs accept. */
import fc, { type Arbitrary } from 'fast-check'
import type { BasicCredentials } from 'koa-with-auth/fp'

/**
 * Bearer tokens of every shape (RFC 6750 §2.1).
 */
export const bearerTokens = (): Arbitrary<string> => fc.stringMatching(/^[A-Za-z0-9\-._~+/]{1,40}={0,2}$/)

// Any string without control characters, in any script; the user name without a colon (RFC 7617 §2)
const basicPart = () => fc.string({ unit: 'binary' }).map((text) => text.replace(/[\x00-\x1f\x7f]/g, ''))

/**
 * User names and passwords in any script (RFC 7617 §2).
 */
export const basicCredentials = (): Arbitrary<BasicCredentials> =>
  fc
    .tuple(basicPart(), basicPart())
    .map(([username, password]) => ({ username: username.replaceAll(':', ''), password }))

/**
 * API keys of printable ASCII, which a header, a cookie and a query parameter can carry.
 */
export const apiKeys = (): Arbitrary<string> => fc.stringMatching(/^[\x21\x23-\x3a\x3c-\x7e]{1,40}$/)
