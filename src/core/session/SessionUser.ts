/**
 * The user of a session: what a loader must load so that somebody can sign in at all.
 */
import * as t from 'io-ts'
import type { PrincipalFromAnswer } from '../PrincipalFromAnswer.js'
import { userField } from './sessionFields.js'

// Databases write "not set" as null; anything else that is no boolean makes the user unreadable
const flag = t.union([t.boolean, t.null, t.undefined])

/** A logged-in user. Only `true` grants a right; `isActive: false` and `null` refuse. */
export const SessionUser = Object.freeze(
  t.intersection([t.type({ username: t.string }), t.partial({ isSuperuser: flag, isStaff: flag, isActive: flag })]),
)

/** @see SessionUser */
export type SessionUser = t.TypeOf<typeof SessionUser>

/** What options must be beside their own type: nothing more where they load users, else what does not compile. */
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

const flags = ['isActive', 'isSuperuser', 'isStaff'] as const

/** The fields of a user that decide; own properties and getters of its class only. */
export type UserFields = Readonly<Record<'username' | (typeof flags)[number], unknown>>

/** Reads the fields. */
export const userFields = (user: object): UserFields => ({
  username: userField(user, 'username'),
  isActive: userField(user, 'isActive'),
  isSuperuser: userField(user, 'isSuperuser'),
  isStaff: userField(user, 'isStaff'),
})

/** What is wrong with a loaded value so that it can never sign in, and the fix; `undefined` for a user. Never prints a value. */
export const notAUser = (u: unknown): string | undefined => {
  if (typeof u !== 'object' || u === null || Array.isArray(u)) {
    return 'loadUser must load an object with a username, or undefined where there is no such user'
  }
  const fields = userFields(u)
  if (typeof fields.username !== 'string') {
    return 'the loaded user has no username that is a string; load { ...user, username: user.email }, for example'
  }
  const bad = flags.find((name) => !flag.is(fields[name]))
  return bad === undefined
    ? undefined
    : `${bad} of the loaded user is no boolean; load { ...user, ${bad}: Boolean(user.${bad}) }, for example`
}
