/**
 * The same authenticator, which also notes what each kind in it let in: for the record of a decision, where somebody listens.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import type { Evaluation } from '../Evaluation.js'
import { make, rebuildOf, type Authenticator } from '../Authenticator.js'
import type { Leaf } from '../Description.js'

const notes = new WeakMap<Request, Leaf[]>()
const recalled = new WeakSet<Request>()

/** Notes that a verification was not repeated. */
export const noteRecalled = (request: Request): void => void recalled.add(request)

/** Whether a verification was not repeated for a request. */
export const wasRecalled = (request: Request): boolean => recalled.has(request)

/** The kinds that passed for a request since it was asked for the last time, in order. */
export const passedFor = (request: Request): ReadonlyArray<Leaf> => {
  const passed = notes.get(request) ?? []
  notes.delete(request)
  return passed
}

/** An authenticator that decides as this one, and takes notes. What cannot be made again takes none. */
export const witnessed = (self: Authenticator<unknown>): Authenticator<unknown> => {
  const rebuild = rebuildOf(self)
  if (rebuild !== undefined) return rebuild(witnessed)
  const { description } = self
  if (description._tag !== 'Leaf') return self
  const note = (request: Request, result: Awaited<Evaluation<unknown>>) => {
    if (E.isRight(result)) {
      const before = notes.get(request)
      if (before === undefined) notes.set(request, [description])
      else before.push(description)
    }
    return result
  }
  return make(description, (request) => {
    const evaluation = self.evaluate(request)
    return evaluation instanceof Promise ? evaluation.then((late) => note(request, late)) : note(request, evaluation)
  })
}
