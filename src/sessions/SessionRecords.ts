/**
 * The records that the sessions of an application keep in a `Store`: sessions, revocation stamps, entries of the list, and
 * forwarding entries.
 *
 * | Key | Text | Ended by |
 * | --- | --- | --- |
 * | `koa-with-auth/session/` and a digest of the session's id | its data, with the sign-in under `auth` | a sign-out, a rotation of the id |
 * | `koa-with-auth/stamp/` and a digest of application and user | the revocation stamp | never; another stamp replaces it |
 * | `koa-with-auth/sign-in/` and a digest of application, user and entry | the entry of a sign-in in the list (`SignInList.ts`) | a sign-out, `endSession` |
 * | `koa-with-auth/signed-out-at/` and a digest of application, session at a provider, and user | that the provider ended it | never; it expires |
 * | `koa-with-auth/forward/` and a digest of the old key | the next key of a session whose id was rotated | never; it expires |
 *
 * A session is valid only while its user has the stamp that the session carries. So a store that loses a stamp signs the user out, and
 * never in. A store gets digests of ids, never an id, so a reader of the database can take no session over.
 */
import { jsonFields } from '../core/data.js'
import { digest, randomId } from '../crypto/secrets.js'
import type { Store } from '../stores/Store.js'
import { StoreUnavailable } from '../stores/within.js'

/** The store of an application's sessions, and how long they last. All times are in milliseconds. */
export interface SessionRecords {
  readonly name: string
  /** With its time limit. */
  readonly store: Store
  readonly idle: number
  /** How long a sign-in lasts, and how long an ended session is known as ended. */
  readonly absolute: number
  readonly longest: number
}

/** How many times longer than usual a session may last: revocation stamps are kept that long. */
export const STAMP_LIFETIMES = 10

export const sessionKey = (id: string): string => `koa-with-auth/session/${digest(id)}`

export const stampKey = (name: string, user: string): string =>
  `koa-with-auth/stamp/${digest(JSON.stringify([name, user]))}`

export const forwardKey = (key: string): string => `koa-with-auth/forward/${digest(key)}`

export const entryKey = (name: string, user: string, id: string): string =>
  `koa-with-auth/sign-in/${digest(JSON.stringify([name, user, id]))}`

/** The user who was signed in, by a cookie or a token, with the keys to look up. The record in the session decides. */
export interface Hint {
  readonly user: string
  /** The id of its entry in the list; `''` without one. */
  readonly listed: string
  readonly stampKey: string
  readonly entryKey: string | undefined
}

/** A user, and the id of the entry of the sign-in in the list. */
export interface Signer {
  readonly user: string
  readonly listed: string | undefined
}

export const hintFor = (application: string, { user, listed = '' }: Signer): Hint => ({
  user,
  listed,
  stampKey: stampKey(application, user),
  entryKey: listed === '' ? undefined : entryKey(application, user, listed),
})

export const textAt = async ({ store }: Pick<SessionRecords, 'store'>, key: string): Promise<string | undefined> =>
  (await store.get([key]))[0]

// A stamp outlives every session that carries it. So many others would have to change the same stamp at once
const STAMP_TRIES = 20

/** Tries until one try has kept a stamp: otherwise another request has made or replaced it. */
const settled = async (
  self: SessionRecords,
  user: string,
  keep: (key: string, lifetime: number) => Promise<string | undefined>,
): Promise<string> => {
  for (let tries = 0; tries < STAMP_TRIES; tries++) {
    const stamp = await keep(stampKey(self.name, user), self.longest + self.absolute)
    if (stamp !== undefined) return stamp
  }
  throw new StoreUnavailable('the session store keeps no revocation stamp: it neither inserts nor updates it')
}

/** The stamp for a session of a user that begins now, which is made if there is none. Rejects in an outage. */
export const stampFor = (self: SessionRecords, user: string): Promise<string> =>
  settled(self, user, async (key, lifetime) => {
    const stamp = await textAt(self, key)
    const next = stamp ?? randomId(16)
    const keep = stamp === undefined ? self.store.insert : self.store.update
    return (await keep(key, next, lifetime, stamp)) ? next : undefined
  })

/** The stamp of a user now, which is made if there is none. Rejects in an outage. */
export const stampNow = async (self: SessionRecords, user: string): Promise<string> =>
  (await textAt(self, stampKey(self.name, user))) ?? stampFor(self, user)

/** Replaces the stamp of a user, which ends all sessions with another one. Resolves to the new stamp; rejects in an outage. */
export const replaceStamp = (self: SessionRecords, user: string): Promise<string> =>
  settled(self, user, async (key, lifetime) => {
    const stamp = randomId(16)
    // also without a stamp there may be a second factor that waits
    return (await self.store.update(key, stamp, lifetime)) || (await self.store.insert(key, stamp, lifetime))
      ? stamp
      : undefined
  })

/** Where a session went that had another key before, and when (milliseconds since 1970); `undefined` for any other text. */
export const forwardIn = (text: string | undefined) => {
  const { next, since, user, listed } = fieldsIn(text)
  if (typeof next !== 'string' || typeof since !== 'number' || typeof user !== 'string') return undefined
  return { next, since, user, listed: typeof listed === 'string' ? listed : undefined }
}

/** The fields of a JSON object, without inherited fields; no fields for any other text. */
export const fieldsIn = (text = ''): Readonly<Record<string, unknown>> => jsonFields(text) ?? {}
