/**
 * The settings of an application (`apiApp`) are in its own layers, like its guards. So they hold only there, and not
 * for a sibling in the same router, whatever paths the two have.
 *
 * The first function of each layer sets the settings. The last one restores the outer ones before a request goes on to
 * the next layer. An exception of a layer passes the middleware of its application first, as in Koa. Then the outermost
 * layer of the application answers it. An exception that came from another application's layer goes on.
 *
 * | where                       | what it carries                                                     |
 * |-----------------------------|---------------------------------------------------------------------|
 * | the router                  | its application: the two functions, and its identity                |
 * | the `opts` of a layer       | the identities of the applications that it belongs to, outermost first |
 * | the two functions           | a mark, by which levels and the audit recognize them                |
 */
import type { Context, Middleware, Next } from 'koa'
import { aheadOfParams, applicationMark, applicationSettingsMark, applicationsMark, notWrapped } from '../core/data.js'
import { carry, settingsOf, type Settings } from '../core/Settings.js'
import { answerException, type Addition } from './settings.js'
import { asWritten, type LayerFunction } from './layer.js'

/** What each layer of an application contains. */
interface Application {
  /** Identifies the router. A copy of the router has another one. */
  readonly identity: object
  readonly begin: Middleware
  readonly end: Middleware
}

// What is known about one request to one application
interface Visit {
  /** Whether a layer around the running one answers exceptions. */
  isAround: boolean
  /** The settings with those that `authSettings` in the application added, for its next layer. */
  added?: Settings | undefined
  /** The last exception, and whether it came from outside of the application. */
  seen?: { readonly error: unknown; readonly isForeign: boolean }
}

/**
 * Makes an application that adds to the settings around it. `addition` is called for each request, because `onError`
 * may change it.
 */
export const application = (addition: () => Addition): Application => {
  const key = Symbol('a visit to one application')
  const visitOf = (ctx: Context & { [key]?: Visit }): Visit => (ctx[key] ??= { isAround: false })

  let known: { readonly add: Addition; readonly outer: Settings; readonly inner: Settings } | undefined
  const settingsIn = (outer: Settings): Settings => {
    const add = addition()
    // one result is kept, because an application is usually mounted in one place
    if (known?.outer !== outer || known.add !== add) {
      known = { add, outer, inner: { ...add(outer), within: { application: key, outer } } }
    }
    return known.inner
  }
  const notice = (visit: Visit, error: unknown, isForeign: boolean): void => {
    if (visit.seen === undefined || visit.seen.error !== error) visit.seen = { error, isForeign }
  }

  const begin = (ctx: Context & { [key]?: Visit }, next: Next): Promise<unknown> => {
    const outer = settingsOf(ctx.request)
    const settings = settingsIn(outer)
    const added = ctx[key]?.added
    carry(ctx.request, added?.within?.outer === outer ? added : settings)
    if (settings.exceptionHandlers.size === 0) return next()
    const visit = visitOf(ctx)
    return visit.isAround
      ? next().catch((error: unknown) => {
          notice(visit, error, false)
          throw error
        })
      : answering(ctx, next, settings, visit)
  }

  const end = (ctx: Context & { [key]?: Visit }, next: Next): Promise<unknown> => {
    const inner = settingsOf(ctx.request)
    const outer = outsideOf(inner, key)
    if (outer === undefined) return next()
    if (inner !== known?.inner) visitOf(ctx).added = inner
    carry(ctx.request, outer)
    return next().then(
      (value) => {
        carry(ctx.request, inner)
        return value
      },
      (error: unknown) => {
        const visit = ctx[key]
        if (visit !== undefined) notice(visit, error, true)
        throw error
      },
    )
  }
  return { identity: {}, begin: marked(begin, addition), end: marked(end, true) }
}

const answering = async (ctx: Context, next: Next, settings: Settings, visit: Visit): Promise<unknown> => {
  visit.isAround = true
  try {
    return await next()
  } catch (error) {
    if (visit.seen?.isForeign === true && visit.seen.error === error) throw error
    return await answerException(ctx, error, settings)
  } finally {
    visit.isAround = false
  }
}

const outsideOf = ({ within }: Settings, key: symbol): Settings | undefined =>
  within === undefined || within.application === key ? within?.outer : outsideOf(within.outer, key)

// `param`: they stay outside of the router's `param` hooks, which belong to the application, too
const marked = <F extends Function>(f: F, mark: true | (() => Addition)): F =>
  notWrapped(Object.assign(f, { [applicationSettingsMark]: mark, param: aheadOfParams }))

/** Whether a function is one of the two. */
export const isOfApplication = (f: Function): boolean => applicationSettingsMark in f

/** What an application adds to the settings, if this is its first function; otherwise `undefined`. */
export const applicationAdditionOf = (f: Function): Addition | undefined => {
  const addition: unknown = Reflect.get(f, applicationSettingsMark)
  // Safe: `marked` alone writes it
  return typeof addition === 'function' ? (addition as () => Addition)() : undefined
}

// -------------------------------------------------------------------------------------
// routers and layers
// -------------------------------------------------------------------------------------

/** The application of a router; `undefined` if it has none. */
export const applicationOf = (router: object): Application | undefined =>
  // Safe: `setApplication` alone writes it
  Reflect.get(router, applicationMark) as Application | undefined

/** Gives a router its application. Layers that are added later belong to it. */
export const setApplication = <R extends object>(router: R, of: Application | undefined): R =>
  of === undefined ? router : Object.assign(router, { [applicationMark]: of })

/** The identities of the applications that a layer belongs to, outermost first. */
export const applicationsOf = ({ opts }: { readonly opts: object }): ReadonlyArray<object> =>
  // Safe: only identities are written there, below
  (Reflect.get(opts, applicationsMark) as ReadonlyArray<object> | undefined) ?? []

/** Arranges the functions of a layer; those of applications around them stay outside. */
export const arrangedWithin = (
  functions: ReadonlyArray<LayerFunction>,
  arrange: (own: ReadonlyArray<LayerFunction>) => ReadonlyArray<LayerFunction>,
): ReadonlyArray<LayerFunction> => {
  if (!functions.some(({ written }) => isOfApplication(written))) return arrange(functions)
  const isOwn = ({ written }: LayerFunction): boolean => !isOfApplication(written)
  const [first, last] = [functions.findIndex(isOwn), functions.findLastIndex(isOwn)]
  return [...functions.slice(0, first), ...arrange(functions.slice(first, last + 1)), ...functions.slice(last + 1)]
}

/** Puts an application around the functions of a layer, unless it is there. */
export const putAround = (
  layer: { opts: object },
  functions: ReadonlyArray<LayerFunction>,
  of: Application | undefined,
): ReadonlyArray<LayerFunction> => {
  if (of === undefined || applicationsOf(layer).includes(of.identity)) return functions
  setApplications(layer, [of.identity, ...applicationsOf(layer)])
  return [asWritten(of.begin), ...functions, asWritten(of.end)]
}

/** Makes a copied layer belong to the application of the copied router. */
export const exchangeApplication = (layer: { opts: object }, from: Application, to: Application): void =>
  setApplications(
    layer,
    applicationsOf(layer).map((one) => (one === from.identity ? to.identity : one)),
  )

const setApplications = (layer: { opts: object }, identities: ReadonlyArray<object>): void => {
  layer.opts = { ...layer.opts, [applicationsMark]: identities }
}
