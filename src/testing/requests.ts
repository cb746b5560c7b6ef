/**
 * A request of a client, as data. The laws are checked with such requests, and tests write them.
 *
 * Specs are made with the codecs of the credentials, merged, and turned into a Koa request by `mockRequest`. Nothing is
 * sent here.
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa, { type Request } from 'koa'
import { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from '../core/Credentials.js'
import * as is from '../core/checks.js'
import { checkOptions, withoutUndefined, type Checks } from '../core/options.js'

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

const headerLines = is.listOf(
  (line) => Array.isArray(line) && line.length === 2 && line.every((part) => typeof part === 'string'),
  "must be an array of header lines, such as [['Authorization', 'Bearer supersecret']]",
)

const specChecks: Checks<RequestSpec> = {
  method: is.maybe(is.string),
  url: is.maybe(is.string),
  fields: is.maybe(headerLines),
  remoteAddress: is.maybe(is.string),
}

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

const specPath = ({ url = '/' }: RequestSpec): string => url.split('?')[0] ?? '/'

/** The query of a spec, unchanged; `''` if there is none. */
export const queryOf = ({ url = '/' }: RequestSpec): string => url.split('?').slice(1).join('?')

/** The request line and the fields, for counterexamples. */
export const printed = ({ method = 'GET', url = '/', fields = [], remoteAddress }: RequestSpec): string =>
  [
    `${method} ${shortenedText(url)}`,
    ...fields.map(([name, value]) => `${name}: ${shortenedText(value)}`),
    ...(remoteAddress === undefined ? [] : [`from ${remoteAddress}`]),
  ].join('\n')

const MAX_PRINTED = 200

const shortenedText = (text: string): string =>
  text.length > MAX_PRINTED ? `${text.slice(0, 60)}... (${text.length} characters)` : text

export const replaceQuery = (query: string, spec: RequestSpec): RequestSpec => ({
  ...spec,
  url: query === '' ? specPath(spec) : `${specPath(spec)}?${query}`,
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
  const path = specs.map(specPath).findLast((one) => one !== '/') ?? '/'
  const merged: RequestSpec = Object.assign({}, ...specs.map(withoutUndefined))
  const joined = { ...merged, ...(fields.length > 0 && { fields }) }
  return merged.url === undefined ? joined : replaceQuery(queries.join('&'), { ...joined, url: path })
}

// RFC 6265 §5.4: a client sends one Cookie field
const joinedCookies = (fields: ReadonlyArray<HeaderLine>): ReadonlyArray<HeaderLine> => {
  const cookies = fields.flatMap(([name, value]) => (isCookieField(name) ? [value] : [])).join('; ')
  const first = fields.findIndex(([name]) => isCookieField(name))
  return fields.flatMap((line, at): ReadonlyArray<HeaderLine> => {
    if (at === first) return [[line[0], cookies]]
    return isCookieField(line[0]) ? [] : [line]
  })
}

export const isCookieField = (name: string): boolean => name.toLowerCase() === 'cookie'

/** The part of a Koa application that is needed here. It gives requests their settings and signing keys. */
export interface ContextFactory {
  createContext(req: IncomingMessage, res: ServerResponse): { readonly request: Request }
}

// Node's parser calls it. It keeps the raw lines, and derives `headers` from them
const receive = (req: IncomingMessage, lines: string[]): void => {
  // Safe: Node's own method, which the line at the end of this file probes
  Reflect.apply(Reflect.get(req, '_addHeaderLines') as Function, req, [lines, lines.length])
}

/**
 * Makes the request of a spec. The default is `GET /` without fields. `app` gives it settings and signing keys. Throws
 * a TypeError for a property that a spec does not have.
 *
 * The request has no socket. An authenticator reads the same as over HTTP: fields, raw lines, query, cookies. What only
 * a connection has (an address, TLS) is missing, except the address of the spec.
 *
 * @example
 * import { httpBearer } from 'koa-with-auth'
 * import { mockRequest, withBearer } from 'koa-with-auth/testing'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const result = await bearer.evaluate(mockRequest(withBearer('supersecret')))
 * assert.deepStrictEqual(result, { _tag: 'Right', right: { user: 'anna' } })
 */
export const mockRequest = <S extends RequestSpec = RequestSpec>(
  spec?: ExactSpec<S>,
  // a new one for each request, so that nothing stays on it
  app: ContextFactory = new Koa(),
): Request => {
  // a spec with a wrong name would test nothing
  const given: RequestSpec = checkOptions('mockRequest', spec === undefined ? {} : spec, specChecks)
  const { method = 'GET', url = '/', fields = [], remoteAddress } = given
  const socket = new Socket()
  if (remoteAddress !== undefined) Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress })
  const req = new IncomingMessage(socket)
  req.method = method
  req.url = url
  receive(req, fields.flat())
  const res = new ServerResponse(req)
  // the initial status of Koa
  res.statusCode = 404
  return app.createContext(req, res).request
}

// Otherwise, code that reads `headers` would find nothing, and tests of absent credentials would always pass
if (mockRequest({ fields: [['Probe', 'a']] }).headers['probe'] !== 'a') {
  throw new Error('koa-with-auth/testing: this version of Node fills the fields of a request in another way')
}

export const HOST = 'api.example'

/** Fields that must not decide anything: code that trusts one of them admits everyone (CVE-2025-29927 and similar advisories). */
export const decidingNothing: ReadonlyArray<HeaderLine> = [
  ['X-User', 'admin'],
  ['X-Forwarded-User', 'admin'],
  ['X-Remote-User', 'admin'],
  ['X-Authenticated', 'true'],
  ['X-Middleware-Subrequest', 'middleware'],
  ['X-Original-URL', '/public'],
  ['X-HTTP-Method-Override', 'OPTIONS'],
  ['X-Forwarded-For', '127.0.0.1'],
  ['__proto__', 'x'],
]

/** Requests that claim to be a user, without any credential. */
export const impostors: ReadonlyArray<RequestSpec> = [
  ...decidingNothing.map((line): RequestSpec => ({ fields: [line] })),
  { url: '/?user=admin&userId=1&role=admin&isSuperuser=true' },
  { url: '/?__proto__=x&constructor=x' },
  { method: 'OPTIONS' },
  { method: 'HEAD' },
]

/** A write with these credentials that a page of another site makes a browser send. */
export const fromOtherSite = (spec: RequestSpec): RequestSpec => {
  const fields = { Host: HOST, 'Sec-Fetch-Site': 'cross-site', Origin: 'https://other.example' }
  return { ...mergeRequests(spec, { fields: Object.entries(fields) }), method: 'POST' }
}
