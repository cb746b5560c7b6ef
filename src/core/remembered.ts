/**
 * `remembered`: for a time that its author chose, a credential that has passed passes again without a call of its hook.
 *
 * In that time a changed password, a revoked key and a deleted user still pass, unless `forget` is called. It keeps the
 * principal that one kind let in, by a digest of the credential, and nothing about the request. So a hook that decides
 * by more than the credential, such as the path, must not be remembered.
 *
 * - Only successes are kept. A credential that failed is verified each time, so failures neither lock a user out nor fill the
 *   memory.
 * - Parallel requests with one credential share one verification and its result (single flight).
 * - CSRF and `authorize` are checked each time, also if `authorize` is inside of it.
 * - A result of the function of `recoverUnavailable` is not kept and not shared, because that function reads the request.
 * - Around `throttled`, a verification is valid only for the address that it was made from, and only within the limit.
 *
 * Law (spec/core/remembered.law.spec.ts): within its window `remembered(options)(a)` decides as `a` did; after it, as
 * `a` does.
 */
import { randomBytes } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from 'koa'
import { andThen, type Evaluation, type Result } from './Evaluation.js'
import { make, type Authenticator } from './Authenticator.js'
import { credentialKey } from './credentialKey.js'
import { isForged } from './CrossOrigin.js'
import { explained } from './Description.js'
import { decisions } from './events/channels.js'
import { noteRecalled } from './events/witnessed.js'
import { isHolding, release } from './heldGuesses.js'
import { checkHook, declareFactory } from './hooks.js'
import { checkOptions, maybe, positive } from './options.js'
import { isRecovered } from './Reading.js'
import { settingsOf } from './Settings.js'
import { failureOf } from './UnavailableError.js'
import { verifications } from './verifications.js'
import { aroundEach, type Around } from './wrapping.js'

/** How long and how much is remembered. */
export interface RememberedOptions {
  /** The window, in milliseconds: for so long a credential that was revoked still passes. */
  readonly maxAge: number
  /** How many verifications are kept; beyond that, the least recently used are dropped. Default 1000. */
  readonly size?: number | undefined
}

/** The combinator that `remembered` makes. All authenticators that it wraps share its `size`. */
export interface Remembered<P> {
  <A extends P>(self: Authenticator<A>): Authenticator<A>
  /**
   * Forgets the verifications for whose principal `predicate` is true, and all that are under way. Returns how many it
   * forgot of those that were kept. Call it when a password changes or a key is revoked. It affects only this process.
   */
  readonly forget: (predicate: (principal: P) => boolean) => number
}

/**
 * For `maxAge` milliseconds after a credential passed, it passes again without a call of the hook, even if it was
 * revoked meanwhile; but never longer than the principal's `expiresAt` (a Date, or milliseconds). Requests share the
 * principal, so do not change it. In a list, it applies to each kind. Throws a TypeError for options that cannot work,
 * and for a plain function, because its credential is unknown.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { constantTimeEqual, httpBasicAuth, remembered } from 'koa-with-auth'
 *
 * const basic = httpBasicAuth({
 *   authenticate: async (_request, username, password) => constantTimeEqual(password, 's3cret') && { username },
 * })
 * const recent = remembered<{ username: string }>({ maxAge: 60_000, size: 1000 })
 * const quick = pipe(basic, recent)
 *
 * const onPasswordChanged = (name: string) => recent.forget(({ username }) => username === name)
 */
export const remembered = <P = unknown>(options: RememberedOptions): Remembered<P> => {
  const { maxAge, size = 1000 } = checkOptions('remembered', options, { maxAge: positive, size: maybe(positive) })
  const secret = randomBytes(32)
  const kept = verifications(maxAge, size)
  const kinds = new WeakMap<Authenticator<unknown>, number>()
  let made = 0

  const around: Around = (self, leaf, { extract, origin, recovers }) => {
    const kind = kinds.get(self) ?? made++
    kinds.set(self, kind)
    const recall = (request: Request, key: string): Evaluation<unknown> => {
      const { timeout } = settingsOf(request)
      const isAlone = recovers && (() => isRecovered(request))
      if (!decisions.hasSubscribers) return kept.recall(key, () => self.evaluate(request), timeout, isAlone)
      let isAsked = false
      const evaluation = kept.recall(key, () => ((isAsked = true), self.evaluate(request)), timeout, isAlone)
      if (!isAsked) noteRecalled(request)
      return evaluation
    }
    const evaluate = (request: Request): Evaluation<unknown> => {
      try {
        const sent = extract(request)
        if (O.isNone(sent)) return self.evaluate(request)
        // with `throttled`, a verification is valid only for its address, and only within the limit
        const from = origin === undefined ? '' : origin(request, sent.value)
        if (from === undefined) return self.evaluate(request)
        // a forged request never gets the result of another request, or the other way round
        const site = leaf.ambient && isForged(request, settingsOf(request)) ? 'x' : 'o'
        const evaluation = recall(request, credentialKey(secret, `${kind}${site}${from.length}:${from}`, sent.value))
        return isHolding(request) ? andThen(evaluation, (result) => known(request, sent.value, result)) : evaluation
      } catch (error) {
        return E.left(explained(leaf, failureOf(error)))
      }
    }
    return make(leaf, evaluate)
  }

  // Safe: the principal is the one that the authenticator itself let in
  const combinator = aroundEach('remembered(...)', around) as <A extends P>(self: Authenticator<A>) => Authenticator<A>
  const forget = (predicate: (principal: P) => boolean): number => {
    checkHook('remembered(...).forget(predicate)', predicate, 1)
    // Safe: all that is kept was let in by authenticators of P
    return kept.forget((principal) => predicate(principal as P))
  }
  return declareFactory('remembered(...)', Object.assign(combinator, { forget }))
}

// What passed is no guess, even if another kind refused it before
const known = <P>(request: Request, sent: unknown, result: Result<P>): Result<P> => {
  if (E.isRight(result)) release(request, sent)
  return result
}

declareFactory('remembered', remembered)
