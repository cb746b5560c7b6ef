/**
 * The differences of an OpenAPI document and the guards. Schemes are compared by their credentials, not by their names. A plain function has
 * no scheme, so for an operation that only a function guards, the document may say anything.
 */
import * as E from 'fp-ts/lib/Either.js'
import { visible, type Audit, type AuditedOperation } from '../audit/Audit.js'
import { inOrder, type Difference } from '../audit/Difference.js'
import { compareAccess, demandOf, publicAccess, schemeNames, waysInWords, type AccessPath } from '../audit/Way.js'
import type { AnyRouter } from '../koa/layer.js'
import { openApi } from '../openapi/document.js'
import { pathItemMethods, templatesOf } from '../openapi/paths.js'
import type { Routed } from '../openapi/routes.js'

interface DocumentEntry {
  readonly name: string
  /** Its demands; `undefined` if the document does not say. */
  readonly ways: ReadonlyArray<AccessPath> | undefined
}

/** The operations, by method and outline of the path, in which parameters have no names. */
const documentEntries = (document: object): ReadonlyMap<string, DocumentEntry> => {
  const { paths, servers, security: everywhere, components } = entriesOf(document)
  const base = basePathOf(servers)
  const schemes = entriesOf(entriesOf(components)['securitySchemes'])
  return new Map(
    Object.entries(entriesOf(paths)).flatMap(([path, item]) =>
      pathItemMethods
        .filter((method) => typeof entriesOf(item)[method] === 'object')
        .map((method): [string, DocumentEntry] => {
          const { security = everywhere } = entriesOf(entriesOf(item)[method])
          const name = `${method.toUpperCase()} ${base}${path}`
          const ways = Array.isArray(security) ? documentedWays(security, schemes) : undefined
          return [name.replace(/\{[^{}]*\}/g, '{}'), { name, ways }]
        }),
    ),
  )
}

// The paths of a document are below the first of its servers
const basePathOf = (servers: unknown): string => {
  const [first]: ReadonlyArray<unknown> = Array.isArray(servers) ? servers : []
  const { url } = entriesOf(first)
  if (typeof url !== 'string' || !URL.canParse(url, 'http://localhost')) return ''
  return new URL(url, 'http://localhost').pathname.replace(/\/$/, '')
}

const documentedWays = (security: ReadonlyArray<unknown>, schemes: Members): ReadonlyArray<AccessPath> =>
  security.length === 0
    ? [publicAccess]
    : security.map((requirement) => ({
        demands: Object.entries(entriesOf(requirement)).map(([name, scopes]) =>
          demandOf(documentedScheme(name, schemes), Array.isArray(scopes) ? scopes.map(String) : []),
        ),
        takesAnything: false,
      }))

const documentedScheme = (name: string, schemes: Members): string => {
  const own = entriesOf(schemes[name])
  const { $ref } = own
  const referred = typeof $ref === 'string' ? schemes[$ref.replace('#/components/securitySchemes/', '')] : own
  const { type, scheme, in: location, name: field } = entriesOf(referred)
  switch (type) {
    case 'http':
      return String(scheme).toLowerCase()
    case 'apiKey':
      return `API key in ${String(location)} ${location === 'header' ? String(field).toLowerCase() : String(field)}`
    case 'oauth2':
    case 'openIdConnect':
    case 'mutualTLS':
      return schemeNames[type]
    default:
      return `the unknown scheme "${name}"`
  }
}

type Members = Readonly<Record<string, unknown>>

const entriesOf = (u: unknown): Members =>
  typeof u === 'object' && u !== null ? Object.fromEntries(Object.entries(u)) : {}

const documentFrom = (text: string): E.Either<string, object> => {
  const parsed = E.tryCatch(
    (): unknown => JSON.parse(text.replace(/^\uFEFF/, '')),
    () => 'is not JSON',
  )
  if (E.isLeft(parsed)) return parsed
  const document = entriesOf(parsed.right)
  const { openapi, paths } = document
  if (typeof openapi !== 'string' || !openapi.startsWith('3.')) return E.left('is not an OpenAPI 3 document')
  return typeof paths === 'object' && paths !== null ? E.right(document) : E.left('has no paths')
}

/** The differences of the guards from a document, or why it is none. `opened`: the guards let in more than the document says. */
export const documentDifferences = (
  text: string,
  routers: ReadonlyArray<AnyRouter>,
  audit: Audit,
): E.Either<string, ReadonlyArray<Difference>> =>
  E.Functor.map(documentFrom(text), (document) => compareDocument(document, routers, audit))

const compareDocument = (document: object, routers: ReadonlyArray<AnyRouter>, { operations }: Audit) => {
  const written = documentEntries(document)
  // Safe: the document only reads the layers
  const own = (router: AnyRouter) =>
    openApi(router as unknown as Routed<unknown, unknown>, { title: '-', version: '-' })
  const guarded = new Map([...routers].reverse().flatMap((router) => [...documentEntries(own(router))]))
  const routed = new Set(operations.flatMap(({ method, path }) => entryKeys(method, path)))
  return inOrder([
    ...[...guarded].flatMap(([key, own]) => entryDifferences(own, written.get(key))),
    ...[...written]
      .filter(([key]) => !guarded.has(key) && !routed.has(key))
      .map(([, { name }]) => difference(name, 'is in the document, but no route answers it', 'closed')),
    ...operations.flatMap((operation) => undocumentedDifferences(operation, written, (key) => guarded.has(key))),
    ...operations.flatMap((operation) => answeredFirst(operation, written)),
  ])
}

const difference = (name: string, what: string, direction: Difference['direction']): Difference => ({
  operation: visible(name),
  text: visible(`${name}: ${what}`),
  direction,
})

const entryDifferences = (own: DocumentEntry, other: DocumentEntry | undefined): ReadonlyArray<Difference> => {
  if (other === undefined) {
    const what = `is not in the document, and the guards demand ${accessLabel(own.ways)}`
    return [difference(own.name, what, isPublicEntry(own) ? 'opened' : 'changed')]
  }
  if (own.ways === undefined) return []
  const said = other.ways ?? [publicAccess]
  // a document need not list the discovery beside the token
  const namesDiscovery = said.some(isDiscovery)
  const demanded = own.ways.filter((way) => namesDiscovery || !isDiscovery(way))
  const how = compareAccess(said, demanded)
  if (how === 'same') return []
  const what = `the document says ${accessLabel(said)}, the guards demand ${accessLabel(demanded)}`
  return [difference(own.name, what, how === 'other' ? 'changed' : how)]
}

// Open operations that the guards' own document leaves out: `undocumented`, or with a RegExp as path
const undocumentedDifferences = (
  { operation, method, path, access, docs }: AuditedOperation,
  written: ReadonlyMap<string, DocumentEntry>,
  isCompared: (key: string) => boolean,
): ReadonlyArray<Difference> => {
  if (access === 'guarded' || docs === 'page') return []
  const keys = entryKeys(method, path)
  const others = keys.filter((key) => !isCompared(key)).map((key) => written.get(key))
  if (keys.length === 0 || others.includes(undefined)) {
    return [difference(operation, 'is not in the document, and anyone may call it', 'opened')]
  }
  const stricter = others.find((other) => other?.ways !== undefined && !isPublicEntry(other))
  return stricter === undefined
    ? []
    : [difference(operation, `the document says ${accessLabel(stricter.ways)}, and anyone may call it`, 'opened')]
}

// An operation that has a guard, but an open operation takes its requests
const answeredFirst = (
  { operation, method, path, access, shadowedBy }: AuditedOperation,
  written: ReadonlyMap<string, DocumentEntry>,
): ReadonlyArray<Difference> => {
  const open = shadowedBy.find((shadow) => shadow.access !== 'guarded' && shadow.extent !== 'unknown')
  const other = entryKeys(method, path)
    .map((key) => written.get(key))
    .find((one) => one?.ways !== undefined && !isPublicEntry(one))
  if (access !== 'guarded' || open === undefined || other === undefined) return []
  const extent = open.extent === 'part' ? 'some requests' : 'its requests'
  const what = `the document says ${accessLabel(other.ways)}, but ${open.operation}, which is ${open.access}, answers ${extent}`
  return [difference(operation, what, 'opened')]
}

const isPublicEntry = ({ ways }: DocumentEntry): boolean => ways?.some(({ demands }) => demands.length === 0) === true

const isDiscovery = ({ demands }: AccessPath): boolean =>
  demands.some(({ credential }) => credential === 'OpenID Connect')

const accessLabel = (ways: ReadonlyArray<AccessPath> | undefined): string => {
  if (ways === undefined) return 'the decision of a function'
  return ways.some(({ takesAnything }) => takesAnything) ? 'nothing' : waysInWords(ways)
}

const entryKeys = (method: string, path: string): ReadonlyArray<string> => {
  const methods = method === 'ALL' ? pathItemMethods.map((one) => one.toUpperCase()) : [method]
  return templatesOf(path).flatMap((template) =>
    E.isLeft(template) ? [] : methods.map((one) => `${one} ${template.right.outline}`),
  )
}
