/** The pages. `pageOf` makes those of signing in from the library's data; they all work without scripts. */
import type { Context } from 'koa'
import type { ListedSession, Page, PageField } from 'koa-with-auth/sessions'
import type { PasskeyRecord } from 'koa-with-auth/sign-in/passkeys'
import { renderSVG } from 'uqr'
import type { Account } from './accounts.js'
import { languageOf, say } from './texts.js'

const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

const layout = (ctx: Context, title: string, main: string, kind: 'narrow' | 'wide' = 'narrow'): string => {
  ctx.type = 'html'
  ctx.set('Content-Security-Policy', "default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'")
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.vary('Accept-Language')
  return `<!doctype html><html lang="${languageOf(ctx)}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} · My site</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css"><script type="module" src="/script.js"></script></head>
<body><header><a class="brand" href="/">My site</a><nav><a href="/account">${say(ctx, 'account')}</a></nav></header>
<main class="${kind}"><h1>${title}</h1>${main}</main></body></html>`
}

const text = (ctx: Context, name: string): string => (say(ctx, name) ? `<p class="text">${say(ctx, name)}</p>` : '')

// a screen reader says a failure at the fields, too
const alert = (ctx: Context, reason: string | undefined): string =>
  reason === undefined ? '' : `<p role="alert" id="failure">${say(ctx, reason, 'other')}</p>`
const described = (reason: string | undefined): string =>
  reason === undefined ? '' : 'aria-describedby="failure" aria-invalid="true"'

const button = (ctx: Context, action: string, name: string, kind = 'second'): string =>
  `<form method="post" action="${escaped(action)}"><button class="${kind}">${say(ctx, name)}</button></form>`

const link = (ctx: Context, path: string, name: string, kind = 'second'): string =>
  `<a class="button ${kind}" href="${path}">${say(ctx, name)}</a>`

const input = (ctx: Context, field: PageField, more = ''): string => {
  const { name, type, autocomplete, inputmode, value, readonly } = field
  const given = value === undefined ? '' : type === 'checkbox' ? 'checked' : `value="${escaped(value)}"`
  const mode = inputmode ? `inputmode="${inputmode}"` : ''
  const asked = readonly ? 'readonly' : type === 'checkbox' ? '' : `required ${more}`
  const tag = `<input name="${name}" type="${type}" autocomplete="${autocomplete}" autocapitalize="none" spellcheck="false" ${mode} ${given} ${asked}>`
  if (type === 'hidden') return tag
  const label = say(ctx, name === 'password' ? autocomplete : name, autocomplete)
  return type === 'checkbox' ? `<label class="choice">${tag} ${label}</label>` : `<label>${label}${tag}</label>`
}

const form = (ctx: Context, action: string, fields: ReadonlyArray<PageField>, failure?: string) =>
  `<form method="post" action="${escaped(action)}">${fields.map((one) => input(ctx, one, described(failure))).join('')}
<button>${say(ctx, 'send')}</button></form>`

export const pageOf = (page: Page, ctx: Context): string => {
  const { kind, step, handle, failure, action } = page
  const hasForm = step !== 'done' && (page.fields.length > 0 || handle !== undefined)
  const isLink = page.fields.some(({ name }) => name === 'key')
  const hidden =
    handle === undefined ? [] : [{ name: 'handle', type: 'hidden', autocomplete: 'off', value: handle } as const]
  const variant = `${kind}.${isLink ? 'link' : step === 'failed' ? 'begin' : step}`
  const title = say(ctx, hasForm || step !== 'failed' ? variant : 'failed', 'signIn')
  const rest = hasForm
    ? form(ctx, action, [...hidden, ...page.fields], failure?.reason)
    : `${step === 'answer' ? text(ctx, 'sent') : ''}<p>${link(ctx, kind === 'verify' ? '/account' : '/sign-in', kind === 'verify' ? 'account' : 'signIn', '')}</p>`
  const other =
    kind === 'password'
      ? `<button id="passkey" class="second" hidden>${say(ctx, 'passkey')}</button><p class="foot"><a href="/sign-up">${say(ctx, 'newHere')}</a></p>`
      : ''
  return layout(ctx, title, (hasForm ? text(ctx, `${variant}Text`) : '') + alert(ctx, failure?.reason) + rest + other)
}

export const errorPage = (ctx: Context, reason: string): string =>
  layout(ctx, say(ctx, 'failed'), alert(ctx, reason) + link(ctx, '/', 'home'))

export const homePage = (ctx: Context, user: Account | undefined): string => {
  const done = ctx.search === '?deleted' ? `<p role="status">${say(ctx, 'deleted')}</p>` : ''
  const rest = user
    ? `<p class="text">${escaped(user.email)}</p>${link(ctx, '/account', 'account', '')}`
    : `${text(ctx, 'welcomeText')}<p class="buttons">${link(ctx, '/sign-in', 'signIn', '')}${link(ctx, '/sign-up', 'signUp')}</p>`
  return layout(ctx, say(ctx, 'welcome'), done + rest)
}

export const listPage = (ctx: Context, name: string, items: ReadonlyArray<string>): string =>
  layout(ctx, say(ctx, name), `<ul>${items.map((one) => `<li>${escaped(one)}</li>`).join('')}</ul>`)

export const recoveryPage = (ctx: Context, codes: ReadonlyArray<string>): string => {
  const list = codes.map((one) => `<li><code>${one}</code></li>`).join('')
  const copy = `<button id="copy" class="second" hidden>${say(ctx, 'copy')}</button>`
  return layout(ctx, say(ctx, 'recovery'), `${text(ctx, 'recoveryText')}<ul class="codes">${list}</ul>
<p class="buttons">${copy}${link(ctx, '/account', 'back', '')}</p>`) // prettier-ignore
}

/** Whom a password manager saves the password for. */
const username = ({ email }: Account): PageField => ({
  name: 'email',
  type: 'email',
  autocomplete: 'username',
  value: email,
  readonly: true,
})

/** A page with one form. */
export const formPage = (
  ctx: Context,
  name: string,
  action: string,
  fields: ReadonlyArray<PageField>,
  failure?: string,
): string =>
  layout(ctx, say(ctx, name), text(ctx, `${name}Text`) + alert(ctx, failure) + form(ctx, action, fields, failure))

export const passwordPage = (ctx: Context, user: Account, failure?: string): string => {
  const current = { name: 'current', type: 'password', autocomplete: 'current-password' } as const
  const password = { name: 'password', type: 'password', autocomplete: 'new-password' } as const
  return formPage(ctx, 'changePassword', '/account/password', [username(user), current, password], failure)
}

export const deletePage = (ctx: Context, { email }: Account): string =>
  layout(
    ctx,
    say(ctx, 'deleteAccount'),
    `<p class="text"><b>${escaped(email)}</b><br>${say(ctx, 'deleteText')}</p>
${button(ctx, '/account/delete', 'deleteForGood', 'danger')}<p class="foot"><a href="/account">${say(ctx, 'back')}</a></p>`,
  )

export const enrolPage = (ctx: Context, { uri, secret }: { readonly uri: string; readonly secret: string }): string => {
  const code = { name: 'appCode', type: 'text', autocomplete: 'one-time-code', inputmode: 'numeric' } as const
  const image = `data:image/svg+xml,${encodeURIComponent(renderSVG(uri))}`
  return layout(
    ctx,
    say(ctx, 'addApp'),
    `${text(ctx, 'scan')}<img class="qr" alt="${secret}" src="${image}">
<p><code>${secret.match(/.{1,4}/g)?.join(' ')}</code></p>${form(ctx, '/account/app/confirm', [code])}`,
  )
}

interface AccountData {
  readonly user: Account
  readonly sessions: ReadonlyArray<ListedSession>
  readonly passkeys: ReadonlyArray<PasskeyRecord>
  /** How many recovery codes are left. */
  readonly spare: number
  /** What the page tells password managers. */
  readonly signals: object
  readonly flash: string
}

export const accountPage = (ctx: Context, { user, sessions, passkeys, spare, signals, flash }: AccountData): string => {
  const format = new Intl.DateTimeFormat(languageOf(ctx), { dateStyle: 'medium', timeStyle: 'short' })
  const row = (title: string, about: string, ...actions: ReadonlyArray<string>): string =>
    `<li>${title || about ? `<div><b>${title}</b><small>${about}</small></div>` : ''}${actions.join('')}</li>`
  const section = (name: string, ...rows: ReadonlyArray<string>): string =>
    `<section><h2>${say(ctx, name)}</h2><ul>${rows.join('')}</ul></section>`
  const isWrong = ['wrong', 'throttled'].includes(flash)
  const message = say(ctx, flash) && `<p role="${isWrong ? 'alert' : 'status'}">${say(ctx, flash)}</p>`
  const app = user.totp
    ? [
        row(say(ctx, 'app'), say(ctx, 'on'), button(ctx, '/account/app/remove', 'remove')),
        row(say(ctx, 'recovery'), `${spare} ${say(ctx, 'left')}`, button(ctx, '/account/recovery', 'newCodes')),
      ]
    : [row(say(ctx, 'app'), say(ctx, 'off'), button(ctx, '/account/app', 'setUp'))]
  const keys = passkeys.map(({ id, createdAt, lastUsedAt }) => {
    const used = lastUsedAt ? `, ${say(ctx, 'lastUsed')} ${format.format(lastUsedAt)}` : ''
    const about = `${say(ctx, 'added')} ${format.format(createdAt)}${used}`
    return row('Passkey', about, button(ctx, `/account/passkeys/${encodeURIComponent(id)}`, 'remove'))
  })
  const add = `<button id="register" class="second" hidden>${say(ctx, 'addPasskey')}</button>`
  const devices = sessions.map(({ id, kind, current, label, signedInAt }) => {
    const name = label || say(ctx, kind === 'bearer' ? 'program' : 'browser')
    const about = `${format.format(signedInAt)}${current ? `, ${say(ctx, 'here')}` : ''}`
    return row(
      escaped(name),
      about,
      current ? button(ctx, '/sign-out', 'signOut') : button(ctx, `/account/sessions/${encodeURIComponent(id)}`, 'end'),
    )
  })
  const more = [button(ctx, '/account/everywhere', 'everywhere')]
  more.unshift(link(ctx, '/device', 'connect')) // devices
  return layout(
    ctx,
    say(ctx, 'account'),
    `${message}<div data-signals="${escaped(JSON.stringify(signals))}"></div>
${section('ways', row(say(ctx, 'email'), escaped(user.email), link(ctx, '/account/address', 'change')), row(say(ctx, 'password'), '••••••••', link(ctx, '/account/password', 'change')), ...app)}
${section('passkeys', ...keys, row('', say(ctx, 'noPasskeys'), add))}
${section('devices', ...devices, row('', '', ...more))}
<p class="foot">${user.role === 'admin' ? `<a href="/admin">${say(ctx, 'admin')}</a> · ` : ''}<a class="warning" href="/account/delete">${say(ctx, 'deleteAccount')}</a></p>`,
    'wide',
  )
}
