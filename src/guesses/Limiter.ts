/**
 * A limiter counts guesses. It is any object with `consume` and `reward`, such as the classes of rate-limiter-flexible (memory,
 * Redis, SQLite and more).
 *
 * `consume` adds one and reports whether that was too much, in one step of the store. So of any number of parallel guesses, no more
 * pass than the limit. An object that looks first and counts later is not a limiter.
 */
import { types } from 'node:util'
import * as AuthErrors from '../core/AuthError.js'
import * as is from '../core/checks.js'
import { report, type GuessLimitEvent } from '../core/events.js'
import { checkOptions } from '../core/options.js'

/** A limiter, as rate-limiter-flexible has them. */
export interface Limiter {
  /**
   * Counts one guess. It rejects with an Error if the store fails. If the guess is above the limit, it rejects with anything else,
   * such as an object with `msBeforeNext`.
   */
  readonly consume: (key: string) => PromiseLike<unknown>
  /** Takes one guess back. */
  readonly reward: (key: string) => PromiseLike<unknown>
}

/** A limiter of rate-limiter-flexible, in memory, on Redis or another store. Its `points` in `duration` seconds are the limit. */
export interface PointLimiter {
  /** Counts `points`. It rejects with an Error if the store fails, and with anything else if that is too much. */
  readonly consume: (key: string, points?: number) => PromiseLike<unknown>
  /** Takes points back, if another limit refuses the request. */
  readonly reward?: ((key: string, points?: number) => PromiseLike<unknown>) | undefined
  readonly points?: number | undefined
  readonly duration?: number | undefined
}

/** A limiter for each way to count. */
export interface Limiters {
  /** Guesses at one account from one address: the narrowest count. */
  readonly accountAndAddress: Limiter
  /** Guesses at one account from anywhere. */
  readonly account?: Limiter | undefined
  /** Guesses from one address at any account. */
  readonly address?: Limiter | undefined
}

/** @internal A count under a key of a limiter. */
export interface Count {
  readonly limiter: PointLimiter
  readonly key: string
  readonly under: GuessLimitEvent['under']
  /** A limit below that of the limiter. */
  readonly atMost?: number | undefined
  /** The price of a request. Left out for a guess, which is one. */
  readonly points?: number | undefined
}

/** @internal The result of counting: counted, too many, or the limiter failed. */
export type Counted =
  | {
      readonly _tag: 'Counted'
      readonly count: Count
      /** The answer of the limiter. */
      readonly answer: unknown
      /** When its window ends, as `performance.now()`. */
      readonly until: number
    }
  | { readonly _tag: 'TooMany'; readonly count: Count; readonly answer: unknown }
  | { readonly _tag: 'Failed'; readonly count: Count }

interface Counting<A> {
  readonly counter: GuessLimitEvent['counter']
  /** The narrow counts first. A guess that a narrow count refuses does not count under the others. */
  readonly counts: ReadonlyArray<Count>
  readonly isOpen?: boolean
  /** Runs if nothing was too many. It must not throw. */
  readonly run: (counted: ReadonlyArray<Counted>) => A | Promise<A>
  readonly refuse: (failure: AuthErrors.AuthError, counted: Counted) => A
}

/** @internal Counts under each limiter, then runs. If one refuses, the counts are taken back, and there is a record. */
export const countThenRun = <A>(self: Counting<A>, counted: Counted[] = []): A | Promise<A> => {
  const count = self.counts[counted.length]
  return count === undefined ? self.run(counted) : consume(count, (one) => goOnCounting(self, counted, one))
}

const goOnCounting = <A>(self: Counting<A>, counted: Counted[], one: Counted): A | Promise<A> => {
  const { counter, isOpen = false, refuse } = self
  counted.push(one)
  if (isLetPass(one)) return countThenRun(self, counted)
  const hasFailed = one._tag === 'Failed'
  const ms = hasFailed ? undefined : timeLeft(one.answer)
  const retryAfter = ms === undefined ? undefined : ms / 1000
  reportLimit(() => ({
    event: hasFailed ? 'failed' : 'reached',
    counter,
    under: one.count.under,
    ...(retryAfter !== undefined && { retryAfter }),
  }))
  if (hasFailed && isOpen) return countThenRun(self, counted)
  counted.forEach(takeBack)
  return refuse(hasFailed ? AuthErrors.unavailable() : AuthErrors.throttled(retryAfter), one)
}

const reportLimit = report('guess-limit')

const isLetPass = (one: Counted): boolean => {
  if (one._tag !== 'Counted') return false
  const left = numberIn(one.answer, 'remainingPoints') ?? Infinity
  const total = numberIn(one.answer, 'consumedPoints') ?? 0
  return Math.min(left, (one.count.atMost ?? Infinity) - total) >= 0
}

const consume = <A>(count: Count, next: (counted: Counted) => A | Promise<A>): Promise<A> => {
  const { limiter, key, points } = count
  const start = performance.now()
  try {
    const asked = points === undefined ? limiter.consume(key) : limiter.consume(key, points)
    return Promise.resolve(asked).then(
      (answer) => next({ _tag: 'Counted', count, answer, until: start + (timeLeft(answer) ?? Infinity) }),
      (reason: unknown) => next(consumeRefused(count, start, reason)),
    )
  } catch (error) {
    return Promise.resolve(next(consumeRefused(count, start, error)))
  }
}

const consumeRefused = (count: Count, start: number, reason: unknown): Counted => {
  if (!isTooMany(reason)) return { _tag: 'Failed', count }
  const { limiter, points } = count
  // A refused guess that was counted is taken back. Otherwise good requests in parallel would use the limit up. A
  // limiter that blocks for a while does not keep the count. The price of a refused request stays.
  const wasCounted = (numberIn(reason, 'consumedPoints') ?? 0) > 0
  const isBlocked = (numberIn(limiter, 'blockDuration') ?? 0) > 0
  if (points === undefined && wasCounted && !isBlocked) reward(count, start + (timeLeft(reason) ?? Infinity))
  return { _tag: 'TooMany', count, answer: reason }
}

// Whether a limiter rejected because of the count. An Error says that it failed
const isTooMany = (reason: unknown): boolean =>
  !(types.isNativeError(reason) || reason instanceof Error) || numberIn(reason, 'msBeforeNext') !== undefined

/** @internal Takes back a count, while its window lasts. */
export const takeBack = (counted: Counted): void => {
  if (counted._tag === 'Counted') reward(counted.count, counted.until)
}

// In milliseconds: sent later, it could reach the store in the next window, where it would be guesses for free
const TOO_LATE = 50

// Not awaited: if the store fails now, the guess stays counted until its window ends
const reward = ({ limiter, key, points }: Count, until: number): void => {
  if (performance.now() >= until - TOO_LATE) return
  try {
    Promise.resolve(points === undefined ? limiter.reward?.(key) : limiter.reward?.(key, points)).catch(() => {})
  } catch {
    // the same as a rejection
  }
}

// Milliseconds until the window ends; `undefined` if it never does, or if that is unknown
const timeLeft = (counted: unknown): number | undefined => {
  const left = numberIn(counted, 'msBeforeNext')
  return left === undefined || left < 0 ? undefined : left
}

/** The result of rate-limiter-flexible for a count, and the settings that its limiters have as properties. */
type NumberName = 'msBeforeNext' | 'consumedPoints' | 'remainingPoints' | 'points' | 'duration' | 'blockDuration'

/** @internal The number that an object has under a name; `undefined` if it has none. */
export const numberIn = (u: unknown, name: NumberName): number | undefined => {
  // Safe: the values are unknown
  const value = typeof u === 'object' && u !== null ? (u as { readonly [K in NumberName]?: unknown })[name] : undefined
  return typeof value === 'number' && !Number.isNaN(value) ? value : undefined
}

/** @internal Makes Limiters from one limiter or from an object of limiters. Throws a TypeError for anything else. */
export const checkLimiters = (limiter: unknown, factory: string): Limiters => {
  const where = `${factory}({ limiter })`
  if (isLimiter(limiter)) return { accountAndAddress: limiter }
  if (typeof limiter !== 'object' || limiter === null || Reflect.get(limiter, 'accountAndAddress') === undefined) {
    throw new TypeError(
      `${where} must be a limiter, an object with the methods consume and reward, or an object { accountAndAddress, account, address } of limiters`,
    )
  }
  // Safe: the checks refuse everything else
  return checkOptions<Limiters>(where, limiter as Limiters, {
    accountAndAddress: limiterCheck,
    account: is.maybe(limiterCheck),
    address: is.maybe(limiterCheck),
  })
}

const isLimiter = (u: unknown): u is Limiter => is.hasMethod(u, 'consume') && is.hasMethod(u, 'reward')

const limiterCheck = is.that(isLimiter, 'must have the methods consume and reward')

/**
 * @internal The most guesses at one account that one address, and one IPv6 network, may use, so that neither can use all of them and lock
 * the owner out; `undefined` if other limits are narrow enough (5 in 15 minutes cannot become 1,000 in a day; those of an address never are
 * for its network), or if the limit of an account is unknown. It is less than half of the limit of the account, because two windows of an
 * address can overlap one of the account.
 */
export const sharesOf = ({ accountAndAddress, account, address }: Limiters) => {
  const points = numberIn(account, 'points')
  if (points === undefined) return { ofAddress: undefined, ofNetwork: undefined }
  const most = Math.min(...[accountAndAddress, address].map((one) => mostWithin(one, numberIn(account, 'duration'))))
  const ofNetwork = Math.max(1, Math.floor((points - 1) / 2))
  return { ofAddress: most < points ? undefined : ofNetwork, ofNetwork }
}

// How many a limiter lets pass in any `duration` seconds; a duration of 0 never ends
const mostWithin = (limiter: Limiter | undefined, duration: number | undefined): number => {
  const points = numberIn(limiter, 'points')
  const own = numberIn(limiter, 'duration')
  if (points === undefined || own === undefined || duration === undefined) return Infinity
  if (own === 0) return points
  return duration === 0 ? Infinity : points * (Math.ceil(duration / own) + 1)
}

/** @internal The limits in words for the audit, such as ` 5/900 s`; `''` if they are unknown. */
export const limitsOf = ({ accountAndAddress, account, address }: Limiters): string => {
  const others = Object.entries({ account, address }).flatMap(([name, one]) =>
    one === undefined ? [] : [`${name}${limitOf(one)}`],
  )
  return `${limitOf(accountAndAddress)}${others.length === 0 ? '' : ` (${others.join(', ')})`}`
}

/** @internal The limit of one limiter in words, such as ` 5/900 s`; `''` if it is unknown. */
export const limitOf = (limiter: object): string => {
  const points = numberIn(limiter, 'points')
  const duration = numberIn(limiter, 'duration')
  return points === undefined || duration === undefined ? '' : ` ${points}/${duration} s`
}
