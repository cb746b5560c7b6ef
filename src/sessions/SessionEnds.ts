/**
 * The ends of sign-ins, for what is still running.
 *
 * Here an end is known by the session's id. Another process only gets to know that something of a user has changed, and asks the store about
 * each of the user's ends. A session that got a new id leaves a lead to it under the old one, so no renewal ends anything.
 */
import { ownField, ownFields } from '../core/data.js'
import { End, type EndCause } from '../core/ends.js'
import { userDigest } from '../core/events.js'
import { ends } from '../ends/ends.js'
import { fromNow, memory } from '../core/memory.js'
import { digest } from '../crypto/secrets.js'
import type { Tell } from '../stores/signals.js'
import type { Keeping } from './SessionStore.js'
import { detailsOf, type SignIn } from './SignIn.js'
import type { SignInList } from './SignInList.js'
import { inTime, parsed } from './StoredSession.js'

interface EndsOptions extends Keeping {
  readonly list: SignInList | undefined
  readonly tell: Tell
}

/** How an end of an application is looked up. */
interface Looking {
  /** The application's name. */
  readonly name: string
  readonly lastOf: (signIn: SignIn) => number
  readonly isOver: (end: SessionEnd) => boolean
  readonly look: (end: SessionEnd, gone: EndCause) => Promise<EndCause | number>
}

class SessionEnd extends End {
  readonly looking: Looking
  readonly signIn: SignIn
  /** The id of the session, a string that its request has anyway; or the digest, if another process gave it a new id. */
  id: string
  isDigest = false

  constructor(looking: Looking, id: string, signIn: SignIn, expires: number) {
    super(Math.min(expires, looking.lastOf(signIn)))
    this.looking = looking
    this.signIn = signIn
    this.id = id
  }

  /** The digest by which the store knows the session. */
  get key(): string {
    return this.isDigest ? this.id : digest(this.id)
  }

  override named(): string {
    return userDigest(this.looking.name, this.signIn.id)
  }

  override get cause(): EndCause {
    return this.at < this.looking.lastOf(this.signIn) ? 'idle' : 'expired'
  }

  override get before(): EndCause | undefined {
    return this.looking.isOver(this) ? 'signed out' : undefined
  }

  override ask(isHint: boolean): Promise<EndCause | number> {
    return this.looking.look(this, isHint ? 'signed out' : 'idle')
  }
}

const kept = { size: 10_000, maxAge: Infinity, dropsFirst: 'oldest' } as const

// How long another process may take from the old id of a session to its new one, in milliseconds
const RENEWING = 5000
const SOON = 1000

// How long after a renewal a browser may still send the old id, in milliseconds: its response is on the way
const JUST_RENEWED = 60_000

const leadKey = (key: string): string => digest(`koa-with-auth/renewed\n${key}`)

/** The ends of the sign-ins of an application. */
export type SessionEnds = ReturnType<typeof sessionEnds>

export const sessionEnds = ({ name, store, idle, absolute, longest, list, tell }: EndsOptions) => {
  // What this process ended while a request was under way that asks later
  const over = memory<true>(kept)
  const marked = memory<{ readonly mark: string; readonly at: number }>(kept)
  const listedKey = (user: string, listed: string) => JSON.stringify([user, listed])

  const leadFrom = async (key: string) => {
    const found = await store.read(leadKey(key))
    return ownFields(found === undefined ? {} : (JSON.parse(found) as object))
  }
  const lead = async (end: SessionEnd): Promise<{ readonly text?: string; readonly isRenewing: boolean }> => {
    let at = -Infinity
    for (;;) {
      const text = await store.read(end.key)
      if (text !== undefined) return { text, isRenewing: false }
      const { next, since } = await leadFrom(end.key)
      if (typeof next !== 'string' || typeof since !== 'number') return { isRenewing: Date.now() - at < RENEWING }
      at = since
      end.id = next
      end.isDigest = true
    }
  }

  const looking: Looking = {
    name,
    lastOf: (signIn) => signIn.at + Math.min(detailsOf(signIn).absolute ?? absolute, longest),
    isOver: ({ key, signIn }) => {
      const { listed } = detailsOf(signIn)
      const all = marked.get(signIn.id)
      return (
        over.get(key) !== undefined ||
        // a younger sign-in can have a mark that another process has set since
        (all !== undefined && all.mark !== signIn.mark && all.at >= signIn.at) ||
        (listed !== undefined && over.get(listedKey(signIn.id, listed)) !== undefined)
      )
    },
    look: async (end, gone) => {
      const { signIn } = end
      const last = looking.lastOf(signIn)
      if (Date.now() >= last) return 'expired'
      const { text, isRenewing } = await lead(end)
      if (isRenewing) return Math.min(last, Date.now() + SOON)
      const data = text === undefined ? undefined : parsed(text)
      const auth: unknown = data?.['auth']
      if (data === undefined || typeof auth !== 'object' || auth === null) return gone
      // somebody else is signed in by this session
      if (ownField(auth, 'id') !== signIn.id || ownField(auth, 'at') !== signIn.at) return 'signed out'
      if ((await store.markOf(signIn.id)) !== signIn.mark) return 'signed out'
      if (list !== undefined && !(await list.isLive(signIn))) return 'signed out'
      if (!inTime(data, detailsOf(signIn).idle ?? idle)) return 'idle'
      const { _expire: expires } = data
      return Math.min(last, typeof expires === 'number' ? expires : Infinity)
    },
  }

  const end = (user: string, isMeant: (end: SessionEnd) => boolean): void => {
    const digest = userDigest(name, user)
    ends().end(digest, (one) =>
      one instanceof SessionEnd && one.looking === looking && isMeant(one) ? 'signed out' : undefined,
    )
    tell(digest)
  }

  return {
    /** The end of a sign-in, for one signal. `expires`: when its session is idle, in milliseconds since 1970. */
    endOf: (id: string, signIn: SignIn, expires = Infinity): End => new SessionEnd(looking, id, signIn, expires),
    /** A session gets another id; `false` if another request is giving it one. Rejects in an outage. */
    leadOn: async (id: string, nextId: string, signIn: SignIn): Promise<boolean> => {
      const { idle: lasting = idle, listed } = detailsOf(signIn)
      const [key, next, user] = [digest(id), digest(nextId), signIn.id]
      const text = JSON.stringify({ next, since: Date.now(), user, listed })
      for (let from = key; ;) {
        await store.insert(leadKey(from), text, 2 * lasting)
        const { next: found, since } = await leadFrom(from)
        if (typeof found !== 'string' || found === next) break
        // of several requests that renew it at the same time, the first goes on; one that failed is led on from
        if (Date.now() - Number(since) < RENEWING) return false
        from = found
      }
      for (const one of ends().of(userDigest(name, user))) {
        if (!(one instanceof SessionEnd) || one.looking !== looking || one.key !== key) continue
        one.id = nextId
        one.isDigest = false
      }
      return true
    },
    /** Ends what a session became that got another id a moment ago. Rejects in an outage. */
    renewedOver: async (id: string): Promise<void> => {
      for (let key = digest(id); ;) {
        const { next, since, user, listed } = await leadFrom(key)
        if (typeof next !== 'string' || typeof user !== 'string' || Date.now() - Number(since) > JUST_RENEWED) return
        // also if it is not written yet: an ended id cannot be inserted
        await store.end(next, longest)
        if (typeof listed === 'string') await list?.endElsewhere(user, listed)
        end(user, (one) => one.key === next)
        key = next
      }
    },
    /** A session was ended. */
    over: (id: string, user: string): void => {
      const key = digest(id)
      over.set(key, fromNow(true))
      end(user, (one) => one.key === key)
    },
    /** All sessions of a user were ended, which do not have this mark. */
    everywhere: (user: string, mark: string): void => {
      marked.set(user, fromNow({ mark, at: Date.now() }))
      end(user, ({ signIn }) => signIn.mark !== mark)
    },
    /** A session was ended by its entry in the list. */
    listedOver: (user: string, listed: string): void => {
      over.set(listedKey(user, listed), fromNow(true))
      end(user, ({ signIn }) => detailsOf(signIn).listed === listed)
    },
  }
}
