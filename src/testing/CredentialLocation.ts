/**
 * The place of a credential, read from a description: a header, a query parameter, a cookie, or the Authorization
 * field.
 *
 * A kind without a scheme (a plain function, a bare ReaderTaskEither) has no place. For it, the places in a valid
 * request are used (`locationsIn`).
 */
import { leaves, type Description, type Leaf } from '../core/Description.js'
import { isCookieField, mergeRequests, queryOf, replaceQuery, type HeaderLine, type RequestSpec } from './requests.js'

export interface CredentialLocation {
  readonly in: 'header' | 'query' | 'cookie' | 'authorization'
  readonly name: string
}

/** The place of a leaf's credential; `undefined` if it has no scheme, or a scheme whose credential is not in a request. */
export const locationOf = ({ scheme }: Leaf): CredentialLocation | undefined => {
  switch (scheme?.type) {
    case 'apiKey':
      return { in: scheme.in, name: scheme.name }
    case 'http':
      return { in: 'authorization', name: scheme.scheme }
    case 'oauth2':
    case 'openIdConnect':
      return { in: 'authorization', name: 'Bearer' }
    case 'mutualTLS':
    case undefined:
      return undefined
  }
}

/** The places that a description names. */
export const describedLocations = (description: Description): ReadonlyArray<CredentialLocation> =>
  leaves(description).flatMap((leaf) => locationOf(leaf) ?? [])

// Fields that every client sends, and that contain no credential
const ordinary = /^(?:host|origin|accept.*|content-.*|sec-fetch-.*|user-agent|connection|referer|date)$/i

/** Every place of a request that could hold a credential. */
export const locationsIn = (spec: RequestSpec): ReadonlyArray<CredentialLocation> => {
  const fields = linesOf(spec).flatMap(([name, value]): ReadonlyArray<CredentialLocation> => {
    if (isCookieField(name)) return value.indexOf('=') < 1 ? [] : [{ in: 'cookie', name: value.split('=')[0]! }]
    const scheme = /^([^ ]+) /.exec(value)?.[1]
    if (name.toLowerCase() === 'authorization' && scheme !== undefined) return [{ in: 'authorization', name: scheme }]
    return ordinary.test(name) ? [] : [{ in: 'header', name }]
  })
  const parameters = [...new URLSearchParams(queryOf(spec)).keys()]
  return distinctLocations([...fields, ...parameters.map((name) => ({ in: 'query' as const, name }))])
}

const locationKey = ({ in: location, name }: CredentialLocation): string =>
  `${location} ${location === 'header' || location === 'authorization' ? name.toLowerCase() : name}`

export const distinctLocations = (locations: ReadonlyArray<CredentialLocation>): ReadonlyArray<CredentialLocation> => [
  ...new Map(locations.map((location) => [locationKey(location), location])).values(),
]

const locationWords: Readonly<Record<CredentialLocation['in'], string>> = {
  header: 'the header',
  query: 'the query parameter',
  cookie: 'the cookie',
  authorization: 'the Authorization field with the scheme',
}

export const placeInWords = ({ in: where, name }: CredentialLocation): string => `${locationWords[where]} ${name}`

// A line for each cookie (RFC 6265 §4.2.1)
const linesOf = ({ fields = [] }: RequestSpec): ReadonlyArray<HeaderLine> =>
  fields.flatMap(([name, value]) =>
    isCookieField(name) ? value.split(/; ?/).map((pair): HeaderLine => [name, pair]) : [[name, value] as const],
  )

/** The field of a place that is not in the query, and the text before the credential. */
const beginningAt = ({ in: where, name }: CredentialLocation): HeaderLine => {
  if (where === 'header') return [name, '']
  return where === 'cookie' ? ['Cookie', `${name}=`] : ['Authorization', `${name} `]
}

const isHere = (location: CredentialLocation, [name, value]: HeaderLine): boolean => {
  const [field, before] = beginningAt(location)
  const start = value.slice(0, before.length)
  const isSame = location.in === 'cookie' ? start === before : start.toLowerCase() === before.toLowerCase()
  return isSame && name.toLowerCase() === field.toLowerCase()
}

/** The values in a place of a request, unchanged; those of an Authorization field without the scheme. */
export const valuesAt = (location: CredentialLocation, spec: RequestSpec): ReadonlyArray<string> => {
  if (location.in === 'query') return new URLSearchParams(queryOf(spec)).getAll(location.name)
  const { length } = beginningAt(location)[1]
  const values = linesOf(spec).flatMap((line) => (isHere(location, line) ? [line[1].slice(length)] : []))
  return location.in === 'authorization' ? values.map((value) => value.replace(/^ +/, '')) : values
}

/** A request without anything in a place. */
export const withoutCredential = (location: CredentialLocation, spec: RequestSpec): RequestSpec => {
  const pairs = queryOf(spec).split('&')
  return location.in === 'query'
    ? replaceQuery(pairs.filter((pair) => !new URLSearchParams(pair).has(location.name)).join('&'), spec)
    : mergeRequests({ ...spec, fields: linesOf(spec).filter((line) => !isHere(location, line)) })
}

/** A request with another value in a place, after those that are there. */
export const addCredential = (location: CredentialLocation, value: string, spec: RequestSpec): RequestSpec => {
  const [field, before] = beginningAt(location)
  return location.in === 'query'
    ? mergeRequests(spec, { url: `/?${[location.name, value.toWellFormed()].map(encodeURIComponent).join('=')}` })
    : mergeRequests(spec, { fields: [[field, before + value]] })
}

/** A request with these values in a place, and no others there. */
export const putCredentials = (
  location: CredentialLocation,
  values: ReadonlyArray<string>,
  spec: RequestSpec,
): RequestSpec =>
  values.reduce((with_, value) => addCredential(location, value, with_), withoutCredential(location, spec))
