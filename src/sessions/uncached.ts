/**
 * No shared cache may keep an answer that sets the session's cookie: it would hand the session to the next visitor
 * (RFC 9111 §3 lets it keep the answer with all its fields).
 *
 * It is enforced when the head is written, so whoever wrote `Cache-Control`, and whenever, cannot undo it.
 */
import type { ServerResponse } from 'node:http'
import { setGiven, type WriteHead } from '../koa/writeHead.js'

/** Watches the head of a response. */
export const keepUncached = (response: ServerResponse, cookieName: string): void => {
  // Safe: it is called as it was
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

// Who replaced `writeHead` before is called now, and may still write headers
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

// RFC 9213: a field for some caches alone replaces Cache-Control for them; the others are their makers' own
const decidesCaching = (name: string): boolean =>
  /^(?:cache-control|.*-cache-control|surrogate-control|edge-control|x-accel-expires)$/i.test(name)

// What lets no shared cache keep an answer, and what does not matter to them; anything else is replaced
const harmless = /^(?:private|no-store|no-cache|must-revalidate|no-transform|max-age=\d+)$/i

const isUncached = (value: ReturnType<ServerResponse['getHeader']>): boolean => {
  const directives = [value ?? []].flat().flatMap((line) => String(line).split(','))
  const trimmed = directives.map((directive) => directive.trim())
  return trimmed.every((one) => harmless.test(one)) && trimmed.some((one) => /^(?:private|no-store)$/i.test(one))
}
