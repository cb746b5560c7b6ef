/**
 * The cookie of the sessions: its name and its domain, how the id is sealed in it, and what must not change how long it lasts.
 *
 * Koa's cookie library writes it. That library forgets the domain when it deletes a signature that is wrong. So the domain is added when
 * the head is written (`commit.ts`).
 */
import { domainToUnicode } from 'node:url'
import type { SetOption } from 'cookies'
import * as O from 'fp-ts/lib/Option.js'
import type Koa from 'koa'
import type { Context } from 'koa'
import * as is from '../core/checks.js'
import { fromNow, memory } from '../core/memory.js'
import { fromCookie, type Sent } from '../core/RequestFields.js'
import { defaults } from '../core/Settings.js'
import { derivedOnce, isSigner, keysFix, signedBy } from '../crypto/appKeys.js'
import { constantTimeEqual, derive, hiding, mac } from '../crypto/secrets.js'
import { additionOf } from '../koa/settings.js'

export interface SessionCookie {
  readonly name: string
  /** The domain that it is sent to, with all subdomains. Left out: only the host that set it. */
  readonly domain: string | undefined
}

// RFC 1123 §2.1: letters, digits and hyphens
const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const hostName = new RegExp(`^(?:(?:${label}\\.)+${label}|localhost)$`, 'i')

// The URL parser finds numbers that are IPv4 addresses. An A-label that is none has no Unicode form.
const isHostName = (value: unknown): boolean =>
  typeof value === 'string' &&
  value.length <= 253 &&
  hostName.test(value) &&
  URL.canParse(`http://${value}`) &&
  !/(?:^|\.)xn--/i.test(domainToUnicode(value)) &&
  !/^[\d.]+$/.test(new URL(`http://${value}`).hostname)

/** A host name with a dot, or `localhost`. Browsers ignore the cookie of a top level such as `example`. */
export const domainName = is.that(
  isHostName,
  'must be a host name without scheme, port, path or leading dot, such as "shop.example"; an IP address has no subdomains',
)

/** Settles name and domain. Throws a TypeError for a name that browsers would not take. */
export const sessionCookieOf = (
  cookieName: string | undefined,
  domain: string | undefined,
  https: boolean | undefined,
): SessionCookie => {
  const prefix = https !== true ? '' : domain === undefined ? '__Host-' : '__Secure-'
  const name = cookieName ?? `${prefix}session`
  // RFC 6265bis §4.1.3.2: such a cookie has no domain
  if (domain !== undefined && /^__Host-/i.test(name)) {
    throw new TypeError(
      `sessions(app, { cookieName, domain }): browsers take no ${name} with a domain; write __Secure-session, or leave cookieName out`,
    )
  }
  if (/^__(?:Host|Secure)-/i.test(name) && https !== true) {
    throw new TypeError(`sessions(app, { cookieName }): browsers take ${name} only over https; set https: true`)
  }
  return { name, domain }
}

/** What a request has as the cookie. */
export interface CookieRead {
  /** What the client sent, genuine or not. */
  readonly sent: O.Option<Sent>
  /** The id of a session, which this application gave out; `''` without one. */
  readonly id: string
  /** Who was signed in when it was given out, encrypted; `''` if it does not say. */
  readonly hidden: string
  /** What sealed it. */
  readonly sealing: ReturnType<typeof sealingBy> | undefined
  /** Whether it is to be given out anew: it is of an older key, or of an older release. */
  readonly isOld: boolean
}

/** Puts ids into the cookie, and reads them. */
export interface SealedCookie {
  readonly read: (ctx: Context) => CookieRead
  /** Who was signed in when it was given out. The record in the session decides who is. */
  readonly userOf: (read: CookieRead) => string | undefined
  /** Sends an id. Throws a TypeError without a signing key. */
  readonly give: (ctx: Context, id: string, user: string | undefined, options: SetOption) => void
  /** Deletes the signature that an older release sent. */
  readonly dropSignature: (ctx: Context, options: SetOption) => void
}

const noCookie: CookieRead = { sent: O.none, id: '', hidden: '', sealing: undefined, isOld: false }

// Between the id and the seal. No id has it
const SEAL = '~'
// Characters in base64url, 132 bits
const MAC = 22
// A longer name would make the cookie too long, so its mark is read after the session
const MAX_BYTES = 128
// Users of cookies that came last
const REMEMBERED = 10_000

// What seals: a MAC over what is encrypted, by keys of their own
const sealingBy = (root: Buffer, start: string) => {
  const [key, { hide, show }] = [derive(root, 'mac'), hiding(root)]
  // a cookie comes with each request, and a decipher is a stream, which takes as long to make as half a look-up
  const users = memory<string>({ size: REMEMBERED, maxAge: Infinity, dropsFirst: 'oldest' })
  return {
    macOf: (text: string): string => mac(key, start + text).slice(0, MAC),
    hidden: hide,
    shown: (hidden: string): string => {
      const known = users.get(hidden)
      if (known !== undefined) return known
      const user = show(hidden)
      // a copy: a part of a header would keep the whole header in memory, with the id of the session
      users.set(Buffer.from(hidden, 'latin1').toString('latin1'), fromNow(user))
      return user
    },
  }
}

/**
 * The cookie is an id and a seal of it, by keys that are derived from a signing key: the user, encrypted (AES-256-CTR), and a MAC of all
 * (HMAC-SHA256) for this application. So an id that the application did not give out never reaches the store, and the user says
 * whose mark to read together with the session.
 *
 * Older releases had the cookie library sign it. Such a cookie is read, and given out anew. A Keygrip does not show its older keys, so it
 * makes the MAC itself.
 */
export const sealedCookie = (cookieName: string, application: string, keys: () => unknown): SealedCookie => {
  const purpose = 'koa-with-auth/sessions/cookie'
  const inApplication = (text: string): string => `${application}\n${text}`
  const sealings = derivedOnce(keys, purpose, (root) => sealingBy(root, inApplication('')))
  const inRequest = fromCookie(cookieName)
  const signature = `${cookieName}.sig`
  // the Keygrip also signs other texts
  const inKeygrip = (text: string): string => `${purpose}\n${inApplication(text)}`
  const isSigned = ({ req }: Context): boolean => req.headers.cookie?.includes(`${signature}=`) === true
  const opened = (sent: CookieRead['sent'], value: string): CookieRead | undefined => {
    const at = value.indexOf(SEAL)
    const end = value.indexOf('.', at)
    if (at < 0 || end < 0) return undefined
    const all = sealings()
    const key = keyOf(all, value.slice(0, end), value.slice(end + 1))
    if (key < 0) return undefined
    return { sent, id: value.slice(0, at), hidden: value.slice(at + 1, end), sealing: all[key], isOld: key > 0 }
  }
  // the place of the key that sealed a string
  const keyOf = (all: ReturnType<typeof sealings>, text: string, sent: string): number => {
    const now = keys()
    if (isSigner(now)) return ['first', 'older'].indexOf(signedBy(now, inKeygrip(text), sent))
    for (let key = 0; key < all.length; key++) {
      const sealing = all[key]
      if (sealing !== undefined && constantTimeEqual(sent, sealing.macOf(text))) return key
    }
    return -1
  }
  const signedBefore = (sent: CookieRead['sent'], ctx: Context): CookieRead => {
    const value = isSigned(ctx) ? ctx.cookies.get(cookieName, { signed: true }) : undefined
    return value === undefined ? { ...noCookie, sent } : { ...noCookie, sent, id: value, isOld: true }
  }
  const dropSignature: SealedCookie['dropSignature'] = (ctx, options) => {
    if (isSigned(ctx) && !ctx.headerSent) ctx.cookies.set(signature, '', { ...options, signed: false })
  }
  return {
    read: (ctx) => {
      const sent = inRequest(ctx.request)
      if (O.isNone(sent)) return noCookie
      // of several, session authenticators accept none
      const [first = ''] = typeof sent.value === 'string' ? [sent.value] : sent.value
      return opened(sent, first.startsWith('"') ? first.slice(1, -1) : first) ?? signedBefore(sent, ctx)
    },
    userOf: ({ hidden, sealing }) => (hidden === '' ? undefined : sealing?.shown(hidden)),
    give: (ctx, id, user = '', options) => {
      const [sealing] = sealings()
      if (sealing === undefined) throw new TypeError(keysFix)
      const isHidden = user !== '' && Buffer.byteLength(user) <= MAX_BYTES
      const text = `${id}${SEAL}${isHidden ? sealing.hidden(user, inApplication(id)) : ''}`
      const now = keys()
      const seal = isSigner(now) ? now.sign(inKeygrip(text)) : sealing.macOf(text)
      ctx.cookies.set(cookieName, `${text}.${seal}`, { ...options, signed: false })
      dropSignature(ctx, options)
    },
    dropSignature,
  }
}

/** What the application says about the sites that may use its sessions. */
interface SameSite {
  readonly sameSite: 'lax' | 'strict' | 'none'
  readonly partitioned: boolean
  readonly https: boolean | undefined
  readonly origin: string | undefined
}

/**
 * Checks that front ends on other sites can use the session, or that none is meant to. Throws a TypeError for `none` without https or
 * trusted origins. Warns of a trusted origin whose browsers do not send the cookie.
 */
export const checkSameSite = (app: Koa, { sameSite, partitioned, https, origin }: SameSite): void => {
  if (partitioned && sameSite !== 'none') {
    throw new TypeError("sessions(app, { partitioned }) is only for sameSite: 'none', which frames of other sites need")
  }
  if (sameSite === 'none') checkCrossSite(app, https)
  else warnOfOtherSites(app, origin, sameSite)
}

const trustedBy = (app: Koa): ReadonlyArray<string> => [
  ...app.middleware.reduce((outer, one) => additionOf(one)?.(outer) ?? outer, defaults).trustedOrigins,
]

// Browsers keep such a cookie only over https, and send it with requests of every site
const checkCrossSite = (app: Koa, https: boolean | undefined): void => {
  if (https !== true)
    throw new TypeError("sessions(app, { sameSite: 'none' }) needs https: true; else browsers drop the cookie")
  if (trustedBy(app).length > 0) return
  throw new TypeError(
    "sessions(app, { sameSite: 'none' }) needs the origins that may use the session: write app.use(authSettings({ trustedOrigins: [...] })) before it",
  )
}

// Without the public suffix list, two hosts are certainly of two sites only if their last two labels differ
const siteOf = (origin: string): string => {
  const { protocol, hostname } = new URL(origin)
  return `${protocol}//${/^[\d.]+$|:/.test(hostname) ? hostname : hostname.split('.').slice(-2).join('.')}`
}

// When the application is complete: such a front end signs in, and its browser neither keeps nor sends the cookie
const warnOfOtherSites = (app: Koa, origin: string | undefined, sameSite: string): void => {
  if (origin === undefined) return
  queueMicrotask(() => {
    for (const trusted of trustedBy(app)) {
      if (!URL.canParse(trusted) || siteOf(trusted) === siteOf(origin)) continue
      process.emitWarning(
        `sessions(app, { sameSite: '${sameSite}' }): ${trusted} is trusted, and is another site than ${origin}, so its browsers do not send the cookie of the session; serve it from the same site, or write sameSite: 'none'`,
        'SessionWarning',
      )
    }
  })
}

/**
 * From now on, assigning `ctx.session.maxAge` throws in this request. koa-session would send a cookie of another age, but
 * the session would end as `sessions` and `logIn` say. `age` is what a sign-in decided, in milliseconds.
 */
export const lockAge = (ctx: Context, age?: number): void => {
  // Safe: koa-session makes them for each request
  const options = ctx['sessionOptions'] as { readonly maxAge?: unknown }
  const lasting = age ?? options.maxAge
  Object.defineProperty(options, 'maxAge', {
    configurable: true,
    enumerable: true,
    get: () => lasting,
    set: () => {
      throw new TypeError(maxAgeFix)
    },
  })
}

const maxAgeFix =
  'ctx.session.maxAge does not decide how long a session lasts; write logIn(ctx, user, { idle, absolute }) for one sign-in, or sessions(app, { idle, absolute }) for all'

export const publicOrigin = is.that(
  (value) =>
    typeof value === 'string' && /^https?:/.test(value) && URL.canParse(value) && new URL(value).origin === value,
  'must be the public origin of the application, such as "https://shop.example"',
)

/** koa-session and its cookies read these even if they are not given: then from a polluted prototype (D-S12). */
export const unpolluted = {
  ContextStore: undefined,
  valid: undefined,
  beforeSave: undefined,
  prefix: undefined,
  rolling: false,
  renew: false,
  path: '/',
  overwrite: true,
}

const insecure =
  'sessions(app, { https: false }): the cookie is never Secure, so it can travel unencrypted; leave https out where browsers use https'

/** Warns of `https: false`. */
export const warnOfHttp = (): void => process.emitWarning(insecure, 'SessionWarning')
