/** Handlers that count their calls, guards whose realm shows which one decided, and requests to routers of them. */
import { Agent } from 'node:http'
import Koa, { type Next } from 'koa'
import type Router from '@koa/router'
import { httpBearer, withAuth, type Guard } from 'koa-with-auth'
import { exchange, type Exchanged } from '../servers/server.js'
// --- calls: a refused request whose handler ran is a breach, even if it got a 401

// Each spec file finds it empty: sharedProcess.ts
const kept = Symbol.for('koa-with-auth/calls of a spec file')
// Safe: nothing else is kept under this symbol
const calls = (): Map<string, number> => ((globalThis as { [kept]?: Map<string, number> })[kept] ??= new Map())

export const count = (id: string): void => {
  calls().set(id, (calls().get(id) ?? 0) + 1)
}

/** How often `id` ran since the last call. */
export const callsOf = (id: string): number => {
  const seen = calls().get(id) ?? 0
  calls().delete(id)
  return seen
}

/** A handler that counts its calls, and answers with its name and the principal. */
export const handler =
  (id: string) =>
  (ctx: { request: object; body: unknown }): void => {
    count(id)
    ctx.body = { ran: id, auth: 'auth' in ctx.request ? (ctx.request.auth ?? null) : null }
  }

/** `withAuth` for arguments that the compiler refuses, or does not know. */
export const guardOf: (auth: unknown) => Guard<unknown> = withAuth as (auth: unknown) => Guard<unknown>

/** Adds an operation as a program could that changes the stack of a layer, so nothing is checked when it is written. */
export const addUnchecked = <R extends Router>(router: R, path: string, first: unknown, ...others: unknown[]): R => {
  // Safe, both: the router calls them as middleware
  router.get(path, first as never)
  router.stack.at(-1)?.stack.push(...(others as never[]))
  return router
}

/** A bearer authenticator for one token, with its own realm. */
export const bearerFor = (realm: string) =>
  httpBearer({ realm, authenticate: (_request, token) => token === tokenOf(realm) && realm })

export const tokenOf = (realm: string): string => `token-of-${realm}`

// --- requests

const agent = new Agent({ keepAlive: true, maxSockets: 8 })

/** A request on a connection that is kept, which sends its target unchanged. */
export const get = async (
  port: number,
  path: string,
  token?: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Exchanged & { readonly challenge: string | undefined }> => {
  const sent = { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  const answer = await exchange({ agent, port, path, method, headers: sent })
  return { ...answer, challenge: answer.headers['www-authenticate'] }
}

/** The outcome of a request, and how often the handler `id` ran for it. */
export const outcome = async (
  port: number,
  path: string,
  id: string,
  token?: string,
  options?: { method?: string; headers?: Record<string, string> },
) => {
  callsOf(id)
  const { status, challenge, text } = await get(port, path, token, options)
  return { status, challenge, says: saidIn(text), calls: callsOf(id) }
}

// Our handlers answer with the principal, the layer with the detail of a problem, and Koa with plain text
const saidIn = (text: string): unknown => {
  if (!text.startsWith('{')) return text
  const body = JSON.parse(text) as Record<string, unknown>
  return 'ran' in body ? body['auth'] : body['detail']
}

/** The outcome if `bearerFor(realm)` decides and nothing was sent. */
export const denied = (realm: string, error = '') => ({
  status: 401,
  challenge: `Bearer realm="${realm}"${error}`,
  says: 'Unauthorized',
  calls: 0,
})

/** The outcome if the handler runs, with the principal of `bearerFor`, or with `null`. */
export const admitted = (auth: string | null) => ({ status: 200, challenge: undefined, says: auth, calls: 1 })

export const notFound = { status: 404, challenge: undefined, says: 'Not Found', calls: 0 }

/** An application of middleware and routers' `routes()`. */
export const appOf = (...middleware: ReadonlyArray<(ctx: never, next: Next) => unknown>): Koa => {
  const app = new Koa()
  // Safe: Koa calls each with its context, of which a router makes its own
  for (const each of middleware) app.use(each as Koa.Middleware)
  return app
}
