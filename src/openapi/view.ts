/**
 * The operations that a docs page describes: those of its router, as they are mounted where the request came in.
 *
 * Mounting clones layers with their prefixes, and a level above puts its guards into the clones. So the page lists the layers of
 * `ctx.router` whose path starts with the path where the page's router was mounted. The plan of a layer says which applications it
 * belongs to (R13). Layers of a plain router are recognized by their path: if it is mounted without one, the document also describes
 * its siblings. A page that is mounted beside its router describes the router as it is.
 */
import type { Context } from 'koa'
import type { Part } from '../koa/layer.js'
import { levelOf } from '../koa/levels.js'
import { docsAmong } from '../koa/operations.js'
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
    docsAmong(writtenIn(planOf(layer))) === part

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
const isOf =
  (application: Application | undefined) =>
  (layer: Layer): boolean =>
    application === undefined || planOf(layer).applications.includes(application)

/** Makes something of the operations to describe, as they are mounted where a request came in, once for each place. */
export const describing = <A>(
  own: MountedRouter,
  part: Part,
  describe: (described: MountedRouter) => A,
): ((ctx: Context) => A) => {
  const made = new WeakMap<MountedRouter, Map<object | string, A>>()
  return (ctx) => {
    const mount = requestMount(ctx)
    const layer = own.stack.find(isPartOf(part))
    const router = layer === undefined ? own : mount.router
    const base = layer === undefined ? '' : baseOf(mount.layerPath, String(layer.path), own.opts.prefix ?? '')
    const application = applicationAt(own, part, mount)
    const ofRouter = made.get(router) ?? new Map<object | string, A>()
    made.set(router, ofRouter)
    const key = base || (application ?? '')
    const one = ofRouter.get(key) ?? describe(layer === undefined ? own : mountedPart(base, router, own, application))
    ofRouter.set(key, one)
    return one
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
  application: Application | undefined,
): MountedRouter => ({
  ...(router.exclusive !== undefined && { exclusive: router.exclusive }),
  opts: router.opts,
  get stack() {
    const isOwn = isOf(application)
    return router.stack.filter((layer) => isOwn(layer) && (isBelow(base, layer) || isOwnPattern(own, layer)))
  },
})

const isBelow = (base: string, { path }: Layer): boolean =>
  base === '' || (typeof path === 'string' && path.startsWith(base) && /^(?:[/{]|$)/.test(path.slice(base.length)))

// Mounting does not change a RegExp
const isOwnPattern = (own: MountedRouter, { path }: Layer): boolean =>
  path instanceof RegExp && own.stack.some((layer) => layer.path === path)

const requestMount = (ctx: Context): Mount => ({ router: ctx['router'], layerPath: String(ctx['routerPath']) })

/** Whether an operation of the application, at the same path, answers instead of a part, wherever it was registered. */
export const isTaken = (own: MountedRouter, part: Part, ctx: Context): boolean => {
  const mount = requestMount(ctx)
  const layers = mount.router.stack
    .filter((layer) => layer.path === mount.layerPath && layer.methods.includes('GET'))
    .filter(isOf(applicationAt(own, part, mount)))
  // at least one of them is this part, even if a tracer hides its mark
  return layers.length > Math.max(1, layers.filter(isPartOf(part)).length)
}
