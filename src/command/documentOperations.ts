/**
 * Reads the operations of an OpenAPI document, and what each demands.
 */
import { anyone, type Way } from '../audit/Way.js'
import { schemeNames } from '../audit/words.js'
import { listed } from '../openapi/methods.js'

/** An operation of a document. */
export interface Described {
  readonly name: string
  /** What it demands; `undefined` if the document does not say. */
  readonly ways: ReadonlyArray<Way> | undefined
}

/** The operations, by method and outline of the path, in which parameters have no names. */
export const describedIn = (document: object): ReadonlyMap<string, Described> => {
  const { paths, servers, security: everywhere, components } = entriesOf(document)
  const base = basePathOf(servers)
  const schemes = entriesOf(entriesOf(components)['securitySchemes'])
  return new Map(
    Object.entries(entriesOf(paths)).flatMap(([path, item]) =>
      listed
        .filter((method) => typeof entriesOf(item)[method] === 'object')
        .map((method): [string, Described] => {
          const { security = everywhere } = entriesOf(entriesOf(item)[method])
          const name = `${method.toUpperCase()} ${base}${path}`
          return [outlineOf(name), { name, ways: Array.isArray(security) ? waysOf(security, schemes) : undefined }]
        }),
    ),
  )
}

const outlineOf = (name: string): string => name.replace(/\{[^{}]*\}/g, '{}')

// The paths of a document are below the first of its servers
const basePathOf = (servers: unknown): string => {
  const [first]: ReadonlyArray<unknown> = Array.isArray(servers) ? servers : []
  const { url } = entriesOf(first)
  if (typeof url !== 'string' || !URL.canParse(url, 'http://localhost')) return ''
  return new URL(url, 'http://localhost').pathname.replace(/\/$/, '')
}

const waysOf = (security: ReadonlyArray<unknown>, schemes: Readonly<Record<string, unknown>>): ReadonlyArray<Way> =>
  security.length === 0 ? [anyone] : security.map((requirement) => wayOf(entriesOf(requirement), schemes))

const wayOf = (requirement: Readonly<Record<string, unknown>>, schemes: Readonly<Record<string, unknown>>): Way => ({
  credentials: Object.keys(requirement).map((name) => schemeInWords(name, schemes)),
  scopes: Object.values(requirement).flatMap((scopes) => (Array.isArray(scopes) ? scopes.map(String) : [])),
  authorizations: 0,
  takesAnything: false,
})

const schemeInWords = (name: string, schemes: Readonly<Record<string, unknown>>): string => {
  const own = entriesOf(schemes[name])
  const { $ref } = own
  const referred = typeof $ref === 'string' ? schemes[$ref.replace('#/components/securitySchemes/', '')] : own
  const { type, scheme, in: place, name: field } = entriesOf(referred)
  switch (type) {
    case 'http':
      return String(scheme).toLowerCase()
    case 'apiKey':
      return `API key in ${String(place)} ${place === 'header' ? String(field).toLowerCase() : String(field)}`
    case 'oauth2':
    case 'openIdConnect':
    case 'mutualTLS':
      return schemeNames[type]
    default:
      return `the unknown scheme "${name}"`
  }
}

/** The properties of an object; no properties for anything else. */
export const entriesOf = (u: unknown): Readonly<Record<string, unknown>> =>
  typeof u === 'object' && u !== null ? Object.fromEntries(Object.entries(u)) : {}
