/**
 * What a hook may return, and how each result becomes an Either. Only this module knows about truthiness.
 *
 * | answer                                             | result                                               |
 * |----------------------------------------------------|------------------------------------------------------|
 * | `false 0 -0 0n NaN '' null undefined`              | `invalid` (spec 5.1.2)                               |
 * | a lookup that found nothing: `[]`, an object without keys (plain or null prototype), a prototype | `invalid` |
 * | an Error of any realm                              | as if it had been thrown                             |
 * | a promise, or anything with a `then`               | awaited, then judged; a rejection is `raised`, or `unavailable` for an `UnavailableError` |
 * | `None`, `Left`                                     | `invalid`; a `Left` of an AuthError is that failure  |
 * | an AuthError                                       | that failure, as if it were a `Left`                 |
 * | `Some`, `Right`                                    | unwrapped, then judged                               |
 * | an object with one of these tags that has other keys than fp-ts or this layer gives it | `raised`: data can hold a `_tag` |
 * | a function (Task, TaskEither, what a bare RTE returns) | called; it must give an Either, else `raised`    |
 * | an iterator (of a generator, which is never run)   | `raised`                                             |
 * | any other value                                    | the principal (spec 5.1.1)                           |
 */
import * as E from 'fp-ts/lib/Either.js'
import { hasExactKeys, invalid, is as isAuthError, raised, type AuthError } from './AuthError.js'
import { anonymous, type Evaluation, type Result } from './Evaluation.js'
import { deepFreeze } from './freeze.js'
import { anonymousMark } from './marks.js'
import { foundNothing, isErrorObject, isInheritedFunction } from './noPrincipal.js'
import { isThenable, toPromise } from './promises.js'
import { failureOf } from './UnavailableError.js'

/** @internal The failure of an answer that is no principal. */
export const refused: E.Either<AuthError, never> = deepFreeze(E.left(invalid))

/** Turns a hook's answer into an Either: sync if the answer is no promise and no function. Never throws. */
export const fromAnswer = (answer: unknown): Evaluation<unknown> => {
  if (!answer) return refused
  if (typeof answer !== 'object' && typeof answer !== 'function') return E.right(answer)
  try {
    if ('then' in answer && typeof answer.then === 'function') return toPromise(answer).then(fromAnswer, failed)
    if (typeof answer === 'function') return isInheritedFunction(answer) ? refused : fromTask(answer)
    if (Array.isArray(answer)) return answer.length === 0 ? refused : E.right(answer)
    return fromObject(answer)
  } catch (error) {
    return failed(error)
  }
}

/** @internal The same for an anonymous caller: `undefined` is no refusal, the caller stays anonymous. */
export const fromAnswerToAnonymous = (answer: unknown): Evaluation<unknown> => {
  if (answer === undefined) return anonymous
  return isThenable(answer) ? toPromise(answer).then(fromAnswerToAnonymous, failed) : fromAnswer(answer)
}

/** @internal Calls `ask` and reads its answer. An exception becomes a failure. */
export const answerTo = (
  ask: () => unknown,
  read: (answer: unknown) => Evaluation<unknown> = fromAnswer,
): Evaluation<unknown> => {
  try {
    return read(ask())
  } catch (error) {
    return failed(error)
  }
}

const failed = (error: unknown): Result<never> => E.left(failureOf(error))

const mistake = (message: string): Result<never> => E.left(raised(new TypeError(message)))

const fromObject = (answer: object): Evaluation<unknown> => {
  if ('next' in answer && typeof answer.next === 'function') return mistake(iteratorMessage)
  if (isErrorObject(answer)) return failed(answer)
  if (foundNothing(answer)) return refused
  return '_tag' in answer ? fromTagged(answer, answer._tag) : E.right(answer)
}

const fromTagged = (answer: object, tag: unknown): Evaluation<unknown> => {
  if (isAuthError(answer)) return hasExactKeys(answer) ? E.left(answer) : mistake(tagMessage(answer._tag))
  const payload = payloads.get(tag)
  if (payload === undefined) return E.right(answer)
  if (!isMadeByFpTs(answer, payload)) return mistake(tagMessage(String(tag)))
  const value: unknown = payload === none ? undefined : Reflect.get(answer, payload)
  if (payload !== 'left') return fromAnswer(value)
  return isAuthError(value) ? E.left(value) : refused
}

const none = ''

// The key that fp-ts puts beside each `_tag`
const payloads: ReadonlyMap<unknown, string> = new Map([
  ['None', none],
  ['Some', 'value'],
  ['Left', 'left'],
  ['Right', 'right'],
])

// A row of a database can hold a `_tag` that its owner wrote. fp-ts's own values have only these keys
const isMadeByFpTs = (answer: object, payload: string): boolean => {
  const ours = payload === none ? '_tag' : payload
  for (const key of Reflect.ownKeys(answer)) if (key !== '_tag' && key !== ours && key !== anonymousMark) return false
  return isOwnData(answer, '_tag') && isOwnData(answer, ours)
}

const isOwnData = (answer: object, key: string): boolean =>
  Object.getOwnPropertyDescriptor(answer, key)?.get === undefined && Object.hasOwn(answer, key)

// A function is always truthy, so only a Task of an Either is accepted
const fromTask = (task: Function): Evaluation<unknown> => {
  const yielded: unknown = Reflect.apply(task, undefined, [])
  return isThenable(yielded)
    ? toPromise(yielded).then((late) => answerTo(() => late, eitherOnly), failed)
    : eitherOnly(yielded)
}

const eitherOnly = (yielded: unknown): Evaluation<unknown> =>
  isEither(yielded) ? fromAnswer(yielded) : mistake(taskMessage)

const isEither = (u: unknown): boolean =>
  typeof u === 'object' && u !== null && '_tag' in u && (u._tag === 'Left' || u._tag === 'Right')

const iteratorMessage = 'a hook returned an iterator, which is never run; is the hook a generator?'

const tagMessage = (tag: string): string =>
  `a hook returned an object whose _tag is "${tag}", but its keys are not those of such a value; if it is data, return an object without _tag`

const taskMessage =
  'a hook returned a function that gives no Either; return a value, a promise, an Option, an Either or a TaskEither'
