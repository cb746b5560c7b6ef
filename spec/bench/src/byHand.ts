/**
 * Checks that a developer would write by hand: the same hooks, syntax, refusal of repeated credentials, headers and
 * bodies.
 */
import { hash } from 'node:crypto'
import type { RouterMiddleware } from '@koa/router'
import type { Context, Next } from 'koa'
import { constantTimeEqual, withAuth, type Authenticator } from '../../../dist/index.js'

export interface User {
  readonly user: string
}
export const anna: User = { user: 'anna' }

/** The hook of all applications, which this library calls, too. */
export const hook = (_request: unknown, secret: string): User | false =>
  constantTimeEqual(secret, 'supersecret') && anna

/** Answers with the principal. */
export const answer: RouterMiddleware = (ctx) => {
  ctx.body = Reflect.get(ctx.request, 'auth')
}

/** A guard of this library, as a router takes it that knows no principals. */
export const guard = (auth: Authenticator<unknown> | [Authenticator<unknown>]): RouterMiddleware =>
  // Safe: a handler reads the principal as `unknown`
  withAuth(auth) as unknown as RouterMiddleware

const bodyOf = (status: number, title: string): string =>
  JSON.stringify({ type: 'about:blank', title, status, detail: title })
const unauthorized = bodyOf(401, 'Unauthorized')
const unavailable = bodyOf(503, 'Service Unavailable')
const bearer = /^Bearer +([A-Za-z0-9\-._~+/]+=*) *$/i

/** The value of a header that was sent once. */
export const once = (ctx: Context, name: string): string | undefined => {
  const lines = ctx.req.rawHeaders
  let found: string | undefined
  for (let at = 0; at < lines.length; at += 2) {
    const field = lines[at]
    if (field === undefined || field.length !== name.length || field.toLowerCase() !== name) continue
    if (found !== undefined) return undefined
    found = lines[at + 1]
  }
  return found
}

/** The token of a bearer, if there is a well-formed one. */
export const tokenOf = (ctx: Context): string | undefined => {
  const field = once(ctx, 'authorization')
  return field === undefined ? undefined : bearer.exec(field)?.[1]
}

export const basicOf = (ctx: Context): readonly [string, string] | undefined => {
  const field = once(ctx, 'authorization')
  const encoded = field === undefined ? undefined : /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(field)?.[1]
  if (encoded === undefined) return undefined
  const decoded = Buffer.from(encoded, 'base64')
  if (decoded.toString('base64') !== encoded) return undefined
  const text = decoded.toString('utf8')
  const colon = text.indexOf(':')
  // eslint-disable-next-line no-control-regex -- RFC 7617 §2
  return colon < 0 || /[\x00-\x1f\x7f]/.test(text) ? undefined : [text.slice(0, colon), text.slice(colon + 1)]
}

// CORS middleware may have set Vary already
const vary = (ctx: Context, field: string): void => {
  if (ctx.res.hasHeader('Vary')) ctx.vary(field)
  else ctx.res.setHeader('Vary', field)
}

const refuse = (ctx: Context, status: number, body: string, field: string): void => {
  const { res } = ctx
  ctx.status = status
  res.setHeader('Cache-Control', 'no-store')
  vary(ctx, field)
  res.setHeader('Content-Type', 'application/problem+json')
  ctx.body = body
}

export const deny = (ctx: Context, challenge: string | string[], field: string): void => {
  ctx.res.setHeader('WWW-Authenticate', challenge)
  refuse(ctx, 401, unauthorized, field)
}

/** For a hook that took too long. */
export const giveUp = (ctx: Context, field: string): void => {
  ctx.res.setHeader('Retry-After', '5')
  refuse(ctx, 503, unavailable, field)
}

/** What a promise gives that takes too long. */
export const tooLate = Symbol('too late')

/** The value of a promise, or `tooLate` after so many milliseconds. */
export const within = <A>(promise: Promise<A>, ms: number): Promise<A | typeof tooLate> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms, tooLate)
    promise.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })

type Guarded = Context['request'] & { auth?: unknown }

/** Continues with a principal. */
export const accept = (ctx: Context, principal: unknown, field: string): void => {
  ctx.res.setHeader('Cache-Control', 'private, no-store')
  vary(ctx, field)
  const request: Guarded = ctx.request
  request.auth = principal
}

const realm = 'realm="api"'

/** RFC 6750 §3.1: no error code for a request without a token. */
export const denyBearer = (ctx: Context, token: string | undefined): void => {
  const isSent = token !== undefined || /^Bearer(?: |$)/i.test(ctx.req.headers.authorization ?? '')
  deny(ctx, isSent ? `Bearer ${realm}, error="invalid_token"` : `Bearer ${realm}`, 'Authorization')
}

/** Whether a bearer may continue. If not, the request has its answer. */
export const bearerPasses = (ctx: Context): boolean => {
  const token = tokenOf(ctx)
  const user = token !== undefined && hook(ctx.request, token)
  if (user === false) denyBearer(ctx, token)
  else accept(ctx, user, 'Authorization')
  return user !== false
}

/** Names of header keys, for lists of any length. */
export const keyNames = (length: number): ReadonlyArray<string> => Array.from({ length }, (_, at) => `X-Key-${at + 1}`)

/** The same, for a list of header keys. */
export const listPasses = (length: number): ((ctx: Context) => boolean) => {
  const names = keyNames(length)
  const fields = names.map((name) => name.toLowerCase())
  const vary = names.join(', ')
  const challenges = names.map((name) => `ApiKey ${realm}, in="header", name="${name}"`)
  return (ctx) => {
    for (const field of fields) {
      const key = once(ctx, field)
      const user = key !== undefined && key !== '' && hook(ctx.request, key)
      if (user === false) continue
      accept(ctx, user, vary)
      return true
    }
    deny(ctx, challenges, vary)
    return false
  }
}

/** The key that `throttled` uses: one form for all spellings of the name, and a digest of name and address. */
export const guessKey = (username: string, address = ''): string => {
  const name = username.normalize('NFKC').trim().toLowerCase()
  const text = ['account and address', name, address].map((part) => `${part.length}:${part}`).join('')
  return hash('sha256', text, 'base64url')
}

interface Limiter {
  readonly consume: (key: string) => Promise<unknown>
  readonly reward: (key: string) => Promise<unknown>
}

export const basicChallenge = 'Basic realm="api", charset="UTF-8"'

/** As `throttled` does: counts under a digest, checks, and gives back what is not a guess. */
export const throttledBy =
  (limiter: Limiter, check: (name: string, password: string) => object | false) =>
  async (ctx: Context, next: Next): Promise<unknown> => {
    const sent = basicOf(ctx)
    if (sent === undefined) return deny(ctx, basicChallenge, 'Authorization')
    const key = guessKey(sent[0], ctx.req.socket.remoteAddress)
    try {
      await limiter.consume(key)
    } catch (reason) {
      ctx.status = reason instanceof Error ? 503 : 429
      return undefined
    }
    const user = check(...sent)
    if (user === false) return deny(ctx, basicChallenge, 'Authorization')
    void limiter.reward(key)
    accept(ctx, user, 'Authorization')
    return next()
  }
