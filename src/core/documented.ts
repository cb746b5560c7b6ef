/**
 * What the options of every kind say for OpenAPI alone: a name for its security scheme, and a description.
 */
import { checkSchemeName } from './misuse.js'
import type { SecurityScheme } from './SecurityScheme.js'

/** The names of these options. */
export const documentation = ['schemeName', 'description']

/** The part of a kind that OpenAPI reads. TypeError for a name that no component can have, and for a description that is no text. */
export const documented = <S extends SecurityScheme>(
  factory: string,
  scheme: S,
  { schemeName, description }: { readonly schemeName?: string; readonly description?: string },
): { readonly scheme: S; readonly schemeName?: string } => {
  checkSchemeName(`${factory}({ schemeName })`, schemeName)
  if (description !== undefined && typeof description !== 'string') {
    throw new TypeError(`${factory}({ description }) must be a string`)
  }
  return {
    scheme: { ...scheme, ...(description !== undefined && { description }) },
    ...(schemeName !== undefined && { schemeName }),
  }
}
