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
 * In a list, a credential that several kinds read is one guess. A credential that another site made a browser send has counts of its own, so a page
 * cannot lock its visitors out; a client that writes those fields itself gets twice the limit.
 *
 * A stranger at one address, or in one IPv6 network, never locks an account out. A guess that is refused for account and address
 * together is not counted for the account. No address and no network can use all guesses of an account.
 *
 * Law (spec/guesses/throttled.law.spec.ts): of any number of guesses in parallel, no more than the limit reach the hook.
 */
import { unlessThrown } from '../core/data.js'
import { isDeepStrictEqual } from 'node:util'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from '../core/Request.js'
import { settingsOf, type Attempt } from '../core/Exchange.js'
import * as AuthErrors from '../core/AuthError.js'
import type { AuthError } from '../core/AuthError.js'
import { decideOf, make, mapLeaves, readerOf } from '../core/Authenticator.js'
import type { Authenticator, Decide, CredentialReader } from '../core/Authenticator.js'
import { isForged, isFromElsewhere } from '../core/CrossOrigin.js'
import { withChallenges, wrappedBy, type Leaf } from '../core/Description.js'
import { andThen, failureOf, type Decoded, type Evaluation, type Result } from '../core/Result.js'
import { functionName } from '../core/functionName.js'
import { keepingScopes } from '../core/granted.js'
import * as is from '../core/checks.js'
import { checkMember, checkOptions, declareCondition, declareFactory, type Checks } from '../core/options.js'
import { countingBy, countsIn, type Guess } from './Guess.js'
import { checkLimiters, countThenRun, limitsOf, takeBack } from './Limiter.js'
import type { Count, Counted, Limiter, Limiters } from './Limiter.js'

/** A guess that is counted, unless a kind later knows its credential. */
interface PendingGuess {
  readonly sent: unknown
  readonly counted: Counted
}

// The guesses of a decision. In a list, several kinds may read one credential, such as two that read Basic. One request is one guess for
// each credential; if any kind accepts it, it is none. Otherwise users whom only the second kind knows would use up the limit by
// signing in.
const guesses = new WeakMap<Attempt, ReadonlyArray<PendingGuess>>()

const keepCounted = ({ whole }: Attempt, sent: unknown, all: ReadonlyArray<Counted>): void => {
  const held = all.flatMap((counted) => (counted._tag === 'Counted' ? [{ sent, counted }] : []))
  guesses.set(whole, [...(guesses.get(whole) ?? []), ...held])
}

/** The counts that do not contain this credential yet. */
const notCountedYet = ({ whole }: Attempt, sent: unknown, counts: ReadonlyArray<Count>): ReadonlyArray<Count> => {
  const before = guesses.get(whole)
  if (before === undefined) return counts
  return counts.filter(
    ({ limiter, key }) =>
      !before.some(
        ({ sent: known, counted: { count } }) =>
          isSameSent(known, sent) && count.limiter === limiter && count.key === key,
      ),
  )
}

/** Takes back the count of a credential, because one of the kinds knows it. */
const giveBack = ({ whole }: Attempt, sent: unknown): void => {
  const before = guesses.get(whole)
  if (before === undefined) return
  guesses.set(
    whole,
    before.filter((one) => !isSameSent(one.sent, sent)),
  )
  for (const one of before) if (isSameSent(one.sent, sent)) takeBack(one.counted)
}

// Each kind reads the request itself, so one credential can be two objects
const isSameSent = (one: unknown, other: unknown): boolean => {
  if (one === other) return true
  if (typeof one !== 'object') return false
  // a body can be nested deeper than can be compared
  return unlessThrown(() => isDeepStrictEqual(one, other)) === true
}

/** Puts `around` around each credential. Throws a TypeError if one cannot be seen. Conditions and lists stay outside. */
const aroundEachKind = (
  self: Authenticator<unknown>,
  around: (self: Authenticator<unknown>, leaf: Leaf, reading: CredentialReader) => Authenticator<unknown>,
): Authenticator<unknown> => {
  checkMember('throttled(...)(a)', self)
  const made = mapLeaves(self, (leaf) => {
    // Safe: a caller without types could pass any function
    const { description } = leaf as Partial<Authenticator<unknown>>
    if (description !== undefined && description._tag !== 'Leaf') {
      throw new TypeError(
        'throttled(...)(a): a hides the authenticators that it is made of; put throttled(...) around each of them',
      )
    }
    const reading = readerOf(leaf)
    if (description === undefined || reading === undefined) {
      throw new TypeError(
        'throttled(...)(a): a is a plain function, whose credential is unknown; put throttled(...) around kinds, such as httpBasicAuth or authenticator({ extract, ... })',
      )
    }
    return around(leaf, description, reading)
  })
  return keepingScopes(made, self)
}

/** How guesses are counted. */
export interface ThrottledOptions<C> {
  /** Counts guesses: one limiter for account and address together, or one for each. The classes of rate-limiter-flexible fit. */
  readonly limiter: Limiter | Limiters
  /**
   * Returns the keys under which a credential is counted. It is not called for malformed credentials. Limiters get digests of the result.
   * Default: the client's address, and the first of `username`, `email`, `login`, `user`, `account` and `phone` that the credentials
   * have. Credentials that are an object without any of them need `keys`: otherwise the failure is `raised`. Strings need none.
   */
  readonly keys?: ((request: Request, credentials: C) => Guess) | undefined
  /** If a limiter fails: `unavailable` (the default) answers 503; `unthrottled` calls the hook without a limit. */
  readonly onStoreError?: 'unavailable' | 'unthrottled' | undefined
}

const checks: Checks<ThrottledOptions<unknown>> = {
  limiter: is.unchecked,
  keys: is.maybe(is.hook(2)),
  onStoreError: is.maybe(is.oneOf('unavailable', 'unthrottled')),
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
  const limiters = checkLimiters(limiter, 'throttled')
  const isOpen = onStoreError === 'unthrottled'
  const words = [
    `throttled${limitsOf(limiters)}`,
    ...(isOpen ? ['or unthrottled'] : []),
    ...(keys === undefined ? [] : [`keys ${functionName(keys)}`]),
  ].join(' ')
  const shared = { isOpen, countsOf: countsIn(limiters), countingOf: countingBy(keys) }
  const around = (authenticator: Authenticator<unknown>, leaf: Leaf, reading: CredentialReader) => {
    const failed = (error: AuthError) => E.left(withChallenges(leaf, error))
    const self: Throttle = { ...shared, leaf, reading, authenticate: decideOf(authenticator), failed }
    return make(wrappedBy(leaf, words, { throttled: true }, keys), (attempt) => decide(self, attempt), reading)
  }
  // Safe: the principal is that of the authenticator itself
  const combinator = ((self: Authenticator<unknown>) => aroundEachKind(self, around)) as <A>(
    self: Authenticator<A>,
  ) => Authenticator<A>
  return declareCondition('throttled', combinator)
}

interface Throttle {
  readonly leaf: Leaf
  readonly reading: CredentialReader
  readonly authenticate: Decide
  readonly failed: (error: AuthError) => Result<never>
  readonly countsOf: ReturnType<typeof countsIn>
  readonly countingOf: ReturnType<typeof countingBy>
  readonly isOpen: boolean
}

const decide = (self: Throttle, attempt: Attempt): Evaluation<unknown> => {
  const { leaf, reading, authenticate, failed } = self
  if (attempt.whole.isUncounted === true) return authenticate(attempt)
  const { request } = attempt
  try {
    const sent = reading.extract(request)
    if (O.isNone(sent)) return authenticate(attempt)
    // it will not be let in, so it need not be counted
    if (leaf.ambient && isForged(request, settingsOf(request))) return failed(AuthErrors.forged)
    const decoded = decodedAhead(self, attempt, sent.value)
    if (!(decoded instanceof Promise)) return askFor(self, attempt, sent.value, decoded)
    return decoded
      .then((late) => askFor(self, attempt, sent.value, late))
      .catch((error: unknown) => failed(failureOf(error)))
  } catch (error) {
    return failed(failureOf(error))
  }
}

// the kind itself, which is asked after the limiter, decodes nothing again
const decodedAhead = ({ reading: { decode } }: Throttle, { whole }: Attempt, sent: unknown) => {
  const { decoded: ahead } = whole
  if (ahead !== undefined && ahead.decode === decode && ahead.sent === sent) return ahead.credentials
  return andThen(decode(sent), (credentials): Decoded => {
    whole.decoded = { decode, sent, credentials }
    return credentials
  })
}

const askFor = (self: Throttle, attempt: Attempt, sent: unknown, decoded: Decoded): Evaluation<unknown> => {
  const { countingOf, countsOf, authenticate, failed, isOpen } = self
  const { request } = attempt
  const { account, address } = countingOf(request, decoded)
  if (hasHungUp(request, address)) return failed(AuthErrors.throttled())
  const isCrossSite = isFromElsewhere(request, settingsOf(request).trustedOrigins)
  const counts = notCountedYet(attempt, sent, countsOf(account, address, isCrossSite))
  return countThenRun<Result<unknown>>({
    counter: 'throttled',
    counts,
    isOpen,
    run: (counted) => andThen(authenticate(attempt), (result) => settleGuess(attempt, sent, counted, result)),
    refuse: failed,
  })
}

const settleGuess = (attempt: Attempt, sent: unknown, counted: ReadonlyArray<Counted>, result: Result<unknown>) => {
  if (isGuess(result)) keepCounted(attempt, sent, counted)
  else {
    counted.forEach(takeBack)
    if (isKnown(result)) giveBack(attempt, sent)
  }
  return result
}

// A client that has hung up reads no answer. Its address may be unknown by now, so its guesses could not be counted
const hasHungUp = ({ socket }: Request, address: string): boolean => address === '' && socket.destroyed

// Whether a kind refused the credential, even if the failure of another kind is stronger
const isGuess = (result: Result<unknown>): boolean =>
  E.isLeft(result) &&
  AuthErrors.branchesOf(result.left).some(
    ({ _tag, skipped }) => !skipped && (_tag === 'malformed' || _tag === 'invalid'),
  )

// Whether some user has this credential: it passed, or it is expired or forged, or the user is not allowed
const isKnown = (result: Result<unknown>): boolean => E.isRight(result) || knowsCredential.has(result.left._tag)

const knowsCredential: ReadonlySet<AuthError['_tag']> = new Set(['expired', 'forged', 'insufficient', 'notFound'])

declareFactory('throttled', throttled)
