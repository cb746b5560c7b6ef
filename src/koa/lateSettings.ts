/**
 * A warning: settings are mounted after the routers, so they have no effect on them.
 *
 * Nothing else looks wrong: the cross-site check that they relax is on, and the time limit that they demand is not there.
 */
import type { Context } from 'koa'
import { isGuard, routerOf, type AnyApplication, type AnyRouter } from './layer.js'
import { isSettings } from './settings.js'

const seen = new WeakSet<object>()

/** Warns once for each application and each router if settings are mounted after all that they could hold for. */
export const warnOfLateSettings = (ctx: Context): void => {
  // Safe: a router puts itself there
  const router = ctx['router'] as AnyRouter | undefined
  const inApp = isApplication(ctx.app) && isNew(ctx.app) ? lateInApp(ctx.app) : undefined
  const inRouter = router !== undefined && isNew(router) ? lateInRouter(router) : undefined
  for (const text of [inApp, inRouter]) if (text !== undefined) process.emitWarning(text, 'LateSettingsWarning')
}

// A context that a test made may have none
const isApplication = (app: unknown): app is AnyApplication =>
  typeof app === 'object' && app !== null && 'middleware' in app && Array.isArray(app.middleware)

const isNew = (one: object): boolean => {
  const wasSeen = seen.has(one)
  seen.add(one)
  return !wasSeen
}

const late = (fix: string): string =>
  `authSettings(...) is mounted after the routers, so their operations do not have these settings; ${fix}`

const lateInApp = (app: AnyApplication): string | undefined => {
  const { middleware } = app
  const guarding = middleware.findIndex((f) => isGuarding(routerOf(f)))
  const isLate = guarding !== -1 && middleware.findLastIndex(isSettings) > middleware.findLastIndex(isRoutes)
  if (isLate) return late('call app.use(authSettings(...)) before app.use(router.routes())')
  return middleware
    .flatMap((f) => routerOf(f) ?? [])
    .filter(isNew)
    .map(lateInRouter)
    .find((found) => found !== undefined)
}

const lateInRouter = (router: AnyRouter): string | undefined => {
  const { stack } = router
  const lastRoute = stack.findLastIndex(({ methods }) => methods.length > 0)
  const isLate = isGuarding(router) && stack.slice(lastRoute + 1).some((layer) => layer.stack.some(isSettings))
  return isLate ? late('call router.use(authSettings(...)) before its routes are registered') : undefined
}

const isGuarding = (router: AnyRouter | undefined): boolean =>
  router !== undefined && router.stack.some(({ stack }) => stack.some(isGuard))

const isRoutes = (f: Function): boolean => routerOf(f) !== undefined
