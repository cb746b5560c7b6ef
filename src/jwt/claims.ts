/**
 * The claims of a token: how its compact form is read, and the checks that JSON Web Tokens and introspection share (RFC 7519 §4.1). They
 * are pure, and know no keys. Inherited properties are not claims, so a polluted prototype adds none.
 */
import { isUtf8 } from 'node:buffer'
import type { Why } from '../core/AuthError.js'
import { ownFields } from '../core/data.js'

/** The claims of a verified token. */
export interface JwtClaims {
  readonly iss: string
  readonly aud: string | ReadonlyArray<string>
  /** When it expires, in seconds since 1970. */
  readonly exp: number
  readonly sub?: string
  readonly iat?: number
  readonly nbf?: number
  readonly jti?: string
  readonly client_id?: string
  readonly azp?: string
  /** The class in which the user authenticated, and when, in seconds since 1970 (RFC 9068 §2.2.1). Checked by `requireAuthentication`. */
  readonly acr?: unknown
  readonly auth_time?: unknown
  /** Who acts for `sub` now. `act` of an actor is who did before, and grants nothing. Scopes are those of the token, never of an actor. */
  readonly act?: Actor
  readonly [claim: string]: unknown
}

/** Who acts for the subject of a token (RFC 8693 §4.1), by `sub` or `client_id`. */
export interface Actor {
  readonly sub?: string
  readonly client_id?: string
  readonly act?: unknown
  readonly [claim: string]: unknown
}

/** The rules for every token. */
export interface ClaimRules {
  readonly profile: 'any' | 'rfc9068'
  /** In seconds. */
  readonly clockTolerance: number
  /** In seconds. If it is set, tokens must have `iat`. */
  readonly maxTokenAge: number | undefined
  /** The clients (`azp`, `client_id`) that are let in. */
  readonly authorizedParties: ReadonlyArray<string> | undefined
  /** The members of `cnf` (RFC 7800 §3.1) that somebody checks. */
  readonly confirmations: ReadonlyArray<string>
  /** Whether tokens must have one of these. */
  readonly isBindingRequired: boolean
}

export type Refusal = Extract<Why, 'claims' | 'expired' | 'not yet'>

/** A JSON object without a prototype, so that an inherited property is no member. */
export type Json = Readonly<Record<string, unknown>>

const isTime = (u: unknown): u is number => typeof u === 'number' && Number.isFinite(u)

/**
 * Why a token is refused at a time, in seconds. The caller must report `expired` only if the signature is good. Without
 * `isExpDemanded` (introspection), `exp` may be absent. An `iat` that is ahead of this clock is no reason (RFC 7519 §4.1.6), unless
 * the age is limited.
 */
export const refusalByTime = (
  claims: Json,
  { clockTolerance, maxTokenAge }: Pick<ClaimRules, 'clockTolerance' | 'maxTokenAge'>,
  now: number,
  isExpDemanded = true,
): Refusal | undefined => {
  const { exp, nbf, iat } = claims
  // JSON reads 1e400 as Infinity
  if (exp === undefined ? isExpDemanded : !isTime(exp)) return 'claims'
  if (nbf !== undefined && !isTime(nbf)) return 'claims'
  if (iat === undefined ? maxTokenAge !== undefined : !isTime(iat)) return 'claims'
  const latest = now + clockTolerance
  if ((isTime(nbf) && nbf > latest) || (maxTokenAge !== undefined && isTime(iat) && iat > latest)) return 'not yet'
  if (maxTokenAge !== undefined && isTime(iat) && now - iat > maxTokenAge + clockTolerance) return 'expired'
  return isTime(exp) && now >= exp + clockTolerance ? 'expired' : undefined
}

/** Whether `aud` names one of the audiences (RFC 7519 §4.1.3). `false`: its type is right, or it is absent. */
export const isFor = (aud: unknown, audiences: ReadonlyArray<string> | false): boolean => {
  const named: ReadonlyArray<unknown> = Array.isArray(aud) ? aud : aud === undefined ? [] : [aud]
  return (
    named.every((one) => typeof one === 'string') &&
    (audiences === false || named.some((one) => audiences.includes(one)))
  )
}

const isFilled = (u: unknown): boolean => typeof u === 'string' && u !== ''

// RFC 7519 §4.1, RFC 9068 §2.2, RFC 7662 §2.2: strings if they are present
const strings = ['sub', 'jti', 'client_id', 'azp']

// RFC 7800: a token is accepted only if everything that it is bound to is checked
const isConfirmable = (cnf: unknown, { confirmations, isBindingRequired }: ClaimRules): boolean => {
  if (cnf === undefined) return !isBindingRequired
  const members = Object.entries(objectOf(cnf) ?? {})
  return members.length > 0 && members.every(([name, value]) => confirmations.includes(name) && isFilled(value))
}

// A record must not say that the subject acted alone
const isActorNamed = (act: unknown): boolean => {
  const { sub, client_id } = objectOf(act) ?? {}
  return act === undefined || isFilled(sub ?? client_id)
}

// Each client that is named: `azp` (OpenID Connect Core §2) and `client_id` (RFC 9068 §2.2)
const isAuthorized = ({ azp, client_id }: Json, parties: ReadonlyArray<string>): boolean => {
  const clients = [azp, client_id].filter((one) => one !== undefined)
  return clients.length > 0 && clients.every((one) => typeof one === 'string' && parties.includes(one))
}

/**
 * Why the claims of an access token, or of its introspection, break a rule that does not depend on the time (RFC 8725 §3, RFC 9068 §4).
 * The issuer is not checked, because it has chosen the keys.
 */
export const refusalByClaims = (
  claims: Json,
  audiences: ReadonlyArray<string> | false,
  rules: ClaimRules,
): Why | undefined => {
  const { cnf, aud, act, iat, jti, sub, client_id } = claims
  if (!isConfirmable(cnf, rules)) return 'binding'
  if (!isFor(aud, audiences)) return 'audience'
  if (!strings.every((name) => ['undefined', 'string'].includes(typeof claims[name]))) return 'claims'
  if (!isActorNamed(act)) return 'claims'
  if (rules.authorizedParties !== undefined && !isAuthorized(claims, rules.authorizedParties)) return 'party'
  if (rules.profile === 'any') return undefined
  // RFC 9068 §2.2
  return Number.isFinite(iat) && [jti, sub, client_id].every(isFilled) ? undefined : 'claims'
}

/** The content of a token, unverified. */
export interface ParsedToken {
  readonly header: Json
  readonly claims: Json
  /** The claims for a hook, which may be used like any object. */
  readonly given: object
  /** The claims as they are written. */
  readonly payload: string
  /** What is signed: header and payload, as they were sent. */
  readonly signed: string
  readonly signature: Buffer
}

const compact = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/**
 * A token's header and claims; `undefined` if it is not a compact JWS with a JSON object as its payload. The form is
 * read strictly (RFC 7515 §7.1): no blanks, no padding, one spelling. Nothing here is verified. It may only be used to
 * choose a key set, and to refuse.
 */
export const readCompact = (token: string): ParsedToken | undefined => {
  if (!compact.test(token)) return undefined
  const [header, payload, signature] = token.split('.').map(bytesOf)
  if (header === undefined || payload === undefined || signature === undefined) return undefined
  const [said, given] = [objectIn(header), objectIn(payload)]
  if (said === undefined || given === undefined) return undefined
  const signed = token.slice(0, token.lastIndexOf('.'))
  const payloadText = payload.toString('utf8')
  return { header: ownFields(said), claims: ownFields(given), given, payload: payloadText, signed, signature }
}

// RFC 4648 §3.5: Node ignores stray bits; only the canonical form is accepted, so that a token has one spelling
const bytesOf = (part: string): Buffer | undefined => {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}

const objectIn = (bytes: Buffer): object | undefined => {
  if (!isUtf8(bytes)) return undefined
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Makes copies of claims: each reader gets its own. Claims that hold no objects, but lists of strings and the like, are copied member by
 * member, which takes a twentieth of the time of JSON.
 */
export const copierOf = (payload: string): (() => object) => {
  // Safe, both: it is a JSON object
  const parsed = (): Record<string, unknown> => JSON.parse(payload) as Record<string, unknown>
  const kept = parsed()
  const lists = Object.keys(kept).filter((name) => Array.isArray(kept[name]))
  if (Object.values(kept).some((one) => (Array.isArray(one) ? one.some(isDeep) : isDeep(one)))) return parsed
  return () => {
    const copy = { ...kept }
    for (const name of lists) Object.defineProperty(copy, name, { value: [kept[name]].flat() })
    return copy
  }
}

const isDeep = (value: unknown): boolean => typeof value === 'object' && value !== null

/** The members of what JSON.parse made, if it is an object. Objects in it are read in the same way. */
export const objectOf = (value: unknown): Json | undefined => (isObject(value) ? ownFields(value) : undefined)

/** The object that a string is as JSON, if it is one. */
export const jsonOf = (text: string): Json | undefined => {
  try {
    return objectOf(JSON.parse(text))
  } catch {
    // the error would quote the text
    return undefined
  }
}
