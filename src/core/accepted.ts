/** Notes what let a request in, so that `endOf` can say when it ends. */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { PrincipalSource, withAccepted, type EndSource } from './ends.js'
import type { Attempt } from './Exchange.js'
import { andThen, type Evaluation, type Result } from './Result.js'

/** @internal A principal that says when it expires ends then. */
export const noteExpiry = (attempt: Attempt, principal: unknown): void => {
  if (typeof principal !== 'object' || principal === null || !('expiresAt' in principal)) return
  attempt.accepted = withAccepted(attempt.accepted, new PrincipalSource(principal))
}

/** @internal Decides as `decide` does, and notes what can end of what let in. */
export const noting = (
  decide: (attempt: Attempt) => Evaluation<unknown>,
  source: (request: Request) => EndSource,
): ((attempt: Attempt) => Evaluation<unknown>) => {
  const noted = (result: Result<unknown>, attempt: Attempt, isRecovered: boolean | undefined): Result<unknown> => {
    // after a time limit, `recoverUnavailable` may have decided without it
    if (E.isRight(result) && attempt.isRecovered === isRecovered) {
      attempt.accepted = withAccepted(attempt.accepted, source(attempt.request))
    }
    return result
  }
  return (attempt) => {
    const { isRecovered } = attempt
    const result = decide(attempt)
    return result instanceof Promise
      ? result.then((late) => noted(late, attempt, isRecovered))
      : noted(result, attempt, isRecovered)
  }
}

/** @internal Decides as `decide`, a function, does. It may call an authenticator, and let somebody else in. */
export const askingFunction =
  (decide: (attempt: Attempt) => Evaluation<unknown>) =>
  (attempt: Attempt): Evaluation<unknown> => {
    const { accepted } = attempt
    attempt.acceptedAhead = accepted
    return andThen(decide(attempt), (result) => {
      if (E.isRight(result) && attempt.letIn !== result.right) {
        attempt.accepted = accepted
        noteExpiry(attempt, result.right)
      }
      return result
    })
  }
