/**
 * Levels: how the decision of a router gets into the layer of each of its routes (spec 5.6).
 *
 * The requirement of an operation is the first requirement that was decided, in this order: the operation, the registration
 * call, the router's own, the parent's registration call, the parent's own, ..., the application. It is settled when a
 * route is registered or mounted: `withAuth(a)(router)` is a copy that watches its stack, because all routes are added there.
 *
 * The last `withAuth` on a router wins: the decision of an earlier one is taken off the list.
 *
 * Plain routers have operations with guards, too. `refuseLateGuards` changes how their class registers an operation.
 */
import { aheadOfParams } from '../core/data.js'
import * as Requirement from '../core/Requirement.js'
import { guardFor } from './guard.js'
import {
  copyLayer,
  copyRouter,
  dropStatefulFlags,
  guardLast,
  isGuard,
  isGuardLate,
  isLayer,
  isParamHook,
  isWritten,
  labelOf,
  observed,
  onMutation,
  originalOf,
} from './layer.js'
import type { GuardFunction, GuardProperties, ReadLayer, ThenMiddleware } from './layer.js'
import { carriedPlanOf, planned, planOf, writePlan } from './plan.js'
import type { ApplicationLevel, LevelDecision, Level, Plan } from './plan.js'
import { checkParameters, refusePattern } from './parameters.js'
import { isRouter, type Layer, type RouterInstance } from './router.js'

const levelMark = Symbol.for('koa-with-auth/level')

const guardTwice = 'withAuth(...) is in it twice; remove one'

interface LevelOptions {
  /** Its name in the audit. Default: `router` and its prefix. */
  readonly name?: string | undefined
  readonly then?: ReadonlyArray<ThenMiddleware> | undefined
  /** The application that it begins. A copy of an application is a separate one with the same settings. */
  readonly application?: ApplicationLevel | undefined
}

/** Copies a router. Operations without their own decision, now and later, get this requirement, followed by `then`. */
export const atLevel =
  (requirement: Requirement.Requirement, { name, then = [], application: begun }: LevelOptions = {}) =>
  <S, C>(router: RouterInstance<S, C>): RouterInstance<S, C> => {
    const previous = levelOf(router)
    const application = begun ?? (previous?.application && { ...previous.application })
    const level: Level = { name: name ?? `router ${router.opts.prefix ?? ''}`.trimEnd(), application }
    const mine: readonly [LevelDecision] = [{ by: level, guard: guardFor(requirement, { levels: [level.name], then }) }]

    const install = (layer: Layer<S, C>, before: Plan): Plan => {
      if (isNamedByGuard(layer)) throw beforePath(layer)
      dropStatefulFlags(layer)
      const inOrder = functionsInOrder(before, layer)
      const guarded = layer.methods.length > 0 ? underLevel(mine, inOrder) : inOrder
      refusePattern(layer, guarded.guard?.requirement)
      return writePlan(layer, withApplication(guarded, application))
    }

    // Most layers were already checked by an inner level, and share one guard
    let unchanged: GuardFunction | undefined
    const stack = router.stack.map((layer) => {
      const copy = copyLayer(layer)
      const plan = keptPlanOf(layer)
      if (plan.guard === unchanged && isChecked(plan, layer)) writePlan(copy, plan)
      else {
        const installed = install(copy, copiedOf(plan, previous, application))
        if (installed === plan && previous === undefined && application === undefined) unchanged = plan.guard
      }
      return copy
    })
    const add = (given: ReadonlyArray<unknown>): void => {
      // Safe: whatever its context, it is put into this router
      for (const layer of given.filter(isLayer) as unknown as Layer<S, C>[]) install(layer, keptPlanOf(layer))
    }
    const copy = Object.defineProperties(copyRouter(router), {
      // not writable: no other stack can replace it
      stack: { value: onMutation(stack, add), enumerable: true, writable: false },
      [levelMark]: { value: level, enumerable: true, configurable: true, writable: true },
    })
    watchOriginal(router, copy)
    return copy
  }

const isChecked = <S, C>(plan: Plan, layer: Layer<S, C>): boolean =>
  plan.levels.length > 0 && plan === carriedPlanOf(layer)

export const levelOf = (router: object): Level | undefined => {
  const { [levelMark]: level }: { readonly [levelMark]?: Level } = router
  return level
}

// The plan of a layer, unless a change that no tracer makes removed its guard
const keptPlanOf = <S, C>(layer: Layer<S, C>): Plan => {
  const plan = planOf(layer)
  if (plan.guard !== undefined || carriedPlanOf(layer)?.guard === undefined) return plan
  throw new TypeError(
    `${labelOf(layer)}: its functions were replaced, and withAuth(...) was lost; call withAuth(a)(router) before they are replaced`,
  )
}

/** The plan with its functions in the order of the table in `plan.ts`. Throws a TypeError for two guards, and for a guard without a handler. */
const functionsInOrder = (plan: Plan, layer: ReadLayer): Plan => {
  if (plan.guard === undefined) return plan
  if (plan.after.some(isGuard)) throw new TypeError(`${labelOf(layer)}: ${guardTwice}`)
  if (plan.after.length === 0) throw new TypeError(`${labelOf(layer)}: ${guardLast}`)
  return plan.ahead.length === 0 ? plan : aheadInOrder(plan)
}

const aheadInOrder = (plan: Plan): Plan => {
  const { ahead, after, traced } = plan
  if (ahead.every((f) => isKeptAhead(traced.get(f) ?? f))) return plan
  const kept = ahead
    .filter((f) => !isParamHook(f))
    .map((f) => (isKeptAhead(traced.get(f) ?? f) ? f : keptAhead(plan, f)))
  return planned({ ...plan, ahead: kept, after: [...ahead.filter(isParamHook), ...after] })
}

const isKeptAhead = (f: Function): boolean => 'param' in f && f.param === aheadOfParams

// Middleware that the user put ahead of a guard (a rate limiter) also runs before `param` hooks that come later
const keptAhead = ({ traced }: Plan, f: Function): Function =>
  Object.assign((...args: ReadonlyArray<unknown>): unknown => Reflect.apply(traced.get(f) ?? f, undefined, args), {
    param: aheadOfParams,
    _originalFn: originalOf(f),
  })

/** Puts an application around a layer, unless it is there. */
const withApplication = (plan: Plan, application: ApplicationLevel | undefined): Plan =>
  application === undefined || plan.applications.includes(application)
    ? plan
    : planned({ ...plan, applications: [application, ...plan.applications] })

/** The plan with this level put outside of the decisions that it has. */
const underLevel = (level: readonly [LevelDecision], plan: Plan): Plan => {
  const together = joinDecisions(level[0].guard, plan.guard)
  if (together === plan.guard) return plan
  // most plans have no other level, so they share the list
  const levels = plan.levels.length === 0 ? level : [...level, ...plan.levels]
  return planned({ ...plan, levels, guard: guardOf(together) })
}

const withoutLevel = (level: Level, plan: Plan): Plan => {
  const [first, ...levels] = plan.levels
  if (first?.by !== level) return plan
  const { own, ahead, after } = plan
  const guard = guardOf(
    levels.reduceRight<GuardProperties | undefined>((inner, level) => joinDecisions(level.guard, inner), own),
  )
  // a plan without a guard has nothing ahead of it
  const functions = guard === undefined ? { ahead: [], after: [...ahead, ...after] } : { ahead, after }
  return planned({ ...plan, ...functions, levels, guard })
}

/** The plan of a layer in a copy of its router, before the copy's own level. */
const copiedOf = (plan: Plan, previous: Level | undefined, application: ApplicationLevel | undefined): Plan => {
  if (previous === undefined) return plan
  const { application: from } = previous
  const rest = withoutLevel(previous, plan)
  if (from === undefined || application === undefined) return rest
  return planned({ ...rest, applications: rest.applications.map((one) => (one === from ? application : one)) })
}

const joinDecisions = (outer: GuardProperties, inner: GuardProperties | undefined): GuardProperties | undefined => {
  const decision = inner?.requirement ?? Requirement.inherit
  const requirement = Requirement.Monoid.concat(outer.requirement, decision)
  if (requirement === decision) return inner
  if (inner === undefined) return outer
  const above = decision._tag === 'Also' ? decision.authenticators.length : 0
  const { then: own = [], levels } = outer
  const then = [...own.map((step) => ({ ...step, above })), ...(inner.then ?? [])]
  return { requirement, levels: [...levels, ...inner.levels], then }
}

const guardOf = (marked: GuardProperties | undefined): GuardFunction | undefined =>
  marked === undefined || isGuard(marked) ? marked : guardFor(marked.requirement, marked)

const replacedMethods = new WeakSet<object>()

type Call = (method: Function, router: unknown, given: ReadonlyArray<unknown>) => unknown

// Replaces a method of a class. A frozen class is left as it is
const replaceIn = (prototype: object, name: string, call: Call): void => {
  const method: unknown = Reflect.get(prototype, name)
  if (typeof method !== 'function') return
  const value = function (this: unknown, ...given: ReadonlyArray<unknown>): unknown {
    return call(method, this, given)
  }
  replacedMethods.add(value)
  Reflect.defineProperty(prototype, name, { value, writable: true, configurable: true, enumerable: false })
}

/**
 * Makes all routers of a class throw a TypeError for `router.get(path, handler, withAuth(a))`, and put observers behind a
 * guard. Operations without a guard are registered as before.
 *
 * A guard after the handler of an operation never runs, so the operation is open. Of two guards, only callers of both
 * would pass. A router that a level guards refuses them. Any other router knows nothing of guards, so its class gets
 * the check: an open operation must not wait for an audit to be found, nor a closed operation for a request. For observers
 * see `layer.ts`.
 */
export const refuseLateGuards = (type: unknown): void => {
  const prototype: unknown = typeof type === 'function' ? type.prototype : undefined
  if (typeof prototype !== 'object' || prototype === null || !('register' in prototype)) return
  if (typeof prototype.register !== 'function' || replacedMethods.has(prototype.register)) return
  replaceIn(prototype, 'register', (register, router, [path, methods, functions, ...rest]) => {
    checkGuardPlace(router, path, methods, functions, rest[0])
    const { length } = isRouter(router) ? router.stack : []
    const registered: unknown = Reflect.apply(register, router, [path, methods, withObservers(functions), ...rest])
    if (!isRouter(router)) return registered
    observeHooks(router, length)
    const checked = inApplications.get(router)
    if (checked !== undefined) checkFrom(router, checked)
    return registered
  })
  for (const name of ['routes', 'middleware']) replaceIn(prototype, name, checkWhereUsed)
  replaceIn(prototype, 'param', (param, router, given) => {
    const result: unknown = Reflect.apply(param, router, given)
    if (isRouter(router)) observeHooks(router, 0)
    return result
  })
}

// A `param` hook comes between a guard and the functions that it observes, and may answer their exceptions
const observeHooks = (router: RouterInstance, from: number): void => {
  for (const layer of router.stack.slice(from)) {
    if (layer.stack.some(isGuard) && layer.stack.some(isParamHook)) writePlan(layer, planOf(layer))
  }
}

// The routers that an application mounts, and how many of their layers were checked: no prefix can bring them another parameter
const inApplications = new WeakMap<RouterInstance, number>()

const checkFrom = (router: RouterInstance, first: number): void => {
  checkParameters(router.stack.slice(first))
  inApplications.set(router, router.stack.length)
}

// `app.use` reads `_name` of its argument, and `router.use` does not
const checkWhereUsed: Call = (make, router, given) => {
  const routes: unknown = Reflect.apply(make, router, given)
  noteMounted(router)
  if (typeof routes !== 'function' || !isRouter(router) || Object.hasOwn(routes, '_name')) return routes
  const check = (): void => checkFrom(router, 0)
  return Object.defineProperty(routes, '_name', { get: check, configurable: true })
}

// Of these routers there is a guarded copy, and they have no routes: a program that gives them a route has dropped the copy
const leftOpen = new WeakSet<object>()

const warnOfDropped = (router: unknown, layer: ReadLayer): void => {
  if (isRouter(router) && leftOpen.delete(router)) warnOfOpen(layer)
}

const warnOfOpen = (layer: ReadLayer): void => {
  const fix = 'keep the copy that it returns: const guarded = withAuth(a)(router)'
  process.emitWarning(
    `${labelOf(layer)} is open: withAuth(a)(router) does not change the router; ${fix}`,
    'OpenRouteWarning',
  )
}

// The originals of copies, and those of which a copy is mounted, or a copy of a copy
const originals = new WeakMap<object, object>()
const replacedByCopy = new WeakSet<object>()

const noteMounted = (router: unknown): void => {
  let original = typeof router === 'object' && router !== null ? originals.get(router) : undefined
  for (; original !== undefined; original = originals.get(original)) replacedByCopy.add(original)
}

// A program that serves a router with open routes, and no guarded copy of it, has dropped the copy. That is known at the first request: a
// router may be served twice, open and guarded, and mounted in any order
const watchOriginal = <S, C>(router: RouterInstance<S, C>, copy: RouterInstance<S, C>): void => {
  originals.set(copy, router)
  if (router.stack.length === 0 && levelOf(router) === undefined) leftOpen.add(router)
  if (router.stack.length === 0 || Object.hasOwn(router, 'match') || !replacedMethods.has(router.routes)) return
  const value: typeof router.match = (...given) => {
    Reflect.deleteProperty(router, 'match')
    const open = router.stack.find(({ methods, stack }) => methods.length > 0 && !stack.some(isGuard))
    if (open !== undefined && !replacedByCopy.has(router)) warnOfOpen(open)
    return router.match(...given)
  }
  Reflect.defineProperty(router, 'match', { value, writable: true, configurable: true, enumerable: false })
}

const checkGuardPlace = (router: unknown, ...[path, methods, functions, options]: ReadonlyArray<unknown>): void => {
  if (!Array.isArray(functions) || !Array.isArray(methods) || methods.length === 0) return
  const at = functions.findIndex(isGuard)
  const guard: unknown = functions[at]
  const written = path instanceof RegExp ? path : String(path)
  const layer = { path: written, methods: methods.map((method) => String(method).toUpperCase()), stack: [] }
  if (isNamedByGuard(options)) throw beforePath(layer)
  if (!isGuard(guard)) return warnOfDropped(router, layer)
  refusePattern(layer, guard.requirement)
  const isTwice = functions.slice(at + 1).some(isGuard)
  if (isTwice || isGuardLate(functions)) throw new TypeError(`${labelOf(layer)}: ${isTwice ? guardTwice : guardLast}`)
}

// `router.get(withAuth(a), '/x', handler)`: @koa/router takes an argument before a path for the name of the route
const isNamedByGuard = (options: unknown): boolean =>
  typeof options === 'object' && options !== null && isGuard(Reflect.get(options, 'name'))

const beforePath = (layer: ReadLayer): TypeError =>
  new TypeError(`${labelOf(layer)}: withAuth(...) comes before the path; write it right after the path`)

const withObservers = (functions: unknown): unknown => {
  if (!Array.isArray(functions) || !functions.every((f) => typeof f === 'function')) return functions
  const at = functions.findIndex(isGuard)
  return at === -1 ? functions : [...functions.slice(0, at + 1), ...observed(functions.slice(at + 1).filter(isWritten))]
}
