/**
 * The parts of a document besides its operations: the Info Object and the rest of OpenAPI's root, as its author gives
 * them.
 */
import type { OpenAPIV3_1 } from 'openapi-types'
import { checkOptions, list, maybe, nonEmpty, unchecked, withoutUndefined } from '../core/options.js'
import type { Check, Checks, Given, OrUndefined } from '../core/options.js'
import { withoutExtensions } from './operation.js'

/** The API as a whole. Names that begin with `x-` go into the document unchanged. */
export interface OpenApiOptions extends OrUndefined<Omit<OpenAPIV3_1.InfoObject, 'title' | 'version'>> {
  /** The API's name. */
  readonly title: string
  /** The version of the API. */
  readonly version: string
  /** Where it is served. Default: where the document comes from. */
  readonly servers?: OpenAPIV3_1.ServerObject[] | undefined
  /** The tags that operations have, in the order in which tools show them. */
  readonly tags?: OpenAPIV3_1.TagObject[] | undefined
  readonly externalDocs?: OpenAPIV3_1.ExternalDocumentationObject | undefined
  /**
   * The components that operations refer to. One called `Problem`, `Unauthorized`, `Forbidden` or `ServiceUnavailable`
   * replaces ours. Security schemes come from the guards.
   */
  readonly components?: Omit<OpenAPIV3_1.ComponentsObject, 'securitySchemes'> | undefined
  readonly [extension: `x-${string}`]: unknown
}

const ownComponents: Check = (place, components) => {
  if (typeof components !== 'object' || components === null) throw new TypeError(`${place} must be an object`)
  if ('securitySchemes' in components) {
    throw new TypeError(
      `${place.slice(0, -3)}: { securitySchemes } }): they come from the guards; give the authenticators a schemeName and a description instead`,
    )
  }
}

const info: Checks<OpenAPIV3_1.InfoObject> = {
  title: nonEmpty,
  summary: unchecked,
  description: unchecked,
  termsOfService: unchecked,
  contact: unchecked,
  license: unchecked,
  version: nonEmpty,
}
const root = {
  servers: maybe(list),
  tags: maybe(list),
  externalDocs: unchecked,
  components: maybe(ownComponents),
}

/** The checks of these options, for functions that take further options. */
export const documentChecks: Checks<OpenApiOptions> = { ...info, ...root }

/** Throws a TypeError for options that cannot work. `place` is the function that takes them. */
export const checkOpenApiOptions = (place: string, options: OpenApiOptions): void => {
  checkOptions(place, withoutExtensions(options), documentChecks)
}

// An option that is undefined counts as left out
const given = (options: OpenApiOptions, isGiven: (name: string) => boolean): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(withoutUndefined(options)).filter(([name]) => isGiven(name)))

/** The Info Object. */
export const infoOf = (options: OpenApiOptions): OpenAPIV3_1.InfoObject => {
  const { title, version } = options
  return { title, ...given(options, (name) => name in info), version }
}

/** The rest of the root, without the parts that operations make. */
export const rootOf = (options: OpenApiOptions): Given<Pick<OpenApiOptions, 'servers' | 'tags' | 'externalDocs'>> => ({
  // OpenAPI's default, written out
  servers: [{ url: '/' }],
  ...given(options, (name) => name !== 'components' && (name in root || name.startsWith('x-'))),
})

/** Merges the author's components with the derived ones. The author's win. */
export const componentsOf = (
  derived: OpenAPIV3_1.ComponentsObject,
  own: OpenAPIV3_1.ComponentsObject = {},
): OpenAPIV3_1.ComponentsObject => {
  const sections = new Set([...Object.keys(derived), ...Object.keys(own)] as Array<keyof OpenAPIV3_1.ComponentsObject>)
  const merged = [...sections].map((section) => [section, { ...derived[section], ...own[section] }] as const)
  return Object.fromEntries(merged.filter(([, content]) => Object.keys(content).length > 0))
}
