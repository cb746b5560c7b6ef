/**
 * The components of a request that a signature covers, and the signature base that is made of them (RFC 9421 §2).
 *
 * A component whose value is not known for certain is refused, never skipped: a flag that is not understood, a field that is not there,
 * a query parameter that is there twice.
 *
 * | component                                                        | value                                       |
 * |------------------------------------------------------------------|---------------------------------------------|
 * | `@method`, `@path`, `@query`, `@request-target`                  | as they were sent                           |
 * | `@authority`, `@scheme`, `@target-uri`                           | with the origin of the options, not of Host |
 * | `@query-param;name="id"`                                         | one parameter                               |
 * | a field; with `;bs`; with `;key="a"`; with `;sf`                 | its lines; as bytes; a member; as parsed    |
 * | `@status`, `;req`, `;tr`, and everything else                    | refused                                     |
 */
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from '../core/Request.js'
import {
  isInnerList,
  parseDictionary,
  serializeDictionary,
  serializeInnerList,
  serializeItem,
  type InnerList,
  type Parameters,
} from 'structured-headers'
import { fromHeader, withoutBlanks } from '../core/RequestFields.js'

/** What is covered, by its identifier: the name, and its parameters as they are written (RFC 9421 §2). */
export interface Covered {
  readonly name: string
  /** Whether all of it is covered, not a part of a field. */
  readonly isWhole: boolean
  /** How a principal and an option name it: the name alone, or with parameters as in `"@query-param";name="id"`. */
  readonly named: string
}

/** A signature base, and what it covers. */
interface SignatureBase {
  readonly text: string
  readonly covered: ReadonlyArray<Covered>
}

/** The public origin of an API, in the parts that components need. */
export const originOf = (origin: string) => {
  const [scheme = '', host = ''] = origin.split('://')
  return { origin, scheme, host }
}

export type PublicOrigin = ReturnType<typeof originOf>

/** The signature base of a request at a public origin (RFC 9421 §2.5); `undefined` if a component has no certain value. */
export const signatureBase = (request: Request, origin: PublicOrigin, input: InnerList): SignatureBase | undefined => {
  const lines: string[] = []
  const covered = new Map<string, Covered>()
  for (const item of input[0]) {
    const [name, parameters] = item
    if (typeof name !== 'string' || name !== name.toLowerCase()) return undefined
    const identifier = serializeItem(item)
    const value = name.startsWith('@') ? derived(request, origin, name, parameters) : field(request, name, parameters)
    // RFC 9421 §2: each once. A line break would be another component
    if (value === undefined || !/^[\t\x20-\x7e]*$/.test(value) || covered.has(identifier)) return undefined
    const isWhole = parameters.size === 0 || parameters.has('bs') || parameters.has('sf')
    covered.set(identifier, { name, isWhole, named: parameters.size === 0 ? name : identifier })
    lines.push(`${identifier}: ${value}`)
  }
  lines.push(`"@signature-params": ${serializeInnerList(input)}`)
  return { text: lines.join('\n'), covered: [...covered.values()] }
}

// --- derived components (RFC 9421 §2.2)

const absoluteForm = /^https?:\/\/[^/?#]*/i

const derived = (
  request: Request,
  { origin, scheme, host }: PublicOrigin,
  name: string,
  parameters: Parameters,
): string | undefined => {
  const target = request.originalUrl
  // a router does not read what comes after it, and no client sends it
  if (target.includes('#')) return undefined
  const [path = '', ...rest] = target.replace(absoluteForm, '').split('?')
  const query = rest.length === 0 ? '' : `?${rest.join('?')}`
  if (name === '@query-param') return queryParameter(query, parameters)
  if (parameters.size > 0) return undefined
  const pathOrSlash = path === '' ? '/' : path
  const values: Readonly<Record<string, string | undefined>> = {
    '@method': request.req.method,
    '@authority': host,
    '@scheme': scheme,
    '@target-uri': origin + pathOrSlash + query,
    '@request-target': target,
    '@path': pathOrSlash,
    '@query': query === '' ? '?' : query,
  }
  return values[name]
}

// URLSearchParams would decode `%ff` to another character, which many bytes become
const queryParameter = (query: string, parameters: Parameters): string | undefined => {
  const name = parameters.get('name')
  // of `??id=1`, Koa reads `id`, and the standard `?id`
  if (typeof name !== 'string' || parameters.size !== 1 || query.startsWith('??')) return undefined
  const all = [...new URLSearchParams(query)].flatMap(([key, value]) => (encoded(key) === name ? [value] : []))
  const [only] = all
  return all.length === 1 && only !== undefined && !only.includes('\ufffd') ? encoded(only) : undefined
}

// RFC 9421 §2.2.8: the percent-encode set of application/x-www-form-urlencoded, and a blank is %20
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()~]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

// --- fields (RFC 9421 §2.1)

// Fields that are dictionaries. To write a field again as it was parsed, its type must be known
const dictionaries: ReadonlySet<string> = new Set([
  'accept-signature',
  'cache-status',
  'content-digest',
  'priority',
  'repr-digest',
  'signature',
  'signature-agent',
  'signature-input',
  'want-content-digest',
  'want-repr-digest',
])

const field = (request: Request, name: string, parameters: Parameters): string | undefined => {
  const found = fromHeader(name)(request)
  if (O.isNone(found)) return undefined
  const lines = [found.value].flat()
  if (parameters.size === 0) return lines.map(unfolded).join(', ')
  const [[flag, value] = [], ...others] = parameters
  if (others.length > 0) return undefined
  if (flag === 'bs' && value === true)
    return lines.map((one) => `:${Buffer.from(unfolded(one), 'latin1').toString('base64')}:`).join(', ')
  if (!dictionaries.has(name)) return undefined
  if (flag === 'sf' && value === true) return dictionaryIn(lines, serializeDictionary)
  if (flag !== 'key' || typeof value !== 'string') return undefined
  return dictionaryIn(lines, (members) => {
    const member = members.get(value)
    return member && (isInnerList(member) ? serializeInnerList(member) : serializeItem(member))
  })
}

// RFC 9421 §2.1: a line that was folded is one line
const unfolded = (line: string): string => line.split(/\r?\n/).map(withoutBlanks).join(' ')

const dictionaryIn = (
  lines: ReadonlyArray<string>,
  read: (members: ReturnType<typeof parseDictionary>) => string | undefined,
): string | undefined => {
  try {
    return read(parseDictionary(lines.join(', ')))
  } catch {
    return undefined
  }
}
