/**
 * `guardUpgrade`: the guard for upgrades of a server (WebSocket handshakes, RFC 9110 §7.8), which never reach Koa.
 *
 * It is the guard of operations (`koa/guard.ts`), which Koa itself runs on a context of the application. So hooks get the same
 * request, and a refusal is the same answer. Of the application's middleware, only settings and sessions run, by a part that they
 * have for upgrades. No other middleware and no handler runs.
 */
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import * as E from 'fp-ts/lib/Either.js'
import type Koa from 'koa'
import type { Context, Middleware, Next, Request } from 'koa'
import { invalid } from '../core/AuthError.js'
import { combined, decideOf, type Authenticator, type AuthenticatorLike } from '../core/Authenticator.js'
import { constantFailure } from '../core/Description.js'
import { hostsOf } from '../core/RequestFields.js'
import type { Objects } from '../core/Evidence.js'
import { exchangeOf, type PathParameters } from '../core/Exchange.js'
import { andThen } from '../core/Result.js'
import { upgradeMark } from '../core/data.js'
import { endsSession, signedOut, type SignedOutEvent, type SessionDigest } from '../core/events.js'
import { authenticatorOf } from '../core/lists.js'
import * as is from '../core/checks.js'
import { bare, checkOptions, declareFactory, token, type Checks, type Given } from '../core/options.js'
import { signInDigestsOf, sourceOf } from '../kinds/sessionUser.js'
import type { Members, ObjectsAsked, PrincipalAsked } from '../koa/conditions.js'
import { authSignal } from '../koa/authSignal.js'
import { deciding } from '../koa/guard.js'
import { isApplication, isGuard } from '../koa/layer.js'
import { applySettings, settings, settingsFrom, type AuthSettings } from '../koa/settings.js'
import { answeredWith } from '../koa/watching.js'
import { presentToken } from './fromWebSocketProtocol.js'

/** On a request of node:http: the sign-outs since its upgrade began. */
const hearingMark: unique symbol = Symbol.for('koa-with-auth/hearing')

// A koa-session that `koa-with-auth/sessions` did not set up: its middleware also writes, so an upgrade runs only the part that reads.
// Without a store, koa-session reads the cookie when the session is first used
const readPlainSession: Middleware = async (ctx, next) => {
  if (sourceOf(ctx) === undefined) {
    const key = Object.getOwnPropertySymbols(ctx.app.context).find(({ description }) => description === READER)
    // Safe: only koa-session puts it there (koa-session 7, lib/index.js)
    const reader = key && (Reflect.get(ctx, key) as { readonly store?: unknown; initFromExternal(): Promise<void> })
    if (reader?.store !== undefined) await reader.initFromExternal()
  }
  return next()
}

const READER = 'get contextSession'

/** A guard of requests that never reach Koa. */
interface ServedGuard {
  readonly app: Koa
  readonly decide: ReturnType<typeof deciding>
  readonly route: string | undefined
  /** Middleware below that of the application. */
  readonly own: ReadonlyArray<Middleware>
}

/** Makes the application's listener for a request. `enter` is called if it is let in; `finish` is above all other middleware. */
export const servedBy = (
  { app, decide, route, own }: ServedGuard,
  finish: Middleware,
  enter: (ctx: Context) => void,
  parameters: PathParameters | undefined,
): ReturnType<Koa['callback']> => {
  if (app.listenerCount('error') === 0) app.on('error', (error: Error) => app.onerror(error))
  // Safe: only this package puts it there
  const parts = app.middleware.flatMap((one) => (Reflect.get(one, upgradeMark) as Middleware | undefined) ?? [])
  const last = (ctx: Context): Promise<unknown> => {
    if (route !== undefined) ctx['routerPath'] = route
    const entering = (): Promise<void> => Promise.resolve(enter(ctx))
    return decide(ctx, exchangeOf(ctx), entering, false, parameters)
  }
  // Safe: it inherits everything from the application
  const served = Object.create(app, {
    middleware: { value: [finish, readPlainSession, ...parts, ...own, last] },
    createContext: { value: (...given: Parameters<Koa['createContext']>) => app.createContext(...given) },
  }) as Koa
  return served.callback()
}

interface Hearing {
  readonly records: SignedOutEvent[]
  signIn: SessionDigest | undefined
}

type Heard = IncomingMessage & { [hearingMark]?: Hearing }

// The socket of an upgrade is not registered while it is decided, so only the guard can end it if its user signs out meanwhile: if the
// sign-in has ended when the decision is made, the upgrade is refused. After that, a sign-out destroys the socket, until the caller of the
// guard had a turn of the event loop to register it
/** Listens to sign-outs from now on, if the application listens, too. Returns a function that stops this. */
const hearSignOuts = (request: Heard, socket: Duplex): (() => void) => {
  if (!signedOut.hasSubscribers) return () => {}
  const hearing: Hearing = { records: [], signIn: undefined }
  request[hearingMark] = hearing
  const hear = (record: unknown): void => {
    // Safe: only records of this type are published on the channel
    const over = record as SignedOutEvent
    if (hearing.signIn === undefined) hearing.records.push(over)
    else if (endsSession(over, hearing.signIn)) socket.destroy()
  }
  signedOut.subscribe(hear)
  return () => void signedOut.unsubscribe(hear)
}

/** Makes an authenticator that also refuses a request whose sign-in ended while it was decided. */
const stillSignedIn = (self: Authenticator<unknown>): Authenticator<unknown> => {
  const refused = constantFailure(self.description, invalid)
  return combined([self] as const, ([member]) => {
    const decide = decideOf(member)
    return {
      description: member.description,
      decide: (attempt) =>
        andThen(decide(attempt), (result) => (E.isRight(result) && isSignInOver(attempt.request) ? refused : result)),
    }
  })
}

// Safe: `hearSignOuts` put it there, if anything did
const isSignInOver = ({ ctx, req }: Request): boolean => {
  const hearing = (req as Heard)[hearingMark]
  if (hearing === undefined) return false
  const signIn = signInDigestsOf(ctx)
  hearing.signIn = signIn
  return signIn !== undefined && hearing.records.some((record) => endsSession(record, signIn))
}

/** Settings beside those of the application, and the content of records of decisions. */
export interface GuardUpgradeOptions extends AuthSettings {
  /** The `route` of this endpoint in records of decisions (`koa-with-auth/events`). Default `''`. */
  readonly route?: string | undefined
  /**
   * The prefix of a token among the subprotocols that a client offers, such as `bearer.`. The token counts as a token in
   * `Authorization: Bearer`, so `httpBearer` and `httpJwt` accept it. Read the warning of `fromWebSocketProtocol`. Default: no
   * token is read.
   */
  readonly bearerProtocol?: string | undefined
}

/** An upgrade that was let in. */
export interface Admitted<P, O = unknown> {
  /** The principal of the upgrade. */
  readonly principal: P
  /** The request as its hooks saw it, for its `ip`, its `query`, or `sessionDigest` of `koa-with-auth/sessions`. */
  readonly request: Request
  /** The end of the accepted credential, as `authSignal` returns it: close the socket, or the response, when it is aborted. */
  readonly signal: AbortSignal
  /** The same as `signal`. */
  readonly ends: AbortSignal
  /** The objects that `owned` has found, by name; `undefined` if there is no such condition. */
  readonly objects?: O
}

/** The result for an admitted request. Nothing waits for its end until a caller reads the signal; then it waits until the response, or the socket, is closed. */
export const admission = (
  request: Request & { readonly auth?: unknown; readonly objects?: Objects },
  response: ServerResponse,
  socket: Duplex | undefined,
): Admitted<unknown> => {
  let made: AbortSignal | undefined
  const signal = (): AbortSignal => {
    if (made !== undefined) return made
    made = authSignal({ request })
    const close = (): void => void response.emit('close')
    if (socket?.destroyed === true) close()
    else socket?.once('close', close)
    return made
  }
  return {
    principal: request.auth,
    request,
    ...(request.objects !== undefined && { objects: request.objects }),
    get signal() {
      return signal()
    },
    get ends() {
      return signal()
    },
  }
}

/**
 * Decides about an upgrade. If it is let in, the promise resolves to the principal and the request, and the socket is untouched.
 * Otherwise it resolves to `undefined`: the socket was answered and closed, or the client has disconnected. Rejects with a
 * TypeError if the arguments are not those of an upgrade. No router reads the path of an upgrade, so the caller passes the `parameters`
 * that `owned` reads, decoded.
 */
export type UpgradeGuard<P, O = unknown> = (
  request: IncomingMessage,
  socket: Duplex,
  head: Uint8Array,
  parameters?: PathParameters,
) => Promise<Admitted<P, O> | undefined>

const guardUpgradeCall = 'guardUpgrade(app, a)'

/**
 * Makes a guard for the `upgrade` event of the server that serves an application: the same authenticators as for `withAuth`, with
 * the settings (`authSettings`) and the sessions (`sessions(app)`) of the application. A refusal is answered as over HTTP, before
 * the handshake, and closes the socket. An upgrade is not a safe request, so a cookie is refused if another site caused the
 * request. An upgrade without exactly one Host gets a 400, because Node does not check it. If the application calls `on('signed-out')`,
 * a user who signs out during the decision gets a 401.
 *
 * Settings of an `apiApp` or of a router do not apply. Repeat them in `options`, where they add to the application's. Throws a
 * TypeError if `app` is not an application, and for options and authenticators that cannot work.
 *
 * @example
 * import { createServer } from 'node:http'
 * import Koa from 'koa'
 * import { guardUpgrade } from 'koa-with-auth/upgrades'
 * import { WebSocketServer } from 'ws'
 *
 * const app = new Koa()
 * const sockets = new WebSocketServer({ noServer: true })
 * const guard = guardUpgrade(app, () => ({ user: 'anna' }))
 *
 * const server = createServer(app.callback())
 * server.on('upgrade', async (request, socket, head) => {
 *   const admitted = await guard(request, socket, head)
 *   if (admitted === undefined) return // it is answered
 *   sockets.handleUpgrade(request, socket, head, (webSocket) => {
 *     webSocket.on('error', () => webSocket.terminate()) // else a bad frame ends the process
 *     webSocket.send(`Hello ${admitted.principal.user}`)
 *   })
 * })
 */
export function guardUpgrade<S, C, const M extends AuthenticatorLike | Members>(
  app: Koa<S, C>,
  auth: M,
  options?: GuardUpgradeOptions,
): UpgradeGuard<PrincipalAsked<M>, ObjectsAsked<M>>
export function guardUpgrade(app: Koa, auth: unknown, options: GuardUpgradeOptions = {}): UpgradeGuard<unknown> {
  const authenticator = stillSignedIn(checkGuarded(guardUpgradeCall, app, auth))
  const { own, route } = resolveGuardOptions(checkOptions('guardUpgrade(app, a, options)', options, optionChecks))
  const decide = deciding(authenticator, ['upgrade'], refuseWithoutHost)
  return async (request, socket, head, parameters) => {
    checkUpgrade(request, socket, head)
    // Node may have dropped this field, but it still is an upgrade, and not safe
    request.headers.upgrade ??= ''
    // a client that disconnects before the handshake is no error
    socket.on('error', () => {})
    const response = new UpgradeResponse(request)
    if (!response.isNext(socket)) {
      socket.destroy()
      return undefined
    }
    let admitted: Admitted<unknown> | undefined
    const emitClose = () => response.emit('close')
    socket.once('close', emitClose)
    const finish = async (ctx: Context, next: Next): Promise<void> => {
      try {
        await next()
      } finally {
        if (!socket.destroyed) socket.off('close', emitClose)
        ctx.respond = admitted === undefined
        if (admitted === undefined) response.answer(socket)
      }
    }
    const enter = ({ request: seen }: Context): void => {
      admitted = admission(seen, response, socket)
    }
    const stop = hearSignOuts(request, socket)
    const serve = servedBy({ app, decide, own, route }, finish, enter, parameters && ownStrings(parameters))
    await serve(request, response).finally(() => setImmediate(stop)) // the caller registers the socket before
    if (admitted === undefined || socket.destroyed) return undefined
    answeredWith(response, 101)
    return admitted
  }
}

// Nothing that is inherited, and no array of a parser of queries. A router of Koa takes no empty string for a parameter
export const ownStrings = (parameters: Readonly<Record<string, unknown>>): PathParameters =>
  bare(Object.fromEntries(Object.entries(parameters).filter((one): one is [string, string] => is.isFilled(one[1]))))

declareFactory('guardUpgrade', guardUpgrade)

// How long a refused client may read the response, in milliseconds
const LINGER = 2000

// No socket, and silent while the request is decided, so nothing that a hook writes is sent. No cookie, because an upgrade only reads sessions
/** The `ctx.res` of hooks and of the guard. It answers on the socket, or is never sent. */
class UpgradeResponse extends ServerResponse {
  #isSilent = true

  constructor(request: IncomingMessage) {
    super(request)
    this.shouldKeepAlive = false
  }

  /** Whether the socket is free: no response to an earlier request is being written to it. */
  isNext(socket: Duplex): boolean {
    try {
      // Safe, here and below: only those parts of a Socket are used that every stream has
      this.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
      this.detachSocket(socket as Parameters<ServerResponse['detachSocket']>[0])
      return true
    } catch {
      return false
    }
  }

  /**
   * Sends all later writes, and then closes the socket. Bytes that the client still sends are read and dropped for
   * a while (RFC 9112 §9.6): closing with unread bytes would reset the connection, and the client might lose the
   * response.
   */
  answer(socket: Duplex): void {
    this.#isSilent = false
    if (socket.destroyed) return
    const timer = setTimeout(() => socket.destroy(), LINGER).unref()
    socket.once('close', () => clearTimeout(timer))
    this.once('finish', () => {
      socket.end()
      socket.resume()
    })
    // Koa waits for the socket, and would report its errors, but a client that has gone is no error
    this.removeAllListeners('socket')
    this.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
  }

  override writeHead(...given: ReadonlyArray<unknown>): this {
    if (this.#isSilent) return this
    this.removeHeader('Set-Cookie')
    // Safe: it is called with the same arguments
    return Reflect.apply(super.writeHead, this, given) as this
  }

  override write(...given: ReadonlyArray<unknown>): boolean {
    return this.#isSilent || (Reflect.apply(super.write, this, given) as boolean)
  }

  override end(...given: ReadonlyArray<unknown>): this {
    return this.#isSilent ? this : (Reflect.apply(super.end, this, given) as this)
  }

  override flushHeaders(): void {
    if (!this.#isSilent) super.flushHeaders()
  }

  // a 1xx is not the response
  override writeContinue(): void {}
  override writeProcessing(): void {}
  override writeEarlyHints(): void {}
}

export const checkGuarded = (caller: string, app: unknown, auth: unknown): Authenticator<unknown> => {
  if (!isApplication(app) || !('createContext' in app)) {
    throw new TypeError(`${caller}: app must be a Koa application, not a router or an apiApp`)
  }
  if (auth === null) throw new TypeError(`${caller}: a is null; a request that anyone may send needs no guard`)
  if (isGuard(auth)) throw new TypeError(`${caller}: a is a guard, withAuth(a); pass the authenticator itself`)
  return authenticatorOf(caller, auth, `${caller}: a`)
}

export const optionChecks: Checks<GuardUpgradeOptions> = {
  route: is.maybe(is.string),
  bearerProtocol: is.maybe(is.nameLike(token)),
  ...settings,
}

export const resolveGuardOptions = ({ route, bearerProtocol, ...own }: Given<GuardUpgradeOptions>) => {
  const inForce = applySettings(settingsFrom(bare(own)))
  return { route, own: bearerProtocol === undefined ? [inForce] : [inForce, presentToken(bearerProtocol)] }
}

const checkUpgrade = (request: unknown, socket: unknown, head: unknown): void => {
  const isUpgrade =
    isKeyed(request) &&
    isKeyed(request['headers']) &&
    Array.isArray(request['rawHeaders']) &&
    isKeyed(socket) &&
    typeof socket['destroy'] === 'function' &&
    head instanceof Uint8Array
  if (isUpgrade) return
  throw new TypeError(
    `${guardUpgradeCall} returns a function of (request, socket, head); call it with the arguments of a server's event "upgrade": server.on('upgrade', async (request, socket, head) => ...)`,
  )
}

/** The status for a request without a Host (RFC 9112 §3.2), which Node does not require of upgrades. A guard refuses two. */
export const refuseWithoutHost = ({ request }: Context): number | undefined => (hostsOf(request)[0] ? undefined : 400)

const isKeyed = (u: unknown): u is Readonly<Record<string, unknown>> => typeof u === 'object' && u !== null
