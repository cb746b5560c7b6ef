/** An operation guarded by an authenticator of tokens, called over real HTTP. It counts how often it runs. */
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import type { Authenticator } from 'koa-with-auth'
import { httpJwt, type HttpJwt, type HttpJwtOptions, type JwtClaims } from 'koa-with-auth/jwt'
import { expect } from 'vitest'
import { authOf, guardedApp } from './guardedApp.js'
import { API, identityProvider } from '../servers/identityProvider.js'
import { ask, listen } from '../servers/server.js'

export type TokenSite = Awaited<ReturnType<typeof tokenSite>>

export type Guard = Authenticator<unknown> | ReadonlyArray<unknown>

interface Options {
  readonly above?: (app: Koa) => ReadonlyArray<Middleware>
  readonly handler?: (ctx: Context) => unknown
}

/** Serves it until the test has finished. */
export const tokenSite = async (auth: Guard, options: Options = {}) => {
  const tell = (ctx: Context) => {
    ctx.body = authOf(ctx)
  }
  const { app, calls } = guardedApp({ '/me': auth }, { handler: tell, ...options })
  const { url, port, errors } = await listen(app)
  /** Sends a token, or none, to `/me`. */
  const get = async (token?: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') => {
    const before = calls()
    const own = token === undefined ? {} : { Authorization: `Bearer ${token}` }
    const answer = await ask(`${url}/me`, { method, headers: { ...own, ...headers } })
    return { ...answer, ran: calls() - before }
  }
  type Sent = Parameters<typeof get>
  /** The status of the same request, and how often the operation ran for it. */
  const outcome = (...sent: Sent) => get(...sent).then(({ status, ran }) => [status, ran] as const)
  const status = async (...sent: Sent) => (await get(...sent)).status
  return { url, port, app, errors, ran: calls, get, outcome, status }
}

export type JwtOptions = Partial<HttpJwtOptions<JwtClaims, unknown>>

/** A provider, an authenticator of its tokens, and the operation, which `guard` may guard by more. */
export const jwtSite = async (
  over: JwtOptions = {},
  { guard = (jwt) => jwt, ...options }: Options & { readonly guard?: (jwt: HttpJwt<JwtClaims>) => Guard } = {},
) => {
  const provider = await identityProvider()
  const { issuer, jwksUri } = provider
  // Safe: the hook of a test refuses, or returns the claims
  const jwt = httpJwt({ issuer: { issuer, jwksUri }, audience: API, ...over }) as HttpJwt<JwtClaims>
  return { provider, jwt, ...(await tokenSite(guard(jwt), options)) }
}

/** Expects that the operation did not run, and these challenges. */
export const expectRefused = (
  { status, ran, challenge }: { readonly status: number; readonly ran: number; readonly challenge: string | null },
  expected: string | null,
  wanted = 401,
): void => expect([status, ran, challenge]).toEqual([wanted, 0, expected])

export const INVALID = 'Bearer realm="api", error="invalid_token"'
export const EXPIRED = `${INVALID}, error_description="The access token expired"`
