/**
 * The session of one request: what the store knows of it, who is signed in by it, and what the operation did to it.
 *
 * Its fields are private and change by the named transitions only. It is on the context under a symbol, and is what the
 * session authenticators ask.
 */
import type { Context } from 'koa'
import { sessionData } from '../core/session/sessionFields.js'
import type { SessionSource } from '../core/session/SessionSource.js'
import { randomId, type SessionIds } from './sessionIds.js'
import { bind, boundBy, signedInOf, type SignedIn, type SignIn } from './SignedIn.js'

/** The part of koa-session's session that is used here. */
export interface KoaSession {
  readonly _expire?: number
  readonly save: () => Promise<void>
  readonly regenerate: () => Promise<void>
  readonly manuallyCommit: () => Promise<void>
}

/** What a session knows of the call of `sessions` that it belongs to. */
export interface SessionOwner {
  /** The signing keys, as they are now. */
  readonly keys: () => unknown
  /** The application's name. */
  readonly name: string
  readonly ids: SessionIds
  readonly loadUser: (id: string) => unknown
}

/** What a request did to an id in the store. */
export interface StoredId {
  /** The JSON that was read; `undefined` for an id that was made in this request. */
  readonly textRead: string | undefined
  /** Whether JSON was written in this request. */
  isWritten: boolean
  isEnded: boolean
}

/** The session of one request. */
export class RequestSession implements SessionSource {
  #owner: SessionOwner | undefined
  #koaSession: KoaSession | undefined
  /** The data as the store has it, as JSON; `null` for a session that was ended. */
  #storedText: string | null | undefined
  #storeError: { readonly error: unknown } | undefined
  #endedMeanwhile = false
  #changing: Promise<unknown> | undefined
  #id: string | undefined
  #signingIn: SignIn | undefined
  #signedIn: SignedIn | undefined
  #isSignedByOlderKey = false
  readonly #ids = new Map<string, StoredId>()

  // -----------------------------------------------------------------------------------
  // what koa-session and the store did
  // -----------------------------------------------------------------------------------

  /** A call of `sessions` takes it on. */
  takenOn(owner: SessionOwner): void {
    this.#owner = owner
  }

  /** koa-session has made or loaded the session. */
  opened(ctx: Context): void {
    this.#koaSession = sessionOf(ctx) ?? undefined
    this.stored(ctx)
  }

  /** The store holds what the session holds now. */
  stored(ctx: Context): void {
    this.#storedText = textOf(sessionOf(ctx))
  }

  /** The store failed: the session cannot be known or changed in this request. */
  failed(error: unknown): void {
    this.#storeError = { error }
  }

  /** JSON was read under an id. */
  read(id: string, text: string): void {
    this.#id = id
    this.#ids.set(id, { textRead: text, isWritten: false, isEnded: false })
  }

  /** JSON was written under an id. */
  wrote(id: string): void {
    const known = this.#ids.get(id)
    if (known === undefined) this.#ids.set(id, { textRead: undefined, isWritten: true, isEnded: false })
    else known.isWritten = true
  }

  /** An id was ended in the store. */
  ended(id: string): void {
    const known = this.#ids.get(id)
    if (known !== undefined) known.isEnded = true
  }

  /** Another request ended the session while this one was under way. */
  lost(): void {
    this.#endedMeanwhile = true
  }

  // -----------------------------------------------------------------------------------
  // who is signed in
  // -----------------------------------------------------------------------------------

  /** Who is signed in by data that was read; a record that is not bound to the session and the application is nothing. */
  recognized(id: string, data: object): SignedIn | undefined {
    const auth = signedInOf(data)
    if (auth === undefined || this.#owner === undefined) return undefined
    const key = boundBy(auth, bindingOf(this.#owner, id))
    if (key === 'none') return undefined
    this.#signedIn = auth
    this.#isSignedByOlderKey = key === 'older'
    return auth
  }

  /** A user is to be signed in under the next id. */
  signingIn(signIn: SignIn | undefined): void {
    this.#signingIn = signIn
  }

  /** A new id for koa-session. Who is being signed in, or is signed in already, is bound to it. */
  renamed(ctx: Context): string {
    // before it is opened no user is signed in, and reading `ctx.session` would make koa-session ask for an id again
    const isOpen = this.#koaSession !== undefined
    const signIn = this.#signingIn ?? (isOpen && this.#storedText !== null ? this.#present(ctx) : undefined)
    const id = this.#owner?.ids.made(signIn?.id) ?? randomId()
    this.#id = id
    this.#signedIn = undefined
    if (signIn !== undefined) this.#bind(ctx, signIn)
    return id
  }

  /** The record is bound anew by the first key. */
  signedAnew(ctx: Context): void {
    const present = this.#present(ctx)
    if (present !== undefined) this.#bind(ctx, present)
  }

  /** The session was ended by its user. */
  signedOut(): void {
    this.#signedIn = undefined
    this.#storedText = null
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
  // changes of the store
  // -----------------------------------------------------------------------------------

  /** Changes the store. Rejects with what `change` rejects with, and the session is not touched again in this request. */
  async changing(change: () => Promise<void>): Promise<void> {
    const changed = change().catch((error: unknown) => {
      this.failed(error)
      throw error
    })
    this.#changing = changed.catch(() => undefined)
    return changed
  }

  /** Resolves when the last change has come to an end, also one that the operation forgot to await. */
  async settled(): Promise<void> {
    await this.#changing
  }

  // -----------------------------------------------------------------------------------
  // questions
  // -----------------------------------------------------------------------------------

  /** Whether this call of `sessions` took it on. */
  isOf(owner: SessionOwner): boolean {
    return this.#owner === owner && this.#koaSession !== undefined
  }

  /** koa-session's session, also after `ctx.session` was set to `null`. */
  get koaSession(): KoaSession | undefined {
    return this.#koaSession
  }

  get storedText(): string | null | undefined {
    return this.#storedText
  }

  get storeError(): { readonly error: unknown } | undefined {
    return this.#storeError
  }

  get endedMeanwhile(): boolean {
    return this.#endedMeanwhile
  }

  /** Whether an older key bound who is signed in. */
  get isSignedByOlderKey(): boolean {
    return this.#isSignedByOlderKey
  }

  /** The ids that this request read or wrote. */
  get ids(): ReadonlyMap<string, Readonly<StoredId>> {
    return this.#ids
  }

  readonly isUnavailable = (): boolean => this.#storeError !== undefined

  /** Whether a session holds the very record that was recognized or made in this request. */
  readonly isSignedIn = (session: object): boolean => {
    const auth = signedInOf(session)
    const known = this.#signedIn
    return (
      auth !== undefined &&
      known !== undefined &&
      auth.id === known.id &&
      auth.at === known.at &&
      auth.mark === known.mark &&
      auth.mac === known.mac
    )
  }

  readonly load = (session: object): unknown =>
    this.isSignedIn(session) && this.#signedIn !== undefined && this.#owner?.loadUser(this.#signedIn.id)
}

const bindingOf = ({ keys, name }: SessionOwner, sessionId: string) => ({ keys: keys(), name, sessionId })

const key = Symbol.for('koa-with-auth/requestSession')

interface Carrying {
  [key]?: RequestSession
}

/** The session of a request; made when it is first asked for. */
export const requestSessionOf = (ctx: object): RequestSession => {
  const carrying: Carrying = ctx
  carrying[key] ??= new RequestSession()
  return carrying[key]
}

/** What koa-session has at `ctx.session`; `null` when it was ended. */
export const sessionOf = (ctx: Context): KoaSession | null => ctx['session']

/** The data of a session as JSON, by which changes are found. */
export const textOf = (session: KoaSession | null): string | null =>
  session === null ? null : JSON.stringify(sessionData(session))
