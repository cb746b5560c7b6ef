/**
 * Who is signed in, as a session holds it under `auth`: the user's identifier, when the user signed in, the user's mark
 * at that time, and a MAC. The MAC binds these to the id of the session and to the application.
 *
 * It contains no rights, because the user is loaded at each request. `logOutEverywhere` changes the mark. So no index
 * of sessions is needed, and no comparison of clocks of different machines. Without the MAC, whoever can write into a
 * session (by a polluted prototype, by `Object.assign(ctx.session, body)`, or in the database) could sign in as
 * anybody.
 */
import { ownField } from '../core/ownFields.js'
import { sessionField } from '../core/session/sessionFields.js'
import { signed, signedBy } from '../core/session/signingKeys.js'

/** Who signed in, and when; `at` is in milliseconds since 1970. */
export interface SignIn {
  readonly id: string
  readonly at: number
  readonly mark: string
}

/** The same as the session holds it. */
export interface SignedIn extends SignIn {
  readonly mac: string
}

/** A user who is to be signed in. */
export interface NextSignIn extends SignIn {
  /** The name of the user in records, if the application gives one. */
  readonly subject: string | undefined
}

/** What a sign-in is bound to. */
export interface SignInBinding {
  /** The signing keys: `app.keys`. */
  readonly keys: unknown
  /** The application's name. */
  readonly name: string
  /** The id of the session. */
  readonly sessionId: string
}

/** The record in a session, genuine or not; `undefined` if there is none. */
export const signedInOf = (session: object): SignedIn | undefined => {
  const auth = sessionField(session, 'auth')
  if (typeof auth !== 'object' || auth === null) return undefined
  const [id, at, mark, mac] = ['id', 'at', 'mark', 'mac'].map((name) => ownField(auth, name))
  return typeof id === 'string' &&
    id !== '' &&
    typeof at === 'number' &&
    typeof mark === 'string' &&
    typeof mac === 'string'
    ? { id, at, mark, mac }
    : undefined
}

/** Whether two records are equal. */
export const areSame = (one: SignedIn, other: SignedIn): boolean =>
  one.id === other.id && one.at === other.at && one.mark === other.mark && one.mac === other.mac

/** Makes the record. Throws a TypeError if there is no signing key. */
export const bind = ({ id, at, mark }: SignIn, binding: SignInBinding): SignedIn => ({
  id,
  at,
  mark,
  mac: signed(binding.keys, boundText({ id, at, mark }, binding)),
})

/** Which key bound a record: the first, an older one, or none. With none, it is a forgery. */
export const boundBy = (auth: SignedIn, binding: SignInBinding): ReturnType<typeof signedBy> =>
  signedBy(binding.keys, boundText(auth, binding), auth.mac)

// A JSON array, so that different records never make the same string. No cookie has such a name, so no signature of a
// cookie fits
const boundText = ({ id, at, mark }: SignIn, { name, sessionId }: SignInBinding): string =>
  JSON.stringify(['koa-with-auth/sessions', name, sessionId, id, at, mark])
