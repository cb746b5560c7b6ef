/**
 * The cookie of the sessions: its name and its domain, how the id is sealed in it, and assignments that must not change how long it lasts.
 *
 * Koa's cookie library writes it. That library forgets the domain when it deletes a signature that is wrong. So the domain is added when
 * the head is written (`commit.ts`).
 */
import { domainToUnicode } from 'node:url'
import type { SetOption } from 'cookies'
import * as O from 'fp-ts/lib/Option.js'
import type Koa from 'koa'
import type { Context, Request } from 'koa'
import * as is from '../core/checks.js'
import { fromNow, memory, type Memory } from '../core/memory.js'
import { fromCookie, type Sent } from '../core/RequestFields.js'
import { defaults } from '../core/Settings.js'
import { derivedOnce, isSigner, keysFix, signedBy } from '../crypto/appKeys.js'
import { derive, hiding, isMac, macBy } from '../crypto/secrets.js'
import { additionOf } from '../koa/settings.js'
import type { Origin } from './Origin.js'
import { hintFor, type Hint, type Signer } from './SessionRecords.js'

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

export interface CookieRead {
  readonly sent: O.Option<Sent>
  /** The id of a session, which this application gave out; `''` without one. */
  readonly id: string
  /** The user who was signed in when it was given out, encrypted; `''` if it does not say. */
  readonly hidden: string
  readonly sealing: Sealing | undefined
  /** Whether it is to be given out anew, because an older key sealed it. */
  readonly isOld: boolean
}

const noCookie: CookieRead = { sent: O.none, id: '', hidden: '', sealing: undefined, isOld: false }

// Between the id and the seal. No id has it
const SEAL = '~'
// Between the entry and the user. No entry has it
const USER = '.'
// Characters in base64url, 132 bits
const MAC = 22
// A longer name would make the cookie too long, so its stamp is read after the session
const MAX_HINT_BYTES = 128
// Users of cookies that came last
const MAX_HINTS = 10_000

/** The seal: a MAC over the encrypted text; the MAC and the encryption have a key each. */
interface Sealing extends ReturnType<typeof hiding> {
  readonly application: string
  readonly mac: (text: string) => string
  // a cookie comes with each request, and a decipher is a stream, which takes as long to make as half a look-up
  readonly hints: Memory<Hint>
}

const sealingBy = (root: Buffer, application: string): Sealing => ({
  ...hiding(root),
  application,
  mac: macBy(derive(root, 'mac')),
  hints: memory<Hint>({ size: MAX_HINTS, maxAge: Infinity, dropsFirst: 'oldest' }),
})

const inApplication = (application: string, text: string): string => `${application}\n${text}`

const macOf = ({ mac, application }: Sealing, text: string): string =>
  mac(inApplication(application, text)).slice(0, MAC)

const hintIn = (sealing: Sealing, hidden: string): Hint => {
  const known = sealing.hints.get(hidden)
  if (known !== undefined) return known
  const text = sealing.show(hidden)
  const at = text.indexOf(USER)
  const hint = hintFor(sealing.application, { user: text.slice(at + 1), listed: text.slice(0, at) })
  // a copy: a part of a header would keep the whole header in memory, with the id of the session
  sealing.hints.set(Buffer.from(hidden, 'latin1').toString('latin1'), fromNow(hint))
  return hint
}

const PURPOSE = 'koa-with-auth/sessions/cookie'

// The Keygrip also signs other texts
const inKeygrip = (application: string, text: string): string => `${PURPOSE}\n${inApplication(application, text)}`

/**
 * The cookie is an id and a seal of it, by keys that are derived from a signing key: the user and the entry of the list, encrypted
 * (AES-256-CTR), and a MAC of all (HMAC-SHA256) for this application. So an id that the application did not give out never reaches the
 * store, and the cookie says whose stamp and which entry to read together with the session. A Keygrip does not show its older keys, so it
 * makes the MAC itself.
 */
export class SealedCookie {
  readonly #name: string
  readonly #application: string
  readonly #keys: () => unknown
  readonly #sealings: () => ReadonlyArray<Sealing | undefined>
  readonly #inRequest: (request: Request) => O.Option<Sent>

  constructor(name: string, application: string, keys: () => unknown) {
    this.#name = name
    this.#application = application
    this.#keys = keys
    this.#sealings = derivedOnce(keys, PURPOSE, (root) => sealingBy(root, application))
    this.#inRequest = fromCookie(name)
  }

  read({ request }: Context): CookieRead {
    const sent = this.#inRequest(request)
    if (O.isNone(sent)) return noCookie
    // of several, session authenticators accept none
    const [first = ''] = typeof sent.value === 'string' ? [sent.value] : sent.value
    return this.#opened(sent, first.startsWith('"') ? first.slice(1, -1) : first) ?? { ...noCookie, sent }
  }

  hintOf({ hidden, sealing }: CookieRead): Hint | undefined {
    return hidden === '' || sealing === undefined ? undefined : hintIn(sealing, hidden)
  }

  /** Sends an id. Throws a TypeError without a signing key. */
  give(ctx: Context, id: string, signer: Signer | undefined, options: SetOption): void {
    const [sealing] = this.#sealings()
    if (sealing === undefined) throw new TypeError(keysFix)
    const isHidden = signer !== undefined && Buffer.byteLength(signer.user) <= MAX_HINT_BYTES
    const hidden = isHidden ? hiddenIn(sealing, id, signer) : ''
    const text = `${id}${SEAL}${hidden}`
    const keys = this.#keys()
    const seal = isSigner(keys) ? keys.sign(inKeygrip(this.#application, text)) : macOf(sealing, text)
    ctx.cookies.set(this.#name, `${text}.${seal}`, { ...options, signed: false })
  }

  #opened(sent: CookieRead['sent'], value: string): CookieRead | undefined {
    const at = value.indexOf(SEAL)
    const end = value.indexOf('.', at)
    if (at < 0 || end < 0) return undefined
    const all = this.#sealings()
    const key = this.#keyOf(all, value.slice(0, end), value.slice(end + 1))
    if (key < 0) return undefined
    return { sent, id: value.slice(0, at), hidden: value.slice(at + 1, end), sealing: all[key], isOld: key > 0 }
  }

  // The place of the key that sealed a string
  #keyOf(all: ReadonlyArray<Sealing | undefined>, text: string, sent: string): number {
    const keys = this.#keys()
    if (isSigner(keys)) return ['first', 'older'].indexOf(signedBy(keys, inKeygrip(this.#application, text), sent))
    for (let key = 0; key < all.length; key++) {
      const sealing = all[key]
      if (sealing !== undefined && isMac(sent, macOf(sealing, text))) return key
    }
    return -1
  }
}

const hiddenIn = (sealing: Sealing, id: string, { user, listed = '' }: Signer): string =>
  sealing.hide(`${listed}${USER}${user}`, inApplication(sealing.application, id))

/**
 * Checks that front ends on other sites can use the session, or that none is meant to. Throws a TypeError for `none` without https or
 * trusted origins. Warns of a trusted origin whose browsers do not send the cookie.
 */
export const checkSameSite = (
  app: Koa,
  sameSite: 'lax' | 'strict' | 'none',
  { partitioned = false, https, origin }: { partitioned?: boolean; https: boolean | undefined; origin?: Origin },
): void => {
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
const warnOfOtherSites = (app: Koa, origin: Origin | undefined, sameSite: string): void => {
  if (typeof origin !== 'string') return
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
 * the session would end as `sessions` and `logIn` say. `age` is the decision of a sign-in, in milliseconds.
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
      throw new TypeError(
        'ctx.session.maxAge does not decide how long a session lasts; write logIn(ctx, user, { idle, absolute }) for one sign-in, or sessions(app, { idle, absolute }) for all',
      )
    },
  })
}

/** koa-session and its cookies read these even if they are not given: then from a polluted prototype (D-S12). */
export const koaSessionDefaults = {
  ContextStore: undefined,
  valid: undefined,
  beforeSave: undefined,
  prefix: undefined,
  rolling: false,
  renew: false,
  path: '/',
  overwrite: true,
}

export const warnOfHttp = (): void =>
  process.emitWarning(
    'sessions(app, { https: false }): the cookie is never Secure, so it can travel unencrypted; leave https out where browsers use https',
    'SessionWarning',
  )
