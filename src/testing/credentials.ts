/**
 * Credentials, right and hostile, as fast-check arbitraries. The right ones are what the codecs admit.
 *
 * "Right" is well-formed: whether a credential is accepted is the authenticator's business.
 */
import fc, { type Arbitrary } from 'fast-check'
import type { BasicCredentials } from '../core/Credentials.js'

/**
 * Secrets of 16 letters and digits or more: long enough to stand in no answer by chance.
 *
 * @example
 * import fc from 'fast-check'
 * import { secrets } from 'koa-with-auth/testing'
 *
 * fc.assert(fc.property(secrets(), (secret) => secret.length >= 16))
 */
export const secrets = (): Arbitrary<string> => fc.stringMatching(/^[A-Za-z0-9]{16,40}$/)

/**
 * Bearer tokens of every shape (RFC 6750 §2.1).
 *
 * @example
 * import fc from 'fast-check'
 * import { BearerToken } from 'koa-with-auth'
 * import { bearerTokens } from 'koa-with-auth/testing'
 *
 * fc.assert(fc.property(bearerTokens(), (token) => BearerToken.is(token)))
 */
export const bearerTokens = (): Arbitrary<string> => fc.stringMatching(/^[A-Za-z0-9\-._~+/]{1,40}={0,2}$/)

// Any text without control characters, in any script; the user name without a colon (RFC 7617 §2)
const basicPart = () => fc.string({ unit: 'binary' }).map((text) => text.replace(/[\x00-\x1f\x7f]/g, ''))

/**
 * User names and passwords in any script (RFC 7617 §2).
 *
 * @example
 * import fc from 'fast-check'
 * import { BasicCredentials } from 'koa-with-auth'
 * import { basicCredentials } from 'koa-with-auth/testing'
 *
 * fc.assert(fc.property(basicCredentials(), (credentials) => BasicCredentials.is(credentials)))
 */
export const basicCredentials = (): Arbitrary<BasicCredentials> =>
  fc
    .tuple(basicPart(), basicPart())
    .map(([username, password]) => ({ username: username.replaceAll(':', ''), password }))

/**
 * API keys of printable ASCII, which a header, a cookie and a query parameter can carry.
 *
 * @example
 * import fc from 'fast-check'
 * import { CookieKey, HeaderKey, QueryKey } from 'koa-with-auth'
 * import { apiKeys } from 'koa-with-auth/testing'
 *
 * fc.assert(fc.property(apiKeys(), (key) => [CookieKey, HeaderKey, QueryKey].every((codec) => codec.is(key))))
 */
export const apiKeys = (): Arbitrary<string> => fc.stringMatching(/^[\x21\x23-\x3a\x3c-\x7e]{1,40}$/)

/**
 * Texts that careless code takes for somebody: what nothing becomes as a text, names that every object has, patterns, and
 * what is far too long. The empty text is the first.
 */
export const notoriousTexts: ReadonlyArray<string> = [
  '',
  ' ',
  'undefined',
  'null',
  'true',
  'false',
  '0',
  '-1',
  'NaN',
  '[object Object]',
  '{}',
  '[]',
  '""',
  '__proto__',
  'constructor',
  'toString',
  'admin',
  'root',
  '*',
  '%',
  '.*',
  "' OR '1'='1",
  '../../etc/passwd',
  '${jndi:x}',
  '\u00e9\u00ff',
  'A'.repeat(9000),
]

/**
 * Hostile credentials: the notorious ones, and any bytes that a header can carry.
 *
 * @example
 * import fc from 'fast-check'
 * import { httpBearer } from 'koa-with-auth'
 * import { hostileTexts, plainRequest } from 'koa-with-auth/testing'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * await fc.assert(
 *   fc.asyncProperty(hostileTexts(), async (text) => {
 *     const sent = plainRequest({ fields: [['Authorization', `Bearer ${text}`]] })
 *     assert.strictEqual((await bearer.evaluate(sent))._tag, 'Left')
 *   }),
 * )
 */
export const hostileTexts = (): Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom(...notoriousTexts),
    // RFC 9110 §5.5: what a field can hold
    fc.string({ unit: fc.constantFrom(...fieldCharacters), maxLength: 40 }),
  )

const fieldCharacters = [...Array(256).keys()]
  .filter((code) => code === 9 || (code >= 32 && code !== 127))
  .map((code) => String.fromCharCode(code))
