/** Paths and their methods, as OpenAPI writes them. */
import * as E from 'fp-ts/lib/Either.js'
import { parse, type Key, type Text, type Token } from 'path-to-regexp'

/** The methods that a Path Item Object has fields for (OpenAPI 3.1, Path Item Object), in its order. */
export const pathItemMethods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const

export type ListedMethod = (typeof pathItemMethods)[number]

/** A path as OpenAPI writes it. It comes from a router's pattern: `/pets{/:id}` becomes `/pets/{id}` and `/pets`. */
export interface PathTemplate {
  /** `/pets/{id}` */
  readonly path: string
  /** The path without names. For OpenAPI, two paths with the same outline are the same path (3.1, Paths Object). */
  readonly outline: string
  /** The outline, and which parameters are wildcards: patterns of the same shape match the same URLs. */
  readonly shape: string
  /** `wildcard`: it matches several segments. */
  readonly parameters: ReadonlyArray<{ readonly name: string; readonly wildcard: boolean }>
}

/** The templates of a pattern, with and without its optional groups, the longest first; or why one of them cannot be written. */
export const templatesOf = (pattern: string | RegExp): ReadonlyArray<E.Either<string, PathTemplate>> => {
  if (typeof pattern !== 'string') return [E.left('a regular expression is not a path template')]
  try {
    const { tokens } = parse(pattern)
    return pattern === '' ? [E.left(noSlash)] : expanded(tokens).map(templateOf)
  } catch {
    return [E.left('not a pattern that path-to-regexp reads')]
  }
}

const noSlash = 'a path begins with a slash'

type Piece = Text | Key

// With each optional group, and without it
const expanded = (tokens: ReadonlyArray<Token>): ReadonlyArray<ReadonlyArray<Piece>> =>
  tokens.reduce<ReadonlyArray<ReadonlyArray<Piece>>>(
    (some, token) => {
      const next = token.type === 'group' ? [...expanded(token.tokens), []] : [[token]]
      return some.flatMap((one) => next.map((other) => [...one, ...other]))
    },
    [[]],
  )

const templateOf = (pieces: ReadonlyArray<Piece>): E.Either<string, PathTemplate> => {
  const written = (of: (key: Key, at: number) => string): string => {
    const keys = pieces.filter((piece) => piece.type !== 'text')
    // without all groups: a requested path still begins with a slash
    return pieces.map((piece) => (piece.type === 'text' ? piece.value : of(piece, keys.indexOf(piece)))).join('') || '/'
  }
  const outline = written(() => '{}')
  if (!outline.startsWith('/')) return E.left(noSlash)
  if (pieces.some((piece) => piece.type === 'text' && /[{}?#]/.test(piece.value))) {
    return E.left('a path template cannot contain { } ? or # as plain characters')
  }
  const parameters = templateParametersOf(pieces.filter((piece) => piece.type !== 'text'))
  return E.right({
    path: written((_, at) => `{${parameters[at]!.name}}`),
    outline,
    shape: written(({ type }) => (type === 'wildcard' ? '{*}' : '{}')),
    parameters,
  })
}

// 3.1, Paths Object: a name is unique in a path. The router allows a mounted path to repeat a name
// (/users/:id/pets/:id), and gives a handler the last, so the last keeps its name
const templateParametersOf = (keys: ReadonlyArray<Key>): PathTemplate['parameters'] =>
  keys.reduceRight<PathTemplate['parameters']>((rest, { name: given, type }) => {
    const name = given.replaceAll(/[{}/?#]/g, '_')
    return [{ name: unused(name, new Set(rest.map((one) => one.name))), wildcard: type === 'wildcard' }, ...rest]
  }, [])

const unused = (name: string, names: ReadonlySet<string>, at = 1): string =>
  !names.has(name) ? name : names.has(`${name}_${at}`) ? unused(name, names, at + 1) : `${name}_${at}`
