/**
 * Why a request was not authenticated: a closed union of failures, ordered by strength, folded by a semigroup.
 *
 * A failure is data: it names the cause, and never holds a credential. The error mapper (`Settings.ts`) decides
 * which HTTP response it becomes.
 *
 * `failures` has all of them, from the weakest to the strongest.
 *
 * @example
 * import * as E from 'fp-ts/lib/Either.js'
 * import { AuthError, httpBearer } from 'koa-with-auth'
 *
 * // with a reason for the client: members of the problem document
 * const suspended = AuthError.invalid({ detail: 'This account is suspended.', code: 'user_suspended' })
 * // a hook returns a failure of its choice, or puts it on the left
 * const bearer = httpBearer({
 *   authenticate: (_request, token) => (token === 'old' ? E.left(AuthError.expired) : suspended),
 * })
 */
import type * as ord from 'fp-ts/lib/Ord.js'
import type { Ordering } from 'fp-ts/lib/Ordering.js'
import type * as semigroup from 'fp-ts/lib/Semigroup.js'
import type { Challenge } from './Challenge.js'
import { unfinishedReasons, type UnfinishedReason } from './UnfinishedReason.js'
import { deepFreeze, frozenCopy } from './data.js'
import { list, maybe, nonEmpty } from './checks.js'
import { checkOptions, type Check, type Checks } from './options.js'

/** Why, for the client: members of the problem document (RFC 9457 §3). They are never in a challenge. */
export interface FailureReason {
  /** An explanation for people; default: the title of the status. */
  readonly detail?: string | undefined
  /** A name for programs, such as `user_suspended`. */
  readonly code?: string | undefined
}

/** The reason of `insufficient`, and the scopes that would be needed. */
export interface InsufficientReason extends FailureReason {
  readonly scope?: ReadonlyArray<string> | undefined
}

interface Failure<Tag extends string> extends FailureReason {
  readonly _tag: Tag
  /** The credentials that the client should send instead; the authenticator that failed fills them in. */
  readonly challenge?: Challenge
  /** Every failure of a list or a group, in the order tried. Left out for a single failure. */
  readonly branches?: ReadonlyArray<AuthError>
  /** Set on a branch that was not asked, because another branch had decided. It is listed for its challenge. */
  readonly skipped?: true
  /** Why a sign-in was not finished. Such a failure is a 400 or a 403, as the reason says. */
  readonly reason?: UnfinishedReason
  /** The cause, for developers: `explain`, `NODE_DEBUG` and records have it, and no other response. */
  readonly why?: Why
}

/**
 * The cause of a failure, for developers. It never holds a part of the credential.
 *
 * | why            | meaning                                                                              |
 * |----------------|--------------------------------------------------------------------------------------|
 * | `syntax`       | the credential breaks the syntax of its kind                                         |
 * | `encoding`     | a password that is not UTF-8 (RFC 7617 §2.1)                                         |
 * | `length`       | it is longer than `maxLength`                                                        |
 * | `twice`        | it was sent more than once                                                           |
 * | `body`         | no parser reads a body of this content type; or it is not the body that was signed   |
 * | `origin`       | another site made the browser send it (Sec-Fetch-Site, or Origin beside Host)        |
 * | `issuer`       | `iss` names no issuer of the options                                                 |
 * | `audience`     | `aud` names no audience of the options                                               |
 * | `party`        | `azp`, `client_id` or an agent is no authorized party                                |
 * | `algorithm`    | `alg` is not accepted                                                                |
 * | `type`         | `typ` is not that of an access token (RFC 8725 §3.11)                                |
 * | `claims`       | a claim is missing, has the wrong type, or is refused by the schema                  |
 * | `key`          | no key fits: the `kid` of a token, an API key that is unknown                        |
 * | `signature`    | the signature is wrong                                                               |
 * | `expired`      | it has expired                                                                       |
 * | `not yet`      | its time has not begun: `nbf`, or the validity of a certificate                      |
 * | `revoked`      | it was revoked                                                                       |
 * | `binding`      | it is bound to another key or certificate, or must be bound                          |
 * | `proof`        | the proof of possession of a key is wrong (RFC 9449 §4.3)                            |
 * | `replay`       | it counts once, and was used before                                                  |
 * | `certificate`  | the certificate is of no accepted authority                                          |
 * | `user`         | the user of the session is inactive or unknown: anonymous behind `optional`          |
 * | `right`        | the user of the session has not the right                                            |
 * | `components`   | a component that the signature must cover is not covered, or cannot be known         |
 * | `partial`      | of credentials that are needed together, not all were sent                          |
 * | `hook`         | the hook returned no principal                                                       |
 * | `upstream`     | the provider has ended the grant of this user: begin there again                     |
 */
export type Why =
  | 'syntax'
  | 'encoding'
  | 'length'
  | 'twice'
  | 'body'
  | 'origin'
  | 'issuer'
  | 'audience'
  | 'party'
  | 'algorithm'
  | 'type'
  | 'claims'
  | 'key'
  | 'signature'
  | 'expired'
  | 'not yet'
  | 'revoked'
  | 'binding'
  | 'proof'
  | 'replay'
  | 'certificate'
  | 'user'
  | 'right'
  | 'components'
  | 'partial'
  | 'hook'
  | 'upstream'

/** No credentials of this kind were sent. */
export interface Absent extends Failure<'absent'> {}
/** Credentials that break the syntax of their kind, are too long, or were sent twice. */
export interface Malformed extends Failure<'malformed'> {}
/** Credentials that were refused. */
export interface Invalid extends Failure<'invalid'> {}
/** Credentials that have expired. */
export interface Expired extends Failure<'expired'> {}
/** Good credentials that another site made a browser send. */
export interface Forged extends Failure<'forged'> {}
/**
 * Authenticated, but not allowed; `scope` lists the scopes that are needed (RFC 6750 §3.1), `proof` the proof. With
 * `authentication` it is a 401: the user of the token must authenticate again (RFC 9470 §3).
 */
export interface Insufficient extends Failure<'insufficient'> {
  readonly scope?: ReadonlyArray<string>
  readonly proof?: NeededProof
  readonly authentication?: NeededAuthentication
  /** The object that is not for this caller (`owned` with `refuse: 403`). */
  readonly object?: string
}
/**
 * Authenticated, but the object that the path names is not there, or is not for this caller. Which of the two is not said. `object`
 * is the name that `owned` has.
 */
export interface NotFound extends Failure<'notFound'> {
  readonly object?: string
}
/** The proof that a user must give: by one of these methods, at most `maxAge` seconds ago. */
export interface NeededProof {
  readonly methods?: ReadonlyArray<string> | undefined
  readonly maxAge?: number | undefined
}
/** How the user of a token must authenticate: in one of these classes (`acr`), at most `maxAge` seconds ago. */
export interface NeededAuthentication {
  readonly acr?: ReadonlyArray<string> | undefined
  readonly maxAge?: number | undefined
}
/** Too many guesses were made, so the credential was not looked at; `retryAfter` is in seconds (RFC 6585 §4). */
export interface Throttled extends Failure<'throttled'> {
  readonly retryAfter?: number
}
/** The decision cannot be made now; `retryAfter` is in seconds. */
export interface Unavailable extends Failure<'unavailable'> {
  readonly retryAfter?: number
}
/** The hook threw, or its promise rejected; `error` is the exception. */
export interface Raised extends Failure<'raised'> {
  readonly error: unknown
}

/** Why a request was not authenticated. */
export type AuthError =
  Absent | Malformed | Invalid | Expired | Forged | Insufficient | NotFound | Throttled | Unavailable | Raised

/** The client sent no credentials of this kind. */
export const absent: AuthError = deepFreeze({ _tag: 'absent' })

/** The credentials break the syntax of their kind, are too long, or were sent twice. */
export const malformed: AuthError = deepFreeze({ _tag: 'malformed' })

/** `invalid` without a reason. Called with a reason, it returns `invalid` with this reason. */
export interface PlainInvalid extends Invalid {
  (reason?: FailureReason): AuthError
}

/** `expired` without a reason. Called with a reason, it returns `expired` with this reason. */
export interface PlainExpired extends Expired {
  (reason?: FailureReason): AuthError
}

const reasonChecks: Checks<FailureReason> = { detail: maybe(nonEmpty), code: maybe(nonEmpty) }

// A plain value can be called, and is data in all other respects: its only property is its tag. So it is spread, printed and
// serialized like the other failures
const likeData: object = Object.create(Function.prototype, {
  toJSON: { value: asPlainData },
  [Symbol.for('nodejs.util.inspect.custom')]: { value: asPlainData },
})
function asPlainData(this: object): object {
  return { ...this }
}

const callableFailure = (tag: 'invalid' | 'expired'): AuthError & ((reason?: FailureReason) => AuthError) => {
  const withReason = (reason: FailureReason = {}): AuthError => {
    const given = checkOptions(`AuthError.${tag}`, reason, reasonChecks)
    return Object.keys(given).length === 0 ? value : deepFreeze({ _tag: tag, ...given })
  }
  for (const name of ['length', 'name']) Reflect.deleteProperty(withReason, name)
  Object.setPrototypeOf(withReason, likeData)
  const value = Object.freeze(Object.assign(withReason, { _tag: tag }))
  return value
}

// Safe, both: the value has this tag
/** The credentials were refused. `AuthError.invalid({ detail, code })` says why, to the client. */
export const invalid: PlainInvalid = callableFailure('invalid') as PlainInvalid

/** The credentials were good once. `AuthError.expired({ detail, code })` says more, to the client. */
export const expired: PlainExpired = callableFailure('expired') as PlainExpired

/** The credentials are good, but another site made the browser send them. */
export const forged: AuthError = deepFreeze({ _tag: 'forged', why: 'origin' })

const scopes: Check = (where, value) => {
  list(where, value)
  // Safe: it is an array
  for (const one of value as ReadonlyArray<unknown>) nonEmpty(`each of ${where}`, one)
}

const insufficientChecks: Checks<InsufficientReason> = { ...reasonChecks, scope: maybe(scopes) }

/** Takes the scopes, or a reason with scopes. Throws a TypeError for anything else. */
export const insufficient = (scope?: ReadonlyArray<string> | InsufficientReason): AuthError => {
  if (scope === undefined) return deepFreeze({ _tag: 'insufficient' })
  // Safe: `isArray` does not narrow readonly arrays
  if (Array.isArray(scope))
    return deepFreeze({ _tag: 'insufficient', scope: frozenCopy(scope as ReadonlyArray<string>) })
  const reason = checkOptions('AuthError.insufficient', scope as InsufficientReason, insufficientChecks)
  return deepFreeze({ _tag: 'insufficient', ...frozenCopy(reason) })
}

/** @internal Authenticated, but without the proof that is needed. */
export const unproven = (proof: NeededProof): AuthError =>
  deepFreeze({ _tag: 'insufficient', proof: frozenCopy(proof) })

/** @internal Authenticated, but not in the way that is needed. */
export const insufficientAuthentication = (authentication: NeededAuthentication): AuthError =>
  deepFreeze({ _tag: 'insufficient', authentication: frozenCopy(authentication) })

/** The object that the path names is not there, or is not for this caller. */
export const notFound: AuthError = deepFreeze({ _tag: 'notFound' })

/** @internal The failure of `owned`: the object of this name is not for this caller. */
export const refusedObject = (object: string, status: 403 | 404): AuthError =>
  deepFreeze({ _tag: status === 404 ? 'notFound' : 'insufficient', object })

/** @internal A sign-in that was not finished. */
export const unfinished = (reason: UnfinishedReason): AuthError =>
  deepFreeze({ _tag: unfinishedReasons[reason].failure, reason })

/** @internal The same failure with its cause. */
export const because = (error: AuthError, why: Why): AuthError => deepFreeze({ ...error, why })

/** @internal The cause of a failure, for developers. Only a hook refuses without a cause. */
export const whyOf = ({ _tag, why, reason }: AuthError): Why | undefined => {
  if (why !== undefined || reason !== undefined) return why
  return _tag === 'invalid' ? 'hook' : _tag === 'expired' ? 'expired' : undefined
}

/** Too many guesses were made. `retryAfter` is in seconds. */
export const throttled = (retryAfter?: number): AuthError =>
  deepFreeze(retryAfter === undefined ? { _tag: 'throttled' } : { _tag: 'throttled', retryAfter })

/** It cannot be decided now. `retryAfter` is in seconds. */
export const unavailable = (retryAfter?: number): AuthError =>
  deepFreeze(retryAfter === undefined ? { _tag: 'unavailable' } : { _tag: 'unavailable', retryAfter })

/** A hook threw this error. */
export const raised = (error: unknown): AuthError => Object.freeze({ _tag: 'raised', error })

interface FailureKind {
  /** Of several failures, the failure with the highest counts. */
  readonly strength: number
  /** The failure in words, for developers. */
  readonly words: string
  /** The keys that it has and not all have. */
  readonly keys?: ReadonlyArray<PropertyKey>
}

// The strength of a failure that ends a list
const STOPS = 6

/** @internal Every failure, in one table. A new failure is a line here; the compiler finds the rest. */
export const failures: { readonly [Tag in AuthError['_tag']]: FailureKind } = {
  absent: { strength: 0, words: 'no credential of this kind was sent' },
  malformed: { strength: 1, words: 'the credential cannot be read' },
  invalid: { strength: 2, words: 'the credential was refused' },
  expired: { strength: 3, words: 'the credential is no longer good' },
  forged: { strength: 4, words: 'another site made the browser send it (Sec-Fetch-Site, Origin)' },
  insufficient: {
    strength: 5,
    words: 'authenticated, but not allowed',
    keys: ['scope', 'proof', 'authentication', 'object'],
  },
  notFound: { strength: 5, words: 'the object is not there, or is not for this caller', keys: ['object'] },
  throttled: {
    strength: STOPS,
    words: 'too many guesses were made, so the credential was not looked at',
    keys: ['retryAfter'],
  },
  unavailable: { strength: STOPS, words: 'it cannot be decided now, or was not in time', keys: ['retryAfter'] },
  raised: { strength: STOPS, words: 'the hook threw', keys: ['error'] },
}

/** @internal The outcome of a failure, as the record of the decision names it. */
export const outcomeOf = ({ _tag }: AuthError) => {
  if (_tag === 'throttled' || _tag === 'unavailable' || _tag === 'raised') return _tag
  return failures[_tag].strength < failures.forged.strength ? 'refused' : 'forbidden'
}

/** Whether a value is one of the ten failures. */
export const is = (u: unknown): u is AuthError =>
  typeof u === 'function' ? Object.hasOwn(u, '_tag') && isTagged(u) : typeof u === 'object' && u !== null && isTagged(u)

const isTagged = (u: object): boolean => '_tag' in u && typeof u._tag === 'string' && Object.hasOwn(failures, u._tag)

/** @internal Whether an object has only the keys of its failure. Otherwise it is data that happens to hold a `_tag`. */
export const hasExactKeys = (error: AuthError): boolean =>
  Object.hasOwn(error, '_tag') &&
  Reflect.ownKeys(error).every(
    (key) =>
      (commonKeys.has(key) || failures[error._tag].keys?.includes(key) === true) &&
      Object.getOwnPropertyDescriptor(error, key)?.get === undefined,
  )

const commonKeys: ReadonlySet<unknown> = new Set('_tag challenge branches skipped reason detail code why'.split(' '))

/**
 * Whether a failure ends a list. After an outage or an exception, no weaker alternative is tried. A second scheme must
 * not be a way around a throttle, either.
 */
export const stops = (error: AuthError): boolean => failures[error._tag].strength === STOPS

// Not made with fp-ts's Ord, because an application would load a dozen more modules for it
const compareStrength = (first: AuthError, second: AuthError): Ordering =>
  // Safe: the sign of a number
  Math.sign(failures[first._tag].strength - failures[second._tag].strength) as Ordering

/** From the weakest to the strongest; the three that stop a list rank above all and equal one another. */
export const Ord: ord.Ord<AuthError> = deepFreeze<ord.Ord<AuthError>>({
  equals: (first, second) => compareStrength(first, second) === 0,
  compare: compareStrength,
})

/** The failures of a list or a group, in the order tried; for any other failure, only itself. */
export const branchesOf = (error: AuthError): ReadonlyArray<AuthError> => error.branches ?? [error]

/** @internal Whether a failure leaves the caller anonymous: no credential was sent, or only a session whose user is gone. */
export const leavesAnonymous = (error: AuthError): boolean =>
  error._tag === 'absent' || (error.why === 'user' && branchesOf(error).every(isOfNoUser))

const isOfNoUser = ({ _tag, why, skipped }: AuthError): boolean => !skipped && (_tag === 'absent' || why === 'user')

/**
 * Combines two failures. The result has the tag of the stronger failure (of the first, if they are equal) and the branches
 * of both. If the first failure stops a list, the second is dropped, because it was never tried. It is associative, and has
 * no neutral element.
 *
 * @example
 * import { AuthError } from 'koa-with-auth'
 *
 * const both = AuthError.Semigroup.concat(AuthError.absent, AuthError.expired)
 * assert.strictEqual(both._tag, 'expired')
 * assert.deepStrictEqual(AuthError.branchesOf(both), [AuthError.absent, AuthError.expired])
 */
export const Semigroup: semigroup.Semigroup<AuthError> = deepFreeze({
  concat: (first: AuthError, second: AuthError): AuthError => {
    if (stops(first)) return first
    const strongest = Ord.compare(second, first) > 0 ? second : first
    return { ...strongest, branches: [...branchesOf(first), ...branchesOf(second)] }
  },
})
