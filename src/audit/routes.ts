/** The layers and operations of a router with their paths, and which operation comes before another. */
import { sealedMark } from '../core/data.js'
import type { AnyRouter } from '../koa/layer.js'
import { layersOf, operationsIn, type RoutedLayer, type RoutedOperation } from '../koa/operations.js'
import { checkRouter } from '../koa/router.js'
import type { Shadow } from './Audit.js'
import { relate, routedPath, type RoutedPath } from './RoutedPath.js'

export interface PathLayer extends RoutedLayer {
  readonly accepted: RoutedPath
}

export interface Route extends RoutedOperation {
  readonly accepted: RoutedPath
}

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

// All operations that match a request run in turn. So the first that does not call `next` decides, with its own
// guard (D-R8).
// A narrower path before a wider one is not a shadow: `/users/me` has its own line in the audit, and takes from
// `/users/:id` only the requests that it answers itself.
type Shadowing = Pick<Shadow, 'extent' | 'example'> & { readonly route: Route }

/** Whether the first of two layers that match a request runs before the second, or instead of it. */
export type RunsFirst = (first: PathLayer, second: PathLayer) => boolean

export const orderOf = ({ opts: { exclusive = false } }: AnyRouter): RunsFirst => {
  const inOrder: RunsFirst = (first, second) => first.index < second.index
  if (exclusive === false) return inOrder
  // only the last layer
  if (exclusive !== 'specificity') return (first, second) => inOrder(second, first)
  // only the layer with the fewest captures
  return (first, second) => {
    const difference = first.layer.paramNames.length - second.layer.paramNames.length
    return difference < 0 || (difference === 0 && inOrder(first, second))
  }
}

export const shadowedBy = (route: Route, others: ReadonlyArray<Route>, runsFirst: RunsFirst): Shadowing[] =>
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
