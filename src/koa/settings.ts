/** `authSettings`: middleware that gives all guards below it their settings. Everything has a default without it. */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { format } from 'node:util'
import type { Context, Middleware, Next } from 'koa'
import { is as isAuthError } from '../core/AuthError.js'
import { trustedOrigins } from '../core/CrossOrigin.js'
import { addHandlers, defaults, handlerOf } from '../core/Settings.js'
import type { Addition, AuthResponse, ErrorMapper, ExceptionHandler, Settings } from '../core/Settings.js'
import { carry, exchangeOf, settingsOf } from '../core/Exchange.js'
import { notWrapped, upgradeMark, withFixed } from '../core/data.js'
import { functionName } from '../core/functionName.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, typeName, type Check, type Checks, type Given } from '../core/options.js'
import { respondException } from './respond.js'
import { headersOfGuard } from './responseHeaders.js'

const settingsMark = Symbol.for('koa-with-auth/settings')

/** Marks a request whose operation threw. Its session is not saved, even if a handler answers the exception. */
export const markThrown = (ctx: Context): void => {
  exchangeOf(ctx).hasThrown = true
}

/** Lets the registered handler answer. Without one it rejects with the exception, and Koa answers with a 500 that reveals nothing. */
export const answerException = async (ctx: Context, error: unknown, settings: Settings): Promise<void> => {
  markThrown(ctx)
  const answer = handlerOf(settings.exceptionHandlers, error)
  // after the head was sent, no other response is possible
  if (answer === undefined || ctx.headerSent) throw error
  try {
    const response = await answer(ctx.request, error)
    if (!isResponse(response)) {
      throw new TypeError('an onError handler must return { status, body } with a status from 200 to 599')
    }
    respondException(ctx, response, headersOfGuard(ctx.res) !== undefined)
  } catch (raised) {
    throw serverError(raised)
  }
}

const isResponse = (u: unknown): u is AuthResponse =>
  typeof u === 'object' &&
  u !== null &&
  'status' in u &&
  Number.isInteger(u.status) &&
  Number(u.status) >= 200 &&
  Number(u.status) <= 599

interface ErrorProperties extends Error {
  readonly status?: unknown
  readonly statusCode?: unknown
  readonly expose?: unknown
  readonly headers?: unknown
  readonly code?: unknown
}

/**
 * An error that Koa answers with a 500. Koa obeys an error's status even if it is a success, and sends its headers. It
 * never answers an error that is `null` or cannot take a status. These are wrapped, others are returned as they
 * are.
 */
export const serverError = (error: unknown): Error => {
  try {
    if (error instanceof Error && isServerError(error) && hasWritableStatus(error) && hasNoHeaders(error)) return error
  } catch {
    // a getter throws; Koa would read it, too
  }
  return new Error(`a value was thrown that is not a server error: ${describeThrown(error)}`, { cause: error })
}

/**
 * An exception of an operation in a form that Koa can answer. Koa answers nothing for `null`. It ends the process for an error that it
 * cannot read or write, or whose headers Node refuses. It would answer a success for an error with such a status. These are wrapped. Any
 * other exception is returned as it is, and so is an exception that a registered handler answers.
 */
export const answerable = (error: unknown, { exceptionHandlers }: Settings): unknown => {
  try {
    if (handlerOf(exceptionHandlers, error) !== undefined || isAnswerable(error)) return error
  } catch {
    // a property throws when it is read
  }
  return serverError(error)
}

const isAnswerable = (error: unknown): boolean => {
  // Koa writes a value that is no Error into an Error
  if (!(error instanceof Error)) return error !== null && error !== undefined && format('%j', error) !== ''
  const { status, statusCode, headers, stack, message }: ErrorProperties = error
  const answered = status || statusCode
  for (const [name, value] of Object.entries(headers ?? {})) {
    validateHeaderName(name)
    validateHeaderValue(name, String(value))
  }
  const isSuccess = typeof answered === 'number' && answered < 400
  return !isSuccess && hasWritableStatus(error) && typeof stack === 'string' && typeof message === 'string'
}

// Koa logs the stack of an error, but not its cause
const describeThrown = (error: unknown): string => {
  try {
    if (isAuthError(error)) return `the AuthError "${error._tag}"; return it instead`
    if (error instanceof Error) {
      const isRefusal = 'status' in error && typeof error.status === 'number' && error.status < 500
      const fix = isRefusal ? '; its status counts only if http-errors made it: return false, or an AuthError' : ''
      return `${error.name}: ${error.message}${fix}`
    }
  } catch {
    // a property throws when it is read, or is a symbol
  }
  return typeName(error)
}

// Koa 2 answers ENOENT with a 404, but here a file of a hook is missing
const isServerError = ({ status, statusCode, expose, code }: ErrorProperties): boolean => {
  const answered = status || statusCode
  const isServers = answered === undefined || (typeof answered === 'number' && answered >= 500)
  return isServers && expose !== true && code !== 'ENOENT'
}

// Koa writes the status that it answered onto the error
const hasWritableStatus = (error: Error): boolean => {
  for (let at: unknown = error; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at)) {
    const property = Object.getOwnPropertyDescriptor(at, 'status')
    if (property !== undefined) return property.writable === true || property.set !== undefined
  }
  return Object.isExtensible(error)
}

// Koa sends an error's headers as they are. One may be a credential or a cookie. One that Node refuses ends the process
const hasNoHeaders = ({ headers, stack, message }: ErrorProperties): boolean =>
  headers === undefined && typeof stack === 'string' && typeof message === 'string'

/** The settings of an application. Settings that are mounted below others add to them. */
export interface AuthSettings {
  /** Whether writes from other sites are refused, with credentials that browsers send by themselves. Default `true`. */
  readonly csrf?: boolean | undefined
  /** Other origins, such as `https://app.example`, whose writes are accepted. Default none. */
  readonly trustedOrigins?: ReadonlyArray<string> | ((origin: string) => boolean) | undefined
  /**
   * Whether a proxy asks here about other requests (nginx `auth_request`, Traefik `ForwardAuth`), which always come as a GET. Then the
   * cross-site check is that of the method in `X-Forwarded-Method` or `X-Original-Method`; without these fields it counts as a write. Default
   * `false`.
   */
  readonly forwarded?: boolean | undefined
  /** The realm (protection space) of challenges that name none. Default `api`. */
  readonly realm?: string | undefined
  /** How long asynchronous authentication may take, in milliseconds; after that 503. Default 10 000. */
  readonly timeout?: number | undefined
  /** Makes the response to a failure. Default: problem details (RFC 9457). */
  readonly errorMapper?: ErrorMapper | undefined
  /**
   * Whether the body of a failure names the members that were tried, and why each failed; for development. Default: whether
   * NODE_ENV is `development`. A mapper of your own decides for itself.
   */
  readonly explain?: boolean | undefined
  /**
   * The name in `ctx.state` where guarded operations find the principal too, such as `user` for handlers that were written for
   * koa-jwt or koa-passport. Public operations get nothing there. Default: only `ctx.request.auth`.
   */
  readonly state?: string | undefined
  /**
   * Names in records of decisions (`koa-with-auth/events`): `subject` returns a name for the principal.
   * Without it no record has a name. Default none. `actor` returns the actor for the subject, if that is another. Default: `act`
   * of the principal, or that of the token, see `Decision.actor`.
   */
  readonly events?:
    | {
        readonly subject: (principal: never) => string
        readonly actor?: ((principal: never) => string | undefined) | undefined
      }
    | undefined
  /** The responses for exceptions of authenticators and of operations; see `onError`. Default: Koa's own 500. */
  readonly onError?: ReadonlyArray<ExceptionHandler> | undefined
}

const stateName = is.that(
  // `ctx.state` has a prototype, which must not be replaced
  (value) => typeof value === 'string' && /^[A-Za-z_$][\w$]*$/.test(value) && !(value in {}),
  "must be the name of a property of ctx.state, such as 'user'",
)

const events: Check = (where, value) => {
  // Safe: anything but an object is refused
  checkOptions(where, value as object, { subject: is.hook(1), actor: is.maybe(is.hook(1)) })
}

export const settings: Checks<AuthSettings> = {
  csrf: is.maybe(is.flag),
  forwarded: is.maybe(is.flag),
  trustedOrigins: is.maybe((where, value) => (typeof value === 'function' ? is.hook(1) : is.list)(where, value)),
  realm: is.maybe(is.realm),
  timeout: is.maybe(is.positive),
  errorMapper: is.maybe(is.hook(2)),
  explain: is.maybe(is.flag),
  state: is.maybe(stateName),
  events: is.maybe(events),
  onError: is.maybe(is.list),
}

/**
 * Middleware to mount above the routers: `app.use(authSettings({ realm: 'pets' }))`. Throws a TypeError for an unknown
 * option and a wrong value, such as an origin that no browser sends, or a realm that does not fit a header.
 *
 * @example
 * import { authSettings } from 'koa-with-auth'
 *
 * const settings = authSettings({ realm: 'pets', trustedOrigins: ['https://app.example'], timeout: 2000 })
 */
export const authSettings = (options: AuthSettings): Middleware =>
  applySettings(settingsFrom(checkOptions('authSettings', options, settings)))

declareFactory('authSettings', authSettings)

/** The settings that checked options add. Throws a TypeError for an origin that no browser sends, and for two handlers of one class. */
export const settingsFrom = (options: Given<AuthSettings>): Addition => {
  const { trustedOrigins: origins, onError = [], events, ...others } = options
  const given: Partial<Settings> = {
    ...others,
    ...(origins !== undefined && { trustedOrigins: trustedOrigins(origins, functionName) }),
    // Safe: the author declares the principals of the application
    ...(events !== undefined && { events: events as Settings['events'] }),
  }
  const add: Addition = (outer) => ({
    ...outer,
    ...given,
    exceptionHandlers: addHandlers(outer.exceptionHandlers, onError),
  })
  // called once, so that two handlers of one class are refused now
  add(defaults)
  return add
}

// the audit and upgrades find it by these marks. It has no name, so that the policy file has a digest of its text
const markSettings = <F extends Function>(settings: F, add: Addition): F =>
  notWrapped(withFixed(settings, { [settingsMark]: add, [upgradeMark]: settings }))

export const isSettings = (f: Function): boolean => settingsMark in f

export const additionOf = (f: Function): Addition | undefined => {
  const add: unknown = Reflect.get(f, settingsMark)
  // Safe: `markSettings` alone writes it
  return typeof add === 'function' ? (add as Addition) : undefined
}

export const applySettings = (add: Addition): Middleware => {
  let latest: readonly [outer: Settings, inner: Settings] = [defaults, add(defaults)]
  return markSettings((ctx: Context, next: Next) => {
    if (typeof next !== 'function')
      throw new TypeError('authSettings(options) returns middleware; write app.use(authSettings(options))')
    const outer = settingsOf(ctx.request)
    // one application has one outer level, so this is made once
    if (latest[0] !== outer) latest = [outer, add(outer)]
    const settings = latest[1]
    carry(ctx.request, settings)
    if (settings.exceptionHandlers.size === 0) return next()
    return next().catch((error: unknown) => answerException(ctx, error, settings))
  }, add)
}
