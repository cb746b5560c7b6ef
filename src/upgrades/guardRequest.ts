/**
 * `guardRequest`: the guard for requests that never reach Koa: those that another framework answers, or the long polling of Socket.IO.
 * It decides as `guardUpgrade` does, and writes nothing: its caller answers the request.
 */
import type { IncomingMessage } from 'node:http'
import type Koa from 'koa'
import type { Context, Middleware, Next, Request } from 'koa'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import * as is from '../core/checks.js'
import { exchangeOf, type Objects } from '../core/Exchange.js'
import { checkOptions, declareFactory, type Checks } from '../core/options.js'
import type { AuthResponse } from '../core/Settings.js'
import type { Members, ObjectsAsked, PrincipalAsked } from '../koa/conditions.js'
import { deciding } from '../koa/guard.js'
import { answeredWith } from '../koa/watching.js'
import {
  admission,
  checkApp,
  guarding,
  optionChecks,
  ownStrings,
  readPlainSession,
  refuseWithoutHost,
  resolveOptions,
  servedBy,
  type Admitted,
  type GuardUpgradeOptions,
} from './guardUpgrade.js'
import { RecordedResponse, sendTo, type AnyRequest, type AnyResponse, type Fields } from './RecordedResponse.js'

/** Settings that add to those of the application, and what kind of requests there are. */
export interface GuardRequestOptions extends GuardUpgradeOptions {
  /**
   * `'all'`: another framework answers the requests, and each is judged by its method, as in Koa. `'sockets'`: each request opens a channel
   * for writes, as those of Socket.IO do. So none is safe, and a cookie is refused if another site caused the request. Default
   * `'sockets'`.
   */
  readonly methods?: 'all' | 'sockets' | undefined
}

/** A request that was let in. */
export interface AdmittedRequest<P, O = unknown> extends Admitted<P, O> {
  /** The fields that Koa's response would have: `Cache-Control`, `Vary` and others. Set them before the operation runs. */
  readonly headers: Fields
  readonly refused?: undefined
}

/** How Koa would have answered a request that was refused. */
export interface RefusedAnswer extends AuthResponse {
  /**
   * Writes this answer to a response of node:http, or of the compatibility API of node:http2. Fields that are set there stay, unless they
   * describe its body. A response that is ended is left as it is.
   */
  readonly send: (response: AnyResponse) => void
}

/** A request that was refused, and how Koa would have answered it. */
export interface Refused {
  readonly refused: RefusedAnswer
  readonly principal?: undefined
}

/**
 * Decides about a request of node:http, or of the compatibility API of node:http2. Resolves to the principal and the request, or to
 * `refused`; the answer to a hook that throws is Koa's 500, and the application emits `error`. `parameters` are those of the path that
 * `owned` reads, decoded. Rejects with a TypeError for anything but a request.
 */
export type RequestGuard<P, O = unknown> = (
  request: AnyRequest,
  parameters?: Readonly<Record<string, unknown>>,
) => Promise<AdmittedRequest<P, O> | Refused>

const caller = 'guardRequest(app, a)'

const checks: Checks<GuardRequestOptions> = { ...optionChecks, methods: is.maybe(is.oneOf('all', 'sockets')) }

/**
 * Makes a guard for requests that never reach Koa. It takes the authenticators, settings and sessions of the application, as
 * `guardUpgrade` does. Sessions are only read. Nothing is written: call `refused.send(response)`, or answer in your own way. Throws a
 * TypeError as `guardUpgrade` does.
 *
 * @example
 * import { createServer } from 'node:http'
 * import Koa from 'koa'
 * import { guardRequest } from 'koa-with-auth/upgrades'
 *
 * const guard = guardRequest(new Koa(), () => ({ user: 'anna' }), { methods: 'all' })
 *
 * export const server = createServer(async (request, response) => {
 *   const { principal, refused } = await guard(request)
 *   if (refused) refused.send(response)
 *   else response.end(`Hello ${principal.user}`)
 * })
 */
export function guardRequest<S, C, const M extends AuthenticatorLike | Members>(
  app: Koa<S, C>,
  auth: M,
  options?: GuardRequestOptions,
): RequestGuard<PrincipalAsked<M>, ObjectsAsked<M>>
export function guardRequest(app: Koa, auth: unknown, options: GuardRequestOptions = {}): RequestGuard<unknown> {
  checkApp(caller, app)
  const where = 'guardRequest(app, a, options)'
  const { methods = 'sockets', ...settings } = checkOptions(where, options, checks)
  const self: RequestGuarding = {
    app,
    decide: deciding(guarding(caller, auth), ['request'], methods === 'all' ? undefined : refuseWithoutHost),
    isForSockets: methods === 'sockets',
    ...resolveOptions(settings),
  }
  return (request, parameters) => decideAbout(self, request, parameters)
}

declareFactory('guardRequest', guardRequest)

interface RequestGuarding {
  readonly app: Koa
  readonly decide: ReturnType<typeof deciding>
  readonly isForSockets: boolean
  readonly route: string | undefined
  readonly own: ReadonlyArray<Middleware>
}

const decideAbout = async (
  self: RequestGuarding,
  given: AnyRequest,
  parameters: Readonly<Record<string, unknown>> | undefined,
): Promise<AdmittedRequest<unknown> | Refused> => {
  const request = self.isForSockets ? asUnsafe(checked(given)) : asSent(checked(given))
  const response = new RecordedResponse(request)
  const isFollowed = !self.isForSockets && response.follow(given)
  let admitted: AdmittedRequest<unknown> | undefined
  const finish = async (ctx: Context, next: Next): Promise<void> => {
    await next()
    ctx.respond = admitted === undefined
  }
  const decide = (ctx: Context): Promise<unknown> => {
    if (self.route !== undefined) ctx['routerPath'] = self.route
    showBody(ctx.request, given)
    const enter = (): Promise<void> => {
      // what the other framework answers is not known yet
      ctx.status = 200
      admitted = admittedRequest(ctx.request, response, isFollowed ? undefined : given.socket)
      return Promise.resolve()
    }
    return self.decide(ctx, exchangeOf(ctx), enter, false, parameters && ownStrings(parameters))
  }
  await servedBy(self.app, [finish, readPlainSession], [...self.own, decide])(request, response)
  const { recorded } = response
  if (admitted !== undefined && recorded === undefined) {
    if (!isFollowed) answeredWith(response, 200)
    return admitted
  }
  const refusal = recorded ?? { status: 500, statusMessage: undefined, body: undefined }
  answeredWith(response, refusal.status)
  const { status, headers, body } = refusal
  return { refused: { status, headers, body, send: (answer) => sendTo(answer, refusal) } }
}

const admittedRequest = (
  request: Request & { readonly auth?: unknown; readonly objects?: Objects },
  response: RecordedResponse,
  socket: AnyRequest['socket'] | undefined,
): AdmittedRequest<unknown> =>
  // the getter of the signal stays one
  Object.defineProperty(admission(request, response, socket), 'headers', {
    value: response.completed(),
    enumerable: true,
  }) as AdmittedRequest<unknown>

const checked = (request: AnyRequest): AnyRequest => {
  if (typeof request === 'object' && request !== null && Array.isArray(request.rawHeaders)) return request
  throw new TypeError(`${caller} returns a function of a request of node:http; call it with that request`)
}

// The request itself belongs to the server that answers it, so nothing is written on it
const asUnsafe = (request: AnyRequest): IncomingMessage =>
  shownWith(request, 'headers', { ...request.headers, upgrade: request.headers.upgrade ?? '' })

// One request is the same for all guards, because each of them may read a proof that counts once
const known = new WeakMap<AnyRequest, IncomingMessage>()

// Express takes the path of a mounted application out of `url`
const asSent = (request: AnyRequest): IncomingMessage => {
  const url: unknown = Reflect.get(request, 'originalUrl')
  // Safe: Koa reads of a request of HTTP/2 only what both have
  if (typeof url !== 'string') return request as IncomingMessage
  const before = known.get(request)
  if (before !== undefined) return before
  const made = shownWith(request, 'url', url)
  known.set(request, made)
  return made
}

const shownWith = (request: AnyRequest, name: string, value: unknown): IncomingMessage =>
  // Safe: as above
  new Proxy(request, {
    get: (target, key) => (key === name ? value : Reflect.get(target, key)),
  }) as IncomingMessage

// A parser of the other framework has read it
const showBody = (request: Request, given: AnyRequest): void => {
  const body: unknown = Object.hasOwn(given, 'body') ? Reflect.get(given, 'body') : undefined
  if (body !== undefined) Object.assign(request, { body })
}
