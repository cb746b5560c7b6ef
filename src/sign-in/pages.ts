/**
 * Pages of ceremonies, for browsers that ask for one: those that the application makes of data, or plain ones. A plain page works
 * without scripts, is not stored, sends no Referer to other sites, cannot be framed, and loads nothing.
 */
import type { Context } from 'koa'
import type { AuthError } from '../core/AuthError.js'
import { ownField } from '../core/data.js'
import { settingsOf } from '../core/Exchange.js'
import { defaultErrorMapper, type AuthResponse } from '../core/Settings.js'
import { english, type Page, type PageField } from '../sessions/Page.js'
import { requestSessionOf } from '../sessions/RequestSession.js'

/** A form: a page without its step. */
export type Form = Pick<Page, 'kind' | 'fields' | 'action' | 'handle'>

// That of a browser is shorter, and Koa takes quadratic time to read one
const MAX_ACCEPT = 1000

/** Whether a browser asks for a page. */
export const isNavigation = ({ request }: Context): boolean => {
  const { length } = request.get('Accept')
  return length > 0 && length <= MAX_ACCEPT && request.accepts('json', 'html') === 'html'
}

/** Fields, with what was typed into them before. A password is typed again. */
export const filled = (
  fields: ReadonlyArray<PageField>,
  typed: Readonly<Record<string, unknown>>,
): ReadonlyArray<PageField> =>
  fields.map((field) => {
    const value = field.type === 'password' ? undefined : typed[field.name]
    return typeof value === 'string' && value.length <= MAX_VALUE ? { ...field, value } : field
  })

const MAX_VALUE = 2000

export const hidden = (name: string, value: string): PageField => ({ name, type: 'hidden', autocomplete: 'off', value })

export const newPassword = { name: 'password', type: 'password', autocomplete: 'new-password' } as const

/** Answers with a page; the status and the headers are those of its failure. `otherwise` is called if the application makes none. */
export const respondPage = async (
  ctx: Context,
  page: Page,
  { status, headers = {} }: Pick<AuthResponse, 'status' | 'headers'> = { status: 200 },
  otherwise = () => respondHtml(ctx, plain(ctx, page)),
): Promise<void> => {
  const made: unknown = await requestSessionOf(ctx).host?.pages?.(page, ctx)
  if (typeof made === 'string') {
    ctx.body = made
    ctx.type = 'html'
  } else if (made !== undefined) {
    throw new TypeError('sessions(app, { pages }): it must return HTML as a string, or undefined after ctx.render')
  } else if (isBlank(ctx)) otherwise()
  if (ctx.status < 300 || ctx.status >= 400) ctx.status = status
  ctx.set({ 'Cache-Control': 'no-store', 'Referrer-Policy': hasForm(page) ? 'same-origin' : 'no-referrer' })
  for (const [name, value] of Object.entries(headers)) ctx.set(name, [value].flat())
}

// What a page with a form may do
const formPolicy = "style-src 'unsafe-inline'; form-action 'self'"

const isBlank = ({ body, res }: Context): boolean => (body === undefined || body === null) && !res.hasHeader('location')

/** What pages call a kind: `oidc` of `oidc:https://accounts.example`. */
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
  // what a hook wrote for a success is none
  ctx.remove('Location')
  ctx.body = null
  return respondPage(ctx, { ...form, step: 'failed', failure: { reason } }, defaultErrorMapper(failure, ctx.request))
}

// --- plain pages

export const escaped = (text: string): string =>
  [...'&<>"\''].reduce((done, one) => done.replaceAll(one, `&#${one.charCodeAt(0)};`), text)

// How a page with a form looks: legible, light or dark as the system is, and as wide as a phone
const style = [
  ':root{color-scheme:light dark;--main:light-dark(#0b57d0,#a8c7fa)}',
  '*{box-sizing:border-box}',
  'body{margin:0;font:1rem/1.5 system-ui,sans-serif;background:light-dark(#f6f7f9,#16181c);color:light-dark(#1b1d21,#e6e8eb)}',
  'main{width:min(26rem,100% - 2rem);margin:10vh auto;padding:1.5rem;border-radius:.75rem;background:light-dark(#fff,#202329);box-shadow:0 1px 4px rgb(0 0 0/.2)}',
  'h1{margin:0 0 1rem;font-size:1.5rem;line-height:1.2}p{margin:0 0 1rem}label{display:block;font-weight:600}',
  'input,button{width:100%;padding:.65rem .75rem;border:1px solid light-dark(#8a8f98,#80868f);border-radius:.4rem;font:inherit;color:inherit;background:0 0}',
  '[type=checkbox]{width:auto;margin:0 .5rem 0 0}',
  'button{border-color:var(--main);font-weight:600;color:light-dark(#fff,#062e6f);background:var(--main);cursor:pointer}',
  '[role=alert]{color:light-dark(#b3261e,#f2b8b5)}a{color:var(--main)}',
  ':focus-visible{outline:3px solid var(--main);outline-offset:2px}',
].join('')

/** What the page of a link says. */
export interface LinkPageOptions {
  readonly title: string
  /** Below the title. */
  readonly text?: string | undefined
  /** What the button says. */
  readonly button: string
  /** Whether it asks for a new password, which is sent as `password`; its label. */
  readonly password?: string | undefined
  /** The language of these texts, such as `de`. Default `en`. */
  readonly language?: string | undefined
}

// With `no-referrer`, its POST would have `Origin: null`, so a browser without Sec-Fetch-Site would look like another site
const hasForm = ({ step, fields, handle }: Page): boolean =>
  step !== 'done' && (fields.length > 0 || handle !== undefined)

export const plainHtml = ({
  page,
  language = 'en',
  title,
  text,
  button,
  password = '',
  labelOf = () => password,
}: LinkPageOptions & { readonly page: Page; readonly labelOf?: (field: PageField) => string }) => {
  const { action, failure, handle } = page
  const role = failure === undefined ? '' : ' role="alert"'
  // a screen reader says it at the field, too
  const described = failure === undefined ? '' : ' aria-describedby="said" aria-invalid="true"'
  const inputOf = (field: PageField): string => {
    const { name, type, autocomplete, value } = field
    const given = value === undefined ? '' : type === 'checkbox' ? ' checked' : ` value="${escaped(value)}"`
    const input = `<input type="${type}" name="${escaped(name)}"${given} autocomplete="${escaped(autocomplete)}"`
    if (type === 'hidden') return `${input}>`
    if (type === 'checkbox') return `<p><label>${input}>${escaped(labelOf(field))}</label></p>`
    const typing = type === 'password' ? '' : ' autocapitalize="none" spellcheck="false"'
    return `<p><label>${escaped(labelOf(field))} ${input}${typing}${described} required></label></p>`
  }
  const fields = handle === undefined ? page.fields : [hidden('handle', handle), ...page.fields]
  const rest = hasForm(page)
    ? `<form method="post" action="${escaped(action)}">${fields.map(inputOf).join('')}<button>${escaped(button)}</button></form>`
    : `<p><a href="${escaped(action)}">${escaped(button)}</a></p>`
  return `<!doctype html>
<html lang="${escaped(language)}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${style}</style>
</head><body><main><h1>${escaped(title)}</h1>${text === undefined ? '' : `<div id="said"><p${role}>${escaped(text)}</p></div>`}
${rest}
</main></body></html>
`
}

// The texts in the first language that the browser accepts; English is always there
const textsFor = (
  ctx: Context,
): { readonly language: string; readonly texts: Readonly<Record<string, string | undefined>> } => {
  const all = requestSessionOf(ctx).host?.texts ?? {}
  const accepted = ctx.acceptsLanguages('en', ...Object.keys(all))
  const language = typeof accepted === 'string' ? accepted : 'en'
  ctx.vary('Accept-Language')
  return { language, texts: { ...english, ...(Object.hasOwn(all, language) && all[language]) } }
}

const plain = (ctx: Context, page: Page): string => {
  const { kind, step, failure, fields } = page
  const { language, texts } = textsFor(ctx)
  const isLink = fields.some(({ name }) => name === 'key')
  const variant = step !== 'answer' ? step : isLink ? 'link' : hasForm(page) ? 'answer' : 'sent'
  const said = (...names: ReadonlyArray<string>): string | undefined =>
    names
      .flatMap((name) => [`${kind}.${name}`, name])
      .map((name) => ownField(texts, name))
      .find((text) => typeof text === 'string')
  return plainHtml({
    page,
    language,
    title: said(variant, 'answer') ?? '',
    text: failure === undefined ? said(`${variant}Text`) : said(failure.reason, 'other'),
    button: said(hasForm(page) ? 'send' : 'goOn') ?? '',
    labelOf: ({ name, autocomplete }) => said(name === 'password' ? autocomplete : name, name, autocomplete) ?? name,
  })
}

/** Answers with HTML. `allowed` are the directives of its policy that allow something: by default, a form. */
export const respondHtml = (ctx: Context, html: string, allowed = formPolicy): void => {
  ctx.set({
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': `default-src 'none'; ${allowed}; frame-ancestors 'none'; base-uri 'none'`,
  })
  ctx.status = 200
  ctx.type = 'html'
  ctx.body = html
}
