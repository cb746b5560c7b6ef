/**
 * Makes koa-session's store from a backend.
 *
 * koa-session does not say whether an id is new. So the ids that a request read or wrote are remembered: such an id is
 * only updated, any other only inserted. Then a slow request that read a session before it was ended can neither bring
 * it back (D-S4), nor continue it under another id.
 */
import type { Context } from 'koa'
import { ownField } from '../core/data.js'
import { sessionDigest, type SignedOutReason } from '../core/events.js'
import { sessionField } from '../kinds/plainSession.js'
import { requestSessionOf, type RequestSession } from './RequestSession.js'
import { digestOf, lookIn, type Looked, type SessionStore } from './SessionStore.js'
import { detailsOf, unavailable } from './SignIn.js'
import type { SignInList } from './SignInList.js'

/** koa-session's option `store`. `ctx` is the request's context, which koa-session always passes. */
interface KoaSessionStore {
  readonly get: (id: string, maxAge: number, options: { readonly ctx?: object }) => Promise<unknown>
  readonly set: (
    id: string,
    data: unknown,
    maxAge: number | 'session',
    options: { readonly ctx?: object },
  ) => Promise<void>
  readonly destroy: (id: string, options: { readonly ctx?: object }) => Promise<void>
}

interface StoreLimits {
  /** How long an unused session lasts, in milliseconds. Left out: as long as was written with it. */
  readonly idle?: number
  /** How long an ended session is remembered, in milliseconds: at least as long as it could have lasted. */
  readonly lifetime: number
  /** The longest session, in characters of its JSON. */
  readonly maxLength: number
}

/**
 * Makes the store. It rejects if the backend rejects, and with a RangeError for a session that is too large. `get`
 * resolves to `undefined` for a string that is not a session, and for a session that was not used for too long.
 */
export const koaSessionStore = (store: SessionStore, { idle, lifetime, maxLength }: StoreLimits): KoaSessionStore => ({
  get: async (id, _maxAge, { ctx = {} }) => found(await store.read(digestOf(id)), id, requestSessionOf(ctx), idle),
  set: async (id, data, maxAge, { ctx = {} }) => {
    const text = JSON.stringify(unpolluted(data))
    if (text.length > maxLength) {
      throw new RangeError(`the session is ${text.length} characters long; at most ${maxLength} are kept`)
    }
    const session = requestSessionOf(ctx)
    // the session has ended meanwhile: koa-session must not write it under a new id
    if (session.stored.isLost && !session.stored.ids.has(id)) return
    const lasting = maxAge === 'session' ? lifetime : maxAge
    if (!session.stored.ids.has(id)) await store.insert(digestOf(id), text, lasting)
    else if (!(await store.update(digestOf(id), text, lasting))) session.stored.lost()
    session.wrote(id, data)
  },
  destroy: async (id, { ctx = {} }) => {
    const session = requestSessionOf(ctx)
    // an id that was made in this request, and never saved, need not be ended
    const entry = session.stored.ids.get(id)
    if (entry === undefined) return
    const goesOn = !entry.isEnded && session.goesOn(ctx)
    // another request has ended the session meanwhile
    if (goesOn && (await store.read(digestOf(id))) === undefined) return session.stored.lost()
    if (goesOn) await session.leadOn(id)
    await store.end(digestOf(id), lifetime)
    session.ended(id, ctx)
  },
})

type SessionData = Record<string, unknown>

// The data in what the store has, if they are in time
const found = (
  text: unknown,
  id: string,
  session: RequestSession,
  idle: number | undefined,
): SessionData | undefined => {
  if (text === undefined) session.stored.missed(id)
  const data = typeof text === 'string' ? parsed(text) : undefined
  if (typeof text !== 'string' || data === undefined) return undefined
  session.stored.read(id, text)
  const own = idle === undefined ? undefined : detailsOf(session.verifySignIn(id, data)).idle
  if (inTime(data, own ?? idle)) return own === undefined ? data : Object.assign(data, { _maxAge: own })
  session.reportExpiry(id, data, 'idle')
  return undefined
}

// koa-session assigns every key to an object that has methods and accessors (D-S9)
const reserved = new Set(
  ['__proto__ constructor toJSON isNew length populated maxAge externalKey save regenerate commit manuallyCommit']
    .join(' ')
    .split(' ')
    .concat('_requireSave', '_session'),
)

/** The data in a string of the store. Without a prototype: koa-session copies inherited keys, too. */
export const parsed = (text: string): SessionData | undefined => {
  try {
    const read: unknown = JSON.parse(text)
    if (typeof read !== 'object' || read === null || Array.isArray(read)) return undefined
    // Safe: an object without a prototype has no fields yet
    const data = Object.create(null) as SessionData
    for (const key of Object.keys(read)) if (!reserved.has(key)) data[key] = ownField(read, key)
    return data
  } catch {
    return undefined
  }
}

/**
 * Whether a session was used not too long ago. Its `_expire` becomes what holds now. Removes `_maxAge`, how long the session lasted when
 * it was written: koa-session would prefer it to the option for ever.
 */
export const inTime = (data: SessionData, idle: number | undefined): boolean => {
  const { _expire: expires, _maxAge: lasted } = data
  if (idle === undefined) return true
  delete data['_maxAge']
  if (typeof expires !== 'number' || typeof lasted !== 'number') return true
  const written = expires - lasted
  const ends = Math.min(expires, written + idle)
  data['_expire'] = ends
  // one that was written in the future is over, too: the clock was wrong then
  return ends > Date.now() && written < Date.now() + idle
}

// The data of koa-session include what its session inherits
const unpolluted = (data: unknown): unknown =>
  typeof data !== 'object' || data === null
    ? data
    : Object.fromEntries(Object.keys(data).flatMap((key) => fieldIn(data, key)))

const fieldIn = (data: object, key: string): ReadonlyArray<readonly [string, unknown]> => {
  const value = sessionField(data, key)
  return value === undefined ? [] : [[key, value]]
}

/** The limits of a sign-in, in milliseconds. */
interface SignInLimits {
  readonly idle: number
  readonly absolute: number
  /** The longest time for which any session can last. */
  readonly longest: number
}

/**
 * A store for koa-session. `get` gives `undefined` in an outage and for a session that is over, and removes forged sign-ins. If the
 * cookie says who was signed in, the session and the mark of its user are read at the same time. What a store knows at once takes no
 * promise.
 */
export const recognizing = (
  kept: KoaSessionStore,
  store: SessionStore,
  limits: SignInLimits,
  list?: SignInList,
): KoaSessionStore => {
  const look = lookIn(store)
  // Safe: koa-session awaits what it gets, whatever its types say
  const atOnce = (data: unknown) => data as Promise<unknown>
  const recognized = ({ text, markOf }: Looked, id: string, session: RequestSession): unknown => {
    const data = found(text, id, session, limits.idle)
    if (data === undefined) return undefined
    const auth = session.recognized
    if (auth === undefined) {
      Reflect.deleteProperty(data, 'auth')
      return data
    }
    const over = (reason: SignedOutReason): undefined => {
      session.reportExpiry(id, data, reason)
      return undefined
    }
    // A sign-in of the future is over, too: the clock was wrong when the user signed in
    // no longer than `logOutEverywhere` is remembered, also if a time of the application is shorter now
    const lasts = Math.min(detailsOf(auth).absolute ?? limits.absolute, limits.longest)
    if (Math.abs(Date.now() - auth.at) >= lasts) return over('absolute')
    const mark = markOf(auth.id) ?? store.markOf(auth.id)
    const listed = list?.isLive(auth, sessionDigest(id))
    if (listed === undefined && typeof mark === 'string') return mark === auth.mark ? data : over('logOutEverywhere')
    listed?.catch(() => undefined)
    const late = async () => {
      if ((await mark) !== auth.mark) return over('logOutEverywhere')
      return (await listed) === false ? over('logOut') : data
    }
    return late()
  }
  return {
    // what could not be read must not be changed: the old id would stay alive
    set: async (id, data, maxAge, options) => {
      checkRead(options.ctx)
      return kept.set(id, data, maxAge, options)
    },
    destroy: async (id, options) => {
      checkRead(options.ctx)
      await kept.destroy(id, options)
      // Safe: koa-session passes the context
      requestSessionOf(options.ctx ?? {}).dropSignature(options.ctx as Context)
    },
    get: (id, _maxAge, { ctx = {} }) => {
      const session = requestSessionOf(ctx)
      const failed = (error: unknown): undefined => {
        session.stored.failed(error)
        return undefined
      }
      try {
        const looked = look(digestOf(id), session)
        return looked instanceof Promise
          ? looked.then((late) => recognized(late, id, session)).catch(failed)
          : atOnce(recognized(looked, id, session))
      } catch (error) {
        return atOnce(failed(error))
      }
    },
  }
}

const checkRead = (ctx: object = {}): void => {
  const { stored } = requestSessionOf(ctx)
  if (stored.error === undefined) return
  stored.refused()
  throw unavailable(stored.error.error)
}
