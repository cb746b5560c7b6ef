/**
 * What the audit reads from a router: its layers and operations, each with the paths that it accepts.
 */
import {
  layersOf,
  operationsIn,
  type AnyRouter,
  type RoutedLayer,
  type RoutedOperation,
} from '../koa/RoutedOperation.js'
import { checkRouter } from '../koa/routers.js'
import { routedPath, type RoutedPath } from './RoutedPath.js'

/** A layer, and the paths that it accepts. */
export interface PathLayer extends RoutedLayer {
  readonly accepted: RoutedPath
}

/** An operation, and the paths that it accepts. */
export interface Route extends RoutedOperation {
  readonly accepted: RoutedPath
}

/** The layers of a router, in the order of registration. Throws a TypeError if the argument is not a router. */
export const pathLayersOf = (place: string, router: AnyRouter): ReadonlyArray<PathLayer> => {
  checkRouter(place, router)
  return layersOf(router).map((layer) => ({ ...layer, accepted: routedPath(layer.layer) }))
}

/** The operations among layers, in the order of registration. */
export const routesOf = (layers: ReadonlyArray<PathLayer>): ReadonlyArray<Route> =>
  layers.flatMap((layer) => operationsIn(layer).map((operation) => ({ ...operation, accepted: layer.accepted })))
