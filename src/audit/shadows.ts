/**
 * Finds operations that answer first what another one matches, too. All that match a request run in turn, so the first
 * one that does not call `next` decides, with its own guard (D-R8).
 *
 * A narrower path before a wider one is not a shadow: `/users/me` has its own line in the audit, and takes from
 * `/users/:id` only what it answers itself.
 */
import type { AnyRouter } from '../koa/RoutedOperation.js'
import type { PathLayer, Route } from './Route.js'
import { relate } from './RoutedPath.js'

/**
 * How many requests of an operation another one takes. `unknown` is possible for a RegExp, and for several captures in
 * one segment.
 */
export type Extent = 'all' | 'part' | 'unknown'

/** An operation that runs before another one. */
export interface Ahead {
  readonly route: Route
  readonly extent: Extent
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
export const aheadOf = (route: Route, others: ReadonlyArray<Route>, runsFirst: RunsFirst): ReadonlyArray<Ahead> =>
  others
    .filter((other) => other.layer !== route.layer && runsFirst(other, route))
    .flatMap((other) => taken(other, route))

const taken = (first: Route, second: Route): ReadonlyArray<Ahead> => {
  const methods = second.methods.filter((method) => first.methods.includes(method))
  const [method] = methods
  if (method === undefined) return []
  const { overlap, example, isWithin, isAround, isNarrower } = relate(first.accepted, second.accepted)
  if (overlap === 'no') return []
  const takesAllMethods = methods.length === second.methods.length
  const takesNoOther = methods.length === first.methods.length
  if (isWithin && takesNoOther && (isNarrower || !takesAllMethods)) return []
  const extent = overlap === 'unknown' ? 'unknown' : isAround && takesAllMethods ? 'all' : 'part'
  return [{ route: first, extent, ...(example !== undefined && { example: `${method} ${example}` }) }]
}
