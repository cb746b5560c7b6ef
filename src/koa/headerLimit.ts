/**
 * The limit of header lines. Node drops the lines after its limit without an error, and a proxy appends its own lines
 * last. So a request with as many lines as Node keeps may have lost some that matter for the decision.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Context } from 'koa'

// Node's own limit, if the server sets none
const MAX_HEADER_LINES = 1000

/** Whether some header lines of a request may have been dropped. 0 is no limit. */
export const mayBeCutOff = ({ req }: Context): boolean => {
  // Safe: Node puts the server on every socket that it accepted
  const { server } = req.socket as Socket & { readonly server?: Server | null }
  const limit = server?.maxHeadersCount ?? MAX_HEADER_LINES
  return limit !== 0 && req.rawHeaders.length >= 2 * limit
}
