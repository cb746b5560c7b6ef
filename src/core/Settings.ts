/** The settings of an application, as data. `koa/settings.ts` checks them and puts them into the record of the request. */
import { STATUS_CODES } from 'node:http'
import type { Request } from './Request.js'
import { failures, type AuthError } from './AuthError.js'
import type { CrossOriginPolicy } from './CrossOrigin.js'
import { unfinishedReasons } from './UnfinishedReason.js'
import { deepFreeze, ownField } from './data.js'
import * as is from './checks.js'
import { checkHook, checkOptions, declareFactory, type Checks } from './options.js'

/**
 * A response as data. An object body is sent as JSON; for a failure, as `application/problem+json` (RFC 9457), unless
 * `headers` says otherwise.
 */
export interface AuthResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>> | undefined
  readonly body?: string | Buffer | object | null | undefined
}

/**
 * Turns a failure into a response, or a promise of it. A page of a template engine is written first: `request.ctx` is the context, so
 * after `await request.ctx.render('403')` the response is `{ status: 403, body: request.ctx.body }`. A mapper that throws or returns no
 * response is a 500; a mapper that takes longer than the setting `timeout` is a 503.
 *
 * It decides the status, the body and further headers. The responder (`koa/respond.ts`) adds the challenges,
 * Cache-Control and Vary, so a mapper cannot forget them. A raised exception reaches a mapper only if the hook threw an
 * HTTP error.
 *
 * @example
 * import { authSettings, defaultErrorMapper, type ErrorMapper } from 'koa-with-auth'
 *
 * const errorMapper: ErrorMapper = (error, request) =>
 *   error._tag === 'expired' ? { status: 401, body: { detail: 'Sign in again' } } : defaultErrorMapper(error, request)
 *
 * const settings = authSettings({ errorMapper })
 */
export type ErrorMapper = (error: AuthError, request: Request) => AuthResponse | Promise<AuthResponse>

const DEFAULT_RETRY_AFTER = 5
const MAX_RETRY_AFTER = 2 ** 31

/** RFC 9457 problem details: constant strings, with no part of the request. */
export const problem = (status: number, detail: string = STATUS_CODES[status] ?? 'Error'): AuthResponse => ({
  status,
  body: { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail },
})

const unauthorizedProblem = deepFreeze(problem(401))
const forbiddenProblem = deepFreeze(problem(403))
const forgedProblem = deepFreeze(problem(403, 'CSRF check Failed'))
const notFoundProblem = deepFreeze(problem(404))

// Strings alone: a hook may have answered other data
const reasonOf = (error: AuthError): { readonly detail?: string; readonly code?: string } => {
  const [detail, code] = [ownField(error, 'detail'), ownField(error, 'code')]
  return { ...(typeof detail === 'string' && { detail }), ...(typeof code === 'string' && { code }) }
}

const withReason = (response: AuthResponse, error: AuthError): AuthResponse =>
  Object.hasOwn(error, 'detail') || Object.hasOwn(error, 'code') ? withMembers(response, reasonOf(error)) : response

// A browser that keeps no cookies would try again for ever
const unknownHere = 'This sign-in cannot be finished: it was used already, or this browser kept no cookie of it.'

const string = { type: 'string' } as const
const seconds = { type: 'number', description: 'In seconds' } as const

/** @internal The members that a failure can add to its problem document. `withMembers` writes no others, so OpenAPI lists all. */
export const problemMembers = {
  code: { type: 'string', description: 'Why, for programs' },
  reason: {
    type: 'string',
    enum: [...Object.keys(unfinishedReasons), 'insufficient'],
    description: 'Why a sign-in was not finished; `insufficient` if the user must prove more first',
  },
  proof: {
    type: 'object',
    description: 'The proof that the user must give first: by one of the methods, and not older than the age',
    properties: { methods: { type: 'array', items: string }, maxAge: seconds },
  },
  authentication: {
    type: 'object',
    description:
      'How the user of the token must authenticate (RFC 9470): in one of the classes, not longer ago than the age',
    properties: { acr: { type: 'array', items: string }, maxAge: seconds },
  },
  why: { enum: ['upstream'], description: 'The provider has ended the grant of this user: begin there again' },
  tried: {
    type: 'array',
    description: 'What was tried, for developers: only with `explain`',
    items: { type: 'object', properties: { challenge: string, failure: string, reason: string, why: string } },
  },
} as const

export const withMembers = (
  response: AuthResponse,
  members: { readonly [Name in keyof typeof problemMembers | 'detail']?: unknown },
): AuthResponse => ({
  ...response,
  body: Object.assign({}, response.body, members),
})

// RFC 9110 §10.2.3: a whole number of seconds
const retryAfter = (seconds: number | undefined): string =>
  String(seconds !== undefined && seconds >= 0 && seconds < MAX_RETRY_AFTER ? Math.ceil(seconds) : DEFAULT_RETRY_AFTER)

/**
 * The mapper of an application that sets none; `detail` of a 401 is "Unauthorized", unless the failure has a reason.
 *
 * | failure                              | status |
 * |--------------------------------------|--------|
 * | absent, malformed, invalid, expired  | 401    |
 * | forged, insufficient                 | 403    |
 * | notFound                             | 404    |
 * | throttled                            | 429    |
 * | unavailable                          | 503    |
 * | raised                               | the HTTP error's own, else 500 |
 *
 * `insufficient` with `authentication` is a 401 (RFC 9470 §3). A failure with a `reason` (`koa-with-auth/sign-in`) is a
 * 400 or a 403 whose body has the reason. The `detail` and `code` of a failure are members of its body.
 */
export const defaultErrorMapper: (error: AuthError, request: Request) => AuthResponse = (error) => {
  const { reason } = error
  if (reason !== undefined) {
    const detail = reasonOf(error).detail ?? (reason === 'unknown' ? unknownHere : undefined)
    return withMembers(problem(unfinishedReasons[reason].status, detail), { reason })
  }
  switch (error._tag) {
    case 'absent':
    case 'malformed':
    case 'invalid':
    case 'expired':
      // the caller is known; a page needs to tell it from a session that has expired
      return error.why === 'upstream'
        ? withMembers(unauthorizedProblem, { why: 'upstream' })
        : withReason(unauthorizedProblem, error)
    case 'insufficient':
      if (error.authentication !== undefined) {
        return withMembers(unauthorizedProblem, { reason: 'insufficient', authentication: error.authentication })
      }
      return error.proof === undefined
        ? withReason(forbiddenProblem, error)
        : withMembers(forbiddenProblem, { reason: 'insufficient', proof: error.proof })
    case 'forged':
      return forgedProblem
    case 'notFound':
      return withReason(notFoundProblem, error)
    case 'throttled':
      return { ...problem(429), headers: { 'Retry-After': retryAfter(error.retryAfter) } }
    case 'unavailable':
      return { ...problem(503), headers: { 'Retry-After': retryAfter(error.retryAfter) } }
    case 'raised':
      return { ...problem(httpStatusOf(error.error) ?? 500), ...retryAfterOf(error.error) }
  }
}

/** A mapper for each kind of failure. */
export type FailureMappers = { readonly [Tag in AuthError['_tag']]?: FailureMapper<Tag> | undefined }

type FailureMapper<Tag> = (
  error: Extract<AuthError, { readonly _tag: Tag }>,
  request: Request,
) => AuthResponse | Promise<AuthResponse>

const mapper = is.maybe(is.hook(2))
// Safe: it has each failure
const failureMapperChecks = Object.fromEntries(
  Object.keys(failures).map((tag) => [tag, mapper]),
) as Checks<FailureMappers>

/**
 * Makes one mapper from a mapper for each tag. Failures with other tags go to `otherwise`. Throws a TypeError for a tag that does
 * not exist, and for a mapper that is not a function.
 *
 * @example
 * import { authSettings, perFailure } from 'koa-with-auth'
 *
 * const settings = authSettings({
 *   errorMapper: perFailure({ expired: () => ({ status: 401, body: { detail: 'Sign in again' } }) }),
 * })
 */
export const perFailure = (mappers: FailureMappers, otherwise: ErrorMapper = defaultErrorMapper): ErrorMapper => {
  const given = checkOptions('perFailure', mappers, failureMapperChecks)
  checkHook('perFailure(mappers, otherwise): otherwise', otherwise, 2)
  return (error, request) => {
    // Safe: the mapper of a tag gets only failures with this tag
    const own = given[error._tag] as ErrorMapper | undefined
    return (own ?? otherwise)(error, request)
  }
}

declareFactory('perFailure', perFailure)

// The constant bodies, serialized once
const serializedBodies = new Map(
  [unauthorizedProblem, forbiddenProblem, forgedProblem, notFoundProblem].map(({ body }) => [
    body,
    JSON.stringify(body),
  ]),
)

export const serialize = (body: object): string => serializedBodies.get(body) ?? JSON.stringify(body)

// Of the headers of an HTTP error, only Retry-After (429) is sent, not cookies or redirects
const retryAfterOf = (error: unknown): Pick<AuthResponse, 'headers'> => {
  const headers: unknown = typeof error === 'object' && error !== null && 'headers' in error ? error.headers : undefined
  if (typeof headers !== 'object' || headers === null) return {}
  const value: unknown = Object.entries(headers).find(([name]) => name.toLowerCase() === 'retry-after')?.[1]
  return /^\d+$/.test(String(value)) ? { headers: { 'Retry-After': String(value) } } : {}
}

/** @internal An error that Koa and the guard answer with its status. */
export const httpError = (status: number, message: string, expose = true): Error =>
  Object.assign(new Error(message), { status, statusCode: status, expose })

// A string, because import and require are two copies of this package
const answeredMark = 'koa-with-auth/answered'

/** @internal Answers a request without its operation, whatever the error mapper: a delivery that was handled before. */
export const answered = (response: AuthResponse): Error =>
  Object.assign(new Error('it was answered'), { [answeredMark]: response })

export const answeredBy = (error: unknown): AuthResponse | undefined =>
  // Safe: only `answered` writes it
  error instanceof Error ? (ownField(error, answeredMark) as AuthResponse | undefined) : undefined

/** The status of an HTTP error of the 4xx class, as `http-errors` and `ctx.throw` make them; otherwise `undefined`. */
export const httpStatusOf = (error: unknown): number | undefined => {
  if (!(error instanceof Error)) return undefined
  const [status, statusCode, expose] = ['status', 'statusCode', 'expose'].map((name): unknown =>
    Reflect.get(error, name),
  )
  const isHttp = typeof expose === 'boolean' && typeof status === 'number' && status === statusCode
  return isHttp && status >= 400 && status < 500 && STATUS_CODES[status] !== undefined ? status : undefined
}

/** A class of exceptions. */
export type ExceptionClass<X> = abstract new (...args: never[]) => X

/** Makes the response to an exception. Its body is sent like that of an operation. */
export type ExceptionResponder<X> = (request: Request, error: X) => AuthResponse | Promise<AuthResponse>

/**
 * A class of exceptions and the handler that answers them. It answers exceptions of authenticators and of operations (spec 5.1.5,
 * 7). The handler of the exception's class answers, or else the handler of its nearest ancestor. Without a handler, Koa
 * answers. Here, handlers are data; `koa/settings.ts` runs them.
 */
export interface ExceptionHandler {
  readonly type: ExceptionClass<unknown>
  readonly answer: (request: Request, error: unknown) => unknown
}

type ExceptionHandlers = ReadonlyMap<unknown, ExceptionHandler['answer']>

/**
 * Makes a handler for a class of exceptions. Throws a TypeError if `type` is not a class, or if the handler cannot work.
 *
 * @example
 * import { authSettings, onError } from 'koa-with-auth'
 *
 * class InvalidToken extends Error {}
 *
 * const settings = authSettings({
 *   onError: [onError(InvalidToken, (_request, error) => ({ status: 401, body: { detail: error.message } }))],
 * })
 */
export const onError = <X>(type: ExceptionClass<X>, answer: ExceptionResponder<X>): ExceptionHandler => {
  if (typeof type !== 'function' || typeof type.prototype !== 'object' || type.prototype === null) {
    throw new TypeError('onError(Class, handler): the first argument must be a class')
  }
  checkHook(`onError(${type.name}, handler): the handler`, answer, 2)
  // Safe: it is looked up by the prototype of `type`, so it gets only instances of it
  return { type, answer: answer as ExceptionHandler['answer'] }
}

/** Adds handlers to those of an outer level. Throws a TypeError if one level has two handlers for a class. */
export const addHandlers = (outer: ExceptionHandlers, added: ReadonlyArray<ExceptionHandler>): ExceptionHandlers => {
  const own = new Map(added.map(({ type, answer }) => [type.prototype as unknown, answer]))
  if (own.size < added.length) throw new TypeError('onError: there are two handlers for one class; remove one')
  return new Map([...outer, ...own])
}

/** The handler of an exception's class or of its nearest ancestor's; else of the last class that calls it an instance. */
export const handlerOf = (handlers: ExceptionHandlers, error: unknown): ExceptionHandler['answer'] | undefined => {
  for (let type: unknown = error; typeof type === 'object' && type !== null; type = Object.getPrototypeOf(type)) {
    const answer = handlers.get(type)
    if (answer !== undefined) return answer
  }
  if (typeof error !== 'object') return undefined
  // a class may recognize its instances itself (`Symbol.hasInstance`), as `ZodError` of zod does
  const said = [...handlers].reverse().find(([prototype]) => {
    // Safe: `onError` has checked that it is an object; it need not be the one of its constructor
    const type = (prototype as { readonly constructor: unknown }).constructor
    return typeof type === 'function' && type.prototype === prototype && error instanceof type
  })
  return said?.[1]
}

export interface Settings extends CrossOriginPolicy {
  readonly realm: string
  /** In milliseconds. */
  readonly timeout: number
  readonly errorMapper: ErrorMapper | undefined
  readonly explain: boolean
  readonly state: string | undefined
  readonly events?:
    | {
        readonly subject: (principal: unknown) => unknown
        readonly actor?: ((principal: unknown) => unknown) | undefined
      }
    | undefined
  readonly exceptionHandlers: ExceptionHandlers
  /** Which application set them, and the settings outside of it; left out if none did. */
  readonly within?: { readonly application: symbol; readonly outer: Settings } | undefined
}

/** Adds options to the settings of an outer level. */
export type Addition = (outer: Settings) => Settings

export const defaults: Settings = Object.freeze<Settings>({
  csrf: true,
  trustedOrigins: new Set(),
  realm: 'api',
  timeout: 10_000,
  errorMapper: undefined,
  // Never by default: without NODE_ENV, nothing is explained
  explain: process.env['NODE_ENV'] === 'development',
  state: undefined,
  exceptionHandlers: new Map(),
})
