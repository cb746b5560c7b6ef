/**
 * Where credentials are in a request: a header field, a query parameter, a cookie.
 *
 * Each reader returns the value that the client sent: nothing, one string, or, if the field was sent more than once, an array of
 * all values. No codec of a credential accepts an array.
 *
 * A header is read from `headers`. So changes by middleware above count, and a header is found even if an adapter gives
 * no raw lines (serverless). `rawHeaders` shows whether the client sent it more than once: Node keeps the first of two
 * Authorization lines and joins others with commas. The query is parsed here, because `ctx.query` is an object with a
 * prototype.
 */
import type { IncomingHttpHeaders } from 'node:http'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from './Request.js'
import { declareFactories } from './options.js'

/** One value, or several if the client sent the field more than once. */
export type Sent = string | ReadonlyArray<string>

const SPACE = 0x20
const TAB = 0x09

/**
 * @internal A value without the blanks around it, which do not belong to it (RFC 9110 §5.5, §5.6.3). Blanks are only SP
 * and HTAB, so `trim()` would remove too much. A regular expression would take quadratic time for blanks within
 * the value.
 */
export const withoutBlanks = (value: string): string => {
  let start = 0
  let end = value.length
  while (isBlank(value.charCodeAt(start))) start++
  while (isBlank(value.charCodeAt(end - 1))) end--
  // Node has cut off the blanks of almost every line
  return end - start === value.length ? value : value.slice(start, end)
}

const isBlank = (code: number): boolean => code === SPACE || code === TAB

/** A function that reads a credential, and says where. */
export interface Reader {
  (request: Request): O.Option<Sent>
  readonly location: { readonly in: 'header' | 'query' | 'cookie'; readonly name: string }
}

const located = (where: Reader['location']['in'], name: string, read: (request: Request) => O.Option<Sent>): Reader =>
  Object.assign(read, { location: Object.freeze({ in: where, name }) })

/**
 * Reads a header field; `name` in any letter case. If it was sent on several lines, the result is an array of all
 * values.
 *
 * @example
 * import { fromHeader } from 'koa-with-auth'
 *
 * const signature = fromHeader('X-Signature') // (request) => Option<string | string[]>
 */
export const fromHeader = (name: string): Reader => {
  const key = name.toLowerCase()
  return located('header', name, ({ req }) => {
    const value: unknown = req.headers[key]
    if (value === undefined) return O.none
    const lines = fieldLines(req.rawHeaders, name, key)
    // A line of the client is no inherited property (`constructor`), so almost no request needs a second look
    if (lines === value || Array.isArray(lines)) return O.some(lines)
    return Object.hasOwn(req.headers, key) ? fromValue(value) : O.none
  })
}

/** The value of a field, by its name in lower case; an empty string if the client sent none. */
export const fieldIn = ({ req: { headers } }: Request, name: string): string =>
  // most requests have not most fields, which a look at the prototype would cost
  headers[name] !== undefined && Object.hasOwn(headers, name) ? String(headers[name] ?? '') : ''

// Middleware changed it, or an adapter gives no raw lines
const fromValue = (value: unknown): O.Option<Sent> => {
  if (value === undefined || value === null) return O.none
  if (typeof value === 'string') return O.some(withoutBlanks(value))
  // Some adapters give an array if it was sent more than once. Any other value becomes an array that no codec accepts
  return O.some(Array.isArray(value) ? value.map((one) => withoutBlanks(String(one))) : [])
}

// The value of a field, or all values if it came on more than one line
const fieldLines = (lines: ReadonlyArray<string> = [], name: string, key: string): Sent | undefined => {
  const first = lineOf(lines, name, key, 0)
  if (first === -1) return undefined
  const value = withoutBlanks(lines[first + 1] ?? '')
  let at = lineOf(lines, name, key, first + 2)
  if (at === -1) return value
  const all = [value]
  for (; at !== -1; at = lineOf(lines, name, key, at + 2)) all.push(withoutBlanks(lines[at + 1] ?? ''))
  return all
}

// Where the next line of a field is, from a line on; -1 if there is none
const lineOf = (lines: ReadonlyArray<string>, name: string, key: string, from: number): number => {
  const { length } = key
  for (let at = from; at < lines.length; at += 2) {
    const field = lines[at]
    if (field === undefined || field.length !== length) continue
    if (field === name || field.toLowerCase() === key) return at
  }
  return -1
}

/** @internal Reads all lines of a header field. */
export const linesFrom = (name: string): ((request: Request) => ReadonlyArray<string>) => {
  const field = fromHeader(name)
  return (request) => {
    const found = field(request)
    return O.isNone(found) ? [] : [found.value].flat()
  }
}

/** @internal Whether Host came on more than one line. Each guarded request asks, so it reads no values. */
export const hasTwoHosts = ({ req: { rawHeaders: lines = [] } }: Request): boolean => {
  const first = lineOf(lines, 'Host', 'host', 0)
  return first !== -1 && lineOf(lines, 'Host', 'host', first + 2) !== -1
}

/** @internal The values of Host: one, unless the request is malformed (RFC 9112 §3.2), or of HTTP/2. Koa reads the first. */
export const hostsOf = linesFrom('Host')

/**
 * Reads the Authorization field if it has this scheme. Credentials of another scheme count as absent (RFC 6750 §3).
 * Scheme names compare case-insensitively (RFC 9110 §11.1).
 */
export const fromAuthorization = (scheme: string): ((request: Request) => O.Option<Sent>) => {
  const field = fromHeader('Authorization')
  const wanted = scheme.toLowerCase()
  const usual = `${scheme} `
  const { length } = usual
  return (request) => {
    const found = field(request)
    if (O.isNone(found) || typeof found.value !== 'string') return found
    // takes half of the time of `startsWith`, for which V8 compiles a loop
    return found.value.slice(0, length) === usual || isOfScheme(found.value, wanted) ? found : O.none
  }
}

const tokenCharacter = /[A-Za-z0-9!#$%&'*+\-.^_`|~]/

// The name of the scheme must end there: `Bearers x` has another scheme
const isOfScheme = (value: string, wanted: string): boolean =>
  value.slice(0, wanted.length).toLowerCase() === wanted && !tokenCharacter.test(value.charAt(wanted.length))

/** Reads a parameter of the query string; names compare case-sensitively, both sides are percent-decoded once. */
export const fromQuery = (name: string): Reader =>
  located('query', name, (request) => {
    const query = request.querystring
    // With its `?`, because URLSearchParams drops the first `?`. In `/??key=k`, the second `?` belongs to the name
    return query === '' ? O.none : sent(new URLSearchParams(`?${query}`).getAll(name))
  })

/**
 * Reads a cookie by its exact name. A pair is `name=value` at the start of the field or after `;`, with at most one
 * blank before it (RFC 6265 §4.2.1). Nothing is decoded.
 */
export const fromCookie = (name: string): Reader =>
  located('cookie', name, (request) => {
    const field = cookieField(request.req.headers)
    if (field === undefined || !field.includes(name)) return O.none
    const start = `${name}=`
    const values: string[] = []
    for (let at = 0, end = 0; at < field.length; at = end + 1) {
      const semicolon = field.indexOf(';', at)
      end = semicolon === -1 ? field.length : semicolon
      const pair = field.charCodeAt(at) === SPACE ? at + 1 : at
      if (!field.startsWith(start, pair)) continue
      const value = field.slice(pair + start.length, end)
      // with blanks around the name or `=`, it is not this cookie
      if (!isBlank(value.charCodeAt(0))) values.push(value)
    }
    return sent(values)
  })

// Node joins several lines with `; `, as RFC 9113 §8.2.3 says
const cookieField = (headers: IncomingHttpHeaders): string | undefined => {
  const found = Object.hasOwn(headers, 'cookie') ? fromValue(headers.cookie) : O.none
  if (O.isNone(found)) return undefined
  return typeof found.value === 'string' ? found.value : found.value.join('; ')
}

const sent = (values: ReadonlyArray<string>): O.Option<Sent> => {
  const [first] = values
  return first === undefined ? O.none : O.some(values.length === 1 ? first : values)
}

declareFactories({ fromHeader, fromAuthorization, fromQuery, fromCookie })
