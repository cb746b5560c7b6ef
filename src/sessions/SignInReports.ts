/**
 * Reports who signed in and out of an application, where somebody listens. Without a listener nothing is made.
 */
import { report, signedIn, signedOut } from '../core/events/channels.js'
import { sessionDigest, userDigest, type SignedOutReason, type SignInDigests } from '../core/events/SignInEvent.js'

/** A sign-in of one session, as a request knows it. */
interface Known {
  /** The user's identifier. */
  readonly user: string
  /** Set where it was made in this request, and is not reported yet. */
  readonly isNew: boolean
  readonly subject: string | undefined
}

/** Sessions whose end was reported because a request of them showed it: their cookie may come again and again. */
export interface Ended {
  /** Whether it is the first time, as far as is remembered. */
  readonly first: (id: string) => boolean
}

const REMEMBERED = 1000

/** Remembers the last ones. */
export const rememberedEnds = (): Ended => {
  const ids = new Set<string>()
  return {
    first: (id) => {
      if (ids.has(id)) return false
      ids.add(id)
      if (ids.size > REMEMBERED) for (const oldest of ids) return ids.delete(oldest)
      return true
    },
  }
}

/** The digests of a sign-in. */
export const digestsOf = (application: string, sessionId: string, user: string): SignInDigests =>
  Object.freeze({ user: userDigest(application, user), session: sessionDigest(sessionId) })

/** Reports that all sessions of a user are over. */
export const reportEverywhere = (application: string, user: string): void => {
  report(signedOut)(() => ({ application, reason: 'logOutEverywhere', user: userDigest(application, user) }))
}

/** The reports of one request, which knows its sessions by their ids. */
export class SignInReports {
  readonly #application: string
  readonly #ended: Ended
  readonly #known = new Map<string, Known>()

  constructor(application: string, ended: Ended) {
    this.#application = application
    this.#ended = ended
  }

  /** A session was read by which a user is signed in. */
  recognized(id: string, user: string): void {
    this.#known.set(id, { user, isNew: false, subject: undefined })
  }

  /** A user signed in by a session. It is reported when the request is over and the session is still kept. */
  made(id: string, user: string, subject: string | undefined): void {
    this.#known.set(id, { user, isNew: true, subject })
  }

  /** A session is over: it is reported now, unless its sign-in was not. */
  over(id: string, reason: SignedOutReason): void {
    const known = this.#known.get(id)
    this.#known.delete(id)
    if (known === undefined || known.isNew) return
    const application = this.#application
    report(signedOut)(() => ({ application, reason, ...digestsOf(application, id, known.user) }))
  }

  /** The same of one whose end a request showed: once. */
  seenOver(id: string, reason: SignedOutReason): void {
    if (this.#ended.first(id)) this.over(id, reason)
    else this.#known.delete(id)
  }

  /** The request is over, and what it made is kept. */
  kept(): void {
    const application = this.#application
    for (const [id, { user, isNew, subject }] of this.#known) {
      if (!isNew) continue
      report(signedIn)(() => ({
        application,
        ...digestsOf(application, id, user),
        ...(subject !== undefined && { subject }),
      }))
    }
  }
}
