/**
 * The list of a user's sessions: `sessions(app, { list: true })`.
 *
 * Each sign-in has a public id that stays the same when its session gets another id. Under it, the store has an entry
 * beside the session. An entry that was ended, or that the store has lost, ends the sign-in, whatever its session is called now.
 */
import type { Request } from 'koa'
import type { Proof } from '../core/Proof.js'
import { digest } from '../crypto/secrets.js'
import type { Pages, PageTexts } from './Page.js'
import { entryKey, fieldsIn, stampKey, textAt, type SessionRecords } from './SessionRecords.js'
import type { GrantKeepers } from './grants.js'
import type { Origin } from './Origin.js'
import { detailsOf, proofsIn, type ListedSession, type SignIn } from './SignIn.js'

export interface SignInList extends SessionRecords {
  /** Is called when a sign-in was ended from elsewhere. `session`: its digest in records, if it is known. */
  readonly ended: (user: string, id: string, session: string | undefined) => void
  /** Ends the grants of providers to a sign-in that is ended from elsewhere. Rejects in an outage. */
  readonly endGrants: (user: string, id: string) => Promise<void>
}

interface Entry {
  readonly user: string
  readonly id: string
  readonly at: number
  readonly seen: number
  readonly methods: ReadonlyArray<string>
  readonly stamp: string
  readonly label?: string | undefined
  /** Left out: the cookie carries it. */
  readonly kind?: 'bearer' | undefined
  /** The digest of the session in records. */
  readonly session?: string | undefined
  /** Digests of the sessions at providers. */
  readonly sids?: ReadonlyArray<string> | undefined
}

const HOUR = 3_600_000

const sidDigest = (issuer: string | undefined, sid: string): string => digest(JSON.stringify([issuer, sid]))

const sidsOf = (signIn: SignIn): ReadonlyArray<string> =>
  proofsIn(signIn).flatMap(({ issuer, sid }) => (sid === undefined ? [] : [sidDigest(issuer, sid)]))

// A sign-out by a provider of a session that no entry has yet, of any user or of one
const overKey = ({ name }: SignInList, sid: string, user?: string): string =>
  `koa-with-auth/signed-out-at/${digest(JSON.stringify([name, sid, user]))}`

// The clocks of two processes differ a little
const APART = 5000

/**
 * Whether the provider of some proof of a user has said since then that its session there ended: the user may sign in again at the same
 * session. Rejects in an outage.
 */
export const isOverAtProvider = async (
  self: SignInList,
  user: string,
  proofs: ReadonlyArray<Proof>,
): Promise<boolean> => {
  const marks = proofs.flatMap(({ issuer, sid, at }) => {
    if (sid === undefined) return []
    const wanted = sidDigest(issuer, sid)
    return [overKey(self, wanted), overKey(self, wanted, user)].map((key) => ({ key, at }))
  })
  const texts = marks.length === 0 ? [] : await self.store.get(marks.map(({ key }) => key))
  return texts.some((text, index) => text !== undefined && !((marks[index]?.at ?? 0) > Number(text) + APART))
}

// A provider's sign-out that came while a sign-in was written has found no entry with its session
const endIfOver = async (self: SignInList, signIn: SignIn, key: string): Promise<boolean> =>
  (await isOverAtProvider(self, signIn.id, proofsIn(signIn))) && endEntry(self, key, () => true)

const proofMethods = (signIn: SignIn): ReadonlyArray<string> => proofsIn(signIn).map(({ method }) => method)

// The members of both sets are keys of entries
const entriesOfUser = ({ name }: SignInList, user: string): string =>
  `koa-with-auth/sign-ins/${digest(JSON.stringify([name, user]))}`

// A provider can name a session without its user
const setAt = ({ name }: SignInList, sid: string): string =>
  `koa-with-auth/sign-ins-at/${digest(JSON.stringify([name, sid]))}`

const idleOf = (self: SignInList, signIn: SignIn): number => detailsOf(signIn).idle ?? self.idle

// How long an entry stays as it is, although its session is used
const restOf = (self: SignInList, signIn: SignIn): number => Math.min(HOUR, idleOf(self, signIn) / 2)

// A session that is used is prolonged before its entry, so the entry lasts longer
const lifetimeOf = (self: SignInList, signIn: SignIn): number => idleOf(self, signIn) + restOf(self, signIn)

const entryText = (signIn: SignIn, id: string, { session, kind }: Pick<Entry, 'session' | 'kind'>): string => {
  const sids = sidsOf(signIn)
  const entry: Entry = {
    user: signIn.id,
    id,
    at: signIn.at,
    seen: Date.now(),
    methods: proofMethods(signIn),
    stamp: signIn.stamp,
    label: detailsOf(signIn).label,
    kind,
    session,
    sids: sids.length > 0 ? sids : undefined,
  }
  return JSON.stringify(entry)
}

const entryIn = (text: string | undefined): Entry | undefined => {
  const { user, id, at, seen, methods, stamp, label, kind, session, sids } = fieldsIn(text)
  if (typeof user !== 'string' || typeof id !== 'string' || typeof stamp !== 'string') return undefined
  if (typeof at !== 'number' || typeof seen !== 'number' || !areTexts(methods)) return undefined
  const carrier: Entry['kind'] = kind === 'bearer' ? 'bearer' : undefined
  const further = {
    kind: carrier,
    label: ifText(label),
    session: ifText(session),
    sids: areTexts(sids) ? sids : undefined,
  }
  return { user, id, at, seen, methods, stamp, ...further }
}

const ifText = (u: unknown): string | undefined => (typeof u === 'string' ? u : undefined)

const areTexts = (u: unknown): u is ReadonlyArray<string> =>
  Array.isArray(u) && u.every((one: unknown) => typeof one === 'string')

const enlistAt = async (self: SignInList, signIn: SignIn, key: string, listed: ReadonlyArray<string> = []) => {
  for (const sid of sidsOf(signIn)) {
    if (!listed.includes(sid)) await self.store.add(setAt(self, sid), key, self.longest)
  }
}

// It outlives the entry, and is prolonged before it. A program that signs in each minute must not leave a set that is too long to read
const enlistOfUser = (self: SignInList, signIn: SignIn, key: string): Promise<void> =>
  self.store.add(entriesOfUser(self, signIn.id), key, lifetimeOf(self, signIn) + HOUR)

/** Writes the entry of a sign-in that has one. `session` is the digest of its session in records. Rejects in an outage. */
export const enlist = async (
  self: SignInList,
  signIn: SignIn,
  session: string | undefined,
  kind?: 'bearer',
): Promise<void> => {
  const { listed: id } = detailsOf(signIn)
  if (id === undefined) return
  const key = entryKey(self.name, signIn.id, id)
  await self.store.insert(key, entryText(signIn, id, { session, kind }), lifetimeOf(self, signIn))
  await enlistOfUser(self, signIn, key)
  await enlistAt(self, signIn, key)
  await endIfOver(self, signIn, key)
}

/**
 * Whether a sign-in was not ended by its entry, whose text was read. An entry that a store has lost ends it, too. Writes an entry again
 * that is old, or says something else. Rejects in an outage.
 */
export const isListed = (
  self: SignInList,
  signIn: SignIn,
  text: string | undefined,
  given?: string,
): boolean | Promise<boolean> => {
  const { listed: id } = detailsOf(signIn)
  if (id === undefined) return true
  const entry = entryIn(text)
  if (entry === undefined) return false
  const isCurrent = Date.now() - entry.seen < restOf(self, signIn)
  const session = given ?? entry.session
  const isSame =
    session === entry.session &&
    proofMethods(signIn).join() === entry.methods.join() &&
    sidsOf(signIn).join() === (entry.sids ?? []).join()
  return (isCurrent && isSame) || renewed(self, signIn, { ...entry, session })
}

const renewed = async (self: SignInList, signIn: SignIn, { id, sids, ...entry }: Entry) => {
  const key = entryKey(self.name, signIn.id, id)
  await enlistOfUser(self, signIn, key)
  await enlistAt(self, signIn, key, sids)
  const isKept = await self.store.update(key, entryText(signIn, id, entry), lifetimeOf(self, signIn))
  return isKept && !(await endIfOver(self, signIn, key))
}

/** Writes the entry of a sign-in again whose proofs have changed; `false` if it was ended. Rejects in an outage. */
export const relist = async (self: SignInList, signIn: SignIn): Promise<boolean> => {
  const { listed: id } = detailsOf(signIn)
  return id === undefined || isListed(self, signIn, await textAt(self, entryKey(self.name, signIn.id, id)))
}

/** Ends the entry of a sign-in that its own request ends. Rejects in an outage. */
export const endListed = (self: SignInList, user: string, id: string): Promise<void> =>
  self.store.end(entryKey(self.name, user, id), self.longest)

/** Ends a sign-in from elsewhere, with its streams and sockets; `false` if the user has none with this id. Rejects in an outage. */
export const endElsewhere = (self: SignInList, user: string, id: string): Promise<boolean> =>
  endEntry(self, entryKey(self.name, user, id), () => true)

const endEntry = async (self: SignInList, key: string, isMeant: (entry: Entry) => boolean): Promise<boolean> => {
  const entry = entryIn(await textAt(self, key))
  if (entry === undefined || !isMeant(entry)) return false
  await self.endGrants(entry.user, entry.id)
  await self.store.end(key, self.longest)
  self.ended(entry.user, entry.id, entry.session)
  return true
}

/**
 * Ends the sign-ins with a proof of this session at a provider: those of a user, or, if the user is unknown, of any. Rejects in an outage.
 */
export const endAtProvider = async (
  self: SignInList,
  user: string | undefined,
  issuer: string,
  sid: string,
): Promise<void> => {
  const wanted = sidDigest(issuer, sid)
  // before the entries are looked for, so that of an end and a sign-in at once, either finds the other
  const [over, now] = [overKey(self, wanted, user), String(Date.now())]
  if (!(await self.store.insert(over, now, self.longest))) await self.store.update(over, now, self.longest)
  const keys = await self.store.members(user === undefined ? setAt(self, wanted) : entriesOfUser(self, user))
  for (const key of keys) await endEntry(self, key, ({ sids }) => sids?.includes(wanted) === true)
}

/** The sessions of a user; the newest sign-in first. Rejects in an outage. */
export const listedSessions = async (
  self: SignInList,
  user: string,
  current: string | undefined,
): Promise<ReadonlyArray<ListedSession>> => {
  const keys = await self.store.members(entriesOfUser(self, user))
  const [stamp, ...texts] = await self.store.get([stampKey(self.name, user), ...keys])
  const sessions = texts.flatMap((text): ReadonlyArray<ListedSession> => {
    const entry = entryIn(text)
    if (entry === undefined || entry.stamp !== stamp) return []
    const { id, at, seen, methods, label, kind = 'cookie' } = entry
    const session: ListedSession = { id, current: id === current, signedInAt: at, lastSeenAt: seen, methods, kind }
    return [label === undefined ? session : { ...session, label }]
  })
  return sessions.sort((one, other) => other.signedInAt - one.signedInAt)
}

/** The part of a call of `sessions` that `koa-with-auth/sign-in` uses. */
export interface SessionHost extends SessionRecords {
  readonly keys: () => unknown
  /** The public origin, those of several hosts, or a function that chooses; left out if the application has none. */
  readonly origin?: Origin | undefined
  readonly persistent: boolean
  readonly isProduction: boolean
  /** Whether cookies are `Secure`; `undefined`: as the request. */
  readonly https: boolean | undefined
  readonly identify: (user: unknown) => string
  readonly grants: GrantKeepers
  /**
   * The ceremonies that were finished in this process a moment ago, their users, and until when (milliseconds since 1970) an
   * answer that came at the same time leads to the same place. Signing out removes them.
   */
  readonly finished: Map<string, { readonly until: number; readonly user: string | undefined }>
  readonly hasTokens: boolean
  readonly list: SignInList | undefined
  readonly label: ((request: Request) => string | undefined) | undefined
  /** Makes the pages of sign-ins; left out: the library's own, in English or by these texts. */
  readonly pages?: Pages | undefined
  readonly texts: Readonly<Record<string, PageTexts>>
}

/** A copy of an answer of this user that came at the same time leads nowhere, because the sessions were ended. Default: all users. */
export const forgetFinished = ({ finished }: Pick<SessionHost, 'finished'>, user?: string): void => {
  for (const [id, one] of finished) if (user === undefined || one.user === user) finished.delete(id)
}
