/**
 * Treats a token among the subprotocols as if it were in `Authorization`, where `httpBearer` and `httpJwt` read tokens.
 */
import * as O from 'fp-ts/lib/Option.js'
import type { Middleware } from 'koa'
import { fromWebSocketProtocol } from './fromWebSocketProtocol.js'

/** Writes the token to `Authorization` while a request is decided, and restores the field afterwards. */
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
