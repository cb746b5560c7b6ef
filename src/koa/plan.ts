/**
 * The plan of a layer of a router: the functions of its operation, and the decisions of the levels around it. It is a
 * value on the layer, and the functions that the router runs are made from it, never the other way round.
 *
 * A plan is read from functions once, when a layer first comes to a level. Mounting clones a layer with its properties,
 * so the clone has the plan, too. A tracer replaces functions of a layer, but not the plan. Its function runs, and
 * counts as the function that it replaced.
 *
 * | functions, in their order                    | `param`         | why they are there                                   |
 * |----------------------------------------------|-----------------|------------------------------------------------------|
 * | `begin` of each application, outermost first | `aheadOfParams` | they set its settings                                |
 * | functions that were written ahead of a guard | `aheadOfParams` | a rate limiter runs first                            |
 * | the guard                                    | `aheadOfParams` |                                                      |
 * | `param` hooks                                | their name      | they look things up, only for admitted callers       |
 * | the handlers                                 | none            | the router puts later hooks in front of the first    |
 * | an observer before each but the first        | none            | it notes exceptions that a handler before it answers |
 * | `end` of each application, innermost first   | `aheadOfParams` | they take the settings back                          |
 */
import type { Middleware } from 'koa'
import type { Addition } from '../core/Settings.js'
import { isGuard, isParamHook, isWritten, observed, originalOf, type GuardFunction } from './layer.js'

const planMark = Symbol.for('koa-with-auth/plan')

/** Identifies a level: the decisions that it put into plans, and the router that it returned, have the same identity. */
export interface Level {
  readonly name: string
  readonly application?: ApplicationLevel | undefined
}

/** The functions with which each layer of an application (`apiApp`) begins and ends. A copy of its router is another application. */
export interface ApplicationLevel {
  readonly begin: Middleware
  readonly end: Middleware
  readonly addition: () => Addition
}

/** The decision of a level. Its guard is made once, and is in each layer where nothing else counts. */
export interface LevelDecision {
  readonly by: Level
  readonly guard: GuardFunction
}

interface PlanParts {
  /** The applications that it belongs to, the outermost first. */
  readonly applications: ReadonlyArray<ApplicationLevel>
  readonly ahead: ReadonlyArray<Function>
  readonly own: GuardFunction | undefined
  /** The levels around it that count, the outermost first. */
  readonly levels: ReadonlyArray<LevelDecision>
  /** The guard that is enforced: the levels and the operation together. */
  readonly guard: GuardFunction | undefined
  /** `param` hooks and handlers. */
  readonly after: ReadonlyArray<Function>
  /** The functions of tracers, by those that they replaced. */
  readonly traced: ReadonlyMap<Function, Function>
}

export interface Plan extends PlanParts {
  readonly functions: ReadonlyArray<Function>
}

interface PlannedLayer {
  readonly stack: ReadonlyArray<Function>
  readonly [planMark]?: Plan
}

export const planned = (parts: PlanParts): Plan => ({ ...parts, functions: functionsIn(parts) })

const functionsIn = ({ applications, ahead, guard, after }: PlanParts): ReadonlyArray<Function> => {
  // `toSpliced` makes an array of its size, and a spread one with room for more: there is one of them for each route
  const guarded = guard === undefined ? after : observed(after).toSpliced(0, 0, guard)
  const own = ahead.length === 0 ? guarded : ahead.concat(guarded)
  if (applications.length === 0) return own
  return [...applications.map(({ begin }) => begin), ...own, ...applications.map(({ end }) => end).reverse()]
}

const noFunctions: ReadonlyArray<never> = []
const untraced: PlanParts['traced'] = new Map()

/** Reads functions for the first time. The first guard among them is that of the operation. */
const planFromFunctions = (functions: ReadonlyArray<Function>): Plan => {
  const own = functions.find(isGuard)
  const at = functions.findIndex(isGuard)
  const after = functions.slice(at + 1)
  return planned({
    applications: noFunctions,
    ahead: at < 1 ? noFunctions : functions.slice(0, at),
    own,
    levels: noFunctions,
    guard: own,
    // `filter` makes an array with room for more
    after: after.every(isWritten) ? after : after.filter(isWritten),
    traced: untraced,
  })
}

/** The plan of a layer: that which it carries, with the functions that were added or replaced since. */
export const planOf = (layer: PlannedLayer): Plan => {
  const { [planMark]: plan, stack } = layer
  if (plan === undefined) return planFromFunctions(stack)
  return hasSameFunctions(plan, stack) ? plan : (compared(plan, stack) ?? reread(plan, stack))
}

/** The plan that a layer carries. `planOf` returns it as long as the functions of the layer are those of this plan. */
export const carriedPlanOf = (layer: PlannedLayer): Plan | undefined => layer[planMark]

// True for most layers. They are read at each level, so nothing is allocated or called for them
const hasSameFunctions = ({ functions }: Plan, stack: ReadonlyArray<Function>): boolean => {
  if (stack.length !== functions.length) return false
  for (let at = 0; at < functions.length; at++) if (functions[at] !== stack[at]) return false
  return true
}

// Compares function by function; `undefined` if they do not fit the plan
const compared = (plan: Plan, stack: ReadonlyArray<Function>): Plan | undefined => {
  const first = plan.applications.length + plan.ahead.length + (plan.guard === undefined ? 0 : 1)
  const end = plan.functions.length - plan.applications.length
  const after: Function[] = []
  const traced = new Map<Function, Function>()
  let at = 0
  for (const runs of stack) {
    const f = plan.functions[at]
    if (isParamHook(runs) && (f === undefined || originalOf(f) !== originalOf(runs))) {
      after.push(runs)
      continue
    }
    if (f === undefined) return undefined
    if (runs !== f) traced.set(f, runs)
    if (at >= first && at < end && isWritten(f)) after.push(f)
    at++
  }
  return at === plan.functions.length ? planned({ ...plan, after, traced }) : undefined
}

// A program that is no tracer changed the functions. If the guard is still there, its decision counts
const reread = (plan: Plan, stack: ReadonlyArray<Function>): Plan => {
  const others = new Set<Function>(plan.applications.flatMap(({ begin, end }) => [begin, end]))
  const { applications } = plan
  const read = planFromFunctions(stack.filter((f) => !others.has(f)))
  const isSame = read.guard !== undefined && read.guard.requirement === plan.guard?.requirement
  const { own, levels, guard } = isSame ? plan : read
  return planned({ ...read, applications, own, levels, guard })
}

/** The functions of an operation, as they were written, with the guard that is enforced. */
export const writtenIn = ({ applications: { length }, functions }: Plan): ReadonlyArray<Function> =>
  (length === 0 ? functions : functions.slice(length, -length)).filter(isWritten)

/** Where the guard is among the functions; -1 if there is none. */
export const guardIndexIn = ({ applications, ahead, guard }: Plan): number =>
  guard === undefined ? -1 : applications.length + ahead.length

/**
 * Gives a layer its plan, and the functions of it. They are always in a new array, because the layers of one
 * `get([path, path], ...)` share theirs, and so do copies by older routers.
 */
export const writePlan = (layer: { stack: unknown; [planMark]?: Plan }, plan: Plan): Plan => {
  const { functions, traced } = plan
  layer.stack = traced.size === 0 ? [...functions] : functions.map((f) => traced.get(f) ?? f)
  layer[planMark] = plan
  return plan
}
