/** The pages, in English and German. `pageOf` makes those of signing in from the library's data. */
import type { Context } from 'koa'
import type { ListedSession, Page, PageField } from 'koa-with-auth/sessions'
import { renderSVG } from 'uqr'
import type { Account } from './accounts.js'

const texts: Record<string, readonly [en: string, de: string]> = {
  'code.answer': ['One more step', 'Noch ein Schritt'],
  'reset.begin': ['Sign up, or set a new password', 'Registrieren oder Passwort neu setzen'],
  'reset.answer': ['Check your mail', 'Sehen Sie in Ihre Post'],
  'reset.link': ['Set your password', 'Passwort setzen'],
  'reset.done': ['The password is set', 'Das Passwort ist gesetzt'],
  email: ['E-mail address', 'E-Mail-Adresse'],
  'current-password': ['Password', 'Passwort'],
  'new-password': ['New password, at least 10 characters', 'Neues Passwort, mindestens 10 Zeichen'],
  'one-time-code': ['Code of your app, or a recovery code', 'Code Ihrer App oder ein Wiederherstellungscode'],
  remember: ['Stay signed in for 30 days', '30 Tage angemeldet bleiben'],
  send: ['Continue', 'Weiter'],
  sent: ['We have sent you a link.', 'Wir haben Ihnen einen Link geschickt.'],
  signUp: ['New here, or password forgotten?', 'Neu hier oder Passwort vergessen?'],
  signIn: ['Sign in', 'Anmelden'],
  signOut: ['Sign out', 'Abmelden'],
  passkey: ['Sign in with a passkey', 'Mit Passkey anmelden'],
  addPasskey: ['Add a passkey', 'Passkey hinzufügen'],
  account: ['Your account', 'Ihr Konto'],
  admin: ['All accounts', 'Alle Konten'],
  welcome: ['Welcome', 'Willkommen'],
  devices: ['Where you are signed in', 'Wo Sie angemeldet sind'],
  here: ['this browser', 'dieser Browser'],
  end: ['End', 'Beenden'],
  addApp: ['Set up an authenticator app', 'Authenticator-App einrichten'],
  removeApp: ['Remove the authenticator app', 'Authenticator-App entfernen'],
  scan: ['Scan this with your app, then type its code.', 'Scannen Sie das mit Ihrer App und geben Sie deren Code ein.'],
  recovery: ['Recovery codes', 'Wiederherstellungscodes'],
  recoveryText: ['Keep them. Each signs you in once, without the app.', 'Bewahren Sie sie auf. Jeder gilt einmal.'],
  removed: ['The app is removed.', 'Die App ist entfernt.'],
  ended: ['That device is signed out.', 'Dieses Gerät ist abgemeldet.'],
  wrong: ['That was not right. Try again.', 'Das stimmte nicht. Versuchen Sie es noch einmal.'],
  weak: ['Choose a longer password.', 'Wählen Sie ein längeres Passwort.'],
  throttled: ['Too many attempts. Try again later.', 'Zu viele Versuche. Versuchen Sie es später noch einmal.'],
  failed: ['That did not work', 'Das ging nicht'],
  other: ['Begin again.', 'Beginnen Sie von vorn.'],
  insufficient: ['This page is not for you.', 'Diese Seite ist nicht für Sie.'],
  notFound: ['There is no such page.', 'Diese Seite gibt es nicht.'],
  unavailable: ['Try again in a few seconds.', 'Versuchen Sie es in einigen Sekunden noch einmal.'],
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

const languageOf = (ctx: Context): 'en' | 'de' => (ctx.acceptsLanguages('en', 'de') === 'de' ? 'de' : 'en')

/** The first of these texts that exists, in the language of the request. */
const say = (ctx: Context, ...names: ReadonlyArray<string>): string => {
  const found = names.map((name) => texts[name]).find((text) => text !== undefined)
  return escaped(found?.[languageOf(ctx) === 'de' ? 1 : 0] ?? '')
}

const layout = (ctx: Context, name: string, main: string): string => {
  const title = say(ctx, name, name.split('.')[1] ?? '', 'signIn')
  ctx.type = 'html'
  ctx.set('Content-Security-Policy', "default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'")
  ctx.vary('Accept-Language')
  return `<!doctype html><html lang="${languageOf(ctx)}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css"><script type="module" src="/passkeys.js"></script></head>
<body><header><a href="/">My site</a><a href="/account">${say(ctx, 'account')}</a></header>
<main><h1>${title}</h1>${main}</main></body></html>`
}

const button = (ctx: Context, action: string, name: string): string =>
  `<form method="post" action="${escaped(action)}"><button class="second">${say(ctx, name)}</button></form>`

const input = (ctx: Context, { name, type, autocomplete, value, readonly }: PageField, more = ''): string => {
  const given = value === undefined ? '' : type === 'checkbox' ? 'checked' : `value="${escaped(value)}"`
  const field = `<input name="${name}" type="${type}" autocomplete="${autocomplete}" ${given} ${readonly ? 'readonly' : type === 'checkbox' ? '' : `required ${more}`}>`
  if (type === 'hidden') return field
  const label = say(ctx, autocomplete, name)
  return type === 'checkbox' ? `<label class="choice">${field} ${label}</label>` : `<label>${label}${field}</label>`
}

export const pageOf = (page: Page, ctx: Context): string => {
  const { kind, step, handle, failure, fields, action } = page
  const isLink = fields.some(({ name }) => name === 'key')
  // a screen reader says it at the field, too
  const described = failure && 'aria-describedby="failure" aria-invalid="true"'
  const alert = failure ? `<p role="alert" id="failure">${say(ctx, failure.reason, 'other')}</p>` : ''
  const hidden = handle === undefined ? '' : `<input type="hidden" name="handle" value="${escaped(handle)}">`
  const hasForm = step !== 'done' && (fields.length > 0 || handle !== undefined)
  const form = `<form method="post" action="${action}">${hidden}${fields.map((one) => input(ctx, one, described)).join('')}<button>${say(ctx, 'send')}</button></form>`
  const other = `<button id="passkey" class="second" hidden>${say(ctx, 'passkey')}</button><p><a href="/sign-up">${say(ctx, 'signUp')}</a></p>`
  const rest = hasForm
    ? form
    : `<p>${step === 'answer' ? say(ctx, 'sent') : ''}</p><p><a href="/sign-in">${say(ctx, 'signIn')}</a></p>`
  return layout(
    ctx,
    `${kind}.${isLink && step === 'answer' ? 'link' : step}`,
    alert + rest + (kind === 'password' ? other : ''),
  )
}

export const errorPage = (ctx: Context, reason: string): string =>
  layout(ctx, 'failed', `<p role="alert">${say(ctx, reason, 'other')}</p>`)

export const homePage = (ctx: Context, user: Account | undefined): string =>
  layout(
    ctx,
    'welcome',
    user ? `<p>${escaped(user.email)}</p>` : `<p><a class="button" href="/sign-in">${say(ctx, 'signIn')}</a></p>`,
  )

/** A list, with a sentence above it. */
export const listPage = (ctx: Context, name: 'admin' | 'recovery', items: ReadonlyArray<string>): string =>
  layout(
    ctx,
    name,
    `<p>${say(ctx, `${name}Text`)}</p><ul>${items.map((one) => `<li>${escaped(one)}</li>`).join('')}</ul>`,
  )

export const accountPage = (ctx: Context, user: Account, list: ReadonlyArray<ListedSession>, flash: string): string => {
  const time = new Intl.DateTimeFormat(languageOf(ctx), { dateStyle: 'medium', timeStyle: 'short' })
  const device = ({ id, current, label = '', signedInAt }: ListedSession): string =>
    `<li><div>${escaped(label)}<small>${time.format(signedInAt)}${current ? `, ${say(ctx, 'here')}` : ''}</small></div>
${current ? '' : button(ctx, `/account/sessions/${encodeURIComponent(id)}`, 'end')}</li>`
  return layout(
    ctx,
    'account',
    `${say(ctx, flash) && `<p role="status">${say(ctx, flash)}</p>`}<p>${escaped(user.email)}</p>
${user.role === 'admin' ? `<p><a href="/admin">${say(ctx, 'admin')}</a></p>` : ''}
<section>${user.totp ? button(ctx, '/account/app/remove', 'removeApp') : button(ctx, '/account/app', 'addApp')}
<button id="register" class="second" hidden>${say(ctx, 'addPasskey')}</button></section>
<section><h2>${say(ctx, 'devices')}</h2><ul>${list.map(device).join('')}</ul></section>${button(ctx, '/sign-out', 'signOut')}`,
  )
}

export const enrolPage = (ctx: Context, { uri, secret }: { readonly uri: string; readonly secret: string }): string =>
  layout(
    ctx,
    'addApp',
    `<p>${say(ctx, 'scan')}</p><img class="code" alt="${secret}" src="data:image/svg+xml,${encodeURIComponent(renderSVG(uri))}">
<p><code>${secret.match(/.{1,4}/g)?.join(' ')}</code></p><form method="post" action="/account/app/confirm">
${input(ctx, { name: 'code', type: 'text', autocomplete: 'one-time-code' })}<button>${say(ctx, 'send')}</button></form>`,
  )

export const style = `:root{color-scheme:light dark;--main:light-dark(#1d4ed8,#93b4ff);--line:light-dark(#d5d9e0,#3a3f47)}
*{box-sizing:border-box}body{margin:0;font:1rem/1.5 system-ui,sans-serif;background:light-dark(#f5f6f8,#15171b);color:light-dark(#1c1f24,#e7e9ec)}
header,main{width:min(34rem,100% - 2rem);margin:auto}header{display:flex;justify-content:space-between;padding:1rem 0;font-weight:600}
main{padding:1.5rem;border-radius:.75rem;background:light-dark(#fff,#1f2227);box-shadow:0 1px 3px rgb(0 0 0/.15)}
h1{margin:0 0 1rem;font-size:1.6rem;line-height:1.2;overflow-wrap:anywhere}h2{font-size:1.1rem}a{color:var(--main)}header a{text-decoration:none}
label{display:block;margin:0 0 1rem;font-weight:600}input{display:block;width:100%;padding:.6rem;margin-top:.25rem;font:inherit;color:inherit;background:0 0;border:1px solid light-dark(#8a909a,#7d838c);border-radius:.4rem}
.choice{font-weight:400}.choice input{display:inline;width:auto;margin:0 .4rem 0 0}form,button{width:100%}li form{width:auto}
button,.button{display:inline-block;padding:.6rem 1rem;font:inherit;font-weight:600;border:1px solid var(--main);border-radius:.4rem;cursor:pointer;text-decoration:none;color:light-dark(#fff,#10204a);background:var(--main)}
.second{margin-top:.75rem;color:var(--main);background:0 0}ul{padding:0;list-style:none}li{display:flex;gap:1rem;align-items:center;justify-content:space-between;padding:.6rem 0;border-top:1px solid var(--line);overflow-wrap:anywhere}
small{display:block;opacity:.75}[role=alert]{color:light-dark(#b3261e,#ffb4ab);font-weight:600}[role=status]{padding:.6rem;border-left:4px solid var(--main)}
.code{width:12rem;max-width:100%;background:#fff}[hidden]{display:none}:focus-visible{outline:3px solid var(--main);outline-offset:2px}`

/** The script of the pages: passkeys need one. */
export const script = `const post = async (path, body = {}) => {
  const answer = await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(answer.status)
  return answer.json()
}
const on = (id, run) => {
  const button = document.getElementById(id)
  if (button === null || !window.PublicKeyCredential?.parseCreationOptionsFromJSON) return
  button.hidden = false
  button.addEventListener('click', () => run().then((path) => location.assign(path), () => location.assign('/account')))
}
on('passkey', async () => {
  const returnTo = document.querySelector('[name=returnTo]')?.value
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await post('/passkey/options', { returnTo }))
  return (await post('/passkey', (await navigator.credentials.get({ publicKey })).toJSON())).returnTo
})
on('register', async () => {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await post('/account/passkey/options'))
  await post('/account/passkey', (await navigator.credentials.create({ publicKey })).toJSON())
  return '/account'
})`
