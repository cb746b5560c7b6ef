/**
 * The path of a layer, and its relation to another one: apart, within, around, or overlapping.
 *
 * For patterns of path-to-regexp, the relation is known. For a RegExp, only trying paths shows something, and the rest
 * is `unknown`.
 */
import { sealedMark } from '../core/data.js'
import { withoutStatefulFlags, type AnyRouter, type RouterLayer } from '../koa/layer.js'
import { layersOf, operationsIn, type RoutedLayer, type RoutedOperation } from '../koa/operations.js'
import { modernPath } from '../koa/pathSyntax.js'
import { checkRouter } from '../koa/router.js'
import type { ShadowExtent } from './Audit.js'
import { areApart, boundOf, findPath, make, refusesInEveryCase, type Found, type PathPattern } from './paths.js'

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
type LayerPath = Pick<RouterLayer, 'path' | 'regexp' | 'opts'>

/** The relation of two paths. */
interface Relation {
  /** Whether a request can match both. */
  readonly overlap: 'yes' | 'no' | 'unknown'
  /** A path that both accept. */
  readonly example?: string
  /** Whether the second accepts all that the first does; `false` if unknown. */
  readonly isSubset: boolean
  /** Whether the first accepts all that the second does; `false` if unknown. */
  readonly isSuperset: boolean
  /** Whether the second accepts something that the first does not; `false` if unknown. */
  readonly hasPathsOfItsOwn: boolean
}

// How the router writes `router.use(f)`: everything below the prefix
const restOfPath = String.raw`(?:\/|$)`

/** Reads the path of a layer. */
export const routedPath = (layer: LayerPath): RoutedPath => {
  const { regexp } = layer
  const pattern = patternOf(layer)
  // a layer without one (its path is empty) matches nothing, and ends in a 500
  const own = regexp === undefined ? /(?!)/ : withoutStatefulFlags(regexp)
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
  const prefix = path.slice(0, -restOfPath.length)
  if (!path.endsWith(restOfPath) || !/^[\w/~%-]*$/.test(prefix)) return undefined
  return prefix === '' ? make('{*all}', {}) : make(prefix, { sensitive: true, end: false })
}

/** The relation of the first path to the second. */
export const relate = (first: RoutedPath, second: RoutedPath): Relation => {
  if (first.pattern !== undefined && second.pattern !== undefined) {
    return relatePatterns(first, first.pattern, second, second.pattern)
  }
  if (String(first.regexp) === String(second.regexp))
    return { overlap: 'yes', isSubset: true, isSuperset: true, hasPathsOfItsOwn: false }
  if (areBoundApart(first, second)) return apart
  const pattern = first.pattern ?? second.pattern
  const paths = pattern?.samples ?? probes
  const shared = paths.filter((path) => first.matches(path) && second.matches(path))
  const [example] = shared
  const isLiteral = pattern?.isLiteral === true
  if (example === undefined) {
    // A path without captures is tried in all its spellings, except for letter case
    const other = first.pattern === undefined ? first : second
    const isProven = isLiteral && (pattern.isSensitive || refusesInEveryCase(other.regexp, paths))
    return { ...apart, overlap: isProven ? 'no' : 'unknown' }
  }
  const missed = paths.filter((path) => second.matches(path) && !first.matches(path))
  return {
    overlap: 'yes',
    example,
    // without regard to spelling
    isSubset: isLiteral && pattern === first.pattern,
    isSuperset: isLiteral && pattern === second.pattern && missed.length === 0,
    hasPathsOfItsOwn: [...probes, `${example}x`, `${example}/x`].some(
      (path) => second.matches(path) && !first.matches(path),
    ),
  }
}

const areBoundApart = ({ bound: one }: RoutedPath, { bound: other }: RoutedPath): boolean =>
  one !== undefined &&
  other !== undefined &&
  (areApart(one, other) || findPath('of both', one, other, () => true) === 'none')

const apart: Relation = { overlap: 'no', isSubset: false, isSuperset: false, hasPathsOfItsOwn: false }

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
    isSubset: outside === 'none' && other.isExact,
    isSuperset: beyond === 'none' && pattern.isExact,
    hasPathsOfItsOwn: isPath(beyond),
  }
}

const isPath = (found: Found): found is { readonly path: string } => typeof found === 'object'

/*
 * What the audit reads from a router: its layers and operations, each with the paths that it accepts.
 */

/** A layer, and the paths that it accepts. */
export interface PathLayer extends RoutedLayer {
  readonly accepted: RoutedPath
}

/** An operation, and the paths that it accepts. */
export interface Route extends RoutedOperation {
  readonly accepted: RoutedPath
}

/** The layers of a router, in the order of registration. Throws a TypeError if the argument is not a router. */
export const pathLayersOf = (caller: string, router: AnyRouter): ReadonlyArray<PathLayer> => {
  checkRouter(caller, router)
  return layersOf(router).map((layer) => ({ ...layer, accepted: routedPath(layer.layer) }))
}

/** The operations among layers, in the order of registration. */
export const routesOf = (layers: ReadonlyArray<PathLayer>): ReadonlyArray<Route> =>
  layers.flatMap((layer) =>
    operationsIn(layer).map((operation) => ({
      ...operation,
      ahead: operation.ahead.filter((f) => !isOfSeal(f)),
      functions: operation.functions.filter((f) => !isOfSeal(f)),
      accepted: layer.accepted,
    })),
  )

/** Whether `seal` put a function into a router, where the application did not write it. */
export const isOfSeal = (f: Function): boolean => sealedMark in f

/*
 * Finds operations that answer first what another one matches, too. All that match a request run in turn, so the first
 * one that does not call `next` decides, with its own guard (D-R8).
 *
 * A narrower path before a wider one is not a shadow: `/users/me` has its own line in the audit, and takes from
 * `/users/:id` only what it answers itself.
 */

/** An operation that runs before another one. */
interface Shadowing {
  readonly route: Route
  readonly extent: ShadowExtent
  /** A request that both match, such as `GET /users/me`. */
  readonly example?: string
}

/** Whether the first of two layers that match a request runs before the second, or instead of it. */
export type RunsFirst = (first: PathLayer, second: PathLayer) => boolean

/** The order in which a router runs its layers. */
export const orderOf = ({ opts }: AnyRouter): RunsFirst => {
  switch (opts.exclusive) {
    case undefined:
    case false:
      return (first, second) => first.index < second.index
    // only the layer with the fewest captures
    case 'specificity':
      return (first, second) => {
        const difference = first.layer.paramNames.length - second.layer.paramNames.length
        return difference < 0 || (difference === 0 && first.index < second.index)
      }
    // only the last layer
    default:
      return (first, second) => first.index > second.index
  }
}

/** The operations that answer first, in the order of registration. */
export const shadowedBy = (
  route: Route,
  others: ReadonlyArray<Route>,
  runsFirst: RunsFirst,
): ReadonlyArray<Shadowing> =>
  others
    .filter((other) => other.layer !== route.layer && runsFirst(other, route))
    .flatMap((other) => shadowOf(other, route))

const shadowOf = (first: Route, second: Route): ReadonlyArray<Shadowing> => {
  const methods = second.methods.filter((method) => first.methods.includes(method))
  const [method] = methods
  if (method === undefined) return []
  const {
    overlap,
    example,
    isSubset: isSubset,
    isSuperset: isSuperset,
    hasPathsOfItsOwn: hasPathsOfItsOwn,
  } = relate(first.accepted, second.accepted)
  if (overlap === 'no') return []
  const takesAllMethods = methods.length === second.methods.length
  const takesNoOther = methods.length === first.methods.length
  if (isSubset && takesNoOther && (hasPathsOfItsOwn || !takesAllMethods)) return []
  const extent = overlap === 'unknown' ? 'unknown' : isSuperset && takesAllMethods ? 'all' : 'part'
  return [{ route: first, extent, ...(example !== undefined && { example: `${method} ${example}` }) }]
}
