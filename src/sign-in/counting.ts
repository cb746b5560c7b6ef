/**
 * Counts guesses at codes, and what asks for mails: both by the same limiter, so that asking again gives no new tries.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as AuthErrors from '../core/AuthError.js'
import type { AuthError } from '../core/AuthError.js'
import { countsIn } from '../guesses/Guess.js'
import { checkLimiters, countOne, takeBack, type Counted, type Limiter, type Limiters } from '../guesses/Limiter.js'

/**
 * Counts one, and runs `f` if that is not too many. Otherwise it is throttled. What was counted is taken back unless
 * `f` resolves to a failure with the reason `wrong`, or `stays`.
 */
export type Counting = <A>(
  account: string,
  address: string,
  f: () => Promise<E.Either<AuthError, A>> | E.Either<AuthError, A>,
  stays?: boolean,
) => Promise<E.Either<AuthError, A>>

/** Counts by an account and an address. Throws a TypeError for what is no limiter. */
export const counting = (limiter: Limiter | Limiters): Counting => {
  const countsOf = countsIn(checkLimiters(limiter))
  return async (account, address, f, stays = false) => {
    const counted: Counted[] = []
    for (const count of countsOf(account, { address, isCrossSite: false })) {
      const one = await countOne(count.limiter, count.key, (result) => result)
      counted.push(one)
      const left = one._tag === 'Counted' ? Math.min(one.left, (count.atMost ?? Infinity) - one.total) : -1
      if (left >= 0) continue
      counted.forEach(takeBack)
      return E.left(one._tag === 'Failed' ? AuthErrors.unavailable() : AuthErrors.throttled(one.retryAfter))
    }
    const result = await f()
    const isWrong = E.isLeft(result) && result.left.reason === 'wrong'
    if (!isWrong && !stays) counted.forEach(takeBack)
    return result
  }
}
