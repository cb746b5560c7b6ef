/** The options of a document, and their checks. The document is made elsewhere, when it is asked for: `document.ts`. */
import type { OpenAPIV3_1 } from 'openapi-types'
import * as is from '../core/checks.js'
import type { Check, Checks, OrUndefined } from '../core/options.js'

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

const ownComponents: Check = (where, components) => {
  if (typeof components !== 'object' || components === null) throw new TypeError(`${where} must be an object`)
  if ('securitySchemes' in components) {
    throw new TypeError(
      `${where.slice(0, -3)}: { securitySchemes } }): they come from the guards; give the authenticators a schemeName and a description instead`,
    )
  }
}

export const info: Checks<OpenAPIV3_1.InfoObject> = {
  title: is.nonEmpty,
  summary: is.unchecked,
  description: is.unchecked,
  termsOfService: is.unchecked,
  contact: is.unchecked,
  license: is.unchecked,
  version: is.nonEmpty,
}
export const root = {
  servers: is.maybe(is.list),
  tags: is.maybe(is.list),
  externalDocs: is.unchecked,
  components: is.maybe(ownComponents),
}

export const documentChecks: Checks<OpenApiOptions> = { ...info, ...root }
