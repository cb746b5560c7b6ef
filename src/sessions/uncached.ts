/**
 * Keeps shared caches from storing a response that sets the session's cookie. They would send the session to the next
 * visitor, because they may store all fields of a response (RFC 9111 §3).
 *
 * This happens when the head is written, so no later `Cache-Control` can undo it.
 */
import type { ServerResponse } from 'node:http'
import { setGiven, type WriteHead } from '../koa/writeHead.js'

/** Watches the head of a response. */
export const keepUncached = (response: ServerResponse, cookieName: string): void => {
  // Safe: it is called in the same way
  const writeHead = response.writeHead as WriteHead
  const names = [`${cookieName}=`, `${cookieName}.sig=`]
  const watched: WriteHead = function (status, ...rest) {
    const left = setGiven(this, rest)
    const write = () => writeHead.call(this, status, ...left)
    return setsCookie(this, names) ? withoutCaching(this, write) : write()
  }
  response.writeHead = watched
}

const setsCookie = (response: ServerResponse, names: ReadonlyArray<string>): boolean => {
  const lines = response.getHeader('Set-Cookie')
  if (lines === undefined) return false
  return [lines].flat().some((line) => names.some((name) => String(line).startsWith(name)))
}

const methods = ['setHeader', 'appendHeader', 'removeHeader'] as const

// An earlier replacement of `writeHead` is called now, and may still write headers
const withoutCaching = <A>(response: ServerResponse, write: () => A): A => {
  forbidCaching(response)
  const originals = methods.map((method) => response[method])
  try {
    for (const [at, method] of methods.entries()) {
      Object.assign(response, {
        [method]: (name: string, ...values: ReadonlyArray<unknown>): unknown =>
          decidesCaching(name) ? response : Reflect.apply(originals[at]!, response, [name, ...values]),
      })
    }
    return write()
  } finally {
    for (const [at, method] of methods.entries()) Object.assign(response, { [method]: originals[at] })
  }
}

const forbidCaching = (response: ServerResponse): void => {
  for (const name of response.getHeaderNames()) {
    if (decidesCaching(name) && name.toLowerCase() !== 'cache-control') response.removeHeader(name)
  }
  if (!isUncached(response.getHeader('Cache-Control'))) response.setHeader('Cache-Control', 'private, no-store')
}

// RFC 9213: a field for particular caches replaces Cache-Control for them. Their makers defined the others
const decidesCaching = (name: string): boolean =>
  /^(?:cache-control|.*-cache-control|surrogate-control|edge-control|x-accel-expires)$/i.test(name)

// The directives that forbid shared caches, and those that shared caches ignore; anything else is replaced
const harmless = /^(?:private|no-store|no-cache|must-revalidate|no-transform|max-age=\d+)$/i

const isUncached = (value: ReturnType<ServerResponse['getHeader']>): boolean => {
  const directives = [value ?? []].flat().flatMap((line) => String(line).split(','))
  const trimmed = directives.map((directive) => directive.trim())
  return trimmed.every((one) => harmless.test(one)) && trimmed.some((one) => /^(?:private|no-store)$/i.test(one))
}
