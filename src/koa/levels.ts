/**
 * Levels: how the decision of a router gets into the layer of each of its routes (spec 5.6).
 *
 * The requirement of an operation is the first one that was decided, in this order: the operation, the registration
 * call, the router's own, the parent's registration call, the parent's own, ..., the application. It is settled when a
 * route is registered or mounted. `withAuth(a)(router)` is a copy that watches its stack, because all routes are added
 * there, also mounted ones. Mounting clones layers but keeps their functions, so guards survive any depth.
 *
 * The last `withAuth` on a router wins. The guards of an earlier one are known by their level, and are removed.
 *
 * spec/levels/router-facts.http.spec.ts pins the facts of @koa/router that this relies on.
 */
import { levelMark } from '../core/data.js'
import * as Requirement from '../core/Requirement.js'
import { applicationOf, arrangedWithin, exchangeApplication, putAround, setApplication } from './application.js'
import { stepsWithin } from './steps.js'
import { debuggedRouter } from './development.js'
import { guardFor } from './guard.js'
import {
  isGuard,
  arranged,
  asWritten,
  exchanged,
  functionsOf,
  guardAmong,
  hasLostItsGuard,
  isArranged,
  unshare,
  write,
  copyLayer,
  copyRouter,
  forgetPosition,
  isLayer,
  watched,
  type Level,
  type Marked,
  type Step,
  type LayerFunction,
} from './layer.js'
import { labelOf } from './operations.js'
import type { Layer, RouterInstance } from './AuthRouter.js'

/**
 * A copy of a router. This requirement guards its present and future operations that do not decide themselves, and
 * `then` runs after it. The argument is not changed.
 */
export const atLevel =
  (requirement: Requirement.Requirement, name?: string, then: ReadonlyArray<Step> = []) =>
  <S, C>(router: RouterInstance<S, C>): RouterInstance<S, C> => {
    const level: Level = { name: name ?? `router ${router.opts.prefix ?? ''}`.trimEnd() }
    const guarded = guarding(requirement, level, then)

    // a copy is a separate application with the same settings
    const copied = applicationOf(router)
    const application = copied && { ...copied, identity: {} }

    const install = (layer: Layer<S, C>): void => {
      // called only for a message, because it takes longer than all the rest
      const label = () => labelOf(layer)
      // `router.get(withAuth(a), '/x', handler)`: @koa/router takes what comes before a path for the name of the route
      if (isGuard(layer.name))
        throw new TypeError(`${label()}: withAuth(...) comes before the path; write it right after the path`)
      const before = functionsOf(layer)
      forgetPosition(layer)
      const isFinished = application === undefined && isArranged(layer, before)
      if (isFinished && decidesItself(requirement, guardAmong(before))) return unshare(layer)
      if (hasLostItsGuard(layer, before)) {
        throw new TypeError(
          `${label()}: its functions were replaced, and withAuth(...) is not among them any more; call withAuth(a)(router) before they are replaced`,
        )
      }
      const isRoute = layer.methods.length > 0
      const functions = arrangedWithin(before, (own) => {
        const inOrder = arranged(own, label)
        return isRoute ? guarded(inOrder) : inOrder
      })
      write(layer, putAround(layer, functions, application))
    }

    const previous = levelOf(router)
    const stack = router.stack.map((layer) => {
      const copy = copyLayer(layer)
      if (previous !== undefined) takeOut(copy, previous)
      if (copied !== undefined && application !== undefined) exchangeApplication(copy, copied, application)
      install(copy)
      return copy
    })
    const add = (given: ReadonlyArray<unknown>): void => {
      // Safe: whatever its context, it is put into this router
      for (const layer of given.filter(isLayer) as unknown as Layer<S, C>[]) install(layer)
    }
    const copy = Object.defineProperties(setApplication(copyRouter(router), application), {
      // not writable: no other stack can replace it
      stack: { value: watched(stack, add), enumerable: true, writable: false },
      [levelMark]: { value: level, enumerable: true, configurable: true, writable: true },
    })
    return debuggedRouter(copy)
  }

// Whether the guard of an operation stays as it is below a level
const decidesItself = (above: Requirement.Requirement, own: Marked | undefined): boolean =>
  own !== undefined && Requirement.Monoid.concat(above, own.requirement) === own.requirement

// Puts the guard of a level in front of the functions of a route. If the route has one, they become one, or it stays
const guarding = (requirement: Requirement.Requirement, level: Level, then: ReadonlyArray<Step>) => {
  const guard = asWritten(guardFor(requirement, { levels: [level.name], level, then }))
  return (functions: ReadonlyArray<LayerFunction>): ReadonlyArray<LayerFunction> => {
    const own = guardAmong(functions)
    const decision = own?.requirement ?? Requirement.inherit
    const combined = Requirement.Monoid.concat(requirement, decision)
    if (combined === decision) return functions
    if (own === undefined) return [guard, ...functions]
    const both = guardFor(combined, {
      levels: [level.name, ...own.levels],
      level,
      replaces: own,
      then: stepsWithin(then, own.then, decision._tag === 'Also' ? decision.authenticators.length : 0),
    })
    return exchanged(functions, own, both)
  }
}

// Removes the guard that a level put into a layer
const takeOut = <S, C>(layer: Layer<S, C>, level: Level): void => {
  const functions = functionsOf(layer)
  const placed = guardAmong(functions)
  if (placed?.level === level) write(layer, exchanged(functions, placed, placed.replaces))
}

const levelOf = (router: object): Level | undefined => {
  const { [levelMark]: level }: { readonly [levelMark]?: Level } = router
  return level
}
