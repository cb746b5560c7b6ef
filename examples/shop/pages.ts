// The parts of the pages. They work without scripts; /passkeys.js adds passkeys. Nothing is loaded from elsewhere.
import { existsSync, readFileSync } from 'node:fs'
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

export const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

/** How a page is laid out. */
export interface Layout {
  /** Who is signed in. */
  readonly visitor?: Account | undefined
  /** A page with columns, and not one form. */
  readonly isWide?: boolean
  /** What the page says above, if it is not its title. */
  readonly heading?: string
  /** A script of `public/`. */
  readonly script?: 'passkeys' | 'live'
}

const menu = ({ username }: Account): string =>
  `<nav aria-label="Shop"><a href="/orders">Orders</a><a href="/devices">Devices</a><a href="/docs">API</a><span class="who">${escaped(username)}</span></nav>`

/** A page. */
export const layout = (
  title: string,
  main: string,
  { visitor, isWide = false, heading = title, script }: Layout = {},
): string =>
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title === 'Shop' ? title : `${title} · Shop`}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/shop.css">
${script === undefined ? '' : `<script type="module" src="/${script}.js"></script>\n`}</head>
<body>
<header><a class="brand" href="/">Shop</a>${visitor === undefined ? '' : menu(visitor)}</header>
<main${isWide ? ' class="wide"' : ''}>
<h1>${heading}</h1>
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
  ended: 'This browser was signed out on another device.',
  insufficient: 'Prove again that it is you: sign in once more.',
  short: 'This password is too short. Choose one of at least 15 characters, such as four words.',
  long: 'This password is too long. Choose one of at most 128 characters.',
  common: 'Many people have this password, so it is tried first. Choose another one.',
  context: 'This password contains your name, your address or the word “shop”. Choose another one.',
  breached: 'This password has leaked from some site, so it is tried first. Choose another one.',
}

const noticesOf = {
  reset: 'If the address has an account, a mail with a link is on its way.',
  password: 'The new password is set. Sign in with it.',
  verify: 'A mail with a link is on its way.',
  verified: 'The address is verified.',
  proved: 'Thank you. For a few minutes you are not asked again.',
  removed: 'The authenticator app is removed. Signing in asks for no code.',
  linked: 'From now on you can sign in with your provider, too.',
  ended: 'That device is signed out.',
  signedOut: 'You are signed out.',
  signedOutEverywhere: 'You are signed out on all devices.',
  signedOutThere: 'You are signed out, here and at the provider.',
} as const

/** The name of what a page says after a success. */
export type Notice = keyof typeof noticesOf

// Object.hasOwn: the names come from the query and from a cookie
const sentence = (role: string, of: Readonly<Record<string, string>>, name: string, otherwise: string): string => {
  const text = Object.hasOwn(of, name) ? of[name] : name === '' ? '' : otherwise
  return text === '' ? '' : `<p role="${role}">${text}</p>`
}

/** What went wrong, by the name of the reason. */
export const alert = (failed: string): string => sentence('alert', failuresOf, failed, 'That did not work. Try again.')

/** What was done. */
export const notice = (done: string): string => sentence('status', noticesOf, done, '')

/** A form that is posted. */
export const post = (action: string, inner: string): string => `<form method="post" action="${action}">${inner}</form>`

/** A field that must be filled in. */
export const field = (label: string, attributes: string): string =>
  `<label>${label} <input ${attributes} required></label>`

export const hidden = (name: string, value: string): string =>
  `<input type="hidden" name="${name}" value="${escaped(value)}">`

/** A time, in milliseconds. */
export const timeOf = (ms: number, isExact = false): string => {
  const time = new Date(ms).toISOString()
  return `<time datetime="${time}">${time.slice(0, isExact ? 19 : 16).replace('T', ' ')} UTC</time>`
}

/** Says one sentence. */
export const messagePage = (message: string): string =>
  layout('That did not work', `<p role="alert">${message}</p><p><a href="/">Back to the shop</a></p>`)
