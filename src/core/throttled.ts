/**
 * `throttled` counts guesses. Beyond the limit, no hook is called, and the failure is `throttled`: a 429 that ends a list.
 *
 * A guess is a credential whose result is `malformed` or `invalid`. Each credential is counted before the hook is called, and the
 * count is taken back if the result is anything else. So parallel guesses cannot pass before they are counted. A success takes back
 * only its own count, so a caller who knows one password cannot guess at others for ever. `absent` is never counted.
 *
 * | credential                        | counts under                                              |
 * |-----------------------------------|-----------------------------------------------------------|
 * | names an account (a user name)    | account and address together; and each alone, if it has a limiter |
 * | names none (a key, a token), or is malformed | its address                                    |
 *
 * In a list, a credential that several kinds read is one guess (`heldGuesses.ts`). A request that another site made a browser send
 * is refused before it is counted. `remembered` around it asks the limiter first if guesses were refused (`refusedGuesses.ts`).
 *
 * A stranger at one address never locks an account out. A guess that is refused for account and address together is not counted for
 * the account. No address can use all guesses of an account (`addressShare.ts`).
 *
 * Law (spec/core/throttled.law.spec.ts): of any number of guesses in parallel, no more than the limit reach the hook.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from 'koa'
import { andThen, type Evaluation } from './Evaluation.js'
import * as AuthErrors from './AuthError.js'
import type { AuthError } from './AuthError.js'
import { make, type Authenticator } from './Authenticator.js'
import { clientAddress } from './ClientAddress.js'
import { isForged } from './CrossOrigin.js'
import { explained } from './Description.js'
import { addressOf, checkGuess, countsIn, usernameIn, type Count, type Guess } from './Guess.js'
import { hold, notHeld, release } from './heldGuesses.js'
import { checkLimiters, countOne, takeBack, type Counted, type Limiter, type Limiters } from './Limiter.js'
import { declareFactory } from './hooks.js'
import { checkOptions, hook, maybe, oneOf, unchecked, type Checks } from './options.js'
import { decodeAhead, forgetDecoded, readBy } from './Reading.js'
import { refusedGuesses } from './refusedGuesses.js'
import { settingsOf } from './Settings.js'
import { failureOf } from './UnavailableError.js'
import { aroundEach, type Around } from './wrapping.js'

/** How guesses are counted. */
export interface ThrottledOptions<C> {
  /** Counts guesses: one limiter for account and address together, or one for each. The classes of rate-limiter-flexible fit. */
  readonly limiter: Limiter | Limiters
  /**
   * Returns what a credential is counted under. It is not called for malformed credentials. Limiters get digests of the result.
   * Default: the `username` of the credentials, if there is one, and the client's address.
   */
  readonly keys?: ((request: Request, credentials: C) => Guess) | undefined
  /** If a limiter fails: `unavailable` (the default) answers 503; `unthrottled` calls the hook without a limit. */
  readonly onStoreError?: 'unavailable' | 'unthrottled' | undefined
}

const checks: Checks<ThrottledOptions<unknown>> = {
  limiter: unchecked,
  keys: maybe(hook(2)),
  onStoreError: maybe(oneOf('unavailable', 'unthrottled')),
}

/**
 * Counts guesses, and refuses them beyond the limit with 429 and `Retry-After`, before the hook is called. In a list, it applies to
 * each kind. Throws a TypeError for options that cannot work, and for a plain function, because its credential is unknown.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { constantTimeEqual, httpBasicAuth, throttled } from 'koa-with-auth'
 * import { RateLimiterMemory } from 'rate-limiter-flexible'
 *
 * const basic = httpBasicAuth({
 *   authenticate: (_request, username, password) => constantTimeEqual(password, 's3cret') && { username },
 * })
 * // five wrong passwords of one account from one address in 15 minutes
 * const limiter = new RateLimiterMemory({ points: 5, duration: 15 * 60 })
 * const guarded = pipe(basic, throttled({ limiter }))
 */
export const throttled = <C = unknown>(
  options: ThrottledOptions<C>,
): (<A>(self: Authenticator<A>) => Authenticator<A>) => {
  const { limiter, keys, onStoreError } = checkOptions('throttled', options, checks)
  const countsOf = countsIn(checkLimiters(limiter))
  const guessOf = keys === undefined ? usernameIn : (request: Request, sent: C) => checkGuess(keys(request, sent))
  const refused = refusedGuesses()

  const around: Around = (self, leaf, reading) => {
    const { extract, decode } = reading
    const failed = (error: AuthError) => E.left(explained(leaf, error))
    const unavailable = failed(AuthErrors.unavailable())
    const forged = failed(AuthErrors.forged)
    const gone = failed(AuthErrors.throttled())

    const guessAt = (request: Request, sent: unknown, decoded = decode(sent)): Guessed | undefined => {
      // Safe: the author of `keys` says what the kind reads. Malformed credentials name no account
      const guess = E.isLeft(decoded) ? {} : guessOf(request, decoded.right as C)
      const address = addressOf(guess, request)
      if (isGone(request, address)) return undefined
      const counts = countsOf(guess.account, address)
      return { request, sent, address, key: counts[0].key, counts: notHeld(request, sent, counts) }
    }
    const ask = (guess: Guessed, counted: ReadonlyArray<Counted>): Evaluation<unknown> => {
      const count = guess.counts[counted.length]
      if (count === undefined) return concluded(guess, evaluated(guess.request), counted)
      return countOne(count.limiter, count.key, (one) => {
        const all = [...counted, one]
        if (one._tag === 'Failed' && onStoreError === 'unthrottled') return ask(guess, all)
        const left = one._tag === 'Counted' ? Math.min(one.left, (count.atMost ?? Infinity) - one.total) : -1
        if (left <= 0 && one._tag !== 'Failed') refused.add(guess.key, one.retryAfter)
        if (left >= 0) return ask(guess, all)
        all.forEach(takeBack)
        forgetDecoded(guess.request)
        return one._tag === 'Failed' ? unavailable : failed(AuthErrors.throttled(one.retryAfter))
      })
    }
    const evaluated = (request: Request): Evaluation<unknown> => {
      const evaluation = self.evaluate(request)
      forgetDecoded(request)
      return evaluation
    }
    const concluded = (
      { request, sent, key, counts }: Guessed,
      evaluation: Evaluation<unknown>,
      counted: ReadonlyArray<Counted>,
    ): Evaluation<unknown> =>
      andThen(evaluation, (result) => {
        if (isGuess(result)) {
          hold(request, sent, counts, counted)
          return result
        }
        if (counted.length > 0 && !refused.isEmpty()) refused.delete(key)
        counted.forEach(takeBack)
        if (isKnown(result)) release(request, sent)
        return result
      })
    const evaluate = (request: Request): Evaluation<unknown> => {
      try {
        const sent = extract(request)
        if (O.isNone(sent)) return self.evaluate(request)
        // a page of another site would use up the guesses of its visitors' addresses, and lock them out
        if (leaf.ambient && isForged(request, settingsOf(request))) return forged
        const guess = guessAt(request, sent.value, decodeAhead(request, decode, sent.value))
        if (guess !== undefined) return ask(guess, [])
        forgetDecoded(request)
        return gone
      } catch (error) {
        forgetDecoded(request)
        return failed(failureOf(error))
      }
    }
    const origin = (request: Request, sent: unknown): string | undefined => {
      const inner = reading.origin === undefined ? '' : reading.origin(request, sent)
      if (inner === undefined) return undefined
      if (keys === undefined && refused.isEmpty()) {
        const address = clientAddress(request)
        return isGone(request, address) ? undefined : address + inner
      }
      const guess = guessAt(request, sent)
      return guess === undefined || refused.has(guess.key) ? undefined : guess.address + inner
    }
    return make(readBy({ ...leaf, throttled: true as const }, { ...reading, origin }), evaluate)
  }
  // Safe: the principal is the one that the authenticator itself let in
  const combinator = aroundEach('throttled(...)', around) as <A>(self: Authenticator<A>) => Authenticator<A>
  return declareFactory('throttled(...)', combinator)
}

interface Guessed {
  readonly request: Request
  readonly sent: unknown
  readonly address: string
  /** The key of its narrowest count. */
  readonly key: string
  /** The counts that do not contain this request yet. */
  readonly counts: ReadonlyArray<Count>
}

// A client that has hung up reads no answer. Its address may be unknown by now, so its guesses could not be counted
const isGone = ({ socket }: Request, address: string): boolean => address === '' && socket.destroyed

// Whether a kind refused the credential, even if the failure of another kind is stronger
const isGuess = (result: E.Either<AuthError, unknown>): boolean =>
  E.isLeft(result) &&
  AuthErrors.branchesOf(result.left).some(
    ({ _tag, skipped }) => !skipped && (_tag === 'malformed' || _tag === 'invalid'),
  )

// Whether the credential belongs to somebody, even if it does not let in
const isKnown = (result: E.Either<AuthError, unknown>): boolean => E.isRight(result) || known.has(result.left._tag)

const known: ReadonlySet<AuthError['_tag']> = new Set(['expired', 'forged', 'insufficient'])

declareFactory('throttled', throttled)
