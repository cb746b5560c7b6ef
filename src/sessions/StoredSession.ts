/**
 * The session of one request as the store knows it: what was read, written and ended, and whether the store failed.
 *
 * Its fields are private, and change only by the named transitions. It does not know who is signed in
 * (`RequestSession.ts` does).
 */
import type { Context } from 'koa'
import { sessionOf, textOf } from './KoaSession.js'

/** What a request did to an id in the store. */
export interface StoredId {
  /** The JSON that was read; `undefined` for an id that was made in this request. */
  readonly textRead: string | undefined
  /** Whether JSON was written in this request. */
  isWritten: boolean
  isEnded: boolean
}

/** What the store knows of the session. */
export class StoredSession {
  /** The data in the store, as JSON; `null` for a session that was ended. */
  #text: string | null | undefined
  #error: { readonly error: unknown } | undefined
  #isLost = false
  #changing: Promise<unknown> | undefined
  readonly #ids = new Map<string, StoredId>()

  // -----------------------------------------------------------------------------------
  // transitions
  // -----------------------------------------------------------------------------------

  /** The store has what the session holds now. */
  kept(ctx: Context): void {
    this.#text = textOf(sessionOf(ctx))
  }

  /** The store has nothing, because the user ended the session. */
  gone(): void {
    this.#text = null
    this.#isLost = false
  }

  /** Another session begins in its place. */
  begun(): void {
    this.#isLost = false
  }

  /** The store failed, so the session cannot be read or changed in this request. */
  failed(error: unknown): void {
    this.#error = { error }
  }

  /** JSON was read under an id. */
  read(id: string, text: string): void {
    this.#ids.set(id, { textRead: text, isWritten: false, isEnded: false })
  }

  /** JSON was written under an id. */
  wrote(id: string): void {
    const known = this.#ids.get(id)
    if (known === undefined) this.#ids.set(id, { textRead: undefined, isWritten: true, isEnded: false })
    else known.isWritten = true
  }

  /** An id was ended. */
  ended(id: string): void {
    const known = this.#ids.get(id)
    if (known !== undefined) known.isEnded = true
  }

  /** Another request ended the session while this one was under way. */
  lost(): void {
    this.#isLost = true
  }

  /**
   * Changes the session in the store when the changes before are made, even if the operation did not await them. If `change`
   * rejects, this rejects too, and the session is not changed again in this request.
   */
  async changing(change: () => Promise<void>): Promise<void> {
    const changed = this.settled()
      .then(change)
      .catch((error: unknown) => {
        this.failed(error)
        throw error
      })
    this.#changing = changed.catch(() => undefined)
    return changed
  }

  // -----------------------------------------------------------------------------------
  // questions
  // -----------------------------------------------------------------------------------

  /** Resolves when the last change has ended, even if the operation forgot to await it. */
  async settled(): Promise<void> {
    await this.#changing
  }

  get text(): string | null | undefined {
    return this.#text
  }

  get error(): { readonly error: unknown } | undefined {
    return this.#error
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /** The ids that this request read or wrote. */
  get ids(): ReadonlyMap<string, Readonly<StoredId>> {
    return this.#ids
  }
}
