/**
 * Keeps verifications that passed, each by its key for a time, and those under way.
 *
 * It knows nothing of credentials and requests. It never keeps a failure, or the result of `optional` without a credential.
 */
import * as E from 'fp-ts/lib/Either.js'
import { ageOf, thisMoment, type Moment } from './age.js'
import { isAnonymous, type Evaluation } from './Evaluation.js'
import type { AuthError } from './AuthError.js'

type Result = E.Either<AuthError, unknown>

interface Kept {
  readonly result: E.Right<unknown>
  readonly since: Moment
  readonly expiresAt: number
}

interface UnderWay {
  readonly evaluation: Promise<Result>
  readonly since: Moment
  /** Whether the result is for its own request only. */
  isAlone: boolean
}

/** Verifications, `size` of them at most, `maxAge` milliseconds each. */
export interface Verifications {
  /**
   * Returns a kept result, or one under way that is younger than `patience`, or else the result of `verify`. If `isAlone` then
   * returns `true`, that result is for its own request only: it is not kept and not shared.
   */
  readonly recall: (
    key: string,
    verify: () => Evaluation<unknown>,
    patience: number,
    isAlone?: () => boolean,
  ) => Evaluation<unknown>
  /** Forgets those for whose principal `predicate` is true. A result that is under way will not be kept. */
  readonly forget: (predicate: (principal: unknown) => boolean) => number
}

/** An empty collection. */
export const verifications = (maxAge: number, size: number): Verifications => {
  const passed = new Map<string, Kept>()
  const underWay = new Map<string, UnderWay>()

  const isGood = ({ since, expiresAt }: Kept): boolean => ageOf(since) < maxAge && Date.now() < expiresAt

  const keep = (key: string, result: Result, since: Moment): void => {
    if (E.isLeft(result) || isAnonymous(result)) return
    const kept = { result, since, expiresAt: endOf(result.right) }
    if (!isGood(kept)) return
    passed.delete(key)
    passed.set(key, kept)
    for (const oldest of passed.keys()) {
      if (passed.size <= size) return
      passed.delete(oldest)
    }
  }

  const recall: Verifications['recall'] = (key, verify, patience, isAlone) => {
    const found = passed.get(key)
    if (found !== undefined) {
      passed.delete(key)
      if (isGood(found)) {
        passed.set(key, found)
        return found.result
      }
    }
    const other = underWay.get(key)
    // No caller waits for ever for one that never settles, and none is older than what is kept
    if (other !== undefined && ageOf(other.since) < Math.min(patience, maxAge)) {
      return isAlone === undefined
        ? other.evaluation
        : other.evaluation.then((result) => (other.isAlone ? verify() : result))
    }
    const since = thisMoment()
    const evaluation = verify()
    if (!(evaluation instanceof Promise)) {
      if (isAlone?.() !== true) keep(key, evaluation, since)
      return evaluation
    }
    const own: UnderWay = {
      since,
      isAlone: false,
      evaluation: evaluation.then((result) => {
        own.isAlone = isAlone?.() === true
        // not if it was forgotten or replaced meanwhile
        if (underWay.get(key) === own) {
          underWay.delete(key)
          if (!own.isAlone) keep(key, result, since)
        }
        return result
      }),
    }
    underWay.set(key, own)
    return own.evaluation
  }

  const forget: Verifications['forget'] = (predicate) => {
    underWay.clear()
    const before = passed.size
    try {
      for (const [key, { result }] of passed) if (predicate(result.right)) passed.delete(key)
    } catch (error) {
      // those that it did not judge must not be kept
      passed.clear()
      throw error
    }
    return before - passed.size
  }
  return { recall, forget }
}

/** When a principal expires. NaN for an `expiresAt` of another type: then the result is not kept. */
const endOf = (principal: unknown): number => {
  if (typeof principal !== 'object' || principal === null || !('expiresAt' in principal)) return Infinity
  const { expiresAt } = principal
  if (expiresAt === undefined || expiresAt === null) return Infinity
  if (expiresAt instanceof Date) return expiresAt.getTime()
  return typeof expiresAt === 'number' ? expiresAt : NaN
}
