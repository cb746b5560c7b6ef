/**
 * Limits of known callers: accepted requests are counted by user, key or plan. `throttled` counts the guesses of callers that are
 * not known.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from '../core/Request.js'
import type * as AuthErrors from '../core/AuthError.js'
import { decideOf, wrapping, type Authenticator, type Halves } from '../core/Authenticator.js'
import { noted, withChallenges, type Scoped } from '../core/Description.js'
import { evidence, withEvidence, type Charged } from '../core/Evidence.js'
import { exchangeOfResponse, type Finding, type Finds } from '../core/Exchange.js'
import { unawaited } from '../core/data.js'
import { functionName } from '../core/functionName.js'
import { andThen, failureOf } from '../core/Result.js'
import { checkDemanding } from '../core/authorize.js'
import * as is from '../core/checks.js'
import { checkOptions, declareCondition, declareFactory, type Checks } from '../core/options.js'
import { countThenRun, limitOf, numberIn, takeBack, type Counted, type PointLimiter } from './Limiter.js'

export interface RateLimitOptions<P> {
  /** The limiter, or a function of the principal that returns it, such as a limiter for each plan. */
  readonly limiter: PointLimiter | ((principal: P, request: Request) => PointLimiter)
  /** The identifier that is counted: of a user, of a key, of a tenant. */
  readonly by: (principal: P, request: Request) => string
  /** The price of a request. Default 1. */
  readonly points?: number | ((principal: P, request: Request) => number) | undefined
  /** If the limiter fails: `unavailable` (the default) is a 503; `unthrottled` lets the request in. */
  readonly onStoreError?: 'unavailable' | 'unthrottled' | undefined
}

const isPointLimiter = (u: unknown): u is PointLimiter => is.hasMethod(u, 'consume')

const checks: Checks<RateLimitOptions<never>> = {
  limiter: is.that(
    (value) => isPointLimiter(value) || typeof value === 'function',
    'must be a limiter of rate-limiter-flexible, or a function of the principal that returns one',
  ),
  by: is.hook(2),
  points: is.maybe((where, value) => (typeof value === 'function' ? is.hook(2) : is.positive)(where, value)),
  onStoreError: is.maybe(is.oneOf('unavailable', 'unthrottled')),
}

/**
 * A condition that counts accepted requests, once all conditions of all levels have let them in. Beyond the limit the answer is 429 with
 * `Retry-After`, and the operation does not run. Each answer has the points that are left, in `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-11). A limiter that fails is a 503. Throws a TypeError for options that cannot work, and for an authenticator that admits anonymous callers.
 *
 * @example
 * import { httpBearer, rateLimit, withAuth } from 'koa-with-auth'
 * import { RateLimiterMemory } from 'rate-limiter-flexible'
 *
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { name: 'anna' } })
 * const limiter = new RateLimiterMemory({ points: 100, duration: 60 })
 * const guard = withAuth(user, rateLimit({ limiter, by: ({ name }) => name }))
 */
export const rateLimit = <P>(
  options: RateLimitOptions<P>,
  // `P` is inferred from `Authenticator<P>`, as in `authorize`
): (<B extends P, O = unknown>(
  self: Authenticator<B> & Authenticator<P> & Finds<O>,
) => Finding<Authenticator<B>, O>) => {
  // Safe: the checks do not call them
  const given = checkOptions('rateLimit', options as RateLimitOptions<never>, checks)
  const condition = (self: Authenticator<unknown>): Authenticator<unknown> =>
    wrapping('rateLimit(...)(a)', self, (member) => charging(given, member))
  // Safe: it lets in the same principals, and finds the same objects
  return declareCondition('rateLimit', condition) as unknown as ReturnType<typeof rateLimit<P>>
}

declareFactory('rateLimit', rateLimit)

const rateLimitWords = ({ limiter, by, points, onStoreError }: RateLimitOptions<never>): string =>
  [
    `rate limit${typeof limiter === 'function' ? ` ${functionName(limiter)}` : limitOf(limiter)} by ${functionName(by)}`,
    ...(points === undefined ? [] : [`points ${typeof points === 'function' ? functionName(points) : points}`]),
    ...(onStoreError === 'unthrottled' ? ['or unthrottled'] : []),
  ].join(' ')

const charging = (options: RateLimitOptions<never>, member: Authenticator<unknown>): Halves => {
  checkDemanding('rateLimit(...)(a)', member.description)
  const { limiter, by, points } = options
  const words = rateLimitWords(options)
  const others = Object.entries({ limiter, points }).flatMap(([name, f]) =>
    typeof f === 'function' ? [[`${name} of ${words}`, f] as const] : [],
  )
  const description = noted<Scoped>(
    { _tag: 'Scoped', member: member.description, scopes: [] },
    { wrappers: [words], functions: [[words, by], ...others], isQuota: true },
  )
  const authenticate = decideOf(member)
  const self: Charging = { ...options, failed: (error) => withChallenges(member.description, error) }
  return {
    description,
    decide: (attempt) =>
      andThen(authenticate(attempt), (result) => {
        if (E.isLeft(result)) return result
        return withEvidence(result, evidence({ charges: [() => charge(self, result.right, attempt.request)] }))
      }),
  }
}

interface Charging extends RateLimitOptions<never> {
  readonly failed: (error: AuthErrors.AuthError) => AuthErrors.AuthError
}

// Once all conditions have let the request in, so refused requests cost nothing
const charge = async (self: Charging, caller: unknown, request: Request): Promise<Charged> => {
  const { limiter, by, points = 1, failed } = self
  try {
    // Safe: the authenticator lets in the principals that these take
    const principal = caller as never
    const counter: unknown = typeof limiter === 'function' ? limiter(principal, request) : limiter
    const key: unknown = unawaited(by(principal, request))
    const price: unknown = typeof points === 'function' ? unawaited(points(principal, request)) : points
    if (!isPointLimiter(counter)) {
      unawaited(counter)
      throw new TypeError('rateLimit({ limiter }): the function must return a limiter')
    }
    if (typeof key !== 'string' || key === '') {
      throw new TypeError('rateLimit({ by }): the function must return a string that is not empty')
    }
    is.positive('rateLimit({ points })', price)
    // Safe: `positive` has checked it
    return await consumePoints(self, counter, key, price as number, request)
  } catch (error) {
    return { refusal: failed(failureOf(error)) }
  }
}

const consumePoints = async (
  { onStoreError, failed }: Charging,
  limiter: PointLimiter,
  key: string,
  points: number,
  request: Request,
): Promise<Charged> =>
  countThenRun<Charged>({
    counter: 'rate limit',
    counts: [{ limiter, key, points, under: 'caller' }],
    isOpen: onStoreError === 'unthrottled',
    run: (counted) => {
      for (const one of counted) say(request, limiter, one)
      return { takeBack: () => counted.forEach(takeBack) }
    },
    refuse: (failure, one) => {
      say(request, limiter, one)
      return { refusal: failed(failure) }
    },
  })

// The fields of the response; of two rate limits, that of which less is left
const say = ({ ctx }: Request, counter: PointLimiter, counted: Counted): void => {
  if (counted._tag === 'Failed') return
  const { _tag, answer } = counted
  const left = _tag === 'TooMany' ? 0 : numberIn(answer, 'remainingPoints')
  const ms = numberIn(answer, 'msBeforeNext')
  const [most, window] = [numberIn(counter, 'points'), numberIn(counter, 'duration')]
  if (left === undefined || ms === undefined) return
  const exchange = exchangeOfResponse(ctx)
  const before = /;r=(\d+)/.exec(exchange.fields?.['ratelimit'] ?? '')?.[1]
  if (before !== undefined && Number(before) <= left) return
  exchange.fields = {
    ratelimit: `"default";r=${Math.max(0, Math.floor(left))};t=${Math.max(0, Math.ceil(ms / 1000))}`,
    ...(most !== undefined && window !== undefined && { 'ratelimit-policy': `"default";q=${most};w=${window}` }),
  }
}
