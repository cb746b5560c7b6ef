/**
 * Closes a router: what was checked is what is served. Its routes can be read, mounted and copied, but not changed.
 *
 * A tracer may still replace a function of a layer by one that calls it, because it does so at `app.use`. It may not replace a
 * guard by what is none: a request to such an operation is answered with a 500. Copies (`withAuth(a)(router)`, a router that it
 * is mounted into) are routers of their own and stay open.
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

/** The guard of a sealed layer, and what runs in its place: the guard, or what a tracer had put there. */
interface Sealed {
  readonly index: number
  readonly runs: Function
  readonly requirement: Requirement
}

/** Closes a router. */
export const close = (router: AnyRouter): void => {
  // Safe: what was read as a router of @koa/router is one
  const closed = router as unknown as RouterInstance & { readonly [sealedMark]?: boolean }
  if (closed[sealedMark] === true) return
  for (const layer of closed.stack) closeLayer(layer)
  const { match } = closed
  Object.defineProperties(closed, {
    // not writable: the router reads it anew for each request
    stack: { value: Object.freeze(watched([...closed.stack], refuseLayer)), enumerable: true, writable: false },
    // none of these is enumerable: a router that this one is mounted into has its own
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
  // its elements can be replaced, and nothing else
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
