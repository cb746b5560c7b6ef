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
import { unlessThrown } from '../core/data.js'
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
import { linesFrom, withoutBlanks } from '../core/RequestFields.js'

/** A covered component, by its identifier: the name, and its parameters as they are written (RFC 9421 §2). */
export interface Covered {
  readonly name: string
  /** Whether all of it is covered, not a part of a field. */
  readonly isWhole: boolean
  /** How a principal and an option name it: the name alone, or with parameters as in `"@query-param";name="id"`. */
  readonly named: string
}

const MAX_COMPONENTS = 30

/** The components that a signature covers, in its order. `undefined` for too many, and for a name that cannot be one or is there twice. */
export const coveredBy = ([items]: InnerList): ReadonlyArray<Covered> | undefined => {
  if (items.length > MAX_COMPONENTS) return undefined
  const covered = new Map<string, Covered>()
  for (const item of items) {
    const [name, parameters] = item
    const identifier = serializeItem(item)
    // RFC 9421 §2: each once
    if (typeof name !== 'string' || name !== name.toLowerCase() || covered.has(identifier)) return undefined
    const isWhole = parameters.size === 0 || parameters.has('bs') || parameters.has('sf')
    covered.set(identifier, { name, isWhole, named: parameters.size === 0 ? name : identifier })
  }
  return [...covered.values()]
}

/** The values of components of a request. Each is read once, however many components of however many signatures name it. */
export const readingsOf = (request: Request, origin: string) => {
  const target = targetComponents(request, origin)
  const lines = memoized((name) => {
    const found = linesFrom(name)(request)
    return found.length === 0 ? undefined : found.map(unfolded)
  })
  return {
    request,
    target,
    parametersOf: memoized(parametersIn),
    lines,
    /** By the identifiers of components. */
    values: new Map<string, { readonly value: string | undefined }>(),
    members: memoized((name) => unlessThrown(() => parseDictionary((lines(name) ?? []).join(', ')))),
  }
}

export type Readings = ReturnType<typeof readingsOf>

const memoized = <A>(read: (name: string) => A): ((name: string) => A) => {
  const known = new Map<string, { readonly value: A }>()
  return (name) => {
    const found = known.get(name) ?? { value: read(name) }
    known.set(name, found)
    return found.value
  }
}

/** The signature base of a request at a public origin (RFC 9421 §2.5); `undefined` if a component has no certain value. */
export const signatureBase = (readings: Readings, input: InnerList): string | undefined => {
  const lines: string[] = []
  for (const item of input[0]) {
    const [given, parameters] = item
    const [name, identifier] = [String(given), serializeItem(item)]
    const read = name.startsWith('@') ? derivedPart : valueOfField
    // to write a field again can take milliseconds
    const found = readings.values.get(identifier) ?? { value: read(readings, name, parameters) }
    readings.values.set(identifier, found)
    // A line break would be another component
    if (found.value === undefined || !/^[\t\x20-\x7e]*$/.test(found.value)) return undefined
    lines.push(`${identifier}: ${found.value}`)
  }
  lines.push(`"@signature-params": ${serializeInnerList(input)}`)
  return lines.join('\n')
}

// --- derived components (RFC 9421 §2.2)

const absoluteForm = /^https?:\/\/[^/?#]*/i

const targetComponents = (request: Request, origin: string): Readonly<Record<string, string | undefined>> => {
  const [scheme, host] = origin.split('://')
  const target = request.originalUrl
  // a router does not read the part after it, and no client sends it
  if (target.includes('#')) return {}
  const [path = '', ...rest] = target.replace(absoluteForm, '').split('?')
  const query = rest.length === 0 ? '' : `?${rest.join('?')}`
  return {
    '@method': request.req.method,
    '@authority': host,
    '@scheme': scheme,
    '@target-uri': origin + (path || '/') + query,
    '@request-target': target,
    '@path': path || '/',
    '@query': query || '?',
  }
}

const derivedPart = ({ target, parametersOf }: Readings, name: string, parameters: Parameters): string | undefined => {
  if (name !== '@query-param') return parameters.size > 0 ? undefined : target[name]
  const wanted = parameters.get('name')
  const sent = parametersOf(target['@query'] ?? '')
  return typeof wanted === 'string' && parameters.size === 1 ? sent.get(wanted) : undefined
}

// By its encoded name, a parameter with its encoded value, or with `undefined` if that is not certain.
// URLSearchParams would decode `%ff` to another character, which many bytes become
const parametersIn = (query: string): ReadonlyMap<string, string | undefined> => {
  const found = new Map<string, string | undefined>()
  // of `??id=1`, Koa reads `id`, and the standard `?id`
  if (query.startsWith('??')) return found
  for (const [key, value] of new URLSearchParams(query)) {
    const name = percentEncoded(key)
    found.set(name, found.has(name) || value.includes('\ufffd') ? undefined : percentEncoded(value))
  }
  return found
}

// RFC 9421 §2.2.8: the percent-encode set of application/x-www-form-urlencoded, and a blank is %20
const percentEncoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()~]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

// --- fields (RFC 9421 §2.1)

// Fields that are dictionaries. To write a field again as it was parsed, its type must be known
const dictionaries: ReadonlySet<string> = new Set([
  ...['accept-signature', 'cache-status', 'content-digest', 'priority', 'repr-digest', 'signature', 'signature-agent'],
  ...['signature-input', 'want-content-digest', 'want-repr-digest'],
])

const valueOfField = ({ lines, members }: Readings, name: string, parameters: Parameters): string | undefined => {
  const found = lines(name)
  if (found === undefined) return undefined
  if (parameters.size === 0) return found.join(', ')
  const [[flag, value] = [], ...others] = parameters
  if (others.length > 0) return undefined
  if (flag === 'bs' && value === true)
    return found.map((one) => `:${Buffer.from(one, 'latin1').toString('base64')}:`).join(', ')
  const dictionary = dictionaries.has(name) ? members(name) : undefined
  if (dictionary === undefined) return undefined
  if (flag === 'sf' && value === true) return unlessThrown(() => serializeDictionary(dictionary))
  const member = flag === 'key' && typeof value === 'string' ? dictionary.get(value) : undefined
  return member && unlessThrown(() => (isInnerList(member) ? serializeInnerList(member) : serializeItem(member)))
}

// RFC 9421 §2.1: a line that was folded is one line
const unfolded = (line: string): string => line.split(/\r?\n/).map(withoutBlanks).join(' ')
