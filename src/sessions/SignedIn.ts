/**
 * Who is signed in, as a session holds it under `auth`: an identifier, when they authenticated, the mark of the user at that
 * time, and a MAC that binds these to the id of the session and to the application.
 *
 * Rights are not in it: the user is loaded at each request. The mark is what `logOutEverywhere` changes, so that no index of
 * sessions is needed, and no comparison of clocks that differ between machines. Without the MAC, whoever writes into a
 * session, by a polluted prototype, by `Object.assign(ctx.session, body)` or in the database, would sign in as anybody.
 */
import { ownField, sessionField } from '../core/session/sessionFields.js'
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
  /** What records call the user, where the application says so. */
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

/** The record in a session, whether it is genuine or not; `undefined` where none is. */
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

/** Whether two records are one. */
export const areSame = (one: SignedIn, other: SignedIn): boolean =>
  one.id === other.id && one.at === other.at && one.mark === other.mark && one.mac === other.mac

/** Makes the record. Throws for keys that are none. */
export const bind = ({ id, at, mark }: SignIn, binding: SignInBinding): SignedIn => ({
  id,
  at,
  mark,
  mac: signed(binding.keys, boundText({ id, at, mark }, binding)),
})

/** Which key bound a record: the first, an older one, or none, which makes it a forgery. */
export const boundBy = (auth: SignedIn, binding: SignInBinding): ReturnType<typeof signedBy> =>
  signedBy(binding.keys, boundText(auth, binding), auth.mac)

// A JSON array, so that no two different records have one text; no cookie is called so, so that no signature of a cookie fits
const boundText = ({ id, at, mark }: SignIn, { name, sessionId }: SignInBinding): string =>
  JSON.stringify(['koa-with-auth/sessions', name, sessionId, id, at, mark])
