/**
 * The secret of a browser, in one cookie: a handle opens only in the browser that began. And whether a browser sends a
 * request because its user visits a page.
 */
import { randomBytes } from 'node:crypto'
import * as O from 'fp-ts/lib/Option.js'
import type { Context, Request } from 'koa'
import { isSafe } from '../core/CrossOrigin.js'
import { fromCookie } from '../core/RequestFields.js'
import type { SessionHost } from '../sessions/SignInList.js'

const DAY = 86_400_000
const HOUR = 3_600_000

const cookieOf = ({ https }: SessionHost): string => (https === true ? '__Host-browser' : 'browser')

/** The secret that a browser sent; of two cookies with this name, one may be a forgery, so there is none. */
export const browserOf = (host: SessionHost, request: Request): string | undefined => {
  const sent = fromCookie(cookieOf(host))(request)
  return O.isSome(sent) && typeof sent.value === 'string' && /^[A-Za-z0-9_-]{43}$/.test(sent.value)
    ? sent.value
    : undefined
}

/**
 * The secret of a browser, which is renewed or made. There is one cookie for a browser, however many ceremonies, because
 * another one would end those that are pending in other tabs.
 */
export const browserFor = (ctx: Context, host: SessionHost, lifetime: number): string => {
  const browser = browserOf(host, ctx.request) ?? randomBytes(32).toString('base64url')
  ctx.cookies.set(cookieOf(host), browser, {
    httpOnly: true,
    sameSite: 'lax',
    secure: host.https ?? ctx.secure,
    path: '/',
    signed: false,
    overwrite: true,
    maxAge: Math.max(DAY, lifetime + HOUR),
  })
  return browser
}

// Browsers of different ages announce a prefetch or a preview in different fields
const prefetches = ['Sec-Purpose', 'Purpose', 'X-Purpose', 'X-Moz']

/** Whether a page, or a script of it, sent a request: no prefetch, image or frame. */
export const isOfPage = ({ request }: Context): boolean =>
  ['', 'document', 'empty'].includes(request.get('Sec-Fetch-Dest')) &&
  prefetches.every((name) => request.get(name) === '')

/** HEAD, a prefetch, an image and a frame must neither begin nor finish anything, on the same site, too. */
export const isNoVisit = (ctx: Context): boolean => isSafe(ctx.method) && (ctx.method !== 'GET' || !isOfPage(ctx))
