/**
 * The answer of a provider about a user: the proof in an ID token, the claims and tokens that came with it, or a
 * failure.
 */
import { jsonFields } from '../../core/data.js'
import { createHash } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import type { IDToken, TokenEndpointResponse, UserInfoResponse } from 'openid-client' with {
  'resolution-mode': 'import',
}
import * as AuthErrors from '../../core/AuthError.js'
import { constantTimeEqual } from '../../crypto/secrets.js'
import { report } from '../../core/events.js'
import { bare } from '../../core/options.js'
import { failureOf as raisedFailureOf, UnavailableError, type Result } from '../../core/Result.js'
import { isText, objectOf, readCompact, refusalOfIdToken } from '../../jwt/claims.js'
import { Outage } from '../../jwt/fetching.js'
import { HookRaised, Rejected, type ExpectedAnswer } from './Client.js'
import { openidClient } from './openidClient.js'
import { issuerFor } from './RemoteProvider.js'

// --- the proof

/** The proof of a sign-in with a provider. */
export interface OidcProof {
  readonly method: 'oidc'
  /** When, in milliseconds since 1970. */
  readonly at: number
  /** The issuer of the ID token. */
  readonly issuer: string
  /** The identifier of the user there. It never changes, and belongs to no other user of this issuer. */
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

const MAX_METHODS = 16

// The hash of the signature's algorithm
const hashFor = (alg: unknown): string => {
  const size = typeof alg === 'string' ? /^(?:RS|PS|ES|HS)(256|384|512)$/.exec(alg)?.[1] : undefined
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
 * The proof in the claims of an ID token, which came with these tokens. Throws `Rejected` for claims that prove nothing. The tolerance
 * is in seconds.
 */
export const proofIn = (
  claims: IDToken,
  tokens: TokenEndpointResponse,
  expected: ExpectedAnswer & { readonly issuer: string; readonly clientId: string },
  clockTolerance: number,
): OidcProof => {
  const own = bare(claims)
  const now = Date.now()
  const isHash = (hash: unknown): boolean => isHashOf(hash, tokens)
  const { clientId, acr: classes } = expected
  const wrong = refusalOfIdToken(own, { clientId, acr: classes, isHash }, clockTolerance, now / 1000)
  if (wrong !== undefined) throw new Rejected(wrong)
  const { iss, sub, auth_time: authTime, acr, amr, sid, tid } = own
  if (iss !== issuerFor(expected.issuer, tid)) throw new Rejected('iss')
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

// --- claims and tokens

/**
 * The answer of a provider beside the proof. The hook of `finish` can read it, and nothing keeps it: it is no member of the
 * proof, so neither a session nor a log gets it.
 */
export interface ProviderAnswer {
  /** The claims of the ID token; `undefined` for plain OAuth 2.0. */
  readonly claims: IDToken | undefined
  /** The claims of userinfo, if `userinfo: true` asked for them. */
  readonly userinfo: UserInfoResponse | undefined
  /** The tokens, such as `access_token`. The library keeps none of them. */
  readonly tokens: TokenEndpointResponse
  /**
   * Members of a posted answer that are not signed: any client may have written them, so they identify no user. `user` is the object that Apple
   * sends at the first sign-in of a user, and never again; at most 2,000 characters.
   */
  readonly unsigned?: { readonly user: Readonly<Record<string, unknown>> } | undefined
}

export const unsignedIn = (user: string | undefined): ProviderAnswer['unsigned'] => {
  const read = user === undefined ? undefined : jsonFields(user)
  return read === undefined ? undefined : { user: read }
}

// The proof is copied before the hook gets it, and a symbol is copied with it
const carrier = Symbol('koa-with-auth/provider-answer')

const answers = new WeakMap<object, ProviderAnswer>()

export const withAnswer = <P extends object>(proof: P, answer: ProviderAnswer): P => {
  const key = Object.freeze({})
  answers.set(key, answer)
  return { ...proof, [carrier]: key }
}

/**
 * The claims and tokens that came with a proof, in the hook of `finish`: for the name of a new account, or to call the
 * provider's API. `undefined` for a proof that a session has kept, or that is no provider's.
 *
 * Never find a user by the e-mail address in the claims. Addresses change hands, and some providers let users write
 * any address into a profile. A user is found by `proof.issuer` and `proof.subject`.
 *
 * @example
 * import { providerAnswer } from 'koa-with-auth/sign-in/oidc'
 *
 * assert.strictEqual(providerAnswer({ method: 'password', at: 0 }), undefined)
 */
export const providerAnswer = (proof: object): ProviderAnswer | undefined => {
  const key: unknown = Object.hasOwn(proof, carrier) ? Reflect.get(proof, carrier) : undefined
  return typeof key === 'object' && key !== null ? answers.get(key) : undefined
}

// --- failures

/** A failure, and its cause, such as `OAUTH_JWT_TIMESTAMP_CHECK_FAILED`, for records: no value that was sent. */
interface ProviderFailure {
  readonly error: AuthErrors.AuthError
  readonly problem: string
}

/** Reports an exception of openid-client about an answer, and returns its failure. */
export const rejected = (issuer: string, thrown: unknown, step: 'code' | 'userinfo'): Result<never> => {
  const { error, problem } = providerFailureOf(thrown, step)
  const { _tag: failure, reason } = error
  report('provider-answer')(() => ({
    ...{ event: 'refused', issuer, failure, problem },
    ...(reason !== undefined && { reason }),
  }))
  return E.left(error)
}

/** The exception of a beginning, which cannot return a failure, for an exception of openid-client. */
export const asThrown = (thrown: unknown): unknown => {
  const { error } = providerFailureOf(thrown, 'begin')
  return error._tag === 'raised' ? error.error : new UnavailableError('the provider')
}

const outage = (problem: string): ProviderFailure => ({ error: AuthErrors.unavailable(), problem })

const wrongAnswer = (problem: string): ProviderFailure => ({ error: AuthErrors.unfinished('provider'), problem })

// Our own mistake, which Koa logs: its kind, without the words of the provider
const misconfigured = (problem: string, error = new Error(`the provider refuses this client: ${problem}`)) => ({
  error: AuthErrors.raised(error),
  problem,
})

const outages = /^OAUTH_(?:TIMEOUT|ABORT|RESPONSE_IS_NOT_CONFORM|RESPONSE_IS_NOT_JSON)$/

// Our registration or the provider's metadata
const misconfigurations = /^OAUTH_(?:(?:HTTP_REQUEST|REQUEST_PROTOCOL)_FORBIDDEN|(?:INVALID|MISSING)_SERVER_METADATA)$/

const errorsOfOutage = /^(?:server_error|temporarily_unavailable|slow_down)$/

// OpenID Connect Core §3.1.2.6: answers to prompt=none
const needsInteraction = /^(?:login|interaction|consent|account_selection)_required$/

// `absent`: the user may begin again, without prompt=none
const silentlyRefused: AuthErrors.AuthError = Object.freeze({ _tag: 'absent', reason: 'provider' })

// RFC 6749 §4.1.2.1, and the codes of Apple and LinkedIn
const declined = /^(?:access_denied|user_cancell?ed_(?:authorize|login))$/

// An OAuth error code (RFC 6749 §5.2), without anything that was made up
const codeIn = (error: string): string => (/^[a-z_]{1,64}$/.test(error) ? error : 'an unknown error')

// The causes of openid-client's errors hold answers of the provider, tokens included
const unexposed = (thrown: unknown): Error =>
  new Error(thrown instanceof Error ? thrown.message : 'openid-client threw', {
    cause: thrown instanceof Error ? openidCode(thrown) : undefined,
  })

// `step`: an authorization request (`begin`), tokens for a code (`code`), or claims (`userinfo`) were asked for
const providerFailureOf = (thrown: unknown, step: 'begin' | 'code' | 'userinfo'): ProviderFailure => {
  const { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } = openidClient()
  const cause: unknown = thrown instanceof Error ? thrown.cause : undefined
  for (const error of [thrown, cause]) {
    if (error instanceof Outage) return outage(error.message)
    if (error instanceof HookRaised) return { error: raisedFailureOf(error.cause), problem: 'a hook threw' }
    if (error instanceof Rejected) return wrongAnswer(error.message)
  }
  if (thrown instanceof AuthorizationResponseError) return answeredError(thrown.error)
  if (thrown instanceof ResponseBodyError) {
    const { error } = thrown
    if (errorsOfOutage.test(error)) return outage(error)
    if (step === 'userinfo') return wrongAnswer(codeIn(error))
    if (error === 'invalid_grant') return { error: AuthErrors.unfinished('late'), problem: error }
    return misconfigured(codeIn(error))
  }
  if (thrown instanceof WWWAuthenticateChallengeError) {
    return step === 'userinfo' ? wrongAnswer('userinfo refused the access token') : misconfigured(`${thrown.status}`)
  }
  const code = openidCode(thrown) ?? ''
  const name = wrongClaimIn(cause)
  if (code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED') return wrongAnswer(`clock: ${name ?? 'exp'}`)
  if (outages.test(code)) return outage(code)
  if (misconfigurations.test(code)) return misconfigured(code, unexposed(thrown))
  // before a code was sent, nothing but our own configuration can be wrong
  if (step === 'begin') return misconfigured('raised', unexposed(thrown))
  return wrongAnswer(name ?? (code || 'an answer that cannot be read'))
}

const answeredError = (error: string): ProviderFailure => {
  if (declined.test(error)) return { error: AuthErrors.unfinished('declined'), problem: codeIn(error) }
  if (errorsOfOutage.test(error)) return outage(error)
  if (needsInteraction.test(error)) return { error: silentlyRefused, problem: error }
  return wrongAnswer(codeIn(error))
}

// The names of claims and members that openid-client may find wrong, which its errors have only in their words
const claimNames =
  /"(iss|aud|azp|sub|exp|iat|nbf|nonce|auth_time|acr|alg|scope|token_type|access_token|refresh_token|id_token|expires_in)"/

// The claim that an error of oauth4webapi is about: no value that was sent
const wrongClaimIn = (cause: unknown): string | undefined => {
  if (!(cause instanceof Error)) return undefined
  if (/JWS algorithm/.test(cause.message)) return `algorithm${algorithmIn(cause.cause)}`
  if (/`token_type`/.test(cause.message)) return 'token_type'
  const name = claimNames.exec(cause.message)?.[1]
  return name === 'alg' ? `algorithm${algorithmIn(cause.cause)}` : name
}

// Its name, if it is one that is registered
const algorithmIn = (cause: unknown): string => {
  const { header = cause } = objectOf(cause) ?? {}
  const alg = objectOf(header)?.['alg']
  return typeof alg === 'string' && /^(?:(?:HS|RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519|none)$/.test(alg)
    ? `: ${alg}`
    : ''
}

const openidCode = (thrown: unknown): string | undefined =>
  thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined
