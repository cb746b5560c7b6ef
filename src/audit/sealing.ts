/**
 * Closes a router, so that what was checked is served. Its routes can be read, mounted and copied, but not changed.
 *
 * A tracer may still replace a function of a layer by one that calls it, because it does so at `app.use`. It must not
 * replace a guard by a function that is no guard: requests to such an operation are answered with a 500. Copies
 * (`withAuth(a)(router)`, a router that it is mounted on) are separate routers, and stay open.
 */
import { sealedMark } from '../core/marks.js'
import type { Requirement } from '../core/Requirement.js'
import { isGuard } from '../koa/guardMark.js'
import { functionsOf, write } from '../koa/layer.js'
import { labelOf, type AnyRouter, type ReadLayer } from '../koa/RoutedOperation.js'
import { forgetPosition, isLayer, watched } from '../koa/routerCopy.js'
import type { Layer, RouterInstance } from '../koa/routerTypes.js'

const refuse = (what: string) => (): never => {
  throw new TypeError(`${what} comes after seal(router), which has not checked it: write it before`)
}

const refuseLayer = (given: ReadonlyArray<unknown>): never => {
  const layer = given.find(isLayer)
  return refuse(layer === undefined ? 'a change of the router' : labelOf(layer))()
}

/** The guard of a sealed layer, and the function that runs at its place: the guard, or a tracer's wrapper of it. */
interface Sealed {
  readonly index: number
  readonly runs: Function
  readonly requirement: Requirement
}

/** Closes a router. */
export const close = (router: AnyRouter): void => {
  // Safe: reading it has checked that it is a router of @koa/router
  const closed = router as unknown as RouterInstance & { readonly [sealedMark]?: boolean }
  if (closed[sealedMark] === true) return
  for (const layer of closed.stack) closeLayer(layer)
  const { match } = closed
  Object.defineProperties(closed, {
    // not writable, because the router reads it for each request
    stack: { value: Object.freeze(watched([...closed.stack], refuseLayer)), enumerable: true, writable: false },
    // none of these is enumerable: a router that this one is mounted on has its own
    [sealedMark]: { value: true },
    param: { value: refuse('router.param(...)'), configurable: true },
    prefix: { value: refuse('router.prefix(...)'), configurable: true },
    match: {
      value(this: RouterInstance, path: string, method: string) {
        const matched = match.call(this, path, method)
        for (const layer of matched.pathAndMethod) checkGuard(layer)
        return matched
      },
      configurable: true,
    },
  })
}

const closeLayer = (layer: Layer & { readonly [sealedMark]?: Sealed }): void => {
  if (Object.isFrozen(layer)) return
  forgetPosition(layer)
  const functions = functionsOf(layer)
  write(layer, functions)
  const index = functions.findIndex(({ written }) => isGuard(written))
  const { runs, written } = functions[index] ?? {}
  if (isGuard(written))
    Object.defineProperty(layer, sealedMark, { value: { index, runs, requirement: written.requirement } })
  // a tracer can replace its elements, but nothing else can change
  Object.seal(watched(layer.stack, () => refuse(`a function of ${labelOf(layer)}`)()))
  Object.freeze(layer.methods)
  Object.freeze(layer)
}

const checkGuard = (layer: ReadLayer & { readonly [sealedMark]?: Sealed }): void => {
  const { [sealedMark]: sealed, stack } = layer
  if (sealed === undefined) return
  const runs = stack[sealed.index]
  if (runs === sealed.runs || (isGuard(runs) && runs.requirement === sealed.requirement)) return
  throw new Error(
    `${labelOf(layer)}: its guard was replaced after seal(router). A tracer that replaces functions must keep their properties, or skip those that have the property Symbol.for("koa-with-auth/guard")`,
  )
}
