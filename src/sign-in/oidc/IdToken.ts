/**
 * The claims of an ID token, after openid-client's checks. What openid-client leaves open is checked here: an empty
 * `sub`, `azp` beside a single audience, an `iat` of another time, `auth_time` in the future, `at_hash`, and `acr`.
 */
import { createHash } from 'node:crypto'
import type { IDToken, TokenEndpointResponse } from 'openid-client'
import { constantTimeEqual } from '../../core/data.js'
import { bare } from '../../core/options.js'
import { readCompact } from '../../jwt/claims.js'
import type { Expected } from './AuthorizationRequest.js'
import { Refused } from './failures.js'

/** What a sign-in with a provider has shown. */
export interface OidcProof {
  readonly method: 'oidc'
  /** When, in milliseconds since 1970. */
  readonly at: number
  /** Who says so. */
  readonly issuer: string
  /** Who it is there. It never changes, and belongs to no other user of this issuer. */
  readonly subject: string
  /** When the user signed in there, in milliseconds since 1970; never after `at`. */
  readonly authTime?: number | undefined
  /** How the user signed in there, as a class. */
  readonly acr?: string | undefined
  /** How the user signed in there, such as `otp` (RFC 8176). */
  readonly amr?: ReadonlyArray<string> | undefined
  /** The session there, which a logout of the provider names. */
  readonly sid?: string | undefined
}

/** OpenID Connect Core §2: a subject has at most 255 characters; the others, too. */
const MAX_CLAIM = 255
const MAX_METHODS = 16

// Its nonce is younger than that, so a good token is, too
const MAX_AGE = 600

const isText = (u: unknown): u is string => typeof u === 'string' && u !== '' && u.length <= MAX_CLAIM

// The hash of the signature's algorithm
const hashFor = (alg: unknown): string => {
  const size = typeof alg === 'string' ? /^(?:RS|PS|ES)(256|384|512)$/.exec(alg)?.[1] : undefined
  return `sha${size ?? '512'}`
}

// §3.1.3.6: the left half of the hash of the access token that came with it
const isHashOf = (hash: unknown, { access_token: token, id_token: idToken = '' }: TokenEndpointResponse): boolean => {
  const digest = createHash(hashFor(readCompact(idToken)?.header['alg']))
    .update(token)
    .digest()
  const half = digest.subarray(0, digest.length / 2).toString('base64url')
  return typeof hash === 'string' && constantTimeEqual(hash, half)
}

/**
 * The proof in the claims of an ID token, which came with these tokens. Throws `Refused` for claims that prove nothing.
 * Times are in milliseconds.
 */
export const proofIn = (
  claims: IDToken,
  {
    tokens,
    clientId,
    expected,
    clockTolerance,
    now,
  }: {
    readonly tokens: TokenEndpointResponse
    readonly clientId: string
    readonly expected: Expected
    readonly clockTolerance: number
    readonly now: number
  },
): OidcProof => {
  const { iss, sub, azp, iat, auth_time: authTime, at_hash: hash, acr, amr, sid } = bare(claims)
  const seconds = now / 1000
  if (!isText(iss)) throw new Refused('iss')
  if (!isText(sub) || sub.trim() === '') throw new Refused('sub')
  if (azp !== undefined && azp !== clientId) throw new Refused('azp')
  if (iat > seconds + clockTolerance || iat < seconds - MAX_AGE - clockTolerance) throw new Refused('clock: iat')
  if (authTime !== undefined && authTime > seconds + clockTolerance) throw new Refused('clock: auth_time')
  if (hash !== undefined && !isHashOf(hash, tokens)) throw new Refused('at_hash')
  if (expected.acr !== undefined && !expected.acr.some((one) => one === acr)) throw new Refused('acr')
  return {
    method: 'oidc',
    at: now,
    issuer: iss,
    subject: sub,
    ...(authTime !== undefined && { authTime: Math.min(authTime * 1000, now) }),
    ...(isText(acr) && { acr }),
    ...(Array.isArray(amr) && { amr: amr.filter(isText).slice(0, MAX_METHODS) }),
    ...(isText(sid) && { sid }),
  }
}
