/**
 * The place of a credential, read from a description: a header, a query parameter, a cookie, or the Authorization
 * field.
 *
 * A kind without a scheme (a plain function, a bare ReaderTaskEither) has no place. For it, the places in a valid
 * request are used (`locationsIn`).
 */
import type { Leaf } from '../core/Description.js'
import { isCookieField, queryOf, replaceQuery, type HeaderLine, type RequestSpec } from './requests.js'

export interface CredentialLocation {
  readonly in: 'header' | 'query' | 'cookie' | 'authorization'
  readonly name: string
}

/** The place of a leaf's credential; `undefined` if it has no scheme, or one that is not in a request. */
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

// Fields that every client sends, and that contain no credential
const ordinary = /^(?:host|origin|accept.*|content-.*|sec-fetch-.*|user-agent|connection|referer|date)$/i

/** Every place of a request that could hold a credential. */
export const locationsIn = (spec: RequestSpec): ReadonlyArray<CredentialLocation> => {
  const fields = (spec.fields ?? []).flatMap(([name, value]): ReadonlyArray<CredentialLocation> => {
    if (isCookieField(name)) return pairsIn(value).map(([cookie]) => ({ in: 'cookie', name: cookie }))
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

// RFC 6265 §4.2.1
const pairsIn = (field: string): ReadonlyArray<HeaderLine> =>
  field.split(/; ?/).flatMap((pair): ReadonlyArray<HeaderLine> => {
    const at = pair.indexOf('=')
    return at < 1 ? [] : [[pair.slice(0, at), pair.slice(at + 1)]]
  })

const isHere = (location: CredentialLocation, [name, value]: HeaderLine): boolean => {
  if (location.in === 'header') return name.toLowerCase() === location.name.toLowerCase()
  const start = value.slice(0, location.name.length + 1).toLowerCase()
  return name.toLowerCase() === 'authorization' && start === `${location.name.toLowerCase()} `
}

/** The values in a place of a request, unchanged; those of an Authorization field without the scheme. */
export const valuesAt = (location: CredentialLocation, spec: RequestSpec): ReadonlyArray<string> => {
  const { fields = [] } = spec
  if (location.in === 'query') return new URLSearchParams(queryOf(spec)).getAll(location.name)
  if (location.in === 'cookie') {
    const cookies = fields.flatMap(([name, value]) => (isCookieField(name) ? pairsIn(value) : []))
    return cookies.flatMap(([name, value]) => (name === location.name ? [value] : []))
  }
  const values = fields.flatMap((line) => (isHere(location, line) ? [line[1]] : []))
  return location.in === 'header' ? values : values.map((one) => one.slice(location.name.length).replace(/^ +/, ''))
}

/** A request without anything in a place. */
export const withoutCredential = (location: CredentialLocation, spec: RequestSpec): RequestSpec => {
  const fields = spec.fields ?? []
  switch (location.in) {
    case 'query': {
      const rest = queryOf(spec)
        .split('&')
        .filter((pair) => !new URLSearchParams(pair).has(location.name))
      return replaceQuery(rest.join('&'), spec)
    }
    case 'cookie':
      return { ...spec, fields: fields.flatMap((line) => withoutCookie(location.name, line)) }
    case 'header':
    case 'authorization':
      return { ...spec, fields: fields.filter((line) => !isHere(location, line)) }
  }
}

const withoutCookie = (cookie: string, line: HeaderLine): ReadonlyArray<HeaderLine> => {
  if (!isCookieField(line[0])) return [line]
  const rest = pairsIn(line[1]).filter(([name]) => name !== cookie)
  return rest.length === 0 ? [] : [[line[0], rest.map((pair) => pair.join('=')).join('; ')]]
}

/** A request with another value in a place, after those that are there. */
export const addCredential = (location: CredentialLocation, value: string, spec: RequestSpec): RequestSpec => {
  const fields = spec.fields ?? []
  switch (location.in) {
    case 'query': {
      const pair = `${encodeURIComponent(location.name)}=${encodeURIComponent(value.toWellFormed())}`
      return replaceQuery([queryOf(spec), pair].filter((one) => one !== '').join('&'), spec)
    }
    case 'cookie': {
      const present = fields.flatMap(([name, pairs]) => (isCookieField(name) ? [pairs] : []))
      const others = fields.filter(([name]) => !isCookieField(name))
      return { ...spec, fields: [...others, ['Cookie', [...present, `${location.name}=${value}`].join('; ')]] }
    }
    case 'header':
      return { ...spec, fields: [...fields, [location.name, value]] }
    case 'authorization':
      return { ...spec, fields: [...fields, ['Authorization', `${location.name} ${value}`]] }
  }
}

/** A request with these values in a place, and no others there. */
export const putCredentials = (
  location: CredentialLocation,
  values: ReadonlyArray<string>,
  spec: RequestSpec,
): RequestSpec =>
  values.reduce((with_, value) => addCredential(location, value, with_), withoutCredential(location, spec))
