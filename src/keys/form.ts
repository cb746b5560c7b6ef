/**
 * The form of an API key: a prefix that names the application, `_`, 32 random characters, and a checksum of 6.
 *
 * The checksum refuses typing errors and random guesses without a look-up. With it, secret scanners recognize keys
 * among similar strings. It is no secret: anyone can compute it.
 */
import { createHmac, hash, randomBytes, type KeyObject } from 'node:crypto'
import { crc32 } from 'node:zlib'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM = 32
const CHECKSUM = 6

/**
 * Whether a value can be a prefix: words of lower-case letters and digits, joined by `_`, such as `acme` or
 * `acme_live`.
 */
export const isPrefix = (u: unknown): u is string =>
  typeof u === 'string' && u.length >= 2 && u.length <= 32 && /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(u)

// Bytes from 248 on are not used, because they would make the first letters likelier than the others
const EVEN = 256 - (256 % alphabet.length)

const random = (length: number): string => {
  let made = ''
  while (made.length < length) {
    for (const byte of randomBytes(length - made.length)) if (byte < EVEN) made += alphabet[byte % alphabet.length]
  }
  return made
}

// Big-endian. Six digits can hold any 32 bits
const checksum = (text: string): string => {
  let rest = crc32(text)
  let digits = ''
  for (let at = 0; at < CHECKSUM; at++) {
    digits = alphabet.charAt(rest % alphabet.length) + digits
    rest = Math.floor(rest / alphabet.length)
  }
  return digits
}

// Without a string of the right checksum, because a key comes with each request
const endsWithChecksum = (text: string): boolean => {
  const start = text.length - CHECKSUM
  let rest = crc32(text.slice(0, start))
  for (let at = text.length - 1; at >= start; at--) {
    const next = Math.floor(rest / alphabet.length)
    if (text.charCodeAt(at) !== alphabet.charCodeAt(rest - next * alphabet.length)) return false
    rest = next
  }
  return true
}

export const keyForm = (prefix: string) => {
  const length = prefix.length + 1 + RANDOM + CHECKSUM
  const body = `${prefix}_[0-9A-Za-z]{${RANDOM + CHECKSUM}}`
  // `+`, because the length is compared first, and V8 takes twice as long for a number
  const whole = new RegExp(`^${prefix}_[0-9A-Za-z]+$`)
  return {
    /** Matches a key of this form within a string. It does not check the checksum. */
    pattern: new RegExp(`\\b${body}\\b`),
    make: (): string => {
      const text = `${prefix}_${random(RANDOM)}`
      return text + checksum(text)
    },
    /** Whether it is a key of this form with the right checksum. The length first, because the string may be megabytes long. */
    isKey: (text: string): boolean => text.length === length && whole.test(text) && endsWithChecksum(text),
  }
}

/** The SHA-256 of a key, in hex. A key has 190 random bits, so a slow hash would cost time and protect nothing. */
export const sha256Of = (key: string): string => hash('sha256', key)

/**
 * The digests that a key may be stored under, by its SHA-256: one for each pepper, the newest first. Without a pepper a digest is the
 * SHA-256. With one it is the HMAC of that.
 */
export const digestsWith = (peppers: ReadonlyArray<KeyObject>) => {
  const [newest, ...older] = peppers
  const seasoned = (sha256: string, pepper: KeyObject): string =>
    createHmac('sha256', pepper).update(sha256, 'hex').digest('hex')
  return (sha256: string): readonly [string, ...string[]] =>
    newest === undefined ? [sha256] : [seasoned(sha256, newest), ...older.map((pepper) => seasoned(sha256, pepper))]
}
