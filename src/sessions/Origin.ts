/** The public origin of an application: of one host, or of several. It is never made of data of a request. */
import type { Request } from 'koa'
import { unawaited } from '../core/data.js'
import { checkHook, type Check } from '../core/options.js'

/** The public origin of an application; those of several hosts; or a function that chooses one for a request. */
export type Origin = string | ReadonlyArray<string> | ((request: Request) => string | undefined)

// A wildcard is no host of the application
const isPublicOrigin = (value: unknown): value is string =>
  typeof value === 'string' && /^https?:[^*]+$/.test(value) && URL.canParse(value) && new URL(value).origin === value

export const originLike: Check = (where, value) => {
  if (typeof value === 'function') return checkHook(where, value, 1)
  if (isPublicOrigin(value) || (Array.isArray(value) && value.length > 0 && value.every(isPublicOrigin))) return
  throw new TypeError(
    `${where} must be the public origin of the application, such as "https://shop.example", an array of such, or a function that chooses one`,
  )
}

/** The origin for a request; `undefined` for a host that the application does not know. Throws a TypeError for any other value. */
export const originFor = (origin: Origin, request: Request): string | undefined => {
  if (typeof origin === 'string') return origin
  const hostOf = (one: string): boolean => new URL(one).host === request.host.toLowerCase()
  const found: unknown = typeof origin === 'function' ? unawaited(origin(request)) : origin.find(hostOf)
  if (found === undefined || isPublicOrigin(found)) return found
  throw new TypeError(
    'sessions(app, { origin }) must return a public origin such as "https://shop.example", out of a list of yours, or undefined',
  )
}
