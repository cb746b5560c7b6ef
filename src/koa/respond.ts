/**
 * Writes the responses of this library: status, body, and the headers that only they have (challenges, Content-Type,
 * those of the mapper). `responseHeaders.ts` has the headers of every response of a guarded operation.
 *
 * It writes them itself instead of throwing, because Koa removes every header that was set before a throw
 * (`koa/lib/context.js`). Headers that middleware above set (CORS) stay.
 */
import type { Context } from 'koa'
import { branchesOf, type AuthError } from '../core/AuthError.js'
import type { Challenge } from '../core/Challenge.js'
import { challengesOf, type Description } from '../core/Description.js'
import { defaultErrorMapper, problem, serialize, type AuthResponse } from '../core/ErrorMapper.js'
import { isGiven } from '../core/options.js'
import type { Settings } from '../core/Settings.js'
import { setChallenges } from './challenges.js'
import { tried } from './explanation.js'
import type { HeaderPolicy } from './responseHeaders.js'

/** Answers a failure. */
export const respondFailure = (ctx: Context, error: AuthError, settings: Settings, policy: HeaderPolicy): void => {
  const { errorMapper = defaultErrorMapper, realm, explain } = settings
  const response = errorMapper(error, ctx.request)
  const answered: unknown = response
  // it is not awaited, so its rejection would not be handled
  if (answered instanceof Promise) {
    answered.catch(() => undefined)
    throw new TypeError('an errorMapper must be sync; it returned a promise')
  }
  write(ctx, explain && errorMapper === defaultErrorMapper ? tried(response, error, realm) : response)
  if (!names(response, 'www-authenticate')) {
    setChallenges(ctx, challengesFor(error, response.status, policy.description), realm)
  }
}

/** Answers an exception. Headers about the body of the operation are removed. */
export const respondException = (ctx: Context, response: AuthResponse, isGuarded: boolean): void => {
  for (const name of ['Content-Encoding', 'ETag', 'Last-Modified']) ctx.res.removeHeader(name)
  writeBody(ctx, response, 'application/json')
  if (isGuarded && !names(response, 'cache-control')) ctx.res.setHeader('Cache-Control', 'no-store')
}

/** Answers a request that no authenticator reads, such as with 431 if header lines may have been cut off. */
export const respondUnread = (ctx: Context, status: number): void => write(ctx, problem(status))

// RFC 9110 §15.5.2: a 401 offers a challenge for every alternative; RFC 6750 §3.1: a 403 says which scope was missing
const challengesFor = (error: AuthError, status: number, description: Description): ReadonlyArray<Challenge> => {
  if (status !== 401 && status !== 403) return []
  const offered: Challenge[] = []
  for (const { _tag, challenge } of branchesOf(error)) {
    if (challenge !== undefined && (status === 401 || _tag === 'insufficient')) offered.push(challenge)
  }
  return status === 401 && (error._tag === 'raised' || offered.length === 0) ? challengesOf(description) : offered
}

// A response without headers must not inherit any
const headersOf = (response: AuthResponse): AuthResponse['headers'] =>
  isGiven(response, 'headers') ? response.headers : undefined

const names = (response: AuthResponse, name: string): boolean => {
  const headers = headersOf(response)
  return headers !== undefined && Object.keys(headers).some((key) => key.toLowerCase() === name)
}

const write = (ctx: Context, response: AuthResponse): void => {
  ctx.res.removeHeader('WWW-Authenticate')
  writeBody(ctx, response, 'application/problem+json')
}

const writeBody = (ctx: Context, response: AuthResponse, mediaType: string): void => {
  const { status, body } = response
  const headers = headersOf(response)
  const { res } = ctx
  ctx.status = status
  if (body === undefined || body === null) {
    ctx.body = null
    // Koa makes a null body a 204
    ctx.status = status
  } else if (typeof body === 'string' || Buffer.isBuffer(body)) {
    res.removeHeader('Content-Type')
    ctx.body = body
  } else {
    res.setHeader('Content-Type', mediaType)
    ctx.body = serialize(body)
  }
  if (headers === undefined) return
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined) res.setHeader(name, typeof value === 'string' ? value : [...value])
  }
}
