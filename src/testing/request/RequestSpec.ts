/**
 * A request of a client, as data. The laws are checked with such requests, and tests write them.
 *
 * Specs are made with the codecs of the credentials, merged, and turned into a Koa request by `mockRequest`. Nothing is
 * sent here.
 *
 * @example
 * import { withBearer, withQuery, mergeRequests } from 'koa-with-auth/testing'
 *
 * const spec = mergeRequests(withBearer('supersecret'), withQuery('key', 'a b'), { method: 'POST' })
 * assert.deepStrictEqual(spec, {
 *   method: 'POST',
 *   url: '/?key=a%20b',
 *   fields: [['Authorization', 'Bearer supersecret']],
 * })
 */
import { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from '../../core/Credentials.js'
import { checkOptions, maybe, string, withoutUndefined, type Check, type Checks } from '../../core/options.js'

/** A header line. */
export type HeaderLine = readonly [name: string, value: string]

/** A request of a client. The default is `GET /` without fields. */
export interface RequestSpec {
  readonly method?: string | undefined
  /** The target in origin-form: path and query. */
  readonly url?: string | undefined
  /** Header lines in order, repetitions included. */
  readonly fields?: ReadonlyArray<HeaderLine> | undefined
  /** The client's address, as in `request.socket.remoteAddress`. Requests over HTTP have their real address. */
  readonly remoteAddress?: string | undefined
}

/** A spec without other properties. TypeScript alone would accept others in a variable. */
export type ExactSpec<S> = S & { readonly [K in Exclude<keyof S, keyof RequestSpec>]: never }

// -------------------------------------------------------------------------------------
// constructors
// -------------------------------------------------------------------------------------

const lines: Check = (place, value) => {
  const isLine = (line: unknown): boolean =>
    Array.isArray(line) && line.length === 2 && line.every((part) => typeof part === 'string')
  if (Array.isArray(value) && value.every(isLine)) return
  throw new TypeError(`${place} must be an array of header lines, such as [['Authorization', 'Bearer supersecret']]`)
}

const specChecks: Checks<RequestSpec> = {
  method: maybe(string),
  url: maybe(string),
  fields: maybe(lines),
  remoteAddress: maybe(string),
}

/**
 * Throws a TypeError for a property that a spec does not have, and for a wrong value: with these, a test would test
 * nothing.
 */
export const checkSpec = (place: string, spec: RequestSpec): RequestSpec => checkOptions(place, spec, specChecks)

/**
 * Sends a bearer token (RFC 6750 §2.1).
 *
 * @example
 * import { withBearer } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(withBearer('supersecret'), { fields: [['Authorization', 'Bearer supersecret']] })
 */
export const withBearer = (token: string): RequestSpec => ({ fields: [['Authorization', BearerToken.encode(token)]] })

/**
 * Sends a user name and a password (RFC 7617 §2).
 *
 * @example
 * import { withBasic } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(withBasic('admin', 'secret'), { fields: [['Authorization', 'Basic YWRtaW46c2VjcmV0']] })
 */
export const withBasic = (username: string, password: string): RequestSpec => ({
  fields: [['Authorization', BasicCredentials.encode({ username, password })]],
})

/**
 * Sends a header field, such as a key.
 *
 * @example
 * import { withHeader } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(withHeader('X-API-Key', 'k1'), { fields: [['X-API-Key', 'k1']] })
 */
export const withHeader = (name: string, value: string): RequestSpec => ({ fields: [[name, HeaderKey.encode(value)]] })

/**
 * Sends a cookie, such as a key or a session.
 *
 * @example
 * import { withCookie } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(withCookie('key', 'k1'), { fields: [['Cookie', 'key=k1']] })
 */
export const withCookie = (name: string, value: string): RequestSpec => ({
  fields: [['Cookie', `${name}=${CookieKey.encode(value)}`]],
})

/**
 * Sends a query parameter, such as a key.
 *
 * @example
 * import { withQuery } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(withQuery('key', 'k&1'), { url: '/?key=k%261' })
 */
export const withQuery = (name: string, value: string): RequestSpec => ({
  url: `/?${encodeURIComponent(name)}=${encodeURIComponent(QueryKey.encode(value))}`,
})

// -------------------------------------------------------------------------------------
// destructors
// -------------------------------------------------------------------------------------

/** The path of a spec, without its query. */
export const pathOf = ({ url = '/' }: RequestSpec): string => url.split('?')[0] ?? '/'

/** The query of a spec, unchanged; `''` if there is none. */
export const queryOf = ({ url = '/' }: RequestSpec): string => url.split('?').slice(1).join('?')

/** The request line and the fields, for counterexamples. */
export const printed = ({ method = 'GET', url = '/', fields = [], remoteAddress }: RequestSpec): string =>
  [
    `${method} ${shortened(url)}`,
    ...fields.map(([name, value]) => `${name}: ${shortened(value)}`),
    ...(remoteAddress === undefined ? [] : [`from ${remoteAddress}`]),
  ].join('\n')

const MAX_PRINTED = 200

const shortened = (text: string): string =>
  text.length > MAX_PRINTED ? `${text.slice(0, 60)}... (${text.length} characters)` : text

// -------------------------------------------------------------------------------------
// combinators
// -------------------------------------------------------------------------------------

/** A spec with another query. */
export const replaceQuery = (query: string, spec: RequestSpec): RequestSpec => ({
  ...spec,
  url: query === '' ? pathOf(spec) : `${pathOf(spec)}?${query}`,
})

/**
 * Merges specs into one request: with the fields and queries of all, the cookies in one field, and otherwise the last
 * value that is given.
 *
 * @example
 * import { withBearer, withCookie, mergeRequests } from 'koa-with-auth/testing'
 *
 * const spec = mergeRequests(withCookie('a', '1'), withBearer('t'), withCookie('b', '2'))
 * assert.deepStrictEqual(spec.fields, [['Cookie', 'a=1; b=2'], ['Authorization', 'Bearer t']])
 */
export const mergeRequests = (...specs: ReadonlyArray<RequestSpec>): RequestSpec => {
  const fields = joinedCookies(specs.flatMap((spec) => spec.fields ?? []))
  const queries = specs.map(queryOf).filter((query) => query !== '')
  const path = specs.map(pathOf).findLast((one) => one !== '/') ?? '/'
  const merged: RequestSpec = Object.assign({}, ...specs.map(withoutUndefined))
  const joined = { ...merged, ...(fields.length > 0 && { fields }) }
  return merged.url === undefined ? joined : replaceQuery(queries.join('&'), { ...joined, url: path })
}

// RFC 6265 §5.4: a client sends one Cookie field
const joinedCookies = (fields: ReadonlyArray<HeaderLine>): ReadonlyArray<HeaderLine> => {
  const cookies = fields.filter(([name]) => isCookieField(name)).map(([, value]) => value)
  const first = fields.findIndex(([name]) => isCookieField(name))
  return fields.flatMap((line, at): ReadonlyArray<HeaderLine> => {
    if (!isCookieField(line[0])) return [line]
    return at === first ? [[line[0], cookies.join('; ')]] : []
  })
}

/** Whether a field is `Cookie`. */
export const isCookieField = (name: string): boolean => name.toLowerCase() === 'cookie'
