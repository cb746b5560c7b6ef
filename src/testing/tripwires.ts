/**
 * Tripwires: what stands behind the guards of a router is taken away for a while, and tells whether it would have run.
 *
 * No handler of the user's runs meanwhile, so a breach does no harm and needs no database. Middleware in front of a guard,
 * and above the router, runs as ever.
 */
import type { RouterInstance } from '@koa/router'
import type { Context } from 'koa'
import { isGuard } from '../koa/guardMark.js'
import type { Tested } from './operations.js'

/** The field with which a request says which one it is. */
export const PROBE = 'X-Koa-With-Auth-Probe'

/** What happened to a request inside the router. */
export interface Trace {
  /** The operations whose guard it came to, in order; of one without a guard, itself. */
  readonly reached: Tested[]
  /** Whether it came behind a guard: a handler would have run. */
  ran: { readonly by: Tested; readonly auth: unknown } | undefined
}

/** Tripwires that are laid. */
export interface Tripwires {
  readonly traceOf: (probe: string) => Trace
  readonly remove: () => void
}

type Stack = Tested['layer']['stack']

const laid = new WeakSet<object>()

/** Lays them; `remove` brings the handlers back. Error where others are laid already. */
export const layTripwires = (router: RouterInstance, operations: ReadonlyArray<Tested>): Tripwires => {
  if (laid.has(router)) throw new Error('expectGuarded is at work on this router already; await the first')
  laid.add(router)
  const traces = new Map<string, Trace>()
  const traceOf = (probe: string): Trace => {
    const trace = traces.get(probe) ?? { reached: [], ran: undefined }
    traces.set(probe, trace)
    return trace
  }
  const before = operations.map(({ layer }) => [layer, layer.stack] as const)
  for (const tested of operations) tested.layer.stack = wired(tested, traceOf)
  return {
    traceOf,
    remove: () => {
      for (const [layer, stack] of before) layer.stack = stack
      laid.delete(router)
    },
  }
}

const wired = (tested: Tested, traceOf: Tripwires['traceOf']): Stack => {
  const { stack } = tested.layer
  const at = stack.findIndex((f) => isGuard(f))
  const reach: Stack[number] = (ctx, next) => {
    traceOf(ctx.get(PROBE)).reached.push(tested)
    return next()
  }
  const trip: Stack[number] = (ctx) => {
    traceOf(ctx.get(PROBE)).ran = { by: tested, auth: authOf(ctx) }
    ctx.status = 204
  }
  return at === -1 ? [reach, trip] : [...stack.slice(0, at), reach, stack[at]!, trip]
}

const authOf = ({ request }: Pick<Context, 'request'>): unknown => Reflect.get(request, 'auth')
