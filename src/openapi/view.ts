/**
 * The operations that a docs page describes: those of its router, as they are mounted where the request came in.
 *
 * Mounting clones layers with their prefixes, and a level above puts its guards into the clones. So the page lists the layers of
 * `ctx.router` whose path starts with the path where the page's router was mounted. The plan of a layer says which applications it
 * belongs to (R13). Layers of a plain router are recognized by their path. A page that is mounted beside its router describes the router
 * as it is.
 */
import type { Context } from 'koa'
import type { Part } from '../koa/layer.js'
import { levelOf } from '../koa/levels.js'
import { partAmong } from '../koa/operations.js'
import { planOf, writtenIn, type Application } from '../koa/plan.js'
import type { Layer } from '../koa/router.js'

interface MountedRouter {
  readonly stack: Layer[]
  readonly exclusive?: boolean | undefined
  readonly opts: { readonly prefix?: string | undefined; readonly exclusive?: boolean | 'specificity' | undefined }
}

/** Where a request came in: the router that dispatches, and the path of the running layer in it. */
interface Mount {
  readonly router: MountedRouter
  readonly layerPath: string
}

const isPartOf =
  (part: Part) =>
  (layer: Layer): boolean =>
    partAmong(writtenIn(planOf(layer))) === part

// The described application at the running operation; `undefined` for a plain router
const applicationAt = (own: MountedRouter, part: Part, { router, layerPath }: Mount): Application | undefined => {
  const application = levelOf(own)?.application
  if (application === undefined) return undefined
  const isPart = isPartOf(part)
  const written = own.stack.find(isPart)
  const running = router.stack.find((layer) => layer.path === layerPath && isPart(layer))
  if (written === undefined || running === undefined) return application
  // outer applications come first, and a copy of the router has another one at the same position
  const { applications } = planOf(written)
  return planOf(running).applications.at(applications.indexOf(application) - applications.length)
}

/** Whether a layer can belong to the described router. A plain router is recognized only by its path. */
const belongsTo = (own: MountedRouter, part: Part, mount: Mount): ((layer: Layer) => boolean) => {
  const application = applicationAt(own, part, mount)
  return (layer) => application === undefined || planOf(layer).applications.includes(application)
}

const describing = (own: MountedRouter, part: Part): ((mount: Mount) => MountedRouter) => {
  const views = new WeakMap<MountedRouter, Map<object | string, MountedRouter>>()
  return (mount) => {
    const { router, layerPath } = mount
    const layer = own.stack.find(isPartOf(part))
    if (layer === undefined) return own
    const base = baseOf(layerPath, String(layer.path), own.opts.prefix ?? '')
    const application = applicationAt(own, part, mount)
    if (base === '' && application === undefined) return router
    const ofRouter = views.get(router) ?? new Map<object | string, MountedRouter>()
    views.set(router, ofRouter)
    const key = base === '' && application !== undefined ? application : base
    const view = ofRouter.get(key) ?? mountedPart(base, router, own, belongsTo(own, part, mount))
    ofRouter.set(key, view)
    return view
  }
}

// The path after the router's own prefix is the same wherever the router is mounted
const baseOf = (mounted: string, unmounted: string, prefix: string): string => {
  const tail = unmounted.startsWith(prefix) ? unmounted.slice(prefix.length) : unmounted
  return mounted.endsWith(tail) ? mounted.slice(0, -tail.length) : ''
}

// A getter, because routes can be added between requests
const mountedPart = (
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

const mountOf = (ctx: Context): Mount => ({ router: ctx['router'], layerPath: String(ctx['routerPath']) })

// An operation of the application at the same path replaces the page, wherever it was registered
const isTaken = (own: MountedRouter, part: Part, mount: Mount): boolean => {
  const isOwn = belongsTo(own, part, mount)
  const layers = mount.router.stack.filter(
    (layer) => layer.path === mount.layerPath && layer.methods.includes('GET') && isOwn(layer),
  )
  // at least one of them is this part, even if a tracer hides its mark
  return layers.length > Math.max(1, layers.filter(isPartOf(part)).length)
}

/** A router, seen from its operation that serves a part, wherever it is mounted. */
export const viewFrom = (own: MountedRouter, part: Part) => {
  const describedAt = describing(own, part)
  return {
    /** The operations to describe: the same value for the same router and place. */
    described: (ctx: Context): MountedRouter => describedAt(mountOf(ctx)),
    /** Whether an operation of the application answers instead of the part. */
    isTaken: (ctx: Context): boolean => isTaken(own, part, mountOf(ctx)),
  }
}
