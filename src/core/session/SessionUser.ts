/**
 * The user of a session: what `loadUser` must return.
 */
import * as t from 'io-ts'
import type { PrincipalFromAnswer } from '../PrincipalFromAnswer.js'
import type { Rights } from './Rights.js'
import { ownOrGetter } from '../ownFields.js'

const flag = t.union([t.boolean, t.null, t.undefined])

/** A logged-in user. Only `true` grants a right; `isActive: false` and `null` refuse. */
export const SessionUser = Object.freeze(
  t.intersection([t.type({ username: t.string }), t.partial({ isSuperuser: flag, isStaff: flag, isActive: flag })]),
)

/** @see SessionUser */
export type SessionUser = t.TypeOf<typeof SessionUser>

/** Intersected with the type of options: adds nothing if they load users. Otherwise they do not compile. */
export type LoadsUsers<R> = LoadsUsersAsInferred<[R][R extends unknown ? 0 : never]>

type LoadsUsersAsInferred<R> =
  unknown extends PrincipalFromAnswer<R>
    ? unknown
    : [PrincipalFromAnswer<R>] extends [SessionUser]
      ? unknown
      : {
          readonly loadUser: (
            ...args: never[]
          ) => 'a user has username: string; isActive, isSuperuser and isStaff are boolean, null or left out'
        }

/** Why a loaded value is no user, and the fix; `undefined` for a user. Never prints a value. */
export const notAUser = (u: unknown, rights: Rights, needsUsername: boolean): string | undefined => {
  if (typeof u !== 'object' || u === null || Array.isArray(u)) {
    return `loadUser must load an object${needsUsername ? ' with a username' : ''}, or undefined where there is no such user`
  }
  return needsUsername && typeof ownOrGetter(u, 'username') !== 'string' ? noUsername : rights.mistakeOf(u)
}

const noUsername =
  'the loaded user has no username that is a string; load { ...user, username: user.email }, for example, or use the kinds that sessions(app, { identify }) returns'
