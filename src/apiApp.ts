/**
 * `apiApp`: the application object of the specification. A router with a prefix, an application-wide `auth`, settings and
 * exception handlers in one place.
 *
 * Everything in it also works on plain Koa: `withAuth(a)(router)` is its `auth`, and `authSettings` its settings. It
 * does not listen, and does not read bodies.
 */
import type { Context, DefaultContext, DefaultState, Next } from 'koa'
import type { AuthenticatorLike } from './core/Authenticator.js'
import * as Requirement from './core/Requirement.js'
import { aheadOfParams, notWrapped } from './core/data.js'
import { exchangeOf, type Exchange } from './core/Exchange.js'
import {
  onError,
  type Addition,
  type ExceptionResponder,
  type ExceptionClass,
  type ExceptionHandler,
  type Settings,
} from './core/Settings.js'
import * as is from './core/checks.js'
import { bare, checkOptions, declareFactory, isPlain, type Check, type Checks } from './core/options.js'
import type { AuthRouter } from './koa/AuthRouter.js'
import type { Members, PrincipalAsked } from './koa/conditions.js'
import { newRouter, type RouterInstance } from './koa/router.js'
import { atLevel } from './koa/levels.js'
import type { ApplicationLevel } from './koa/plan.js'
import { answerException, settings, settingsFrom, type AuthSettings } from './koa/settings.js'
import { middlewareList, stepsOf, type GuardOptions, requirementOf } from './koa/withAuth.js'
import { addDocs, type DocsPageOptions } from './openapi/docs.js'
import type { OpenApiOptions } from './openapi/documentOptions.js'
import { findSwaggerUi, requireSwaggerUi } from './openapi/swaggerUi.js'

/** The application's docs page: options of the page, and of the document but for `title` and `version`. */
export type ApiDocsOptions = DocsPageOptions & Omit<OpenApiOptions, 'title' | 'version'>

/**
 * The options of `apiApp`, besides `auth` and `then`. `auth` guards every operation that decides nothing itself (spec 5.6.1). It
 * is the argument of `withAuth`; a literal `null` makes operations public. `then` is middleware that runs after this guard.
 */
export interface ApiAppOptions extends AuthSettings {
  /** The API's name. */
  readonly title?: string | undefined
  /** The version of the API. */
  readonly version?: string | undefined
  /** The path before all operations, such as `/api`. Default `''`: none. */
  readonly prefix?: string | undefined
  /**
   * The docs page and the OpenAPI document, at `/docs` and `/openapi.json` after the prefix. They are public, unless
   * `docs: { auth }` guards them; `false` leaves them out. An operation of the application at such a path replaces
   * them. Without `swagger-ui-dist` only the document is served, and `true` or options are a TypeError.
   */
  readonly docs?: boolean | ApiDocsOptions | undefined
}

/** A router whose operations the application's `auth` guards. `P` is the principal that their handlers see. */
export interface ApiApp<P, S = DefaultState, C = DefaultContext> extends AuthRouter<S, C, P> {
  /**
   * Registers a handler for a class of exceptions of authenticators or operations. The handler of the nearest class
   * answers (spec 7). A handler that throws is a 500. Throws a TypeError for a class that has a handler.
   */
  onError<X>(type: ExceptionClass<X>, answer: ExceptionResponder<X>): this
}

const path = is.that(
  (value) => typeof value === 'string' && /^(?:\/[^{}()?+*!\s]*[^{}()?+*!\s/])?$/.test(value),
  'must be a path such as "/api" or "/tenants/:tenant", without a slash at the end and without a pattern; "" means no prefix',
)

const page: Check = (where, value) => {
  if (typeof value === 'boolean') return
  if (!isPlain(value)) throw new TypeError(`${where} must be true, false or options`)
  for (const name of ['title', 'version'] as const) {
    if (Reflect.get(value, name) !== undefined)
      throw new TypeError(`apiApp's docs: the ${name} is the application's; write apiApp({ ${name}, docs })`)
  }
}

type GivenOptions = ApiAppOptions & GuardOptions<never> & { readonly auth?: unknown }

const checks: Checks<Required<GivenOptions>> = {
  title: is.maybe(is.nonEmpty),
  version: is.maybe(is.nonEmpty),
  prefix: is.maybe(path),
  // `withAuth` checks it
  auth: is.unchecked,
  then: is.maybe(middlewareList),
  docs: is.maybe(page),
  ...settings,
}

/**
 * Makes an application: register operations on it as on a router, and mount it with `app.use(api.routes())`. Throws a
 * TypeError for an unknown option and for a wrong value.
 *
 * @example
 * import Koa from 'koa'
 * import { apiApp, httpBearer } from 'koa-with-auth'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const api = apiApp({ title: 'Pets', version: '1.0.0', prefix: '/api', auth: bearer })
 *
 * api.get('/me', (ctx) => {
 *   ctx.body = ctx.request.auth.user
 * })
 *
 * const app = new Koa()
 * app.use(api.routes()).use(api.allowedMethods())
 */
export function apiApp(options: ApiAppOptions & { readonly auth: null }): ApiApp<undefined>
export function apiApp<const M extends AuthenticatorLike | Members>(
  options: ApiAppOptions & GuardOptions<PrincipalAsked<M>> & { readonly auth: M },
): ApiApp<PrincipalAsked<M>>
export function apiApp(options?: ApiAppOptions & { readonly auth?: never }): ApiApp<undefined>
export function apiApp(given: GivenOptions = {}): ApiApp<unknown> {
  const options = checkOptions('apiApp', given, checks)
  const { title: _, version: __, docs: ___, auth, then, prefix = '', onError: first = [], ...own } = options
  const settled = (onError: ReadonlyArray<ExceptionHandler>) => settingsFrom(bare({ ...own, onError }))
  let handlers = [...first]
  let add = settled(handlers)

  const router = newRouter(prefix === '' ? {} : { prefix })
  // `auth: undefined` is a mistake that is refused; only its absence leaves operations undecided
  const requirement = 'auth' in options ? requirementOf('apiApp({ auth })', auth) : Requirement.inherit
  const steps = stepsOf(then)
  if (steps.length > 0 && Requirement.effective(requirement) === undefined) {
    throw new TypeError('apiApp({ then }) runs after the guard of `auth`, and this application has none; use api.use')
  }
  const guarded = atLevel(requirement, {
    name: 'application',
    then: steps,
    application: application(() => add),
  })(router)
  addDocsTo(guarded, options)
  // `this`: a router derived from the application shares its handlers, and is returned itself
  function addHandler(this: RouterInstance, ...given: Parameters<typeof onError>): RouterInstance {
    const all = [...handlers, onError(...given)]
    add = settled(all)
    handlers = all
    return this
  }
  // Safe: a router with `onError`; its handlers see the principal of `auth`
  return Object.assign(guarded, { onError: addHandler }) as unknown as ApiApp<unknown>
}

declareFactory('apiApp', apiApp)

const addDocsTo = (router: RouterInstance, { title = 'API', version = '1.0.0', docs }: ApiAppOptions): void => {
  if (docs === false) return
  const where = "apiApp's docs"
  const own: ApiDocsOptions = typeof docs === 'object' ? docs : {}
  // an application that did not ask for the page needs nothing installed
  const folder = docs === undefined ? findSwaggerUi() : requireSwaggerUi(where)
  if (folder === undefined && !['production', 'test'].includes(process.env['NODE_ENV'] ?? '')) {
    process.emitWarning(
      'apiApp has no docs page, because koa-with-auth/openapi needs swagger-ui-dist for it: npm install swagger-ui-dist, or write docs: false',
      'MissingPackageWarning',
    )
  }
  // public, whatever the application requires: a caller without credentials learns there how to get some
  addDocs(router, router, where, { auth: null, ...own, title, version }, folder)
}

// --- the first and the last function of its layers

// The settings of an application are in its own layers, like its guards. So they hold only there, and not for a sibling in the same
// router, whatever paths the two have.
//
// The first function of each layer sets the settings. The last one restores the outer ones before a request goes on to the next layer. An
// exception of a layer passes the middleware of its application first, as in Koa. Then the outermost layer of the application answers
// it. An exception that came from another application's layer goes on

// The state of one request while it is inside an application
interface ApplicationRun {
  /** Whether a layer around the running one answers exceptions. */
  isHandling: boolean
  /** The settings with those that `authSettings` in the application added, for its next layer. */
  added?: Settings | undefined
  /** The last exception, and whether it came from outside of the application. */
  seen?: { readonly error: unknown; readonly isFromOtherApplication: boolean }
}

/** Makes an application that adds to the settings around it: by `addition`, which `onError` may change between requests. */
const application = (addition: () => Addition): ApplicationLevel => {
  const key = Symbol('one application')
  const visits = new WeakMap<Exchange, ApplicationRun>()
  const visitIn = (exchange: Exchange): ApplicationRun => {
    const visit = visits.get(exchange) ?? { isHandling: false }
    visits.set(exchange, visit)
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
  const rememberError = (visit: ApplicationRun | undefined, error: unknown, isFromOtherApplication: boolean): never => {
    if (visit !== undefined && (visit.seen === undefined || visit.seen.error !== error))
      visit.seen = { error, isFromOtherApplication }
    throw error
  }

  const begin = (ctx: Context, next: Next): Promise<unknown> => {
    const exchange = exchangeOf(ctx)
    const { settings: outer } = exchange
    const settings = settingsIn(outer)
    const added = visits.get(exchange)?.added
    exchange.settings = added?.within?.outer === outer ? added : settings
    if (settings.exceptionHandlers.size === 0) return next()
    const visit = visitIn(exchange)
    return visit.isHandling
      ? next().catch((error: unknown) => rememberError(visit, error, false))
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
      (error: unknown) => rememberError(visits.get(exchange), error, true),
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
