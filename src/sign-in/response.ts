/**
 * How ceremonies are answered: a failure by the error mapper, a redirect, and pages. No page is stored, sends a Referer,
 * can be framed, or loads anything.
 */
import { createHash } from 'node:crypto'
import type { Context, Middleware } from 'koa'
import type { AuthError } from '../core/AuthError.js'
import { settingsOf } from '../core/Exchange.js'
import { checkOptions, declareFactory, maybe, type Check } from '../core/options.js'
import { respondFailure } from '../koa/respond.js'
import { guardHeadersOf } from '../koa/responseHeaders.js'
import type { Display } from './Kind.js'

// Anonymous callers can sign in, so there is no challenge
const anonymous = guardHeadersOf({ _tag: 'AnyOf', members: [] }).whenRefused

/** Answers a failure by the error mapper; an exception is thrown again. */
export const respondUnfinished = (ctx: Context, failure: AuthError): void => {
  if (failure._tag === 'raised') throw failure.error
  respondFailure(ctx, failure, settingsOf(ctx.request), anonymous)
  ctx.set('Cache-Control', 'no-store')
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

// That of a browser is shorter, and Koa takes quadratic time to read one
const MAX_ACCEPT = 1000

// Whether a browser asks for a page
const isNavigation = ({ request }: Context): boolean => {
  const { length } = request.get('Accept')
  return length > 0 && length <= MAX_ACCEPT && request.accepts('json', 'html') === 'html'
}

/** Answers a ceremony that was finished, or had been before, unless a hook has written a response. */
export const respondFinished = (
  ctx: Context,
  { returnTo, display }: { readonly returnTo: string; readonly display: Display },
): void => {
  if (!isUnanswered(ctx)) return
  if (display === 'popup' && isNavigation(ctx)) return respondToOpener(ctx, returnTo)
  if (isNavigation(ctx) || ctx.method === 'GET') return leadTo(ctx, returnTo)
  ctx.body = { returnTo }
}

// -------------------------------------------------------------------------------------
// pages
// -------------------------------------------------------------------------------------

// A string as the text or an attribute of HTML
const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

// How a page with a form looks: legible, light or dark as the system is, and as wide as a phone
const style = [
  ':root{color-scheme:light dark;--main:light-dark(#0b57d0,#a8c7fa)}',
  '*{box-sizing:border-box}',
  'body{margin:0;font:1rem/1.5 system-ui,sans-serif;background:light-dark(#f6f7f9,#16181c);color:light-dark(#1b1d21,#e6e8eb)}',
  'main{width:min(26rem,100% - 2rem);margin:10vh auto;padding:1.5rem;border-radius:.75rem;background:light-dark(#fff,#202329);box-shadow:0 1px 4px rgb(0 0 0/.2)}',
  'h1{margin:0 0 1rem;font-size:1.5rem;line-height:1.2}p{margin:0 0 1rem}label{font-weight:600}',
  'input,button{width:100%;padding:.65rem .75rem;border:1px solid light-dark(#8a8f98,#80868f);border-radius:.4rem;font:inherit;color:inherit;background:0 0}',
  'button{border-color:var(--main);font-weight:600;color:light-dark(#fff,#062e6f);background:var(--main);cursor:pointer}',
  ':focus-visible{outline:3px solid var(--main);outline-offset:2px}',
].join('')

// Answers with a page. `allowed` are the directives of its policy that allow something
const respondPage = (ctx: Context, allowed: string, html: string): void => {
  ctx.set({
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': `default-src 'none'; ${allowed}; frame-ancestors 'none'; base-uri 'none'`,
  })
  ctx.status = 200
  ctx.type = 'html'
  ctx.body = html
}

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
const respondToOpener = (ctx: Context, path: string): void => {
  const to = escaped(path)
  respondPage(
    ctx,
    allowed,
    `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Signed in</title>
<noscript><meta http-equiv="refresh" content="0;url=${to}"></noscript>
</head><body><a href="${to}">Continue</a>
<script>${script}</script>
</body></html>
`,
  )
}

/** What the page of a link says. */
export interface LinkPageOptions {
  readonly title: string
  /** Below the title. */
  readonly text?: string | undefined
  /** What the button says. */
  readonly button: string
  /** Whether it asks for a new password, which is sent as `password`; its label. */
  readonly password?: string | undefined
}

/**
 * Middleware for the GET of a link: a page with one form, which sends the link by POST. It changes nothing, so a program
 * that opens the links of mails uses nothing up. The page is not stored, sends no Referer, loads nothing, and works
 * without scripts.
 *
 * @example
 * import { linkPage } from 'koa-with-auth/sign-in'
 *
 * const page = linkPage({ title: 'New password', button: 'Save', password: 'New password' })
 */
export const linkPage = (options: LinkPageOptions): Middleware => {
  const string: Check = (where, value) => {
    if (typeof value !== 'string' || value === '') throw new TypeError(`${where} must be a string that is not empty`)
  }
  const { title, text, button, password } = checkOptions('linkPage', options, {
    title: string,
    text: maybe(string),
    button: string,
    password: maybe(string),
  })
  return (ctx) => {
    const query = new URLSearchParams(ctx.querystring)
    const hidden = ['handle', 'key'].map(
      (name) => `<input type="hidden" name="${name}" value="${escaped(query.get(name) ?? '')}">`,
    )
    const field =
      password === undefined
        ? ''
        : `<p><label>${escaped(password)} <input type="password" name="password" autocomplete="new-password" required></label></p>`
    const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${style}</style>
</head><body><main><h1>${escaped(title)}</h1>${text === undefined ? '' : `<p>${escaped(text)}</p>`}
<form method="post" action="${escaped(ctx.path)}">${hidden.join('')}${field}<button>${escaped(button)}</button></form>
</main></body></html>
`
    respondPage(ctx, "style-src 'unsafe-inline'; form-action 'self'", html)
  }
}

declareFactory('linkPage', linkPage)
