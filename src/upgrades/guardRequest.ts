/**
 * `guardRequest`: the guard for requests that never reach Koa: those that another framework answers, or the long polling of Socket.IO.
 * It decides as `guardUpgrade` does, and writes nothing: its caller answers the request.
 */
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2'
import { Duplex } from 'node:stream'
import type Koa from 'koa'
import type { Context, Next } from 'koa'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import type { AuthResponse } from '../core/Settings.js'
import type { Members, ObjectsAsked, PrincipalAsked } from '../koa/conditions.js'
import { deciding } from '../koa/guard.js'
import { union } from '../koa/responseHeaders.js'
import { answeredWith } from '../koa/watching.js'
import {
  admission,
  checkGuarded,
  optionChecks,
  ownStrings,
  refuseWithoutHost,
  resolveGuardOptions,
  servedBy,
  type Admitted,
  type GuardUpgradeOptions,
} from './guardUpgrade.js'

/** A request of node:http, or of the compatibility API of node:http2. */
type AnyRequest = IncomingMessage | Http2ServerRequest

type AnyResponse = ServerResponse | Http2ServerResponse

/** The fields that a guard adds to a response, by their names in lower case. */
type Fields = Readonly<Record<string, string | string[]>>

/** Settings beside those of the application, and the kind of the requests. */
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

const guardRequestCall = 'guardRequest(app, a)'

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
  const authenticator = checkGuarded(guardRequestCall, app, auth)
  const where = 'guardRequest(app, a, options)'
  const { methods = 'sockets', ...settings } = checkOptions(where, options, {
    ...optionChecks,
    methods: is.maybe(is.oneOf('all', 'sockets')),
  })
  const self: RequestGuarding = {
    app,
    decide: deciding(authenticator, ['request'], methods === 'all' ? undefined : refuseWithoutHost),
    isForSockets: methods === 'sockets',
    ...resolveGuardOptions(settings),
  }
  return (request, parameters) => decideAbout(self, request, parameters)
}

declareFactory('guardRequest', guardRequest)

type RequestGuarding = Parameters<typeof servedBy>[0] & { readonly isForSockets: boolean }

const decideAbout = async (
  self: RequestGuarding,
  given: AnyRequest,
  parameters: Readonly<Record<string, unknown>> | undefined,
): Promise<AdmittedRequest<unknown> | Refused> => {
  const request = self.isForSockets ? asUnsafe(checkRequest(given)) : asSent(checkRequest(given))
  const response = new RecordedResponse(request)
  const isFollowed = !self.isForSockets && response.follow(given)
  let admitted: AdmittedRequest<unknown> | undefined
  const finish = async (ctx: Context, next: Next): Promise<void> => {
    // a parser of the other framework has read it
    const body: unknown = Object.hasOwn(given, 'body') ? Reflect.get(given, 'body') : undefined
    if (body !== undefined) Object.assign(ctx.request, { body })
    await next()
    ctx.respond = admitted === undefined
  }
  const enter = (ctx: Context): void => {
    // the answer of the other framework is not known yet
    ctx.status = 200
    const entered = admission(ctx.request, response, isFollowed ? undefined : given.socket)
    const headers = { value: response.completed(), enumerable: true }
    // the getter of the signal stays a getter
    admitted = Object.defineProperty(entered, 'headers', headers) as AdmittedRequest<unknown>
  }
  await servedBy(self, finish, enter, parameters && ownStrings(parameters))(request, response)
  const { recorded } = response
  if (admitted !== undefined && recorded === undefined) {
    if (!isFollowed) answeredWith(response, 200)
    // it had closed before anything waited for it
    else if (response.destroyed) response.emit('close')
    return admitted
  }
  const refusal = recorded ?? { status: 500, statusMessage: undefined, body: undefined }
  answeredWith(response, refusal.status)
  const { status, headers, body } = refusal
  return { refused: { status, headers, body, send: (answer) => sendTo(answer, refusal) } }
}

const checkRequest = (request: AnyRequest): AnyRequest => {
  if (typeof request === 'object' && request !== null && Array.isArray(request.rawHeaders)) return request
  throw new TypeError(`${guardRequestCall} returns a function of a request of node:http; call it with that request`)
}

// The request itself belongs to the server that answers it, so nothing is written on it
const asUnsafe = (request: AnyRequest): IncomingMessage =>
  shownWith(request, 'headers', { ...request.headers, upgrade: request.headers.upgrade ?? '' })

// One request is the same for all guards, because each of them may read a proof that counts once
const shownRequests = new WeakMap<AnyRequest, IncomingMessage>()

// Express takes the path of a mounted application out of `url`
const asSent = (request: AnyRequest): IncomingMessage => {
  const url: unknown = Reflect.get(request, 'originalUrl')
  // Safe: Koa reads only members that requests of HTTP/2 have, too
  if (typeof url !== 'string') return request as IncomingMessage
  const before = shownRequests.get(request)
  if (before !== undefined) return before
  const made = shownWith(request, 'url', url)
  shownRequests.set(request, made)
  return made
}

const shownWith = (request: AnyRequest, name: string, value: unknown): IncomingMessage =>
  // Safe: as above
  new Proxy(request, { get: (target, key) => (key === name ? value : Reflect.get(target, key)) }) as IncomingMessage

interface Recorded extends AuthResponse {
  readonly body: string | Uint8Array | undefined
  readonly statusMessage: string | undefined
}

class RecordedResponse extends ServerResponse {
  recorded: Recorded | undefined

  constructor(request: AnyRequest) {
    // Safe: Node reads the method and the version of it, which both have
    super(request as IncomingMessage)
  }

  override writeHead(): this {
    return this
  }

  override flushHeaders(): void {}

  override write(): boolean {
    return true
  }

  override end(chunk?: unknown): this {
    if (this.recorded === undefined) {
      const { statusCode: status, statusMessage } = this
      const body = typeof chunk === 'string' || chunk instanceof Uint8Array ? chunk : undefined
      this.recorded = { status, statusMessage, headers: this.completed(), body }
    }
    return this
  }

  /** The fields of the response, with those that a guard adds when the head is written. Sessions are only read, so no cookie is set. */
  completed(): Fields {
    // a guard replaces the method
    Reflect.apply(this.writeHead, this, [this.statusCode])
    const { 'set-cookie': _cookies, ...fields } = this.getHeaders()
    // Safe: guards and Koa set strings, numbers and arrays of strings, and Node writes a number in the same way
    return fields as Fields
  }

  /** Is closed when the server's response is; until then, nothing is known of it. `false`: that response was not found. */
  follow(request: AnyRequest): boolean {
    const answer = serverAnswer(request)
    if (answer === undefined) return false
    const close = (): void => {
      const { headersSent, writableFinished: isEnded } = answer
      for (const [name, value] of Object.entries({ headersSent, writableEnded: isEnded, writableFinished: isEnded })) {
        Object.defineProperty(this, name, { value })
      }
      this.statusCode = 'statusCode' in answer ? answer.statusCode : Number(answer.sentHeaders?.[':status'] ?? 0)
      this.destroyed = true
      this.emit('close')
    }
    const emitter: NodeJS.EventEmitter = answer
    if (answer.destroyed) close()
    else emitter.once('close', close)
    return true
  }
}

// The response of the server, or the stream of HTTP/2 that it is written to
const serverAnswer = (request: AnyRequest): ServerResponse | ServerHttp2Stream | undefined => {
  const { stream } = request as { readonly stream?: unknown }
  // Safe: no other request has a stream
  if (stream instanceof Duplex) return stream as ServerHttp2Stream
  // Node keeps the response there that a socket is writing. A request that was sent ahead has none yet
  const response: unknown = Reflect.get(request.socket ?? {}, '_httpMessage')
  return response instanceof ServerResponse && response.req === request ? response : undefined
}

// They describe the body, or the challenge, that a refusal replaces
const replaced = 'content-encoding content-length etag last-modified transfer-encoding www-authenticate'.split(' ')

// The values that were there and those of a guard are one list
const mergedFields = ['vary', 'access-control-expose-headers']

const sendTo = (response: AnyResponse, { status, statusMessage, headers = {}, body }: Recorded): void => {
  if (!response.headersSent) {
    for (const name of replaced) response.removeHeader(name)
    for (const [name, value] of Object.entries(headers)) {
      const present = mergedFields.includes(name) ? response.getHeader(name) : undefined
      const both = present === undefined ? value : union(String(present), String(value))
      response.setHeader(name, typeof both === 'object' ? [...both] : both)
    }
    response.statusCode = status
    // HTTP/2 has none (RFC 9113 §8.3.2)
    if (response instanceof ServerResponse) response.statusMessage = statusMessage ?? ''
  }
  if (!response.writableEnded) response.end(body ?? '')
}
