/**
 * Whether a password that a user chooses will do (NIST SP 800-63B-4 §3.1.1.2, OWASP ASVS 5.0 §6.2): its length, and whether it is
 * one that attackers try first. There are no rules about digits and capitals.
 */
import { createHash } from 'node:crypto'
import * as is from '../core/checks.js'
import { checkOptions, type Checks } from '../core/options.js'
import { report } from '../core/events.js'
import { commonFilter } from './commonPasswords.js'
import { normalForm } from './passwords.js'

/** The words of a user that the password must not contain; a member that is no string counts as missing. */
export interface PasswordUser {
  readonly username?: unknown
  readonly name?: unknown
  readonly email?: unknown
}

/** The demands on a new password. */
export interface NewPasswordOptions {
  /** The user who chooses it: it must not contain the `username`, the `name` or a part of it, the `email` or its local part. */
  readonly user?: PasswordUser | undefined
  /** Words that it must not contain, such as the name of the service. Upper and lower case are the same; one letter is no word. */
  readonly words?: ReadonlyArray<string> | undefined
  /** The fewest characters, from 8 to 128. Default 15, as NIST demands of a password without a second factor. */
  readonly min?: number | undefined
  /**
   * Asks a list of passwords that have leaked, by k-anonymity. It gets the first five hex digits of the SHA-1 of the password, in upper
   * case, and returns the lines of that range, `SUFFIX:COUNT`, as https://api.pwnedpasswords.com/range/ answers them. If it rejects, or
   * does not answer within 10 seconds, the password passes, and `on('password-check')` gets a record. Default: no such list.
   */
  readonly breached?: ((prefix: string) => string | Promise<string>) | undefined
}

/** Why a password will not do. */
export type PasswordReason = 'short' | 'long' | 'common' | 'context' | 'breached'

/** The password to hash, or why it will not do. */
export type NewPassword =
  { readonly ok: true; readonly password: string } | { readonly ok: false; readonly reason: PasswordReason }

const MIN_CHARACTERS = 8
const MAX_CHARACTERS = 128
const USUAL = 15
// A string of which normalization cannot make 128 characters is not normalized
const MAX_UNITS = 1024
// In milliseconds
const RANGE_TIMEOUT = 10_000

const checks: Checks<NewPasswordOptions> = {
  user: is.maybe(is.record),
  words: is.maybe(is.listOf(is.isFilled, 'must be an array of strings that are not empty')),
  min: is.maybe(
    is.that(
      (min) => Number.isInteger(min) && Number(min) >= MIN_CHARACTERS && Number(min) <= MAX_CHARACTERS,
      `must be an integer from ${MIN_CHARACTERS} to ${MAX_CHARACTERS}`,
    ),
  ),
  breached: is.maybe(is.hook(1)),
}

/**
 * Checks a password that a user chooses, when an account is made and when the password changes. It resolves to the password in the
 * normal form C of Unicode, for `hash`, or to the first reason against it:
 *
 * - `short`: fewer characters (code points) than `min`. A value that is no string, or has a lone surrogate or NUL, is no password at all.
 * - `long`: more than 128.
 * - `common`: one of the 10,000 commonest passwords of at least 8 characters, or a run of 15 to 20 digits or neighboring keys, in any
 *   case. A filter holds them, so it also refuses 0.012 % of other passwords, by the size of the filter.
 * - `context`: it contains something about the user, or one of `words`.
 * - `breached`: it has leaked.
 *
 * Never rejects because of the password. Rejects with a TypeError for options that cannot work.
 *
 * @example
 * import { hash, newPassword } from 'koa-with-auth/passwords'
 *
 * const chosen = await newPassword('correct horse battery staple', {
 *   user: { username: 'anna', email: 'anna@shop.example' },
 *   words: ['shop'],
 *   // breached: async (prefix) => (await fetch(`https://api.pwnedpasswords.com/range/${prefix}`)).text(),
 * })
 * const stored = chosen.ok ? await hash(chosen.password) : chosen.reason
 * assert.deepStrictEqual(await newPassword('anna-loves-her-shop'), { ok: true, password: 'anna-loves-her-shop' })
 * assert.deepStrictEqual(await newPassword('123456'), { ok: false, reason: 'short' })
 */
export const newPassword = async (text: unknown, options: NewPasswordOptions = {}): Promise<NewPassword> => {
  const { user = {}, words = [], min = USUAL, breached } = checkOptions('newPassword(text, options)', options, checks)
  if (typeof text !== 'string' || !text.isWellFormed() || text.includes('\0')) return { ok: false, reason: 'short' }
  if (text.length > MAX_UNITS) return { ok: false, reason: 'long' }
  const password = normalForm(text)
  const { length } = [...password]
  if (length < min) return { ok: false, reason: 'short' }
  if (length > MAX_CHARACTERS) return { ok: false, reason: 'long' }
  if (isCommon(password)) return { ok: false, reason: 'common' }
  const folded = foldedOf(password)
  if ([...wordsOfUser(user), ...words.map(foldedOf).filter(isWord)].some((one) => folded.includes(one))) {
    return { ok: false, reason: 'context' }
  }
  if (breached !== undefined && (await isBreached(password, breached))) return { ok: false, reason: 'breached' }
  return { ok: true, password }
}

// --- common ones

let commonHashes: ReadonlySet<number> | undefined

const isCommon = (password: string): boolean => {
  commonHashes ??= decodedFilter(commonFilter)
  const digest = createHash('sha256').update(password.toLowerCase()).digest()
  return commonHashes.has(digest.readUInt32BE() % commonFilter.size)
}

// Sorted numbers as their differences in a Rice code. Bits of 1 fill the last byte up, because they end no quotient
const decodedFilter = ({ bits, data }: typeof commonFilter): ReadonlySet<number> => {
  const bytes = Buffer.from(data, 'base64')
  const found = new Set<number>()
  let [last, quotient] = [0, 0]
  const bitAt = (at: number): number => ((bytes[at >>> 3] ?? 0) >>> (7 - (at & 7))) & 1
  for (let at = 0; at < bytes.length * 8; at++) {
    if (bitAt(at) === 1) {
      quotient++
      continue
    }
    let rest = 0
    for (let count = 0; count < bits; count++) rest = rest * 2 + bitAt(++at)
    last += quotient * 2 ** bits + rest
    quotient = 0
    found.add(last)
  }
  return found
}

// --- words of the context

const foldedOf = (text: string): string => text.normalize('NFKC').toLowerCase()

const isWord = (text: string): boolean => [...text].length > 1

// A part of two letters, such as "de", is in many good passwords
const PART = 3

const wordsOfUser = ({ username, name, email }: PasswordUser): ReadonlyArray<string> => {
  const [own, full, address] = [username, name, email].map((u) => (typeof u === 'string' ? foldedOf(u).trim() : ''))
  const parts = (full ?? '').split(/[\s,.]+/).filter((part) => [...part].length >= PART)
  return [own ?? '', full ?? '', ...parts, address ?? '', address?.split('@', 1)[0] ?? ''].filter(isWord)
}

// --- leaked ones

const isBreached = async (
  password: string,
  breached: NonNullable<NewPasswordOptions['breached']>,
): Promise<boolean> => {
  const digest = createHash('sha1').update(password).digest('hex').toUpperCase()
  const answer = await rangeOf(digest.slice(0, 5), breached)
  if (typeof answer !== 'string') {
    report('password-check')(() => ({ event: 'unanswered', reason: answer === silent ? 'silent' : 'failed' }))
    return false
  }
  return answer.split('\n').some((line) => {
    const [suffix = '', count = '1'] = line.trim().split(':', 2)
    // lines that only hide how many there are have the count 0
    return suffix.toUpperCase() === digest.slice(5) && Number(count) !== 0
  })
}

const silent = Symbol()

const rangeOf = async (prefix: string, breached: (prefix: string) => unknown): Promise<unknown> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<typeof silent>((resolve) => {
    timer = setTimeout(() => resolve(silent), RANGE_TIMEOUT)
  })
  try {
    return await Promise.race([Promise.resolve(prefix).then(breached), late])
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
