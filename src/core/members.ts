/**
 * Checks a member of a combinator when it is written. Each mistake is a TypeError that names the place and the fix.
 *
 * Otherwise each of these mistakes would let everybody in, or refuse everybody.
 */
import { checkHook, typeName } from './options.js'

/** Throws a TypeError for a value that cannot be a member. */
export const checkMember = (where: string, member: unknown): void => {
  if (Array.isArray(member)) throw new TypeError(`${where} is a list in a list; write one list, or anyOf([...])`)
  if (member === undefined)
    throw new TypeError(
      `${where} is undefined; is it imported before it is defined? Only null makes an operation public`,
    )
  if (member === null)
    throw new TypeError(`${where} is null; write null alone: withAuth(null) makes an operation public`)
  if (typeof member !== 'function')
    throw new TypeError(
      `${where} must be an authenticator, such as httpBearer({ ... }), or a function of the request, not ${typeName(member)}`,
    )
  checkHook(where, member, 1, 'write (request) => principal; middleware is no authenticator')
}
