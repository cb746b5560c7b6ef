/**
 * Where a guard may be: once in an operation, after the path, before a handler.
 *
 * Everywhere else it is refused. If possible, it throws when it is written. Otherwise each request is a 500, and its
 * error names the fix. A guard that runs in the wrong place never lets a request through.
 */
import type { Context } from 'koa'
import { guardedMark } from '../core/marks.js'
import { tooOld } from './routerSupport.js'
import type { Layer } from './routerTypes.js'

/** Where a guard can be, for messages. */
export const fix = 'write router.get(path, withAuth(a), handler), or guard the whole router: withAuth(a)(router)'

/** Makes `router.use(f)` and `app.use(f)` a TypeError: both read a property of what they are given. */
export const refuseUse = (f: object, messageOf: (place: string) => string): void => {
  const refuse = (place: string) => ({
    get: (): never => {
      throw new TypeError(messageOf(place))
    },
  })
  // @koa/router's `use` looks for a router to mount, koa's for a name to log
  Object.defineProperties(f, { router: refuse('router.use'), _name: refuse('app.use') })
}

const wrapped =
  'a tracer that wraps functions and drops their properties looks the same: let it skip those that have the property Symbol.for("koa-with-auth/guard")'

/**
 * Checks that a guard runs in the layer of a route, as the first guard in it, and throws otherwise. Returns whether a guard of
 * another layer ran before in this request.
 */
export const enterOperation = (ctx: Context): boolean => {
  const context: Context & { [guardedMark]?: unknown } = ctx
  const layers: ReadonlyArray<Layer> = ctx['matched'] ?? []
  if (!isRunning(layers, ctx['routerPath'])) {
    const isRouted = layers.some(({ methods }) => methods.includes(ctx.method))
    if (isRouted && ctx['routerPath'] === undefined) throw new Error(`withAuth(a): ${tooOld}`)
    throw new Error(`withAuth(a) runs outside of an operation; ${fix}`)
  }
  // The router makes a new array of captures for every layer that it runs, so it identifies the layer that runs
  const captures: unknown = ctx['captures']
  const before = context[guardedMark]
  if (before === captures) {
    throw new Error(`withAuth(...) is in one operation twice; remove one (${wrapped})`)
  }
  context[guardedMark] = captures
  return before !== undefined
}

// A layer without methods is `use` middleware
const isRunning = (layers: ReadonlyArray<Layer>, path: unknown): boolean => {
  for (const layer of layers) if (layer.path === path && layer.methods.length > 0) return true
  return false
}
