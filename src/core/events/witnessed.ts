/**
 * The same authenticator, which also notes what each kind in it let in: for the record of a decision, where somebody listens.
 *
 * Notes are marks on the request: a WeakMap would cost each request more than the whole record.
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

/** Notes that a verification was not repeated. */
export const noteRecalled = (request: Request & Noted): void => void (request[recalledMark] = true)

/** Whether a verification was not repeated for a request since it was asked for the last time. */
export const wasRecalled = (request: Request & Noted): boolean => {
  if (request[recalledMark] !== true) return false
  request[recalledMark] = undefined
  return true
}

const none: ReadonlyArray<Leaf> = []

/** The kinds that passed for a request since it was asked for the last time, in order. */
export const passedFor = (request: Request & Noted): ReadonlyArray<Leaf> => {
  const passed = request[passedMark]
  if (passed === undefined) return none
  request[passedMark] = undefined
  return passed
}

/**
 * An authenticator that decides as this one, and takes notes. What cannot be made again takes none, and what has one kind
 * alone needs none.
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
