/**
 * The session of one request: who is signed in by it. Its `stored` is what the store knows of it.
 *
 * Its fields are private, and change only by the named transitions. It is on the context under a symbol, where the
 * session authenticators read it.
 */
import type { Context } from 'koa'
import { signedIn, signedOut } from '../core/events/channels.js'
import type { SignInDigests } from '../core/events/SignInEvent.js'
import { rightsByFlags, type Rights } from '../core/session/Rights.js'
import type { SessionSource } from '../core/session/SessionSource.js'
import { isDropped, sessionOf, type KoaSession } from './KoaSession.js'
import { randomId } from './sessionIds.js'
import { bindingOf, type SessionOwner } from './SessionOwner.js'
import { areSame, bind, boundBy, signedInOf, type NextSignIn, type SignedIn, type SignIn } from './SignedIn.js'
import type { Signing } from './SignInFunctions.js'
import { digestsOf, SignInReports } from './SignInReports.js'
import { StoredSession } from './StoredSession.js'

/** The session of one request. */
export class RequestSession implements SessionSource {
  readonly stored = new StoredSession()
  #owner: SessionOwner | undefined
  #koaSession: KoaSession | undefined
  #id: string | undefined
  #signingIn: NextSignIn | undefined
  #signedIn: SignedIn | undefined
  #isSignedByOlderKey = false
  #reports: SignInReports | undefined

  // -----------------------------------------------------------------------------------
  // transitions
  // -----------------------------------------------------------------------------------

  /** It now belongs to a call of `sessions`. */
  takenOn(owner: SessionOwner): void {
    this.#owner = owner
    // someone who subscribes later gets the events of later requests
    if (signedIn.hasSubscribers || signedOut.hasSubscribers) this.#reports = new SignInReports(owner.name, owner.ended)
  }

  /** koa-session has made or loaded the session. */
  opened(ctx: Context): void {
    this.#koaSession = sessionOf(ctx) ?? undefined
    this.stored.kept(ctx)
  }

  /** Who is signed in by data that was read. A record counts only if it is bound to the session and the application. */
  recognized(id: string, data: object): SignedIn | undefined {
    const auth = signedInOf(data)
    if (auth === undefined || this.#owner === undefined) return undefined
    const key = boundBy(auth, bindingOf(this.#owner, id))
    if (key === 'none') return undefined
    this.#id = id
    this.#signedIn = auth
    this.#isSignedByOlderKey = key === 'older'
    this.#reports?.recognized(id, auth.id)
    return auth
  }

  /** A user will be signed in under the next id. */
  signingIn(next: NextSignIn | undefined): void {
    this.#signingIn = next
    if (next !== undefined) this.stored.begun()
  }

  /** Makes a new id for koa-session, and binds to it the user who is being signed in, or is signed in already. */
  renamed(ctx: Context): string {
    // before it is opened, no user is signed in, and koa-session would ask for an id again if `ctx.session` were read
    const isOpen = this.#koaSession !== undefined
    const next = this.#signingIn
    const goesOn = isOpen && this.stored.text !== null && !this.stored.isLost
    const signIn = next ?? (goesOn ? this.#present(ctx) : undefined)
    const id = this.#owner?.ids.made(signIn?.id) ?? randomId()
    this.#id = id
    this.#signedIn = undefined
    if (signIn !== undefined) this.#bind(ctx, signIn)
    if (next !== undefined) this.#reports?.made(id, next.id, next.subject)
    else if (signIn !== undefined) this.#reports?.recognized(id, signIn.id)
    return id
  }

  /** The record was bound again, by the first key. */
  signedAnew(ctx: Context): void {
    const present = this.#present(ctx)
    if (present !== undefined) this.#bind(ctx, present)
  }

  /** Data were written under an id. */
  wrote(id: string, data: unknown): void {
    this.stored.wrote(id)
    const holds = typeof data === 'object' && data !== null && this.isSignedIn(data)
    if (!holds) this.#reports?.over(id, 'logOut')
  }

  /** An id was ended in the store. */
  ended(id: string, ctx: object): void {
    this.stored.ended(id)
    this.#reports?.over(id, isDropped(ctx) ? 'logOut' : 'renewed')
  }

  /** The session that was read is over. */
  seenOver(id: string, data: object, reason: 'idle' | 'absolute' | 'logOutEverywhere'): void {
    if (this.#reports !== undefined && this.recognized(id, data) !== undefined) this.#reports.seenOver(id, reason)
  }

  /** The session was ended by its user. */
  signedOut(): void {
    this.#signedIn = undefined
    this.stored.gone()
  }

  /** The request is over, and its changes of the session are saved. */
  kept(): void {
    this.#reports?.kept()
  }

  #present(ctx: Context): SignedIn | undefined {
    const session = sessionOf(ctx)
    return session !== null && this.isSignedIn(session) ? this.#signedIn : undefined
  }

  #bind(ctx: Context, signIn: SignIn): void {
    if (this.#owner === undefined || this.#id === undefined) return
    this.#signedIn = bind(signIn, bindingOf(this.#owner, this.#id))
    this.#isSignedByOlderKey = false
    Object.assign(ctx['session'] as object, { auth: { ...this.#signedIn } })
  }

  // -----------------------------------------------------------------------------------
  // questions
  // -----------------------------------------------------------------------------------

  /** Whether it belongs to this call of `sessions`. */
  isOf(owner: SessionOwner): boolean {
    return this.#owner === owner && this.#koaSession !== undefined
  }

  /** Whether a session that is being ended continues under another id. */
  goesOn(ctx: object): boolean {
    return this.#signingIn === undefined && !isDropped(ctx)
  }

  /** koa-session's session, also after `ctx.session` was set to `null`. */
  get koaSession(): KoaSession | undefined {
    return this.#koaSession
  }

  /** Whether an older key bound the record of the user who is signed in. */
  get isSignedByOlderKey(): boolean {
    return this.#isSignedByOlderKey
  }

  /** @see SessionSource */
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

  readonly isUnavailable = (): boolean => this.stored.error !== undefined

  /** Whether a session holds the same record that was recognized or made in this request. */
  readonly isSignedIn = (session: object): boolean => {
    const auth = signedInOf(session)
    return auth !== undefined && this.#signedIn !== undefined && areSame(auth, this.#signedIn)
  }

  readonly load = (session: object): unknown =>
    this.isSignedIn(session) && this.#signedIn !== undefined && this.#owner?.loadUser(this.#signedIn.id)

  readonly digests = (session: object): SignInDigests | undefined =>
    this.isSignedIn(session) &&
    this.#signedIn !== undefined &&
    this.#id !== undefined &&
    this.#owner !== undefined &&
    !this.isUnavailable()
      ? digestsOf(this.#owner.name, this.#id, this.#signedIn.id)
      : undefined
}

const key = Symbol.for('koa-with-auth/requestSession')

interface Carrying {
  [key]?: RequestSession
}

/** The session of a request. The first call makes it. */
export const requestSessionOf = (ctx: object): RequestSession => {
  const carrying: Carrying = ctx
  carrying[key] ??= new RequestSession()
  return carrying[key]
}
