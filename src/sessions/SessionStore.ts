/**
 * Where sessions are kept: the one small interface that a database has to fit, and what it becomes for koa-session.
 *
 * A backend reads, inserts, updates and ends; it never decides which of the last three. koa-session does not say whether an
 * id is new either, so what was read or written in a request is remembered: such an id is only updated, any other only
 * inserted. So a slow request that read a session before it was ended cannot bring it back (SECURITY D-S4).
 *
 * Backends get a digest of the id, never the id: who reads the database cannot take a session over.
 */
import { createHash } from 'node:crypto'
import { visitOf } from './Visit.js'

/** What a session holds: JSON. */
export type SessionData = Readonly<Record<string, unknown>>

/** A database of sessions. All times are in milliseconds; every method may reject, which is an outage. */
export interface SessionStore {
  /** The text kept for an id, unless there is none, its time is over, or it was ended. */
  readonly read: (id: string) => Promise<string | undefined>
  /** Keeps a text under an id that is not there; does nothing where it is, ended or not. */
  readonly insert: (id: string, text: string, lifetime: number) => Promise<void>
  /** Replaces the text of a session that is there and has not been ended, and tells whether it was; else does nothing. */
  readonly update: (id: string, text: string, lifetime: number) => Promise<boolean>
  /** Ends a session, and keeps the fact for this long: nobody can insert it again. */
  readonly end: (id: string, lifetime: number) => Promise<void>
  /** The mark that sessions of a user must carry; `''` as long as none was set. */
  readonly markOf: (user: string) => Promise<string>
  /** Sets another mark, and keeps it for this long: sessions that carry an older one are over. */
  readonly mark: (user: string, mark: string, lifetime: number) => Promise<void>
}

/** What koa-session takes as its `store`; `ctx` is the request's context, which it always gives. */
export interface KoaSessionStore {
  readonly get: (id: string, maxAge: number, options: { readonly ctx?: object }) => Promise<unknown>
  readonly set: (
    id: string,
    data: unknown,
    maxAge: number | 'session',
    options: { readonly ctx?: object },
  ) => Promise<void>
  readonly destroy: (id: string, options: { readonly ctx?: object }) => Promise<void>
}

/** How a store is used. */
export interface StoreLimits {
  /** How long an ended session is remembered, in milliseconds: as long as it could have lasted. */
  readonly lifetime: number
  /** The longest session, in characters of its JSON. */
  readonly maxLength: number
}

/** What a backend is given for an id. */
export const digestOf = (id: string): string => createHash('sha256').update(id).digest('base64url')

/**
 * A backend as koa-session's store. Rejects with what the backend rejects with, with a RangeError for a session that is too
 * large, and answers nothing for a text that holds no session.
 */
export const koaSessionStore = (store: SessionStore, { lifetime, maxLength }: StoreLimits): KoaSessionStore => {
  const known = new WeakMap<object, Set<string>>()
  const remember = (ctx: object, id: string): void => {
    const ids = known.get(ctx)
    if (ids === undefined) known.set(ctx, new Set([id]))
    else ids.add(id)
  }
  return {
    get: async (id, _maxAge, { ctx = {} }) => {
      const data = parsed(await store.read(digestOf(id)))
      if (data !== undefined) remember(ctx, id)
      return data
    },
    set: async (id, data, maxAge, { ctx = {} }) => {
      const text = JSON.stringify(data)
      if (text.length > maxLength) {
        throw new RangeError(`the session is ${text.length} characters long; at most ${maxLength} are kept`)
      }
      const lasting = maxAge === 'session' ? lifetime : maxAge
      if (known.get(ctx)?.has(id) === true) {
        visitOf(ctx).isGone = !(await store.update(digestOf(id), text, lasting))
        return
      }
      await store.insert(digestOf(id), text, lasting)
      remember(ctx, id)
    },
    destroy: async (id, { ctx = {} }) => {
      // an id that was made for this request, and never kept, needs no end
      if (known.get(ctx)?.has(id) === true) await store.end(digestOf(id), lifetime)
    },
  }
}

// koa-session assigns every key to an object with methods and accessors of its own (SECURITY D-S9)
const reserved = new Set(
  ['__proto__ constructor toJSON isNew length populated maxAge externalKey save regenerate commit manuallyCommit']
    .join(' ')
    .split(' ')
    .concat('_requireSave', '_session'),
)

const parsed = (text: string | undefined): SessionData | undefined => {
  if (text === undefined) return undefined
  try {
    const data: unknown = JSON.parse(text)
    if (typeof data !== 'object' || data === null || Array.isArray(data)) return undefined
    return Object.fromEntries(Object.entries(data).filter(([key]) => !reserved.has(key)))
  } catch {
    return undefined
  }
}
