/**
 * Puts a combinator around each credential of an authenticator. With one kind, it goes around all of it, also around
 * `map`. With several, it goes around each kind, and lists, `optional` and `authorize` decide about the results.
 *
 * So `authorize`, which decides about the request, is never inside, and no member of a list hides another.
 */
import { rebuildOf, type Authenticator } from './Authenticator.js'
import type { Leaf } from './Description.js'
import { checkMember } from './members.js'
import { readingOf, type Reading } from './Reading.js'

/** @internal What is put around an authenticator of one kind of credential. */
export type Around = (self: Authenticator<unknown>, leaf: Leaf, reading: Reading) => Authenticator<unknown>

/** @internal Applies `around` to each credential. Throws a TypeError if a credential cannot be seen. */
export const aroundEach =
  (place: string, around: Around) =>
  (self: Authenticator<unknown>): Authenticator<unknown> => {
    checkMember(`${place}(a)`, self)
    const rebuild = rebuildOf(self)
    if (rebuild !== undefined) return rebuild(aroundEach(place, around))
    // Safe: a caller without types could pass any function
    const { description } = self as Partial<Authenticator<unknown>>
    if (description !== undefined && description._tag !== 'Leaf') {
      throw new TypeError(
        `${place}(a): a hides the authenticators that it is made of; put ${place} around each of them`,
      )
    }
    const reading = description && readingOf(description)
    if (description === undefined || reading === undefined) {
      throw new TypeError(
        `${place}(a): it is unknown which credential a reads, because a is a plain function, httpJwt or httpIntrospection; put ${place} around kinds whose hook you write, such as httpBasicAuth or authenticator({ extract, ... })`,
      )
    }
    return around(self, description, reading)
  }
