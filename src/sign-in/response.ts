/**
 * How ceremonies are answered: a failure by the error mapper, a redirect, and pages. No page is stored, sends a Referer to
 * another site, can be framed, or loads anything.
 */
import { createHash } from 'node:crypto'
import type { Context, Middleware } from 'koa'
import type { AuthError } from '../core/AuthError.js'
import { settingsOf } from '../core/Exchange.js'
import { defaultErrorMapper } from '../core/Settings.js'
import * as is from '../core/checks.js'
import { checkHook, checkOptions, declareFactory, isGiven, type Checks } from '../core/options.js'
import { respondFailure } from '../koa/respond.js'
import { guardHeadersOf } from '../koa/responseHeaders.js'
import type { Page } from '../sessions/Page.js'
import type { Display, Kind } from './Kind.js'
import {
  escaped,
  familyOf,
  hasPage,
  hidden,
  isNavigation,
  newPassword,
  plainHtml,
  respondFailed,
  respondHtml,
  respondPage,
  type Form,
  type LinkPageOptions,
} from './pages.js'
import { sentPath } from './request.js'

// Anonymous callers can sign in, so there is no challenge
const anonymous = guardHeadersOf({ _tag: 'AnyOf', members: [] }).whenRefused

/** Answers a failure: by a page, which has this form, or by the error mapper. An exception is thrown again. */
export const respondUnfinished = async (ctx: Context, failure: AuthError, form?: Form): Promise<void> => {
  if (failure._tag === 'raised') throw failure.error
  if (form !== undefined && hasPage(ctx)) return respondFailed(ctx, failure, form)
  const settings = settingsOf(ctx.request)
  await respondFailure(ctx, failure, settings, anonymous)
  ctx.set('Cache-Control', 'no-store')
  // a mapper for other pages, such as one that leads a 401 to the sign-in page, knows nothing of this one
  const isOwn = settings.errorMapper === defaultErrorMapper || ctx.response.is('json', '+json') === false
  if (form !== undefined && isNavigation(ctx) && !isOwn) await respondFailed(ctx, failure, form)
}

/** Answers with a redirect to a path of this origin, or to a provider (303). */
export const leadTo = (ctx: Context, path: string): void => {
  ctx.status = 303
  ctx.set('Location', path)
  ctx.body = null
  ctx.status = 303
}

/** Whether no hook has written a response. */
export const isUnanswered = ({ response }: Context): boolean =>
  response.status === 404 && (response.body === undefined || response.body === null)

/** Answers a ceremony that was finished, or had been before, unless a hook has written a response. */
export const respondFinished = async (
  ctx: Context,
  { name, bound }: Pick<Kind<never, never, never>, 'name' | 'bound'>,
  { returnTo, display }: { readonly returnTo: string; readonly display: Display },
): Promise<void> => {
  if (!isUnanswered(ctx)) return
  const end: Page = { kind: familyOf({ name }), step: 'done', fields: [], action: returnTo }
  if (display === 'popup' && isNavigation(ctx)) return respondToOpener(ctx, end)
  // no user was signed in
  if (bound === false && hasPage(ctx)) return respondPage(ctx, end)
  if (isNavigation(ctx) || ctx.method === 'GET') return leadTo(ctx, returnTo)
  ctx.body = { returnTo }
}

// --- popups

// The same in every answer, so that the policy can name its hash
const script = `const path = document.querySelector('a').getAttribute('href')
const isOurs = (opener) => {
  try {
    return opener !== null && !opener.closed && opener.location.origin === location.origin
  } catch {
    return false
  }
}
if (isOurs(window.opener)) {
  window.opener.postMessage(path, location.origin)
  window.close()
} else location.replace(path)`

const allowed = `script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'; form-action 'none'`

// The page on which a sign-in in a popup ends posts the return path to its opener, if that is of the same origin, and
// closes itself. Nothing else is in it, so whoever gets the message learns nothing that the opener does not know.
// An opener of another origin cannot be asked for its origin: the browser throws. It gets nothing. The opener is
// missing if a page on the way had the policy `Cross-Origin-Opener-Policy: same-origin`, or if the popup was opened
// with `noopener`.
const respondToOpener = (ctx: Context, end: Page): Promise<void> =>
  respondPage(ctx, { ...end, script }, undefined, () => {
    const to = escaped(end.action)
    respondHtml(
      ctx,
      `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Signed in</title>
<noscript><meta http-equiv="refresh" content="0;url=${to}"></noscript>
</head><body><a href="${to}">Continue</a>
<script>${script}</script>
</body></html>
`,
      allowed,
    )
  })

// --- links

const linkPageChecks: Checks<LinkPageOptions> = {
  title: is.nonEmpty,
  text: is.maybe(is.nonEmpty),
  button: is.nonEmpty,
  password: is.maybe(is.nonEmpty),
  language: is.maybe(is.nonEmpty),
}

/**
 * Middleware for the GET of a link: a page with one form, which sends the link by POST. It changes nothing, so a program
 * that opens the links of mails uses nothing up. The page is not stored, sends no Referer to other sites, loads nothing, and works
 * without scripts. Of a kind, such as `linkPage(reset)`, it is a page of `sessions(app, { pages })`, or a plain one in the language of
 * the request. With texts, or a function of the
 * context that returns them, it says these.
 *
 * @example
 * import { linkPage } from 'koa-with-auth/sign-in'
 *
 * const page = linkPage({ title: 'New password', button: 'Save', password: 'New password' })
 */
export const linkPage = (
  given:
    | LinkPageOptions
    | ((ctx: Context) => LinkPageOptions)
    | (Pick<Kind<never, never, never>, 'name' | 'form'> & { readonly read: unknown }),
): Middleware => {
  const isKind = typeof given === 'object' && 'read' in given
  // a link needs no code
  const asked = isKind && isGiven(given, 'form') ? (given.form?.answer ?? []).filter(({ name }) => name !== 'code') : []
  const checked = (options: LinkPageOptions) => checkOptions('linkPage', options, linkPageChecks)
  if (typeof given === 'function') checkHook('linkPage', given, 1)
  const same = isKind || typeof given === 'function' ? undefined : checked(given)
  return (ctx) => {
    const texts = typeof given === 'function' ? checked(given(ctx)) : same
    const fields = texts?.password === undefined ? asked : [newPassword]
    const query = new URLSearchParams(ctx.querystring)
    const page: Page = {
      kind: isKind ? familyOf(given) : 'link',
      step: 'answer',
      handle: query.get('handle') ?? '',
      fields: [hidden('key', query.get('key') ?? ''), ...fields],
      action: sentPath(ctx),
    }
    if (texts === undefined) return respondPage(ctx, page)
    return respondPage(ctx, page, undefined, () => respondHtml(ctx, plainHtml({ ...texts, page })))
  }
}

declareFactory('linkPage', linkPage)
