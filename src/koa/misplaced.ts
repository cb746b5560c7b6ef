/**
 * Settings and guards in a wrong place that can be seen at the first request only.
 *
 * - Settings that are mounted after the routers have no effect on them: a warning. Nothing else looks wrong: the cross-site check
 *   that they relax is on, and the time limit that they demand is not there.
 * - A guard after the handler of its operation never runs: an error. `refuseLateGuards` (`levels.ts`) finds it earlier, in the
 *   classes of routers that it knows.
 */
import type { Context } from 'koa'
import { guardLast, isApplication, isGuard, isGuardLate, labelOf, routerOf, routersOf } from './layer.js'
import type { AnyApplication, AnyRouter } from './layer.js'
import { isSettings } from './settings.js'

const alreadyChecked = new WeakSet<object>()

/** Warns once for each application and each router if settings are mounted after all that they could hold for. */
export const warnOfLateSettings = (ctx: Context): void => {
  const router = routerOfRequest(ctx)
  const inApp = isApplication(ctx.app) && isNew(ctx.app) ? lateInApp(ctx.app) : undefined
  const inRouter = router !== undefined && isNew(router) ? lateInRouter(router) : undefined
  for (const text of [inApp, inRouter]) if (text !== undefined) process.emitWarning(text, 'LateSettingsWarning')
}

/** The first operation whose guard comes after its handler, among the routers of the application, with the mistake. */
export const lateGuardAt = (ctx: Context): string | undefined => {
  const router = routerOfRequest(ctx)
  const routers = new Set(isApplication(ctx.app) ? routersOf(ctx.app) : [])
  if (router !== undefined) routers.add(router)
  for (const { stack } of routers) {
    const late = stack.find((layer) => layer.methods.length > 0 && isGuardLate(layer.stack))
    if (late !== undefined) return `${labelOf(late)}: ${guardLast}`
  }
  return undefined
}

// Safe: a router puts itself there
const routerOfRequest = (ctx: Context): AnyRouter | undefined => ctx['router'] as AnyRouter | undefined

const isNew = (one: object): boolean => {
  const wasSeen = alreadyChecked.has(one)
  alreadyChecked.add(one)
  return !wasSeen
}

const late = (fix: string): string =>
  `authSettings(...) is mounted after the routers, so their operations do not have these settings; ${fix}`

const lateInApp = (app: AnyApplication): string | undefined => {
  const { middleware } = app
  const guarding = middleware.findIndex((f) => isGuarding(routerOf(f)))
  const isLate =
    guarding !== -1 && middleware.findLastIndex(isSettings) > middleware.findLastIndex((f) => routerOf(f) !== undefined)
  if (isLate) return late('call app.use(authSettings(...)) before app.use(router.routes())')
  return routersOf(app)
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
