/**
 * What OpenAPI calls the scheme of a kind: the name that its author gave, or one that is derived from the scheme.
 */
import type { Request } from 'koa'
import { schemeOf, type Leaf } from './Description.js'
import type { SecurityScheme } from './SecurityScheme.js'

/**
 * The name of a kind's scheme; `undefined` for a plain function, which has none. Some names depend on the request's
 * application.
 */
export const schemeNameOf = (leaf: Leaf, request?: Request): string | undefined => {
  const scheme = schemeOf(leaf, request)
  return scheme === undefined ? undefined : (leaf.schemeName ?? derivedName(scheme))
}

const derivedName = (scheme: SecurityScheme): string => {
  switch (scheme.type) {
    case 'apiKey':
      return allowed(`${{ query: 'apiKeyQuery', header: 'apiKeyHeader', cookie: 'cookie' }[scheme.in]}_${scheme.name}`)
    case 'http':
      return allowed([scheme.scheme.toLowerCase(), ...(scheme.bearerFormat ?? '').split(' ')].filter(Boolean).join('_'))
    default:
      return scheme.type
  }
}

// OpenAPI 3.1, Components Object: a name has only these characters. Any other is replaced by its code
const allowed = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9._-]/gu, (character) => `_${character.codePointAt(0)!.toString(16)}`)
