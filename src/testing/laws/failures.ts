/**
 * Failures and challenges as fast-check arbitraries, for error mappers.
 */
import fc, { type Arbitrary } from 'fast-check'
import * as AuthErrors from '../../core/AuthError.js'
import type { AuthError } from '../../core/AuthError.js'
import * as Challenges from '../../core/Challenge.js'
import type { Challenge } from '../../core/Challenge.js'

/** RFC 9110 §5.6.2. */
export const tokens = (): Arbitrary<string> => fc.stringMatching(/^[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,20}$/)

const printable = fc.stringMatching(/^[\x20-\x7e]{0,20}$/)

/**
 * Challenges that a 401 can offer.
 */
export const challenges = (): Arbitrary<Challenge> =>
  fc
    .tuple(
      tokens(),
      fc.uniqueArray(fc.tuple(tokens(), printable), { selector: ([name]) => name.toLowerCase(), maxLength: 4 }),
    )
    .map(([scheme, parameters]) => Challenges.make(scheme, Object.fromEntries(parameters)))

/** Failures without a challenge; `message` is that of the exception. */
export const bareFailures = (message: Arbitrary<string> = fc.string()): Arbitrary<AuthError> =>
  fc.oneof(
    fc.constantFrom(AuthErrors.absent, AuthErrors.malformed, AuthErrors.invalid, AuthErrors.expired, AuthErrors.forged),
    fc.option(fc.array(tokens(), { maxLength: 3 }), { nil: undefined }).map(AuthErrors.insufficient),
    fc.option(fc.integer({ min: 0, max: 3600 }), { nil: undefined }).map(AuthErrors.unavailable),
    fc.option(fc.integer({ min: 0, max: 3600 }), { nil: undefined }).map(AuthErrors.throttled),
    message.map((text) => AuthErrors.raised(new Error(text))),
  )

/** Failures of one authenticator: without or with their challenge. */
export const singleFailures = (message?: Arbitrary<string>): Arbitrary<AuthError> =>
  fc
    .tuple(bareFailures(message), fc.option(challenges(), { nil: undefined }))
    .map(([error, challenge]) => (challenge === undefined ? error : { ...error, challenge }))

/**
 * Failures of every kind, of one authenticator and of lists.
 */
export const failures = (message?: Arbitrary<string>): Arbitrary<AuthError> =>
  fc.oneof(
    singleFailures(message),
    fc
      .tuple(bareFailures(message), fc.array(singleFailures(message), { maxLength: 3 }))
      .map(([error, branches]) => ({ ...error, branches })),
  )
