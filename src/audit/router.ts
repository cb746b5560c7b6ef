/** The protection of each operation, read from the guards in the layers, because these run. Middleware above the router is unknown. */
import type { Authenticator } from '../core/Authenticator.js'
import { isSafe, originRules, type CrossOriginPolicy } from '../core/CrossOrigin.js'
import { alternativesOf } from '../core/Alternative.js'
import { admitsAnonymous, isAmbient, leaves, objectConditionsIn, type Description } from '../core/Description.js'
import * as Requirement from '../core/Requirement.js'
import { defaults, type Settings } from '../core/Settings.js'
import { functionDigest } from '../core/functionName.js'
import { operationNote, originalOf, pathInWords, type AnyRouter } from '../koa/layer.js'
import { newRouter } from '../koa/router.js'
import { docsAmong } from '../koa/operations.js'
import { parameterNames, unnamedIn } from '../koa/parameters.js'
import type { ApplicationLevel } from '../koa/plan.js'
import { additionOf, isSettings } from '../koa/settings.js'
import { table, type Access, type Audit, type AuditedOperation, type Protection } from './Audit.js'
import { relate } from './RoutedPath.js'
import { shadowedBy, orderOf, pathLayersOf, routesOf, isOfSeal } from './routes.js'
import type { PathLayer, Route, RunsFirst } from './routes.js'
import { nearbyAmong } from './paths.js'
import { descriptionInWords, objectInWords, waysOf } from './Way.js'

/** The settings of an operation, read from marks in the order of a request. If some hold for a part of its requests, the weaker count. */
const settingsAt = (route: Route, layers: PathLayer[], runsFirst: RunsFirst, outer: Settings): CrossOriginPolicy => {
  const { applications, ahead, guard } = route.plan
  // each layer of an application begins with it, but a request enters it once
  const entered = new Set<ApplicationLevel['begin']>()
  const enter = (settings: Settings, { begin, addition }: ApplicationLevel): Settings => {
    if (entered.has(begin)) return settings
    entered.add(begin)
    return addition()(settings)
  }
  const under = (settings: Settings, f: Function): Settings =>
    isOfSeal(f) ? settings : (additionOf(f)?.(settings) ?? settings)
  const above = layers
    .filter((one) => runsFirst(one, route) && one.plan.applications.every((each) => applications.includes(each)))
    .map((one) => ({ one, relation: relate(one.accepted, route.accepted) }))
    .filter(({ relation }) => relation.overlap !== 'no')
  const inherited = above.reduce((settings, { one: { plan, functions }, relation }) => {
    const inner = functions.reduce(under, plan.applications.reduce(enter, settings))
    return relation.isSuperset ? inner : weaker(settings, inner)
  }, outer)
  return guard === undefined ? inherited : ahead.reduce(under, applications.reduce(enter, inherited))
}

const weaker = (one: Settings, other: Settings): Settings => ({
  ...other,
  csrf: one.csrf && other.csrf,
  trustedOrigins: originRules.joined(one.trustedOrigins, other.trustedOrigins),
})

export interface CheckedRoute extends Route {
  readonly policy: CrossOriginPolicy
}

export interface RouterReading {
  readonly routes: ReadonlyArray<CheckedRoute>
  readonly middleware: ReadonlyArray<MiddlewareLayer>
  readonly runsFirst: RunsFirst
  /** The hosts whose requests the router answers, in words; `undefined` for all. */
  readonly host?: string | undefined
}

/** Reads a router. Throws a TypeError for anything else. `outer`: the settings above it, if they are known. */
export const routerReadingOf = (caller: string, router: AnyRouter, outer: Settings = defaults): RouterReading => {
  const layers = pathLayersOf(caller, router)
  const runsFirst = orderOf(router)
  const routes = routesOf(layers)
  const around = layers.filter(({ layer }) => layer.methods.length === 0)
  return {
    routes: routes.map((route) => ({ ...route, policy: settingsAt(route, around, runsFirst, outer) })),
    middleware: middlewareLayers(around, routes, runsFirst),
    runsFirst,
    // only that of the router that an application mounts counts; one that it mounts itself is not asked
    host: router.host === undefined ? undefined : [router.host].flat().map(String).join(' '),
  }
}

/** Makes the audit of a reading. `before`: the operations of routers that requests reach before this router. */
export const auditOf = ({ routes, middleware, runsFirst, host }: RouterReading, before: Route[] = []): Audit => {
  const [beforeNear, near] = [nearbyAmong(before), nearbyAmong(routes)]
  return withTable({
    operations: routes.map((route) => ({
      operation: route.name,
      method: route.method,
      path: pathInWords(route.layer),
      ...(host !== undefined && { host }),
      access: accessOf(route),
      ...protectionOf(route),
      docs: docsOf(route),
      decidedBy: [...route.levels],
      shadowedBy: [
        ...shadowedBy(route, beforeNear(route.accepted), () => true),
        ...shadowedBy(route, near(route.accepted), runsFirst),
      ].map(({ route: ahead, ...shadow }) => ({ operation: ahead.name, access: accessOf(ahead), ...shadow })),
      ...auditedParameters(route),
      beforeGuard: descriptionOf(route) ? route.ahead.map(auditedFunctionName) : [],
      behindGuard: descriptionOf(route) ? (route.guard?.then ?? []).map(({ run }) => auditedFunctionName(run)) : [],
      undescribed: undescribedIn(route),
    })),
    middleware: middleware.map(({ path, functions, guarded, covering }) => ({
      path,
      functions: functions.map(middlewareName),
      guarded,
      // it covers requests of every method
      ...(covering && { guard: protectionBy(covering.authenticator.description, ['POST'], covering.policy) }),
    })),
  })
}

export const withTable = (audited: Omit<Audit, 'toString'>): Audit =>
  Object.defineProperty({ ...audited }, 'toString', { value: () => table(audited) })

/** The authenticator that its guard enforces; `undefined` if the handler runs before the guard. */
export const enforcedIn = ({ isAfterItsHandler, requirement }: Route): Authenticator<unknown> | undefined =>
  isAfterItsHandler ? undefined : Requirement.effective(requirement)

const descriptionOf = (route: Route): Description | undefined => enforcedIn(route)?.description

const accessOf = (route: Route): Access => {
  if (route.guard?.isForTests === true) return 'public'
  const demand = descriptionOf(route)
  if (demand !== undefined) return admitsAnonymous(demand) ? 'optional' : 'guarded'
  return route.requirement._tag === 'Public' && !route.isAfterItsHandler ? 'public' : 'undecided'
}

const unneeded = { csrf: 'not needed', trustedOrigins: [] } as const

const protectionOf = (route: CheckedRoute): Protection => {
  const demand = descriptionOf(route)
  const byGuard = demand && protectionBy(demand, route.methods, route.policy)
  const open = (protection: string): Protection => ({ ...unneeded, ...byGuard, protection, ways: [] })
  if (route.isAfterItsHandler) return open('undecided (withAuth(...) comes after the handler)')
  if (route.guard?.isForTests === true) return open('public (withPrincipal, for tests)')
  return byGuard ?? open(accessOf(route) === 'public' ? 'public' : 'undecided (public)')
}

const protectionBy = (demand: Description, methods: ReadonlyArray<string>, policy: CrossOriginPolicy): Protection => ({
  protection: descriptionInWords(demand),
  ways: waysOf(demand),
  ...crossSiteCheck(demand, methods, policy),
})

const auditedParameters = (route: Route): Pick<AuditedOperation, 'objects' | 'unchecked' | 'unread'> => {
  const description: Description = descriptionOf(route) ?? { _tag: 'AnyOf', members: [] }
  const conditions = objectConditionsIn(description)
  // in each way in: no alternative may ask its callers less
  const read = alternativesOf(description).map(({ objects }) =>
    objects.map(({ object, unchecked }) => object?.param ?? unchecked?.param),
  )
  const isGuarded = accessOf(route) === 'guarded' && docsOf(route) !== 'page'
  const parameters = isGuarded ? [...parameterNames(route.layer), ...unnamedIn(route.layer)] : []
  return {
    objects: conditions.flatMap(({ object }) => (object === undefined ? [] : [objectInWords(object)])),
    unchecked: conditions.flatMap(({ unchecked }) => unchecked ?? []),
    unread: parameters.filter((name) => !read.every((names) => names.includes(name))),
  }
}

const crossSiteCheck = (
  demand: Description,
  methods: ReadonlyArray<string>,
  { csrf, trustedOrigins, forwarded }: CrossOriginPolicy,
): Pick<Protection, 'csrf' | 'trustedOrigins'> => {
  if (!isAmbient(demand) || (forwarded !== true && methods.every(isSafe))) return unneeded
  return csrf ? { csrf: 'checked', trustedOrigins: [...trustedOrigins] } : { csrf: 'off', trustedOrigins: [] }
}

const docsOf = ({ functions }: Route): AuditedOperation['docs'] => {
  if (docsAmong(functions) !== undefined) return 'page'
  const note = functions.map(operationNote).find((one) => one !== undefined)
  // Safe: only `operation` writes it
  const options = note?.options as { readonly undocumented?: boolean } | undefined
  return options?.undocumented === true ? 'hidden' : 'listed'
}

const undescribedIn = (route: Route): AuditedOperation['undescribed'] => {
  const demand = descriptionOf(route)
  const isCustom =
    demand !== undefined && leaves(demand).some(({ scheme, fields }) => scheme === undefined && fields === undefined)
  return [...(isCustom ? ['authenticator' as const] : []), ...(route.accepted.isPattern ? [] : ['path' as const])]
}

export interface MiddlewareLayer {
  /** Where it runs: `/api/*` is the path `/api` and everything below it. */
  readonly path: string
  readonly functions: ReadonlyArray<Function>
  /** Whether each request that it sees has passed a guard. */
  readonly guarded: 'yes' | 'no' | 'never runs'
  readonly covering?: { readonly authenticator: Authenticator<unknown>; readonly policy: CrossOriginPolicy }
}

/** Middleware of `use` runs, in the order of registration, for requests that an operation matches, and can answer them itself. */
const middlewareLayers = (
  layers: ReadonlyArray<PathLayer>,
  routes: ReadonlyArray<Route>,
  runsFirst: RunsFirst,
): ReadonlyArray<MiddlewareLayer> =>
  layers.map((placed) => {
    const met = routes.filter((route) => relate(placed.accepted, route.accepted).overlap !== 'no')
    const isCovered = met.every((route) => accessOf(route) === 'guarded' && runsFirst(route, placed))
    const guarded = met.length === 0 ? 'never runs' : isCovered ? 'yes' : 'no'
    return { path: scopeOf(placed), functions: placed.functions, guarded }
  })

const scopeOf = ({ layer: { path, opts } }: PathLayer): string => {
  if (typeof path !== 'string') return String(path)
  return opts.end === false || opts.pathAsRegExp === true
    ? `${path.replace(wildcardEnd, '').replace(/\/$/, '')}/*`
    : path
}

// The router's own patterns for `use(f)` and `use('', f)`
const wildcardEnd = /(?:\{\/\*rest\}|\(\?:\\\/\|\$\))$/

const auditedFunctionName = (f: Function): string => {
  const param: unknown = Reflect.get(f, 'param')
  const original = originalOf(f)
  const name = original.name || `function without a name ${functionDigest(original)}`
  return typeof param === 'string' ? `param ${param}: ${name}` : name
}

const middlewareName = (f: Function): string => {
  if (isSettings(f)) return 'authSettings'
  return isAllowedMethods(f) ? 'allowedMethods' : auditedFunctionName(f)
}

let allowedMethods: string | undefined

/** Whether a function is `allowedMethods()` of a router: it has no name since @koa/router 15, and the same text for all routers. */
export const isAllowedMethods = (f: Function): boolean =>
  sourceText(originalOf(f)) === (allowedMethods ??= sourceText(newRouter().allowedMethods()))

const sourceText = (f: Function): string => Function.prototype.toString.call(f)
