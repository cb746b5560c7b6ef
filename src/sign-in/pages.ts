/**
 * How ceremonies are answered: a failure by the error mapper, a redirect, and pages, for browsers that ask for one: those that the
 * application makes of data, or plain ones. A plain page works without scripts, is not stored, sends no Referer to other sites, cannot be
 * framed, and loads nothing.
 */
import type { Context, Middleware } from 'koa'
import type { AuthError } from '../core/AuthError.js'
import { escapeHtml, ownField } from '../core/data.js'
import { settingsOf } from '../core/Exchange.js'
import { defaultErrorMapper, type AuthResponse } from '../core/Settings.js'
import { digest } from '../crypto/secrets.js'
import * as is from '../core/checks.js'
import { checkHook, checkOptions, declareFactory, type Checks } from '../core/options.js'
import { respondFailure } from '../koa/respond.js'
import { headersOfRefusal } from '../koa/responseHeaders.js'
import { markThrown } from '../koa/settings.js'
import { english, type Page, type PageField } from '../sessions/Page.js'
import { requestSessionOf } from '../sessions/RequestSession.js'
import { type AnyKind, localPath, type Display, type Incoming } from './Kind.js'
import { returnToIn, sentPath, visitOf } from './request.js'

export type Form = Pick<Page, 'kind' | 'fields' | 'action' | 'handle'>

// That of a browser is shorter, and Koa takes quadratic time to read one
const MAX_ACCEPT = 1000

export const isNavigation = ({ request }: Context): boolean => {
  const { length } = request.get('Accept')
  return length > 0 && length <= MAX_ACCEPT && request.accepts('json', 'html') === 'html'
}

export const hidden = (name: string, value: string): PageField => ({ name, type: 'hidden', autocomplete: 'off', value })

export const passwordField = { name: 'password', type: 'password', autocomplete: 'new-password' } as const

/** Nothing to send: a link leads to the start of the site. */
export const noForm = (kind: string): Form => ({ kind, fields: [], action: '/' })

const MAX_VALUE = 2000

/**
 * A hidden field of a form that a GET of its address has shown: so another GET of that address can show the page that follows. There it
 * is a parameter, with that page.
 */
export const STEP = 'step'

/** The form of a beginning, with the fields as they were typed, and the path that follows. A password is typed again. */
export const beginForm = (
  ctx: Context,
  kind: string,
  fields: ReadonlyArray<PageField>,
  typed: Incoming['body'],
  returnTo = 'returnTo',
): Form => {
  if (fields.length === 0) return noForm(kind)
  const filled = fields.map((field) => {
    const value = field.type === 'password' ? undefined : typed[field.name]
    return typeof value === 'string' && value.length <= MAX_VALUE ? { ...field, value } : field
  })
  const path = localPath(returnToIn(typed, new URLSearchParams(ctx.querystring), returnTo))
  return { kind, fields: [hidden(returnTo, path), hidden(STEP, 'begin'), ...filled], action: sentPath(ctx) }
}

/** The fields of the page of a link, which needs no code. */
export const linkFields = (key: string, answer: ReadonlyArray<PageField>): ReadonlyArray<PageField> => [
  hidden('key', key),
  ...answer.filter(({ name }) => name !== 'code'),
]

export const shownBy = (
  ctx: Context,
  kind: Pick<AnyKind, 'name' | 'shows' | 'bound'>,
  handle: string,
): ReadonlyArray<PageField> => {
  if (kind.shows === undefined || requestSessionOf(ctx).host === undefined) return []
  const kept = visitOf('linkPage(kind)', ctx, undefined, false).ceremonies.keptIn(kind, handle)
  // Safe: a handle of this kind has its content
  return kept === undefined ? [] : kind.shows(kept as never)
}

/**
 * Answers with a page; the status and the headers are those of its failure. If the application makes none, it is a plain page, and
 * `allowed` are the directives of its policy that allow something: by default, a form.
 */
export const respondPage = async (
  ctx: Context,
  page: Page,
  { status, headers = {} }: Pick<AuthResponse, 'status' | 'headers'> = { status: 200 },
  plainPage = () => renderDefaultPage(ctx, page),
  allowed = formPolicy,
): Promise<void> => {
  const made: unknown = await requestSessionOf(ctx).host?.pages?.(page, ctx)
  if (made !== undefined && typeof made !== 'string') {
    throw new TypeError('sessions(app, { pages }): it must return HTML as a string, or undefined after ctx.render')
  }
  const isPlain = made === undefined && (ctx.body ?? undefined) === undefined && !ctx.res.hasHeader('location')
  if (isPlain) {
    ctx.set({
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': `default-src 'none'; ${allowed}; frame-ancestors 'none'; base-uri 'none'`,
    })
    ctx.status = 200
  }
  if (isPlain || made !== undefined) {
    ctx.body = made ?? plainPage()
    ctx.type = 'html'
  }
  if (ctx.status < 300 || ctx.status >= 400) ctx.status = status
  ctx.set({ 'Cache-Control': 'no-store', 'Referrer-Policy': hasForm(page) ? 'same-origin' : 'no-referrer' })
  for (const [name, value] of Object.entries(headers)) ctx.set(name, [value].flat())
}

// The policy of a page with a form. It says nothing of `form-action`, which Chromium and Safari apply to all redirects that follow, also to
// those of another site that the sign-in leads to (w3c/webappsec-csp#8)
const formPolicy = "style-src 'unsafe-inline'"

/** The name of a kind on pages: `oidc` of `oidc:https://accounts.example`. */
export const familyOf = ({ name }: { readonly name: string }): string => name.split(':', 1)[0] ?? name

/**
 * Whether a failure is answered with a page: a browser asks for one, and the application has pages, or no error mapper that answers
 * otherwise.
 */
export const hasPage = (ctx: Context): boolean =>
  isNavigation(ctx) &&
  (requestSessionOf(ctx).host?.pages !== undefined || settingsOf(ctx.request).errorMapper === undefined)

/** Answers a failure with a page, which has a form if the same may be tried again. */
export const respondFailed = (ctx: Context, failure: AuthError, form: Form): Promise<void> => {
  const reason = failure._tag === 'raised' ? 'malformed' : (failure.reason ?? failure._tag)
  // a redirect that a hook wrote for a success leads nowhere now
  ctx.remove('Location')
  ctx.body = null
  return respondPage(ctx, { ...form, step: 'failed', failure: { reason } }, defaultErrorMapper(failure, ctx.request))
}

/**
 * Answers a failure: by a page, which has this form, or by the error mapper. An exception is thrown again. A sign-in of the request is
 * undone.
 */
export const respondUnfinished = async (ctx: Context, failure: AuthError, form?: Form): Promise<void> => {
  if (failure._tag === 'raised') throw failure.error
  // a step after a sign-in of this request failed
  if (requestSessionOf(ctx).begun !== undefined) markThrown(ctx)
  if (form !== undefined && hasPage(ctx)) return respondFailed(ctx, failure, form)
  const settings = settingsOf(ctx.request)
  await respondFailure(ctx, failure, settings, headersOfRefusal)
  ctx.set('Cache-Control', 'no-store')
  // a mapper for other pages, such as one that leads a 401 to the sign-in page, knows nothing of this one
  const isOwn = settings.errorMapper === defaultErrorMapper || ctx.response.is('json', '+json') === false
  if (form !== undefined && isNavigation(ctx) && !isOwn) await respondFailed(ctx, failure, form)
}

// A policy with `form-action` on every answer, as helmet sets it, is on the page with the button, too
const warnOfPolicy = ({ response, method }: Context, to: string): void => {
  const [, allowed = '*'] = /(?:^|[;,])\s*form-action\s([^;,]*)/i.exec(response.get('Content-Security-Policy')) ?? []
  if (method === 'GET' || !URL.canParse(to)) return
  const { origin, protocol } = new URL(to)
  if (allowed.split(/\s+/).some((one) => ['*', protocol, origin].includes(one) || one.includes('*.'))) return
  const text = `the policy "form-action ${allowed.trim()}" stops a form that leads to ${origin} in Chromium and Safari; allow that origin, or begin with a link (GET)`
  process.emitWarning(text, 'SignInWarning')
}

/** Answers with a redirect to a path of this origin, or to a provider (303). */
export const leadTo = (ctx: Context, path: string): void => {
  warnOfPolicy(ctx, path)
  ctx.set('Location', path)
  ctx.body = null
  ctx.status = 303
}

export const isUnanswered = ({ response }: Context): boolean =>
  response.status === 404 && (response.body === undefined || response.body === null)

/** Answers a ceremony that was finished, or had been before, unless a hook has written a response. */
export const respondFinished = async (
  ctx: Context,
  { name, bound }: Pick<AnyKind, 'name' | 'bound'>,
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

// --- plain pages

// How a page with a form looks: legible, light or dark as the system is, and as wide as a phone
const style = [
  ':root{color-scheme:light dark;--main:light-dark(#0b57d0,#a8c7fa)}',
  '*{box-sizing:border-box}',
  'body{margin:0;font:1rem/1.5 system-ui,sans-serif;background:light-dark(#f6f7f9,#16181c);color:light-dark(#1b1d21,#e6e8eb)}',
  'main{width:min(26rem,100% - 2rem);margin:10vh auto;padding:1.5rem;border-radius:.75rem;background:light-dark(#fff,#202329);box-shadow:0 1px 4px rgb(0 0 0/.2)}',
  'h1{margin:0 0 1rem;font-size:1.5rem;line-height:1.2;overflow-wrap:anywhere}p{margin:0 0 1rem}label{display:block;font-weight:600}',
  'input,button{width:100%;padding:.65rem .75rem;border:1px solid light-dark(#8a8f98,#80868f);border-radius:.4rem;font:inherit;color:inherit;background:0 0}',
  '[type=checkbox]{width:auto;margin:0 .5rem 0 0}',
  'button{border-color:var(--main);font-weight:600;color:light-dark(#fff,#062e6f);background:var(--main);cursor:pointer}',
  '[role=alert]{color:light-dark(#b3261e,#f2b8b5)}a{color:var(--main)}',
  ':focus-visible{outline:3px solid var(--main);outline-offset:2px}',
].join('')

/** The texts of the page of a link. */
export interface LinkPageOptions {
  readonly title: string
  /** Below the title. */
  readonly text?: string | undefined
  /** The text of the button. */
  readonly button: string
  /** Whether it asks for a new password, which is sent as `password`; its label. */
  readonly password?: string | undefined
  /** The language of these texts, such as `de`. Default: the page does not say it, and a screen reader takes that of its user. */
  readonly language?: string | undefined
}

// With `no-referrer`, its POST would have `Origin: null`, so a browser without Sec-Fetch-Site would look like another site
const hasForm = ({ step, fields, handle }: Page): boolean =>
  step !== 'done' && (fields.length > 0 || handle !== undefined)

const pageHtml = (
  page: Page,
  { language, title, text, button, password = '' }: LinkPageOptions,
  labelOf: (field: PageField) => string = () => password,
): string => {
  const { action, failure, handle } = page
  const role = failure === undefined ? '' : ' role="alert"'
  // a screen reader says it at the field, too
  const described = failure === undefined ? '' : ' aria-describedby="said" aria-invalid="true"'
  const inputOf = (field: PageField): string => {
    const { name, type, autocomplete, value } = field
    const given = value === undefined ? '' : type === 'checkbox' ? ' checked' : ` value="${escapeHtml(value)}"`
    const mode = field.inputmode === undefined ? '' : ` inputmode="${field.inputmode}"`
    const input = `<input type="${type}" name="${escapeHtml(name)}"${given} autocomplete="${escapeHtml(autocomplete)}"${mode}`
    if (type === 'hidden') return `${input}>`
    if (type === 'checkbox') return `<p><label>${input}>${escapeHtml(labelOf(field))}</label></p>`
    const typing = type === 'password' ? '' : ' autocapitalize="none" spellcheck="false"'
    const asked = field.readonly === true ? ' readonly' : `${described} required`
    return `<p><label>${escapeHtml(labelOf(field))} ${input}${typing}${asked}></label></p>`
  }
  const fields = handle === undefined ? page.fields : [hidden('handle', handle), ...page.fields]
  const rest = hasForm(page)
    ? `<form method="post" action="${escapeHtml(action)}">${fields.map(inputOf).join('')}<button>${escapeHtml(button)}</button></form>`
    : `<p><a href="${escapeHtml(action)}">${escapeHtml(button)}</a></p>`
  return `<!doctype html>
<html${language === undefined ? '' : ` lang="${escapeHtml(language)}"`}><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head><body><main><h1>${escapeHtml(title)}</h1>${text === undefined ? '' : `<div id="said"><p${role}>${escapeHtml(text)}</p></div>`}
${rest}
</main></body></html>
`
}

// The texts in the first language that the browser accepts; English is always there
const textsFor = (ctx: Context) => {
  const all = requestSessionOf(ctx).host?.texts ?? {}
  const accepted = ctx.acceptsLanguages('en', ...Object.keys(all))
  const language = typeof accepted === 'string' ? accepted : 'en'
  ctx.vary('Accept-Language')
  return { language, texts: { ...english, ...(Object.hasOwn(all, language) && all[language]) } }
}

const renderDefaultPage = (ctx: Context, page: Page): string => {
  const { kind, step, failure, fields } = page
  const { language, texts } = textsFor(ctx)
  const isLink = fields.some(({ name }) => name === 'key')
  const variant = step !== 'answer' ? step : isLink ? 'link' : hasForm(page) ? 'answer' : 'sent'
  const said = (...names: ReadonlyArray<string>): string | undefined =>
    names
      .flatMap((name) => [`${kind}.${name}`, name])
      .map((name) => ownField(texts, name))
      .find((text) => typeof text === 'string')
  const title = said(variant, 'answer') ?? ''
  const text = failure === undefined ? said(`${variant}Text`) : said(failure.reason, 'other')
  const button = said(hasForm(page) ? 'send' : 'goOn') ?? ''
  return pageHtml(
    page,
    { language, title, text, button },
    ({ name, autocomplete }) => said(name === 'password' ? autocomplete : name, name, autocomplete) ?? name,
  )
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

const openerPolicy = `script-src 'sha256-${digest(script, 'base64')}'; form-action 'none'`

// The page on which a sign-in in a popup ends posts the return path to its opener, if that is of the same origin, and
// closes itself. Nothing else is in it, so the receiver of the message learns nothing that the opener does not know.
// An opener of another origin cannot be asked for its origin: the browser throws. It gets nothing. The opener is
// missing if a page on the way had the policy `Cross-Origin-Opener-Policy: same-origin`, or if the popup was opened
// with `noopener`.
const respondToOpener = (ctx: Context, end: Page): Promise<void> => {
  const to = escapeHtml(end.action)
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Signed in</title>
<noscript><meta http-equiv="refresh" content="0;url=${to}"></noscript>
</head><body><a href="${to}">Continue</a>
<script>${script}</script>
</body></html>
`
  return respondPage(ctx, { ...end, script }, undefined, () => html, openerPolicy)
}

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
 * the request. With texts, or a function of the context that returns them, it says these.
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
    | (Pick<AnyKind, 'name' | 'form' | 'shows' | 'bound'> & { readonly read: unknown }),
): Middleware => {
  const isKind = typeof given === 'object' && 'read' in given
  const asked = (isKind && given.form?.answer) || []
  const checked = (options: LinkPageOptions) => checkOptions('linkPage', options, linkPageChecks)
  if (typeof given === 'function') checkHook('linkPage', given, 1)
  const same = isKind || typeof given === 'function' ? undefined : checked(given)
  return (ctx) => {
    const texts = typeof given === 'function' ? checked(given(ctx)) : same
    const fields = texts?.password === undefined ? asked : [passwordField]
    const query = new URLSearchParams(ctx.querystring)
    const handle = query.get('handle') ?? ''
    const page: Page = {
      kind: isKind ? familyOf(given) : 'link',
      step: 'answer',
      handle,
      fields: [...(isKind ? shownBy(ctx, given, handle) : []), ...linkFields(query.get('key') ?? '', fields)],
      action: sentPath(ctx),
    }
    return respondPage(ctx, page, undefined, texts && (() => pageHtml(page, texts)))
  }
}

declareFactory('linkPage', linkPage)
