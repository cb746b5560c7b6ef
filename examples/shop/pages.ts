// The pages. They work without scripts; /passkeys.js adds passkeys. Nothing is loaded from elsewhere.
import { existsSync, readFileSync } from 'node:fs'
import type { ListedSession, Page } from 'koa-with-auth/sessions'
import type { Account } from './accounts.js'

/** The fields of every page. */
export const pageFields = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
}

/** A file beside this one, also where only the TypeScript was compiled to dist. */
export const assetOf = (name: string): string => {
  const places = [`./public/${name}`, `../../../examples/shop/public/${name}`].map(
    (place) => new URL(place, import.meta.url),
  )
  return readFileSync(places.find((place) => existsSync(place)) ?? name, 'utf8')
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

const layout = (title: string, main: string, script = ''): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title === 'Shop' ? title : `${title} · Shop`}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/shop.css">
${script}</head>
<body>
<header><a href="/">Shop</a></header>
<main>
<h1>${title}</h1>
${main}
</main>
</body>
</html>
`

const failuresOf: Readonly<Record<string, string>> = {
  address: 'That is no address of a mail.',
  malformed: 'Something was missing. Fill the fields in, and try again.',
  notFound: 'There is no such page.',
  lastWay: 'That is your last way to sign in.',
  wrong: 'That was not right. Check what you typed, and try again.',
  throttled: 'That was wrong too often. Try again in a quarter of an hour.',
  late: 'That took too long. Begin again.',
  unknown: 'This link or sign-in was used already, or began in another browser. Begin again.',
  declined: 'You cancelled at the provider.',
  provider: 'The provider’s answer was not good. Try again.',
  anotherUser: 'That belongs to another account.',
  noAccount: 'There is no account for that.',
  absent: 'Sign in first.',
  insufficient: 'Prove again that it is you: sign in once more.',
}

const noticesOf: Readonly<Record<string, string>> = {
  reset: 'If the address has an account, a mail with a link is on its way.',
  password: 'The new password is set. Sign in with it.',
  verify: 'A mail with a link is on its way.',
  verified: 'The address is verified.',
  proved: 'Thank you. For a few minutes you are not asked again.',
}

// Object.hasOwn: the names come from the query
const sentence = (role: string, of: Readonly<Record<string, string>>, name: string, otherwise: string): string => {
  const text = Object.hasOwn(of, name) ? of[name] : name === '' ? '' : otherwise
  return text === '' ? '' : `<p role="${role}">${text}</p>`
}
const alert = (failed: string): string => sentence('alert', failuresOf, failed, 'That did not work. Try again.')
const notice = (done: string): string => sentence('status', noticesOf, done, '')

const post = (action: string, inner: string): string => `<form method="post" action="${action}">${inner}</form>`

const field = (label: string, attributes: string): string => `<label>${label} <input ${attributes} required></label>`

const hidden = (name: string, value: string): string => `<input type="hidden" name="${name}" value="${escaped(value)}">`

export interface WaysIn {
  readonly failed: string
  readonly done: string
  readonly returnTo: string
  readonly hasSecond: boolean
  readonly hasPlain: boolean
}

/** Every way to sign in. */
export const signInPage = ({ failed, done, returnTo, hasSecond, hasPlain }: WaysIn): string => {
  const to = hidden('returnTo', returnTo)
  const query = `?returnTo=${encodeURIComponent(returnTo)}`
  const link = (path: string, name: string) =>
    `<a class="button second" href="${path}${query}">Continue with ${name}</a>`
  return layout(
    'Sign in',
    `${alert(failed)}${notice(done)}
<section>${post(
      '/sign-in/password',
      `${to}${field('Name', 'name="username" autocomplete="username webauthn" autocapitalize="none" spellcheck="false" autofocus')}
${field('Password', 'name="password" type="password" autocomplete="current-password"')}
<button>Sign in</button>`,
    )}
<button id="passkey" type="button" class="second" data-return-to="${escaped(returnTo)}" hidden>Sign in with a passkey</button>
<noscript><p>Signing in with a passkey needs scripts.</p></noscript>
<p id="passkey-failed" role="status"></p></section>
<section>${link('/sign-in/provider', 'your provider')}
${hasSecond ? link('/sign-in/b', 'the other provider') : ''}
${hasPlain ? link('/sign-in/plain', 'the plain provider') : ''}</section>
<section>${post(
      '/sign-in/mail',
      `${to}${field('E-mail address', 'name="address" type="email" autocomplete="email"')}
<button class="second">Send me a code</button>`,
    )}</section>
<details><summary>Forgot the password?</summary>${post(
      '/reset',
      `${field('E-mail address', 'name="address" type="email" autocomplete="email"')}<button class="second">Set a new password</button>`,
    )}</details>`,
    '<script type="module" src="/passkeys.js"></script>\n',
  )
}

interface FormTexts {
  readonly title: string
  readonly text?: string
  readonly label?: string
  readonly button: string
}

const texts: Readonly<Record<string, FormTexts>> = {
  code: { title: 'One more step', label: 'Code of your authenticator app, or a recovery code', button: 'Sign in' },
  mail: {
    title: 'Check your mail',
    text: 'If the address has an account, a mail is on its way. Type its code here, or open its link in this browser.',
    label: 'Code of 8 digits',
    button: 'Sign in',
  },
  'mail link': {
    title: 'Sign in to the shop',
    text: 'This signs you in if this is the browser where you asked for the mail.',
    button: 'Sign in',
  },
  'reset link': {
    title: 'A new password',
    text: 'It signs you out everywhere. Then sign in with it.',
    label: 'New password',
    button: 'Save',
  },
  'verify link': { title: 'Your address', text: 'It is yours if this mail came to you.', button: 'Verify it' },
}

/** A form of the library's data: for a code, and what the link of a mail opens. */
export const ceremonyPage = ({ kind, handle = '', fields, action }: Page, failed = ''): string => {
  const name = fields.some((one) => one.name === 'key') ? `${kind} link` : kind
  const { title, text = '', label = '', button } = texts[name] ?? { title: 'Sign in', button: 'Continue' }
  const inputs = [hidden('handle', handle)]
  for (const { name: sent, type, autocomplete, value = '', readonly } of fields) {
    const input = `name="${sent}" type="${type}" autocomplete="${autocomplete}" autocapitalize="none" spellcheck="false"`
    if (type === 'hidden') inputs.push(hidden(sent, value))
    // the account that a password manager saves the new password for
    else if (readonly) inputs.push(field('E-mail address', `${input} value="${escaped(value)}" readonly`))
    else inputs.push(field(label, `${input} autofocus`))
  }
  return layout(
    title,
    `${alert(failed)}<p>${text}</p>${post(action, `${inputs.join('')}<button>${button}</button>`)}
<p><a href="/sign-in">Begin again</a></p>`,
  )
}

/** Says one sentence. */
export const messagePage = (message: string): string =>
  layout('That did not work', `<p role="alert">${message}</p><p><a href="/">Back to the shop</a></p>`)

/** The first page: the basket, and the account of whoever is signed in. */
export const homePage = (visitor: Account | undefined, items: ReadonlyArray<string>, done = ''): string => {
  const basket = `<section><h2>Basket</h2>
${items.length === 0 ? '<p>It is empty.</p>' : `<ul>${items.map((item) => `<li>${escaped(item)}</li>`).join('')}</ul>`}
${post('/basket', `${field('Item', 'name="item" maxlength="200" autocomplete="off"')}<button>Put it in</button>`)}</section>`
  if (visitor === undefined) {
    return layout('Shop', `${notice(done)}${basket}<p><a class="button" href="/sign-in">Sign in</a></p>`)
  }
  const { username, address, verified, hasFactor } = visitor
  const verify = post('/verify', '<button class="second">Verify the address</button>')
  return layout(
    'Shop',
    `${notice(done)}<p>You are signed in as <b>${escaped(username)}</b>.</p>
${basket}
${address === undefined ? '' : `<section><h2>E-mail address</h2><p>${escaped(address)}${verified ? ', verified' : ''}</p>${verified ? '' : verify}</section>`}
<section><h2>Ways to sign in</h2>
<button id="register" type="button" class="second" hidden>Add a passkey</button>
<p id="passkey-failed" role="status"></p>
${post('/accounts/provider', '<button class="second">Link your provider</button>')}
${
  hasFactor
    ? `<p>Signing in asks for a code of your authenticator app.</p>
${post('/factors/recovery', '<button class="second">New recovery codes</button>')}
${post('/factors/totp/remove', '<button class="second">Remove the authenticator app</button>')}`
    : post('/factors/totp', '<button class="second">Set up an authenticator app</button>')
}</section>
<section><h2>A fresh proof</h2>
${post('/prove/password', `${field('Password', 'name="password" type="password" autocomplete="current-password"')}<button class="second">Prove again that it is you</button>`)}</section>
<section><h2>Sessions</h2>
<p><a href="/sessions">Where you are signed in</a></p>
${post('/sign-out', '<button>Sign out</button>')}
${post('/sign-out/everywhere', '<button class="second">Sign out everywhere</button>')}
${post('/sign-out/provider', '<button class="second">Sign out at the provider, too</button>')}</section>
<p><a href="/docs">All operations</a></p>`,
    '<script type="module" src="/passkeys.js"></script>\n',
  )
}

const appCode = 'name="code" autocomplete="one-time-code" inputmode="numeric" autofocus'

/** Shows a secret for an authenticator app, and asks for its first code. After a wrong one, the secret is not shown again. */
export const enrolPage = (made: { readonly secret: string; readonly uri: string } | undefined, failed = ''): string =>
  layout(
    'Set up an authenticator app',
    `${alert(failed)}${
      made === undefined
        ? '<p>Type the next code that the app shows.</p>'
        : `<p>Add this secret to your app. Then type the code that it shows.</p>
<p><code>${(made.secret.match(/.{1,4}/g) ?? []).join(' ')}</code></p>
<p><a href="${escaped(made.uri)}">Open it in an app on this device</a></p>`
    }
<section>${post('/factors/totp/confirm', `${field('Code of your authenticator app', appCode)}<button>Confirm</button>`)}
${made === undefined ? post('/factors/totp', '<button class="second">Begin again with another secret</button>') : ''}</section>
<p><a href="/">Back to the shop</a></p>`,
  )

/** Shows recovery codes, once. */
export const recoveryPage = (codes: ReadonlyArray<string>): string =>
  layout(
    'Recovery codes',
    `<p role="status">Signing in asks for a code of your authenticator app now. If the app is not at hand, one of these codes signs you in, once.</p>
<ul>${codes.map((code) => `<li><code>${escaped(code)}</code></li>`).join('')}</ul>
<p>Keep them. They are not shown again.</p><p><a class="button" href="/">Back to the shop</a></p>`,
  )

const timeOf = (ms: number): string => {
  const time = new Date(ms).toISOString()
  return `<time datetime="${time}">${time.slice(0, 16).replace('T', ' ')} UTC</time>`
}

/** The sessions of a user, each with a button that ends it. */
export const sessionsPage = (sessions: ReadonlyArray<ListedSession>): string => {
  const one = ({ id, current, signedInAt, lastSeenAt, methods }: ListedSession): string =>
    `<section><h2>${current ? 'This browser' : `Signed in ${timeOf(signedInAt)}`}</h2>
<p>By ${escaped(methods.join(' and '))}${current ? `, ${timeOf(signedInAt)}` : ''}. Last seen ${timeOf(lastSeenAt)}.</p>
${current ? post('/sign-out', '<button class="second">Sign out</button>') : post(`/sessions/${encodeURIComponent(id)}`, '<button class="second">End it</button>')}</section>`
  return layout('Where you are signed in', `${sessions.map(one).join('\n')}\n<p><a href="/">Back to the shop</a></p>`)
}
