/**
 * The types of `withAuth`: the guard, and the router whose handlers know the principal.
 *
 * Types only. In each verb, overloads with a guard come first. So the principal of an operation's own guard replaces
 * the router's, instead of being intersected with it. For that, the router's own context type has no principal.
 */
import type { RouterContext } from '@koa/router'
import type { Context, DefaultContext, DefaultState, Next, ParameterizedContext } from 'koa'
import type { Finds, ObjectsOf } from '../core/Exchange.js'
import type { Also, Requirement } from '../core/Requirement.js'
import type { RouterInstance } from './router.js'

type RouterMiddleware<S = DefaultState, C = DefaultContext> = Exclude<
  Parameters<RouterInstance<S, C>['register']>[2],
  readonly unknown[]
>

/**
 * The properties of a context behind a guard. A router in a separate file declares with it which principal it
 * expects.
 */
export interface Auth<P, O = unknown> {
  readonly request: { readonly auth: P } & FoundObjects<O>
}

type FoundObjects<O> = unknown extends O ? unknown : { readonly objects: O }

/**
 * The context of a handler or middleware that is written elsewhere: Koa's context, the parameters of the path, and the
 * principal. It fits every router. `router` is left out, because TypeScript 5 and 6 compare two router types with a
 * result that depends on earlier comparisons.
 */
export type AuthContext<P, S = DefaultState, C = DefaultContext, O = unknown> = ParameterizedContext<
  S,
  C & { readonly params: Record<string, string> }
> &
  Auth<P, O>

/** A handler that knows its caller. */
export type Handler<S, C, P, O = unknown> = (ctx: RouterContext<S, C> & Auth<P, O>, next: Next) => unknown

type Path = string | RegExp | Array<string | RegExp>

/** A guard: a `Guard` or an `AlsoGuard`. */
export interface AnyGuard {
  readonly requirement: Requirement
  (ctx: never, next: Next): Promise<unknown>
}

/** The principal that a handler sees after its operation's guard, in a router that lets in `P`. */
export type PrincipalAfter<P, G> =
  G extends AlsoGuard<infer B, infer _> ? AlsoPrincipal<P, B> : G extends Guard<infer B, infer _> ? B : never

type ObjectsAfter<O, G> = G extends { readonly requirement: Also } ? O & ObjectsOf<G> : ObjectsOf<G>

/** No guard, as a type whose name is the error that the compiler prints. */
interface NoGuard<Where extends string> {
  readonly requirement?: Where | undefined
}

type AfterThePath =
  NoGuard<'write the guard after the path and at most three functions: router.get(path, withAuth(a), handler)'>
type NotInUse =
  NoGuard<'router.use takes no guard: write withAuth(a)(router), or router.get(path, withAuth(a), handler)'>

// The type with the error comes first in an intersection, and the overload of handlers comes last: the compiler prints
// those.
type HandlersOf<S, C, P, O> = ReadonlyArray<AfterThePath & Handler<S, C, P, O>>

/** The functions after the guard `G`: at least a handler, and no other guard. */
type HandlersAfter<S, C, P, O, G> = readonly [
  AfterThePath & Handler<S, C, PrincipalAfter<P, G>, ObjectsAfter<O, G>>,
  ...HandlersOf<S, C, PrincipalAfter<P, G>, ObjectsAfter<O, G>>,
]

type MiddlewareAhead<S, C> = AfterThePath & RouterMiddleware<S, C>

/** How a verb of a guarded router is called. */
export interface RouteMethod<S, C, P, O = unknown> {
  <G extends AnyGuard>(path: Path, guard: G, ...handlers: HandlersAfter<S, C, P, O, G>): AuthRouter<S, C, P, O>
  <G extends AnyGuard>(
    path: Path,
    ahead: MiddlewareAhead<S, C>,
    guard: G,
    ...handlers: HandlersAfter<S, C, P, O, G>
  ): AuthRouter<S, C, P, O>
  <G extends AnyGuard>(
    path: Path,
    first: MiddlewareAhead<S, C>,
    second: MiddlewareAhead<S, C>,
    guard: G,
    ...handlers: HandlersAfter<S, C, P, O, G>
  ): AuthRouter<S, C, P, O>
  <G extends AnyGuard>(
    path: Path,
    first: MiddlewareAhead<S, C>,
    second: MiddlewareAhead<S, C>,
    third: MiddlewareAhead<S, C>,
    guard: G,
    ...handlers: HandlersAfter<S, C, P, O, G>
  ): AuthRouter<S, C, P, O>
  <G extends AnyGuard>(
    name: string,
    path: string | RegExp,
    guard: G,
    ...handlers: HandlersAfter<S, C, P, O, G>
  ): AuthRouter<S, C, P, O>
  <G extends AnyGuard>(
    name: string,
    path: string | RegExp,
    ahead: MiddlewareAhead<S, C>,
    guard: G,
    ...handlers: HandlersAfter<S, C, P, O, G>
  ): AuthRouter<S, C, P, O>
  <G extends AnyGuard>(
    name: string,
    path: string | RegExp,
    first: MiddlewareAhead<S, C>,
    second: MiddlewareAhead<S, C>,
    guard: G,
    ...handlers: HandlersAfter<S, C, P, O, G>
  ): AuthRouter<S, C, P, O>
  (name: string, path: string | RegExp, ...handlers: HandlersOf<S, C, P, O>): AuthRouter<S, C, P, O>
  (path: Path, ...handlers: HandlersOf<S, C, P, O>): AuthRouter<S, C, P, O>
}

// The principal that a router in a separate file expects; `unknown` if it expects none
type ExpectedPrincipal<C> = C extends Auth<infer P> ? P : unknown
type Provides<P, C> = P extends ExpectedPrincipal<C> ? unknown : never
// A guard provides the expected principal, so a guarded router expects none where it is mounted
type Provided<C> = C extends Auth<unknown> ? Omit<C, 'request'> : C

interface Routes<S, C> {
  (context: never, next: Next): unknown
  readonly router?: RouterInstance<S, C>
}

/** A router whose operations are guarded, unless an operation says otherwise. `P` is the principal that their handlers see, `O` the objects. */
export interface AuthRouter<S, C, P, O = unknown> extends RouterInstance<S, C> {
  get: RouteMethod<S, C, P, O>
  post: RouteMethod<S, C, P, O>
  put: RouteMethod<S, C, P, O>
  patch: RouteMethod<S, C, P, O>
  delete: RouteMethod<S, C, P, O>
  del: RouteMethod<S, C, P, O>
  head: RouteMethod<S, C, P, O>
  options: RouteMethod<S, C, P, O>
  all: RouteMethod<S, C, P, O>
  use(...middleware: ReadonlyArray<NotInUse & RouterMiddleware<S, C>>): AuthRouter<S, C, P, O>
  use(
    path: string | RegExp | string[],
    ...middleware: ReadonlyArray<NotInUse & RouterMiddleware<S, C>>
  ): AuthRouter<S, C, P, O>
  use<T, D>(routes: NotInUse & Routes<T, D> & Provides<P, D>): AuthRouter<S, C, P, O>
  use<T, D>(path: string | RegExp | string[], routes: NotInUse & Routes<T, D> & Provides<P, D>): AuthRouter<S, C, P, O>
  prefix(prefix: string): AuthRouter<S, C, P, O>
}

/** The result of `withAuth`. Called with a router, it guards its operations. After a path, it guards one operation. */
export interface Guard<P, O = unknown> extends Finds<O> {
  /** Its decision. */
  readonly requirement: Requirement
  <S, C>(router: RouterInstance<S, C> & Provides<P, C>): AuthRouter<S, Provided<C>, P, O>
  // last, because inference reads the last overload
  (ctx: Context & Auth<P, O>, next: Next): Promise<unknown>
}

/** The principal that a handler sees after `also`: that of the levels above, and that of its own level. */
export interface AlsoPrincipal<P, B> {
  readonly inherited: P
  readonly own: B
}

/**
 * The result of `withAuth(also(a))`. A router does not know the principals of the levels above it, so `inherited` is `unknown`.
 */
export interface AlsoGuard<P, O = unknown> extends Finds<O> {
  /** Its decision. */
  readonly requirement: Also<P>
  <S, C>(
    router: RouterInstance<S, C> & Provides<AlsoPrincipal<unknown, P>, C>,
  ): AuthRouter<S, Provided<C>, AlsoPrincipal<unknown, P>, O>
  // last, because inference reads the last overload
  (ctx: Auth<AlsoPrincipal<unknown, P>, O>, next: Next): Promise<unknown>
}
