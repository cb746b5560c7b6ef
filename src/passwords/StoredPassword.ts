/**
 * The stored form of a password, which says how it was made: for Argon2id and scrypt the PHC string format
 * (https://github.com/P-H-C/phc-string-format), for bcrypt its own.
 *
 * It reads and writes this form, and hashes nothing. A string that no sensible program could have made is refused.
 */

/** The work of Argon2id: memory in KiB, passes, lanes. */
export interface Argon2Cost {
  readonly m: number
  readonly t: number
  readonly p: number
}

/** The work of scrypt: the binary logarithm of N, r, p. */
export interface ScryptCost {
  readonly ln: number
  readonly r: number
  readonly p: number
}

export type Method =
  { readonly _tag: 'argon2id'; readonly cost: Argon2Cost } | { readonly _tag: 'scrypt'; readonly cost: ScryptCost }

interface Bcrypt {
  readonly _tag: 'bcrypt'
  readonly text: string
}

export type StoredPassword = (Method & { readonly salt: Buffer; readonly key: Buffer }) | Bcrypt

const argon2id = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const scryptForm = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const bcrypt = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/

// An empty key would equal any other, and a long key could take any time
const SALT = [8, 64] as const
const KEY = [16, 64] as const
// The most that RFC 9106 and libsodium recommend: seconds of work. An attacker who can write the database must not stop the service
const MAX_MEMORY = 2 ** 21
const MAX_ARGON2_WORK = 2 ** 22
const MAX_LN = 21
const MAX_SCRYPT_WORK = 2 ** 24
const MAX_BCRYPT = 16
// In KiB. Hashes that need more are verified one at a time
const LARGE = 2 ** 17

const inRange = (value: number, [least, most]: readonly [number, number]): boolean => value >= least && value <= most

// The three costs in a PHC string, its salt and its key
const partsOf = (form: RegExp, text: string) => {
  const [, first, second, third, salt = '', key = ''] = form.exec(text) ?? []
  const derived = { salt: Buffer.from(salt, 'base64'), key: Buffer.from(key, 'base64') }
  if (!inRange(derived.salt.length, SALT) || !inRange(derived.key.length, KEY)) return undefined
  return { costs: [Number(first), Number(second), Number(third)] as const, derived }
}

/** Reads a stored password; `undefined` for any other string. Never throws. */
export const parse = (text: string): StoredPassword | undefined => {
  const argon = partsOf(argon2id, text)
  if (argon !== undefined) {
    const [m, t, p] = argon.costs
    const isSound = inRange(p, [1, 64]) && inRange(m, [8 * p, MAX_MEMORY]) && inRange(m * t, [m, MAX_ARGON2_WORK])
    return isSound ? { _tag: 'argon2id', cost: { m, t, p }, ...argon.derived } : undefined
  }
  const s = partsOf(scryptForm, text)
  if (s !== undefined) {
    const [ln, r, p] = s.costs
    const isSound =
      inRange(ln, [1, MAX_LN]) && inRange(r, [1, 32]) && inRange(p, [1, 64]) && 2 ** ln * r * p <= MAX_SCRYPT_WORK
    return isSound ? { _tag: 'scrypt', cost: { ln, r, p }, ...s.derived } : undefined
  }
  const b = bcrypt.exec(text)
  return b !== null && inRange(Number(b[1]), [4, MAX_BCRYPT]) ? { _tag: 'bcrypt', text } : undefined
}

/** The algorithm and the costs: stored passwords of the same work have the same. */
export const workOf = (stored: Method | Bcrypt): string =>
  stored._tag === 'bcrypt' ? `bcrypt ${stored.text.slice(4, 6)}` : JSON.stringify([stored._tag, stored.cost])

/** Whether verifying it takes so much memory that several at a time could exhaust the machine's. */
export const isLarge = (stored: StoredPassword): boolean => {
  if (stored._tag === 'bcrypt') return false
  return (stored._tag === 'argon2id' ? stored.cost.m : (2 ** stored.cost.ln * stored.cost.r) / 8) > LARGE
}

// The PHC string format leaves the padding out
const base64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')

export const printPassword = (stored: StoredPassword): string => {
  if (stored._tag === 'bcrypt') return stored.text
  const { salt, key } = stored
  const tail = `$${base64(salt)}$${base64(key)}`
  if (stored._tag === 'scrypt') return `$scrypt$ln=${stored.cost.ln},r=${stored.cost.r},p=${stored.cost.p}${tail}`
  return `$argon2id$v=19$m=${stored.cost.m},t=${stored.cost.t},p=${stored.cost.p}${tail}`
}

// OWASP, Password Storage Cheat Sheet: all pairs are the same work. The passes by memory, and p by the logarithm of N
const enoughArgon2 = Object.entries({ 47104: 1, 19456: 2, 12288: 3, 9216: 4, 7168: 5 })
const enoughScrypt = Object.entries({ 17: 1, 16: 2, 15: 3, 14: 5, 13: 10 })

/** Whether it is as much work as OWASP recommends, with a salt of 16 bytes. bcrypt is for old passwords only. */
export const isEnough = (stored: StoredPassword): boolean => {
  if (stored._tag === 'bcrypt' || stored.salt.length < 16) return false
  if (stored._tag === 'argon2id') return enoughArgon2.some(([m, t]) => stored.cost.m >= Number(m) && stored.cost.t >= t)
  return stored.cost.r >= 8 && enoughScrypt.some(([ln, p]) => stored.cost.ln >= Number(ln) && stored.cost.p >= p)
}
