/**
 * The functions that koa-session calls, for the cookie, new ids, and the store. One object has them all, and knows the session of each request by the
 * context that koa-session passes. A request calls them in this order, and leaves out those that it does not need:
 *
 * 1. `externalKey.get`: which id the request has.
 * 2. `store.get`: the data under it, and whether the sign-in in them is valid.
 * 3. The operation. Its changes are written after it, or at once by `logIn`, `logOut` and `addProof`:
 *    `store.destroy` ends the old id, `genid` makes another one, `store.set` writes, `externalKey.set` sends the cookie.
 *
 * koa-session does not say whether an id is new. So the ids that a request read or wrote are remembered: such an id is
 * only updated, any other only inserted. Then a slow request that read a session before it was ended can neither bring
 * it back (D-S4), nor continue it under another id.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Context } from 'koa'
import * as AuthErrors from '../core/AuthError.js'
import type { AuthError } from '../core/AuthError.js'
import { ageOf, thisMoment } from '../core/data.js'
import { recordDigest } from '../core/events.js'
import { fromNow } from '../core/memory.js'
import { andThen } from '../core/Result.js'
import { sessionField } from '../kinds/plainSession.js'
import type { Bearer } from './Bearer.js'
import { requestSessionOf, type RequestSession } from './RequestSession.js'
import { LONGEST_ROTATION } from './SessionEnds.js'
import { hintFor, sessionKey, textAt, type Hint, type SessionRecords } from './SessionRecords.js'
import { detailsOf, unavailable, type SignedIn } from './SignIn.js'
import { isListed, type SignInList } from './SignInList.js'
import { inTime, parsed, type SessionData } from './StoredSession.js'

interface Passed {
  readonly ctx?: object
}

interface KoaSessionStore extends SessionRecords {
  /** The longest session, in characters of its JSON. */
  readonly maxLength: number
  readonly list: SignInList | undefined
  readonly bearer: Bearer | undefined
}

/**
 * Makes the options of koa-session that are functions. `store.get` gives `undefined` for a string that is not a session, for a session that has ended, and in an outage. It removes
 * forged sign-ins. If the cookie names its user, the session, the stamp of the user and the entry of the list are one query.
 * A store that answers without a promise takes none. `set` and `destroy` reject if the store rejects or if the session could not be read,
 * and `set` with a RangeError for a session that is too large.
 */
export const koaSessionStore = (self: KoaSessionStore) => ({
  externalKey: {
    get: (ctx: Context) => requestSessionOf(ctx).readId(ctx),
    set: (ctx: Context, id: string) => requestSessionOf(ctx).giveCookie(ctx, id),
  },
  genid: (ctx: Context) => requestSessionOf(ctx).assignId(ctx),
  store: {
    // Safe: koa-session awaits the result, whatever its types say
    get: (id: string, _maxAge: number, { ctx = {} }: Passed) => find(self, id, ctx) as Promise<unknown>,
    // Safe: `sessions` and `lockAge` give it a number
    set: (id: string, data: unknown, maxAge: unknown, { ctx = {} }: Passed) =>
      write(self, id, data, maxAge as number, changeable(ctx)),
    destroy: (id: string, { ctx = {} }: Passed) => end(self, id, ctx, changeable(ctx)),
  },
})

type Texts = ReadonlyArray<string | undefined>

// It is bound to a key, and this application asks for no proof any more (RFC 9449 §7.2)
const ofAnotherScheme = E.left(AuthErrors.because(AuthErrors.invalid, 'binding')) as E.Left<AuthError>

/** A session that koa-session asks for, by the id of a request. */
interface Lookup {
  readonly id: string
  /** Its key in the store. */
  readonly key: string
  readonly ctx: object
  readonly session: RequestSession
  readonly hint: Hint | undefined
}

const find = (self: KoaSessionStore, id: string, ctx: object): unknown => {
  const session = requestSessionOf(ctx)
  const key = sessionKey(id)
  const lookup: Lookup = { id, key, ctx, session, hint: session.hint(key) }
  try {
    const texts = self.store.get(lookup.hint === undefined ? [key] : [key, ...keysOf(lookup.hint)])
    return texts instanceof Promise
      ? texts.then((late) => found(self, late, lookup)).catch((error: unknown) => failed(session, error))
      : found(self, texts, lookup)
  } catch (error) {
    return failed(session, error)
  }
}

const keysOf = ({ stampKey, entryKey }: Hint): ReadonlyArray<string> =>
  entryKey === undefined ? [stampKey] : [stampKey, entryKey]

const failed = (session: RequestSession, error: unknown): undefined => {
  session.stored.error = { error }
  return undefined
}

const found = (self: KoaSessionStore, texts: Texts, lookup: Lookup): unknown => {
  const data = recognized(self, texts, lookup)
  if (!lookup.session.isOfToken(lookup.id)) return data
  return andThen(data, (known) => known && withProof(self, lookup, known))
}

// The data under a token, if the request has the proof that the token needs
const withProof = ({ bearer, name }: KoaSessionStore, { id, key, ctx, session }: Lookup, data: unknown): unknown => {
  const { signedIn } = session
  // a token that signs no user in carries nothing
  if (bearer === undefined || signedIn === undefined) return undefined
  const { listed, jkt } = detailsOf(signedIn)
  bearer.hints.set(key, fromNow(hintFor(name, { user: signedIn.id, listed })))
  if (bearer.proofs === undefined) return jkt === undefined ? data : session.refuse(ofAnotherScheme)
  // Safe: a token is read from a context of Koa
  const proof = bearer.proofs.ofToken((ctx as Context).request, id, jkt)
  return andThen(proof, (result) => (E.isLeft(result) ? session.refuse(result) : data))
}

const recognized = (self: KoaSessionStore, [text, ...about]: Texts, lookup: Lookup): unknown => {
  const { id, session, hint } = lookup
  const data = dataIn(self, text, lookup)
  if (data === undefined) return undefined
  const auth = session.signedIn
  if (auth === undefined) {
    Reflect.deleteProperty(data, 'auth')
    return data
  }
  const { absolute = self.absolute, listed } = detailsOf(auth)
  // A sign-in of the future has ended, too: the clock was wrong when the user signed in
  // no longer than a stamp is kept, also if a time of the application is shorter now
  if (Math.abs(Date.now() - auth.at) >= Math.min(absolute, self.longest)) return session.reportExpiry(id, 'absolute')
  if (hint?.user === auth.id && hint.listed === (listed ?? '')) return permitted(self, about, lookup, auth, data)
  // the cookie says nothing of the user, whose identifier is long
  const asked = self.store.get(keysOf(hintFor(self.name, { user: auth.id, listed })))
  return andThen(asked, (late) => permitted(self, late, lookup, auth, data))
}

// The data, if neither the stamp of the user nor the entry of the list has ended the session
const permitted = (
  { list }: KoaSessionStore,
  [stamp, entry]: Texts,
  { id, session }: Lookup,
  auth: SignedIn,
  data: SessionData,
): unknown => {
  if (stamp !== auth.stamp) return session.reportExpiry(id, 'logOutEverywhere')
  const isLive = list === undefined || isListed(list, auth, entry, recordDigest('session', id))
  if (isLive === true) return data
  if (isLive === false) return session.reportExpiry(id, 'logOut')
  return isLive.then((live) => (live ? data : session.reportExpiry(id, 'logOut')))
}

// The data in the text of the store, if they have not expired
const dataIn = (
  self: KoaSessionStore,
  text: string | undefined,
  { id, key, session }: Lookup,
): SessionData | undefined => {
  if (text === undefined) session.stored.missedId = id
  const data = text === undefined ? undefined : parsed(text)
  if (text === undefined || data === undefined) return undefined
  session.stored.read(id, text)
  const own = detailsOf(session.verifySignIn(id, { key, text }, data)).idle
  if (inTime(data, own ?? self.idle)) return own === undefined ? data : Object.assign(data, { _maxAge: own })
  return session.reportExpiry(id, 'idle')
}

const write = async (
  self: KoaSessionStore,
  id: string,
  data: unknown,
  maxAge: number,
  session: RequestSession,
): Promise<void> => {
  const text = JSON.stringify(unpolluted(data), kept)
  if (text.length > self.maxLength) {
    throw new RangeError(`the session is ${text.length} characters long; at most ${self.maxLength} are kept`)
  }
  const isKnown = session.stored.ids.has(id)
  // the session has ended meanwhile: koa-session must not write it under a new id
  if (session.stored.isLost && !isKnown) return
  const change = isKnown ? self.store.update : self.store.insert
  if (!(await change(sessionKey(id), text, maxAge))) session.stored.isLost = true
  session.wrote(id, data)
}

const end = async (self: KoaSessionStore, id: string, ctx: object, session: RequestSession): Promise<void> => {
  // a token stays the same, so its session ends only where it is to end
  if (session.isOfToken(id) && !session.isDropped(ctx)) return
  const entry = session.stored.ids.get(id)
  // this one was made in this request, and never saved; the one that came may have expired
  if (entry === undefined) return session.endExpired()
  const goesOn = !entry.isEnded && session.goesOn(ctx)
  const begun = thisMoment()
  // before it is read, and after it is ended: so of two requests that rotate it and end it, one finds the other
  const isFirst = !goesOn || (await session.rotate(id))
  // another request has ended the session meanwhile, or rotates it
  if (!isFirst || (goesOn && (await textAt(self, sessionKey(id))) === undefined)) {
    session.stored.isLost = true
    return
  }
  await self.store.end(sessionKey(id), self.absolute)
  session.ended(id, ctx)
  if (!goesOn) await session.endRotated(id)
  else if (ageOf(begun) > LONGEST_ROTATION) session.stored.isLost = true
}

// The session of a context, if it may be changed: the old id of a session that could not be read would stay valid
const changeable = (ctx: object): RequestSession => {
  const session = requestSessionOf(ctx)
  const { stored } = session
  if (stored.error === undefined) return session
  stored.isRefused = true
  throw unavailable(stored.error.error)
}

// The data of koa-session include properties that its session inherits
const unpolluted = (data: unknown): unknown =>
  typeof data !== 'object' || data === null
    ? data
    : Object.fromEntries(Object.keys(data).map((key) => [key, sessionField(data, key)]))

// JSON drops the content of these, and a program would see that at the next request
const EMPTIED = /^\[object ((?:Weak)?(?:Map|Set)|Promise|RegExp|Error)\]$/

const kept = (key: string, value: unknown): unknown => {
  const [, kind] = typeof value === 'object' ? (EMPTIED.exec(Object.prototype.toString.call(value)) ?? []) : []
  if (kind === undefined) return value
  const name = JSON.stringify(key)
  throw new TypeError(
    `ctx.session: ${name} is a ${kind}, which JSON empties; keep strings, numbers, arrays and objects`,
  )
}
