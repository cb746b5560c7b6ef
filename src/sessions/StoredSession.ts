/**
 * The session of one request as the store has it: what was read, what was written, what was ended, and whether the store
 * failed.
 *
 * Its fields are private and change by the named transitions only. Who is signed in is not known here (`RequestSession.ts`).
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

/** What the store has. */
export class StoredSession {
  /** The data as the store has it, as JSON; `null` for a session that was ended. */
  #text: string | null | undefined
  #error: { readonly error: unknown } | undefined
  #isLost = false
  #changing: Promise<unknown> | undefined
  readonly #ids = new Map<string, StoredId>()

  // -----------------------------------------------------------------------------------
  // transitions
  // -----------------------------------------------------------------------------------

  /** It holds what the session holds now. */
  kept(ctx: Context): void {
    this.#text = textOf(sessionOf(ctx))
  }

  /** It holds nothing: the user ended the session. */
  gone(): void {
    this.#text = null
    this.#isLost = false
  }

  /** Another session begins in its place. */
  begun(): void {
    this.#isLost = false
  }

  /** It failed: the session cannot be known or changed in this request. */
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

  /** Changes it. Rejects with what `change` rejects with, and the session is not touched again in this request. */
  async changing(change: () => Promise<void>): Promise<void> {
    const changed = change().catch((error: unknown) => {
      this.failed(error)
      throw error
    })
    this.#changing = changed.catch(() => undefined)
    return changed
  }

  // -----------------------------------------------------------------------------------
  // questions
  // -----------------------------------------------------------------------------------

  /** Resolves when the last change has come to an end, also one that the operation forgot to await. */
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
