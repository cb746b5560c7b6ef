/**
 * The protection of each operation of a router or of a Koa application.
 *
 * Of an application, it is about the routers that it mounts with `app.use`, in this order, below its guards (`guardApp`). It cannot see
 * the applications that a function of `app.use` mounts inside itself (koa-mount).
 */
import type { Authenticator } from '../core/Authenticator.js'
import type { CrossOriginPolicy } from '../core/CrossOrigin.js'
import { admitsAnonymous, isAmbient } from '../core/Description.js'
import * as Requirement from '../core/Requirement.js'
import { defaults, type Settings } from '../core/Settings.js'
import { allOf } from '../core/allOf.js'
import { declareFactory } from '../core/options.js'
import { isApplication, isGuard, routerOf } from '../koa/layer.js'
import type { AnyApplication, AnyRouter, GuardFunction } from '../koa/layer.js'
import { additionOf } from '../koa/settings.js'
import { upstreamsOf } from '../koa/upstreams.js'
import type { Audit } from './Audit.js'
import type { Decider } from './findings.js'
import { auditOf, enforcedIn, routerReadingOf, withTable } from './router.js'
import type { CheckedRoute, MiddlewareLayer, RouterReading } from './router.js'

/**
 * Reports, for each operation of a router and of the routers mounted on it, its protection, which level decided, and which
 * operation answers its requests first. It also reports middleware that no guard covers. Store it as a snapshot, and every change
 * of protection shows as a difference. Of a Koa application, it reports all routers that `app.use` mounts, and its middleware. Throws a
 * TypeError if the argument is neither, and for an application without a router and without `guardApp`.
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
export const audit = (router: AnyRouter | AnyApplication): Audit => auditedBy('audit', router).audit

declareFactory('audit', audit)

/** An application or a router as it was read, in the order in which requests reach the routers and functions of an application. */
export interface Audited {
  readonly reading: Pick<RouterReading, 'routes' | 'middleware'>
  readonly audit: Audit
  readonly routers: ReadonlyArray<AnyRouter>
  /** The guards of the application, and the operations of its routers. */
  readonly deciders: ReadonlyArray<Decider>
}

export const auditedBy = (caller: 'audit' | 'seal', given: AnyRouter | AnyApplication): Audited => {
  const read = isApplication(given) ? readApplication(given) : readRouter(caller, given)
  if (read !== undefined) return read
  throw new TypeError(`${caller}(app): the application mounts no router; write app.use(router.routes()) first`)
}

export const readRouter = (caller: 'audit' | 'seal', router: AnyRouter): Audited => {
  const reading = routerReadingOf(`${caller}(router)`, router)
  return { reading, audit: auditOf(reading), routers: [router], deciders: reading.routes }
}

/** Reads an application; `undefined` if it mounts no router, and has no guard of its own (`guardApp`). */
export const readApplication = (app: AnyApplication): Audited | undefined => {
  const routers: AnyRouter[] = []
  const operations: Decider[] = []
  const routes: CheckedRoute[] = []
  const middleware: MiddlewareLayer[] = []
  const audits: Audit[] = []
  let settings: Settings = defaults
  const around: Around[] = []
  for (const f of app.middleware) {
    if (isGuard(f)) {
      around.push({ guard: f, settings })
      continue
    }
    const router = routerOf(f)
    if (router !== undefined) routers.push(router)
    const inner = router === undefined ? functionReading(f) : routerReadingOf('audit(router)', router, settings)
    operations.push(...inner.routes)
    const reading = around.reduceRight(belowGuard, inner)
    settings = additionOf(f)?.(settings) ?? settings
    audits.push(auditOf(reading, routes))
    routes.push(...reading.routes)
    middleware.push(...reading.middleware)
  }
  if (routers.length === 0 && around.length === 0) return undefined
  const upstreams = upstreamsOf(app)
  return {
    reading: { routes, middleware },
    audit: withTable({
      operations: audits.flatMap((audited) => audited.operations),
      middleware: audits.flatMap((audited) => audited.middleware),
      ...(upstreams.length > 0 && { upstreams }),
    }),
    routers,
    deciders: [
      ...around.map(({ guard: { requirement }, settings: policy }) => ({ name: 'guardApp(a)', requirement, policy })),
      ...operations,
    ],
  }
}

// A function of `app.use` that is no router: no request to an operation can be read from it
const functionReading = (f: Function): RouterReading => ({
  routes: [],
  middleware: [{ path: '/*', functions: [f], guarded: 'no' }],
  runsFirst: () => false,
})

interface Around {
  readonly guard: GuardFunction
  readonly settings: CrossOriginPolicy
}

// The same reading below a guard of the application: a request must pass both
const belowGuard = (reading: RouterReading, { guard, settings }: Around): RouterReading => {
  const outer = Requirement.effective(guard.requirement)
  if (outer === undefined) return reading
  const both = (inner: Authenticator<unknown> | undefined): Authenticator<unknown> =>
    inner === undefined ? outer : allOf([outer, inner])
  // the policy that a cross-site write meets, if `inner` meets `policy`
  const policyWithin = (inner: Authenticator<unknown> | undefined, policy: CrossOriginPolicy): CrossOriginPolicy => {
    if (!isAmbient(outer.description)) return policy
    return inner !== undefined && isAmbient(inner.description) ? stricter(settings, policy) : settings
  }
  const guarded = (route: CheckedRoute): CheckedRoute => {
    const inner = enforcedIn(route)
    return {
      ...route,
      guard: route.guard ?? guard,
      requirement: Requirement.guardedBy(both(inner)),
      levels: [...guard.levels, ...route.levels],
      isAfterItsHandler: false,
      policy: policyWithin(inner, route.policy),
    }
  }
  const covered = (layer: MiddlewareLayer): MiddlewareLayer => {
    const { covering } = layer
    if (covering === undefined && (layer.guarded !== 'no' || admitsAnonymous(outer.description))) return layer
    const inner = covering?.authenticator
    const policy = policyWithin(inner, covering?.policy ?? settings)
    return { ...layer, guarded: 'yes', covering: { authenticator: both(inner), policy } }
  }
  return { ...reading, routes: reading.routes.map(guarded), middleware: reading.middleware.map(covered) }
}

// A write that either check refuses is refused
const stricter = (one: CrossOriginPolicy, other: CrossOriginPolicy): CrossOriginPolicy => {
  if (!one.csrf || !other.csrf || one.trustedOrigins === other.trustedOrigins) return one.csrf ? one : other
  const common = [...one.trustedOrigins].filter((origin) => other.trustedOrigins.has(origin))
  return { ...one, trustedOrigins: new Set(common) }
}
