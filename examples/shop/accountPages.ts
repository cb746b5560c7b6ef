// The pages of whoever is signed in: the shop with the account, devices, orders, the authenticator app.
import type { ListedSession } from 'koa-with-auth/sessions'
import type { Account } from './accounts.js'
import type { Orders } from './orders.js'
import { whoCan } from './signInPages.js'
import { alert, escaped, field, hidden, layout, notice, post, timeOf } from './pages.js'

// Each picture is a path in a square of 64
const goods = [
  [
    'Tea',
    'Green, loose, 100 g',
    'M12 26h34v12a14 14 0 0 1-14 14h-6a14 14 0 0 1-14-14zM46 30h3a6 6 0 0 1 0 13h-4M22 19c-3-4 3-6 0-10M34 19c-3-4 3-6 0-10',
  ],
  [
    'Bread',
    'Rye, baked today',
    'M14 30a9 9 0 0 1 4-17h28a9 9 0 0 1 4 17v18a4 4 0 0 1-4 4H18a4 4 0 0 1-4-4zM26 22l-4 8M36 22l-4 8M46 22l-4 8',
  ],
  [
    'Honey',
    'From the roof',
    'M18 12h28v7H18zM20 19c-6 4-7 8-7 14v13a6 6 0 0 0 6 6h26a6 6 0 0 0 6-6V33c0-6-1-10-7-14M13 34c8 6 13-4 20 1s11 3 18-2',
  ],
] as const

const pictureOf = (path: string): string =>
  `<svg viewBox="0 0 64 64" aria-hidden="true"><path d="${path}" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`

const shelf = `<section class="goods" aria-label="Goods">${goods
  .map(
    ([name, text, picture]) =>
      `<article><span class="picture">${pictureOf(picture)}</span><h3>${name}</h3><p>${text}</p>
${post('/basket', `${hidden('item', name.toLowerCase())}<button class="second" aria-label="Put ${name.toLowerCase()} into the basket">Put it in</button>`)}</article>`,
  )
  .join('\n')}</section>`

const basketOf = (items: ReadonlyArray<string>): string => `<section class="card"><h2>Basket</h2>
${items.length === 0 ? '<p>It is empty. It needs no account, and a sign-in keeps it.</p>' : `<ul>${items.map((item) => `<li>${escaped(item)}</li>`).join('')}</ul>`}
${post('/basket', `${field('Something else', 'name="item" maxlength="200" autocomplete="off"')}<button class="second">Add it</button>`)}</section>`

const strangersPage = (items: ReadonlyArray<string>, done: string, mails: string): string =>
  layout(
    'Shop',
    `${notice(done)}<div class="hero"><div><p>A small shop with every way to sign in: password, passkey, mail, provider, and a second factor.</p>
<p><a class="button" href="/sign-in">Sign in</a></p>
<p><a href="/docs">Every operation, to try</a></p></div>
${whoCan(mails)}</div>
${shelf}
<div class="cards">${basketOf(items)}</div>`,
    { isWide: true, heading: 'Tea, bread and honey' },
  )

const addressOf = ({ address, verified }: Account): string => {
  if (address === undefined) return ''
  const verify = post('/verify', '<button class="second">Verify the address</button>')
  const state = verified ? '<span class="badge good">verified</span>' : '<span class="badge">not verified</span>'
  return `<section class="card"><h2>E-mail address</h2><p>${escaped(address)} ${state}</p>${verified ? '' : verify}</section>`
}

const waysOf = ({ hasFactor }: Account): string => `<section class="card"><h2>Ways to sign in</h2>
<button id="register" type="button" class="second" hidden>Add a passkey</button>
<p id="passkey-failed" role="status"></p>
${post('/accounts/provider', '<button class="second">Link your provider</button>')}
${
  hasFactor
    ? `<p>Signing in asks for a code of your authenticator app.</p>
${post('/factors/recovery', '<button class="second">New recovery codes</button>')}
${post('/factors/totp/remove', '<button class="second">Remove the authenticator app</button>')}`
    : post('/factors/totp', '<button class="second">Set up an authenticator app</button>')
}</section>`

/** The first page: goods and the basket, and the account of whoever is signed in, or who can sign in. */
export const homePage = (
  visitor: Account | undefined,
  items: ReadonlyArray<string>,
  done: string,
  mails: string,
): string => {
  if (visitor === undefined) return strangersPage(items, done, mails)
  return layout(
    'Shop',
    `${notice(done)}<p class="lead">You are signed in as <b>${escaped(visitor.username)}</b>.</p>
${shelf}
<div class="cards">
${basketOf(items)}
${addressOf(visitor)}
${waysOf(visitor)}
<section class="card"><h2>A fresh proof</h2><p>Changes of your account ask for one that is at most some minutes old.</p>
${post('/prove/password', `${field('Password', 'name="password" type="password" autocomplete="current-password"')}<button class="second">Prove again that it is you</button>`)}</section>
<section class="card"><h2>Sessions</h2>
<p><a href="/devices">Where you are signed in</a></p>
${post('/sign-out', '<button>Sign out</button>')}
${post('/sign-out/everywhere', '<button class="second">Sign out everywhere</button>')}
${post('/sign-out/provider', '<button class="second">Sign out at the provider, too</button>')}</section>
</div>`,
    { visitor, isWide: true, heading: 'Tea, bread and honey', script: 'passkeys' },
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
<ul class="codes">${codes.map((code) => `<li><code>${escaped(code)}</code></li>`).join('')}</ul>
<p>Keep them. They are not shown again.</p><p><a class="button" href="/">Back to the shop</a></p>`,
  )

/** Where a user is signed in, by the cookie of a browser and by the token of a program, each with a button that ends it. */
export const devicesPage = (
  visitor: Account,
  list: ReadonlyArray<ListedSession>,
  origin: string,
  done: string,
): string => {
  const one = ({ id, current, kind, label, signedInAt, lastSeenAt, methods }: ListedSession): string => {
    const end = post(`/sessions/${encodeURIComponent(id)}`, '<button class="second">End it</button>')
    return `<section class="card"><h2>${current ? 'This browser' : escaped(label ?? (kind === 'bearer' ? 'A program' : 'A browser'))}</h2>
<p><span class="badge">${kind === 'bearer' ? 'token' : 'cookie'}</span> ${current && label !== undefined ? `${escaped(label)}. ` : ''}Signed in by ${escaped(methods.join(' and '))}, ${timeOf(signedInAt)}. Last seen ${timeOf(lastSeenAt)}.</p>
${current ? post('/sign-out', '<button class="second">Sign out</button>') : end}</section>`
  }
  const command = `curl -d 'username=${visitor.username}' -d 'password=...' ${origin}/device/sign-in`
  return layout(
    'Your devices',
    `${notice(done)}<p class="lead">A browser is signed in by a cookie, an app or a command line by a token. Both are sessions, and end here.</p>
<div class="cards">${list.map(one).join('\n')}</div>
<h2>Sign a program in</h2>
<pre><code>${escaped(command)}</code></pre>
<p>The answer has the token; each request sends it as <code>Authorization: Bearer ...</code></p>
${post('/sign-out/everywhere', '<button class="second narrow">Sign out everywhere</button>')}
<p><a href="/">Back to the shop</a></p>`,
    { visitor, isWide: true, script: 'live' },
  )
}

/** What the API of the provider answered. */
export const ordersPage = (visitor: Account, { orders, token }: Orders, permissions: string | undefined): string => {
  const rows = orders.map(({ item, date }) => `<tr><td>${escaped(item)}</td><td>${escaped(date)}</td></tr>`).join('')
  const made =
    token === undefined
      ? ''
      : `<p>The token of this request was made ${timeOf(token.issuedAt, true)}, and is good until ${timeOf(token.expiresAt, true)}. The shop asks for another one when it is needed; no token reaches the browser.</p>`
  return layout(
    'Your orders',
    `<p class="lead">The shop asked the provider’s API, with the token that the provider gave when you signed in.</p>
<table><thead><tr><th>Item</th><th>Date</th></tr></thead><tbody>${rows}</tbody></table>
${made}${permissions === undefined ? '' : `<p><a href="${escaped(permissions)}">Take the permission back at the provider</a></p>`}
<p><a href="/">Back to the shop</a></p>`,
    { visitor },
  )
}

/** Asks for the permission of the provider: there is none, or it was taken back. */
export const permissionPage = (visitor: Account, isLinked: boolean): string => {
  const to = '/orders'
  const ask = isLinked
    ? `<p><a class="button" href="/sign-in/provider?returnTo=${encodeURIComponent(to)}">Sign in with your provider again</a></p>`
    : post('/accounts/provider', `${hidden('returnTo', to)}<button>Link your provider</button>`)
  return layout(
    'Your orders',
    `<p role="alert">The shop has no permission to see your orders. The provider gives it when you sign in there, and you can take it back.</p>
${ask}<p><a href="/">Back to the shop</a></p>`,
    { visitor },
  )
}
