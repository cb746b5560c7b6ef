/**
 * Which operations a docs page describes: those of its router, as they are mounted where the request came in.
 *
 * Mounting clones layers with their prefixes, and a level above puts its guards into the clones. So the page reads the
 * router that dispatches (`ctx.router`), and of that the layers below the place where its router was mounted. Layers of
 * an application are marked as its own (R13). Layers of a plain router are recognized by their path. A page that is
 * mounted beside its router describes the router as it is.
 */
import { applicationOf, applicationsOf } from '../koa/application.js'
import { functionsOf } from '../koa/layer.js'
import { partAmong, type Part } from '../koa/pageAsset.js'
import type { Layer } from '../koa/routerTypes.js'

/** The part of a router that is read here. */
export interface MountedRouter {
  readonly stack: Layer[]
  readonly exclusive?: boolean | undefined
  readonly opts: { readonly prefix?: string | undefined; readonly exclusive?: boolean | 'specificity' | undefined }
}

/** Where a request came in: the router that dispatches, and the path of the running layer in it. */
export interface Place {
  readonly router: MountedRouter
  readonly layerPath: string
}

/** Returns the operations to describe: the same value for the same router and place. */
export type View = (place: Place) => MountedRouter

/** Whether a layer serves a part. */
export const isPartOf =
  (part: Part) =>
  (layer: Layer): boolean =>
    partAmong(functionsOf(layer).map(({ written }) => written)) === part

// The identity of the described application at the running operation; `undefined` for a plain router
const identityAt = (own: MountedRouter, part: Part, { router, layerPath }: Place): object | undefined => {
  const application = applicationOf(own)
  if (application === undefined) return undefined
  const isPart = isPartOf(part)
  const written = own.stack.find(isPart)
  const running = router.stack.find((layer) => layer.path === layerPath && isPart(layer))
  if (written === undefined || running === undefined) return application.identity
  // identities of outer applications come first, and a copy of the router has another identity at the same position
  const identities = applicationsOf(written)
  return applicationsOf(running).at(identities.indexOf(application.identity) - identities.length)
}

/** Whether a layer can belong to the described router. A plain router is recognized only by its path. */
export const isOwnAt = (own: MountedRouter, part: Part, place: Place): ((layer: Layer) => boolean) => {
  const identity = identityAt(own, part, place)
  return (layer) => identity === undefined || applicationsOf(layer).includes(identity)
}

/** The operations of a router, seen from its operation that serves a part, wherever it is mounted. */
export const viewOf = (own: MountedRouter, part: Part): View => {
  const views = new WeakMap<MountedRouter, Map<object | string, MountedRouter>>()
  return (place) => {
    const { router, layerPath } = place
    const layer = own.stack.find(isPartOf(part))
    if (layer === undefined) return own
    const base = baseOf(layerPath, String(layer.path), own.opts.prefix ?? '')
    const identity = identityAt(own, part, place)
    if (base === '' && identity === undefined) return router
    const known = views.get(router) ?? new Map<object | string, MountedRouter>()
    views.set(router, known)
    const key = base === '' && identity !== undefined ? identity : base
    const view = known.get(key) ?? below(base, router, own, isOwnAt(own, part, place))
    known.set(key, view)
    return view
  }
}

// The path after the router's own prefix is the same wherever the router is mounted
const baseOf = (mounted: string, unmounted: string, prefix: string): string => {
  const tail = unmounted.startsWith(prefix) ? unmounted.slice(prefix.length) : unmounted
  return mounted.endsWith(tail) ? mounted.slice(0, -tail.length) : ''
}

// A getter, because routes can be added between requests
const below = (
  base: string,
  router: MountedRouter,
  own: MountedRouter,
  isOwn: (layer: Layer) => boolean,
): MountedRouter => ({
  ...(router.exclusive !== undefined && { exclusive: router.exclusive }),
  opts: router.opts,
  get stack() {
    return router.stack.filter((layer) => isOwn(layer) && (isBelow(base, layer) || isOwnPattern(own, layer)))
  },
})

const isBelow = (base: string, { path }: Layer): boolean =>
  base === '' || (typeof path === 'string' && path.startsWith(base) && /^(?:[/{]|$)/.test(path.slice(base.length)))

// Mounting does not change a RegExp
const isOwnPattern = (own: MountedRouter, { path }: Layer): boolean =>
  path instanceof RegExp && own.stack.some((layer) => layer.path === path)
