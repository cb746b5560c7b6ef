/**
 * Where a guard may stand: once in an operation, behind the path, in front of a handler.
 *
 * Everywhere else it is refused: on the line itself where a guard can see that, else with a 500 that names the mend. A
 * guard that runs in the wrong place never lets a request through.
 */
import type { Layer } from '@koa/router'
import type { Context } from 'koa'

const mend = 'write router.get(path, withAuth(a), handler), or guard the whole router: withAuth(a)(router)'

/** For `router.use(withAuth(a))` and `app.use(withAuth(a))`: both read a property of what they are given. */
export const refuseUse = (guard: object): void => {
  const refuse = (place: string) => ({
    get: (): never => {
      throw new TypeError(`${place}(withAuth(a)) would guard by path, which leaks; ${mend}`)
    },
  })
  // @koa/router's `use` looks for a router to mount, koa's for a name to log
  Object.defineProperties(guard, { router: refuse('router.use'), _name: refuse('app.use') })
}

const lastOperation = Symbol('the operation in which a guard ran last')

/** Throws unless a guard runs in the layer of a route, and as the first guard in it. */
export const inItsOperation = (ctx: Context): void => {
  // The router makes a new array of captures for every layer that it runs
  const captures: unknown = ctx['captures']
  const layers: ReadonlyArray<Layer> | undefined = ctx['matched']
  if (captures === undefined || layers === undefined || !layers.some((layer) => isRunning(layer, ctx))) {
    throw new Error(`withAuth(a) runs outside of an operation; ${mend}`)
  }
  if (ctx[lastOperation] === captures) throw new Error('withAuth(...) stands twice in one operation; leave one')
  ctx[lastOperation] = captures
}

const isRunning = (layer: Layer, ctx: Context): boolean => layer.methods.length > 0 && layer.path === ctx['routerPath']
