// What the shop answers: JSON, and pages for navigations. A failure is a problem with a reason; a navigation is led to
// the sign-in page, which says what happened.
import { LibsqlError } from '@libsql/client'
import { STATUS_CODES } from 'node:http'
import type { Context, Middleware, Request } from 'koa'
import { defaultErrorMapper, UnavailableError, type AuthError, type AuthResponse } from 'koa-with-auth'
import type { Page } from 'koa-with-auth/sessions'
import { localPath } from 'koa-with-auth/sign-in'
import { codePage, messagePage, pageFields } from './pages.js'

/** Whether a browser asks for a page. */
export const isNavigation = (request: Request): boolean =>
  request.get('Accept') !== '' && request.accepts('json', 'html') === 'html'

const sentences: Readonly<Record<string, string>> = {
  anotherBrowser:
    'This is not the browser that asked for the mail. Type the code of the mail there, where you began to sign in.',
  forged: 'Another site sent this request, so nothing was done.',
  unavailable: 'The shop cannot do that at the moment. Try again in a few seconds.',
  error: 'The shop has failed. Nothing is wrong on your side.',
}

const answerOf = (request: Request, status: number, reason: string, more: AuthResponse): AuthResponse => {
  if (!isNavigation(request)) {
    const title = STATUS_CODES[status] ?? 'Error'
    return { ...more, status, body: Object.assign({ type: 'about:blank', title, status }, more.body, { reason }) }
  }
  const page = sentences[status >= 500 && status !== 503 ? 'error' : reason]
  if (page === undefined && status < 500) return { status: 303, headers: { Location: `/sign-in?failed=${reason}` } }
  return {
    status,
    headers: { ...more.headers, ...pageFields, 'Content-Type': 'text/html; charset=utf-8' },
    body: messagePage(page ?? sentences['unavailable'] ?? ''),
  }
}

/** Failures of the library. */
export const errorMapper = (error: AuthError, request: Request): AuthResponse => {
  const answer = defaultErrorMapper(error, request)
  return answerOf(request, answer.status, error.reason ?? error._tag, answer)
}

const write = (ctx: Context, { status, headers = {}, body }: AuthResponse): void => {
  ctx.body = typeof body === 'object' && body !== null ? JSON.stringify(body) : (body ?? null)
  if (typeof body === 'object' && body !== null) ctx.type = 'application/problem+json'
  ctx.status = status
  ctx.set('Cache-Control', 'no-store')
  for (const [name, value] of Object.entries(headers)) ctx.set(name, [value].flat())
}

/** Answers a failure of the shop. */
export const refuse = (ctx: Context, status: number, reason: string): void =>
  write(ctx, answerOf(ctx.request, status, reason, { status }))

/** Answers a success: 204; a navigation is led to a path. */
export const done = (ctx: Context, path: unknown = '/'): void => {
  ctx.body = null
  ctx.status = isNavigation(ctx.request) ? 303 : 204
  if (ctx.status === 303) ctx.set('Location', localPath(path))
}

export const page = (ctx: Context, html: string): void => {
  ctx.set(pageFields)
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'html'
  ctx.body = html
}

/** The members of the body. */
export const fieldsOf = ({ request }: Context): Readonly<Record<string, unknown>> => {
  const body: unknown = request.body
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : {}
}

const member = (u: unknown, name: string): unknown =>
  typeof u === 'object' && u !== null && Object.hasOwn(u, name) ? Reflect.get(u, name) : undefined

const codeCookie = (ctx: Context): string => (ctx.secure ? '__Host-code' : 'code')

/** The page that asks for a code. Its handle is kept, so that a wrong code leads back to this page. */
const askForCode = (ctx: Context, handle: string, isFactor: boolean): void => {
  ctx.cookies.set(codeCookie(ctx), `${isFactor ? 'factor' : 'mail'}.${handle}`, {
    secure: ctx.secure,
    sameSite: 'lax',
    signed: false,
  })
  page(ctx, codePage(handle, isFactor))
}

/** Answers with the page that asked for a code, after a wrong one. Otherwise the page is forgotten. */
export const asksAgain = (ctx: Context, failed: string): boolean => {
  const [kind, handle] = ctx.cookies.get(codeCookie(ctx), { signed: false })?.split('.') ?? []
  if (kind === undefined || handle === undefined) return false
  if (failed === 'wrong') page(ctx, codePage(handle, kind === 'factor', failed))
  else ctx.cookies.set(codeCookie(ctx), null, { secure: ctx.secure, signed: false })
  return failed === 'wrong'
}

/** The pages of signing in: `sessions(app, { pages })`. What it leaves out, such as the page of a link, is the library's. */
export const pages = ({ kind, step, handle, fields, failure }: Page, ctx: Context): undefined => {
  const status = failure?.reason === 'unavailable' ? 503 : 403
  if (failure !== undefined) return void write(ctx, answerOf(ctx.request, status, failure.reason, { status }))
  if (step !== 'answer' || fields.some(({ name }) => name === 'key')) return undefined
  if (handle !== undefined) askForCode(ctx, handle, kind === 'code')
  else done(ctx, kind === 'verify' ? '/?done=verify' : '/sign-in?done=reset')
  return undefined
}

/** After a ceremony: 204 where only the path that follows is answered, and a page that asks for a code. */
export const settled =
  (run: Middleware): Middleware =>
  async (ctx, next) => {
    await run(ctx, next)
    if (ctx.status !== 200) return
    const handle = member(ctx.body, 'handle')
    if (member(ctx.body, 'returnTo') !== undefined) done(ctx)
    else if (typeof handle === 'string' && isNavigation(ctx.request)) {
      askForCode(ctx, handle, member(ctx.body, 'next') === 'code')
    }
  }

const passkeyAnswers = ['/sign-in/passkey', '/prove/passkey', '/passkeys']

/** Refuses a body that cannot be read: what a client sent is no failure of the shop. */
export const refuseBody = (error: Error, ctx: Context): void => {
  // whatever is wrong with the answer of a passkey, the library says the same
  if (passkeyAnswers.includes(ctx.path)) {
    ctx.request.body = {}
    return
  }
  const status = 'status' in error && typeof error.status === 'number' ? error.status : 400
  ctx.throw(status >= 400 && status < 500 ? status : 400)
}

const statusOf = (error: unknown): number => {
  if (error instanceof UnavailableError || error instanceof LibsqlError) return 503
  // a body that is no JSON object or array
  if (error instanceof SyntaxError && 'status' in error && error.status === 400) return 400
  if (!(error instanceof Error) || !('status' in error) || !('expose' in error)) return 500
  const { status, expose } = error
  return expose === true && typeof status === 'number' && status >= 400 && status < 500 ? status : 500
}

const reasons: Readonly<Record<number, string>> = { 403: 'wrong', 500: 'error', 503: 'unavailable' }

/** Middleware that answers exceptions and what is not found. */
export const failures: Middleware = async (ctx, next) => {
  try {
    await next()
    const isEmpty = ctx.body === undefined || ctx.body === null
    if (isEmpty && [404, 405].includes(ctx.status))
      refuse(ctx, ctx.status, ctx.status === 404 ? 'notFound' : 'notAllowed')
  } catch (error) {
    const status = statusOf(error)
    if (status === 500) ctx.app.emit('error', error, ctx)
    if (ctx.headerSent) return
    refuse(ctx, status, reasons[status] ?? 'malformed')
    if (status === 503) ctx.set('Retry-After', '5')
  }
}

// Pages of other sites may fill a basket, and providers post their answers
const open = /^\/(?:basket|sign-out\/backchannel|sign-in\/[a-z]+\/callback)$/

/** Middleware that refuses what another site made a browser send, before anything else runs. */
export const fromHere = (origin: string): Middleware => {
  // it has a name, because the policy file calls it by that
  const sentFromHere: Middleware = async (ctx, next) => {
    const isSafe = ['GET', 'HEAD', 'OPTIONS'].includes(ctx.method)
    const [site, from] = [ctx.get('Sec-Fetch-Site'), ctx.get('Origin')]
    const isOwn = site === '' ? from === '' || from === origin : site === 'same-origin' || site === 'none'
    if (isSafe || isOwn || open.test(ctx.path)) return next()
    refuse(ctx, 403, 'forged')
  }
  return sentFromHere
}
