/** Counts guesses that no kind and no form counts, such as at a password that is asked once more. */
import * as E from 'fp-ts/lib/Either.js'
import * as AuthErrors from '../core/AuthError.js'
import { warnOfWorkers } from '../core/memory.js'
import { failureOf, fromAnswer, type Result } from '../core/Result.js'
import { clientAddress } from '../guesses/addresses.js'
import { counting } from '../guesses/Guess.js'
import type { Limiter, Limiters } from '../guesses/Limiter.js'
import { memoryLimiter } from '../guesses/memoryLimiter.js'
import { contextOf, SignInRefused, type WithRequest } from '../sessions/SignIn.js'

const MINUTES = 60
export const DAY_SECONDS = 24 * 60 * MINUTES

/**
 * The limiters without the option `limiter`, in the memory of this process: ten guesses at an account from an address in 15 minutes, and a hundred
 * at an account in a day.
 */
export const usualLimiters = (): Limiters => {
  warnOfWorkers(
    'guesses without the option limiter are counted in one process',
    'pass a limiter that all workers share, such as RateLimiterRedis',
  )
  return {
    accountAndAddress: memoryLimiter(10, 15 * MINUTES),
    account: memoryLimiter(100, DAY_SECONDS),
  }
}

/**
 * Makes a function that counts a guess at an account, by the account and the client's address. It resolves to the answer of `check`, which
 * is judged as that of any hook. It rejects with `SignInRefused` for a refusal (403 `wrong`; also for `None` and a Left), and for too many
 * guesses (429). A success is not counted. Without a limiter, it counts as `passwordSignIn` does. Throws a TypeError for a value that is no
 * limiter.
 *
 * @example
 * import type { Context } from 'koa'
 * import { verify } from 'koa-with-auth/passwords'
 * import { addProof } from 'koa-with-auth/sessions'
 * import { countFailures } from 'koa-with-auth/sign-in'
 *
 * const guess = countFailures()
 * const proveAgain = async (ctx: Context, user: { username: string; hash: string }, password: string) => {
 *   await guess(ctx, user.username, () => verify(user.hash, password))
 *   await addProof(ctx, { method: 'password' })
 * }
 */
export const countFailures = (limiter: Limiter | Limiters = usualLimiters()) => {
  const count = counting(limiter, 'countFailures')
  return async <A>(given: WithRequest, account: string, check: () => A | Promise<A>): Promise<NonNullable<A>> => {
    const { request } = contextOf('countFailures(limiter)(ctx, account, check)', given)
    const found = async (): Promise<Result<NonNullable<A>>> => {
      const answer = await check()
      const judged = await fromAnswer(answer)
      if (E.isLeft(judged)) return judged.left._tag === 'invalid' ? E.left(AuthErrors.unfinished('wrong')) : judged
      // Safe: it is truthy
      return E.right(answer as NonNullable<A>)
    }
    const counted = await count(account, clientAddress(request), () => caught(found))
    if (E.isLeft(counted)) throw thrownFor(counted.left)
    return counted.right
  }
}

/** The exception for a failure: the exception of a hook as it was, otherwise `SignInRefused`. */
export const thrownFor = (failure: AuthErrors.AuthError): unknown =>
  failure._tag === 'raised' ? failure.error : new SignInRefused(failure)

/** An exception is a failure: of a store an outage, of `logIn` a refusal. It is no wrong guess. */
export const caught = async <A>(run: () => Promise<Result<A>>): Promise<Result<A>> => {
  try {
    return await run()
  } catch (error) {
    return E.left(error instanceof SignInRefused ? error.failure : failureOf(error))
  }
}
