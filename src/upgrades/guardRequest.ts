/**
 * `guardRequest`: the guard for requests of a server that never reach Koa, such as the long polling of Socket.IO. It decides as
 * `guardUpgrade` does, and writes nothing: who asks it answers the request.
 */
import type { IncomingMessage } from 'node:http'
import type Koa from 'koa'
import type { Context, Next } from 'koa'
import type { AuthenticatorLike } from '../core/Authenticator.js'
import { declareFactory } from '../core/options.js'
import type { AuthResponse } from '../core/Settings.js'
import type { Members, PrincipalAsked } from '../koa/conditions.js'
import { refuseObjects } from '../koa/parameters.js'
import { answeredWith } from '../koa/watching.js'
import {
  admission,
  checkApp,
  decidingAt,
  guarding,
  readPlainSession,
  resolveOptions,
  servedBy,
  UpgradeResponse,
  type Admitted,
  type GuardUpgradeOptions,
} from './guardUpgrade.js'

/** A request that was refused, and how Koa would have answered it. */
export interface Refused {
  readonly refused: AuthResponse
  readonly principal?: undefined
}

/**
 * Decides about a request of node:http. Resolves to the principal and the request, or to `refused`. Rejects with a TypeError for
 * anything but a request.
 */
export type RequestGuard<P> = (
  request: IncomingMessage,
) => Promise<(Admitted<P> & { readonly refused?: undefined }) | Refused>

const caller = 'guardRequest(app, a)'

/**
 * Makes a guard for requests that never reach Koa. It takes the authenticators, settings and sessions of the application, as
 * `guardUpgrade` does. Such a request opens a channel for writes, so it counts as unsafe, whatever its method: a cookie is refused if
 * another site caused the request. Nothing is written. Throws a TypeError as `guardUpgrade` does.
 *
 * @example
 * import type { IncomingMessage } from 'node:http'
 * import Koa from 'koa'
 * import { guardRequest } from 'koa-with-auth/upgrades'
 *
 * const guard = guardRequest(new Koa(), () => ({ user: 'anna' }))
 *
 * // of Socket.IO: new Server(server, { allowRequest })
 * const allowRequest = async (request: IncomingMessage, allow: (error: string | undefined, isAllowed: boolean) => void) => {
 *   const { refused } = await guard(request)
 *   allow(refused && String(refused.status), refused === undefined)
 * }
 */
export function guardRequest<S, C, const M extends AuthenticatorLike | Members>(
  app: Koa<S, C>,
  auth: M,
  options?: GuardUpgradeOptions,
): RequestGuard<PrincipalAsked<M>>
export function guardRequest(app: Koa, auth: unknown, options: GuardUpgradeOptions = {}): RequestGuard<unknown> {
  checkApp(caller, app)
  const authenticator = guarding(caller, auth)
  refuseObjects(caller, authenticator.description)
  const { own, route } = resolveOptions('guardRequest(app, a, options)', options)
  const decide = decidingAt(route, authenticator, 'request')
  return async (given) => {
    const request = asUnsafe(given)
    const response = new UpgradeResponse(request)
    let result: Awaited<ReturnType<RequestGuard<unknown>>> = { refused: { status: 500 } }
    const finish = async (ctx: Context, next: Next): Promise<void> => {
      await next()
      if (result.refused !== undefined) result = { refused: responseOf(ctx) }
      ctx.respond = false
    }
    const admit = (ctx: Context): Promise<unknown> =>
      decide(ctx, () => void (result = admission(ctx.request, request.socket, response)))
    await servedBy(app, [finish, readPlainSession], [...own, admit])(request, response)
    answeredWith(response, result.refused?.status ?? 200)
    return result
  }
}

declareFactory('guardRequest', guardRequest)

// The request itself belongs to the server that answers it, so nothing is written on it
const asUnsafe = (request: IncomingMessage): IncomingMessage => {
  if (typeof request !== 'object' || request === null || !Array.isArray(request.rawHeaders)) {
    throw new TypeError(`${caller} returns a function of a request of node:http; call it with that request`)
  }
  const headers = { ...request.headers, upgrade: request.headers.upgrade ?? '' }
  // Safe: it inherits everything else from the request
  return Object.create(request, { headers: { value: headers, writable: true } }) as IncomingMessage
}

const responseOf = ({ status, body, res }: Context): AuthResponse => ({
  status,
  // Safe: the responder writes strings and lists of strings
  headers: { ...res.getHeaders() } as Record<string, string>,
  body: body as AuthResponse['body'],
})
