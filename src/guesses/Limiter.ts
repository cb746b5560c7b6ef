/**
 * A limiter counts guesses. It is any object with `consume` and `reward`, such as the classes of rate-limiter-flexible (memory,
 * Redis, SQLite and more).
 *
 * `consume` adds one and reports whether that was too much, in one step of the store. So of any number of parallel guesses, no more
 * pass than the limit. An object that looks first and counts later is not a limiter.
 */
import * as is from '../core/checks.js'
import { checkOptions } from '../core/options.js'

/** A limiter, as rate-limiter-flexible has them. */
export interface Limiter {
  /**
   * Counts one guess. It rejects with an Error if the store fails. If the guess is one too many, it rejects with anything else,
   * such as an object with `msBeforeNext`.
   */
  readonly consume: (key: string) => PromiseLike<unknown>
  /** Takes one guess back. */
  readonly reward: (key: string) => PromiseLike<unknown>
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

/** The result of counting: counted, too many (for `retryAfter` seconds), or the limiter failed. */
export type Counted =
  | {
      readonly _tag: 'Counted'
      readonly limiter: Limiter
      readonly key: string
      readonly total: number
      /** How many more are allowed, if the limiter says so. */
      readonly left: number
      readonly retryAfter: number | undefined
      /** When its window ends, as `performance.now()`. If it were taken back in the next window, that would be one guess for free. */
      readonly until: number
    }
  | { readonly _tag: 'TooMany'; readonly retryAfter: number | undefined }
  | { readonly _tag: 'Failed'; readonly retryAfter?: undefined }

/** @internal Counts one guess, and calls `next` with the result. `next` must not throw. */
export const countOne = <A>(
  limiter: Limiter,
  key: string,
  next: (counted: Counted) => A | PromiseLike<A>,
): Promise<A> => {
  const start = performance.now()
  try {
    return Promise.resolve(limiter.consume(key)).then(
      (answer) => next(countedBy(limiter, key, start, answer)),
      (reason: unknown) => next(refusedBy(limiter, key, start, reason)),
    )
  } catch (error) {
    return Promise.resolve(next(refusedBy(limiter, key, start, error)))
  }
}

const countedBy = (limiter: Limiter, key: string, start: number, answer: unknown): Counted => {
  const ms = timeLeft(answer)
  const left = numberIn(answer, 'remainingPoints') ?? Infinity
  const total = numberIn(answer, 'consumedPoints') ?? 0
  return { _tag: 'Counted', limiter, key, total, left, retryAfter: inSeconds(ms), until: start + (ms ?? Infinity) }
}

const refusedBy = (limiter: Limiter, key: string, start: number, reason: unknown): Counted => {
  if (!isTooMany(reason)) return { _tag: 'Failed' }
  const left = timeLeft(reason)
  // A refused guess that was counted is taken back. Otherwise good requests in parallel would use the limit up. A
  // limiter that blocks for a while does not keep the count.
  const wasCounted = (numberIn(reason, 'consumedPoints') ?? 0) > 0
  const isBlocked = (numberIn(limiter, 'blockDuration') ?? 0) > 0
  if (wasCounted && !isBlocked) reward(limiter, key, start + (left ?? Infinity))
  return { _tag: 'TooMany', retryAfter: inSeconds(left) }
}

/** @internal Whether a limiter rejected because of the count. An Error says that it failed. */
export const isTooMany = (reason: unknown): boolean =>
  !isError(reason) || numberIn(reason, 'msBeforeNext') !== undefined

/** @internal Takes back what was counted, while its window lasts. */
export const takeBack = (counted: Counted): void => {
  if (counted._tag === 'Counted') reward(counted.limiter, counted.key, counted.until)
}

// Not awaited: if the store fails now, the guess stays counted until its window ends
const reward = (limiter: Limiter, key: string, until: number): void => {
  if (performance.now() >= until) return
  try {
    Promise.resolve(limiter.reward(key)).then(undefined, ignore)
  } catch {
    // the same as a rejection
  }
}

const ignore = (): void => {}

// Milliseconds until the window ends; `undefined` if it never does, or if that is unknown
const timeLeft = (counted: unknown): number | undefined => {
  const left = numberIn(counted, 'msBeforeNext')
  return left === undefined || left < 0 ? undefined : left
}

const inSeconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000)

/** What rate-limiter-flexible says of a count, and the settings that its limiters have as properties. */
type NumberName = 'msBeforeNext' | 'consumedPoints' | 'remainingPoints' | 'points' | 'duration' | 'blockDuration'

/** @internal The number that an object has under a name; `undefined` if it has none. */
export const numberIn = (u: unknown, name: NumberName): number | undefined => {
  // Safe: what is there is unknown
  const value = typeof u === 'object' && u !== null ? (u as { readonly [K in NumberName]?: unknown })[name] : undefined
  return typeof value === 'number' && !Number.isNaN(value) ? value : undefined
}

// An Error of another realm, too, such as in a test runner
const isError = (u: unknown): boolean => u instanceof Error || Object.prototype.toString.call(u) === '[object Error]'

/** @internal Makes Limiters from one limiter or from an object of limiters. Throws a TypeError for anything else. */
export const checkLimiters = (limiter: unknown, factory = 'throttled'): Limiters => {
  const where = `${factory}({ limiter })`
  if (isLimiter(limiter)) return { accountAndAddress: limiter }
  if (typeof limiter !== 'object' || limiter === null || Reflect.get(limiter, 'accountAndAddress') === undefined) {
    throw new TypeError(
      `${where} must be a limiter, an object with the methods consume and reward, or an object { accountAndAddress, account, address } of limiters`,
    )
  }
  // Safe: the checks refuse everything else
  return checkOptions<Limiters>(where, limiter as Limiters, {
    accountAndAddress: counts,
    account: is.maybe(counts),
    address: is.maybe(counts),
  })
}

const isLimiter = (u: unknown): u is Limiter => is.hasMethod(u, 'consume') && is.hasMethod(u, 'reward')

const counts = is.that(isLimiter, 'must have the methods consume and reward')

/**
 * @internal The most guesses at one account that one address, and one IPv6 network, may use; `undefined` if other limits are narrow
 * enough, or if the limit of an account is unknown.
 *
 * An address must never be able to use all guesses of an account and lock its owner out. The narrow limits often ensure
 * that already: 5 in 15 minutes cannot become 1,000 in a day. If they do not, an address gets less than half of what
 * the account allows, because two of its windows can overlap one window of the account. A network has very many addresses, so the
 * limits of an address are never narrow enough for it.
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
  const others = [
    ...(account === undefined ? [] : [`account${limitOf(account)}`]),
    ...(address === undefined ? [] : [`address${limitOf(address)}`]),
  ]
  return `${limitOf(accountAndAddress)}${others.length === 0 ? '' : ` (${others.join(', ')})`}`
}

/** @internal The limit of one limiter in words, such as ` 5/900 s`; `''` if it is unknown. */
export const limitOf = (limiter: object): string => {
  const points = numberIn(limiter, 'points')
  const duration = numberIn(limiter, 'duration')
  return points === undefined || duration === undefined ? '' : ` ${points}/${duration} s`
}
