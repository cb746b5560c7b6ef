/**
 * The functions of one layer of a router: those that were written, those that run, and the order in which they must
 * run.
 *
 * A tracer may replace the functions of a layer by its own. A function with a copy of the properties is still a guard,
 * but one without them is not. So a layer that a level arranged remembers its functions under a mark, which mounting
 * copies. A function that runs counts as the one that was written at its place.
 *
 * The order if there is a guard:
 *
 * | functions                         | `param`         | why they are there                                 |
 * |-----------------------------------|-----------------|----------------------------------------------------|
 * | what was written ahead of a guard | `aheadOfParams` | a rate limiter runs first                          |
 * | the guard                         | `aheadOfParams` |                                                    |
 * | `param` hooks                     | their name      | they look things up, only for admitted callers     |
 * | the handlers                      | none            | the router puts later hooks in front of the first  |
 */
import type { Context, Next } from 'koa'
import type { Requirement } from '../core/Requirement.js'
import { aheadOfParams, guardMark, layerMark, notWrapped } from '../core/data.js'
import type { Layer, RouterInstance } from './AuthRouter.js'

/*
 * Marks guards, so that they are recognized among other middleware and stay ahead of `param` hooks.
 *
 * Levels, OpenAPI and the audit read from a guard what protects its route. What they read are properties of the
 * function, so a tracer's wrapper that copies properties is still the guard.
 */

/** Identifies a level. The guards that it inserted and the router that it returned have the same one. */
export interface Level {
  readonly name: string
}

/** Middleware that runs after a guard, and how many levels above its innermost decision it was written. */
export interface Step {
  readonly run: (ctx: Context, next: Next) => unknown
  readonly above: number
}

/** Where a guard comes from, and what runs after it. */
export interface Origin {
  /** The levels that decided, from the outermost that counts to the innermost: `operation`, or which router. */
  readonly levels: ReadonlyArray<string>
  /** The level that put it into its layer; `undefined` for one that is written in an operation. */
  readonly level?: Level | undefined
  /** The guard of the operation that it replaces, because that one adds to the levels above. */
  readonly replaces?: (Function & Marked) | undefined
  /** What runs after it, see `behindGuard.ts`; `undefined` for none. */
  readonly then?: ReadonlyArray<Step> | undefined
  /** Whether it admits everyone, for tests: the handlers after it are not protected. */
  readonly isForTests?: boolean
}

/** The properties of a guard. */
export interface Marked extends Origin {
  readonly requirement: Requirement
}

/** Marks a function as the guard of a requirement. */
export const markGuard = <F extends Function>(guard: F, requirement: Requirement, origin: Origin): F & Marked =>
  notWrapped(Object.assign(guard, { ...origin, requirement, param: aheadOfParams, [guardMark]: true }))

/** Whether a function is a guard. */
export const isGuard = (f: unknown): f is Function & Marked => typeof f === 'function' && guardMark in f

/** A function of a layer: what runs, and what was written there. Without a tracer they are the same. */
export interface LayerFunction {
  readonly runs: Function
  readonly written: Function
}

/** The part of a layer that is read here. */
interface FunctionsOfLayer {
  readonly stack: ReadonlyArray<Function>
}

interface Remembering extends FunctionsOfLayer {
  [layerMark]?: ReadonlyArray<LayerFunction>
}

// -------------------------------------------------------------------------------------
// destructors
// -------------------------------------------------------------------------------------

/** The functions of a layer, in the order in which they run. */
export const functionsOf = (layer: FunctionsOfLayer): ReadonlyArray<LayerFunction> =>
  rememberedBy(layer) ?? layer.stack.map(asWritten)

/** The guard among the functions of a layer. */
export const guardAmong = (functions: ReadonlyArray<LayerFunction>): (Function & Marked) | undefined =>
  // Safe: what was found is a guard
  functions.find(({ written }) => isGuard(written))?.written as (Function & Marked) | undefined

/** Whether a level arranged the functions of a layer, and nothing was changed since. */
export const isArranged = (layer: FunctionsOfLayer, functions: ReadonlyArray<LayerFunction>): boolean => {
  const { [layerMark]: memory }: Remembering = layer
  return memory === functions
}

/** Whether a layer had a guard, and lost it by a change that no tracer makes. */
export const hasLostItsGuard = (layer: FunctionsOfLayer, functions = functionsOf(layer)): boolean => {
  const { [layerMark]: memory }: Remembering = layer
  return memory !== undefined && guardAmong(memory) !== undefined && guardAmong(functions) === undefined
}

// Compares function by function; `undefined` if nothing is remembered, or if it does not fit what runs
const rememberedBy = (layer: FunctionsOfLayer): ReadonlyArray<LayerFunction> | undefined => {
  const { [layerMark]: memory, stack }: Remembering = layer
  if (memory === undefined) return undefined
  if (isUntouched(stack, memory)) return memory
  let at = 0
  const read: LayerFunction[] = []
  for (const runs of stack) {
    const written = memory[at]?.written
    const isLaterHook = isParamHook(runs) && (written === undefined || originalOf(written) !== originalOf(runs))
    if (isLaterHook) {
      read.push(asWritten(runs))
      continue
    }
    if (written === undefined) return undefined
    read.push(isGuard(runs) ? asWritten(runs) : { runs, written })
    at++
  }
  return at === memory.length ? read : undefined
}

// True for most layers. They are read at each level, so nothing is allocated for them
const isUntouched = (stack: ReadonlyArray<Function>, memory: ReadonlyArray<LayerFunction>): boolean =>
  stack.length === memory.length && memory.every(({ runs, written }, at) => runs === written && runs === stack[at])

const paramOf = (f: object): unknown => ('param' in f ? f.param : undefined)

const isParamHook = (f: object): boolean => typeof paramOf(f) === 'string'

/** The function that the user wrote: the router wraps `param` hooks. */
export const originalOf = (f: Function): Function => {
  const original: unknown = Reflect.get(f, '_originalFn')
  return typeof original === 'function' ? original : f
}

// -------------------------------------------------------------------------------------
// combinators
// -------------------------------------------------------------------------------------

/**
 * Gives a layer a separate array. The layers of one `get([path, path], ...)` share an array, and so do copies by older
 * routers.
 */
export const unshare = <S, C>(layer: Layer<S, C>): void => {
  layer.stack = [...layer.stack]
}

/**
 * Gives a layer these functions, always in a new array, because the layers of one `get([path, path], ...)` share
 * theirs.
 */
export const write = <S, C>(layer: Layer<S, C>, functions: ReadonlyArray<LayerFunction>): void => {
  // Safe: they are the functions of the layer, and guards, which are middleware whatever the router's context
  layer.stack = functions.map(({ runs }) => runs) as Layer<S, C>['stack']
  // mounting copies the mark, so the layers of all levels share one array until one of them changes
  const remembering: Remembering = layer
  if (remembering[layerMark] !== functions) remembering[layerMark] = functions
}

/** The functions with the guard `from` replaced by `to`, or removed if there is no `to`. */
export const exchanged = (
  functions: ReadonlyArray<LayerFunction>,
  from: Function & Marked,
  to: (Function & Marked) | undefined,
): ReadonlyArray<LayerFunction> =>
  functions.flatMap((one) => (one.written !== from ? [one] : to === undefined ? [] : [asWritten(to)]))

/** A function that runs as it is written. */
export const asWritten = (f: Function): LayerFunction => ({ runs: f, written: f })

/**
 * The functions in their order. Throws a TypeError, beginning with the name, for two guards, and for one without a
 * handler.
 */
export const arranged = (functions: ReadonlyArray<LayerFunction>, name: () => string): ReadonlyArray<LayerFunction> => {
  const at = functions.findIndex(({ written }) => isGuard(written))
  if (at === -1) return functions
  if (functions.some(({ written }, other) => other > at && isGuard(written))) {
    throw new TypeError(`${name()}: withAuth(...) is in it twice; remove one`)
  }
  if (at === functions.length - 1) {
    throw new TypeError(`${name()}: withAuth(...) has no handler after it; write it right after the path`)
  }
  if (at === 0) return functions
  const ahead = functions.slice(0, at)
  const isHook = ({ runs, written }: LayerFunction): boolean => isParamHook(runs) || isParamHook(written)
  return [
    ...ahead.filter((f) => !isHook(f)).map((f) => (paramOf(f.runs) === aheadOfParams ? f : asWritten(keptAhead(f)))),
    ...functions.slice(at, at + 1),
    ...ahead.filter(isHook),
    ...functions.slice(at + 1),
  ]
}

// Middleware that the user put ahead of a guard (a rate limiter) also runs before `param` hooks that come later
const keptAhead = ({ runs, written }: LayerFunction): Function =>
  Object.assign((...args: ReadonlyArray<unknown>): unknown => Reflect.apply(runs, undefined, args), {
    param: aheadOfParams,
    _originalFn: originalOf(written),
  })

/*
 * Copies routers and layers, so that nothing is shared that the router changes in place, and watches stacks.
 *
 * spec/levels/router-facts.http.spec.ts pins what it knows of the inside of @koa/router.
 */

/** A copy with the same prototype. Everything that the router changes in place is copied, except the stack. */
export const copyRouter = <S, C>(router: RouterInstance<S, C>): RouterInstance<S, C> => {
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

/**
 * A copy of a layer with separate `opts`. The router replaces the arrays of a layer, except that of its functions: see
 * `unshare`.
 */
export const copyLayer = <S, C>(layer: Layer<S, C>): Layer<S, C> => {
  const copy: Layer<S, C> = Object.assign(Object.create(Object.getPrototypeOf(layer)), layer)
  copy.opts = { ...layer.opts }
  return copy
}

/**
 * Gives a layer a RegExp without the flags g and y. With them it remembers where it stopped, so a request could switch
 * the route off for the next one.
 */
export const forgetPosition = (layer: { regexp: RegExp }): void => {
  const { regexp } = layer
  if (regexp?.global || regexp?.sticky) layer.regexp = withoutPosition(regexp)
}

/** A RegExp that matches the same at every call. */
export const withoutPosition = ({ source, flags }: RegExp): RegExp => new RegExp(source, flags.replace(/[gy]/g, ''))

const mutators = ['push', 'unshift', 'splice', 'pop', 'shift', 'reverse', 'sort', 'fill', 'copyWithin'] as const

/**
 * Calls `before` with the arguments of each method that changes the array, before the change. The methods cannot be
 * replaced.
 */
export const watched = <A>(array: A[], before: (given: ReadonlyArray<unknown>) => void): A[] => {
  const watch = (name: (typeof mutators)[number]) => ({
    value: (...given: never[]): unknown => {
      before(given)
      return Reflect.apply(Array.prototype[name], array, given)
    },
  })
  return Object.defineProperties(array, Object.fromEntries(mutators.map((name) => [name, watch(name)])))
}

/** Whether a value is a layer. */
export const isLayer = (u: unknown): u is Layer =>
  typeof u === 'object' && u !== null && 'stack' in u && 'methods' in u && 'path' in u
