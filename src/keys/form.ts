/**
 * The form of an API key: a prefix that names the application, `_`, the id of the key (10 characters), a secret (22), and a checksum (6).
 * All secrets of one key begin with its id, so one look-up finds the key. A secret has 130 random bits.
 *
 * The checksum refuses typing errors and random guesses without a look-up. With it, secret scanners recognize keys
 * among similar strings. It is no secret: anyone can compute it.
 */
import { randomBytes, type KeyObject } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { digest, mac } from '../crypto/secrets.js'

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const ID = 10
const SECRET = 22
const CHECKSUM = 6

/** Whether a value can be a prefix: words of lower-case letters and digits, joined by `_`, such as `acme` or `acme_live`. */
export const isPrefix = (u: unknown): u is string =>
  typeof u === 'string' && u.length >= 2 && u.length <= 32 && /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(u)

// Bytes from 248 on are not used, because they would make the first letters likelier than the others
const EVEN = 256 - (256 % base62.length)

const random = (length: number): string => {
  let made = ''
  while (made.length < length) {
    for (const byte of randomBytes(length - made.length)) if (byte < EVEN) made += base62[byte % base62.length]
  }
  return made
}

// Big-endian. Six digits can hold any 32 bits
const checksum = (text: string): string => {
  let rest = crc32(text)
  let digits = ''
  for (let at = 0; at < CHECKSUM; at++) {
    digits = base62.charAt(rest % base62.length) + digits
    rest = Math.floor(rest / base62.length)
  }
  return digits
}

// The CRC-32 of each byte, and the value of each digit. A call of zlib for so few characters takes longer than a walk
const crcOf = Int32Array.from({ length: 256 }, (_, byte) => crc32(Uint8Array.of(byte ^ 0xff)) ^ 0xff_00_00_00)
const digitOf = Int8Array.from({ length: 256 }, (_, code) => base62.indexOf(String.fromCharCode(code)))

// Whether a string has only digits from here on, and the checksum of everything before. `crc` is the checksum of the text before `from`
const endsWithChecksum = (text: string, from: number, crc: number): boolean => {
  const start = text.length - CHECKSUM
  let [rest, sent] = [~crc, 0]
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const digit = digitOf[code] ?? -1
    if (digit === -1) return false
    if (at < start) rest = (rest >>> 8) ^ (crcOf[(rest ^ code) & 0xff] ?? 0)
    else sent = sent * base62.length + digit
  }
  return sent === ~rest >>> 0
}

const adoptedId = (keyDigest: string): string =>
  Array.from(Buffer.from(digest(`koa-with-auth/adopted ${keyDigest}`), 'base64url').subarray(0, ID), (byte) =>
    base62.charAt(byte % base62.length),
  ).join('')

/** The form of the keys of a prefix, and their digests. */
export const keyForm = (prefix: string, peppers: ReadonlyArray<KeyObject>) => {
  const start = `${prefix}_`
  const length = start.length + ID + SECRET + CHECKSUM
  const crc = crc32(start)
  return {
    /** Matches a key of this form within a string. It does not check the checksum. */
    pattern: new RegExp(`\\b${start}[0-9A-Za-z]{${ID + SECRET + CHECKSUM}}\\b`),
    /** Makes a key with a new secret. */
    make: (id: string): string => {
      const text = start + id + random(SECRET)
      return text + checksum(text)
    },
    sha256Of,
    digestsOf: digestsWith(peppers),
    newId: (): string => random(ID),
    /** The id of an adopted key, which its digest makes: the key itself has none. */
    adoptedId,
    /** The id in a key of this form. */
    idIn: (key: string): string => key.slice(start.length, start.length + ID),
    /** Whether it is a key of this form with the right checksum. The length first, because the string may be megabytes long. */
    isKey: (text: string): boolean =>
      text.length === length && text.startsWith(start) && endsWithChecksum(text, start.length, crc),
  }
}

/** The SHA-256 of a key, in hex. A secret has 130 random bits, so a slow hash would cost time and protect nothing. */
const sha256Of = (key: string): string => digest(key, 'hex')

// The digests that a key may be stored under, by its SHA-256: one for each pepper, the newest first. Without a pepper a digest is the
// SHA-256. With one it is the HMAC of that.
const digestsWith = (peppers: ReadonlyArray<KeyObject>) => {
  const [newest, ...older] = peppers
  const seasoned = (sha256: string, pepper: KeyObject): string => mac(pepper, Buffer.from(sha256, 'hex'), 'hex')
  return (sha256: string): readonly [string, ...string[]] =>
    newest === undefined ? [sha256] : [seasoned(sha256, newest), ...older.map((pepper) => seasoned(sha256, pepper))]
}
