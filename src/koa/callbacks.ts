/**
 * Where the answers of a ceremony come back: the path of the route that has its `finish`.
 *
 * A provider gets this path when a ceremony begins. So it is looked for when the application is served, in the routers
 * that `app.use` mounts. Routes that are added later are looked for at a request.
 */
import { notWrapped } from '../core/data.js'
import { layersOf, routersOf } from './operations.js'
import type { AnyApplication } from './layer.js'

/** Is on the middleware of `begin` and `finish`: of which kind it is the beginning or the end. */
const ceremonyMark = Symbol.for('koa-with-auth/ceremony')

/** A kind whose answers come back to a path that was not written. */
interface Placeable {
  readonly name: string
  /** The fields of an answer that is posted. */
  readonly posted?: ReadonlyArray<string> | undefined
  /** The middleware that begins and finishes, in words. Default `begin(kind)`, `finish(kind)`. */
  readonly routes?: readonly [string, string] | undefined
}

interface Mark {
  readonly kind: Placeable
  readonly role: 'begin' | 'finish'
}

/** Marks middleware as the beginning or the end of the ceremonies of a kind, so that its route can be found. */
export const markCeremony = <F extends Function>(f: F, kind: Placeable, role: Mark['role']): F =>
  // a tracer would hide the mark
  notWrapped(Object.assign(f, { [ceremonyMark]: { kind, role } satisfies Mark }))

interface CallbackRoute extends Mark {
  readonly path: string | RegExp
  /** None for middleware of `router.use`, which runs for all. */
  readonly methods: ReadonlyArray<string>
}

const callbackRoutesIn = (app: AnyApplication): ReadonlyArray<CallbackRoute> =>
  routersOf(app)
    .flatMap(layersOf)
    .flatMap(({ path, functions, layer: { methods } }) =>
      functions.flatMap((f) => {
        // Safe: `markCeremony` alone writes it
        const mark = Reflect.get(f, ceremonyMark) as Mark | undefined
        return mark === undefined ? [] : [{ ...mark, path, methods }]
      }),
    )

const fix = 'write its path as { callback }'

const callbackAmong = (routes: ReadonlyArray<CallbackRoute>, kind: Placeable): string => {
  const found = routes.filter((route) => route.kind === kind && route.role === 'finish')
  const paths = [...new Set(found.map(({ path }) => String(path)))]
  const [start, end] = kind.routes ?? ['begin(kind)', 'finish(kind)']
  const last = end.replace('(kind)', '')
  const where = `${start}, ${end} of ${kind.name}`
  const [path] = paths
  if (path === undefined) {
    throw new TypeError(`${where}: no route of a router in app.use(router.routes()) has its ${last}; ${fix}`)
  }
  if (paths.length > 1) {
    throw new TypeError(`${where}: ${paths.length} routes have its ${last}, ${paths.join(' and ')}; ${fix}`)
  }
  if (!/^\/[\w./~%-]*$/.test(path) || path.startsWith('//')) {
    throw new TypeError(`${where}: a provider leads back to one path, but ${path} matches several; ${fix}`)
  }
  // RFC 9700 §4.4.2.2: the answer of one provider must not come to another
  const other = routes.find((one) => one.role === 'finish' && one.kind !== kind && String(one.path) === path)
  if (other !== undefined) {
    throw new TypeError(`${where}: ${path} has the finish of ${other.kind.name}, too; each kind has its own path`)
  }
  const needed = kind.posted === undefined ? ['GET'] : ['GET', 'POST']
  const missing = needed.filter((method) => !found.some(takes(method)))
  if (missing.length > 0) {
    throw new TypeError(
      `${where}: its answer comes by ${needed.join(' and ')}, but ${path} takes no ${missing.join(' and ')}; write router.all('${path}', ...)`,
    )
  }
  return path
}

const takes =
  (method: string) =>
  ({ methods }: CallbackRoute): boolean =>
    methods.length === 0 || methods.includes(method)

/** The path of the route that has `finish(kind)`. Throws a TypeError if there is none, or more than one. */
export const callbackOf = (app: AnyApplication, kind: Placeable): string => callbackAmong(callbackRoutesIn(app), kind)

/** Throws a TypeError if a ceremony that begins in the application has no route, or several, where its answers come back. */
const checkCallbacks = (app: AnyApplication): void => {
  const routes = callbackRoutesIn(app)
  for (const { kind, role } of routes) if (role === 'begin') callbackAmong(routes, kind)
}

/** Makes `app.callback()` and `app.listen()` check where the answers of ceremonies come back. */
export const checkingCallbacks = (app: AnyApplication & { callback: (...given: never[]) => unknown }): void => {
  const { callback } = app
  const value = function (this: unknown, ...given: never[]): unknown {
    checkCallbacks(app)
    return Reflect.apply(callback, this, given)
  }
  // not enumerable, as the method of the prototype
  Object.defineProperty(app, 'callback', { value, writable: true, configurable: true, enumerable: false })
}
