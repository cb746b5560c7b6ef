/**
 * Sessions that are carried by a token instead of the cookie: `sessions(app, { bearer })`. A token is the id of its session: a prefix, 256
 * random bits, and a checksum for this application. So a typing error, and a token of another application, are refused without a look-up.
 */
import * as O from 'fp-ts/lib/Option.js'
import { make, type Challenge } from '../core/Challenge.js'
import * as is from '../core/checks.js'
import { checkOptions, type Check, type Checks } from '../core/options.js'
import { memory } from '../core/memory.js'
import type { Request } from '../core/Request.js'
import { fromHeader } from '../core/RequestFields.js'
import { constantTimeEqual, digest, randomId } from '../crypto/secrets.js'
import { dpopOf, type DpopOptions } from '../jwt/dpop.js'
import type { Hint } from './SessionRecords.js'

/** How sessions are carried by tokens. */
export interface BearerOptions {
  /** The beginning of tokens, before `_`: words of lower-case letters and digits, joined by `_`. Default `kwa`. */
  readonly prefix?: string | undefined
  /**
   * Binds each token to the key of the proof that came with its sign-in (DPoP, RFC 9449). Then a sign-in without a proof is a 401, and
   * each request needs one: `Authorization: DPoP`. `spent` is `oneTimeIds(store)` of `koa-with-auth/stores`.
   */
  readonly dpop?: DpopOptions | undefined
}

const checks: Checks<BearerOptions> = {
  prefix: is.maybe(is.like(/^(?=.{2,32}$)[a-z][a-z\d]*(?:_[a-z\d]+)*$/, 'must be words such as "acme" or "acme_live"')),
  // `dpopOf` checks its content
  dpop: is.maybe(is.record),
}

export const bearerLike: Check = (where, value) => {
  // Safe: anything but an object is refused
  if (typeof value !== 'boolean') checkOptions(where, value as BearerOptions, checks)
}

const HINTS = 10_000

// In seconds: the clocks of phones differ
const PROOF_TOLERANCE = 5

/** Makes the tokens of an application; `undefined` if it has none. Throws a TypeError for options of `dpop` that cannot work. */
export const bearerOf = (application: string, given: boolean | BearerOptions | undefined) => {
  if (given === undefined || given === false) return undefined
  const { prefix = 'kwa', dpop }: BearerOptions = given === true ? {} : given
  const made =
    dpop === undefined ? undefined : dpopOf(dpop, PROOF_TOLERANCE, 'sessions(app, { bearer: { dpop: { ... } } })')
  const scheme: 'Bearer' | 'DPoP' = made === undefined ? 'Bearer' : 'DPoP'
  /** Of each challenge. */
  const parameters: Readonly<Record<string, string>> = made?.parameters ?? {}
  return {
    scheme,
    parameters,
    responseFields: made?.responseFields,
    /** The proofs that its requests need; `undefined` without `dpop`. */
    proofs: made?.checking({}),
    application,
    /** The beginning of each token. */
    start: `${prefix}_`,
    /** The users of sessions, by the keys of the sessions: a token names no user. */
    hints: memory<Hint>({ size: HINTS, maxAge: Infinity, dropsFirst: 'oldest' }),
  }
}

/** The tokens of an application. */
export type Bearer = NonNullable<ReturnType<typeof bearerOf>>

const RANDOM = 43
const CHECKSUM_LENGTH = 6

const checksumOf = ({ application }: Bearer, text: string): string =>
  digest(`koa-with-auth/bearer\n${application}\n${text}`).slice(0, CHECKSUM_LENGTH)

export const newToken = (self: Bearer): string => {
  const text = self.start + randomId()
  return text + checksumOf(self, text)
}

// The length first, because the string may be thousands of characters long
const isOwnToken = (self: Bearer, text: string): boolean => {
  if (text.length !== self.start.length + RANDOM + CHECKSUM_LENGTH || !text.startsWith(self.start)) return false
  const end = text.length - CHECKSUM_LENGTH
  return constantTimeEqual(text.slice(end), checksumOf(self, text.slice(0, end)))
}

const authorizationField = fromHeader('Authorization')

/** The challenge for tokens; `isSent`: a token was sent and refused (RFC 6750 §3.1). */
export const bearerChallengeOf = ({ scheme, parameters }: Bearer, isSent: boolean): Challenge =>
  make(scheme, { ...parameters, ...(isSent && { error: 'invalid_token' }) })

export const ANOTHER_SCHEME = 'another scheme'

/** The token of a request: `''` for a wrong token; `undefined` without the field `Authorization`. */
export const tokenIn = (self: Bearer, request: Request): string | undefined => {
  const sent = authorizationField(request)
  if (O.isNone(sent)) return undefined
  const start = `${self.scheme} `
  if (typeof sent.value !== 'string') return ''
  if (sent.value.slice(0, start.length).toLowerCase() !== start.toLowerCase()) {
    return sent.value.toLowerCase() === self.scheme.toLowerCase() ? '' : ANOTHER_SCHEME
  }
  const token = sent.value.slice(start.length).replace(/^ +/, '')
  return isOwnToken(self, token) ? token : ''
}
