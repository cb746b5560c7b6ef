/**
 * The settings of the cross-site check of an operation: from `authSettings` and `apiApp`, in the order in which a
 * request passes them.
 *
 * It runs nothing, because marks say what each of them adds.
 */
import type { CrossOriginPolicy } from '../core/CrossOrigin.js'
import type { Settings } from '../core/Settings.js'
import { applicationAdditionOf, applicationsOf } from '../koa/application.js'
import { additionOf } from '../koa/authSettings.js'
import { isGuard } from '../koa/guardMark.js'
import { functionsOf } from '../koa/layer.js'
import type { PathLayer, Route } from './Route.js'
import { relate } from './RoutedPath.js'
import type { RunsFirst } from './shadows.js'

/** The settings of an operation. If some hold only for a part of its requests, the weaker ones count. */
export const settingsAt = (
  route: Route,
  layers: ReadonlyArray<PathLayer>,
  runsFirst: RunsFirst,
  outer: Settings,
): CrossOriginPolicy => {
  const applications = applicationsOf(route.layer)
  const entered = new Set<Function>()
  const under = (settings: Settings, f: Function): Settings => {
    const added = additionOf(f)?.(settings)
    if (added !== undefined || entered.has(f)) return added ?? settings
    entered.add(f)
    return applicationAdditionOf(f)?.(settings) ?? settings
  }
  const above = layers
    .filter(({ layer }) => layer.methods.length === 0)
    .filter((one) => runsFirst(one, route) && applicationsOf(one.layer).every((each) => applications.includes(each)))
    .map((one) => ({ functions: writtenIn(one), relation: relate(one.accepted, route.accepted) }))
    .filter(({ relation }) => relation.overlap !== 'no')
  const inherited = above.reduce((settings, { functions, relation }) => {
    const inner = functions.reduce(under, settings)
    return relation.isAround ? inner : weaker(settings, inner)
  }, outer)
  const own = writtenIn(route)
  return own.slice(0, Math.max(own.findIndex(isGuard), 0)).reduce(under, inherited)
}

const writtenIn = ({ layer }: PathLayer): ReadonlyArray<Function> => functionsOf(layer).map(({ written }) => written)

const weaker = (one: Settings, other: Settings): Settings => ({
  ...other,
  csrf: one.csrf && other.csrf,
  trustedOrigins: new Set([...one.trustedOrigins, ...other.trustedOrigins]),
})
