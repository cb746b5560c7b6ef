/**
 * Reads a token from the subprotocols of a WebSocket handshake. Browsers let a page set no other header field of it.
 */
import * as O from 'fp-ts/lib/Option.js'
import type { Middleware, Request } from 'koa'
import { linesFrom, withoutBlanks, type Sent } from '../core/RequestFields.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, token } from '../core/options.js'

export interface FromWebSocketProtocolOptions {
  /** The prefix of the token, such as `bearer.`, in exactly this letter case. */
  readonly prefix: string
}

const subprotocols = linesFrom('Sec-WebSocket-Protocol')

/**
 * Reads a token among the subprotocols that a client offers (RFC 6455 §4.1, §11.3.4), without its prefix. Several tokens are an
 * array, which no codec of a credential accepts. On a page: `new WebSocket(url, ['chat', 'bearer.' + token])`.
 *
 * **The token may be logged.** Proxies and servers treat `Authorization` as a secret, but not this header. Use a cookie if you can,
 * and otherwise a token that works only for this endpoint and for some seconds. The server must choose another subprotocol, never
 * the token. `ws` chooses the first one offered, unless you set `handleProtocols`. A browser closes the socket if the server
 * chooses none of the offered subprotocols. Throws a TypeError for a prefix that cannot be part of a subprotocol.
 *
 * @example
 * import { authenticator, Challenge, constantTimeEqual } from 'koa-with-auth'
 * import { fromWebSocketProtocol } from 'koa-with-auth/upgrades'
 * import { WebSocketServer } from 'ws'
 *
 * const ticket = authenticator({
 *   challenge: Challenge.make('Bearer'),
 *   ambient: false,
 *   extract: fromWebSocketProtocol({ prefix: 'bearer.' }),
 *   authenticate: (_request, token: string) => constantTimeEqual(token, 'supersecret') && { user: 'anna' },
 * })
 * const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => offered.has('chat') && 'chat' })
 */
export const fromWebSocketProtocol = (
  options: FromWebSocketProtocolOptions,
): ((request: Request) => O.Option<Sent>) => {
  const { prefix } = checkOptions('fromWebSocketProtocol', options, { prefix: is.nameLike(token) })
  return (request) => {
    const offered = subprotocols(request).flatMap((line) => line.split(','))
    const found = offered.map(withoutBlanks).filter((one) => one.startsWith(prefix))
    const [first] = found
    if (first === undefined) return O.none
    return O.some(found.length === 1 ? first.slice(prefix.length) : found.map((one) => one.slice(prefix.length)))
  }
}

declareFactory('fromWebSocketProtocol', fromWebSocketProtocol)

/** Writes the token to `Authorization`, where `httpBearer` and `httpJwt` read it, while a request is decided. */
export const presentToken = (prefix: string): Middleware => {
  const read = fromWebSocketProtocol({ prefix })
  return async (ctx, next) => {
    const sent = read(ctx.request)
    if (O.isNone(sent)) return next()
    const { headers } = ctx.req
    const before = headers.authorization
    const all = [before ?? [], [sent.value].flat().map((token) => `Bearer ${token}`)].flat()
    // several tokens are malformed, like several lines of the field: readers return an array for these
    Object.assign(headers, { authorization: all.length === 1 ? all[0] : all })
    try {
      return await next()
    } finally {
      if (before === undefined) delete headers.authorization
      else headers.authorization = before
    }
  }
}
