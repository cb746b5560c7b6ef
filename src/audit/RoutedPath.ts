/**
 * The path of a layer, and its relation to another path: apart, within, around, or overlapping.
 *
 * For patterns of path-to-regexp, the relation is known. Of a RegExp only its beginning is read; trying paths shows
 * something more, and the rest is `unknown`.
 */
import { withoutStatefulFlags, type RouterLayer } from '../koa/layer.js'
import { modernPath } from '../koa/pathSyntax.js'
import { areApart, patternAround, findPath, ignoresCase, pathPattern, refusesInEveryCase } from './paths.js'
import type { PathPattern } from './paths.js'

/** The paths that a layer accepts, and for a RegExp perhaps more. */
export interface RoutedPath extends PathPattern {
  /** Whether it was read from a pattern; `false` for a RegExp. */
  readonly isPattern: boolean
  readonly matches: (path: string) => boolean
  readonly regexp: RegExp
}

type LayerPath = Pick<RouterLayer, 'path' | 'regexp' | 'opts'>

interface Relation {
  readonly overlap: 'yes' | 'no' | 'unknown'
  readonly example?: string
  /** Whether the second accepts all that the first does; `false` if unknown. */
  readonly isSubset: boolean
  /** Whether the first accepts all that the second does; `false` if unknown. */
  readonly isSuperset: boolean
  /** Whether the second accepts something that the first does not; `false` if unknown. */
  readonly hasPathsOfItsOwn: boolean
}

export const routedPath = (layer: LayerPath): RoutedPath => {
  // a layer without a RegExp (its path is empty) matches nothing, and ends in a 500
  const regexp = layer.regexp === undefined ? /(?!)/ : withoutStatefulFlags(layer.regexp)
  const pattern = layerPattern(layer)
  const accepted = pattern ?? patternAround(regexp)
  return { ...accepted, isPattern: pattern !== undefined, matches: (path) => regexp.test(path), regexp }
}

const layerPattern = (layer: LayerPath): PathPattern | undefined => {
  const { path, opts } = layer
  if (typeof path === 'string' && opts.pathAsRegExp === true) {
    const [, prefix] = belowPrefix.exec(path) ?? []
    return prefix === undefined ? undefined : pathPattern(prefix || '{*all}', { sensitive: true, end: prefix === '' })
  }
  const modern = modernPath(layer)
  // in @koa/router 12 and 13, anything may follow a beginning that ends with a slash
  const isBare = opts.end === false && !layer.regexp.source.endsWith('|$)')
  const pattern =
    modern &&
    (isBare
      ? pathPattern(`${modern.path}{*below}`, { ...opts, end: true, strict: true })
      : pathPattern(modern.path, opts))
  return pattern && { ...pattern, isExact: pattern.isExact && modern.isExact }
}

// How the router writes `router.use(f)`: everything below the prefix
const belowPrefix = /^([\w/~%-]*)\(\?:\\\/\|\$\)$/

const apart: Relation = { overlap: 'no', isSubset: false, isSuperset: false, hasPathsOfItsOwn: false }

export const relate = (first: RoutedPath, second: RoutedPath): Relation => {
  if (areApart(first, second)) return apart
  const isShared = (path: string): boolean => first.matches(path) && second.matches(path)
  // A RegExp accepts less than the search, so a few paths are tried
  const isTried = !first.isPattern || !second.isPattern
  const samples = isTried ? [...first.samples, ...second.samples] : []
  const shared = findPath('of both', first, second, isTried ? () => true : isShared)
  if (shared === false) return apart
  const example = isTried ? samples.find(isShared) : shared
  if (example === undefined && (areTriedApart(first, second) || areTriedApart(second, first))) return apart
  const outside = findPath('of the first alone', first, second, aloneIn(first, second))
  const beyond = findPath('of the first alone', second, first, aloneIn(second, first))
  const isSame = String(first.regexp) === String(second.regexp)
  const isTriedYes = isTried && example !== undefined
  const longer = isTriedYes ? [`${example}x`, `${example}/x`] : []
  return {
    overlap: isSame || example !== undefined ? 'yes' : 'unknown',
    ...(example !== undefined && { example }),
    isSubset: isSame || (outside === false && second.isExact) || isLiteralWithin(first, second),
    isSuperset: isSame || (beyond === false && first.isExact) || isLiteralWithin(second, first),
    hasPathsOfItsOwn: typeof beyond === 'string' || [...samples, ...longer].some(aloneIn(second, first)),
  }
}

const aloneIn =
  (one: RoutedPath, other: RoutedPath) =>
  (path: string): boolean =>
    one.matches(path) && !other.matches(path)

// A path without captures has a few texts, and is tried in all of them, in every letter case that its router takes for the same
const isLiteralWithin = (one: RoutedPath, other: RoutedPath): boolean =>
  one.isLiteral && one.texts.every((text) => spellingsOf(text, one, other)?.every(other.matches) === true)

// More letters have too many cases to try
const MAX_LETTERS = 10

const spellingsOf = (text: string, one: RoutedPath, { regexp }: RoutedPath): ReadonlyArray<string> | undefined => {
  if (one.isSensitive || ignoresCase(regexp)) return [text]
  if (/[^\0-\x7f]/.test(text) || text.replace(/[^a-z]/gi, '').length > MAX_LETTERS) return undefined
  return [...text].reduce<ReadonlyArray<string>>(
    (all, char) =>
      all.flatMap((before) => [...new Set([char.toLowerCase(), char.toUpperCase()])].map((one) => before + one)),
    [''],
  )
}

// A path without captures is tried in all its spellings, except for letter case
const areTriedApart = (one: RoutedPath, other: RoutedPath): boolean =>
  one.isLiteral && !other.isPattern && (one.isSensitive || refusesInEveryCase(other.regexp, one.samples))
