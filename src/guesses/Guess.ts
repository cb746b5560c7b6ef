/**
 * The keys of a guess: the account that it names, and the address that it comes from.
 *
 * Limiters see only digests, so a store of counts does not reveal users and addresses.
 */
import { digest } from '../crypto/secrets.js'
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from '../core/Request.js'
import { isThenable, type Decoded, type Evaluation, type Result } from '../core/Result.js'
import { ownOrGetter, unawaited } from '../core/data.js'
import * as is from '../core/checks.js'
import { checkOptions } from '../core/options.js'
import { accountNames } from './accountNames.js'
import { clientAddress, networkOf, widerNetwork } from './addresses.js'
import type { GuessLimitEvent } from '../core/events.js'
import { checkLimiters, countThenRun, sharesOf, takeBack } from './Limiter.js'
import type { Count, Limiter, Limiters } from './Limiter.js'

/** The account that a credential is a guess at, and where it comes from. */
export interface Guess {
  /**
   * The account that it names. Letter case, accents, invisible characters and blanks around it do not matter. Left out:
   * the guess counts only under its address.
   */
  readonly account?: string | undefined
  /** Default, also for `''`: the client's address. The port of an address does not count. An IPv6 address counts as its /64 network. */
  readonly address?: string | undefined
}

/**
 * @internal The counts of a guess, the narrow counts first. A guess that a narrow count refuses must not count under the others.
 * `address` is an IPv4 address, or the /64 network of an IPv6 address. Guesses that another site made a browser send have counts of their own.
 */
export const countsIn = (limiters: Limiters) => {
  const { accountAndAddress, account: everywhere, address: anyAccount } = limiters
  const { ofAddress, ofNetwork } = sharesOf(limiters)
  return (account: string | undefined, address: string, isCrossSite = false): ReadonlyArray<Count> => {
    const count = (
      limiter: Limiter,
      under: Exclude<Count['under'], 'caller'>,
      parts: ReadonlyArray<string>,
      atMost?: number,
    ): Count => ({
      limiter,
      key: countKey(isCrossSite, [under, ...parts]),
      under,
      atMost,
    })
    if (account === undefined) return [count(anyAccount ?? accountAndAddress, 'address', [address])]
    const names = accountNames(account)
    const counts = names.map((name) => count(accountAndAddress, 'account and address', [name, address]))
    if (anyAccount !== undefined) counts.push(count(anyAccount, 'address', [address]))
    if (everywhere === undefined) return counts
    const network = ofNetwork === undefined ? undefined : widerNetwork(address)
    const [part, atMost] = network === undefined ? [address, ofAddress] : [network, ofNetwork]
    // every share is asked before any account, so that a guess that a share refuses counts under no account
    if (atMost !== undefined) counts.push(...names.map((name) => count(everywhere, 'share', [name, part], atMost)))
    return [...counts, ...names.map((name) => count(everywhere, 'account', [name]))]
  }
}

const countKey = (isCrossSite: boolean, parts: ReadonlyArray<string>): string => {
  let text = isCrossSite ? '10:cross-site' : ''
  for (const part of parts) text += `${part.length}:${part}`
  return digest(text)
}

// In the order in which they count
const accountFields = ['username', 'email', 'login', 'user', 'account', 'phone']

/**
 * @internal Returns the keys of a guess, with the option `keys` of `throttled`. Without it, the account is the name in the credentials.
 */
export const countingBy =
  <C>(keys: ((request: Request, credentials: C) => Guess) | undefined) =>
  (request: Request, decoded: Decoded): Guess & { readonly address: string } => {
    const { account, address = '' } = guessIn(request, decoded, keys)
    return { account, address: address === '' ? clientAddress(request) : (networkOf(address) ?? address) }
  }

const guessIn = <C>(
  request: Request,
  decoded: Decoded,
  keys: ((request: Request, credentials: C) => Guess) | undefined,
): Guess => {
  // malformed credentials name no account
  if (E.isLeft(decoded)) return {}
  // Safe: the caller declares `C` and knows the result of `decode`
  return keys === undefined ? accountIn(decoded.right) : checkGuess(keys(request, decoded.right as C))
}

// The account that credentials name, in a field of one of these names. A key or a token names none. Throws a TypeError for an object
// without such a field: guesses would count under their address only, and an account would get as many as there are addresses.
const accountIn = (credentials: unknown): Guess => {
  if (typeof credentials !== 'object' || credentials === null) return {}
  for (const name of accountFields) {
    const value = ownOrGetter(credentials, name)
    if (typeof value !== 'string' && typeof value !== 'number') continue
    const account = String(value)
    // people write a number in groups, each in another way
    return { account: name === 'phone' ? account.replace(/[^\p{Nd}\p{L}]/gu, '') : account }
  }
  throw new TypeError(
    `throttled({ keys }) is missing: no field of the credentials (${accountFields.join(', ')}) is a string that identifies an account; write keys: (request, credentials) => ({ account: ... })`,
  )
}

// A result that `keys` must not return is a TypeError
const checkGuess = (guess: unknown): Guess => {
  if (isThenable(unawaited(guess))) throw new TypeError('throttled({ keys }) must be sync, but returned a promise')
  // Safe: anything else is refused
  return checkOptions('the result of throttled({ keys })', guess as Guess, {
    account: is.maybe(is.string),
    address: is.maybe(is.string),
  })
}

/**
 * Counts guesses at codes, and requests for mails, by an account and an address: both by the same limiter, so that asking
 * again gives no new tries. Throws a TypeError for a value that is no limiter.
 *
 * It counts one guess, and runs `f` if the count is within the limit. Otherwise it is throttled. The count is taken back unless `stays`
 * says of the result that it counts. Default: a failure with the reason `wrong`.
 */
export const counting = (limiter: Limiter | Limiters, counter: GuessLimitEvent['counter']) => {
  const countsOf = countsIn(checkLimiters(limiter, counter))
  return async <A>(
    account: string | undefined,
    address: string,
    f: () => Evaluation<A>,
    stays: (result: Result<A>) => boolean = (result) => E.isLeft(result) && result.left.reason === 'wrong',
  ): Promise<Result<A>> =>
    countThenRun<Result<A>>({
      counter,
      counts: countsOf(account, address),
      run: async (counted) => {
        let isCounted = false
        try {
          const result = await f()
          isCounted = stays(result)
          return result
        } finally {
          if (!isCounted) counted.forEach(takeBack)
        }
      },
      refuse: E.left,
    })
}
