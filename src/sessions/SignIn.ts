/**
 * The user who is signed in, as a session holds it under `auth`: the user's identifier, when the user signed in, the user's revocation stamp at that
 * time, and a MAC. The MAC binds these to the id of the session and to the application.
 *
 * It contains no rights, because the user is loaded at each request. `logOutEverywhere` replaces the stamp. So no index of sessions is
 * needed, and no comparison of clocks of different machines. Without the MAC, an attacker who can write into a session (by a polluted prototype, by
 * `Object.assign(ctx.session, body)`, or in the database) could sign in as any user.
 */
import type { Request } from 'koa'
import * as AuthErrors from '../core/AuthError.js'
import type { Proof, ProofGiven } from '../core/Proof.js'
import { deepFreeze, isInstance, ownFields, type ErrorCode } from '../core/data.js'
import { fromNow, memory } from '../core/memory.js'
import { report, recordDigest, signedIn, signedOut } from '../core/events.js'
import type { Names, SignedOutReason, SessionDigest } from '../core/events.js'
import { sign, signedBy } from '../crypto/appKeys.js'
import { sessionField } from '../kinds/plainSession.js'
import { signInDigestsOf } from '../kinds/sessionUser.js'

// How many ended sessions are kept
const MAX_ENDED = 1000

/** The user who signed in, and the time; `at` is in milliseconds since 1970. */
export interface SignIn {
  readonly id: string
  readonly at: number
  /** The revocation stamp of the user at that time. */
  readonly stamp: string
  /** Further facts about it, as JSON (`Details`). */
  readonly details?: string | undefined
}

/** Further data of a sign-in. The MAC covers them. */
export interface Details {
  /** Left out: the user signed in by a method that the application did not tell. */
  readonly proofs?: ReadonlyArray<Proof> | undefined
  /** The ceremonies that were finished in this session, the last one last. */
  readonly finished?: ReadonlyArray<string> | undefined
  /** The lifetimes of this session, in milliseconds, if they are not those of the application. */
  readonly idle?: number | undefined
  readonly absolute?: number | undefined
  /** Whether the cookie outlives the browser, if this is not as the application says. */
  readonly persistent?: boolean | undefined
  /** The public id in the list of sessions, which stays the same when the session gets another id. */
  readonly listed?: string | undefined
  /** Its label in the list. */
  readonly label?: string | undefined
  /** The name of the grants of providers in the session, if it is in no list. */
  readonly grant?: string | undefined
  /** The thumbprint of the key that its token is bound to (RFC 7638). */
  readonly jkt?: string | undefined
}

const noDetails: Details = Object.freeze(ownFields({}))

const detailsRead = new WeakMap<SignIn, Details>()

export const detailsOf = (signIn: SignIn | undefined): Details => {
  if (signIn?.details === undefined) return noDetails
  const known = detailsRead.get(signIn)
  if (known !== undefined) return known
  // only `textOfDetails` writes them, and the MAC covers them
  const details: Details = deepFreeze(ownFields(JSON.parse(signIn.details)))
  detailsRead.set(signIn, details)
  return details
}

export const textOfDetails = (details: Details): string | undefined =>
  Object.values(details).some((value) => value !== undefined) ? JSON.stringify(details) : undefined

/** The proofs of a sign-in. Without any, it is one by another method, at the sign-in. */
export const proofsIn = (signIn: SignIn): ReadonlyArray<Proof> =>
  detailsOf(signIn).proofs ?? [{ method: 'other', at: signIn.at }]

/** The same as the session holds it. */
export interface SignedIn extends SignIn {
  readonly mac: string
}

/** The session and the application to which a sign-in is bound. */
interface SignInBinding {
  /** The signing keys: `app.keys`. */
  readonly keys: unknown
  readonly name: string
  readonly sessionId: string
}

// The record in a session, genuine or not; `undefined` if there is none
const signedInOf = (session: object): SignedIn | undefined => {
  const auth = sessionField(session, 'auth')
  if (typeof auth !== 'object' || auth === null) return undefined
  const { id, at, stamp, mac, details } = ownFields(auth)
  return typeof id === 'string' &&
    typeof at === 'number' &&
    typeof stamp === 'string' &&
    typeof mac === 'string' &&
    (details === undefined || typeof details === 'string')
    ? { id, at, stamp, mac, ...(details !== undefined && { details }) }
    : undefined
}

/** Whether a session holds this record. */
export const holds = (session: object, record: SignedIn): boolean => {
  const own = signedInOf(session)
  return own !== undefined && parts.every((name) => own[name] === record[name])
}

const parts = ['id', 'at', 'stamp', 'mac', 'details'] as const

/** Makes the record. Throws a TypeError if there is no signing key. */
export const bind = ({ id, at, stamp, details }: SignIn, binding: SignInBinding): SignedIn => ({
  id,
  at,
  stamp,
  ...(details !== undefined && { details }),
  mac: sign(binding.keys, boundText({ id, at, stamp, details }, binding)),
})

/** A record that is bound to its session and the application: by the first key, or by an older key. */
interface Verified {
  readonly auth: SignedIn
  readonly key: 'first' | 'older'
}

/** The record in a session, if it is bound to the session and the application. Any other record is a forgery. */
const verified = (session: object, binding: SignInBinding): Verified | undefined => {
  const auth = signedInOf(session)
  if (auth === undefined) return undefined
  const key = signedBy(binding.keys, boundText(auth, binding), auth.mac)
  return key === 'none' ? undefined : { auth: Object.freeze(auth), key }
}

/** Under which key a store has a session, and as which text. */
export interface SessionText {
  readonly key: string
  readonly text: string
}

/**
 * Verifies the records of an application. While a session has the same text under the same key, and the signing keys are the same, its
 * record is not verified again. A Keygrip may change inside, so it is asked each time.
 */
export const verifier = () => {
  const before = memory<Verified & { readonly text: string; readonly keys: ReadonlyArray<unknown> }>({
    size: MAX_ENDED,
    maxAge: Infinity,
    dropsFirst: 'least recently used',
  })
  return ({ key, text }: SessionText, session: object, binding: SignInBinding): Verified | undefined => {
    const known = before.get(key)
    if (known !== undefined && known.text === text && areThese(binding.keys, known.keys)) return known
    const found = verified(session, binding)
    if (found !== undefined && Array.isArray(binding.keys)) {
      before.set(key, fromNow({ ...found, text, keys: [...(binding.keys as ReadonlyArray<unknown>)] }))
    }
    return found
  }
}

const areThese = (keys: unknown, known: ReadonlyArray<unknown>): boolean =>
  Array.isArray(keys) && known.every((one, at) => one === keys[at])

// A JSON array, so that different records never make the same string. No cookie has such a name, so no signature of a cookie fits
const boundText = ({ id, at, stamp, details }: SignIn, { name, sessionId }: SignInBinding): string =>
  JSON.stringify([
    'koa-with-auth/sessions',
    name,
    sessionId,
    id,
    at,
    stamp,
    ...(details === undefined ? [] : [details]),
  ])

/** Reports the users who sign in and out of an application. Without a subscriber nothing is done. */
export class SignInReports {
  readonly application: string
  // Sessions whose end was reported already. Clients keep sending their cookies
  readonly #ended = memory<true>({ size: MAX_ENDED, maxAge: Infinity, dropsFirst: 'oldest' })

  constructor(application: string) {
    this.application = application
  }

  digestsOf(sessionId: string, user: string): SessionDigest {
    return Object.freeze({
      user: recordDigest('user', this.application, user),
      session: recordDigest('session', sessionId),
    })
  }

  /** A session of a user has ended, by its digest. Without a digest, all sessions of the user have. */
  signedOut(user: string, reason: SignedOutReason, session?: string): void {
    const { application } = this
    report('signed-out')(() => ({
      application,
      reason,
      user: recordDigest('user', application, user),
      ...(session !== undefined && { session }),
    }))
  }

  /** A session was ended by its entry in the list. Its cookie may still come. */
  endedByList(session: string, user: string): void {
    if (signedOut.hasSubscribers && this.isFirst(session)) this.signedOut(user, 'ended', session)
  }

  /** Whether the end of a session, by its digest, is new, among those that are kept. */
  isFirst(session: string): boolean {
    const isFirst = this.#ended.get(session) === undefined
    if (isFirst) this.#ended.set(session, fromNow(true))
    return isFirst
  }

  /** The reports of one request. A later subscriber gets the events of later requests. */
  ofRequest(): RequestReports | undefined {
    return signedIn.hasSubscribers || signedOut.hasSubscribers ? new RequestReports(this) : undefined
  }
}

/** The reports of one request, which knows its sessions by their ids. */
class RequestReports {
  readonly #all: SignInReports
  // With names: the sign-in was made in this request, and is not reported yet
  readonly #known = new Map<string, { readonly user: string; readonly names: Names | undefined }>()

  constructor(all: SignInReports) {
    this.#all = all
  }

  /** A user is signed in by a session. With names, a new sign-in: it is reported at the end of the request if the session is still kept. */
  knows(id: string, user: string, names?: Names): void {
    this.#known.set(id, { user, names })
  }

  /** A session has ended. It is reported now, unless its sign-in was not reported. */
  over(id: string, reason: SignedOutReason): void {
    const signIn = this.#known.get(id)
    this.#known.delete(id)
    if (signIn !== undefined && signIn.names === undefined) {
      this.#all.signedOut(signIn.user, reason, recordDigest('session', id))
    }
  }

  /** The same for a session whose end a request showed. It is reported once. */
  reportExpiry(id: string, reason: SignedOutReason): void {
    if (this.#all.isFirst(recordDigest('session', id))) this.over(id, reason)
  }

  /** The request has ended, and its changes are saved. */
  kept(): void {
    const { application } = this.#all
    for (const [id, { user, names }] of this.#known) {
      if (names !== undefined) report('signed-in')(() => ({ application, ...this.#all.digestsOf(id, user), ...names }))
    }
  }
}

/** Any context of Koa's or of a router's. */
export interface WithRequest {
  readonly request: Request
}

/** The context of a request. Throws a TypeError for anything else. */
export const contextOf = (caller: string, given: WithRequest | undefined): Request['ctx'] => {
  const ctx = given?.request?.ctx
  if (ctx === undefined) throw new TypeError(`${caller}: ctx must be the context of a request`)
  return ctx
}

/** Options of a sign-in. */
export interface LogInOptions {
  /** Keys of the old session that the new session keeps, such as a basket. Default none. */
  readonly keep?: ReadonlyArray<string> | undefined
  /** The proof of the sign-in. Default: the method `other`. */
  readonly proof?: ProofGiven | undefined
  /** Further proofs, such as the first of two factors. */
  readonly before?: ReadonlyArray<ProofGiven> | undefined
  /** How long this session lasts unused, in milliseconds. Default: as `sessions(app, { idle })` says. */
  readonly idle?: number | undefined
  /** How long it lasts after signing in, used or not. Default: as `sessions(app, { absolute })` says. */
  readonly absolute?: number | undefined
  /** Whether its cookie outlives the browser: `false` ends it when the browser is closed. Default: as `sessions(app, { persistent })` says. */
  readonly persistent?: boolean | undefined
}

/** How a sign-in is carried by a token. */
export interface BearerLogInOptions extends Omit<LogInOptions, 'keep' | 'persistent'> {
  /** The sign-in gets a token instead of the cookie, which stays as it is. Needs `sessions(app, { bearer })`. */
  readonly as: 'bearer'
}

/** The token of a sign-in. The application sends it to the client, once; the store has a digest of it. */
export interface BearerSignIn {
  readonly token: string
  /** The scheme of later requests: `DPoP` with `sessions(app, { bearer: { dpop } })`. */
  readonly tokenType: 'Bearer' | 'DPoP'
  /** How long it lasts at most, in seconds. */
  readonly expiresIn: number
}

/** The fix where `as: 'bearer'` is written, and the sessions carry no tokens. */
export const bearerFix = 'write sessions(app, { bearer: true })'

/** Further options, which `koa-with-auth/sign-in` passes. */
export interface OwnLogInOptions extends LogInOptions {
  readonly as?: 'bearer' | undefined
  /** The stamp that the user must have. Another stamp is a 400 `unknown`: the sessions were ended after the first factor. */
  readonly stamp?: string | undefined
  /** The name of the grants in the session. With a list, it is the id of its entry. */
  readonly grant?: string | undefined
}

/** One session of a user. All times are in milliseconds since 1970. */
export interface ListedSession {
  /** Good for `endSession`, and for nothing else. */
  readonly id: string
  /** Whether it is the session of the request. */
  readonly current: boolean
  readonly signedInAt: number
  /** At most an hour old. */
  readonly lastSeenAt: number
  /** The methods of its proofs. */
  readonly methods: ReadonlyArray<string>
  /** Whether the cookie carries it, or a token (`as: 'bearer'`). */
  readonly kind: 'cookie' | 'bearer'
  /** The result of the option `label` at the sign-in. */
  readonly label?: string
}

/** Signs a user in, by the cookie or by a token. */
export interface LogIn<U> {
  (ctx: WithRequest, user: U, options: BearerLogInOptions): Promise<BearerSignIn>
  (ctx: WithRequest, user: U, options?: LogInOptions & { readonly as?: undefined }): Promise<void>
}

/** How an application signs its users in and out. */
export interface Signing<U> {
  /**
   * Signs a user in. It refuses a request that another site made the browser send, gives the session a new id, drops its data except
   * `keep`, and resolves when the store has saved it. Rejects with `SignInRefused`, which is answered with 403 or 503.
   *
   * A request by GET, HEAD or OPTIONS from another site is refused unless it is a navigation (a link, a redirect).
   *
   * It works only inside of an operation with a guard, such as `withAuth(null)`, until that ends, because only there an exception takes a
   * sign-in back. Elsewhere it rejects, and the answer is a 500 even if the application swallows the rejection. The same holds for `logOut`
   * and `addProof`.
   *
   * With `as: 'bearer'` it makes a session with a token, which it resolves to, and sets no cookie. Rejects with a TypeError without
   * `sessions(app, { bearer })`.
   */
  readonly logIn: LogIn<U>
  /** Ends the session, also for copies of its cookie and for requests that are under way. Rejects as `logIn` does. */
  readonly logOut: (ctx: WithRequest) => Promise<void>
  /** Ends all sessions of a user, who is named by the identifier. Rejects with `SignInRefused` in an outage. */
  readonly logOutEverywhere: (id: string) => Promise<void>
  /**
   * Adds a proof to the session of the user who is signed in. The session gets another id, and keeps its data and its other proofs; an
   * older proof of the same method, issuer and subject is replaced. Rejects as `logIn` does, also if no user is signed in.
   */
  readonly addProof: (ctx: WithRequest, proof: ProofGiven) => Promise<void>
  /** The proofs of the user who is signed in, the last one last; empty if no user is. */
  readonly proofsOf: (ctx: WithRequest) => ReadonlyArray<Proof>
  /**
   * The sessions of a user, the newest first. Left out, `id` is the user who is signed in. Needs
   * `sessions(app, { list: true })`. Rejects with `SignInRefused` in an outage, and if no user is signed in.
   */
  readonly listSessions: (ctx: WithRequest, id?: string) => Promise<ReadonlyArray<ListedSession>>
  /**
   * Ends one session of a user, whatever it is doing meanwhile; `which` is the id in the list. Resolves to `false` if the
   * user has no such session: answer 404. Rejects with `SignInRefused` in an outage.
   */
  readonly endSession: (id: string, which: string) => Promise<boolean>
}

/**
 * Returns the digests of the user and the session of a request, which the records of `on('signed-out')` contain, too.
 * Returns `undefined` if the caller is not signed in, or if the session is unknown because of an outage. Store the
 * digests with a socket or a stream, and compare them with `endsSession`. A socket or a stream outlives the request, and
 * must end with the session.
 *
 * It reports the state when the session was read. A listener that is added later does not get a sign-out in between; the
 * guide "Sessions" shows how to hear of it.
 *
 * @example
 * import type { Context } from 'koa'
 * import { endsSession, on } from 'koa-with-auth/events'
 * import { sessionDigest } from 'koa-with-auth/sessions'
 *
 * const endWithSession = (ctx: Context) => {
 *   const signIn = sessionDigest(ctx)
 *   const end = on('signed-out', (record) => signIn && endsSession(record, signIn) && ctx.res.end())
 *   ctx.res.once('close', end)
 * }
 */
export const sessionDigest = ({ request }: WithRequest): SessionDigest | undefined => signInDigestsOf(request.ctx)

/**
 * Signing in or out was refused: another site made the browser ask (403), or the store cannot be asked now (503).
 * `logIn` and `logOut` throw it. The middleware of the sessions answers it like a guard.
 */
export class SignInRefused extends Error {
  override readonly name = 'SignInRefused'
  readonly code = 'ERR_SIGN_IN_REFUSED' satisfies ErrorCode
  readonly failure: AuthErrors.AuthError
  /** @internal Also an error of another copy of this package, such as that of `require` beside that of `import`. */
  static override [Symbol.hasInstance](u: unknown): boolean {
    return isInstance(this, SignInRefused, u, 'ERR_SIGN_IN_REFUSED')
  }
  constructor(failure: AuthErrors.AuthError, options?: { readonly cause?: unknown }) {
    super(`the session could not be changed: ${failure._tag}`, options)
    this.failure = failure
  }
}

/** The store failed, or did not answer in time. */
export const unavailable = (cause: unknown): SignInRefused => new SignInRefused(AuthErrors.unavailable(), { cause })

export const throwUnavailable = (cause: unknown): never => {
  throw unavailable(cause)
}
