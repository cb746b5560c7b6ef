/**
 * What protects each operation of a router or of a Koa application.
 *
 * Of an application, it is about the routers that it mounts with `app.use`, in this order, below its guards (`guardApp`). It cannot see
 * what a function of `app.use` mounts inside itself (koa-mount).
 */
import type { Authenticator } from '../core/Authenticator.js'
import type { CrossOriginPolicy } from '../core/CrossOrigin.js'
import { admitsAnonymous, isAmbient } from '../core/Description.js'
import * as Requirement from '../core/Requirement.js'
import { defaults, type Settings } from '../core/Settings.js'
import { allOf } from '../core/allOf.js'
import { declareFactory } from '../core/options.js'
import { isApplication, isGuard, routerOf, type AnyApplication, type AnyRouter, type Guarding } from '../koa/layer.js'
import { operationsOf, routersOf } from '../koa/operations.js'
import { additionOf } from '../koa/settings.js'
import type { Audit } from './Audit.js'
import type { Route } from './RoutedPath.js'
import type { Decider } from './findings.js'
import { auditOf, routerReadingOf, withTable, type MiddlewareLayer, type RouterReading } from './router.js'

/**
 * Reports, for each operation of a router and of the routers mounted on it, what protects it, which level decided, and which
 * operation answers its requests first. It also reports middleware that no guard covers. Store it as a snapshot, and every change
 * of protection shows as a difference. Of a Koa application, it reports all routers that `app.use` mounts, and its middleware. Throws a
 * TypeError if the argument is neither, and for an application that mounts no router.
 *
 * @example
 * import Router from '@koa/router'
 * import { withAuth } from 'koa-with-auth'
 * import { audit } from 'koa-with-auth/audit'
 *
 * const router = withAuth(() => ({ user: 'anna' }))(new Router())
 * router.get('/health', withAuth(null), (ctx) => {
 *   ctx.body = 'ok'
 * })
 * assert.strictEqual(
 *   String(audit(router)),
 *   'OPERATION    PROTECTED BY  DECIDED BY  NOTES\nGET /health  public        operation',
 * )
 */
export const audit = (router: AnyRouter | AnyApplication): Audit => {
  if (!isApplication(router)) return auditOf(routerReadingOf('audit(router)', router))
  const read = readApplication(router)
  if (read === undefined) throw noRouterIn('audit(app)')
  return read.audit
}

export const noRouterIn = (caller: string): TypeError =>
  new TypeError(`${caller}: the application mounts no router; write app.use(router.routes()) first`)

declareFactory('audit', audit)

/** The result of reading an application, in the order in which requests reach its routers and functions. */
export interface ApplicationReading {
  readonly reading: Pick<RouterReading, 'routes' | 'middleware'>
  readonly audit: Audit
}

export interface Audited {
  readonly audit: Audit
  readonly routers: ReadonlyArray<AnyRouter>
  readonly deciders: ReadonlyArray<Decider>
}

/** Reads an application; `undefined` if it mounts no router, and has no guard of its own (`guardApp`). */
export const readApplication = ({ middleware }: AnyApplication): ApplicationReading | undefined => {
  const read: RouterReading[] = []
  const audits: Audit[] = []
  let settings: Settings = defaults
  const around: Around[] = []
  let isKnown = false
  for (const f of middleware) {
    const router = routerOf(f)
    isKnown ||= isGuard(f) || router !== undefined
    if (isGuard(f)) {
      around.push({ guard: f, settings })
      continue
    }
    const inner = router === undefined ? alone(f) : routerReadingOf('audit(router)', router, settings)
    const reading = around.reduceRight(within, inner)
    settings = additionOf(f)?.(settings) ?? settings
    audits.push(
      auditOf(
        reading,
        read.flatMap(({ routes }) => routes),
      ),
    )
    read.push(reading)
  }
  if (!isKnown) return undefined
  return {
    reading: {
      routes: read.flatMap(({ routes }) => routes),
      middleware: read.flatMap((one) => one.middleware),
    },
    audit: withTable({
      operations: audits.flatMap(({ operations }) => operations),
      middleware: audits.flatMap((audited) => audited.middleware),
    }),
  }
}

/** What decides in an application, by name: its own guards, and the operations of its routers. */
export const decidersIn = (app: AnyApplication): ReadonlyArray<Decider> => [
  ...app.middleware.filter(isGuard).map(({ requirement }) => ({ name: 'guardApp(a)', requirement })),
  ...routersOf(app).flatMap((router) => operationsOf(router)),
]

// A function of `app.use` that is no router: no request to an operation can be read from it
const alone = (f: Function): RouterReading => ({
  routes: [],
  middleware: [{ path: '/*', functions: [f], guarded: 'no' }],
  runsFirst: () => false,
  settingsOf: () => defaults,
})

interface Around {
  readonly guard: Guarding
  readonly settings: CrossOriginPolicy
}

// What was read, below a guard of the application: a request must pass both
const within = (reading: RouterReading, { guard, settings }: Around): RouterReading => {
  const outer = Requirement.effective(guard.requirement)
  if (outer === undefined) return reading
  const both = (inner: Authenticator<unknown> | undefined): Authenticator<unknown> =>
    inner === undefined ? outer : allOf([outer, inner])
  // the policy that a cross-site write meets, if `inner` meets `policy`
  const policyWithin = (inner: Authenticator<unknown> | undefined, policy: CrossOriginPolicy): CrossOriginPolicy => {
    if (!isAmbient(outer.description)) return policy
    return inner !== undefined && isAmbient(inner.description) ? stricter(settings, policy) : settings
  }
  const readings = new Map<Route, Route>()
  const guarded = (route: Route): Route => {
    const made = {
      ...route,
      guard: route.guard ?? guard,
      requirement: Requirement.guardedBy(both(innerOf(route))),
      levels: [...guard.levels, ...route.levels],
      isAfterItsHandler: false,
    }
    readings.set(made, route)
    return made
  }
  const covered = (layer: MiddlewareLayer): MiddlewareLayer => {
    const { covering } = layer
    if (covering === undefined && (layer.guarded !== 'no' || admitsAnonymous(outer.description))) return layer
    const inner = covering?.authenticator
    return {
      ...layer,
      guarded: 'yes',
      covering: { authenticator: both(inner), policy: policyWithin(inner, covering?.policy ?? settings) },
    }
  }
  return {
    ...reading,
    routes: reading.routes.map(guarded),
    middleware: reading.middleware.map(covered),
    settingsOf: (route) => {
      const original = readings.get(route) ?? route
      return policyWithin(innerOf(original), reading.settingsOf(original))
    },
  }
}

const innerOf = ({ isAfterItsHandler, requirement }: Route): Authenticator<unknown> | undefined =>
  isAfterItsHandler ? undefined : Requirement.effective(requirement)

// A write that either check refuses is refused
const stricter = (one: CrossOriginPolicy, other: CrossOriginPolicy): CrossOriginPolicy => {
  if (!one.csrf || !other.csrf || one.trustedOrigins === other.trustedOrigins) return one.csrf ? one : other
  return {
    ...one,
    trustedOrigins: new Set([...one.trustedOrigins].filter((origin) => other.trustedOrigins.has(origin))),
  }
}
