/**
 * The ends of sign-ins, for sockets and streams that are still open.
 *
 * Here an end is known by the session's id. Another process only gets to know that something of a user has changed, and asks the store about
 * each of the user's ends. When an id is rotated, a forwarding entry remains for the old one, so a rotation never looks like a sign-out.
 */
import { ownField } from '../core/data.js'
import { End, type EndCause } from '../core/ends.js'
import { recordDigest } from '../core/events.js'
import { ends } from '../ends/ends.js'
import { fromNow, memory, type Memory } from '../core/memory.js'
import type { Tell } from '../signals/signals.js'
import { StoreUnavailable } from '../stores/within.js'
import { entryKey, forwardIn, forwardKey, sessionKey, stampKey, textAt, type SessionRecords } from './SessionRecords.js'
import { detailsOf, type SignIn } from './SignIn.js'
import { endElsewhere, isListed, type SignInList } from './SignInList.js'
import { inTime, parsed } from './StoredSession.js'

export interface SessionEnds extends SessionRecords {
  readonly list: SignInList | undefined
  readonly tell: Tell
  /** The keys of sessions and entries that this process ended while a request was under way that asks later. */
  readonly over: Memory<true>
  /** The stamps that this process set, and when (milliseconds since 1970). */
  readonly stamped: Memory<{ readonly stamp: string; readonly at: number }>
}

export const sessionEnds = (options: Omit<SessionEnds, 'over' | 'stamped'>): SessionEnds => {
  const kept = { size: 10_000, maxAge: Infinity, dropsFirst: 'oldest' } as const
  return { ...options, over: memory(kept), stamped: memory(kept) }
}

class SessionEnd extends End {
  readonly owner: SessionEnds
  readonly signIn: SignIn
  /** The id of the session, a string that its request has anyway; or the key, if another process gave it a new id. */
  id: string
  isKey = false

  constructor(owner: SessionEnds, id: string, signIn: SignIn, expires: number) {
    super(Math.min(expires, lastOf(owner, signIn)))
    this.owner = owner
    this.signIn = signIn
    this.id = id
  }

  get key(): string {
    return this.isKey ? this.id : sessionKey(this.id)
  }

  override named(): string {
    return recordDigest('user', this.owner.name, this.signIn.id)
  }

  override get cause(): EndCause {
    return this.at < lastOf(this.owner, this.signIn) ? 'idle' : 'expired'
  }

  override get before(): EndCause | undefined {
    return isEndedHere(this.owner, this) ? 'signed out' : undefined
  }

  override ask(isHint: boolean): Promise<EndCause | number> {
    return look(this.owner, this, isHint ? 'signed out' : 'idle')
  }
}

// How long another process may take from the old id of a session to its new one, in milliseconds
const RENEWING = 5000
const SOON = 1000

// How long after a rotation a browser may still send the old id, in milliseconds: its response is on the way
const JUST_ROTATED = 60_000

/** The longest rotation, in milliseconds. A sign-out during a longer rotation may not have found the next id, so that id is not written. */
export const LONGEST_ROTATION = JUST_ROTATED / 2

const lastOf = ({ absolute, longest }: SessionEnds, signIn: SignIn): number =>
  signIn.at + Math.min(detailsOf(signIn).absolute ?? absolute, longest)

const entryOf = ({ name }: SessionEnds, signIn: SignIn): string | undefined => {
  const { listed } = detailsOf(signIn)
  return listed === undefined ? undefined : entryKey(name, signIn.id, listed)
}

const isEndedHere = (self: SessionEnds, { key, signIn }: SessionEnd): boolean => {
  const entry = entryOf(self, signIn)
  const all = self.stamped.get(signIn.id)
  return (
    self.over.get(key) !== undefined ||
    // a younger sign-in can have a stamp that another process has set since
    (all !== undefined && all.stamp !== signIn.stamp && all.at >= signIn.at) ||
    (entry !== undefined && self.over.get(entry) !== undefined)
  )
}

// How many rotations of a session are followed at once: a store that answers wrongly could lead in a circle
const MOST_ROTATIONS = 1000

const throwEndless = (): never => {
  throw new StoreUnavailable('the session store leads from one id of a session to the next without end')
}

// One question, and one more for each rotation since
const findRotated = async (self: SessionEnds, end: SessionEnd) => {
  const { signIn } = end
  const about = [stampKey(self.name, signIn.id), entryOf(self, signIn)].filter((key) => key !== undefined)
  for (let at = -Infinity, rotations = 0; rotations < MOST_ROTATIONS; rotations++) {
    const [text, forward, stamp, entry] = await self.store.get([end.key, forwardKey(end.key), ...about])
    // a store of several nodes may have read it before a rotation, and the session after it
    const isGone = text === undefined && forward === undefined
    const to = forwardIn(isGone ? await textAt(self, forwardKey(end.key)) : forward)
    // `isRotating`: another process is giving the session a new id. The clock of that process may be far ahead
    if (text !== undefined || to === undefined)
      return { text, isRotating: text === undefined && Math.abs(Date.now() - at) < RENEWING, stamp, entry }
    at = to.since
    end.id = to.next
    end.isKey = true
  }
  return throwEndless()
}

const look = async (self: SessionEnds, end: SessionEnd, gone: EndCause): Promise<EndCause | number> => {
  const { signIn } = end
  const last = lastOf(self, signIn)
  if (Date.now() >= last) return 'expired'
  const { text, isRotating, stamp, entry } = await findRotated(self, end)
  if (isRotating) return Math.min(last, Date.now() + SOON)
  const data = text === undefined ? undefined : parsed(text)
  const auth: unknown = data?.['auth']
  if (data === undefined || typeof auth !== 'object' || auth === null) return gone
  // another user is signed in by this session
  if (ownField(auth, 'id') !== signIn.id || ownField(auth, 'at') !== signIn.at) return 'signed out'
  if (stamp !== signIn.stamp) return 'signed out'
  if (self.list !== undefined && !(await isListed(self.list, signIn, entry))) return 'signed out'
  if (!inTime(data, detailsOf(signIn).idle ?? self.idle)) return 'idle'
  const { _expire: expires } = data
  return Math.min(last, typeof expires === 'number' ? expires : Infinity)
}

const endsOfUser = (self: SessionEnds, user: string): ReadonlyArray<SessionEnd> =>
  ends()
    .of(recordDigest('user', self.name, user))
    .filter((end): end is SessionEnd => end instanceof SessionEnd && end.owner === self)

const endThose = (self: SessionEnds, user: string, isMeant: (end: SessionEnd) => boolean): void => {
  const digest = recordDigest('user', self.name, user)
  ends().end(digest, (one) =>
    one instanceof SessionEnd && one.owner === self && isMeant(one) ? 'signed out' : undefined,
  )
  self.tell(digest)
}

/** The end of a sign-in, for one signal. `expires`: when its session is idle, in milliseconds since 1970. */
export const endFor = (self: SessionEnds, id: string, signIn: SignIn, expires = Infinity): End =>
  new SessionEnd(self, id, signIn, expires)

/** Leaves a forwarding entry for a session that gets another id; `false` if another request is giving it one. Rejects in an outage. */
export const forward = async (self: SessionEnds, id: string, nextId: string, signIn: SignIn): Promise<boolean> => {
  const { idle = self.idle, listed } = detailsOf(signIn)
  const [key, next, user] = [sessionKey(id), sessionKey(nextId), signIn.id]
  const text = JSON.stringify({ next, since: Date.now(), user, listed })
  for (let from = key, rotations = 0; ; rotations++) {
    if (rotations === MOST_ROTATIONS) throwEndless()
    if (await self.store.insert(forwardKey(from), text, 2 * idle)) break
    const found = forwardIn(await textAt(self, forwardKey(from)))
    // of several requests that rotate it at the same time, the first goes on; one that failed is forwarded from
    if (found === undefined || Date.now() - found.since < RENEWING) return false
    // by a clock that is behind, it only seems to have failed: an ended key cannot be inserted, so one of the two goes on
    if ((await textAt(self, found.next)) === undefined) await self.store.end(found.next, self.longest)
    from = found.next
  }
  for (const end of endsOfUser(self, user)) {
    if (end.key !== key) continue
    end.id = nextId
    end.isKey = false
  }
  return true
}

/**
 * Ends the session under its next id, if its id was rotated a moment ago. `wasRead`: the request has read the session, so the next ids
 * belong to it whatever their age, because the clocks of two processes can differ. Rejects in an outage.
 */
export const endForwarded = async (self: SessionEnds, id: string, wasRead = false): Promise<void> => {
  for (let key = sessionKey(id), rotations = 0; ; rotations++) {
    if (rotations === MOST_ROTATIONS) throwEndless()
    const found = forwardIn(await textAt(self, forwardKey(key)))
    if (found === undefined || (!wasRead && Date.now() - found.since > JUST_ROTATED)) return
    const { next, user, listed } = found
    // also if it is not written yet: an ended key cannot be inserted
    await self.store.end(next, self.longest)
    if (listed !== undefined && self.list !== undefined) await endElsewhere(self.list, user, listed)
    endThose(self, user, (end) => end.key === next)
    key = next
  }
}

/** Ends the sockets and streams of a session that was ended. */
export const sessionOver = (self: SessionEnds, id: string, user: string): void => {
  const key = sessionKey(id)
  self.over.set(key, fromNow(true))
  endThose(self, user, (end) => end.key === key)
}

/** Ends the sockets and streams of all sessions of a user that do not have this stamp. */
export const everywhereOver = (self: SessionEnds, user: string, stamp: string): void => {
  self.stamped.set(user, fromNow({ stamp, at: Date.now() }))
  endThose(self, user, ({ signIn }) => signIn.stamp !== stamp)
}

/** Ends the sockets and streams of a session that was ended by its entry in the list. */
export const listedOver = (self: SessionEnds, user: string, listed: string): void => {
  self.over.set(entryKey(self.name, user, listed), fromNow(true))
  endThose(self, user, ({ signIn }) => detailsOf(signIn).listed === listed)
}
