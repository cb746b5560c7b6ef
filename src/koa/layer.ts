/**
 * The parts of @koa/router that levels change: copies of routers and layers, so that nothing is shared that the router
 * changes in place, and stacks that are watched. And the properties by which a guard is known among other functions, and
 * the notes of a function about its operation.
 *
 * Levels, OpenAPI and the audit read the protection of a route from its guard. They read properties of the
 * function, so a tracer's wrapper that copies properties is still the guard.
 */
import { METHODS } from 'node:http'
import type { Context, Next } from 'koa'
import type { Requirement } from '../core/Requirement.js'
import { knownExchange } from '../core/Exchange.js'
import { hasMethod } from '../core/checks.js'
import { aheadOfParams, notWrapped, operationMark, withFixed } from '../core/data.js'
import type { Layer, RouterInstance } from './router.js'

const guardMark = Symbol.for('koa-with-auth/guard')

/** `then` middleware, and how many levels out its principal is (`inherited.inherited...`). */
export interface ThenMiddleware {
  readonly run: (ctx: Context, next: Next) => unknown
  readonly above: number
}

export interface GuardSource {
  /** The levels that decided, from the outermost that counts to the innermost: `operation`, or which router. */
  readonly levels: ReadonlyArray<string>
  /** The functions after it, see `guard.ts`; `undefined` for none. */
  readonly then?: ReadonlyArray<ThenMiddleware> | undefined
  /** Whether it admits everyone, for tests: the handlers after it are not protected. */
  readonly isForTests?: boolean
}

export interface GuardProperties extends GuardSource {
  readonly requirement: Requirement
}

export type GuardFunction = Function & GuardProperties

export const markGuard = <F extends Function>(
  guard: F,
  requirement: Requirement,
  origin: GuardSource,
): F & GuardProperties =>
  notWrapped(withFixed(guard, { ...origin, requirement, param: aheadOfParams, [guardMark]: true }))

/**
 * Notes an exception of the functions after it, if a user was signing in or out. A function behind a guard can answer
 * the exception of a function that comes after it, so the guard does not see it. So there is an observer between them, in
 * layers that have a guard.
 */
const observe = (ctx: Context, next: Next): Promise<unknown> => {
  const exchange = knownExchange(ctx)
  if (exchange?.source === undefined) return next()
  return next().catch((error: unknown) => {
    if (exchange.isSigning) exchange.hasThrown = true
    throw error
  })
}

// The property shows it to another copy of the package
const observer = notWrapped(Object.assign(observe, { observes: 'koa-with-auth' }))

/** The functions behind a guard, with an observer before each but the first, which the guard observes, and `param` hooks. */
export const observed = (after: ReadonlyArray<Function>): ReadonlyArray<Function> => {
  // the router sorts `param` hooks in front of the first function without `param`
  const first = after.findIndex((f) => !(operationMark in f))
  return after.flatMap((f, at) => (first === -1 || at <= first || isParamHook(f) ? [f] : [observer, f]))
}

export const isParamHook = (f: object): boolean => 'param' in f && typeof f.param === 'string'

/** Whether a function was written by the application, and is no observer. */
export const isWritten = (f: Function): boolean => Reflect.get(f, 'observes') !== observer.observes

export const isGuard = (f: unknown): f is GuardFunction => typeof f === 'function' && guardMark in f

/** The function that the user wrote: the router wraps `param` hooks. */
export const originalOf = (f: Function): Function => {
  const original: unknown = Reflect.get(f, '_originalFn')
  return typeof original === 'function' ? original : f
}

/** A copy with the same prototype. Everything that the router changes in place is copied, except the stack. */
export const copyRouter = <S, C>(router: RouterInstance<S, C>): RouterInstance<S, C> => {
  const copy: RouterInstance<S, C> = Object.assign(Object.create(Object.getPrototypeOf(router)), router)
  copy.opts = { ...router.opts }
  copy.methods = [...router.methods]
  copy.params = Object.fromEntries(
    Object.entries(router.params).map(([name, hooks]) => [name, Array.isArray(hooks) ? [...hooks] : hooks]),
  )
  const events: unknown = Reflect.get(router, '_events')
  if (typeof events === 'object' && events !== null) Reflect.set(copy, '_events', copyEvents(events))
  return copy
}

const copyEvents = (events: object): object => {
  const handlers: unknown = Reflect.get(events, '_handlers')
  const copy: object = Object.assign(Object.create(Object.getPrototypeOf(events)), events)
  if (!(handlers instanceof Map)) return copy
  const copies = [...handlers].map(([event, list]) => [event, Array.isArray(list) ? [...list] : list] as const)
  return Object.assign(copy, { _handlers: new Map(copies) })
}

/** A copy of a layer with separate `opts`. The router replaces its arrays, except that of its functions: see `writePlan`. */
export const copyLayer = <S, C>(layer: Layer<S, C>): Layer<S, C> => {
  const copy: Layer<S, C> = Object.assign(Object.create(Object.getPrototypeOf(layer)), layer)
  copy.opts = { ...layer.opts }
  return copy
}

/** Drops the flags g and y of a RegExp, which remembers with them where it stopped: a request could switch the route off for the next. */
export const dropStatefulFlags = (layer: { regexp: RegExp }): void => {
  const { regexp } = layer
  if (regexp?.global || regexp?.sticky) layer.regexp = withoutStatefulFlags(regexp)
}

export const withoutStatefulFlags = ({ source, flags }: RegExp): RegExp =>
  new RegExp(source, flags.replace(/[gy]/g, ''))

const mutators = ['push', 'unshift', 'splice', 'pop', 'shift', 'reverse', 'sort', 'fill', 'copyWithin'] as const

/** Calls `before` with the arguments of each method that changes the array, before the change. The methods cannot be replaced. */
export const onMutation = <A>(array: A[], before: (given: ReadonlyArray<unknown>) => void): A[] => {
  const reporting = (name: (typeof mutators)[number]) => ({
    value: (...given: never[]): unknown => {
      before(given)
      return Reflect.apply(Array.prototype[name], array, given)
    },
  })
  return Object.defineProperties(array, Object.fromEntries(mutators.map((name) => [name, reporting(name)])))
}

export const isLayer = (u: unknown): u is Layer =>
  typeof u === 'object' && u !== null && 'stack' in u && 'methods' in u && 'path' in u

/** A layer of a router of @koa/router. */
export interface RouterLayer {
  /** The pattern, with all prefixes; a RegExp as it was written. */
  readonly path: string | RegExp
  readonly regexp: RegExp
  readonly methods: ReadonlyArray<string>
  readonly paramNames: ReadonlyArray<unknown>
  readonly stack: ReadonlyArray<Function>
  readonly opts: {
    readonly sensitive?: boolean | undefined
    readonly strict?: boolean | undefined
    readonly end?: boolean | undefined
    readonly pathAsRegExp?: unknown
  }
}

/** A router of @koa/router, whatever its context. */
export interface AnyRouter {
  readonly stack: ReadonlyArray<RouterLayer>
  /** The hosts whose requests it answers; `undefined` for all. */
  readonly host?: unknown
  readonly opts: { readonly exclusive?: unknown }
}

/** A Koa application, of any copy of Koa. */
export interface AnyApplication {
  readonly middleware: ReadonlyArray<Function>
}

/** Whether a value is a Koa application: by its parts, because another copy of koa has another class. */
export const isApplication = (u: unknown): u is AnyApplication =>
  hasMethod(u, 'callback') && Array.isArray(Reflect.get(Object(u), 'middleware'))

/** The router whose `routes()` returned a function; `undefined` for another function. */
export const routerOf = (f: Function): AnyRouter | undefined => {
  // a guard has a getter there, which throws
  const router: unknown = Object.getOwnPropertyDescriptor(f, 'router')?.value
  // Safe: it has a stack of layers; reading the router refuses anything else
  return typeof router === 'object' && router !== null && 'stack' in router ? (router as AnyRouter) : undefined
}

export const routersOf = ({ middleware }: AnyApplication): ReadonlyArray<AnyRouter> =>
  middleware.flatMap((f) => routerOf(f) ?? [])

export type ReadLayer = Pick<RouterLayer, 'methods' | 'stack'> & {
  readonly path: string | RegExp
  readonly opts?: { readonly pathAsRegExp?: unknown }
}

/** The names of the operations of a layer in messages: `GET, POST /x`, `ALL /x`, `use /x`. */
export const labelOf = (layer: ReadLayer): string => {
  const methods = layer.methods.length === 0 ? ['use'] : Object.keys(operationMethods(layer))
  return `${methods.join(', ')} ${pathInWords(layer)}`
}

/** A path as it was written, prefixes included. */
export const pathInWords = ({ path, opts }: Pick<ReadLayer, 'path' | 'opts'>): string =>
  typeof path === 'string' && opts?.pathAsRegExp === true ? `/${path}/` : String(path)

export const operationMethods = ({
  methods,
}: Pick<ReadLayer, 'methods'>): Readonly<Record<string, ReadonlyArray<string>>> => {
  const reading = methods.includes('GET') ? ['GET', 'HEAD'] : []
  // once each, because the router adds HEAD even if it is there
  const all = [...new Set([...reading, ...methods])]
  // the methods that Node knows differ between versions
  if (METHODS.every((method) => all.includes(method))) return { ALL: all }
  const operations = reading.length > 0 ? all.filter((method) => method !== 'HEAD') : all
  return Object.fromEntries(operations.map((method) => [method, method === 'GET' ? reading : [method]]))
}

export const guardLast = 'withAuth(...) has no handler after it; write it right after the path'

/** Whether the guard among the functions of an operation comes last, after a function that is its handler. */
export const isGuardLate = (functions: ReadonlyArray<unknown>): boolean =>
  isGuard(functions.at(-1)) &&
  functions.slice(0, -1).some((f) => typeof f === 'function' && operationNote(f) === undefined && !isParamHook(f))

/** Makes `router.use(f)` and `app.use(f)` a TypeError: both read a property of their argument. */
export const refuseUse = (f: object, messageOf: (caller: string) => string): void => {
  const refuse = (caller: string) => ({
    get: (): never => {
      throw new TypeError(messageOf(caller))
    },
  })
  // @koa/router's `use` looks for a router to mount, koa's for a name to log
  Object.defineProperties(f, { router: refuse('router.use'), _name: refuse('app.use') })
}

/** A part of a docs page: the page itself, or its document. Parts are compared by identity. */
export interface Part {
  readonly path: string
  /** The path that the page would have. Set if the page is missing, because `swagger-ui-dist` is not installed. */
  readonly missingPage?: string
}

/** The note of `operation`. `docs`: the part of a docs page that it serves. A `file` is as open as the page, and its path begins with the page's. */
export interface OperationNote {
  readonly options: object
  readonly docs?: Part | 'file' | undefined
}

export const operationNote = (f: Function): OperationNote | undefined =>
  // Safe: `operation` alone writes it
  Reflect.get(f, operationMark) as OperationNote | undefined
