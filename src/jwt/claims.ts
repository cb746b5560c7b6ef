/**
 * The claims that tokens must have, in one place for all kinds of tokens (access tokens, answers of introspection, proofs of possession, logout and
 * ID tokens), and how their compact form is read (RFC 7519 §4.1). Everything is pure, and knows no keys. Inherited properties are not
 * claims, so a polluted prototype adds none.
 */
import { isUtf8 } from 'node:buffer'
import type { Why } from '../core/AuthError.js'
import { isFilled, isRecord } from '../core/checks.js'
import { jsonFields, ownFields } from '../core/data.js'
import { digest } from '../crypto/secrets.js'

/** The claims that say how the user of a token authenticated (RFC 9068 §2.2.1, RFC 9470 §6). `requireAuthentication` checks them. */
export interface AuthenticationClaims {
  /** The authentication context class. */
  readonly acr?: unknown
  /** When the user authenticated, in seconds since 1970. */
  readonly auth_time?: unknown
}

/** The claims of tokens and of answers of introspection. */
export interface TokenClaims extends AuthenticationClaims {
  readonly aud: string | ReadonlyArray<string>
  readonly sub?: string
  readonly client_id?: string
  /** The actor for `sub` now. `act` of an actor is the actor before, and grants nothing. Scopes are those of the token, never of an actor. */
  readonly act?: Actor
  readonly [claim: string]: unknown
}

/** The claims of a verified token. */
export interface JwtClaims extends TokenClaims {
  readonly iss: string
  /** When it expires, in seconds since 1970. */
  readonly exp: number
  readonly iat?: number
  readonly nbf?: number
  readonly jti?: string
  readonly azp?: string
}

/** The actor for the subject of a token (RFC 8693 §4.1), by `sub` or `client_id`. */
export interface Actor {
  readonly sub?: string
  readonly client_id?: string
  readonly act?: unknown
  readonly [claim: string]: unknown
}

/** In seconds. */
interface Times {
  readonly clockTolerance: number
  /** If it is set, tokens must have `iat`. */
  readonly maxTokenAge: number | undefined
}

export interface ClaimRules extends Times {
  readonly profile: 'any' | 'rfc9068'
  /** The clients (`azp`, `client_id`) that are let in. */
  readonly authorizedParties: ReadonlyArray<string> | undefined
  /** The members of `cnf` (RFC 7800 §3.1) that somebody checks. */
  readonly confirmations: ReadonlyArray<string>
  readonly isBindingRequired: boolean
}

/** A JSON object without a prototype, so that an inherited property is no member. */
export type Json = Readonly<Record<string, unknown>>

const isTimestamp = (u: unknown): u is number => typeof u === 'number' && Number.isFinite(u)

/**
 * Why a token is refused at a time, in seconds. The caller must report `expired` only if the signature is good. Without `isExpDemanded`
 * (introspection), `exp` may be absent. An `iat` that is ahead of this clock is no reason (RFC 7519 §4.1.6), unless the age is limited.
 */
export const refusalByTime = (
  claims: Json,
  { clockTolerance, maxTokenAge }: Times,
  now: number,
  isExpDemanded = true,
): Extract<Why, 'claims' | 'expired' | 'not yet'> | undefined => {
  const { exp, nbf, iat } = claims
  // JSON reads 1e400 as Infinity
  if (exp === undefined ? isExpDemanded : !isTimestamp(exp)) return 'claims'
  if (nbf !== undefined && !isTimestamp(nbf)) return 'claims'
  if (iat === undefined ? maxTokenAge !== undefined : !isTimestamp(iat)) return 'claims'
  const latest = now + clockTolerance
  if ((isTimestamp(nbf) && nbf > latest) || (maxTokenAge !== undefined && isTimestamp(iat) && iat > latest))
    return 'not yet'
  if (maxTokenAge !== undefined && isTimestamp(iat) && now - iat > maxTokenAge + clockTolerance) return 'expired'
  return isTimestamp(exp) && now >= exp + clockTolerance ? 'expired' : undefined
}

/** Whether a claim is a string that can be kept. A subject has at most 255 characters (OpenID Connect Core §2); the others, too. */
export const isText = (u: unknown): u is string => isFilled(u) && u.length <= 255

// RFC 7519 §4.1.3. `false`: its type is right, or it is absent
const isFor = (aud: unknown, audiences: ReadonlyArray<string> | false): boolean => {
  const named: ReadonlyArray<unknown> = Array.isArray(aud) ? aud : aud === undefined ? [] : [aud]
  return (
    named.every((one) => typeof one === 'string') &&
    (audiences === false || named.some((one) => audiences.includes(one)))
  )
}

// --- access tokens

/** The values that an access token is compared to. */
interface Claimed {
  readonly claims: Json
  /** `false`: `aud` is not looked at. */
  readonly audiences: ReadonlyArray<string> | false
  readonly rules: ClaimRules
}

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

// RFC 8725 §3, RFC 9068 §4. The issuer is not checked, because it has chosen the keys
const refusalOfAccess = ({ claims, audiences, rules }: Claimed): Why | undefined => {
  const { cnf, aud, act, iat, jti, sub, client_id, azp } = claims
  if (!isConfirmable(cnf, rules)) return 'binding'
  if (!isFor(aud, audiences)) return 'audience'
  // RFC 7519 §4.1, RFC 9068 §2.2, RFC 7662 §2.2: strings if they are present
  if (![sub, jti, client_id, azp].every((one) => one === undefined || typeof one === 'string')) return 'claims'
  if (!isActorNamed(act)) return 'claims'
  if (rules.authorizedParties !== undefined && !isAuthorized(claims, rules.authorizedParties)) return 'party'
  if (rules.profile === 'any') return undefined
  // RFC 9068 §2.2
  return Number.isFinite(iat) && [jti, sub, client_id].every(isFilled) ? undefined : 'claims'
}

// RFC 7515 §4.1.9: media types compare in any letter case, and `application/` may be left out
const mediaType = (typ: unknown): string | undefined =>
  typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined

/** Why an access token is refused. `expired` counts only if the signature is good. */
export const refusalOfAccessToken = (
  { typ, b64, alg }: Json,
  algorithms: ReadonlyArray<string>,
  access: Claimed,
  now: number,
): Why | undefined => {
  const type = mediaType(typ)
  // RFC 8725 §3.11, RFC 9068 §4
  if (type !== 'at+jwt' && (access.rules.profile !== 'any' || (typ !== undefined && type !== 'jwt'))) return 'type'
  // RFC 7797 §7: not allowed in a JWT
  if (b64 !== undefined && b64 !== true) return 'type'
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return 'algorithm'
  return refusalOfAccess(access) ?? refusalByTime(access.claims, access.rules, now)
}

/** Why an answer of introspection is refused. `issuer`: the issuer that was asked; `undefined` if only its address is known. */
export const refusalOfIntrospection = (issuer: string | undefined, access: Claimed, now: number): Why | undefined => {
  const { active, iss, token_type: type } = access.claims
  // RFC 7662 §2.2: only `true`. The server says nothing of the cause
  if (active !== true) return 'revoked'
  // RFC 9449 §5: bound to a key, so never accepted as a plain bearer token
  if (type !== undefined && (typeof type !== 'string' || type.toLowerCase() === 'dpop')) return 'binding'
  // RFC 7662 §2.2: `iss` may be left out
  if (issuer !== undefined && iss !== undefined && iss !== issuer) return 'issuer'
  return refusalOfAccess(access) ?? refusalByTime(access.claims, access.rules, now, false)
}

// --- proofs of possession (RFC 9449 §4.3)

/** Whether a proof has the members that reading its key needs. */
export const isProof = ({ typ, alg }: Json, { jti }: Json, algorithms: ReadonlyArray<string>): boolean =>
  typ === 'dpop+jwt' && typeof alg === 'string' && algorithms.includes(alg) && isFilled(jti)

/**
 * Why a proof is refused that is of the right key. `isHere`: whether `htm` and `htu` are those of the request. Without a
 * token, it must name none.
 */
export const refusalOfProof = (
  claims: Json,
  isHere: boolean,
  token: string | undefined,
  times: Times,
  now: number,
): 'request' | 'time' | 'token' | undefined => {
  if (!isHere) return 'request'
  if (refusalByTime(claims, times, now, false) !== undefined) return 'time'
  return claims['ath'] === (token === undefined ? undefined : digest(token)) ? undefined : 'token'
}

// --- tokens of a provider's sign-in

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

// Never `none`, and never a secret that is shared
const asymmetric = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/

/** Whether the header is that of a logout token, with any issuer (Back-Channel Logout 1.0 §2.4). */
export const isLogout = ({ typ, alg }: Json): boolean =>
  mediaType(typ) === 'logout+jwt' && typeof alg === 'string' && asymmetric.test(alg)

/** Whether a logout token has the claims that it must have (§2.4, §2.6). */
export const isGoodLogout = (
  claims: Json,
  { issuer, clientId }: { readonly issuer: string; readonly clientId: string },
  times: Times,
  now: number,
): boolean => {
  const { iss, aud, events, jti, sub, sid } = claims
  return (
    iss === issuer &&
    isFor(aud, [clientId]) &&
    refusalByTime(claims, times, now, false) === undefined &&
    // it must have none, so that no ID token is a logout token
    !('nonce' in claims) &&
    objectOf(objectOf(events)?.[EVENT]) !== undefined &&
    isText(jti) &&
    // a member that is there and cannot be read must not end more sessions
    [sub, sid].every((one) => one === undefined || isText(one)) &&
    (sub ?? sid) !== undefined
  )
}

// Its nonce is younger than that, so a good token is, too
const MAX_ID_TOKEN_AGE = 600

/**
 * The claim for which an ID token is refused. openid-client leaves these checks open: an empty `sub`, `azp` beside a single
 * audience, an `iat` of another time, `auth_time` in the future, `at_hash`, and `acr`.
 */
export const refusalOfIdToken = (
  { iss, sub, azp, iat, auth_time: authTime, at_hash: atHash, acr }: Json,
  wanted: {
    readonly clientId: string
    readonly acr: ReadonlyArray<string> | undefined
    readonly isHash: (atHash: unknown) => boolean
  },
  clockTolerance: number,
  now: number,
): string | undefined => {
  const isPast = (time: unknown): time is number => isTimestamp(time) && time <= now + clockTolerance
  if (!isText(iss)) return 'iss'
  if (!isText(sub) || sub.trim() === '') return 'sub'
  if (azp !== undefined && azp !== wanted.clientId) return 'azp'
  if (!isPast(iat) || iat < now - MAX_ID_TOKEN_AGE - clockTolerance) return 'clock: iat'
  if (authTime !== undefined && !isPast(authTime)) return 'clock: auth_time'
  if (atHash !== undefined && !wanted.isHash(atHash)) return 'at_hash'
  return wanted.acr === undefined || wanted.acr.some((one) => one === acr) ? undefined : 'acr'
}

// --- the compact form

export interface ParsedToken {
  readonly header: Json
  readonly claims: Json
  /** The claims for a hook, which may be used like any object. */
  readonly given: object
  readonly payload: string
  /** The signed part: header and payload, as they were sent. */
  readonly signed: string
  readonly signature: Buffer
}

const compact = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/**
 * A token's header and claims; `undefined` if it is not a compact JWS with a JSON object as its payload. The form is read strictly (RFC
 * 7515 §7.1): no blanks, no padding, one spelling. Nothing here is verified. It may only be used to choose a key set, and to refuse.
 */
export const readCompact = (token: string): ParsedToken | undefined => {
  if (!compact.test(token)) return undefined
  const [header, payload, signature] = token.split('.').map(canonicalBytes)
  if (header === undefined || payload === undefined || signature === undefined) return undefined
  if (!isUtf8(header) || !isUtf8(payload)) return undefined
  const text = payload.toString('utf8')
  const [said, claims] = [jsonFields(header.toString('utf8')), jsonFields(text)]
  if (said === undefined || claims === undefined) return undefined
  const signed = token.slice(0, token.lastIndexOf('.'))
  return { header: said, claims, given: { ...claims }, payload: text, signed, signature }
}

// The last characters whose stray bits are zero, by how many characters of a group of four there are
const canonicalEnds: ReadonlyArray<string> = ['', '', 'AQgw', 'AEIMQUYcgkosw048']

// RFC 4648 §3.5: Node ignores stray bits; only the canonical form is accepted, so that a token has one spelling. The letters were checked before
const canonicalBytes = (part: string): Buffer | undefined => {
  const rest = part.length % 4
  return rest === 0 || canonicalEnds[rest]?.includes(part.slice(-1)) === true
    ? Buffer.from(part, 'base64url')
    : undefined
}

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

/** The members of the result of JSON.parse, if it is an object. Objects in it are read in the same way. */
export const objectOf = (value: unknown): Json | undefined => (isRecord(value) ? ownFields(value) : undefined)
