/**
 * What a session knows of the call of `sessions` that it belongs to.
 */
import type { Rights } from '../core/session/Rights.js'
import type { SessionIds } from './sessionIds.js'
import type { SignInBinding } from './SignedIn.js'
import type { Signing } from './SignInFunctions.js'
import type { Ended } from './SignInReports.js'

/** The call of `sessions`, as a request sees it. */
export interface SessionOwner {
  /** The signing keys, as they are now. */
  readonly keys: () => unknown
  /** The application's name. */
  readonly name: string
  readonly ids: SessionIds
  readonly loadUser: (id: string) => unknown
  readonly rights: Rights
  /** The functions that sign in and out. */
  readonly signing: () => Signing<never>
  /** The sessions whose end a request showed. */
  readonly ended: Ended
}

/** What a sign-in by a session is bound to. */
export const bindingOf = ({ keys, name }: SessionOwner, sessionId: string): SignInBinding => ({
  keys: keys(),
  name,
  sessionId,
})
