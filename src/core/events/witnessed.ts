/**
 * Makes an authenticator that also notes which of its kinds let in. The record of a decision needs that, so it is done
 * only if there is a subscriber.
 *
 * The notes are marks on the request. A WeakMap would cost more than the whole record.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { andThen, type Result } from '../Evaluation.js'
import { make, rebuildOf, type Authenticator } from '../Authenticator.js'
import { leaves, type Leaf } from '../Description.js'
import { passedMark, recalledMark } from '../marks.js'

interface Noted {
  [passedMark]?: Leaf[] | undefined
  [recalledMark]?: true | undefined
}

/** Notes that a remembered verification answered. */
export const noteRecalled = (request: Request & Noted): void => void (request[recalledMark] = true)

/** Whether a remembered verification answered. Removes the note. */
export const wasRecalled = (request: Request & Noted): boolean => {
  if (request[recalledMark] !== true) return false
  request[recalledMark] = undefined
  return true
}

const none: ReadonlyArray<Leaf> = []

/** The kinds that passed for a request, in order. Removes the notes. */
export const passedFor = (request: Request & Noted): ReadonlyArray<Leaf> => {
  const passed = request[passedMark]
  if (passed === undefined) return none
  request[passedMark] = undefined
  return passed
}

/**
 * An authenticator that decides as this one does, and takes notes. One that cannot be rebuilt takes none. One with a
 * single kind needs none.
 */
export const witnessed = (self: Authenticator<unknown>): Authenticator<unknown> =>
  leaves(self.description).length === 1 ? self : noting(self)

const noting = (self: Authenticator<unknown>): Authenticator<unknown> => {
  const rebuild = rebuildOf(self)
  if (rebuild !== undefined) return rebuild(noting)
  const { description } = self
  if (description._tag !== 'Leaf') return self
  const note = (request: Request & Noted, result: Result<unknown>) => {
    if (E.isRight(result)) {
      const before = request[passedMark]
      if (before === undefined) request[passedMark] = [description]
      else before.push(description)
    }
    return result
  }
  return make(description, (request) => andThen(self.evaluate(request), (result) => note(request, result)))
}
