/** Values by key, so many and for so long (`ageOf`); work under way that callers share; outages that answers show; and whose memory it is. */
import { ageOf, thisMoment, type Moment } from './data.js'

interface KeptValue<V> {
  readonly value: V
  /** Its age counts from here. */
  readonly since: Moment
  /** When it ends in any case, in milliseconds since 1970. */
  readonly expiresAt: number
}

export const fromNow = <V>(value: V, expiresAt = Infinity): KeptValue<V> => ({ value, since: thisMoment(), expiresAt })

export interface Memory<V> {
  /** The value, unless it is too old. `now`: the time of the system, for a caller that has read it. */
  readonly get: (key: string, now?: number) => V | undefined
  /** Stores a value as the youngest. A value that is too old already is not stored. */
  readonly set: (key: string, kept: KeptValue<V>) => void
  readonly delete: (key: string) => void
}

interface MemoryOptions {
  readonly size: number
  /** In milliseconds. */
  readonly maxAge: number
  /** The value that goes first when there are too many: the value that was set first, or the value that was not used for longest. */
  readonly dropsFirst: 'oldest' | 'least recently used'
}

/** Makes an empty memory. Law (spec/core/memory.law.spec.ts): it has the values that a list of all entries would have. */
export const memory = <V>({ size, maxAge, dropsFirst }: MemoryOptions): Memory<V> => {
  const entries = new Map<string, KeptValue<V>>()
  // its end is an age, too, so a clock that is set back does not prolong it; a value that never ages is read without a clock
  const isGood = ({ since, expiresAt }: KeptValue<V>, now?: number): boolean => {
    const oldest = Math.min(maxAge, expiresAt - since.system)
    return oldest === Infinity || ageOf(since, now) < oldest
  }
  // a value that is used again and again stays where it is
  let latest: string | undefined
  return {
    get: (key, now) => {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      const good = isGood(entry, now)
      const moves = dropsFirst === 'least recently used' && key !== latest
      if (!good || moves) entries.delete(key)
      if (!good) return undefined
      if (moves) entries.set((latest = key), entry)
      return entry.value
    },
    set: (key, kept) => {
      if (!isGood(kept)) return
      entries.delete(key)
      entries.set((latest = key), kept)
      for (const oldest of entries.keys()) {
        if (entries.size <= size) return
        entries.delete(oldest)
      }
    },
    delete: (key) => void entries.delete(key),
  }
}

/**
 * Lets all callers that come while one call is under way share its promise. The next caller after that calls again. So does a
 * caller that comes `patience` milliseconds after its beginning, because a call may never end.
 */
export const singleFlight = <A>(call: () => Promise<A>, patience = Infinity): (() => Promise<A>) => {
  let underWay: Promise<A> | undefined
  let begunAt = 0
  return () => {
    if (underWay !== undefined && performance.now() - begunAt < patience) return underWay
    begunAt = performance.now()
    const own = call().finally(() => {
      if (underWay === own) underWay = undefined
    })
    return (underWay = own)
  }
}

/** The questions to one server and their results. A question that failed must not be reported as answered later. */
export interface Outages<Problem> {
  readonly ask: () => number
  readonly answered: (question: number) => void
  readonly failed: (question: number, problem: Problem) => void
}

/**
 * Finds outages from answers: calls `begun` when one begins, and `over` when it has ended.
 *
 * Questions overlap. A question that was asked before the last change proves nothing about the time after it, so its
 * answer changes nothing.
 */
export const watchOutages = <Problem>(
  begun: (problem: Problem) => void,
  over: (durationMs: number) => void,
): Outages<Problem> => {
  let questions = 0
  let atChange = 0
  let begunAt: number | undefined
  return {
    ask: () => ++questions,
    answered: (question) => {
      if (begunAt === undefined || question <= atChange) return
      const durationMs = performance.now() - begunAt
      begunAt = undefined
      atChange = questions
      over(durationMs)
    },
    failed: (question, problem) => {
      if (begunAt !== undefined || question <= atChange) return
      begunAt = performance.now()
      atChange = questions
      begun(problem)
    },
  }
}

const warnedOf = new Set<string>()

/** Warns once in a worker of `node:cluster`: the others do not have the memory of this process. */
export const warnOfWorkers = (memory: string, fix: string): void => {
  // loading cluster takes long, and only a process with a channel to another can be a worker
  if (process.send === undefined || warnedOf.has(memory)) return
  // Safe: it is the module itself, as `require` has it, and not a namespace around it
  const { isWorker } = process.getBuiltinModule('node:cluster') as object as { readonly isWorker: boolean }
  if (!isWorker) return
  warnedOf.add(memory)
  process.emitWarning(`${memory}, and the other workers of node:cluster do not know it; ${fix}`, 'WorkerWarning')
}
