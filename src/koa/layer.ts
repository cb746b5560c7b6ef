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
import { aheadOfParams, layerMark } from '../core/marks.js'
import { isGuard, type Marked } from './guardMark.js'
import type { Layer } from './routerTypes.js'

/** A function of a layer: what runs, and what was written there. Without a tracer they are the same. */
export interface LayerFunction {
  readonly runs: Function
  readonly written: Function
}

/** The part of a layer that is read here. */
export interface FunctionsOfLayer {
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
