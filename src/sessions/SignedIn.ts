/**
 * Who is signed in, as a session holds it: an identifier, when they authenticated, and the mark of the user at that time.
 *
 * Rights are not in it: the user is loaded at each request. The mark is what `logOutEverywhere` changes, so that no index of
 * sessions is needed, and no comparison of clocks that differ between machines.
 */
import * as t from 'io-ts'

/** What stands under `auth` in a session; `at` is in milliseconds since 1970. */
export const SignedIn = t.readonly(t.strict({ id: t.string, at: t.number, mark: t.string }))

/** @see SignedIn */
export type SignedIn = t.TypeOf<typeof SignedIn>

/** Who is signed in in a session, if anybody. */
export const signedIn = (session: object): SignedIn | undefined => {
  const auth: unknown = 'auth' in session ? session.auth : undefined
  return SignedIn.is(auth) && auth.id !== '' ? auth : undefined
}
