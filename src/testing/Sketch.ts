/**
 * What a client would send, as data: the requests that the laws are checked with, and those that a test writes down.
 *
 * Sketches are made with the codecs of the credentials, joined, and turned into a Koa request by `plainRequest`. Nothing
 * here is sent anywhere.
 *
 * @example
 * import { sendBearer, sendQuery, together } from 'koa-with-auth/testing'
 *
 * const sketch = together(sendBearer('supersecret'), sendQuery('key', 'a b'), { method: 'POST' })
 * assert.deepStrictEqual(sketch, {
 *   method: 'POST',
 *   url: '/?key=a%20b',
 *   fields: [['Authorization', 'Bearer supersecret']],
 * })
 */
import { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from '../core/Credentials.js'

/** A header line. */
export type Line = readonly [name: string, value: string]

/** What a client would send; what is left out is `GET /` without any field. */
export interface Sketch {
  readonly method?: string
  /** The target in origin-form: path and query. */
  readonly url?: string
  /** Header lines in order, repetitions included. */
  readonly fields?: ReadonlyArray<Line>
  /** Where it comes from, as `request.socket.remoteAddress` tells it. Requests over HTTP come from where they come from. */
  readonly remoteAddress?: string
}

// -------------------------------------------------------------------------------------
// constructors
// -------------------------------------------------------------------------------------

/**
 * Sends a bearer token (RFC 6750 §2.1).
 *
 * @example
 * import { sendBearer } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(sendBearer('supersecret'), { fields: [['Authorization', 'Bearer supersecret']] })
 */
export const sendBearer = (token: string): Sketch => ({ fields: [['Authorization', BearerToken.encode(token)]] })

/**
 * Sends a user name and a password (RFC 7617 §2).
 *
 * @example
 * import { sendBasic } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(sendBasic('admin', 'secret'), { fields: [['Authorization', 'Basic YWRtaW46c2VjcmV0']] })
 */
export const sendBasic = (username: string, password: string): Sketch => ({
  fields: [['Authorization', BasicCredentials.encode({ username, password })]],
})

/**
 * Sends a header field, as a key.
 *
 * @example
 * import { sendHeader } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(sendHeader('X-API-Key', 'k1'), { fields: [['X-API-Key', 'k1']] })
 */
export const sendHeader = (name: string, value: string): Sketch => ({ fields: [[name, HeaderKey.encode(value)]] })

/**
 * Sends a cookie, as a key or a session.
 *
 * @example
 * import { sendCookie } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(sendCookie('key', 'k1'), { fields: [['Cookie', 'key=k1']] })
 */
export const sendCookie = (name: string, value: string): Sketch => ({
  fields: [['Cookie', `${name}=${CookieKey.encode(value)}`]],
})

/**
 * Sends a query parameter, as a key.
 *
 * @example
 * import { sendQuery } from 'koa-with-auth/testing'
 *
 * assert.deepStrictEqual(sendQuery('key', 'k&1'), { url: '/?key=k%261' })
 */
export const sendQuery = (name: string, value: string): Sketch => ({
  url: `/?${encodeURIComponent(name)}=${encodeURIComponent(QueryKey.encode(value))}`,
})

// -------------------------------------------------------------------------------------
// destructors
// -------------------------------------------------------------------------------------

/** The path of a sketch, without its query. */
export const pathOf = ({ url = '/' }: Sketch): string => url.split('?')[0] ?? '/'

/** The query of a sketch, as it is written; `''` where there is none. */
export const queryOf = ({ url = '/' }: Sketch): string => url.split('?').slice(1).join('?')

/** The request line and the fields, as a counterexample is printed. */
export const printed = ({ method = 'GET', url = '/', fields = [], remoteAddress }: Sketch): string =>
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

/** A sketch with another query. */
export const withQuery = (query: string, sketch: Sketch): Sketch => ({
  ...sketch,
  url: query === '' ? pathOf(sketch) : `${pathOf(sketch)}?${query}`,
})

/**
 * Joins sketches to one request: fields and queries of all, cookies in one field, of the rest the last that says something.
 *
 * @example
 * import { sendBearer, sendCookie, together } from 'koa-with-auth/testing'
 *
 * const sketch = together(sendCookie('a', '1'), sendBearer('t'), sendCookie('b', '2'))
 * assert.deepStrictEqual(sketch.fields, [['Cookie', 'a=1; b=2'], ['Authorization', 'Bearer t']])
 */
export const together = (...sketches: ReadonlyArray<Sketch>): Sketch => {
  const fields = joinedCookies(sketches.flatMap((sketch) => sketch.fields ?? []))
  const queries = sketches.map(queryOf).filter((query) => query !== '')
  const path = sketches.map(pathOf).findLast((one) => one !== '/') ?? '/'
  const merged: Sketch = Object.assign({}, ...sketches)
  const joined = { ...merged, ...(fields.length > 0 && { fields }) }
  return merged.url === undefined ? joined : withQuery(queries.join('&'), { ...joined, url: path })
}

// RFC 6265 §5.4: a client sends one Cookie field
const joinedCookies = (fields: ReadonlyArray<Line>): ReadonlyArray<Line> => {
  const cookies = fields.filter(([name]) => isCookieField(name)).map(([, value]) => value)
  const first = fields.findIndex(([name]) => isCookieField(name))
  return fields.flatMap((line, at): ReadonlyArray<Line> => {
    if (!isCookieField(line[0])) return [line]
    return at === first ? [[line[0], cookies.join('; ')]] : []
  })
}

/** Whether a field is the one of cookies. */
export const isCookieField = (name: string): boolean => name.toLowerCase() === 'cookie'
