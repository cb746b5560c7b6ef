/**
 * `SessionStore` is the interface of a database that keeps sessions.
 *
 * A backend reads, inserts, updates and ends. It never decides which of these is needed (`koaSessionStore.ts` does).
 *
 * Backends get a digest of the id, never the id. So somebody who reads the database cannot take a session over.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { OneTimeIds } from '../core/OneTimeIds.js'
import { steadyClock } from '../core/data.js'
import { declareFactory } from '../core/options.js'
import { digest, randomId } from '../crypto/secrets.js'
import { within } from '../stores/within.js'

/** A database of sessions. All times are in milliseconds; every method may reject, which is an outage. */
export interface SessionStore {
  /** Resolves to the string that is stored under an id; to `undefined` if there is none, if it has expired, or if it was ended. */
  readonly read: (id: string) => Promise<string | undefined>
  /** Stores a string under a new id. Does nothing if the id is known, ended or not. */
  readonly insert: (id: string, text: string, lifetime: number) => Promise<void>
  /** Replaces the string of a session that has not ended, and resolves to `true`. Otherwise it does nothing, and resolves to `false`. */
  readonly update: (id: string, text: string, lifetime: number) => Promise<boolean>
  /** Ends a session, and remembers that for `lifetime`: until then, the id cannot be inserted again. */
  readonly end: (id: string, lifetime: number) => Promise<void>
  /** Resolves to the mark that the sessions of a user must carry, or to `''` if none was set. */
  readonly markOf: (user: string) => Promise<string>
  /** Sets another mark, and keeps it for `lifetime`. Sessions that carry an older mark have ended. */
  readonly mark: (user: string, mark: string, lifetime: number) => Promise<void>
  /** Keeps an id for `lifetime`, and resolves to `true` for one caller only. Left out: `insert` and `read` do it. */
  readonly spend?: ((id: string, lifetime: number) => Promise<boolean>) | undefined
  /** Adds an entry to the set of a user, for `lifetime`. Only for `sessions(app, { list: true })`. */
  readonly enlist?: ((user: string, entry: string, lifetime: number) => Promise<void>) | undefined
  /** The entries in the set of a user that have not expired, in any order. */
  readonly listed?: ((user: string) => Promise<ReadonlyArray<string>>) | undefined
}

/** What the parts of an application's sessions need of it. All times are in milliseconds. */
export interface Keeping {
  /** The application's name. */
  readonly name: string
  /** With its time limit. */
  readonly store: SessionStore
  readonly idle: number
  /** How long a sign-in lasts, and how long an ended session is remembered. */
  readonly absolute: number
  /** The longest time for which any session can last. */
  readonly longest: number
}

/** What a look-up finds. */
export interface Looked {
  /** What is stored under the id of a session. */
  readonly text: unknown
  /** The mark of a user; `undefined` if this look-up was not about the user. */
  readonly markOf: (user: string) => string | undefined
}

/** Looks a session up by the digest of its id, and the mark of the user who is probably signed in by it. */
type LookUp = (id: string, cookie: { readonly likelyUser: () => string | undefined }) => Looked | Promise<Looked>

// The stores of this package that know both in one question, by their own `read`. A store that was made of one, with another `read` or
// `markOf`, is asked by these
const inOneQuestion = new WeakMap<
  SessionStore['read'],
  { readonly markOf: SessionStore['markOf']; readonly look: LookUp }
>()

/** A store that answers both in one question. */
export const answeringBoth = <S extends SessionStore>(store: S, look: LookUp): S => {
  inOneQuestion.set(store.read, { markOf: store.markOf, look })
  return store
}

/** How to look both up in a store, in one question if it can, else at the same time. */
export const lookIn = (store: SessionStore): LookUp => {
  const known = inOneQuestion.get(store.read)
  return known !== undefined && known.markOf === store.markOf ? known.look : atTheSameTime(store)
}

/** Asks for both at the same time. */
export const atTheSameTime =
  (store: SessionStore): LookUp =>
  async (id, cookie) => {
    const user = cookie.likelyUser()
    const reading = store.read(id)
    const marking = user === undefined ? undefined : store.markOf(user)
    // if the session is gone, the mark is not needed, and its failure does not matter
    marking?.catch(() => undefined)
    const text = await reading
    const mark = text === undefined ? undefined : await marking
    return { text, markOf: (one) => (one === user ? mark : undefined) }
  }

/** One-time ids in a store of sessions, apart for each application. */
export const idsOf = (store: SessionStore, application: string): OneTimeIds => {
  const keyOf = (id: string) => digest(`koa-with-auth/once\n${application}\n${id}`)
  return {
    use: async (id, lifetime) => {
      const key = keyOf(id)
      if (store.spend !== undefined) return (await store.spend(key, lifetime)) === true
      // an insert does nothing if the id is known, so one of the strings stays
      const mine = randomId(16)
      await store.insert(key, mine, lifetime)
      return (await store.read(key)) === mine
    },
    release: async (id, lifetime = 0) => {
      const key = keyOf(id)
      await store.update(key, '', Math.max(1, lifetime))
      if (lifetime >= 1) return
      // a store keeps it for a millisecond at least, by its own clock; some for two
      await pause(2)
      for (let times = 0; times < 10 && (await store.read(key)) === ''; times++) await pause(1)
    },
  }
}

/** A store that rejects with `StoreUnavailable` when it fails, and after `timeout` milliseconds. */
export const timedStore = (store: SessionStore, timeout: number): SessionStore => {
  const timed = within('sessions', timeout)
  const spend = store.spend?.bind(store)
  const enlist = store.enlist?.bind(store)
  const listed = store.listed?.bind(store)
  const look = lookIn(store)
  const limited: SessionStore = {
    read: (id) => timed(() => store.read(id)),
    insert: (id, text, lifetime) => timed(() => store.insert(id, text, lifetime)),
    update: (id, text, lifetime) => timed(() => store.update(id, text, lifetime)),
    end: (id, lifetime) => timed(() => store.end(id, lifetime)),
    markOf: (user) => timed(() => store.markOf(user)),
    mark: (user, mark, lifetime) => timed(() => store.mark(user, mark, lifetime)),
    ...(spend !== undefined && { spend: (id, lifetime) => timed(() => spend(id, lifetime)) }),
    ...(enlist !== undefined && { enlist: (user, entry, lifetime) => timed(() => enlist(user, entry, lifetime)) }),
    ...(listed !== undefined && { listed: (user) => timed(() => listed(user)) }),
  }
  const isInOne = inOneQuestion.get(store.read)?.look === look
  if (!isInOne) return limited
  return answeringBoth(limited, (id, cookie) => {
    const looked = look(id, cookie)
    return looked instanceof Promise ? timed(() => looked) : looked
  })
}

interface Kept {
  /** `undefined`: the session was ended. */
  readonly text: string | undefined
  readonly until: number
}

const SWEEP_EVERY = 1000

/**
 * A store that keeps sessions in memory, and drops expired ones. It is for development and tests: the sessions are lost
 * when the process ends, and no other process knows them.
 *
 * @example
 * import { memoryStore } from 'koa-with-auth/sessions'
 *
 * const store = memoryStore()
 */
export const memoryStore = (): SessionStore => {
  const sessions = new Map<string, Kept>()
  const marks = new Map<string, Kept>()
  const lists = new Map<string, Map<string, number>>()
  const overBy = steadyClock()
  let writes = 0
  const live = (kept: Map<string, Kept>, key: string): Kept | undefined => {
    const found = kept.get(key)
    return found !== undefined && found.until > Date.now() ? found : undefined
  }
  const keep = (kept: Map<string, Kept>, key: string, text: string | undefined, lifetime: number): void => {
    kept.set(key, { text, until: Date.now() + lifetime })
    if (++writes % SWEEP_EVERY !== 0) return
    for (const all of [sessions, marks]) {
      for (const [one, { until }] of all) if (until <= overBy()) all.delete(one)
    }
    for (const user of lists.keys()) liveEntries(user)
  }
  const liveEntries = (user: string): ReadonlyArray<string> => {
    const entries = lists.get(user)
    for (const [entry, until] of entries ?? []) if (until <= overBy()) entries?.delete(entry)
    if (entries?.size === 0) lists.delete(user)
    return [...(entries ?? [])].flatMap(([entry, until]) => (until > Date.now() ? [entry] : []))
  }
  const done = Promise.resolve()
  const textOf = (id: string) => live(sessions, id)?.text
  const markFor = (user: string) => live(marks, user)?.text ?? ''
  const store: SessionStore = {
    read: (id) => Promise.resolve(textOf(id)),
    insert: (id, text, lifetime) => {
      if (live(sessions, id) === undefined) keep(sessions, id, text, lifetime)
      return done
    },
    update: (id, text, lifetime) => {
      const isThere = live(sessions, id)?.text !== undefined
      if (isThere) keep(sessions, id, text, lifetime)
      return Promise.resolve(isThere)
    },
    end: (id, lifetime) => {
      keep(sessions, id, undefined, lifetime)
      return done
    },
    markOf: (user) => Promise.resolve(markFor(user)),
    mark: (user, mark, lifetime) => {
      keep(marks, user, mark, lifetime)
      return done
    },
    enlist: (user, entry, lifetime) => {
      lists.set(user, (lists.get(user) ?? new Map<string, number>()).set(entry, Date.now() + lifetime))
      return done
    },
    listed: (user) => Promise.resolve(liveEntries(user)),
  }
  return answeringBoth(store, (id) => ({ text: textOf(id), markOf: markFor }))
}

declareFactory('memoryStore', memoryStore)

/** The store of an application that names none. Throws a TypeError in production. */
export const defaultStore = (isProduction: boolean): SessionStore => {
  if (!isProduction) return memoryStore()
  throw new TypeError(
    'sessions(app, { store }) is required in production: use sqliteStore of koa-with-auth/sqlite, or redisStore of koa-with-auth/redis',
  )
}
