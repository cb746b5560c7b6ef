/**
 * The session of one request, and the user who is signed in by it. Its `stored` is its state in the store.
 *
 * It is on the context under a symbol, where the session authenticators read it.
 */
import type { SetOption } from 'cookies'
import type * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Context } from 'koa'
import { exchangeOf } from '../core/Exchange.js'
import type { End } from '../core/ends.js'
import type { Names, SignedOutReason, SessionDigest } from '../core/events.js'
import type { AuthError } from '../core/AuthError.js'
import type { Proof } from '../core/Proof.js'
import type { Sent } from '../core/RequestFields.js'
import { randomId } from '../crypto/secrets.js'
import { rightsByFlags, type Rights, type SessionSource } from '../kinds/sessionUser.js'
import { ANOTHER_SCHEME, bearerChallengeOf, tokenIn, type Bearer } from './Bearer.js'
import { endFor, endForwarded, forward, sessionOver, type SessionEnds } from './SessionEnds.js'
import { lockAge, type CookieRead, type SealedCookie } from './SessionCookie.js'
import { sessionKey, type Hint } from './SessionRecords.js'
import { endListed, type SessionHost } from './SignInList.js'
import { sessionOf, StoredSession, type KoaSession } from './StoredSession.js'
import { bind, holds, detailsOf, proofsIn, textOfDetails, unavailable } from './SignIn.js'
import type { Details, SignInReports, SignedIn, SignIn, SessionText, Signing, verifier } from './SignIn.js'

/** The call of `sessions`, as a request sees it. */
export interface SessionOwner {
  readonly cookie: SealedCookie
  readonly bearer: Bearer | undefined
  /** What koa-session has at `ctx.session` and `ctx.sessionOptions`, without noting that it is read. */
  readonly koaSessionOf: (ctx: object) => KoaSession | null
  readonly optionsOf: (ctx: object) => SetOption
  readonly loadUser: (id: string) => unknown
  readonly rights: Rights
  readonly verify: ReturnType<typeof verifier>
  readonly signing: () => Signing<never>
  readonly host: SessionHost
  readonly reports: SignInReports
  readonly ends: SessionEnds
}

type Came = { readonly id: string; readonly signIn: SignedIn }

/** With the names of the user in records, if the application gives them. */
type NextSignIn = SignIn & { readonly names: Names }

/** The binding of a sign-in by a session. */
const bindingOf = ({ host: { keys, name } }: SessionOwner, sessionId: string) => ({ keys: keys(), name, sessionId })

export class RequestSession implements SessionSource {
  readonly stored = new StoredSession()
  /** koa-session's session, also after `ctx.session` was set to `null`. */
  koaSession: KoaSession | undefined
  /** Whether `ctx.session` was read. A session that was not read has not changed. */
  isRead = false
  /** Whether no head is completed with its cookie any more. */
  isSettled = false
  /** Whether the browser got the cookie with a head that a handler sent. */
  isGivenAtHead = false
  /** The user who is signed in by data that were read or made. */
  signedIn: SignedIn | undefined
  /** Other details that the sign-in gets under its next id. */
  nextDetails: Details | undefined
  /** The sign-in that this request made: its user, the entry of the list, and the name of its grants. */
  begun: (Pick<Details, 'listed' | 'grant'> & { readonly user: string }) | undefined
  #owner: SessionOwner | undefined
  #cookie: CookieRead | undefined
  #id: string | undefined
  #signingIn: NextSignIn | undefined
  #isSignedByOlderKey = false
  // The session of the request, under its present id
  #came: Came | undefined
  // The same, if it had ended
  #expired: Came | undefined
  #nextId: string | undefined
  #reports: ReturnType<SignInReports['ofRequest']>
  /** The token of the request, if its field `Authorization` is there and counts; `''` for any other value of the field. */
  token: string | undefined
  /** Whether it has the scheme of tokens, and no token of this application. */
  isTokenWrong = false
  /** Why its token was refused, if that is not because there is no such session. */
  refusal: E.Left<AuthError> | undefined
  /** The lifetimes that the last sign-in of this request was given. */
  lasting: Pick<Details, 'idle' | 'absolute' | 'persistent'> = {}
  /** Whether this request sends a cookie of its own, or must send none: a request with a token has nothing to do with the cookie. */
  sendsCookie = true

  attach(owner: SessionOwner): void {
    this.#owner = owner
    this.#reports = owner.reports.ofRequest()
  }

  /** The id in the cookie or the token of the request; `''` without one that the application gave out. */
  readId(ctx: Context): string {
    const bearer = this.#owner?.bearer
    const sent = bearer && tokenIn(bearer, ctx.request)
    this.isTokenWrong = sent === ''
    this.token = sent === ANOTHER_SCHEME ? '' : sent
    const exchange = exchangeOf(ctx)
    if (bearer) exchange.carrier = () => bearerChallengeOf(bearer, sent !== undefined && sent !== ANOTHER_SCHEME)
    if (this.token) exchange.isByToken = true
    this.sendsCookie = this.token === undefined
    if (this.token !== undefined) return this.token
    this.#cookie = this.#owner?.cookie.read(ctx)
    return this.#cookie?.id ?? ''
  }

  /** Sends the id under which the session is kept. */
  giveCookie(ctx: Context, id: string): void {
    // that of a token is sent once, by the application
    if (this.isOfToken(id)) return
    this.sendsCookie = true
    const signIn = this.#id === id ? this.signedIn : undefined
    if (this.#owner === undefined) return
    const { cookie, host, optionsOf } = this.#owner
    const { listed, persistent = host.persistent } = detailsOf(signIn)
    const options = optionsOf(ctx)
    cookie.give(
      ctx,
      id,
      signIn && { user: signIn.id, listed },
      persistent ? options : { ...options, maxAge: undefined },
    )
  }

  /** The application reads `ctx.session` or its options, and may change them. */
  noteReading(ctx: Context): void {
    if (this.isRead || this.koaSession === undefined) return
    this.isRead = true
    this.stored.kept(ctx)
    lockAge(ctx)
  }

  /** koa-session has made or loaded the session. */
  open(ctx: Context): void {
    this.koaSession = this.#owner?.koaSessionOf(ctx) ?? undefined
    const { error } = this.stored
    if (error === undefined || this.koaSession === undefined) return
    // koa-session would do nothing, because nothing has changed
    const refuse = (): Promise<never> => {
      this.stored.isRefused = true
      return Promise.reject(unavailable(error.error))
    }
    Object.defineProperty(this.koaSession, 'manuallyCommit', { value: refuse })
  }

  /** The user who is signed in by data that was read. A record counts only if it is bound to the session and the application. */
  verifySignIn(id: string, read: SessionText, data: object): SignedIn | undefined {
    const found = this.#owner?.verify(read, data, bindingOf(this.#owner, id))
    if (found === undefined) return undefined
    const { auth, key } = found
    this.#id = id
    this.signedIn = auth
    this.#isSignedByOlderKey = key === 'older'
    this.#came = { id, signIn: auth }
    this.#reports?.knows(id, auth.id)
    return auth
  }

  /** A user will be signed in under the next id. */
  signingIn(next: NextSignIn | undefined): void {
    this.#signingIn = next
    if (next !== undefined) this.stored.isLost = false
  }

  /** Makes a new id for koa-session, and binds to it the user who is being signed in, or is signed in already. */
  assignId(ctx: Context): string {
    // before it is opened, no user is signed in, and koa-session would ask for an id again if `ctx.session` were read
    const isOpen = this.koaSession !== undefined
    const next = this.#signingIn
    const goesOn = isOpen && this.stored.text !== null && !this.stored.isLost
    const signIn = next ?? (goesOn ? this.#changedOf(this.present(ctx)) : undefined)
    const rotated = this.token !== undefined && goesOn ? this.#came?.id : this.#nextId
    const id = (next === undefined ? rotated : undefined) ?? randomId()
    this.#nextId = undefined
    this.#id = id
    this.signedIn = undefined
    if (signIn !== undefined) this.#bind(ctx, signIn)
    if (next !== undefined) this.#reports?.knows(id, next.id, next.names)
    else if (signIn !== undefined) this.#reports?.knows(id, signIn.id)
    return id
  }

  /** Binds the sign-in anew under the same id: by the first key, with other details if there are some. */
  bindAnew(ctx: Context, details = this.details(ctx)): void {
    const present = this.present(ctx)
    if (present !== undefined) this.#bind(ctx, { ...present, details: textOfDetails(details) })
  }

  wrote(id: string, data: unknown): void {
    this.stored.wrote(id)
    const holds = typeof data === 'object' && data !== null && this.isSignedIn(data)
    if (holds) return
    this.#reports?.over(id, 'logOut')
    this.#over(id)
  }

  ended(id: string, ctx: object): void {
    this.stored.ended(id)
    this.#reports?.over(id, this.isDropped(ctx) ? 'logOut' : 'renewed')
    this.#over(id)
  }

  /**
   * Prepares the rotation of the session's id; open streams and sockets stay connected. Resolves to `false` if another request rotates it.
   */
  async rotate(id: string): Promise<boolean> {
    const came = this.#came
    if (this.#owner === undefined || came?.id !== id) return true
    const next = randomId()
    if (!(await forward(this.#owner.ends, id, next, came.signIn))) return false
    this.#nextId = next
    this.#came = { id: next, signIn: came.signIn }
    return true
  }

  /** The session was ended, and so are the changes of another request at the same time. */
  async endRotated(id: string): Promise<void> {
    if (this.#came?.id === id && this.#owner !== undefined) await endForwarded(this.#owner.ends, id, true)
  }

  #over(id: string): void {
    if (this.#came?.id === id && this.#owner !== undefined) sessionOver(this.#owner.ends, id, this.#came.signIn.id)
  }

  /** The session that was read has ended. */
  reportExpiry(id: string, reason: SignedOutReason): undefined {
    if (this.#came?.id !== id) return
    this.#reports?.reportExpiry(id, reason)
    this.#expired = this.#came
    this.#came = undefined
  }

  /**
   * Ends the session that had ended already, because its user signs in or out. Otherwise it would be good again after a clock that was
   * wrong is set right. Rejects in an outage.
   */
  async endExpired(): Promise<void> {
    if (this.#expired === undefined || this.#owner === undefined) return
    const { ends, host } = this.#owner
    const { id, signIn } = this.#expired
    this.#expired = undefined
    const { listed } = detailsOf(signIn)
    if (listed !== undefined && host.list !== undefined) await endListed(host.list, signIn.id, listed)
    await host.store.end(sessionKey(id), host.longest)
    sessionOver(ends, id, signIn.id)
  }

  /** The session was ended by its user. */
  signedOut(): void {
    this.signedIn = undefined
    this.stored.text = null
    this.stored.isLost = false
  }

  kept(): void {
    this.#reports?.kept()
  }

  #changedOf(signIn: SignedIn | undefined): SignIn | undefined {
    return signIn && this.nextDetails ? { ...signIn, details: textOfDetails(this.nextDetails) } : signIn
  }

  /** Whether the operation ended the session. */
  isDropped(ctx: object): boolean {
    return this.sessionOf(ctx) === null
  }

  #bind(ctx: Context, signIn: SignIn): void {
    if (this.#owner === undefined || this.#id === undefined) return
    this.signedIn = bind(signIn, bindingOf(this.#owner, this.#id))
    this.#isSignedByOlderKey = false
    Object.assign(ctx['session'] as object, { auth: { ...this.signedIn } })
  }

  belongsTo(owner: SessionOwner): boolean {
    return this.#owner === owner && this.koaSession !== undefined
  }

  /** Whether a session that is being ended continues under another id. */
  goesOn(ctx: object): boolean {
    return this.#signingIn === undefined && !this.isDropped(ctx)
  }

  /** Whether an older key bound the record of the user who is signed in, or sealed the cookie of a session that was found. */
  get isOfOlderKey(): boolean {
    return this.#isSignedByOlderKey || (this.#cookie?.isOld === true && this.stored.ids.has(this.#cookie.id))
  }

  /** Whether an id is that of a session which a token carries. */
  isOfToken(id: string): boolean {
    return id !== '' && id === this.token
  }

  /** Another user signs in, by a session of its own. */
  made(id: string, names: Names, begun: NonNullable<RequestSession['begun']>): void {
    this.stored.wrote(id)
    this.#reports?.knows(id, begun.user, names)
    this.sendsCookie = false
    this.begun = begun
  }

  /** Makes the record of a sign-in by a session of its own. */
  bound(id: string, signIn: SignIn): SignedIn | undefined {
    return this.#owner && bind(signIn, bindingOf(this.#owner, id))
  }

  /** A token is not accepted, although its session is good: its request has no proof of its key. */
  refuse(refusal: E.Left<AuthError>): undefined {
    this.refusal = refusal
    this.#came = undefined
    return undefined
  }

  /** The user who was signed in when the cookie was given out, or when this process saw the token before. */
  hint(key: string): Hint | undefined {
    if (this.token !== undefined) return this.#owner?.bearer?.hints.get(key)
    return this.#cookie && this.#owner?.cookie.hintOf(this.#cookie)
  }

  sent(): O.Option<Sent> {
    return this.#cookie?.sent ?? O.none
  }

  sessionOf(ctx: object): KoaSession | null | undefined {
    if (!this.isRead && this.koaSession !== undefined) return this.koaSession
    // Safe: without an owner, this is any context, with or without a session
    return this.#owner === undefined ? sessionOf(ctx as Context) : this.#owner.koaSessionOf(ctx)
  }

  /** The result of `sessions` for the application of this session; the session itself if there is none. */
  get owner(): object {
    return this.#owner ?? this
  }

  get rights(): Rights {
    return this.#owner?.rights ?? rightsByFlags
  }

  /** The functions of the application that sign in and out; `undefined` if it belongs to no call of `sessions`. */
  get signing(): Signing<never> | undefined {
    return this.#owner?.signing()
  }

  /** The part of the application that `koa-with-auth/sign-in` uses; `undefined` if it belongs to no call of `sessions`. */
  get host(): SessionHost | undefined {
    return this.#owner?.host
  }

  get carrier(): Bearer | undefined {
    return this.#owner?.bearer
  }

  /** Sends the nonce that the next proof needs, if the tokens have some. */
  giveNonce(ctx: Context): void {
    ctx.set({ ...this.carrier?.responseFields?.() })
  }

  /** The sign-in of the user who is signed in by the session of the context. */
  present(ctx: Context): SignedIn | undefined {
    const session = this.sessionOf(ctx)
    return session && this.isSignedIn(session) ? this.signedIn : undefined
  }

  details(ctx: Context): Details {
    return detailsOf(this.present(ctx))
  }

  proofs(session: object): ReadonlyArray<Proof> {
    return this.signedIn !== undefined && this.isSignedIn(session) ? proofsIn(this.signedIn) : []
  }

  isUnavailable(): boolean {
    return this.stored.error !== undefined
  }

  /** Whether a session holds the same record that was recognized or made in this request. */
  isSignedIn(session: object): boolean {
    if (this.signedIn === undefined) return false
    return (!this.isRead && session === this.koaSession) || holds(session, this.signedIn)
  }

  load(session: object): unknown {
    return this.signedIn !== undefined && this.isSignedIn(session) && this.#owner?.loadUser(this.signedIn.id)
  }

  endFor(): End | undefined {
    const came = this.#came ?? (this.#id !== undefined && this.signedIn && { id: this.#id, signIn: this.signedIn })
    if (!came || this.isUnavailable()) return undefined
    return this.#owner && endFor(this.#owner.ends, came.id, came.signIn, this.koaSession?._expire)
  }

  digests(session: object): SessionDigest | undefined {
    if (this.#owner === undefined || this.#id === undefined || this.signedIn === undefined) return undefined
    return this.isSignedIn(session) && !this.isUnavailable()
      ? this.#owner.reports.digestsOf(this.#id, this.signedIn.id)
      : undefined
  }
}

/** The session of a request. The first call makes it. */
export const requestSessionOf = (ctx: object): RequestSession => {
  const exchange = exchangeOf(ctx)
  exchange.session ??= new RequestSession()
  // Safe: it is written here alone
  return exchange.session as RequestSession
}

/**
 * Puts the accessors of koa-session on the context of an application, so that each use of `ctx.session` and of `ctx.sessionOptions` is
 * noted. Returns how to read both unnoted.
 */
export const noteReadings = (koaSession: object, context: object): ((name: string) => (ctx: object) => unknown) => {
  const accessors: Readonly<Record<PropertyKey, PropertyDescriptor>> = Object.getOwnPropertyDescriptors(koaSession)
  const note = (ctx: Context): Context => {
    requestSessionOf(ctx).noteReading(ctx)
    return ctx
  }
  const noting = ({ get, set }: PropertyDescriptor): PropertyDescriptor => ({
    configurable: true,
    get(this: Context): unknown {
      return get?.call(note(this))
    },
    set(this: Context, value: unknown) {
      set?.call(note(this), value)
    },
  })
  for (const key of Reflect.ownKeys(accessors)) {
    const accessor = accessors[key]
    if (accessor !== undefined) {
      Object.defineProperty(context, key, typeof key === 'string' ? noting(accessor) : accessor)
    }
  }
  return (name) => (ctx) => Reflect.get(koaSession, name, ctx)
}
