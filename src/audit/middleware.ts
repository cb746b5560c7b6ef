/**
 * The `use` middleware of a router, and whether a guard covers it. It runs for requests that an operation matches, in
 * the order of registration, and can answer them itself.
 *
 * Middleware of `app.use`, and what answers if no operation matches, are not parts of a router.
 */
import { isSettings } from '../koa/authSettings.js'
import { functionName } from '../koa/RoutedOperation.js'
import type { PathLayer, Route } from './Route.js'
import { relate } from './RoutedPath.js'
import type { RunsFirst } from './shadows.js'

/** A layer of middleware. */
export interface MiddlewareLayer {
  /** Where it runs: `/api/*` is the path `/api` and everything below it. */
  readonly path: string
  readonly functions: ReadonlyArray<Function>
  /** Whether each request that it sees has passed a guard. */
  readonly guarded: 'yes' | 'no' | 'never runs'
}

/** The middleware among layers. `isClosed`: whether an operation lets in authenticated callers only. */
export const middlewareOf = (
  layers: ReadonlyArray<PathLayer>,
  routes: ReadonlyArray<Route>,
  runsFirst: RunsFirst,
  isClosed: (route: Route) => boolean,
): ReadonlyArray<MiddlewareLayer> =>
  layers
    .filter(({ layer }) => layer.methods.length === 0)
    .map((placed) => {
      const met = routes.filter((route) => relate(placed.accepted, route.accepted).overlap !== 'no')
      const isCovered = met.every((route) => isClosed(route) && runsFirst(route, placed))
      return {
        path: scopeOf(placed),
        functions: placed.functions,
        guarded: met.length === 0 ? 'never runs' : isCovered ? 'yes' : 'no',
      }
    })

const scopeOf = ({ layer: { path, opts } }: PathLayer): string => {
  if (typeof path !== 'string') return String(path)
  return opts.end === false || opts.pathAsRegExp === true
    ? `${path.replace(everything, '').replace(/\/$/, '')}/*`
    : path
}

// The router's own patterns for `use(f)` and `use('', f)`
const everything = /(?:\{\/\*rest\}|\(\?:\\\/\|\$\))$/

/** The name of a function of middleware. */
export const middlewareName = (f: Function): string => (isSettings(f) ? 'authSettings' : functionName(f))
