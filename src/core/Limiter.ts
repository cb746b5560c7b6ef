/**
 * What counts guesses: anything with `consume` and `reward`, as the classes of rate-limiter-flexible (memory, Redis, SQLite
 * and more).
 *
 * `consume` adds one and then tells whether that was too much, in one step of the store: so of any number of guesses in
 * parallel no more pass than the limit. A limiter that looks first and counts later is none.
 */
import { checkOptions, maybe, type Check } from './options.js'

/** Counts by keys. */
export interface Limiter {
  /**
   * Counts one. It rejects with an Error where the store fails, and with anything else, as a record with `msBeforeNext`,
   * where it is too much.
   */
  readonly consume: (key: string) => PromiseLike<unknown>
  /** Takes one back. */
  readonly reward: (key: string) => PromiseLike<unknown>
}

/** A limiter for each of the three. */
export interface Limiters {
  /** Guesses at one account from one address: the narrow one. */
  readonly accountAndAddress: Limiter
  /** Guesses at one account from anywhere. */
  readonly account?: Limiter | undefined
  /** Guesses from one address at any account. */
  readonly address?: Limiter | undefined
}

/** @internal What counting came to: one more, too many (for so many seconds), or it failed. */
export type Counted =
  | {
      readonly _tag: 'Counted'
      readonly total: number
      /** How many more are allowed, where the limiter says so. */
      readonly left: number
      readonly retryAfter: number | undefined
      readonly giveBack: () => void
    }
  | { readonly _tag: 'TooMany'; readonly retryAfter: number | undefined }
  | { readonly _tag: 'Failed'; readonly retryAfter?: undefined }

/** @internal Counts one; never rejects. */
export const countOne = (limiter: Limiter, key: string): Promise<Counted> => {
  const start = Date.now()
  const counted = (answer: unknown): Counted => {
    const ms = timeLeft(answer)
    return {
      _tag: 'Counted',
      total: numberIn(answer, 'consumedPoints') ?? 0,
      left: numberIn(answer, 'remainingPoints') ?? Infinity,
      retryAfter: inSeconds(ms),
      giveBack: () => takeBack(limiter, key, start + (ms ?? Infinity)),
    }
  }
  const refused = (reason: unknown): Counted => {
    if (isError(reason) && numberIn(reason, 'msBeforeNext') === undefined) return { _tag: 'Failed' }
    const left = timeLeft(reason)
    // Counted all the same, it is given back, or good requests in parallel would use the limit up. What blocks for a while
    // has forgotten the count.
    const wasCounted = (numberIn(reason, 'consumedPoints') ?? 0) > 0
    const isBlocked = (numberIn(limiter, 'blockDuration') ?? 0) > 0
    if (wasCounted && !isBlocked) takeBack(limiter, key, start + (left ?? Infinity))
    return { _tag: 'TooMany', retryAfter: inSeconds(left) }
  }
  return settled(() => limiter.consume(key)).then(counted, refused)
}

// What is thrown is a rejection, too
const settled = (ask: () => PromiseLike<unknown>): Promise<unknown> => {
  try {
    return Promise.resolve(ask())
  } catch (error) {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown
    return Promise.reject(error)
  }
}

// Milliseconds until the window ends; `undefined` where it never does, or is unknown
const timeLeft = (counted: unknown): number | undefined => {
  const left = numberIn(counted, 'msBeforeNext')
  return left === undefined || left < 0 ? undefined : left
}

const inSeconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000)

// Not waited for: a store that fails now leaves the guess counted, until its window ends
const takeBack = (limiter: Limiter, key: string, until: number): void => {
  // in the next window it would be a guess for free
  if (Date.now() >= until) return
  settled(() => limiter.reward(key)).catch(() => undefined)
}

/** @internal A number of a record, if there is one. */
export const numberIn = (u: unknown, name: string): number | undefined => {
  if (typeof u !== 'object' || u === null) return undefined
  const value: unknown = Reflect.get(u, name)
  return typeof value === 'number' && !Number.isNaN(value) ? value : undefined
}

// Of another realm, too, as in a test runner
const isError = (u: unknown): boolean => u instanceof Error || Object.prototype.toString.call(u) === '[object Error]'

/** @internal Limiters, the one or each by itself. TypeError for what is none. */
export const checkLimiters = (limiter: unknown): Limiters => {
  const place = 'throttled({ limiter })'
  if (isLimiter(limiter)) return { accountAndAddress: limiter }
  if (typeof limiter !== 'object' || limiter === null || !hasNarrow(limiter)) {
    throw new TypeError(
      `${place} must be a limiter, an object with the methods consume and reward, or an object { accountAndAddress, account, address } of limiters`,
    )
  }
  // Safe: the checks refuse what is no limiter
  return checkOptions<Limiters>(place, limiter as Limiters, {
    accountAndAddress: counts,
    account: maybe(counts),
    address: maybe(counts),
  })
}

const hasNarrow = (limiter: { readonly accountAndAddress?: unknown }): boolean =>
  limiter.accountAndAddress !== undefined

const counts: Check = (place, value) => {
  if (!isLimiter(value)) throw new TypeError(`${place} must have the methods consume and reward`)
}

const isLimiter = (u: unknown): u is Limiter =>
  typeof u === 'object' &&
  u !== null &&
  'consume' in u &&
  typeof u.consume === 'function' &&
  'reward' in u &&
  typeof u.reward === 'function'
