/** The token with which a provider says that a session of it is over (OpenID Connect Back-Channel Logout 1.0 §2.4, §2.6). */
import * as E from 'fp-ts/lib/Either.js'
import * as AuthErrors from '../../core/AuthError.js'
import type { AuthError } from '../../core/AuthError.js'
import { ownField } from '../../core/data.js'
import { objectOf, readCompact, type Json } from '../../jwt/claims.js'
import { checkSignature, parseJwks } from '../../jwt/signature.js'
import type { RelyingParty } from './oidc.js'

/** What a good token says. There is a `subject`, a `sid`, or both. */
export interface LogoutToken {
  readonly issuer: string
  readonly subject: string | undefined
  /** The session at the provider; left out if all sessions of the subject are over. */
  readonly sid: string | undefined
  /** The token's id. */
  readonly jti: string
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const TYPE = /^(?:application\/)?logout\+jwt$/i

/** How old a token may be, in seconds. */
const MAX_AGE = 600

/** How long the id of a token must be remembered, in milliseconds. */
export const REMEMBERED = 2 * MAX_AGE * 1000 + 60_000

const MAX_TOKEN = 16_384
const MAX_TEXT = 255

// Never `none`, and never a secret that is shared
const asymmetric = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/

const textIn = (claims: Json, name: string): string | undefined => {
  const value = ownField(claims, name)
  return typeof value === 'string' && value !== '' && value.length <= MAX_TEXT ? value : undefined
}

const refused = E.left(AuthErrors.invalid)

/** Verifies a token with the provider's keys, and reads it. `invalid` for one that is wrong. Never rejects. */
export const logoutTokenIn = async (
  token: string,
  { provider, clientId, clockTolerance }: RelyingParty,
): Promise<E.Either<AuthError, LogoutToken>> => {
  const compact = token.length > MAX_TOKEN ? undefined : readCompact(token)
  if (compact === undefined) return refused
  const [typ, alg, kid] = ['typ', 'alg', 'kid'].map((name) => ownField(compact.header, name))
  if (typeof typ !== 'string' || !TYPE.test(typ) || typeof alg !== 'string' || !asymmetric.test(alg)) return refused
  const configured = await provider.configuration()
  if (E.isLeft(configured)) return configured
  const { issuer, id_token_signing_alg_values_supported: supported = ['RS256'] } = configured.right.serverMetadata()
  // before the signature: the token of another issuer or client costs no work
  const read = claimsIn(compact.claims, { issuer, clientId, clockTolerance })
  if (read === undefined || !supported.includes(alg)) return refused
  const keys = await provider.keysFor(typeof kid === 'string' ? kid : undefined)
  if (E.isLeft(keys)) return keys
  return (await checkSignature(compact, parseJwks(keys.right))) === 'good' ? E.right(read) : refused
}

const claimsIn = (
  claims: Json,
  {
    issuer,
    clientId,
    clockTolerance,
  }: { readonly issuer: string; readonly clientId: string; readonly clockTolerance: number },
): LogoutToken | undefined => {
  const now = Date.now() / 1000
  const { iss, aud, iat, exp } = claims
  const audiences: ReadonlyArray<unknown> = Array.isArray(aud) ? aud : [aud]
  if (iss !== issuer || !audiences.includes(clientId)) return undefined
  if (typeof iat !== 'number' || !(iat <= now + clockTolerance && iat >= now - MAX_AGE - clockTolerance))
    return undefined
  if (exp !== undefined && !(typeof exp === 'number' && exp > now - clockTolerance)) return undefined
  // §2.4: it must have none, so that no ID token is a logout token
  if (Object.hasOwn(claims, 'nonce')) return undefined
  const events = objectOf(ownField(claims, 'events'))
  if (events === undefined || objectOf(ownField(events, EVENT)) === undefined) return undefined
  const [jti, subject, sid] = [textIn(claims, 'jti'), textIn(claims, 'sub'), textIn(claims, 'sid')]
  // a `sub` or `sid` that is there and cannot be read must not widen what ends
  const isWhole =
    (subject !== undefined || !Object.hasOwn(claims, 'sub')) && (sid !== undefined || !Object.hasOwn(claims, 'sid'))
  if (jti === undefined || !isWhole || (subject === undefined && sid === undefined)) return undefined
  return { issuer, subject, sid, jti }
}
