/**
 * The records of events, and the names of their channels. None contains a credential. The JSON Schema of the package is made of these
 * types and comments.
 */
import { channel, type Channel } from 'node:diagnostics_channel'
import { digest } from '../crypto/secrets.js'
import type { AuthError, Why } from './AuthError.js'
import type { UnfinishedReason } from './UnfinishedReason.js'

/** A digest in base64url. It is the same in all records. */
type Digest = string

interface Changed {
  /** The id of the key, as `issue` returned it. */
  readonly id: string
}

interface Made extends Changed {
  /** Whose it is, as the store keeps it. */
  readonly owner: string
  /** Its scopes. */
  readonly scopes: ReadonlyArray<string>
  /** When it expires, in milliseconds since 1970; left out if it never does. */
  readonly expiresAt?: number
}

/** A change of an API key, after the store has saved it; frozen. */
export type ApiKeyEvent =
  | (Made & { readonly event: 'issued' })
  | (Made & { readonly event: 'adopted' })
  | (Changed & {
      readonly event: 'rotated'
      /** How long older secrets are still good, in milliseconds. */
      readonly overlapMs: number
    })
  | (Changed & { readonly event: 'revoked' })

/**
 * The outcome of a request.
 *
 * | outcome       | failure                                  |
 * |---------------|------------------------------------------|
 * | `accepted`    |                                          |
 * | `anonymous`   | none: the caller sent no credential, and needs none |
 * | `public`      | none: the operation asks for nothing     |
 * | `refused`     | absent, malformed, invalid, expired      |
 * | `forbidden`   | forged, insufficient, notFound           |
 * | `throttled`   | throttled                                |
 * | `unavailable` | unavailable                              |
 * | `raised`      | raised                                   |
 */
export type Outcome =
  'accepted' | 'anonymous' | 'public' | 'refused' | 'forbidden' | 'throttled' | 'unavailable' | 'raised'

/** An alternative that did not admit the caller. */
export interface DecisionBranch {
  /** The name of its scheme in OpenAPI; `custom` for a plain function. */
  readonly scheme: string
  /** Why. */
  readonly failure: AuthError['_tag']
  /** The cause of the failure, if it is known. */
  readonly why?: Why
  /** It was not asked, because another had decided. */
  readonly skipped?: true
}

/**
 * One decision about a request, when the response has ended; frozen. It is for logs, metrics and alarms, and has no place for a credential. Its strings are names
 * that the application's author wrote, methods, and patterns of routes.
 */
export interface Decision {
  readonly outcome: Outcome
  /** Why it was not let in. */
  readonly failure?: AuthError['_tag']
  /** The cause of the failure, if it is known. */
  readonly why?: Why
  /** The object rule that refused: the name that `owned` has. The id of the object is in no record. */
  readonly object?: string
  /** Set if there is such an object, and `allow` refused the caller. */
  readonly found?: true
  /** Each alternative that did not admit the caller, in the order tried; left out if there is only one alternative. */
  readonly branches?: ReadonlyArray<DecisionBranch>
  /**
   * The name in OpenAPI of the scheme that admitted the caller, or of the only scheme that was tried. ` + ` joins schemes that are sent
   * together.
   */
  readonly scheme?: string
  /** Which member of an object let in. */
  readonly via?: string
  /**
   * Which level decided: `operation`, `application`, `upgrade`, or which router. ` + ` joins levels that add to one
   * another.
   */
  readonly level: string
  readonly method: string
  /** The pattern of the route, never the path. */
  readonly route: string
  /** The status of the response; 499 if the client had gone before the response. */
  readonly status: number
  /** How long the decision took, in milliseconds, without the handler. */
  readonly durationMs: number
  /** How long the client should wait after a throttle or an outage, in seconds. */
  readonly retryAfter?: number
  /** Whether `cached` answered. */
  readonly cached?: true
  /** The name of the principal, if `authSettings({ events: { subject } })` gives it. */
  readonly subject?: string
  /**
   * The actor for the subject, if that is another and records name the subject: the result of the setting `actor`. Without it, `act` of
   * the principal or of the token (RFC 8693 §4.1): the outermost `sub` or `client_id`.
   */
  readonly actor?: string
}

interface Fetched {
  /** The issuer whose keys they are. */
  readonly issuer: string
  /** How long the fetch took, in milliseconds; discovery is part of it. */
  readonly durationMs: number
}

/** A fetch of a provider's keys; frozen. It contains no key and no part of the response. */
export type ProviderKeysEvent =
  | (Fetched & {
      readonly event: 'refreshed'
      /** Whether the keys differ from those before, such as after a rotation. `true` for the first keys. */
      readonly changed: boolean
    })
  | (Fetched & {
      readonly event: 'failed'
      /** The problem, such as `answered 502`. */
      readonly problem: string
      /** For how long the known keys can still be used, in milliseconds. 0: requests are answered 503. */
      readonly servesForMs: number
    })

/**
 * The signed-in user and the session, as digests. They are the same in every process of a service. A reader of a
 * record can neither take a session over by them nor find it in a store. A user's name has different digests in
 * different applications.
 */
export interface SessionDigest {
  /** Of the application's name and the user's identifier. It is a pseudonym: names can be guessed. */
  readonly user: Digest
  /** Of the session's id. */
  readonly session: Digest
}

/** A sign-in by `logIn`, after the request, when the store has saved it; frozen. */
export interface SignedInEvent extends SessionDigest {
  /** The name of the application. */
  readonly application: string
  /** The name of the principal, if `authSettings({ events: { subject } })` gives it. */
  readonly subject?: string
  /** The actor that signed in as the subject, as in `Decision`. */
  readonly actor?: string
  /** The `label` of `sessions(app, { list: { label } })`, such as the name of the browser. */
  readonly label?: string
}

/**
 * Why a session has ended.
 *
 * | reason             | what happened                                                                      |
 * |--------------------|------------------------------------------------------------------------------------|
 * | `logOut`           | `logOut`, or the application removed the sign-in from the session                  |
 * | `logOutEverywhere` | all sessions of the user were ended; without `session` in the process that did it  |
 * | `renewed`          | the session got a new id: somebody signed in again, or the application asked for it |
 * | `idle`             | it was not used for too long, which a request of it showed                          |
 * | `absolute`         | it was too old, which a request of it showed                                        |
 * | `ended`            | `endSession` of the list, or a sign-out at the provider that names the session      |
 */
export type SignedOutReason = 'logOut' | 'logOutEverywhere' | 'renewed' | 'idle' | 'absolute' | 'ended'

/**
 * The end of a session that the store knows, or of all sessions of a user; frozen. `endsSession` compares it with the sign-in of a socket
 * or a stream. It is published only in the process that ended the session; send it to others as JSON.
 */
export interface SignedOutEvent {
  readonly application: string
  readonly reason: SignedOutReason
  /** The digest of the user's id. */
  readonly user: Digest
  /** Which session; left out if all sessions of the user have ended. */
  readonly session?: Digest
}

/** The content of a store. */
export type StoreContent = 'api-keys' | 'one-time-ids' | 'passkeys' | 'sessions' | 'signals'

type OutageRecord<About, Begun> =
  | (About & Begun & { readonly event: 'begun' })
  | (About & {
      readonly event: 'over'
      /** How long it lasted, from the first failure to the first answer, in milliseconds. */
      readonly durationMs: number
    })

/**
 * An outage of a store that begins, or that is over; frozen. Requests to the store show it. Nothing asks a store only
 * to make this record.
 */
export type StoreOutageEvent = OutageRecord<
  {
    /** The content of the store. */
    readonly store: StoreContent
  },
  {
    /** Whether it failed, or did not answer in time. */
    readonly reason: 'failed' | 'silent'
    /** The cause, as a word without a value, such as `ECONNREFUSED`, `OOM` or `42P01`. Left out if it did not answer in time. */
    readonly cause?: string
  }
>

/**
 * An outage of introspection that begins, or that is over; frozen. Meanwhile tokens that are not cached are a 503.
 * Requests to the server show it.
 */
export type IntrospectionOutageEvent = OutageRecord<
  {
    /** The endpoint that is asked, without its query, or the issuer whose discovery document names it. */
    readonly server: string
  },
  {
    /** The problem, such as `answered 502`. */
    readonly problem: string
  }
>

/** An event of a passkey; frozen. `id` is that of its credential, by which the store finds its user. */
export type PasskeyEvent =
  | { readonly event: 'registered'; readonly id: string; readonly rpId: string }
  | {
      /** Its counter did not grow: perhaps there is a copy of the authenticator. The answer was refused. */
      readonly event: 'copied'
      readonly id: string
      readonly rpId: string
      /** The counter that is stored. */
      readonly stored: number
      /** The counter of the answer, whose signature was right. */
      readonly received: number
    }

/** A list of leaked passwords that could not be asked, so that `newPassword` let a password pass; frozen. It says nothing of the password. */
export interface PasswordCheckEvent {
  readonly event: 'unanswered'
  /** Whether the hook `breached` threw or answered no text, or did not answer in time. */
  readonly reason: 'failed' | 'silent'
}

/** An answer of a provider that was refused; frozen. Nothing that the provider or the browser sent is in it. */
export interface ProviderAnswerEvent {
  readonly event: 'refused'
  /** The issuer; the name of the kind, if the provider has no issuer. */
  readonly issuer: string
  /** The failure that the application gets. */
  readonly failure: AuthError['_tag']
  /** The reason in the response; left out for an outage and for a mistake of our own registration. */
  readonly reason?: UnfinishedReason
  /** The wrong claim or member, such as `nonce` or `scope`, `algorithm: HS256`, `answered 502`, or `clock: iat` if the clocks differ too much. */
  readonly problem: string
}

/** An event of the grant of a user at a provider; frozen. No token is in it. */
export interface UpstreamEvent {
  /** `outage`: the provider or the store could not be asked; `gone`: the provider has ended the grant, and the session goes on. */
  readonly event: 'refreshed' | 'gone' | 'outage'
  /** The name of the application. */
  readonly application: string
  /** The issuer; the name of the kind, if the provider has no issuer. */
  readonly issuer: string
  /** A digest of the application's name and the user's identifier. */
  readonly user: Digest
}

/** A limiter refused a guess, a mail or a request, or could not count it; frozen. It names neither an account nor an address. */
export interface GuessLimitEvent {
  /** `reached`: the count was above the limit. `failed`: the limiter could not be asked. */
  readonly event: 'reached' | 'failed'
  /** The function that counts; `finish` counts wrong answers of a browser. */
  readonly counter:
    | 'throttled'
    | 'rate limit'
    | 'passwordSignIn'
    | 'emailSignIn'
    | 'passwordReset'
    | 'emailVerification'
    | 'secondFactor'
    | 'countFailures'
    | 'finish'
  /** The name that counted it; `share` is the part of an account's limit that one address or network may use. */
  readonly under: 'account and address' | 'account' | 'address' | 'share' | 'caller'
  /** The seconds until the count begins anew; left out if the limiter does not say so. */
  readonly retryAfter?: number
}

interface AboutCeremony {
  /** The name of the application. */
  readonly application: string
  /** The name of the kind, such as `mail` or `oidc:https://accounts.example`. */
  readonly kind: string
}

interface OneCeremony extends AboutCeremony {
  readonly intent: 'signIn' | 'link' | 'stepUp' | 'reset' | 'verify'
  /** A digest, the same in all records of one ceremony. */
  readonly ceremony: Digest
  /** The user of the ceremony, if known; see `SessionDigest`. */
  readonly user?: Digest
}

/** A ceremony was begun, finished or refused; frozen. It contains no handle, code, address or identifier of a user. */
export type CeremonyEvent =
  | (OneCeremony & { readonly event: 'begun' })
  | (OneCeremony & {
      /** The application has accepted it. A session is saved afterwards, and has a record of its own. */
      readonly event: 'finished'
    })
  | (AboutCeremony &
      Partial<OneCeremony> & {
        readonly event: 'refused'
        /** Which middleware refused. */
        readonly step: 'begin' | 'finish'
        readonly failure: AuthError['_tag']
        /**
         * Why; `used` for an answer that came again or once too often, which the client sees as `unknown`. An `unknown` one
         * could not be opened in this browser, so its ceremony is not known.
         */
        readonly reason?: UnfinishedReason | 'used'
      })

/** The record of each channel. The channel of `node:diagnostics_channel` has `koa-with-auth:` before its name. */
export interface Events {
  readonly decision: Decision
  readonly 'signed-in': SignedInEvent
  readonly 'signed-out': SignedOutEvent
  readonly ceremony: CeremonyEvent
  readonly 'api-key': ApiKeyEvent
  readonly passkey: PasskeyEvent
  readonly 'password-check': PasswordCheckEvent
  readonly 'guess-limit': GuessLimitEvent
  readonly 'provider-keys': ProviderKeysEvent
  readonly 'provider-answer': ProviderAnswerEvent
  readonly upstream: UpstreamEvent
  readonly 'introspection-outage': IntrospectionOutageEvent
  readonly 'store-outage': StoreOutageEvent
}

// The compiler compares them with `Events`
const eventNames: { readonly [C in keyof Events]: true } = {
  decision: true,
  'signed-in': true,
  'signed-out': true,
  ceremony: true,
  'api-key': true,
  passkey: true,
  'password-check': true,
  'guess-limit': true,
  'provider-keys': true,
  'provider-answer': true,
  upstream: true,
  'introspection-outage': true,
  'store-outage': true,
}

/** Whom a record names. */
export type Names = Pick<Decision, 'subject' | 'actor'>

/**
 * @internal The digest of a session, a key or a ceremony by its id, or of a user by the application and the id of the user. It is not the
 * digest under which stores keep them.
 */
export const recordDigest = (
  of: 'user' | 'session' | 'api-key' | 'ceremony',
  ...parts: ReadonlyArray<string>
): string =>
  // a JSON array, so that different parts never make the same string
  digest(JSON.stringify(['koa-with-auth/events', of, ...parts]))

/**
 * Whether a record says that a sign-in has ended. Sockets and streams of the sign-in must end then.
 * The record may come from another process, as JSON.
 *
 * @example
 * import { endsSession, on, type SessionDigest } from 'koa-with-auth/events'
 *
 * const sockets = new Map<{ close: () => void }, SessionDigest>()
 * const end = on('signed-out', (record) => {
 *   for (const [socket, signIn] of sockets) if (endsSession(record, signIn)) socket.close()
 * })
 * end()
 */
export const endsSession = (record: SignedOutEvent, signIn: SessionDigest): boolean =>
  record.session === undefined ? record.user === signIn.user : record.session === signIn.session

/** @internal */
// Safe: each has the channel of its own name
export const channels = Object.fromEntries(
  Object.keys(eventNames).map((name) => [name, channel(`koa-with-auth:${name}`)]),
) as unknown as { readonly [C in keyof Events]: Channel & { publish(record: Readonly<Events[C]>): void } }

/** @internal */
export const { decision: decisions, 'signed-in': signedIn, 'signed-out': signedOut } = channels

/** @internal Publishes a frozen record. It is made only if there is a subscriber. */
export const report =
  <C extends keyof Events>(channel: C) =>
  (record: () => Events[C]): void => {
    const to = channels[channel]
    if (to.hasSubscribers) to.publish(Object.freeze(record()))
  }
