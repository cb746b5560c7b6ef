/** The data of a session in koa-session, and its state in the store, in one request. */
import { setImmediate as immediate } from 'node:timers/promises'
import type { Context } from 'koa'
import { jsonFields } from '../core/data.js'
import { sessionData } from '../kinds/plainSession.js'

/** The value of `ctx.session`, as far as it is used here. */
export interface KoaSession {
  readonly _expire?: number
  readonly externalKey?: string
  readonly save: () => Promise<void>
  readonly regenerate: () => Promise<void>
  readonly manuallyCommit: () => Promise<void>
}

/** The session of a context; `null` when it was ended. */
export const sessionOf = (ctx: Context): KoaSession | null => ctx['session']

/** The data of a session as JSON, to find changes. */
export const textOf = (session: KoaSession | null): string | null =>
  session === null ? null : JSON.stringify(sessionData(session))

export type SessionData = Record<string, unknown>

// koa-session assigns every key to an object that has methods and accessors (D-S9)
const reserved = new Set([
  ...['__proto__', 'constructor', 'toJSON', 'isNew', 'length', 'populated', 'maxAge', 'externalKey', 'save'],
  ...['regenerate', 'commit', 'manuallyCommit', '_requireSave', '_session'],
])

/** The data in a string of the store. Without a prototype: koa-session copies inherited keys, too. */
export const parsed = (text: string): SessionData | undefined => {
  // Safe: a new object
  const data = jsonFields(text) as SessionData | undefined
  if (data === undefined) return undefined
  for (const key of Object.keys(data)) if (reserved.has(key)) Reflect.deleteProperty(data, key)
  return data
}

/**
 * Whether a session was used not too long ago. Its `_expire` becomes the present limit. Removes `_maxAge`, how long the session lasted when
 * it was written: koa-session would always prefer it to the option.
 */
export const inTime = (data: SessionData, idle: number): boolean => {
  const { _expire: expires, _maxAge: lasted } = data
  delete data['_maxAge']
  if (typeof expires !== 'number' || typeof lasted !== 'number') return true
  const written = expires - lasted
  const ends = Math.min(expires, written + idle)
  data['_expire'] = ends
  // a session that was written in the future has ended, too: the clock was wrong then
  return ends > Date.now() && written < Date.now() + idle
}

/** The change of an id in the store by a request. */
interface StoredId {
  /** The JSON that was read; `undefined` for an id that was made in this request. */
  readonly textRead: string | undefined
  /** Whether JSON was written in this request. */
  isWritten: boolean
  isEnded: boolean
}

/** The session in the store, and its changes by this request. It does not know which user is signed in. */
export class StoredSession {
  /** The data in the store, as JSON; `null` for a session that was ended. */
  text: string | null | undefined
  /** Why the session cannot be read or changed in this request: the store failed. */
  error: { readonly error: unknown } | undefined
  /** Whether another request ended the session while this one was under way. */
  isLost = false
  /** Whether a change was refused because the session could not be read, even if the operation ignored that. */
  isRefused = false
  /** The id of the cookie, if the store had nothing under it. */
  missedId: string | undefined
  /** Settles when the last change has ended, and work that the request waits for, even if the operation forgot to await it. */
  changing: Promise<unknown> | undefined
  /** How much of such work has not ended. */
  unfinished = 0
  #ids: Map<string, StoredId> | undefined
  // The text that was read, until the ids are asked for: most requests do nothing else
  #idRead: string | undefined
  #textRead = ''

  /** The ids that this request read or wrote. */
  get ids(): ReadonlyMap<string, Readonly<StoredId>> {
    return this.#all()
  }

  #all(): Map<string, StoredId> {
    const ids = (this.#ids ??= new Map<string, StoredId>())
    if (this.#idRead !== undefined)
      ids.set(this.#idRead, { textRead: this.#textRead, isWritten: false, isEnded: false })
    this.#idRead = undefined
    return ids
  }

  /** The store has the present data of the session. */
  kept(ctx: Context): void {
    this.text = textOf(sessionOf(ctx))
  }

  read(id: string, text: string): void {
    if (this.#idRead !== undefined) this.#all()
    this.#idRead = id
    this.#textRead = text
  }

  wrote(id: string): void {
    const ids = this.#all()
    const entry = ids.get(id)
    if (entry === undefined) ids.set(id, { textRead: undefined, isWritten: true, isEnded: false })
    else entry.isWritten = true
  }

  ended(id: string): void {
    const entry = this.#all().get(id)
    if (entry !== undefined) entry.isEnded = true
  }

  /**
   * Changes the session in the store when the changes before are made, even if the operation did not await them. If `change`
   * rejects, this rejects too, and the session is not changed again in this request.
   */
  async runInOrder(change: () => Promise<void>): Promise<void> {
    const before = Promise.resolve(this.changing)
    const changed = before.then(change).catch((error: unknown) => {
      this.error = { error }
      throw error
    })
    this.changing = changed.catch(() => undefined)
    return changed
  }

  /** Lets the request wait for work whose result the operation needs. It yields once, so a missing `await` is detected. */
  async working<A>(work: Promise<A>): Promise<A> {
    this.unfinished++
    const result = work.finally(immediate).finally(() => this.unfinished--)
    this.changing = Promise.allSettled([this.changing, result])
    return result
  }
}
