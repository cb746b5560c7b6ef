/**
 * The credentials that clients send, as io-ts codecs: `decode` is total and strict, `encode` writes them as a client does.
 *
 * Law, for every codec here and every credential `c` that it admits: `codec.decode(codec.encode(c))` is `right(c)`.
 * They look nothing up, and their failures never contain the value.
 *
 * @example
 * import * as E from 'fp-ts/lib/Either.js'
 * import { BasicCredentials } from 'koa-with-auth/fp'
 *
 * const field = BasicCredentials.encode({ username: 'Aladdin', password: 'open sesame' })
 * assert.strictEqual(field, 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==')
 * assert.deepStrictEqual(BasicCredentials.decode(field), E.right({ username: 'Aladdin', password: 'open sesame' }))
 */
import { isUtf8 } from 'node:buffer'
import * as t from 'io-ts'
import type { Why } from './AuthError.js'
import { deepFreeze } from './data.js'

/** A user name and a password (RFC 7617 §2). */
export interface BasicCredentials {
  readonly username: string
  readonly password: string
}

// io-ts keeps a rejected value, and the context that holds it, in its errors. No error may contain a credential
const codecRefusal = (message: string): t.Validation<never> => deepFreeze(t.failure(undefined, [], message))
const notWellFormed = codecRefusal('not well-formed')
const notUtf8 = codecRefusal('not UTF-8')

const codec = <A>(
  name: string,
  is: t.Is<A>,
  read: (sent: string) => A | undefined,
  encode: (a: A) => string,
  refusal: (sent: string) => t.Validation<never> = () => notWellFormed,
): t.Type<A, string, unknown> =>
  Object.freeze(
    new t.Type(
      name,
      is,
      (u) => {
        if (typeof u !== 'string') return notWellFormed
        const value = read(u)
        return value === undefined ? refusal(u) : t.success(value)
      },
      encode,
    ),
  )

const stringMatching =
  (regexp: RegExp) =>
  (u: unknown): u is string =>
    typeof u === 'string' && regexp.test(u)

const SPACE = 0x20

const b64token = /^[A-Za-z0-9\-._~+/]+=*$/

export const isToken: t.Is<string> = stringMatching(b64token)

/**
 * @internal The token in a field of this scheme, whose name `fromAuthorization` has compared. `isTestedLater`: a reader that caches
 * tokens tests the syntax of new tokens alone.
 */
export const tokenAfter = (scheme: string, is = isToken, isTestedLater = false): t.Type<string, string, unknown> => {
  const { length } = scheme
  return codec(
    `${scheme}Token`,
    is,
    (text) => {
      if (text.charCodeAt(length) !== SPACE) return undefined
      const rest = text.slice(length + 1)
      // almost every client writes one blank
      if (isTestedLater ? rest.charCodeAt(0) !== SPACE : is(rest)) return rest
      const token = rest.replace(/^ +/, '')
      return is(token) ? token : undefined
    },
    (token) => `${scheme} ${token}`,
  )
}

const verbatimCodec = (name: string, isKey: (u: unknown) => u is string): t.Type<string, string, unknown> =>
  Object.freeze(new t.Type(name, isKey, (u) => (isKey(u) ? t.success(u) : notWellFormed), t.identity))

export const bareToken: t.Type<string, string, unknown> = verbatimCodec('Token', isToken)

/** `Bearer <b64token>` (RFC 6750 §2.1): the token. */
export const BearerToken: t.Type<string, string, unknown> = codec(
  'BearerToken',
  isToken,
  (text) => {
    const token = text.replace(/^Bearer +/i, '')
    return token !== text && isToken(token) ? token : undefined
  },
  (token) => `Bearer ${token}`,
)

// RFC 4648 §3.5: Node ignores stray bits; only the canonical form is accepted, in which the last digit has none
const basicField = /^[Bb][Aa][Ss][Ii][Cc] +([A-Za-z0-9+/]+(?:[AQgw]==|[AEIMQUYcgkosw048]=)?)$/
// RFC 7617 §2: no control characters in either part
const control = /[\x00-\x1f\x7f]/
const printableAscii = /^[\x20-\x7e]+$/
const utf8Text = (bytes: Buffer): string => {
  const text = isUtf8(bytes) ? bytes.toString('utf8') : ''
  return control.test(text) ? '' : text
}

/** `Basic <base64 of username:password in UTF-8>` (RFC 7617 §2): the pair. */
export const BasicCredentials: t.Type<BasicCredentials, string, unknown> = codec(
  'BasicCredentials',
  (u): u is BasicCredentials =>
    typeof u === 'object' &&
    u !== null &&
    'username' in u &&
    'password' in u &&
    typeof u.username === 'string' &&
    typeof u.password === 'string' &&
    !u.username.includes(':') &&
    !control.test(u.username + u.password) &&
    u.username.isWellFormed() &&
    u.password.isWellFormed(),
  (field) => {
    const encoded = basicField.exec(field)?.[1]
    if (encoded === undefined || encoded.length % 4 !== 0) return undefined
    // It takes a third of the time of a Buffer, and leaves no password in memory. It throws for no string that matches
    const latin1 = atob(encoded)
    // almost every pair is printable ASCII, which needs no second look
    const pair = printableAscii.test(latin1) ? latin1 : utf8Text(Buffer.from(latin1, 'latin1'))
    // RFC 7617 §2: only the first colon separates
    const colon = pair.indexOf(':')
    if (colon === -1) return undefined
    return { username: pair.slice(0, colon), password: pair.slice(colon + 1) }
  },
  ({ username, password }) => `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`,
  (field) => (isUtf8(Buffer.from(basicField.exec(field)?.[1] ?? '', 'base64')) ? notWellFormed : notUtf8),
)

export const causeOf = (error: unknown): Why => {
  const first: unknown = Array.isArray(error) ? error[0] : undefined
  return typeof first === 'object' && first !== null && 'message' in first && first.message === 'not UTF-8'
    ? 'encoding'
    : 'syntax'
}

/** A key in the query string, after percent-decoding: any string that is not empty. */
export const QueryKey: t.Type<string, string, unknown> = verbatimCodec(
  'QueryKey',
  (u): u is string => typeof u === 'string' && u !== '' && u.isWellFormed(),
)

/** A key in a header field (RFC 9110 §5.5): bytes above 127 read as Latin-1, as Node reads them; keys should be ASCII. */
export const HeaderKey: t.Type<string, string, unknown> = verbatimCodec(
  'HeaderKey',
  stringMatching(/^[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/),
)

const isCookieKey = stringMatching(
  /^[\x21-\x3a\x3c-\x7e\x80-\xff](?:[\x20-\x3a\x3c-\x7e\x80-\xff]*[\x21-\x3a\x3c-\x7e\x80-\xff])?$/,
)
const isQuoted = (value: string): boolean => value.length >= 2 && value.startsWith('"') && value.endsWith('"')

/** A key in a cookie. One matching pair of quotes around it is removed (RFC 6265 §4.1.1). Nothing is decoded. */
export const CookieKey: t.Type<string, string, unknown> = codec(
  'CookieKey',
  isCookieKey,
  (value) => {
    const key = isQuoted(value) ? value.slice(1, -1) : value
    return isCookieKey(key) ? key : undefined
  },
  (key) => (isQuoted(key) ? `"${key}"` : key),
)

/** The codec of a kind that names none. It refuses `''`, `undefined`, `null`, and arrays (sent twice). */
export const AnyCredentials: t.Decoder<unknown, unknown> = new t.Type(
  'AnyCredentials',
  t.unknown.is,
  (u) => (u === '' || u === undefined || u === null || Array.isArray(u) ? notWellFormed : t.success(u)),
  t.identity,
)
