/** Lists and objects of members, as `anyOf`, `allOf` and `firstPresent` take them. */
import * as AuthErrors from './AuthError.js'
import type { AuthError } from './AuthError.js'
import { withChallenges, type Description } from './Description.js'
import { checkMember, isPlain, typeName } from './options.js'

export const isList = <A>(group: ReadonlyArray<A> | Readonly<Record<string, A>>): group is ReadonlyArray<A> =>
  Array.isArray(group)

/** The branches of a member that was not asked, because another one had decided. It still offers its challenge. */
export const skipped = (description: Description): ReadonlyArray<AuthError> =>
  AuthErrors.branchesOf(withChallenges(description, AuthErrors.absent)).map((branch) => ({ ...branch, skipped: true }))

// Each of these mistakes would let everybody in, or refuse everybody

export const checkGroup = (caller: string, group: unknown): void => {
  if (Array.isArray(group)) {
    if (group.length === 0) throw new TypeError(`${caller}([]): an empty list; pass at least one authenticator`)
    // `entries` also visits holes, which `forEach` would skip
    for (const [at, member] of group.entries()) checkMember(`${caller}([...])[${at}]`, member)
    return
  }
  if (typeof group !== 'object' || group === null) {
    throw new TypeError(
      `${caller} takes a list or an object of authenticators, not ${typeName(group)}; write ${caller}([a, b])`,
    )
  }
  if (!isPlain(group)) {
    throw new TypeError(`${caller} takes a plain object; one with its own prototype (__proto__) hides members`)
  }
  const entries = Object.entries(group)
  if (entries.length === 0) throw new TypeError(`${caller}({}): an empty object; pass at least one authenticator`)
  for (const [key, member] of entries) {
    // engines put integer-like keys first, whatever the order written
    if (/^\d+$/.test(key))
      throw new TypeError(
        `${caller}({ ${key}: ... }): the key looks like an integer, and would change the order; use a name`,
      )
    checkMember(`${caller}({ ${key} })`, member)
  }
}
