/** The session of a request, which koa-session put on the context, and warnings about how it was set up. */
import { createCipheriv, createDecipheriv, createHash, createHmac, hash, randomBytes } from 'node:crypto'
import * as O from 'fp-ts/lib/Option.js'
import type Koa from 'koa'
import type { Context } from 'koa'
import { fromCookie } from '../core/RequestFields.js'
import { constantTimeEqual, ownField } from '../core/data.js'
import { hasMethod } from '../core/checks.js'
import { isAsync } from '../core/options.js'
import { DEFAULT_COOKIE, declaredSessionCookie, isFirstWarning, sourceOf } from './sessionUser.js'

/**
 * The value of an own field; `undefined` if there is none, or if `Object.prototype` was polluted with the value. Copies
 * of inherited values do not count either: koa-session loops over inherited keys when it makes a session, and when it
 * writes one. See `core/data.ts`.
 */
export const sessionField = (session: object, name: string): unknown => {
  const value = ownField(session, name)
  if (!(name in Object.prototype)) return value
  return JSON.stringify(value) === JSON.stringify(Reflect.get(Object.prototype, name)) ? undefined : value
}

/** A copy of the own fields of a session, without a prototype, and without the fields that koa-session uses itself. */
export const sessionData = (session: object): Record<string, unknown> => {
  // Safe: an object without a prototype has no fields yet
  const data = Object.create(null) as Record<string, unknown>
  for (const name of Object.keys(session)) {
    const value = dataField(session, name)
    if (value !== undefined) data[name] = value
  }
  return data
}

// koa-session's own rule for data (lib/session.js, toJSON)
const dataField = (session: object, name: string): unknown => {
  if (name === 'isNew' || name.startsWith('_')) return undefined
  const value = sessionField(session, name)
  return typeof value === 'function' ? undefined : value
}

export const hasData = (session: object): boolean =>
  Object.keys(session).some((name) => dataField(session, name) !== undefined)

interface Rule {
  readonly when: (options: Readonly<Record<string, unknown>>, isProduction: boolean) => boolean
  readonly warning: string
}

const rules: ReadonlyArray<Rule> = [
  {
    when: ({ store, ContextStore }) => store === undefined && ContextStore === undefined,
    warning: 'without a store the session is in the cookie, readable, and signing out cannot end it; set `store`',
  },
  {
    when: ({ signed }) => signed === false,
    warning: 'unsigned cookies can be written by anybody; remove `signed: false`',
  },
  {
    when: ({ httpOnly }) => httpOnly === false,
    warning: 'scripts can read the cookie; remove `httpOnly: false`',
  },
  {
    when: ({ sameSite }) => sameSite !== true && !/^(?:lax|strict)$/i.test(String(sameSite)),
    warning: "browsers send the cookie along from other sites; set `sameSite: 'lax'`",
  },
  {
    when: ({ secure }, isProduction) => isProduction && secure !== true,
    warning: 'the cookie can travel unencrypted; set `secure: true`',
  },
  {
    when: ({ maxAge }) => maxAge === 'session',
    warning: 'a stolen cookie works for ever; set `maxAge` to milliseconds',
  },
  {
    when: ({ valid }) => isAsync(valid),
    warning: '`valid` is async, so every session counts as valid; make it sync, or use `loadUser`',
  },
]

/** One sentence for each weakness of a koa-session that was set up by hand, with its fix (D-S3, D-S7, D-S12). */
export const weaknessesOf = (
  options: Readonly<Record<string, unknown>>,
  isProduction: boolean,
): ReadonlyArray<string> => rules.filter(({ when }) => when(options, isProduction)).map(({ warning }) => warning)

/** The shortest key that is accepted, in characters. */
const MIN_KEY_LENGTH = 32

interface Signer {
  readonly sign: (text: string) => string
  readonly verify: (text: string, signature: string) => boolean
}

/** Whether keys are a Keygrip, which does not show them. */
export const isSigner = (keys: unknown): keys is Signer => hasMethod(keys, 'sign') && hasMethod(keys, 'verify')

/**
 * How strong keys are. The first one signs, so it must not be short. An older one may be short while it is rotated out:
 * `older short`. If any key is not a key (an empty string), they are `weak`. A Keygrip cannot be inspected, and is
 * accepted. Weak keys could be guessed.
 */
export const strengthOf = (keys: unknown): 'strong' | 'older short' | 'weak' => {
  if (!Array.isArray(keys)) return isSigner(keys) ? 'strong' : 'weak'
  if (!isLong(keys[0])) return 'weak'
  if (keys.every(isLong)) return 'strong'
  return keys.every((key: unknown) => typeof key === 'string' && key !== '') ? 'older short' : 'weak'
}

const isLong = (key: unknown): boolean => typeof key === 'string' && key.length >= MIN_KEY_LENGTH

export const keysFix = `app.keys must hold strings, and the first, which signs, at least ${MIN_KEY_LENGTH} characters; app.keys = [randomBytes(32).toString('hex')], kept outside the code`

/** The warning about a short key that is rotated out. It prints no key. */
const shortKeyWarning = `app.keys: an older key has fewer than ${MIN_KEY_LENGTH} characters. It still verifies cookies, and whoever guesses it can sign them; take it out as soon as the sessions from before the rotation are over`

const BLOCK = 64
const inner = Buffer.alloc(BLOCK + 8192)
const outer = Buffer.alloc(BLOCK + 32)

const padded = (key: Buffer, pad: number): Buffer =>
  Buffer.from(Array.from({ length: BLOCK }, (_, at) => (key[at] ?? 0) ^ pad))

/**
 * Makes the MAC of texts by a key, each with the same start: HMAC-SHA256 (RFC 2104) in base64url. It hashes at once, because an Hmac of
 * node:crypto is a stream, which takes three times as long to make.
 */
export const macBy = (secret: string | Buffer, start = ''): ((text: string) => string) => {
  const given = Buffer.from(secret)
  const key = given.length > BLOCK ? hash('sha256', given, 'buffer') : given
  const [before, after] = [Buffer.concat([padded(key, 0x36), Buffer.from(start)]), padded(key, 0x5c)]
  // a character takes three bytes at most
  const longest = (inner.length - before.length) / 3
  return (text) => {
    if (text.length > longest) return createHmac('sha256', given).update(`${start}${text}`).digest('base64url')
    before.copy(inner)
    const end = before.length + inner.write(text, before.length)
    after.copy(outer)
    outer.write(hash('sha256', inner.subarray(0, end), 'binary'), BLOCK, 'binary')
    return hash('sha256', outer, 'base64url')
  }
}

/**
 * Whether a string is a MAC, in a time that does not reveal where they differ (CWE-208). Everybody knows how long a MAC is, so nothing
 * is padded, which is most of what `constantTimeEqual` does.
 */
export const isMac = (sent: string, mac: string): boolean => {
  if (sent.length !== mac.length) return false
  let difference = 0
  for (let at = 0; at < mac.length; at++) difference |= sent.charCodeAt(at) ^ mac.charCodeAt(at)
  return difference === 0
}

// Few, because an application has few keys; those that were rotated out are forgotten
const KEYS = 32
const macs = new Map<string, (text: string) => string>()

const hmac = (key: string, text: string): string => {
  const known = macs.get(key)
  if (known !== undefined) return known(text)
  if (macs.size >= KEYS) macs.clear()
  const mac = macBy(key)
  macs.set(key, mac)
  return mac(text)
}

/**
 * Signs a string with the first key. Throws a TypeError if there is none. Every key verifies, so that keys can be
 * rotated. A Keygrip signs in its own way.
 */
export const signed = (keys: unknown, text: string): string => {
  if (isSigner(keys)) return keys.sign(text)
  const [first]: ReadonlyArray<unknown> = Array.isArray(keys) ? keys : []
  if (typeof first !== 'string') throw new TypeError(keysFix)
  return hmac(first, text)
}

/**
 * Keys for another purpose, one for each signing key, the first first. A Keygrip does not show its older keys, so it
 * gives one.
 */
export const derivedFrom = (keys: unknown, purpose: string): ReadonlyArray<Buffer> => {
  const each: ReadonlyArray<unknown> = Array.isArray(keys) ? keys.map((key: unknown) => [key]) : [keys]
  return each.map((key) => createHash('sha256').update(signed(key, purpose)).digest())
}

/**
 * What is made of such keys, made once while the keys are the same strings: `undefined` for what is no string. A Keygrip may change
 * inside, so it is made at each call.
 */
export const derivedOnce = <A>(keys: () => unknown, purpose: string, make: (key: Buffer) => A) => {
  let from: ReadonlyArray<unknown> = []
  let derived: ReadonlyArray<A | undefined> = []
  return (): ReadonlyArray<A | undefined> => {
    const now = keys()
    if (!Array.isArray(now)) return isSigner(now) ? derivedFrom(now, purpose).map(make) : []
    if (now.length !== from.length || now.some((key, at) => key !== from[at])) {
      from = [...now]
      derived = from.map((key) => (typeof key === 'string' ? derivedFrom([key], purpose).map(make)[0] : undefined))
    }
    return derived
  }
}

const NONCE = 12
const TAG = 16

/** Seals content under a derived key (AES-256-GCM): the nonce, what is encrypted, the tag. `owner` is whose it is. */
export const sealed = (key: Buffer, content: string | Buffer, owner = ''): Buffer => {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner))
  return Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()])
}

/** What was sealed under this key for this owner; `undefined` for anything else. */
export const unsealed = (key: Buffer, raw: Buffer, owner = ''): Buffer | undefined => {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, raw.subarray(0, NONCE), { authTagLength: TAG })
    decipher.setAAD(Buffer.from(owner)).setAuthTag(raw.subarray(-TAG))
    const content = decipher.update(raw.subarray(NONCE, -TAG))
    // it has nothing more to give, and throws if the tag is wrong
    decipher.final()
    return content
  } catch {
    return undefined // another key made it, or none
  }
}

/** Which key made a signature: the first, one of the others, or none. */
export const signedBy = (keys: unknown, text: string, signature: string): 'first' | 'older' | 'none' => {
  if (isSigner(keys)) {
    if (constantTimeEqual(keys.sign(text), signature)) return 'first'
    return keys.verify(text, signature) ? 'older' : 'none'
  }
  const all: ReadonlyArray<unknown> = Array.isArray(keys) ? keys : []
  const at = all.findIndex((key) => typeof key === 'string' && isMac(signature, hmac(key, text)))
  return at < 0 ? 'none' : at === 0 ? 'first' : 'older'
}

/**
 * The session of a caller who may be signed in. None: the caller is anonymous. `isUserInSession`: the session itself
 * says who the user is.
 *
 * Two cookies of the session's name may be a forgery (RFC 6265bis §8.6), because koa-session takes one of them by their
 * order. So both are returned as an array, which no codec accepts.
 */
export const sessionOf = (factory: string, ctx: Context, isUserInSession: boolean): O.Option<unknown> => {
  if ('session' in ctx) checkKeys(factory, ctx.app)
  const source = sourceOf(ctx)
  const session: unknown = source === undefined ? ctx['session'] : source.sessionOf(ctx)
  if (session === undefined) throw new Error(`${factory}: ${noSession}`)
  if (typeof session !== 'object' || session === null) return O.none
  const sent = source === undefined ? cookieReader(cookieNameOf(ctx))(ctx.request) : source.sent(ctx)
  if (O.isSome(sent) && typeof sent.value !== 'string') return sent
  if (source === undefined) warnOnce(ctx)
  else if (source.isUnavailable()) return O.some(session)
  else if (isUserInSession) return source.isSignedIn(session) ? O.some(session) : O.none
  if (isUserInSession) {
    // a user is data, so koa-session need not copy its data to say whether there are some
    const isMissing = (sessionField(session, 'user') ?? undefined) === undefined
    return isMissing || ownField(session, 'populated') === false ? O.none : O.some(session)
  }
  return 'populated' in session && (session.populated === false || !hasData(session)) ? O.none : O.some(session)
}

// Made once, because the sessions of a process have one cookie, as a rule
let reader = fromCookie(DEFAULT_COOKIE)
const cookieReader = (name: string): typeof reader => {
  if (reader.location.name !== name) reader = fromCookie(name)
  return reader
}

const noSession =
  'the request has no session; call sessions(app, { loadUser }) of koa-with-auth/sessions before the routers are mounted, or mount your own koa-session above them'

export const cookieNameOf = (ctx: Context): string => {
  const options: unknown = ctx['sessionOptions']
  return typeof options === 'object' && options !== null && 'key' in options && typeof options.key === 'string'
    ? options.key
    : declaredSessionCookie()
}

// Whoever guesses a signing key can make any session. Checked for every request, because keys are rotated in
// place.
const checkKeys = (factory: string, app: Koa): void => {
  const strength = strengthOf(app.keys)
  if (strength === 'weak') throw new Error(`${factory}: ${keysFix}`)
  if (strength === 'older short') warnOfShortKey(app)
}

/** Warns, once for an application, that an older key can be guessed. */
export const warnOfShortKey = (app: Koa): void => {
  if (isFirstWarning(app, 'ofKeys')) process.emitWarning(shortKeyWarning, 'SessionWarning')
}

// Only a warning, so that a koa-session that was set up by hand keeps working
const warnOnce = (ctx: Context): void => {
  if (!isFirstWarning(ctx.app, 'ofOptions')) return
  const options: unknown = ctx['sessionOptions']
  if (typeof options !== 'object' || options === null) return
  for (const weakness of weaknessesOf({ ...options }, ctx.app.env === 'production')) {
    process.emitWarning(`koa-session: ${weakness}; or set it up with koa-with-auth/sessions`, 'SessionWarning')
  }
}
