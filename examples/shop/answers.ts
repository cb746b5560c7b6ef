// What the shop answers: JSON, and pages for browsers. A failure is a problem with a reason. A browser is led to the sign-in
// page, which says what happened.
import { STATUS_CODES } from 'node:http'
import Koa, { type Context, type Middleware, type Request } from 'koa'
import { defaultErrorMapper, UnavailableError, type AuthError, type AuthResponse } from 'koa-with-auth'
import type { Page } from 'koa-with-auth/sessions'
import { localPath } from 'koa-with-auth/sign-in'
import { messagePage, pageFields, type Notice } from './pages.js'
import { ceremonyPage } from './signInPages.js'

/** Whether a browser asks for a page. */
export const isNavigation = (request: Request): boolean =>
  request.get('Accept') !== '' && request.accepts('json', 'html') === 'html'

// Failures that are a page of their own
const sentences: Readonly<Record<string, string>> = {
  anotherBrowser:
    'This is not the browser that asked for the mail. Type the code of the mail there, where you began to sign in.',
  notFound: 'There is no such page.',
  forged: 'Another site sent this request, so nothing was done.',
  unavailable: 'The shop cannot do that at the moment. Try again in a few seconds.',
  error: 'The shop has failed. Nothing is wrong on your side.',
}

const answerOf = (request: Request, response: AuthResponse, reason: string): AuthResponse => {
  const { status, headers, body } = response
  if (!isNavigation(request)) {
    const problem = { type: 'about:blank', title: STATUS_CODES[status], status }
    return { ...response, body: Object.assign(problem, body, { reason }) }
  }
  const sentence = sentences[status >= 500 && status !== 503 ? 'error' : reason]
  if (sentence === undefined) return { status: 303, headers: { Location: `/sign-in?failed=${reason}` } }
  const html = { ...headers, ...pageFields, 'Content-Type': 'text/html; charset=utf-8' }
  return { status, headers: html, body: messagePage(sentence) }
}

/** Failures of the library. */
export const errorMapper = (error: AuthError, request: Request): AuthResponse =>
  answerOf(request, defaultErrorMapper(error, request), error.reason ?? error._tag)

/** Answers a failure of the shop. */
export const refuse = (ctx: Context, status: number, reason: string): void => {
  const { headers = {}, ...answer } = answerOf(ctx.request, { status }, reason)
  const isProblem = typeof answer.body === 'object'
  ctx.body = isProblem ? JSON.stringify(answer.body) : (answer.body ?? null)
  if (isProblem) ctx.type = 'application/problem+json'
  ctx.status = answer.status
  ctx.set('Cache-Control', 'no-store')
  for (const [name, value] of Object.entries(headers)) ctx.set(name, [value].flat())
}

// A cookie of a minute: the path that a browser is led to stays as it was asked for
const noticeCookie = ({ secure }: Context): string => (secure ? '__Host-shop-notice' : 'shop-notice')

/** What the next page of a browser says: a name of `pages.ts`. */
export const say = (ctx: Context, notice: Notice): void => {
  if (!isNavigation(ctx.request)) return
  ctx.cookies.set(noticeCookie(ctx), notice, { maxAge: 60_000, sameSite: 'lax', signed: false })
}

/** What this page says, once. */
export const noticeIn = (ctx: Context): string => {
  const notice = ctx.cookies.get(noticeCookie(ctx), { signed: false }) ?? ''
  if (notice !== '') ctx.cookies.set(noticeCookie(ctx), null, { sameSite: 'lax', signed: false })
  return notice
}

/** Answers a success: 204; a browser is led to a path, whose page says this. */
export const done = (ctx: Context, path: unknown = '/', notice?: Notice): void => {
  ctx.body = null
  ctx.status = isNavigation(ctx.request) ? 303 : 204
  if (ctx.status === 303) ctx.set('Location', localPath(path))
  if (notice !== undefined) say(ctx, notice)
}

export const page = (ctx: Context, html: string): void => {
  ctx.set(pageFields)
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'html'
  ctx.body = html
}

// Where a way through a mail or a provider ends, and what the page there says
const ways: Readonly<Record<string, readonly [path: string, notice: Notice]>> = {
  'reset.answer': ['/sign-in', 'reset'],
  'reset.done': ['/sign-in', 'password'],
  'verify.answer': ['/', 'verify'],
  'verify.done': ['/', 'verified'],
  'endSession.done': ['/', 'signedOutThere'],
}

/** The pages of signing in: `sessions(app, { pages })`. A form that may be tried again is kept for the sign-in page. */
export const pages = (given: Page, ctx: Context): void => {
  const { action, failure, fields, handle, kind, step } = given
  if (failure !== undefined) {
    const isAddress = failure.reason === 'malformed' && fields.some(({ name }) => name === 'address')
    if (keptIn(ctx, 'again') !== undefined || handle !== undefined) {
      ctx.session = { ...ctx.session, again: handle && given }
    }
    refuse(ctx, failure.reason === 'unavailable' ? 503 : 403, isAddress ? 'address' : failure.reason)
  } else if (handle !== undefined) page(ctx, ceremonyPage(given))
  else done(ctx, ...(ways[`${kind}.${step}`] ?? ([action] as const)))
}

/** What the session keeps under a name. */
export const keptIn = (ctx: Context, name: string): unknown => {
  const session: unknown = ctx.session
  return typeof session === 'object' && session !== null ? Reflect.get(session, name) : undefined
}

/** The members of the body. */
export const fieldsOf = ({ request }: Context): Readonly<Record<string, unknown>> => {
  const body: unknown = request.body
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : {}
}

const statusOf = (error: unknown): number => {
  if (error instanceof UnavailableError) return 503
  return error instanceof Koa.HttpError && error.expose ? error.status : 500
}

const reasons: Readonly<Record<number, string>> = {
  404: 'notFound',
  405: 'notAllowed',
  500: 'error',
  503: 'unavailable',
}

/** Middleware that answers exceptions and what is not found. */
export const failures: Middleware = async (ctx, next) => {
  try {
    await next()
    const isEmpty = ctx.body === undefined || ctx.body === null
    if (isEmpty && [404, 405].includes(ctx.status)) ctx.throw(ctx.status)
  } catch (error) {
    const status = statusOf(error)
    if (status === 500) ctx.app.emit('error', error, ctx)
    if (ctx.headerSent) return
    refuse(ctx, status, reasons[status] ?? 'malformed')
    if (status === 503) ctx.set('Retry-After', '5')
  }
}
