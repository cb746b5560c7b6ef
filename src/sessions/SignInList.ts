/**
 * The list of a user's sessions: `sessions(app, { list: true })`.
 *
 * Each sign-in has a public id that stays the same when its session gets another id. Under it, the store has an entry
 * beside the session. An ended entry ends the sign-in, whatever its session is called now. An entry that was lost is
 * written again when its session is used.
 */
import type { Request } from 'koa'
import { ownField } from '../core/data.js'
import { digest } from '../crypto/secrets.js'
import type { Pages, PageTexts } from './Page.js'
import type { Keeping, SessionStore } from './SessionStore.js'
import { detailsOf, proofsIn, type ListedSession, type SignIn } from './SignIn.js'

interface ListOptions extends Omit<Keeping, 'absolute'> {
  /** Is called when a sign-in was ended from elsewhere. `session`: its digest in records, if it is known. */
  readonly ended: (user: string, id: string, session: string | undefined) => void
}

interface Entry {
  readonly at: number
  readonly seen: number
  readonly methods: ReadonlyArray<string>
  readonly mark: string
  readonly label?: string | undefined
  /** The digest of the session in records. */
  readonly session?: string | undefined
  /** Digests of the sessions at providers. */
  readonly sids?: ReadonlyArray<string> | undefined
}

const sidDigest = (issuer: string | undefined, sid: string): string => digest(JSON.stringify([issuer, sid]))

const sidsOf = (signIn: SignIn): ReadonlyArray<string> =>
  proofsIn(signIn).flatMap(({ issuer, sid }) => (sid === undefined ? [] : [sidDigest(issuer, sid)]))

const methodsOf = (signIn: SignIn): ReadonlyArray<string> => proofsIn(signIn).map(({ method }) => method)

const HOUR = 3_600_000

/** The entries of an application. */
export type SignInList = ReturnType<typeof signInList>

/** Makes the list. Throws a TypeError if the store keeps none. Every function rejects in an outage. */
export const signInList = ({ name, store, idle, longest, ended }: ListOptions) => {
  const { enlist, listed } = store
  if (enlist === undefined || listed === undefined) {
    throw new TypeError('sessions(app, { list }): the store has no methods enlist and listed; see SessionStore')
  }
  const listKey = (user: string, id: string) => digest(JSON.stringify(['koa-with-auth/list', name, user, id]))
  const setOf = (user: string) => digest(JSON.stringify(['koa-with-auth/lists', name, user]))
  // A provider can name a session without its user
  const setAt = (sid: string) => digest(JSON.stringify(['koa-with-auth/lists-at', name, sid]))
  const idleOf = (signIn: SignIn) => detailsOf(signIn).idle ?? idle
  // how long an entry stays as it is, although its session is used
  const restOf = (signIn: SignIn) => Math.min(HOUR, idleOf(signIn) / 2)
  // A session that is used is prolonged before its entry, so the entry lasts longer
  const lifetimeOf = (signIn: SignIn) => idleOf(signIn) + restOf(signIn)
  const textOf = (signIn: SignIn, session: string | undefined): string => {
    const sids = sidsOf(signIn)
    const entry: Entry = {
      at: signIn.at,
      seen: Date.now(),
      methods: methodsOf(signIn),
      mark: signIn.mark,
      label: detailsOf(signIn).label,
      session,
      sids: sids.length > 0 ? sids : undefined,
    }
    return JSON.stringify(entry)
  }
  const enlistAt = async (signIn: SignIn, id: string, listed: ReadonlyArray<string> = []): Promise<void> => {
    for (const sid of sidsOf(signIn)) {
      if (!listed.includes(sid)) await enlist(setAt(sid), JSON.stringify([signIn.id, id]), longest)
    }
  }
  const write = async (signIn: SignIn, id: string, session: string | undefined): Promise<void> => {
    await store.insert(listKey(signIn.id, id), textOf(signIn, session), lifetimeOf(signIn))
    await enlist(setOf(signIn.id), id, longest)
    await enlistAt(signIn, id)
  }
  const signInsAt = async (
    user: string | undefined,
    sid: string,
  ): Promise<ReadonlyArray<readonly [string, string]>> => {
    if (user !== undefined) return (await listed(setOf(user))).map((id) => [user, id])
    // Safe: only `enlistAt` writes them
    return (await listed(setAt(sid))).map((entry) => JSON.parse(entry) as [string, string])
  }
  const endElsewhere = async (
    user: string,
    id: string,
    isMeant = (_entry: Entry): boolean => true,
  ): Promise<boolean> => {
    const key = listKey(user, id)
    const entry = entryIn(await store.read(key))
    if (entry === undefined || !isMeant(entry)) return false
    await store.end(key, longest)
    ended(user, id, entry.session)
    return true
  }
  return {
    /** Writes the entry of a sign-in that has one. `session` is the digest of its session in records. */
    begin: async (signIn: SignIn, session: string | undefined): Promise<void> => {
      const { listed: id } = detailsOf(signIn)
      if (id !== undefined) await write(signIn, id, session)
    },
    /** Whether a sign-in was not ended by its entry. Writes the entry again if it was lost or is old. */
    isLive: async (signIn: SignIn, given?: string): Promise<boolean> => {
      const { listed: id } = detailsOf(signIn)
      if (id === undefined) return true
      const key = listKey(signIn.id, id)
      const entry = entryIn(await store.read(key))
      if (entry === undefined) {
        await write(signIn, id, given)
        // an ended one cannot be written again
        return (await store.read(key)) !== undefined
      }
      const isCurrent = Date.now() - entry.seen < restOf(signIn)
      const session = given ?? entry.session
      const isSame =
        session === entry.session &&
        methodsOf(signIn).join() === entry.methods.join() &&
        sidsOf(signIn).join() === (entry.sids ?? []).join()
      if (isCurrent && isSame) return true
      await enlistAt(signIn, id, entry.sids)
      return store.update(key, textOf(signIn, session), lifetimeOf(signIn))
    },
    /** Ends a sign-in that its own request ends; `false` if the user has none with this id. */
    end: async (user: string, id: string): Promise<boolean> => {
      const key = listKey(user, id)
      if ((await store.read(key)) === undefined) return false
      await store.end(key, longest)
      return true
    },
    /** Ends a sign-in from elsewhere, with what it has open. */
    endElsewhere: (user: string, id: string): Promise<boolean> => endElsewhere(user, id),
    /** Ends the sign-ins with a proof of this session at a provider: those of a user, or, if the user is unknown, of any. */
    endAt: async (user: string | undefined, issuer: string, sid: string): Promise<void> => {
      const wanted = sidDigest(issuer, sid)
      for (const [owner, id] of await signInsAt(user, wanted)) {
        await endElsewhere(owner, id, ({ sids }) => sids?.includes(wanted) === true)
      }
    },
    /** The sessions of a user; the newest sign-in first. */
    of: async (user: string, current: string | undefined): Promise<ReadonlyArray<ListedSession>> => {
      const [ids, mark] = await Promise.all([listed(setOf(user)), store.markOf(user)])
      const sessions = await Promise.all(
        ids.map(async (id): Promise<ReadonlyArray<ListedSession>> => {
          const entry = entryIn(await store.read(listKey(user, id)))
          if (entry === undefined || entry.mark !== mark) return []
          const { at, seen, methods, label } = entry
          const session = { id, current: id === current, signedInAt: at, lastSeenAt: seen, methods }
          return [label === undefined ? session : { ...session, label }]
        }),
      )
      return sessions.flat().sort((one, other) => other.signedInAt - one.signedInAt)
    },
  }
}

const entryIn = (text: string | undefined): Entry | undefined => {
  if (text === undefined) return undefined
  const entry: unknown = JSON.parse(text)
  const isEntry = typeof entry === 'object' && entry !== null && Array.isArray(ownField(entry, 'methods'))
  // Safe: only `textOf` writes it
  return isEntry ? (entry as Entry) : undefined
}

/** What a call of `sessions` lends to `koa-with-auth/sign-in`. */
export interface SessionHost {
  readonly keys: () => unknown
  readonly name: string
  /** With its time limit. */
  readonly store: SessionStore
  /** The longest lifetime of a session, in milliseconds. */
  readonly longest: number
  /** The public origin; left out if the application has none. */
  readonly origin: string | undefined
  readonly isProduction: boolean
  /** Whether cookies are `Secure`; `undefined`: as the request. */
  readonly https: boolean | undefined
  readonly identify: (user: unknown) => string
  /**
   * The ceremonies that were finished in this process a moment ago, by whom, and until when (milliseconds since 1970) an
   * answer that came at the same time leads to the same place. Signing out removes them.
   */
  readonly finished: Map<string, { readonly until: number; readonly user: string | undefined }>
  /** The list of sessions, if the application keeps one. */
  readonly list: SignInList | undefined
  /** The label of a session in that list. */
  readonly label: ((request: Request) => string | undefined) | undefined
  /** Makes the pages of sign-ins; left out: the library's own, in English or by these texts. */
  readonly pages: Pages | undefined
  readonly texts: Readonly<Record<string, PageTexts>>
}

/** What came at the same time as an answer of this user leads nowhere, because the sessions were ended. Default: all users. */
export const forgetFinished = ({ finished }: Pick<SessionHost, 'finished'>, user?: string): void => {
  for (const [id, one] of finished) if (user === undefined || one.user === user) finished.delete(id)
}
