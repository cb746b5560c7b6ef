/**
 * Checks the members of a combinator when they are written. Each mistake is a TypeError that names the place and the
 * fix.
 *
 * Otherwise each of these mistakes would let everybody in, or refuse everybody.
 */
import { admitsAnonymous, type Description } from './Description.js'
import { checkHook, named } from './options.js'

/** Throws a TypeError for a value that cannot be a member. */
export const checkMember = (place: string, member: unknown): void => {
  if (Array.isArray(member)) throw new TypeError(`${place} is a list in a list; write one list, or anyOf([...])`)
  if (member === undefined)
    throw new TypeError(
      `${place} is undefined; is it imported before it is defined? Only null makes an operation public`,
    )
  if (member === null)
    throw new TypeError(`${place} is null; write null alone: withAuth(null) makes an operation public`)
  if (typeof member !== 'function')
    throw new TypeError(
      `${place} must be an authenticator, such as httpBearer({ ... }), or a function of the request, not ${named(member)}`,
    )
  checkHook(place, member, 1, 'write (request) => principal; middleware is no authenticator')
}

/** Throws a TypeError for a value that is not a list or an object of members. */
export const checkGroup = (place: string, group: unknown): void => {
  if (Array.isArray(group)) {
    if (group.length === 0) throw new TypeError(`${place}([]): an empty list; pass at least one authenticator`)
    // `entries` also visits holes, which `forEach` would skip
    for (const [at, member] of group.entries()) checkMember(`${place}([...])[${at}]`, member)
    return
  }
  if (typeof group !== 'object' || group === null) {
    throw new TypeError(
      `${place} takes a list or an object of authenticators, not ${named(group)}; write ${place}([a, b])`,
    )
  }
  const prototype: unknown = Object.getPrototypeOf(group)
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(`${place} takes a plain object; one with its own prototype (__proto__) hides members`)
  }
  const entries = Object.entries(group)
  if (entries.length === 0) throw new TypeError(`${place}({}): an empty object; pass at least one authenticator`)
  for (const [key, member] of entries) {
    // engines put integer-like keys first, whatever the order written
    if (/^\d+$/.test(key))
      throw new TypeError(
        `${place}({ ${key}: ... }): the key looks like an integer, and would change the order; use a name`,
      )
    checkMember(`${place}({ ${key} })`, member)
  }
}

/** Throws a TypeError if an optional alternative is not the last one: those after it would never be asked. */
export const checkOrder = (place: string, members: ReadonlyArray<{ readonly description: Description }>): void => {
  const at = members.slice(0, -1).findIndex(({ description }) => admitsAnonymous(description))
  if (at >= 0) {
    throw new TypeError(
      `${place}: alternative ${at + 1} is optional, so those after it would never be asked; put it last`,
    )
  }
}

/** Throws a TypeError if anonymous callers pass, because they cannot be allowed anything. */
export const checkDemanding = (place: string, description: Description): void => {
  if (admitsAnonymous(description))
    throw new TypeError(`${place}: a is optional; write optional(${place.slice(0, -3)}(a))`)
}
