/**
 * What the audit reads of a router: its layers in the order of registration, and its operations, one a method.
 *
 * It reads the layers that run, so mounted routers are included, and nothing has to be declared twice.
 */
import { METHODS } from 'node:http'
import { isOfApplication } from '../koa/application.js'
import { guardAmong } from '../koa/operations.js'
import { isGuard, type Marked } from '../koa/guardMark.js'
import { isDescription } from './ownMiddleware.js'
import { routedPath, type LayerPath, type RoutedPath } from './RoutedPath.js'

/** A layer of a router of @koa/router. */
export interface RouterLayer extends LayerPath {
  readonly methods: ReadonlyArray<string>
  readonly paramNames: ReadonlyArray<unknown>
  readonly stack: ReadonlyArray<Function>
}

/** A router of @koa/router, whatever its context. */
export interface AnyRouter {
  readonly stack: ReadonlyArray<RouterLayer>
  readonly opts: { readonly exclusive?: unknown }
}

/** A layer, and where it stands. */
export interface Placed {
  readonly layer: RouterLayer
  readonly at: number
  readonly path: RoutedPath
}

/** An operation: one method of a layer. */
export interface Route extends Placed {
  /** `GET`, which answers HEAD, too; `ALL` for all that Node knows. */
  readonly method: string
  /** What requests can ask for. */
  readonly methods: ReadonlyArray<string>
  /** What it is called: `GET /users/:id`. */
  readonly name: string
  readonly guard: Marked | undefined
  /** The functions that run before the guard, descriptions aside. */
  readonly ahead: ReadonlyArray<Function>
}

/** The layers of a router; TypeError for what is no router. */
export const layersOf = (place: string, router: AnyRouter): ReadonlyArray<Placed> => {
  if (typeof router === 'function' && 'router' in router) {
    throw new TypeError(
      `${place} takes the router itself, not its routes(): write ${place.replace('router', 'routes.router')}`,
    )
  }
  const stack: unknown = (router as Partial<AnyRouter> | null | undefined)?.stack
  if (!Array.isArray(stack)) throw new TypeError(`${place} takes a router of @koa/router`)
  return router.stack.map((layer, at) => ({ layer, at, path: routedPath(layer) }))
}

/** The operations among layers, in the order of registration. */
export const routesOf = (layers: ReadonlyArray<Placed>): ReadonlyArray<Route> => layers.flatMap(routesIn)

const routesIn = (placed: Placed): ReadonlyArray<Route> => {
  const { stack, methods } = placed.layer
  const guard = guardAmong(stack)
  const guardAt = stack.findIndex(isGuard)
  const ahead = stack.slice(0, Math.max(guardAt, 0)).filter((f) => !isDescription(f) && !isOfApplication(f))
  const own = { ...placed, guard, ahead }
  return Object.entries(methodsOf(methods)).map(([method, answered]) => ({
    ...own,
    method,
    methods: answered,
    name: `${method} ${pathInWords(placed.layer)}`,
  }))
}

const methodsOf = (methods: ReadonlyArray<string>): Readonly<Record<string, ReadonlyArray<string>>> => {
  const own = methods.includes('GET') ? ['GET', 'HEAD'] : []
  // once each, although the router adds HEAD to what has it
  const all = [...new Set([...own, ...methods])]
  // what Node knows differs from version to version
  if (METHODS.every((method) => all.includes(method))) return { ALL: all }
  const named = own.length > 0 ? all.filter((method) => method !== 'HEAD') : all
  return Object.fromEntries(named.map((method) => [method, method === 'GET' ? own : [method]]))
}

/** A path as it was written, prefixes included. */
export const pathInWords = ({ path, opts }: LayerPath): string =>
  typeof path === 'string' && opts.pathAsRegExp === true ? `/${path}/` : String(path)

/** Whether the guard of a route has nothing behind it: what stands ahead of it is then the handler. */
export const isBehindItsHandler = ({ layer, ahead }: Route): boolean =>
  ahead.length > 0 && layer.stack.findIndex(isGuard) === layer.stack.length - 1

// -------------------------------------------------------------------------------------
// functions
// -------------------------------------------------------------------------------------

/** The function that the user wrote: the router wraps `param` hooks. */
export const originalOf = (f: Function): Function => {
  const original: unknown = Reflect.get(f, '_originalFn')
  return typeof original === 'function' ? original : f
}

/** What a function is called, for whoever reads the audit. */
export const functionName = (f: Function): string => {
  const param: unknown = Reflect.get(f, 'param')
  const name = originalOf(f).name || 'anonymous'
  return typeof param === 'string' ? `param ${param}: ${name}` : name
}
