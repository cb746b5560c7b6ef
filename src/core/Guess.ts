/**
 * What a guess is counted under: the account that it names, and the address that it comes from.
 *
 * Limiters see only digests, so a store of counts does not reveal users and addresses.
 */
import { hash } from 'node:crypto'
import type { Request } from 'koa'
import { accountName } from './accountName.js'
import { addressShare } from './addressShare.js'
import { clientAddress, networkOf } from './ClientAddress.js'
import { isThenable } from './promises.js'
import type { Limiter, Limiters } from './Limiter.js'
import { checkOptions, maybe, string } from './options.js'

/** The account that a credential is a guess at, and where it comes from. */
export interface Guess {
  /**
   * The account that it names. Letter case, accents, invisible characters and blanks around it do not matter. Left out:
   * the guess counts only under its address.
   */
  readonly account?: string | undefined
  /**
   * Default, also for `''`: the client's address. The port of an address does not count. An IPv6 address counts as its
   * /64 network.
   */
  readonly address?: string | undefined
}

/** @internal One count of a guess. */
export interface Count {
  readonly limiter: Limiter
  readonly key: string
  /** A limit below that of the limiter. */
  readonly atMost?: number | undefined
}

/**
 * @internal The counts of a guess, the narrow ones first. A guess that a narrow one refuses must not count under the
 * others.
 */
export const countsIn = (limiters: Limiters) => {
  const { accountAndAddress, account: everywhere, address: anyAccount } = limiters
  const share = addressShare(limiters)
  return (account: string | undefined, address: string): readonly [Count, ...Count[]] => {
    const from = { limiter: anyAccount ?? accountAndAddress, key: digest('address', address) }
    if (account === undefined) return [from]
    const whose = accountName(account)
    const counts: [Count, ...Count[]] = [
      { limiter: accountAndAddress, key: digest('account and address', whose, address) },
    ]
    if (anyAccount !== undefined) counts.push(from)
    if (everywhere === undefined) return counts
    if (share !== undefined) counts.push({ limiter: everywhere, key: digest('share', whose, address), atMost: share })
    return [...counts, { limiter: everywhere, key: digest('account', whose) }]
  }
}

const digest = (...parts: ReadonlyArray<string>): string =>
  hash('sha256', parts.map((part) => `${part.length}:${part}`).join(''), 'base64url')

/** @internal The account of credentials that have a `username`, such as those of Basic. */
export const usernameIn = (_request: unknown, credentials: unknown): Guess => {
  if (typeof credentials !== 'object' || credentials === null || !('username' in credentials)) return {}
  const { username } = credentials
  return typeof username === 'string' ? { account: username } : {}
}

/** @internal Throws a TypeError for a result that `keys` must not return. */
export const checkGuess = (guess: unknown): Guess => {
  if (isThenable(guess)) throw new TypeError('throttled({ keys }) must be sync, but returned a promise')
  // Safe: anything else is refused
  return checkOptions('the result of throttled({ keys })', guess as Guess, guessed)
}

/** @internal The address that a guess counts under. */
export const addressOf = ({ address }: Guess, request: Request): string =>
  address === undefined || address === '' ? clientAddress(request) : (networkOf(address) ?? address)

const guessed = { account: maybe(string), address: maybe(string) }
