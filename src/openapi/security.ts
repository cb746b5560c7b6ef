/**
 * Writes a requirement for OpenAPI: as requirement objects, and the security schemes that they name.
 *
 * A name depends only on its scheme, so no operation changes the names of another.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Request } from 'koa'
import type { OpenAPIV3_1 } from 'openapi-types'
import { alternativesOf, type Alternative, type Demand } from '../core/alternatives.js'
import { admitsAnonymous, leaves, schemeOf, type Description } from '../core/Description.js'
import { effective, type Requirement } from '../core/Requirement.js'
import { schemeNameOf } from '../core/schemeName.js'
import type { SecurityScheme } from '../core/SecurityScheme.js'

/** A scheme under its name. */
export interface NamedScheme {
  readonly name: string
  readonly scheme: SecurityScheme
}

/** What an operation requires. */
export interface Security {
  /** What its authenticator demands; `undefined` if anyone may call. */
  readonly description: Description | undefined
  /** The list for OpenAPI; `undefined` if no alternative has a scheme (plain functions). */
  readonly requirements: ReadonlyArray<OpenAPIV3_1.SecurityRequirementObject> | undefined
  readonly schemes: ReadonlyArray<NamedScheme>
  /** What OpenAPI cannot express, as a sentence in CommonMark. */
  readonly remark: string | undefined
}

const anyone: Security = { description: undefined, requirements: [], schemes: [], remark: undefined }

// The page shows a padlock only for a scheme. Without a remark, the operation would look public
const remarkOf = (description: Description): string | undefined => {
  const all = leaves(description)
  const functions = all.filter(({ scheme }) => scheme === undefined)
  if (functions.length === 0) return undefined
  return functions.length === all.length && !admitsAnonymous(description)
    ? '**Guarded** by a function of the request. It has no security scheme, so there is nothing to enter.'
    : 'A function of the request decides, too. It has no security scheme, so there is nothing to enter for it.'
}

/** What a requirement demands. Some schemes depend on the application of the request. */
export const securityOf = (requirement: Requirement, request?: Request): Security => {
  const description = effective(requirement)?.description
  if (description === undefined) return anyone
  const alternatives = alternativesOf(description)
    .flatMap(withDiscovery)
    .map((alternative) => ({
      anonymous: alternative.length === 0,
      members: namedIn(alternative, request),
    }))
  // Alternatives of plain functions must not become `{}`, which means that anonymous callers pass
  const listed = alternatives.filter(({ anonymous, members }) => anonymous || members.length > 0)
  return {
    description,
    requirements: listed.length === 0 ? undefined : distinct(listed.map(({ members }) => requirementOf(members))),
    schemes: listed.flatMap(({ members }) => members),
    remark: remarkOf(description),
  }
}

/** A copy of the list, so that a change of one operation of a document changes no other. */
export const copied = (
  requirements: ReadonlyArray<OpenAPIV3_1.SecurityRequirementObject>,
): OpenAPIV3_1.SecurityRequirementObject[] =>
  requirements.map((one) => Object.fromEntries(Object.entries(one).map(([name, scopes]) => [name, [...scopes]])))

// A tool that knows OpenID Connect uses the discovery document, and any other the token
const waysToSay = ({ leaf, scopes }: Demand): ReadonlyArray<Demand> => {
  const { discovery, ...plain } = leaf
  if (discovery === undefined) return [{ leaf, scopes }]
  const schemeName = leaf.schemeName === undefined ? {} : { schemeName: `${leaf.schemeName}_${discovery.type}` }
  return [
    { leaf, scopes },
    { leaf: { ...plain, scheme: discovery, ...schemeName }, scopes },
  ]
}

const withDiscovery = (alternative: Alternative): ReadonlyArray<Alternative> =>
  alternative.reduce<ReadonlyArray<Alternative>>(
    (some, demand) => some.flatMap((one) => waysToSay(demand).map((way) => [...one, way])),
    [[]],
  )

interface Member extends NamedScheme {
  readonly scopes: ReadonlyArray<string>
}

const namedIn = (alternative: Alternative, request: Request | undefined): ReadonlyArray<Member> =>
  alternative.flatMap(({ leaf, scopes }) => {
    const scheme = schemeOf(leaf, request)
    const name = schemeNameOf(leaf, request)
    return scheme === undefined || name === undefined ? [] : [{ name, scheme, scopes }]
  })

// If one scheme is demanded twice, all its scopes are listed
const requirementOf = (members: ReadonlyArray<Member>): OpenAPIV3_1.SecurityRequirementObject =>
  Object.fromEntries(
    members.map(({ name }) => [
      name,
      [...new Set(members.filter((member) => member.name === name).flatMap(({ scopes }) => scopes))],
    ]),
  )

const distinct = (
  requirements: ReadonlyArray<OpenAPIV3_1.SecurityRequirementObject>,
): OpenAPIV3_1.SecurityRequirementObject[] => {
  const contentOf = (requirement: object): string =>
    JSON.stringify(Object.entries(requirement).sort(([a], [b]) => (a < b ? -1 : 1)))
  const seen = new Set<string>()
  return requirements.filter((requirement) => {
    const content = contentOf(requirement)
    return !seen.has(content) && seen.add(content)
  })
}

/** A use of a scheme. */
export interface SchemeUse extends NamedScheme {
  /** An operation that demands it, for messages. */
  readonly place: string
}

/** The schemes of all operations by name. Throws a TypeError if two that differ have one name. */
export const securitySchemesOf = (
  uses: ReadonlyArray<SchemeUse>,
): Readonly<Record<string, OpenAPIV3_1.SecuritySchemeObject>> => {
  const known = new Map<string, SchemeUse>()
  for (const use of uses) {
    const other = known.get(use.name)
    if (other === undefined) known.set(use.name, use)
    else if (other.scheme !== use.scheme && !isDeepStrictEqual(other.scheme, use.scheme)) throw clash(other, use)
  }
  // Safe: it is OpenAPI's own model, but openapi-types does not know mutualTLS, or flows that are written as data
  return Object.fromEntries([...known].map(([name, { scheme }]) => [name, structuredClone(scheme)])) as Record<
    string,
    OpenAPIV3_1.SecuritySchemeObject
  >
}

const clash = ({ name, place }: SchemeUse, other: SchemeUse): TypeError =>
  new TypeError(
    place === other.place
      ? `openApi: ${place} demands two security schemes called "${name}" that differ; give each its own schemeName`
      : `openApi: the security schemes called "${name}" of ${place} and of ${other.place} differ; give each its own schemeName`,
  )
