/**
 * The settings of an application (`apiApp`) are in its own layers, like its guards. So they hold only there, and not
 * for a sibling in the same router, whatever paths the two have.
 *
 * The first function of each layer sets the settings. The last one restores the outer ones before a request goes on to
 * the next layer. An exception of a layer passes the middleware of its application first, as in Koa. Then the outermost
 * layer of the application answers it. An exception that came from another application's layer goes on.
 */
import type { Context, Next } from 'koa'
import { aheadOfParams, notWrapped } from '../core/data.js'
import type { Addition, Settings } from '../core/Settings.js'
import { exchangeOf, type Exchange } from '../core/Exchange.js'
import type { Application } from './plan.js'
import { answerException } from './settings.js'

// The state of one request while it is inside an application
interface ApplicationRun {
  /** Whether a layer around the running one answers exceptions. */
  isHandling: boolean
  /** The settings with those that `authSettings` in the application added, for its next layer. */
  added?: Settings | undefined
  /** The last exception, and whether it came from outside of the application. */
  seen?: { readonly error: unknown; readonly isFromOtherApplication: boolean }
}

// Safe: it is written here alone
const visitsIn = ({ visits }: Exchange) => visits as Map<symbol, ApplicationRun> | undefined

/**
 * Makes an application that adds to the settings around it. `addition` is called for each request, because `onError`
 * may change it.
 */
export const application = (addition: () => Addition): Application => {
  const key = Symbol('a visit to one application')
  const visitIn = (exchange: Exchange): ApplicationRun => {
    const visits = visitsIn(exchange) ?? new Map<symbol, ApplicationRun>()
    exchange.visits = visits
    const visit = visits.get(key) ?? { isHandling: false }
    visits.set(key, visit)
    return visit
  }

  let cached: { readonly add: Addition; readonly outer: Settings; readonly inner: Settings } | undefined
  const settingsIn = (outer: Settings): Settings => {
    const add = addition()
    // one result is kept, because an application is usually mounted in one place
    if (cached?.outer !== outer || cached.add !== add) {
      cached = { add, outer, inner: { ...add(outer), within: { application: key, outer } } }
    }
    return cached.inner
  }
  const rememberError = (visit: ApplicationRun, error: unknown, isFromOtherApplication: boolean): void => {
    if (visit.seen === undefined || visit.seen.error !== error)
      visit.seen = { error, isFromOtherApplication: isFromOtherApplication }
  }

  const begin = (ctx: Context, next: Next): Promise<unknown> => {
    const exchange = exchangeOf(ctx)
    const { settings: outer } = exchange
    const settings = settingsIn(outer)
    const added = visitsIn(exchange)?.get(key)?.added
    exchange.settings = added?.within?.outer === outer ? added : settings
    if (settings.exceptionHandlers.size === 0) return next()
    const visit = visitIn(exchange)
    return visit.isHandling
      ? next().catch((error: unknown) => {
          rememberError(visit, error, false)
          throw error
        })
      : answering(ctx, next, settings, visit)
  }

  const end = (ctx: Context, next: Next): Promise<unknown> => {
    const exchange = exchangeOf(ctx)
    const { settings: inner } = exchange
    const outer = outsideOf(inner, key)
    if (outer === undefined) return next()
    if (inner !== cached?.inner) visitIn(exchange).added = inner
    exchange.settings = outer
    return next().then(
      (value) => {
        exchange.settings = inner
        return value
      },
      (error: unknown) => {
        const visit = visitsIn(exchange)?.get(key)
        if (visit !== undefined) rememberError(visit, error, true)
        throw error
      },
    )
  }
  return { begin: aroundHooks(begin), end: aroundHooks(end), addition }
}

const answering = async (ctx: Context, next: Next, settings: Settings, visit: ApplicationRun): Promise<unknown> => {
  visit.isHandling = true
  try {
    return await next()
  } catch (error) {
    if (visit.seen?.isFromOtherApplication === true && visit.seen.error === error) throw error
    return await answerException(ctx, error, settings)
  } finally {
    visit.isHandling = false
  }
}

const outsideOf = ({ within }: Settings, key: symbol): Settings | undefined =>
  within === undefined || within.application === key ? within?.outer : outsideOf(within.outer, key)

// They stay outside of the router's `param` hooks, which belong to the application, too
const aroundHooks = <F extends Function>(f: F): F => notWrapped(Object.assign(f, { param: aheadOfParams }))
