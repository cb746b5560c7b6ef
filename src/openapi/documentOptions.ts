/**
 * What a document says beside its operations: the Info Object and the rest of OpenAPI's root, as its author gives them.
 */
import type { OpenAPIV3_1 } from 'openapi-types'
import { checkOptions } from '../core/misuse.js'
import { withoutExtensions } from './operation.js'

/** The API as a whole. Names that begin with `x-` go into the document as they are. */
export interface OpenApiOptions extends Omit<OpenAPIV3_1.InfoObject, 'title' | 'version'> {
  /** The API's name. */
  readonly title: string
  /** The API's own version. */
  readonly version: string
  /** Where it is served; default: where the document comes from. */
  readonly servers?: OpenAPIV3_1.ServerObject[]
  /** The tags that operations have, in the order in which tools show them. */
  readonly tags?: OpenAPIV3_1.TagObject[]
  readonly externalDocs?: OpenAPIV3_1.ExternalDocumentationObject
  /**
   * What operations refer to. One called `Problem`, `Unauthorized`, `Forbidden` or `ServiceUnavailable` replaces ours.
   * Security schemes are read off the guards.
   */
  readonly components?: Omit<OpenAPIV3_1.ComponentsObject, 'securitySchemes'>
  readonly [extension: `x-${string}`]: unknown
}

const infoNames = ['title', 'summary', 'description', 'termsOfService', 'contact', 'license', 'version']
const rootNames = ['servers', 'tags', 'externalDocs', 'components']

/** The names of these options, for functions that take more options beside them. */
export const openApiOptionNames: ReadonlyArray<string> = [...infoNames, ...rootNames]

/** TypeError for options that no document can be made of. `place` is who takes them. */
export const checkOpenApiOptions = (place: string, options: OpenApiOptions): void => {
  checkOptions(place, withoutExtensions(options), openApiOptionNames)
  for (const name of ['title', 'version'] as const) {
    const value: unknown = options[name]
    if (typeof value !== 'string' || value === '') throw new TypeError(`${place}({ ${name} }) must be a string`)
  }
  for (const name of ['servers', 'tags'] as const) {
    if (options[name] !== undefined && !Array.isArray(options[name])) {
      throw new TypeError(`${place}({ ${name} }) must be a list`)
    }
  }
  const components: unknown = options.components
  if (components === undefined) return
  if (typeof components !== 'object' || components === null) {
    throw new TypeError(`${place}({ components }) must be an object`)
  }
  if ('securitySchemes' in components) {
    throw new TypeError(
      `${place}({ components: { securitySchemes } }): they are read off the guards; an authenticator's schemeName and description say the rest`,
    )
  }
}

// What was left out, or is undefined, says nothing
const given = (options: OpenApiOptions, isGiven: (name: string) => boolean): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(options).filter(([name, value]) => value !== undefined && isGiven(name)))

/** The Info Object. */
export const infoOf = (options: OpenApiOptions): OpenAPIV3_1.InfoObject => {
  const { title, version } = options
  return { title, ...given(options, (name) => infoNames.includes(name)), version }
}

/** The rest of the root, without what is made of operations. */
export const rootOf = (options: OpenApiOptions): Pick<OpenApiOptions, 'servers' | 'tags' | 'externalDocs'> => ({
  // what OpenAPI takes it for where there is none, said plainly
  servers: [{ url: '/' }],
  ...given(options, (name) => name !== 'components' && (rootNames.includes(name) || name.startsWith('x-'))),
})

/** What the author wrote, merged with what was derived: the author wins. */
export const componentsOf = (
  derived: OpenAPIV3_1.ComponentsObject,
  own: OpenAPIV3_1.ComponentsObject = {},
): OpenAPIV3_1.ComponentsObject => {
  const sections = new Set([...Object.keys(derived), ...Object.keys(own)] as Array<keyof OpenAPIV3_1.ComponentsObject>)
  const merged = [...sections].map((section) => [section, { ...derived[section], ...own[section] }] as const)
  return Object.fromEntries(merged.filter(([, content]) => Object.keys(content).length > 0))
}
