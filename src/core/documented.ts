/**
 * The options of every kind that only OpenAPI reads: the name of its security scheme, and a description.
 */
import { maybe, schemeName, string } from './options.js'
import type { SecurityScheme } from './SecurityScheme.js'

/** The checks of these options. */
export const documentation = { schemeName: maybe(schemeName), description: maybe(string) }

/** The part of a kind that OpenAPI reads. */
export const documented = <S extends SecurityScheme>(
  scheme: S,
  { schemeName, description }: { readonly schemeName?: string | undefined; readonly description?: string | undefined },
): { readonly scheme: S; readonly schemeName: string | undefined } => ({
  scheme: { ...scheme, ...(description !== undefined && { description }) },
  schemeName,
})
