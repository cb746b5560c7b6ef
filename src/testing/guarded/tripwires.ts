/**
 * Tripwires: for a while, a router uses copies of its layers. In these, a wire follows the guard instead of the
 * handlers, and reports whether a handler would have run.
 *
 * So no handler runs, and a violation does no harm and needs no database. Middleware before a guard, and above the
 * router, runs as usual. The router's own layers are not changed, because it may be sealed.
 */
import type { Context } from 'koa'
import { tripwiresMark } from '../../core/marks.js'
import { guardFor } from '../../koa/guard.js'
import { isGuard } from '../../koa/guardMark.js'
import { functionsOf, write, type LayerFunction } from '../../koa/layer.js'
import { copyLayer } from '../../koa/routerCopy.js'
import type { Layer, RouterInstance } from '../../koa/routerTypes.js'
import type { Tested } from './operations.js'

/** The field that identifies a request. */
export const PROBE = 'X-Koa-With-Auth-Probe'

/** What happened to a request inside the router. */
export interface Trace {
  /** The operations whose guards it reached, in order. An operation without a guard is reached itself. */
  readonly reached: Tested[]
  /** Set if it passed the guard, so that a handler would have run. */
  ran: { readonly by: Tested; readonly auth: unknown } | undefined
}

/** Tripwires on a router. */
export interface Tripwires {
  readonly traceOf: (probe: string) => Trace
  readonly remove: () => void
}

/** Lays tripwires. `remove` restores the handlers. Throws an Error if the router has tripwires already. */
export const layTripwires = (router: RouterInstance, operations: ReadonlyArray<Tested>): Tripwires => {
  if (Reflect.get(router, tripwiresMark) === true) {
    throw new Error('expectGuarded is running on this router already; await the first call')
  }
  const traces = new Map<string, Trace>()
  const traceOf = (probe: string): Trace => {
    const trace = traces.get(probe) ?? { reached: [], ran: undefined }
    traces.set(probe, trace)
    return trace
  }
  const layers = new Map(operations.map(({ layer }) => [layer, wired(layer, operations, traceOf)]))
  const wire = (layer: Layer): Layer => layers.get(layer) ?? layer
  const own = Object.getOwnPropertyDescriptor(router, 'match')
  const { match } = router
  Object.defineProperties(router, {
    [tripwiresMark]: { value: true, configurable: true },
    match: {
      value(this: RouterInstance, path: string, method: string) {
        const matched = match.call(this, path, method)
        return { ...matched, path: matched.path.map(wire), pathAndMethod: matched.pathAndMethod.map(wire) }
      },
      configurable: true,
    },
  })
  return {
    traceOf,
    remove: () => {
      Reflect.deleteProperty(router, tripwiresMark)
      Reflect.deleteProperty(router, 'match')
      if (own !== undefined) Object.defineProperty(router, 'match', own)
    },
  }
}

const wired = (layer: Layer, operations: ReadonlyArray<Tested>, traceOf: Tripwires['traceOf']): Layer => {
  const functions = functionsOf(layer)
  const guardAt = functions.findIndex(({ written }) => isGuard(written))
  const ofLayer = operations.filter((tested) => tested.layer === layer)
  const askedBy = ({ method }: Pick<Context, 'method'>): Tested =>
    ofLayer.find(({ methods }) => methods.includes(method)) ?? ofLayer[0]!
  const reach = (ctx: Context, next: () => Promise<unknown>): Promise<unknown> => {
    traceOf(ctx.get(PROBE)).reached.push(askedBy(ctx))
    return next()
  }
  const trip = (ctx: Context): void => {
    traceOf(ctx.get(PROBE)).ran = { by: askedBy(ctx), auth: authOf(ctx) }
    ctx.status = 204
  }
  const [reaching, tripping] = [reach, trip].map((f) => ({ runs: f, written: f }))
  const copy = copyLayer(layer)
  write(
    copy,
    guardAt === -1
      ? [reaching!, tripping!]
      : [...functions.slice(0, guardAt), reaching!, alone(functions[guardAt]!), tripping!],
  )
  return copy
}

// The same guard without the middleware that the user wrote after it
const alone = (guard: LayerFunction): LayerFunction => {
  const { written } = guard
  if (!isGuard(written) || written.then === undefined || written.then.length === 0) return guard
  const f = guardFor(written.requirement, { ...written, then: undefined })
  return { runs: f, written: f }
}

const authOf = ({ request }: Pick<Context, 'request'>): unknown => Reflect.get(request, 'auth')
