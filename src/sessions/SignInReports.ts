/**
 * Reports who signed in and out of an application. Without a subscriber nothing is done.
 */
import { report, signedIn, signedOut } from '../core/events/channels.js'
import { sessionDigest, userDigest, type SignedOutReason, type SignInDigests } from '../core/events/SignInEvent.js'

/** A sign-in of one session, as a request knows it. */
interface Known {
  /** The user's identifier. */
  readonly user: string
  /** Whether it was made in this request, and is not reported yet. */
  readonly isNew: boolean
  readonly subject: string | undefined
}

/** Sessions whose end was reported because a request showed it. Their cookies may be sent again and again. */
export interface Ended {
  /** Whether this is the first request that shows the end of a session, among those that are remembered. */
  readonly first: (id: string) => boolean
}

const REMEMBERED = 1000

/** Remembers the last sessions. */
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

  /** A session was read in which a user is signed in. */
  recognized(id: string, user: string): void {
    this.#known.set(id, { user, isNew: false, subject: undefined })
  }

  /** A user signed in by a session. It is reported at the end of the request if the session is still kept. */
  made(id: string, user: string, subject: string | undefined): void {
    this.#known.set(id, { user, isNew: true, subject })
  }

  /** A session is over. It is reported now, unless its sign-in was not reported. */
  over(id: string, reason: SignedOutReason): void {
    const known = this.#known.get(id)
    this.#known.delete(id)
    if (known === undefined || known.isNew) return
    const application = this.#application
    report(signedOut)(() => ({ application, reason, ...digestsOf(application, id, known.user) }))
  }

  /** The same for a session whose end a request showed. It is reported once. */
  seenOver(id: string, reason: SignedOutReason): void {
    if (this.#ended.first(id)) this.over(id, reason)
    else this.#known.delete(id)
  }

  /** The request is over, and its changes are saved. */
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
