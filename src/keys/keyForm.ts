/**
 * What an API key looks like: a prefix that says whose it is, `_`, 32 characters of randomness, 6 of a checksum.
 *
 * The checksum refuses typing errors and random guesses without a look-up, and lets secret scanners tell a key from what only
 * looks like one. It is no secret: whoever wants to can compute it.
 */
import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM = 32
const CHECKSUM = 6

/** What a prefix may be: words of lower-case letters and digits, joined by `_`, as `acme` or `acme_live`. */
export const isPrefix = (u: unknown): u is string =>
  typeof u === 'string' && u.length >= 2 && u.length <= 32 && /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(u)

// Bytes from 248 on would make the first letters likelier than the others
const EVEN = 256 - (256 % alphabet.length)

const random = (length: number): string => {
  let made = ''
  while (made.length < length) {
    for (const byte of randomBytes(length - made.length)) if (byte < EVEN) made += alphabet[byte % alphabet.length]
  }
  return made
}

// Big-endian, six digits hold any 32 bits
const checksum = (text: string): string => {
  let rest = crc32(text)
  let digits = ''
  for (let at = 0; at < CHECKSUM; at++) {
    digits = alphabet.charAt(rest % alphabet.length) + digits
    rest = Math.floor(rest / alphabet.length)
  }
  return digits
}

/** The keys of one prefix. */
export interface KeyForm {
  /** Any key of this form within a string, its checksum not looked at. */
  readonly pattern: RegExp
  /** A new key. */
  readonly make: () => string
  /** Whether it is a key of this form with its checksum. */
  readonly isKey: (text: string) => boolean
}

/** @see KeyForm */
export const keyForm = (prefix: string): KeyForm => {
  const length = prefix.length + 1 + RANDOM + CHECKSUM
  const body = `${prefix}_[0-9A-Za-z]{${RANDOM + CHECKSUM}}`
  const whole = new RegExp(`^${body}$`)
  return {
    pattern: new RegExp(`\\b${body}\\b`),
    make: () => {
      const text = `${prefix}_${random(RANDOM)}`
      return text + checksum(text)
    },
    // the length first: what is sent may be megabytes long
    isKey: (text) =>
      text.length === length && whole.test(text) && checksum(text.slice(0, -CHECKSUM)) === text.slice(-CHECKSUM),
  }
}
