/**
 * Writes the responses of this library: status, body, and the headers that only they have (challenges, Content-Type,
 * those of the mapper). `responseHeaders.ts` has the headers of every response of a guarded operation.
 *
 * It writes them itself instead of throwing, because Koa removes every header that was set before a throw
 * (`koa/lib/context.js`). Headers that middleware above set (CORS) stay.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Context, Response } from 'koa'
import { branchesOf, failures, unavailable, whyOf, type AuthError } from '../core/AuthError.js'
import { render, type Challenge } from '../core/Challenge.js'
import { challengesOf, type Description } from '../core/Description.js'
import { defaultErrorMapper, problem, serialize, withMembers } from '../core/Settings.js'
import type { AuthResponse, Settings } from '../core/Settings.js'
import { isThenable } from '../core/Result.js'
import { setChallenges, type GuardHeaders } from './responseHeaders.js'

/** Adds every branch to a problem, for developers: only if `explain` is set. Nothing in it comes from a credential. */
const withBranches = (response: AuthResponse, error: AuthError, realm: string): AuthResponse => {
  const account = branchesOf(error).map((branch) => {
    const { _tag, challenge, skipped } = branch
    const offered = challenge !== undefined && { challenge: render(realm)(challenge) }
    if (skipped === true) return { ...offered, failure: 'not asked', reason: 'another one had decided' }
    const why = whyOf(branch)
    const reason = _tag === 'raised' && why !== undefined ? 'an HTTP error is the answer' : failures[_tag].words
    return { ...offered, failure: _tag, reason, ...(why !== undefined && { why }) }
  })
  return withMembers(response, { tried: account })
}

/** Answers a failure: sync, unless the error mapper is async. Throws, or rejects, if it fails. */
export const respondFailure = (
  ctx: Context,
  error: AuthError,
  settings: Settings,
  guardHeaders: GuardHeaders,
): void | Promise<void> => {
  const { errorMapper = defaultErrorMapper, realm, explain, timeout } = settings
  const answer = (response: unknown): void => {
    checkResponse(response)
    writeProblem(ctx, explain && errorMapper === defaultErrorMapper ? withBranches(response, error, realm) : response)
    if (!hasHeader(response, 'www-authenticate')) {
      setChallenges(ctx, challengesFor(error, response.status, guardHeaders.description), realm)
    }
  }
  const response = errorMapper(error, ctx.request)
  return isThenable(response) ? mappedInTime(response, timeout, ctx).then(answer) : answer(response)
}

// An answer that comes too late is one of an outage
const mappedInTime = (response: PromiseLike<unknown>, ms: number, { request }: Context): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(defaultErrorMapper(unavailable(), request)), ms)
    Promise.resolve(response)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })

function checkResponse(response: unknown): asserts response is AuthResponse {
  const isResponse =
    typeof response === 'object' && response !== null && 'status' in response && typeof response.status === 'number'
  if (!isResponse) throw new TypeError('authSettings({ errorMapper }): it must return { status, body }')
}

/** Answers an exception. Headers about the body of the operation are removed. */
export const respondException = (ctx: Context, response: AuthResponse, isGuarded: boolean): void => {
  for (const name of ['Content-Encoding', 'ETag', 'Last-Modified']) ctx.res.removeHeader(name)
  writeBody(ctx, response, 'application/json')
  if (isGuarded && !hasHeader(response, 'cache-control')) ctx.res.setHeader('cache-control', 'no-store')
}

/** Answers a request that no authenticator reads, such as with 431 if header lines may have been cut off. */
export const respondEarly = (ctx: Context, status: number): void => writeProblem(ctx, problem(status))

// RFC 9110 §15.5.2: a 401 offers a challenge for every alternative; RFC 6750 §3.1: a 403 says which scope was missing
const challengesFor = (error: AuthError, status: number, description: Description): ReadonlyArray<Challenge> => {
  if (status !== 401 && status !== 403) return []
  const offered: Challenge[] = []
  for (const { _tag, challenge } of branchesOf(error)) {
    if (challenge !== undefined && (status === 401 || _tag === 'insufficient')) offered.push(challenge)
  }
  return status === 401 && (error._tag === 'raised' || offered.length === 0) ? challengesOf(description) : offered
}

const hasHeader = ({ headers = {} }: AuthResponse, name: string): boolean =>
  Object.keys(headers).some((key) => key.toLowerCase() === name)

const writeProblem = (ctx: Context, response: AuthResponse): void => {
  ctx.res.removeHeader('www-authenticate')
  writeBody(ctx, response, 'application/problem+json')
}

const writeBody = (ctx: Context, response: AuthResponse, mediaType: string): void => {
  const { status, headers = {}, body } = response
  const { res } = ctx
  ctx.status = status
  if (body === undefined || body === null) {
    ctx.body = null
    // Koa makes a null body a 204
    ctx.status = status
  } else if (typeof body === 'string' || Buffer.isBuffer(body)) {
    res.removeHeader('content-type')
    ctx.body = body
  } else {
    res.setHeader('content-type', mediaType)
    ctx.body = serialize(body)
  }
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) res.setHeader(name, typeof value === 'string' ? value : [...value])
  }
}

// Private fields of Koa's response. A test pins them
interface Internals {
  readonly _body: unknown
  readonly _explicitStatus: boolean | undefined
  readonly _explicitNullBody: boolean | undefined
}

interface ResponseSnapshot {
  readonly head: { readonly statusCode: number; readonly statusMessage: string | undefined }
  readonly internals: Internals
  readonly headers: OutgoingHttpHeaders | undefined
}

// Safe: Koa's response keeps these three on itself (koa 3.3, lib/response.js)
const internalsOf = (response: Response): Internals => response as unknown as Internals

// The state in which Koa begins, and in which most requests reach a guard
const untouched: ResponseSnapshot = {
  head: { statusCode: 404, statusMessage: undefined },
  internals: { _body: undefined, _explicitStatus: undefined, _explicitNullBody: undefined },
  headers: undefined,
}

// Koa sets a status with every body, so the body need not be checked
const isInitialResponse = (response: Response): boolean =>
  internalsOf(response)._explicitStatus === undefined &&
  response.res.statusCode === 404 &&
  messageOf(response) === undefined &&
  response.res.getHeaderNames().length === 0

// HTTP/2 has none (RFC 9113 §8.3.2), and Node prints a warning when it is read or written
const hasMessage = ({ req }: Response): boolean => !(req.httpVersionMajor >= 2)

const messageOf = (response: Response): string | undefined =>
  hasMessage(response) ? response.res.statusMessage : undefined

/**
 * Takes the state of a response. Authenticators must not write the response, but a hook can: a status, a header, or the
 * cookie with which koa-session expires a bad signature. So the changes of a hook can be undone.
 */
export const take = (response: Response): ResponseSnapshot => {
  if (isInitialResponse(response)) return untouched
  const { statusCode } = response.res
  const { _body, _explicitStatus, _explicitNullBody } = internalsOf(response)
  return {
    head: { statusCode, statusMessage: messageOf(response) },
    internals: { _body, _explicitStatus, _explicitNullBody },
    headers: copyHeaders(response.res.getHeaders()),
  }
}

// Arrays are copied, because adding a cookie changes the array in place
const copyHeaders = (headers: OutgoingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]))

export const restore = (response: Response, before: ResponseSnapshot): void => {
  if (before === untouched && isInitialResponse(response)) return
  const { res } = response
  if (res.headersSent) return
  const { statusCode } = before.head
  Object.assign(res, hasMessage(response) ? before.head : { statusCode })
  Object.assign(internalsOf(response), before.internals)
  restoreHeaders(res, before.headers)
}

const restoreHeaders = (res: ServerResponse, before: ResponseSnapshot['headers']): void => {
  for (const name of res.getHeaderNames()) if (before?.[name] === undefined) res.removeHeader(name)
  if (before === undefined) return
  for (const name of Object.keys(before)) {
    const value = before[name]
    if (value !== undefined && res.getHeader(name) !== value) res.setHeader(name, value)
  }
}
