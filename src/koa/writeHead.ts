/**
 * How the head of a response is completed, whatever writes it: Koa, a handler by `writeHead`, a stream.
 *
 * Node writes every head by the response's `writeHead`. A replacement of it calls the one before. Headers that are
 * passed to `writeHead` would replace those that are set, so they are set first, as Node itself does.
 *
 * The package `on-headers` is not enough. It runs once, so a head that Node refuses leaves the 500 after it without
 * headers. It also ignores the headers of `writeHead(200, undefined, headers)`.
 */
import type { ServerResponse } from 'node:http'

/** `writeHead` of Node, with any arguments. */
export type WriteHead = (this: ServerResponse, status: number, ...rest: ReadonlyArray<unknown>) => ServerResponse

/** Sets the headers among the arguments after the status, and returns the other ones. */
export const setGiven = (response: ServerResponse, rest: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  // how Node itself calls it
  if (rest.length === 0) return rest
  // as Node reads them: a message, then headers; or headers instead of the message
  const at = rest[1] === undefined || rest[1] === null ? 0 : 1
  const headers = rest[at]
  const isSet = typeof headers === 'object' && headers !== null && setHeaders(response, headers)
  return isSet ? rest.slice(0, at) : rest
}

const setHeaders = (response: ServerResponse, headers: object): boolean => {
  if (!Array.isArray(headers)) {
    // Safe: what Node would be given
    for (const [name, value] of Object.entries(headers as Record<string, string>)) {
      if (name !== '') response.setHeader(name, value)
    }
    return true
  }
  // names and values alternate; Node refuses anything else
  if (headers.length % 2 === 1) return false
  for (let at = 0; at < headers.length; at += 2) response.removeHeader(headers[at])
  for (let at = 0; at < headers.length; at += 2) response.appendHeader(headers[at], headers[at + 1])
  return true
}
