/**
 * Makes koa-session's store from a backend.
 *
 * koa-session does not say whether an id is new. So the ids that a request read or wrote are remembered: such an id is
 * only updated, any other only inserted. Then a slow request that read a session before it was ended can neither bring
 * it back (D-S4), nor continue it under another id.
 */
import type { Context } from 'koa'
import { digestOfSession } from '../core/events.js'
import { digest } from '../crypto/secrets.js'
import { sessionField } from '../kinds/plainSession.js'
import { requestSessionOf, type RequestSession } from './RequestSession.js'
import { lookIn, type Keeping, type Looked, type SessionStore } from './SessionStore.js'
import { detailsOf, unavailable } from './SignIn.js'
import type { SignInList } from './SignInList.js'
import { inTime, parsed, type SessionData } from './StoredSession.js'

/** koa-session's option `store`. `ctx` is the request's context, which koa-session always passes. */
interface KoaSessionStore {
  readonly get: (id: string, maxAge: number, options: Passed) => Promise<unknown>
  readonly set: (id: string, data: unknown, maxAge: number | 'session', options: Passed) => Promise<void>
  readonly destroy: (id: string, options: Passed) => Promise<void>
}

interface Passed {
  readonly ctx?: object
}

interface StoreLimits extends Omit<Keeping, 'name' | 'store'> {
  /** The longest session, in characters of its JSON. */
  readonly maxLength: number
}

/**
 * Makes the store. `get` gives `undefined` for a string that is not a session, for a session that is over, and in an outage. It removes
 * forged sign-ins. If the cookie says who was signed in, the session and the mark of its user are read at the same time. What a store
 * knows at once takes no promise. `set` and `destroy` reject if the backend rejects or if the session could not be read, and `set` with
 * a RangeError for a session that is too large.
 */
export const koaSessionStore = (
  store: SessionStore,
  { idle, absolute, longest, maxLength }: StoreLimits,
  list?: SignInList,
): KoaSessionStore => {
  const look = lookIn(store)
  // Safe: koa-session awaits what it gets, whatever its types say
  const atOnce = (data: unknown) => data as Promise<unknown>
  const recognized = ({ text, markOf }: Looked, id: string, session: RequestSession): unknown => {
    const data = found(text, id, session, idle)
    if (data === undefined) return undefined
    const auth = session.signedIn
    if (auth === undefined) {
      Reflect.deleteProperty(data, 'auth')
      return data
    }
    // A sign-in of the future is over, too: the clock was wrong when the user signed in
    // no longer than `logOutEverywhere` is remembered, also if a time of the application is shorter now
    const lasts = Math.min(detailsOf(auth).absolute ?? absolute, longest)
    if (Math.abs(Date.now() - auth.at) >= lasts) return session.reportExpiry(id, 'absolute')
    const mark = markOf(auth.id) ?? store.markOf(auth.id)
    const listed = list?.isLive(auth, digestOfSession(id))
    if (listed !== undefined || typeof mark !== 'string') return late(data, id, session, [auth.mark, mark, listed])
    return mark === auth.mark ? data : session.reportExpiry(id, 'logOutEverywhere')
  }
  const end = async (id: string, ctx: object, session: RequestSession): Promise<void> => {
    const entry = session.stored.ids.get(id)
    // this one was made in this request, and never saved; the one that came may be over
    if (entry === undefined) return session.endExpired()
    const goesOn = !entry.isEnded && session.goesOn(ctx)
    // before it is read, and after it is ended: so one of two requests that renew it and end it finds the other one
    const isFirst = !goesOn || (await session.leadOn(id))
    // another request has ended the session meanwhile, or renews it
    if (!isFirst || (goesOn && (await store.read(digest(id))) === undefined)) {
      session.stored.isLost = true
      return
    }
    await store.end(digest(id), absolute)
    session.ended(id, ctx)
    if (!goesOn) await session.renewedOver(id)
  }
  return {
    get: (id, _maxAge, { ctx = {} }) => {
      const session = requestSessionOf(ctx)
      const failed = (error: unknown): undefined => {
        session.stored.error = { error }
        return undefined
      }
      try {
        const looked = look(digest(id), session)
        return looked instanceof Promise
          ? looked.then((late) => recognized(late, id, session)).catch(failed)
          : atOnce(recognized(looked, id, session))
      } catch (error) {
        return atOnce(failed(error))
      }
    },
    set: async (id, data, maxAge, { ctx = {} }) => {
      const session = readSession(ctx)
      const text = JSON.stringify(unpolluted(data))
      if (text.length > maxLength) {
        throw new RangeError(`the session is ${text.length} characters long; at most ${maxLength} are kept`)
      }
      // the session has ended meanwhile: koa-session must not write it under a new id
      if (session.stored.isLost && !session.stored.ids.has(id)) return
      const lasting = maxAge === 'session' ? absolute : maxAge
      if (!session.stored.ids.has(id)) await store.insert(digest(id), text, lasting)
      else if (!(await store.update(digest(id), text, lasting))) session.stored.isLost = true
      session.wrote(id, data)
    },
    destroy: async (id, { ctx = {} }) => {
      const session = readSession(ctx)
      await end(id, ctx, session)
      // Safe: koa-session passes the context
      session.dropSignature(ctx as Context)
    },
  }
}

type Later = readonly [carried: string, mark: string | Promise<string>, listed: Promise<boolean> | undefined]

// Not in `recognized`, because a request whose store knows at once needs no closure
const late = async (data: SessionData, id: string, session: RequestSession, [carried, mark, listed]: Later) => {
  listed?.catch(() => undefined)
  if (carried !== (await mark)) return session.reportExpiry(id, 'logOutEverywhere')
  return (await listed) === false ? session.reportExpiry(id, 'logOut') : data
}

// What could not be read must not be changed: the old id would stay alive
const readSession = (ctx: object): RequestSession => {
  const session = requestSessionOf(ctx)
  const { stored } = session
  if (stored.error === undefined) return session
  stored.isRefused = true
  throw unavailable(stored.error.error)
}

// The data in what the store has, if they are in time
const found = (text: unknown, id: string, session: RequestSession, idle: number): SessionData | undefined => {
  if (text === undefined) session.stored.missedId = id
  const data = typeof text === 'string' ? parsed(text) : undefined
  if (typeof text !== 'string' || data === undefined) return undefined
  session.stored.read(id, text)
  const own = detailsOf(session.verifySignIn(id, data)).idle
  if (inTime(data, own ?? idle)) return own === undefined ? data : Object.assign(data, { _maxAge: own })
  return session.reportExpiry(id, 'idle')
}

// The data of koa-session include what its session inherits
const unpolluted = (data: unknown): unknown =>
  typeof data !== 'object' || data === null
    ? data
    : Object.fromEntries(Object.keys(data).map((key) => [key, sessionField(data, key)]))
