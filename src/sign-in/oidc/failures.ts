/**
 * What openid-client throws, as a failure and its reason. No message, claim or token of an error goes further than a
 * `raised` failure of our own configuration, which Koa logs.
 *
 * | thrown                                                              | failure       | reason     |
 * |---------------------------------------------------------------------|---------------|------------|
 * | no whole answer, a 5xx, a 429, no JSON                              | `unavailable` |            |
 * | `access_denied` in the authorization response                       | `invalid`     | `declined` |
 * | `login_required` and its kin (OpenID Connect Core §3.1.2.6)         | `absent`      | `provider` |
 * | `server_error`, `temporarily_unavailable`, wherever they come       | `unavailable` |            |
 * | another error in the authorization response                         | `invalid`     | `provider` |
 * | `invalid_grant` of the token endpoint                               | `expired`     | `late`     |
 * | another error of the token endpoint, such as `invalid_client`       | `raised`      |            |
 * | metadata without an endpoint, or with one that may not be asked     | `raised`      |            |
 * | anything else: the ID token, `iss`, userinfo                        | `invalid`     | `provider` |
 */
import * as E from 'fp-ts/lib/Either.js'
import * as AuthErrors from '../../core/AuthError.js'
import type { AuthError } from '../../core/AuthError.js'
import { failureOf as raisedFailureOf } from '../../core/Result.js'
import { providerAnswers, report } from '../../core/events.js'
import { Outage } from '../../jwt/fetching.js'
import { openidClient } from './openidClient.js'

/** A failure, and a detail for records, which names no value that was sent. */
export interface ProviderFailure {
  readonly error: AuthError
  /** What was wrong, such as `OAUTH_JWT_TIMESTAMP_CHECK_FAILED`. */
  readonly detail: string
}

/** What openid-client threw about an answer of a provider, as a failure that is reported. */
export const refused = (issuer: string, thrown: unknown, step: 'code' | 'userinfo'): E.Either<AuthError, never> => {
  const { error, detail } = failureOf(thrown, step)
  const { _tag, reason } = error
  report(providerAnswers)(() => {
    return { event: 'refused', issuer, failure: _tag, ...(reason !== undefined && { reason }), problem: detail }
  })
  return E.left(error)
}

/** A hook of the application threw, while a provider was asked. */
export class HookRaised extends Error {
  override readonly name = 'HookRaised'
}

/** An answer of a provider that a check of our own refuses. */
export class Refused extends Error {
  override readonly name = 'Refused'
}

const failure = (error: AuthError, detail: string): ProviderFailure => ({ error, detail })

const outage = (detail: string): ProviderFailure => failure(AuthErrors.unavailable(), detail)

const wrongAnswer = (detail: string): ProviderFailure => failure(AuthErrors.unfinished('provider'), detail)

const outages: ReadonlySet<unknown> = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
])

// Our registration or the provider's metadata
const configuration: ReadonlySet<unknown> = new Set([
  'OAUTH_HTTP_REQUEST_FORBIDDEN',
  'OAUTH_REQUEST_PROTOCOL_FORBIDDEN',
  'OAUTH_INVALID_SERVER_METADATA',
  'OAUTH_MISSING_SERVER_METADATA',
])

const errorsOfOutage: ReadonlySet<string> = new Set(['server_error', 'temporarily_unavailable', 'slow_down'])

// OpenID Connect Core §3.1.2.6: what a provider answers to prompt=none
const needsInteraction: ReadonlySet<string> = new Set([
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
])

// An OAuth error code (RFC 6749 §5.2), without anything that was made up
const codeIn = (error: string): string => (/^[a-z_]{1,64}$/.test(error) ? error : 'an unknown error')

// The causes of openid-client's errors hold answers of the provider, tokens included
const unexposed = (thrown: unknown): Error =>
  new Error(thrown instanceof Error ? thrown.message : 'openid-client threw', {
    cause: thrown instanceof Error ? codeOf(thrown) : undefined,
  })

// `absent`: whoever began may begin again, without prompt=none
const silentlyRefused: AuthError = Object.freeze({ _tag: 'absent', reason: 'provider' })

/** An error that says what our client did wrong, without what the provider wrote about it. */
const misconfigured = (what: string): ProviderFailure =>
  failure(AuthErrors.raised(new Error(`the provider refuses this client: ${what}`)), what)

/**
 * What openid-client threw, as a failure. `step` is what was asked: an authorization request was made (`begin`), a code
 * was exchanged (`code`), or claims were fetched (`userinfo`).
 */
export const failureOf = (thrown: unknown, step: 'begin' | 'code' | 'userinfo'): ProviderFailure => {
  const { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } = openidClient()
  const cause: unknown = thrown instanceof Error ? thrown.cause : undefined
  for (const error of [thrown, cause]) {
    if (error instanceof Outage) return outage(error.message)
    if (error instanceof HookRaised) return failure(raisedFailureOf(error.cause), 'a hook threw')
    if (error instanceof Refused) return wrongAnswer(error.message)
  }
  if (thrown instanceof AuthorizationResponseError) return answeredError(thrown.error)
  if (thrown instanceof ResponseBodyError) {
    const { error } = thrown
    if (errorsOfOutage.has(error)) return outage(error)
    if (step === 'userinfo') return wrongAnswer(codeIn(error))
    if (error === 'invalid_grant') return failure(AuthErrors.unfinished('late'), error)
    return misconfigured(codeIn(error))
  }
  if (thrown instanceof WWWAuthenticateChallengeError) {
    return step === 'userinfo' ? wrongAnswer('userinfo refused the access token') : misconfigured(`${thrown.status}`)
  }
  const code = codeOf(thrown)
  if (code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED') return wrongAnswer(`clock: ${code}`)
  if (outages.has(code)) return outage(String(code))
  if (configuration.has(code)) return failure(AuthErrors.raised(unexposed(thrown)), String(code))
  // before a code was sent, nothing but our own configuration can be wrong
  if (step === 'begin') return failure(AuthErrors.raised(unexposed(thrown)), 'raised')
  return wrongAnswer(typeof code === 'string' ? code : 'an answer that cannot be read')
}

const codeOf = (thrown: unknown): unknown => (thrown instanceof Error && 'code' in thrown ? thrown.code : undefined)

const answeredError = (error: string): ProviderFailure => {
  if (error === 'access_denied') return failure(AuthErrors.unfinished('declined'), error)
  if (errorsOfOutage.has(error)) return outage(error)
  if (needsInteraction.has(error)) return failure(silentlyRefused, error)
  return wrongAnswer(codeIn(error))
}
