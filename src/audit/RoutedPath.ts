/**
 * The path of a layer, and its relation to another one: apart, within, around, or overlapping.
 *
 * For patterns of path-to-regexp, the relation is known. For a RegExp, only trying paths shows something, and the rest
 * is `unknown`.
 */
import { modernPath } from '../koa/pathSyntax.js'
import { findPath, type Found } from './comparePatterns.js'
import type { RouterLayer } from '../koa/RoutedOperation.js'
import { withoutPosition } from '../koa/routerCopy.js'
import { make, type PathPattern } from './PathPattern.js'
import { areApart } from './PathShape.js'
import { boundOf, refusesInEveryCase } from './RegExpBound.js'

/** The path of a layer. */
export interface RoutedPath {
  /** `undefined` for a RegExp. */
  readonly pattern: PathPattern | undefined
  /** A pattern that accepts all that the path accepts, and perhaps more. */
  readonly bound: PathPattern | undefined
  /** Whether the router's RegExp accepts a path. */
  readonly matches: (path: string) => boolean
  readonly regexp: RegExp
}

/** The part of a layer that is read here. */
export type LayerPath = Pick<RouterLayer, 'path' | 'regexp' | 'opts'>

/** The relation of two paths. */
export interface Relation {
  /** Whether a request can match both. */
  readonly overlap: 'yes' | 'no' | 'unknown'
  /** A path that both accept. */
  readonly example?: string
  /** Whether the second accepts all that the first does; `false` if unknown. */
  readonly isWithin: boolean
  /** Whether the first accepts all that the second does; `false` if unknown. */
  readonly isAround: boolean
  /** Whether the second accepts something that the first does not; `false` if unknown. */
  readonly isNarrower: boolean
}

// How the router writes `router.use(f)`: everything below the prefix
const below = String.raw`(?:\/|$)`

/** Reads the path of a layer. */
export const routedPath = (layer: LayerPath): RoutedPath => {
  const { regexp } = layer
  const pattern = patternOf(layer)
  // a layer without one (its path is empty) matches nothing, and ends in a 500
  const own = regexp === undefined ? /(?!)/ : withoutPosition(regexp)
  return {
    pattern,
    bound: pattern ?? boundOf(own),
    matches: (candidate) => own.test(candidate),
    regexp: own,
  }
}

const patternOf = (layer: LayerPath): PathPattern | undefined => {
  const { path, opts } = layer
  if (typeof path !== 'string') return undefined
  if (opts.pathAsRegExp !== true) {
    const modern = modernPath(layer)
    const pattern = modern && make(modern.path, opts)
    return pattern && { ...pattern, isExact: pattern.isExact && modern.isExact }
  }
  const prefix = path.slice(0, -below.length)
  if (!path.endsWith(below) || !/^[\w/~%-]*$/.test(prefix)) return undefined
  return prefix === '' ? make('{*all}', {}) : make(prefix, { sensitive: true, end: false })
}

/** The relation of the first path to the second. */
export const relate = (first: RoutedPath, second: RoutedPath): Relation => {
  if (first.pattern !== undefined && second.pattern !== undefined) {
    return relatePatterns(first, first.pattern, second, second.pattern)
  }
  if (String(first.regexp) === String(second.regexp))
    return { overlap: 'yes', isWithin: true, isAround: true, isNarrower: false }
  if (areBoundApart(first, second)) return apart
  const known = first.pattern ?? second.pattern
  const paths = known?.samples ?? probes
  const shared = paths.filter((path) => first.matches(path) && second.matches(path))
  const [example] = shared
  const isLiteral = known?.isLiteral === true
  if (example === undefined) {
    // A path without captures is tried in all its spellings, except for letter case
    const other = first.pattern === undefined ? first : second
    const isProven = isLiteral && (known.isSensitive || refusesInEveryCase(other.regexp, paths))
    return { ...apart, overlap: isProven ? 'no' : 'unknown' }
  }
  const missed = paths.filter((path) => second.matches(path) && !first.matches(path))
  return {
    overlap: 'yes',
    example,
    // without regard to spelling
    isWithin: isLiteral && known === first.pattern,
    isAround: isLiteral && known === second.pattern && missed.length === 0,
    isNarrower: [...probes, `${example}x`, `${example}/x`].some((path) => second.matches(path) && !first.matches(path)),
  }
}

const areBoundApart = ({ bound: one }: RoutedPath, { bound: other }: RoutedPath): boolean =>
  one !== undefined &&
  other !== undefined &&
  (areApart(one, other) || findPath('of both', one, other, () => true) === 'none')

const apart: Relation = { overlap: 'no', isWithin: false, isAround: false, isNarrower: false }

const probes = ['/', '/x', '/1', '/x/x', '/1/1', '/x/x/x']

const relatePatterns = (first: RoutedPath, pattern: PathPattern, second: RoutedPath, other: PathPattern): Relation => {
  if (areApart(pattern, other)) return apart
  const shared = findPath('of both', pattern, other, (path) => first.matches(path) && second.matches(path))
  if (shared === 'none') return apart
  const outside = findPath('of the first alone', pattern, other, (path) => first.matches(path) && !second.matches(path))
  const beyond = findPath('of the first alone', other, pattern, (path) => second.matches(path) && !first.matches(path))
  return {
    overlap: shared === 'unknown' ? 'unknown' : 'yes',
    ...(isPath(shared) && { example: shared.path }),
    isWithin: outside === 'none' && other.isExact,
    isAround: beyond === 'none' && pattern.isExact,
    isNarrower: isPath(beyond),
  }
}

const isPath = (found: Found): found is { readonly path: string } => typeof found === 'object'
