/** Random credentials, requests and failures. */
import fc, { type Arbitrary } from 'fast-check'
import * as AuthErrors from '../../core/AuthError.js'
import type { AuthError } from '../../core/AuthError.js'
import * as Challenges from '../../core/Challenge.js'
import type { Challenge } from '../../core/Challenge.js'
import { notoriousTexts } from '../attacks.js'
import { decidingNothing, HOST, type RequestSpec } from '../requests.js'

/** Secrets of at least 16 letters and digits: too long to be in a response by chance. */
export const secretTexts = (): Arbitrary<string> => fc.stringMatching(/^[A-Za-z0-9]{16,40}$/)

/** Hostile credentials: notorious strings, and any bytes that a header can carry. */
export const hostileTexts = (): Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom(...notoriousTexts),
    // RFC 9110 §5.5: the characters that a field can contain
    fc.string({ unit: fc.constantFrom(...fieldCharacters), maxLength: 40 }),
  )

const fieldCharacters = [...Array(256).keys()]
  .filter((code) => code === 9 || (code >= 32 && code !== 127))
  .map((code) => String.fromCharCode(code))

/** Requests without a credential: any method, pages of this and of other sites, fields that must not decide anything. */
export const requestSpecs = (): Arbitrary<RequestSpec> =>
  fc
    .record({
      method: fc.constantFrom('GET', 'HEAD', 'POST', 'DELETE'),
      site: fc.constantFrom(undefined, 'same-origin', 'same-site', 'cross-site', 'none'),
      origin: fc.constantFrom(undefined, `https://${HOST}`, 'https://other.example', 'null'),
      beside: fc.option(fc.constantFrom(...decidingNothing), { nil: undefined, freq: 3 }),
    })
    .map(({ method, site, origin, beside }) => ({
      method,
      fields: [
        ['Host', HOST],
        ...(site === undefined ? [] : [['Sec-Fetch-Site', site] as const]),
        ...(origin === undefined ? [] : [['Origin', origin] as const]),
        ...(beside === undefined ? [] : [beside]),
      ],
    }))

/** RFC 9110 §5.6.2. */
const tokens = (): Arbitrary<string> => fc.stringMatching(/^[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,20}$/)

const challenges = (): Arbitrary<Challenge> =>
  fc
    .tuple(
      tokens(),
      fc.uniqueArray(fc.tuple(tokens(), fc.stringMatching(/^[\x20-\x7e]{0,20}$/)), {
        selector: ([name]) => name.toLowerCase(),
        maxLength: 4,
      }),
    )
    .map(([scheme, parameters]) => Challenges.make(scheme, Object.fromEntries(parameters)))

const failureReasons = (): Arbitrary<AuthErrors.FailureReason> =>
  fc.record({ detail: fc.string({ minLength: 1 }), code: fc.string({ minLength: 1 }) }, { requiredKeys: [] })

/** Failures without a challenge; `message` is that of the exception. */
const bareFailures = (message: Arbitrary<string> = fc.string()): Arbitrary<AuthError> =>
  fc.oneof(
    fc.constantFrom(AuthErrors.absent, AuthErrors.malformed, AuthErrors.forged, AuthErrors.notFound),
    // Mappers get objects, never the plain values that can be called
    failureReasons().chain((reason) =>
      fc.constantFrom({ ...AuthErrors.invalid(reason) }, { ...AuthErrors.expired(reason) }),
    ),
    failureReasons().map(AuthErrors.insufficient),
    fc.option(fc.array(tokens(), { maxLength: 3 }), { nil: undefined }).map(AuthErrors.insufficient),
    fc.option(fc.integer({ min: 0, max: 3600 }), { nil: undefined }).map(AuthErrors.unavailable),
    fc.option(fc.integer({ min: 0, max: 3600 }), { nil: undefined }).map(AuthErrors.throttled),
    message.map((text) => AuthErrors.raised(new Error(text))),
  )

const singleFailures = (message?: Arbitrary<string>): Arbitrary<AuthError> =>
  fc
    .tuple(bareFailures(message), fc.option(challenges(), { nil: undefined }))
    .map(([error, challenge]) => (challenge === undefined ? error : { ...error, challenge }))

export const randomFailures = (message?: Arbitrary<string>): Arbitrary<AuthError> =>
  fc.oneof(
    singleFailures(message),
    fc
      .tuple(bareFailures(message), fc.array(singleFailures(message), { maxLength: 3 }))
      .map(([error, branches]) => ({ ...error, branches })),
  )
