/**
 * The path of a layer, and its relation to another one: apart, within, around, or overlapping.
 *
 * For patterns of path-to-regexp, the relation is known. Of a RegExp only its beginning is read; trying paths shows
 * something more, and the rest is `unknown`.
 */
import { sealedMark } from '../core/data.js'
import { withoutStatefulFlags, type AnyRouter, type RouterLayer } from '../koa/layer.js'
import { layersOf, operationsIn, type RoutedLayer, type RoutedOperation } from '../koa/operations.js'
import { modernPath } from '../koa/pathSyntax.js'
import { checkRouter } from '../koa/router.js'
import type { Shadow } from './Audit.js'
import { areApart, boundOf, findPath, make, refusesInEveryCase, type PathPattern } from './paths.js'

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
  // a layer without one (its path is empty) matches nothing, and ends in a 500
  const regexp = layer.regexp === undefined ? /(?!)/ : withoutStatefulFlags(layer.regexp)
  const pattern = patternOf(layer)
  return {
    ...(pattern ?? boundOf(regexp)),
    isPattern: pattern !== undefined,
    matches: (path) => regexp.test(path),
    regexp,
  }
}

const patternOf = (layer: LayerPath): PathPattern | undefined => {
  const { path, opts } = layer
  if (typeof path === 'string' && opts.pathAsRegExp === true) {
    const [, prefix] = belowPrefix.exec(path) ?? []
    return prefix === undefined ? undefined : make(prefix || '{*all}', { sensitive: true, end: prefix === '' })
  }
  const modern = modernPath(layer)
  // in @koa/router 12 and 13, anything may follow a beginning that ends with a slash
  const isBare = opts.end === false && !layer.regexp.source.endsWith('|$)')
  const pattern =
    modern && (isBare ? make(`${modern.path}{*below}`, { ...opts, end: true, strict: true }) : make(modern.path, opts))
  return pattern && { ...pattern, isExact: pattern.isExact && modern.isExact }
}

// How the router writes `router.use(f)`: everything below the prefix
const belowPrefix = /^([\w/~%-]*)\(\?:\\\/\|\$\)$/

const apart: Relation = { overlap: 'no', isSubset: false, isSuperset: false, hasPathsOfItsOwn: false }

export const relate = (first: RoutedPath, second: RoutedPath): Relation => {
  if (areApart(first, second)) return apart
  const isShared = (path: string): boolean => first.matches(path) && second.matches(path)
  // A RegExp accepts less than what is searched, so a few paths are tried
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
    isSubset: isSame || (outside === false && second.isExact) || isWithin(first, second),
    isSuperset: isSame || (beyond === false && first.isExact) || isWithin(second, first),
    hasPathsOfItsOwn: typeof beyond === 'string' || [...samples, ...longer].some(aloneIn(second, first)),
  }
}

const aloneIn =
  (one: RoutedPath, other: RoutedPath) =>
  (path: string): boolean =>
    one.matches(path) && !other.matches(path)

// A path without captures has a few texts, and is tried in all of them, in every letter case that its router takes for the same
const isWithin = (one: RoutedPath, other: RoutedPath): boolean =>
  one.isLiteral && one.texts.every((text) => spellingsOf(text, one, other)?.every(other.matches) === true)

// More letters have too many cases to try. A RegExp with the flag i takes all cases for the same
const MAX_LETTERS = 10

const spellingsOf = (
  text: string,
  { isSensitive }: RoutedPath,
  { regexp }: RoutedPath,
): ReadonlyArray<string> | undefined => {
  const { flags, source } = regexp
  if (isSensitive || (flags.includes('i') && !/[uv]/.test(flags) && !/\(\?[ims]*-/.test(source))) return [text]
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

export interface PathLayer extends RoutedLayer {
  readonly accepted: RoutedPath
}

export interface Route extends RoutedOperation {
  readonly accepted: RoutedPath
}

/** The layers of a router, in the order of registration. Throws a TypeError if the argument is not a router. */
export const pathLayersOf = (caller: string, router: AnyRouter): ReadonlyArray<PathLayer> => {
  checkRouter(caller, router)
  return layersOf(router).map((layer) => ({ ...layer, accepted: routedPath(layer.layer) }))
}

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

// All operations that match a request run in turn. So the first one that does not call `next` decides, with its own
// guard (D-R8).
// A narrower path before a wider one is not a shadow: `/users/me` has its own line in the audit, and takes from
// `/users/:id` only what it answers itself.
interface Shadowing extends Pick<Shadow, 'extent' | 'example'> {
  readonly route: Route
}

/** Whether the first of two layers that match a request runs before the second, or instead of it. */
export type RunsFirst = (first: PathLayer, second: PathLayer) => boolean

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
  const { overlap, example, isSubset, isSuperset, hasPathsOfItsOwn } = relate(first.accepted, second.accepted)
  if (overlap === 'no') return []
  const takesAllMethods = methods.length === second.methods.length
  const takesNoOther = methods.length === first.methods.length
  if (isSubset && takesNoOther && (hasPathsOfItsOwn || !takesAllMethods)) return []
  const extent = overlap === 'unknown' ? 'unknown' : isSuperset && takesAllMethods ? 'all' : 'part'
  return [{ route: first, extent, ...(example !== undefined && { example: `${method} ${example}` }) }]
}
