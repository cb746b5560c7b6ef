/**
 * `remembered`: within a window that its author chose, a credential that passed passes without asking its hook again.
 *
 * In that window a changed password, a revoked key and a deleted user still pass, unless `forget` is called. Remembered is
 * the principal that one kind let in, by a digest of its credential; nothing about the request is. So a hook that decides by
 * more than the credential, such as the path, must not be remembered.
 *
 * - Only successes are kept. A credential that failed is verified each time, so failures neither lock a user out nor fill the
 *   memory.
 * - Parallel requests with one credential share one verification and its result (single flight).
 * - CSRF is checked each time, and so is `authorize`, inside of it or around.
 * - Around `throttled` a verification counts for the address that it was made from, and not where guesses are over the limit.
 *
 * Law (spec/core/remembered.law.spec.ts): within its window `remembered(options)(a)` decides as `a` did, behind it as `a` does.
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
import { settingsOf } from './Settings.js'
import { failureOf } from './UnavailableError.js'
import { verifications } from './verifications.js'
import { aroundEach, type Around } from './wrapping.js'

/** How long and how much is remembered. */
export interface RememberedOptions {
  /** The window, in milliseconds: for so long a credential that was revoked still passes. */
  readonly maxAge: number
  /** How many verifications are kept; beyond, those that were not used for the longest time go. Default 1000. */
  readonly size?: number | undefined
}

/** The combinator that `remembered` makes: all authenticators that it is put around share its room. */
export interface Remembered<P> {
  <A extends P>(self: Authenticator<A>): Authenticator<A>
  /**
   * Forgets every verification whose principal `predicate` is true of, those under way included, and answers how many were
   * kept of them: call it when a password changes or a key is revoked. It reaches this process alone.
   */
  readonly forget: (predicate: (principal: P) => boolean) => number
}

/**
 * For `maxAge` milliseconds after a credential passed, the same credential passes without asking the hook, even if it was
 * revoked meanwhile; never longer than the principal's `expiresAt` (a Date, or milliseconds). Requests share the principal,
 * so do not change it. `forget` takes verifications back. In lists it goes around each kind. TypeError for options that
 * cannot work, and for a plain function, whose credential is unknown.
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

  const around: Around = (self, leaf, { extract, origin }) => {
    const kind = kinds.get(self) ?? made++
    kinds.set(self, kind)
    const recall = (request: Request, key: string): Evaluation<unknown> => {
      const { timeout } = settingsOf(request)
      if (!decisions.hasSubscribers) return kept.recall(key, () => self.evaluate(request), timeout)
      let isAsked = false
      const evaluation = kept.recall(key, () => ((isAsked = true), self.evaluate(request)), timeout)
      if (!isAsked) noteRecalled(request)
      return evaluation
    }
    const evaluate = (request: Request): Evaluation<unknown> => {
      try {
        const sent = extract(request)
        if (O.isNone(sent)) return self.evaluate(request)
        // where guesses are counted, a guess from elsewhere never meets what passed; over the limit none does
        const from = origin === undefined ? '' : origin(request, sent.value)
        if (from === undefined) return self.evaluate(request)
        // what another site made a browser send never meets what passed, nor the other way round
        const site = leaf.ambient && isForged(request, settingsOf(request)) ? 'x' : 'o'
        const evaluation = recall(request, credentialKey(secret, `${kind}${site}${from.length}:${from}`, sent.value))
        return isHolding(request) ? andThen(evaluation, (result) => known(request, sent.value, result)) : evaluation
      } catch (error) {
        return E.left(explained(leaf, failureOf(error)))
      }
    }
    return make(leaf, evaluate)
  }

  // Safe: what is let in is what the authenticator itself let in
  const combinator = aroundEach('remembered(...)', around) as <A extends P>(self: Authenticator<A>) => Authenticator<A>
  const forget = (predicate: (principal: P) => boolean): number => {
    checkHook('remembered(...).forget(predicate)', predicate, 1)
    // Safe: all that is kept was let in by authenticators of P
    return kept.forget((principal) => predicate(principal as P))
  }
  return declareFactory('remembered(...)', Object.assign(combinator, { forget }))
}

// What passed is no guess, whatever another kind made of it before
const known = <P>(request: Request, sent: unknown, result: Result<P>): Result<P> => {
  if (E.isRight(result)) release(request, sent)
  return result
}

declareFactory('remembered', remembered)
