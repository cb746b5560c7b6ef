/**
 * What a guess is counted under: the account that it names, and the address that it comes from.
 *
 * Limiters see only digests, so a store of counts does not reveal users and addresses.
 */
import { hash } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import ipaddr, { type IPv6 as IPv6Address } from 'ipaddr.js'
import type { Request } from 'koa'
import * as AuthErrors from '../core/AuthError.js'
import { isThenable, type Decoded, type Evaluation, type Result } from '../core/Result.js'
import { ownOrGetter } from '../core/data.js'
import * as is from '../core/checks.js'
import { checkOptions } from '../core/options.js'
import { checkLimiters, countOne, sharesOf, takeBack, type Counted, type Limiter, type Limiters } from './Limiter.js'

const { IPv6 } = ipaddr

const MAX_NAME_LENGTH = 256

/**
 * What a name is counted as.
 *
 * It is one form for all spellings that some database, directory or form takes for the same name. If a spelling found
 * the same account but had a separate count, it would allow more guesses.
 *
 * It is stricter than most databases. It ignores letter case, accents, invisible characters, blanks around the name and
 * repeated blanks, however many there are. Of what is left, it ignores everything after 256 characters. A letter that a
 * collation sorts as another (`ø`, `æ`, `①`) counts as that one. Two users whose names have the same form share a
 * count, and nothing else: the form never finds an account.
 */
export const accountName = (name: string): string => (isPlain(name) ? name.toLowerCase() : ofAnyScript(name))

const isPlain = (name: string): boolean => name.length <= MAX_NAME_LENGTH && plain.test(name)

const plain = /^[!-~]*$/

// What is invisible goes before anything is cut. Otherwise each number of invisible characters would make another name
const ofAnyScript = (name: string): string =>
  latinized(
    decomposed(name.replace(isolated, ''))
      .replace(/[^\S\ufeff]/g, ' ')
      .replace(/[·\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, ''),
  )
    // both, because some letters have only one case
    .toUpperCase()
    .toLowerCase()
    .slice(0, MAX_NAME_LENGTH)
    .trim()

/**
 * The letters and marks of a name (NFKD). Unicode sorts the marks in a row one by one, which takes a time that grows with the square of
 * their number. So a row is interrupted after 30 marks, as in stream-safe text (UAX #15 §13), by a character that does not count.
 */
const decomposed = (name: string): string => name.replace(marks, '$&\u034f').normalize('NFKD')

// Also the voiced marks of half-width katakana, which NFKD makes marks of
const marks = /[\p{M}\uff9e\uff9f]{30}/gu

// Isolated Arabic vowel signs. NFKD would put a blank before each, but a collation ignores them
const isolated = /[\ufc5e-\ufc63\ufe70\ufe72\ufe74\ufe76\ufe78\ufe7a\ufe7c\ufe7e]/g

/**
 * @internal Everything that a name is counted as. Some marks, such as U+0363, are a letter for a collation, and an accent for a program
 * that drops all marks. So a name that has one counts as both.
 */
export const accountNames = (name: string): readonly [string] | readonly [string, string] => {
  if (isPlain(name)) return [name.toLowerCase()]
  const whole = ofAnyScript(name)
  const bare = accountName(decomposed(name).replace(/\p{M}/gu, ''))
  return bare === whole ? [whole] : [whole, bare]
}

// The start of a name that is long enough, in which each character is what databases take it for. Each is looked up once
const latinized = (name: string): string => {
  const latinOf = new Map<string, string>()
  let start = ''
  for (const character of name) {
    if (character === ' ') {
      if (start !== '' && !start.endsWith(' ')) start += ' '
      continue
    }
    const found = character <= '~' ? character : (latinOf.get(character) ?? latin(character))
    latinOf.set(character, found)
    start += found
    if (start.length > MAX_NAME_LENGTH) break
  }
  return start
}

const letters = [...'0123456789abcdefghijklmnopqrstuvwxyz']
let collator: Intl.Collator | undefined

// What databases that ignore case and accents take a character for: nothing, a letter, two letters, or itself
const latin = (character: string): string => {
  const { compare } = (collator ??= new Intl.Collator('und', { sensitivity: 'base' }))
  const both = lastUpTo(character, lastUpTo(character, '', compare), compare)
  return compare(both, character) === 0 ? both : character
}

// Adds the last letter to `before` with which it does not sort after the character; no letter if there is none
const lastUpTo = (character: string, before: string, compare: Intl.Collator['compare']): string => {
  let [low, high] = [0, letters.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare(before + letters[middle], character) <= 0) low = middle + 1
    else high = middle
  }
  return before + (letters[low - 1] ?? '')
}

/**
 * The address of the client. It is `''` if the socket has none: a Unix socket, or one that is already closed.
 *
 * Guesses are counted by an IPv4 address, or by the /64 network of an IPv6 address. One household has 2^64 IPv6
 * addresses, so a single one says nothing. A port says nothing either: each connection has another one, and some
 * proxies write it after the address.
 *
 * Behind a proxy (`app.proxy`) the address is the last one that the nearest proxy wrote, or the one that
 * `app.maxIpsCount` selects. An address that the client could have written does not count. If the value is not an
 * address, the address of the socket counts.
 */
export const clientAddress = (request: Request): string => {
  const { app, socket } = request
  const written = app.proxy ? forwarded(request) : undefined
  return (written === undefined ? undefined : networkOf(written)) ?? ofSocket(socket.remoteAddress ?? '')
}

// An IPv4 address needs no parsing, because the operating system always writes it in the same way
const ofSocket = (address: string): string => (address.includes(':') ? (networkOf(address) ?? address) : address)

// Koa cuts `ips` down to the last `maxIpsCount`. Without it, a client could have written all but the last
const forwarded = ({ app, ips }: Request): string | undefined => (app.maxIpsCount > 0 ? ips[0] : ips.at(-1))

// A longer string is not an address, and is not parsed
const MAX_ADDRESS_LENGTH = 100

const four = /^(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$/i
const bracketed = /^\[([^\]]*)\](?::\d+)?$/
// Without brackets, a port can be recognized only after eight groups or an IPv4 address
const port = /^((?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|.*\.\d{1,3}):(\d{1,5})$/i
const MAX_PORT = 65535

/** @internal The part of an address that a client cannot choose; `undefined` for a string that is not an address. */
export const networkOf = (written: string): string | undefined => {
  if (written.length > MAX_ADDRESS_LENGTH) return undefined
  const address = bracketed.exec(written)?.[1] ?? written
  const plain = four.exec(address)?.[1]
  if (plain !== undefined) return ofOctets(plain.split('.').map(Number))
  const [, before = address, after = '0'] = port.exec(address) ?? []
  return Number(after) <= MAX_PORT && IPv6.isValid(before) ? ofGroups(IPv6.parse(before)) : undefined
}

const ofOctets = (octets: ReadonlyArray<number>): string | undefined =>
  octets.every((octet) => octet < 256) ? octets.join('.') : undefined

// RFC 4291 §2.5.5.2 (mapped), RFC 6052 §2.1 (translated): these IPv6 networks hold all IPv4 addresses
const ofGroups = (six: IPv6Address): string => {
  const range = six.range()
  const { parts } = six
  if (range === 'ipv4Mapped' || range === 'rfc6052') return six.toByteArray().slice(-4).join('.')
  return `${parts.slice(0, 4).map((group) => group.toString(16)).join(':')}::/64` // prettier-ignore
}

/**
 * @internal The /48 network around a /64 network; `undefined` for anything else, such as an IPv4 address. Providers give a household a
 * /56 or a /48 (RFC 6177), and a rented server often a /48.
 */
export const widerNetwork = (address: string): string | undefined => {
  const [, start] = /^((?:[0-9a-f]{1,4}:){3})[0-9a-f]{1,4}::\/64$/.exec(address) ?? []
  return start === undefined ? undefined : `${start}:/48`
}

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

interface GuessOrigin {
  /** An address, or the /64 network of an IPv6 address. */
  readonly address: string
  /** Whether another site made a browser send it. Such guesses have counts of their own. */
  readonly isCrossSite: boolean
}

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
  const { ofAddress, ofNetwork } = sharesOf(limiters)
  return (account: string | undefined, { address, isCrossSite }: GuessOrigin): readonly [Count, ...Count[]] => {
    const keyed = (...parts: ReadonlyArray<string>): string => digest(isCrossSite, parts)
    const from = (): Count => ({ limiter: anyAccount ?? accountAndAddress, key: keyed('address', address) })
    const pair = (name: string): Count => ({
      limiter: accountAndAddress,
      key: keyed('account and address', name, address),
    })
    if (account === undefined) return [from()]
    const names = accountNames(account)
    const [whose, other] = names
    const counts: [Count, ...Count[]] = [pair(whose)]
    if (other !== undefined) counts.push(pair(other))
    if (anyAccount !== undefined) counts.push(from())
    if (everywhere === undefined) return counts
    const network = ofNetwork === undefined ? undefined : widerNetwork(address)
    const [part, atMost] = network === undefined ? [address, ofAddress] : [network, ofNetwork]
    // every share is asked before any account, so that what one share refuses counts under no account
    if (atMost !== undefined) {
      for (const name of names) counts.push({ limiter: everywhere, key: keyed('share', name, part), atMost })
    }
    return [...counts, ...names.map((name) => ({ limiter: everywhere, key: keyed('account', name) }))]
  }
}

const digest = (isCrossSite: boolean, parts: ReadonlyArray<string>): string => {
  let text = isCrossSite ? '10:cross-site' : ''
  for (const part of parts) text += `${part.length}:${part}`
  return hash('sha256', text, 'base64url')
}

// In the order in which they count
const accountFields = ['username', 'email', 'login', 'user', 'account', 'phone']

/**
 * @internal Says what a guess counts under, with the option `keys` of `throttled`. Without it, the account is what the credentials name.
 */
export const countingBy =
  <C>(keys: ((request: Request, credentials: C) => Guess) | undefined) =>
  (request: Request, decoded: Decoded): Guess & { readonly address: string } => {
    const guess = guessIn(request, decoded, keys)
    return { account: guess.account, address: addressOf(guess, request) }
  }

const guessIn = <C>(
  request: Request,
  decoded: Decoded,
  keys: ((request: Request, credentials: C) => Guess) | undefined,
): Guess => {
  // malformed credentials name no account
  if (E.isLeft(decoded)) return {}
  // Safe: the caller declares `C` and knows what `decode` returns
  return keys === undefined ? accountIn(decoded.right) : checkGuess(keys(request, decoded.right as C))
}

/**
 * The account that credentials name, in a field of one of these names. A key or a token names none. Throws a TypeError for an object
 * without such a field: guesses would count under their address only, and an account would get as many as there are addresses.
 */
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
    `throttled({ keys }) is missing: the credentials have no ${accountFields.join(', ')} that is a string, so it is unknown which account they name; write keys: (request, credentials) => ({ account: ... })`,
  )
}

// A result that `keys` must not return is a TypeError
const checkGuess = (guess: unknown): Guess => {
  if (isThenable(guess)) throw new TypeError('throttled({ keys }) must be sync, but returned a promise')
  // Safe: anything else is refused
  return checkOptions('the result of throttled({ keys })', guess as Guess, guessed)
}

// The address that a guess counts under
const addressOf = ({ address }: Guess, request: Request): string =>
  address === undefined || address === '' ? clientAddress(request) : (networkOf(address) ?? address)

const guessed = { account: is.maybe(is.string), address: is.maybe(is.string) }

const isWrong = (result: Result<unknown>): boolean => E.isLeft(result) && result.left.reason === 'wrong'

/**
 * Counts guesses at codes, and what asks for mails, by an account and an address: both by the same limiter, so that asking
 * again gives no new tries. Throws a TypeError for what is no limiter.
 *
 * It counts one, and runs `f` if that is not too many. Otherwise it is throttled. What was counted is taken back unless `stays`
 * says of the result that it counts. Default: a failure with the reason `wrong`.
 */
export const counting = (limiter: Limiter | Limiters) => {
  const countsOf = countsIn(checkLimiters(limiter))
  return async <A>(
    account: string | undefined,
    address: string,
    f: () => Evaluation<A>,
    stays: (result: Result<A>) => boolean = isWrong,
  ): Promise<Result<A>> => {
    const counted: Counted[] = []
    for (const count of countsOf(account, { address, isCrossSite: false })) {
      const one = await countOne(count.limiter, count.key, (result) => result)
      counted.push(one)
      const left = one._tag === 'Counted' ? Math.min(one.left, (count.atMost ?? Infinity) - one.total) : -1
      if (left >= 0) continue
      counted.forEach(takeBack)
      return E.left(one._tag === 'Failed' ? AuthErrors.unavailable() : AuthErrors.throttled(one.retryAfter))
    }
    let isCounted = false
    try {
      const result = await f()
      isCounted = stays(result)
      return result
    } finally {
      if (!isCounted) counted.forEach(takeBack)
    }
  }
}
