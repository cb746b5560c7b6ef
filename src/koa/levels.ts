/**
 * Levels: how the decision of a router comes to stand in the layer of each of its routes (spec 5.6).
 *
 * The effective requirement of an operation is the first decided of: operation, registration call, router's own, the
 * parent's registration call, the parent's own, ..., application. It is settled when a route is registered or mounted:
 * a derived router is a copy whose stack watches what is put in, because routes, mounted ones included, all come in there.
 * Mounting clones layers but keeps their functions, so what a guard carries survives any depth.
 *
 * The facts of @koa/router that this rests on are pinned by spec/integration/router-facts.spec.ts.
 */
import type { Layer, RouterInstance } from '@koa/router'
import * as Requirement from '../core/Requirement.js'
import { applicationOf, arrangeWithin, exchangeApplication, setApplication } from './application.js'
import { guardFor } from './guard.js'
import { aheadOfParams, isGuard, type Marked } from './guardMark.js'

type AnyFunction = (...args: never[]) => unknown
type LevelGuard = AnyFunction & Marked

// Which level put a guard into layers, and the guard that stood there: a decision that adds to the levels above. Mounting
// clones layers but keeps their functions, so a guard names its level: a second `withAuth` on a router replaces what the
// first one put in, and nothing that came in decided: a lawful setter.
interface Placement {
  readonly level: object
  readonly before: LevelGuard | undefined
}

// Beside the guards, not on the layers: the router matches every request against all layers, which stay of one shape
const placements = new WeakMap<AnyFunction, Placement>()

const levelOf = new WeakMap<object, object>()

/**
 * A copy of a router whose undecided operations, present and to come, are guarded by this requirement. The argument is not
 * changed.
 */
export const atLevel =
  (requirement: Requirement.Requirement, name?: string) =>
  <S, C>(router: RouterInstance<S, C>): RouterInstance<S, C> => {
    const levels = [name ?? `router ${router.opts.prefix ?? ''}`.trimEnd()]
    const guard = guardFor(requirement, levels)
    const before = levelOf.get(router)
    const level = {}
    placements.set(guard, { level, before: undefined })
    // a copy is an application of its own, with the same settings
    const copied = applicationOf(router)
    const application = copied && { ...copied, identity: {} }
    const arrangeLayer = (layer: Layer<S, C>): void => {
      const own = guardOf(layer)
      const decision = own?.requirement ?? Requirement.inherit
      const combined = Requirement.Monoid.concat(requirement, decision)
      if (combined === decision || isMiddleware(layer)) {
        layer.stack = arranged(layer, own)
      } else if (own === undefined) {
        layer.stack = [typed(guard), ...layer.stack]
      } else {
        const both = guardFor(combined, [...levels, ...own.levels])
        placements.set(both, { level, before: own })
        layer.stack = exchanged(arranged(layer, own), own, both)
      }
    }
    const place = (layer: Layer<S, C>): void => arrangeWithin(layer, application, arrangeLayer)
    const derived = setApplication(copyRouter(router), application)
    const stack = router.stack.map((layer) => {
      const copy = copyLayer(layer)
      // Put-put: what this router's own level had decided is decided anew
      const placed = before && layer.stack.find((f) => placements.get(f)?.level === before)
      if (placed !== undefined) copy.stack = exchanged(copy.stack, placed, placements.get(placed)?.before)
      if (copied !== undefined && application !== undefined) exchangeApplication(copy, copied, application)
      place(copy)
      return copy
    })
    levelOf.set(derived, level)
    // not writable: nobody can put another stack in its place
    return Object.defineProperty(derived, 'stack', { value: watched(stack, place), enumerable: true, writable: false })
  }

// Safe: a guard is middleware, whatever the router's context
const typed = (guard: AnyFunction): never => guard as never

const exchanged = <F extends AnyFunction>(
  stack: ReadonlyArray<F>,
  from: AnyFunction,
  to: AnyFunction | undefined,
): F[] => stack.flatMap((f) => (f !== from ? [f] : to === undefined ? [] : [typed(to)]))

// -------------------------------------------------------------------------------------
// one layer
// -------------------------------------------------------------------------------------

// What `use` middleware answers by itself is no operation
const isMiddleware = <S, C>({ methods }: Layer<S, C>): boolean => methods.length === 0

const guardOf = <S, C>({ stack }: Layer<S, C>): LevelGuard | undefined =>
  stack.find((f): f is typeof f & Marked => isGuard(f))

// The functions of a layer in the order in which they must run. Always a new array: the layers of one
// `get([path, path], ...)` share theirs.
const arranged = <S, C>(layer: Layer<S, C>, guard: LevelGuard | undefined): Layer<S, C>['stack'] => {
  const { stack } = layer
  if (guard === undefined) return [...stack]
  const at = stack.indexOf(typed(guard))
  if (stack.some((f, other) => other > at && isGuard(f))) {
    throw misplaced(layer, 'withAuth(...) stands twice in it; leave one')
  }
  if (at === stack.length - 1)
    throw misplaced(layer, 'withAuth(...) has no handler behind it; it stands behind the path')
  if (at === 0) return [...stack]
  const ahead = stack.slice(0, at)
  return [
    ...ahead.filter((f) => !isParamHook(f)).map((f) => (paramOf(f) === aheadOfParams ? f : keptAhead(f))),
    typed(guard),
    ...ahead.filter(isParamHook),
    ...stack.slice(at + 1),
  ]
}

const paramOf = (f: object): unknown => ('param' in f ? f.param : undefined)

const isParamHook = (f: object): boolean => typeof paramOf(f) === 'string'

// Middleware that the user put in front of a guard (a rate limiter) also runs before `param` hooks that come later
const keptAhead = <F extends AnyFunction>(f: F): F =>
  // Safe: it calls `f` as it is called itself
  Object.assign(((...args: never[]) => f(...args)) as F, { param: aheadOfParams, _originalFn: f })

const misplaced = <S, C>({ methods, path }: Layer<S, C>, mend: string): TypeError =>
  new TypeError(`${methods.length > 2 ? 'all' : methods.at(-1)} ${String(path)}: ${mend}`)

// -------------------------------------------------------------------------------------
// copies
// -------------------------------------------------------------------------------------

// Same prototype, own everything that the router changes in place
const copyRouter = <S, C>(router: RouterInstance<S, C>): RouterInstance<S, C> => {
  const copy: RouterInstance<S, C> = Object.assign(Object.create(Object.getPrototypeOf(router)), router)
  copy.opts = { ...router.opts }
  copy.methods = [...router.methods]
  copy.params = Object.fromEntries(
    Object.entries(router.params).map(([name, hooks]) => [name, Array.isArray(hooks) ? [...hooks] : hooks]),
  )
  const events: unknown = Reflect.get(router, '_events')
  if (typeof events === 'object' && events !== null) Reflect.set(copy, '_events', copyEvents(events))
  return copy
}

const copyEvents = (events: object): object => {
  const handlers: unknown = Reflect.get(events, '_handlers')
  const copy: object = Object.assign(Object.create(Object.getPrototypeOf(events)), events)
  if (!(handlers instanceof Map)) return copy
  const copies = [...handlers].map(([event, list]) => [event, Array.isArray(list) ? [...list] : list] as const)
  return Object.assign(copy, { _handlers: new Map(copies) })
}

// `place` gives each copy a stack of its own
const copyLayer = <S, C>(layer: Layer<S, C>): Layer<S, C> => {
  const copy: Layer<S, C> = Object.assign(Object.create(Object.getPrototypeOf(layer)), layer)
  copy.methods = [...layer.methods]
  copy.paramNames = [...layer.paramNames]
  copy.opts = { ...layer.opts }
  return copy
}

// A stack that arranges every layer before it takes it in
const watched = <L extends object>(layers: L[], place: (layer: L) => void): L[] => {
  const isLayer = (u: unknown): u is L => typeof u === 'object' && u !== null && 'stack' in u
  const watch = (name: 'push' | 'unshift' | 'splice') => ({
    value: (...args: never[]): unknown => {
      args.filter(isLayer).forEach(place)
      return Reflect.apply(Array.prototype[name], layers, args)
    },
  })
  return Object.defineProperties(layers, { push: watch('push'), unshift: watch('unshift'), splice: watch('splice') })
}
