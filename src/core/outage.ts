/** Outages: how long a decision may take, and the failure if it cannot be made. A list asks no other member after an outage. */
import * as E from 'fp-ts/lib/Either.js'
import { identity } from 'fp-ts/lib/function.js'
import type { Request } from './Request.js'
import { andThen, answerTo, type Result, type PrincipalFromAnswer } from './Result.js'
import { leavesAnonymous, raised, unavailable, type Unavailable } from './AuthError.js'
import { decideOf, fromFunction, isAuthenticator, make, readerOf, wrapping } from './Authenticator.js'
import type { Authenticator, Decide, Halves } from './Authenticator.js'
import { alternativesOf, type CredentialDemand } from './Alternative.js'
import { admitsAnonymous, refuseObjects, schemeNameOf, wrappedBy, type Description } from './Description.js'
import { deepFreeze } from './data.js'
import { accept, evidence, merge } from './Evidence.js'
import { askHook, charged, evidenceFor, type Attempt, finishingHookResult } from './Exchange.js'
import { functionName } from './functionName.js'
import * as is from './checks.js'
import { checkMember, checkHook, declareFactories } from './options.js'

const tooSlow: Result<never> = deepFreeze(E.left(unavailable()))

/**
 * Calls `conclude` with a result, or with `unavailable` when it takes longer than `ms` milliseconds. `conclude` is called once, in
 * the tick in which the result is known: another promise for it would cost every async decision. If the `attempt` of a whole
 * decision is given, its charges are taken in the same time.
 */
export const concludedInTime = <P, A>(
  evaluation: Promise<Result<P>>,
  ms: number,
  conclude: (result: Result<P>) => A | Promise<A>,
  attempt?: Attempt,
): Promise<A> =>
  new Promise((resolve, reject) => {
    let isConcluded = false
    const settle = (result: Result<P>): void => {
      if (isConcluded) return
      isConcluded = true
      clearTimeout(timer)
      try {
        resolve(conclude(result))
      } catch (error) {
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown
        reject(error)
      }
    }
    // a hook that never ends keeps no process alive
    const timer = setTimeout(settle, ms, tooSlow).unref()
    // An evaluation never rejects. If one does, it must not end the process or stay unnoticed
    const fail = (error: unknown): void => settle(E.left(raised(error)))
    const charge = (result: Result<P>): void => {
      const paid = attempt === undefined || isConcluded ? result : charged(result, attempt)
      if (paid instanceof Promise) paid.then(settle, fail)
      else settle(paid)
    }
    evaluation.then(charge, fail)
  })

/**
 * Limits the asynchronous work of an authenticator to `ms` milliseconds. Beyond them, the failure is `unavailable`, a 503. It can
 * only shorten the application's time limit. Throws a TypeError if `ms` is not a positive number.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { httpBearer } from 'koa-with-auth'
 * import { timeout } from 'koa-with-auth/fp'
 *
 * const bearer = httpBearer({ authenticate: async (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const quick = pipe(bearer, timeout(500))
 */
export const timeout = (ms: number) => {
  is.positive('timeout(ms)', ms)
  const limited = (member: Authenticator<unknown>): Halves => {
    const decide = decideOf(member)
    return {
      description: member.description,
      decide: (attempt) => {
        const evaluation = decide(attempt)
        return evaluation instanceof Promise ? concludedInTime(evaluation, ms, identity) : evaluation
      },
    }
  }
  return <P>(self: Authenticator<P>): Authenticator<P> =>
    // Safe: the principal does not change
    wrapping('timeout(ms)(a)', self, limited) as Authenticator<P>
}

/**
 * Asks `f` when an authenticator is `unavailable`, and only then. `f` returns a result as a hook does, so the call of another
 * authenticator fits, such as one that reads a cache. It stays an outage if the other credential was not sent. OpenAPI documents
 * the first authenticator alone.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import * as E from 'fp-ts/lib/Either.js'
 * import { AuthError, httpBearer } from 'koa-with-auth'
 * import { recoverUnavailable } from 'koa-with-auth/fp'
 *
 * const bearer = httpBearer({ authenticate: async () => E.left(AuthError.unavailable()) })
 * const cached = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const robust = pipe(bearer, recoverUnavailable((request) => cached(request)))
 */
export const recoverUnavailable = <R>(f: (request: Request, error: Unavailable) => R) => {
  checkHook('recoverUnavailable(f)', f, 2)
  if (isAuthenticator(f) && admitsAnonymous(f.description))
    throw new TypeError(
      'recoverUnavailable(f): f is optional, and an outage makes no caller anonymous; leave optional out',
    )
  const words = `recoverUnavailable ${isAuthenticator(f) ? demandsIn(f.description) : functionName(f)}`
  return <P>(self: Authenticator<P>): Authenticator<P | PrincipalFromAnswer<R>> => {
    checkMember('recoverUnavailable(f)(a)', self)
    const authenticator = fromFunction(self)
    const { description } = authenticator
    refuseObjects('recoverUnavailable(f)(a)', description, 'withAuth(a, recoverUnavailable(f), owned(...))')
    const decide = decideOf(authenticator)
    // The cross-site check runs for a plain function. An authenticator has run it already
    const finishResult = finishingHookResult(description, !isAuthenticator(f))
    const recover = (result: Result<unknown>, recovered: Result<unknown>, attempt: Attempt): Result<unknown> => {
      // a caller whose credential could not be checked is not anonymous, because another credential was not sent
      if (E.isLeft(recovered) && leavesAnonymous(recovered.left)) return result
      const finished = finishResult(recovered, attempt.request)
      if (E.isLeft(finished)) return finished
      return accept(finished.right, merge(byRecovery, evidenceFor(attempt, finished, 'same')))
    }
    const decideAgain: Decide = (attempt) =>
      andThen(decide(attempt), (result) => {
        if (E.isRight(result) || result.left._tag !== 'unavailable') return result
        const error = result.left
        askHook(attempt)
        return andThen(
          answerTo(() => f(attempt.request, error)),
          (recovered) => recover(result, recovered, attempt),
        )
      })
    // Safe: only `self` or `f` lets a principal in
    return make(wrappedBy(description, words, {}, f), decideAgain, readerOf(authenticator)) as Authenticator<
      P | PrincipalFromAnswer<R>
    >
  }
}

const byRecovery = evidence({ isRecovered: true })

// All demands of the authenticator that recovers, for the policy file: with fewer, it lets in more callers
const demandsIn = (description: Description): string =>
  alternativesOf(description)
    .map(({ demands, admitsAnything }) =>
      [...demands.map(demandInWords), ...(admitsAnything ? ['anything'] : [])].join(' and '),
    )
    .join(' or ')

const demandInWords = ({ leaf, scopes, authorizations, objects, wrappers }: CredentialDemand): string => {
  const { decidedBy = 'custom', demands } = leaf
  const own = [schemeNameOf(leaf) ?? decidedBy, ...(demands ? [`of ${demands}`] : [])]
  return [...own, ...scopes, ...authorizations, ...objects, ...wrappers].join(' ')
}

declareFactories({ timeout, recoverUnavailable })
