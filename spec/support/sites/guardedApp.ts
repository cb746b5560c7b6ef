/** An application of guarded operations that count their calls, and requests to it as bytes. */
import Router from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { expect } from 'vitest'
import { sendRaw, valuesOf, type RawAnswer } from '../servers/rawSocket.js'

interface Options {
  /** What an operation does. The default answers with the principal. */
  readonly handler?: (ctx: Context) => unknown
  /** Middleware above the router. */
  readonly above?: (app: Koa) => ReadonlyArray<Middleware>
}

/** `ctx.request.auth`, whatever its type. */
export const authOf = ({ request }: Context): unknown => Reflect.get(request, 'auth')

/**
 * Every path answers every method, guarded by what `withAuth` accepts: an authenticator, a function, a list, or null.
 */
export const guardedApp = (routes: Readonly<Record<string, unknown>>, options: Options = {}) => {
  const { handler = (ctx) => (ctx.body = { auth: authOf(ctx) }), above = () => [] } = options
  let calls = 0
  const operation = (ctx: Context) => {
    calls++
    return handler(ctx)
  }
  const router = new Router()
  for (const [path, auth] of Object.entries(routes)) {
    // Safe: `withAuth` checks its argument when it runs
    router.all(path, withAuth(auth as AuthenticatorLike) as unknown as Middleware, operation)
  }
  const app = new Koa()
  for (const middleware of above(app)) app.use(middleware)
  app.use(router.routes())
  /** How often any operation has run. */
  return { app, calls: () => calls }
}

/** A request line, its fields, and how to send it: `GET /x` with `['X-API-Key: k']`. */
export const rawRequest = (port: number, target: string, lines: ReadonlyArray<string> = [], body = ''): string => {
  const own =
    lines.some((line) => /^transfer-encoding:/i.test(line)) || body === '' ? [] : [`Content-Length: ${body.length}`]
  const host = lines.some((line) => /^host:/i.test(line)) ? [] : [`Host: 127.0.0.1:${port}`]
  return [`${target} HTTP/1.1`, ...host, 'Connection: close', ...lines, ...own, '', body].join('\r\n')
}

export const sendLines = (...[port, ...sent]: Parameters<typeof rawRequest>): Promise<RawAnswer> =>
  sendRaw(port, rawRequest(port, ...sent))

/** Sends a request, and counts the operations that ran for it. */
export const sendCounted = async (
  { calls }: { readonly calls: () => number },
  ...sent: Parameters<typeof sendLines>
): Promise<RawAnswer & { readonly ran: number }> => {
  const before = calls()
  const answer = await sendLines(...sent)
  return { ...answer, ran: calls() - before }
}

const unauthorized = { type: 'about:blank', title: 'Unauthorized', status: 401, detail: 'Unauthorized' }

/** Expects a refusal: 401, a challenge, the constant body, not stored, and no operation ran. */
export const expectDenied = (answer: RawAnswer & { readonly ran: number }): void => {
  expect({ status: answer.status, ran: answer.ran }).toEqual({ status: 401, ran: 0 })
  expect(JSON.parse(answer.body)).toEqual(unauthorized)
  expect(valuesOf(answer, 'Content-Type')).toEqual(['application/problem+json'])
  expect(valuesOf(answer, 'WWW-Authenticate')).not.toEqual([])
  expect(valuesOf(answer, 'Cache-Control')).toEqual(['no-store'])
}

/** Expects an accepted request: 200, and the operation ran once. */
export const expectAccepted = (answer: RawAnswer & { readonly ran: number }): void =>
  expect({ status: answer.status, ran: answer.ran }).toEqual({ status: 200, ran: 1 })
