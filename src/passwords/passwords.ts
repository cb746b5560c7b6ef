/**
 * Passwords are hashed as OWASP recommends. They are verified so that guesses do not reveal which users exist, and do not stop the
 * service.
 *
 * - A wrong password takes as long for a user of any stored hash as for an unknown user: as long as the costliest kind of hash that this
 *   process has verified.
 * - At most one password for each core is hashed at a time, and never on all of Node's threads, because files and host names need
 *   them, too. The others wait in a queue. If the queue is full, `hash` and `verify` reject with an `UnavailableError`, which is a
 *   503.
 * - More than 4096 bytes are refused before any work.
 * - A password is hashed in the normal form C of Unicode, and verified in the other forms, too, if it is not ASCII.
 * - A stored hash that demands more work than a sensible program does is a TypeError. Hashes that need more than 128 MiB are
 *   verified one at a time.
 *
 * It does not limit guesses. Use `throttled` of `koa-with-auth` for that.
 */
import * as crypto from 'node:crypto'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { argon2OfNode, argon2OfPackage, type Derive } from './argon2.js'
import { fromNow, memory, type Memory } from '../core/memory.js'
import { makeQueue, widthFor, type WorkQueue } from './Queue.js'
import { isEnough, isLarge, parse, printPassword, workOf } from './StoredPassword.js'
import type { Argon2Cost, Method, ScryptCost, StoredPassword } from './StoredPassword.js'

/*
 * The algorithm is Argon2id of node:crypto, or else of `@node-rs/argon2`, or else scrypt. `@node-rs/bcrypt` verifies
 * old passwords of bcrypt. All work on Node's threads, not on the event loop.
 */

// One may exist but not work: in a build of OpenSSL without it, or as a binary for another system
const works = async (derive: Derive<Argon2Cost> | undefined): Promise<Derive<Argon2Cost> | undefined> => {
  if (derive === undefined) return undefined
  const key = await derive(Buffer.from('password'), Buffer.alloc(16), { m: 8, t: 1, p: 1 }, 16).catch(() => undefined)
  return key?.length === 16 ? derive : undefined
}

const findArgon2 = async (): Promise<Derive<Argon2Cost> | undefined> =>
  (await works(argon2OfNode())) ?? (await works(await argon2OfPackage()))

const derivedByScrypt = promisify<Buffer, Buffer, number, crypto.ScryptOptions, Buffer>(crypto.scrypt)

const scrypt: Derive<ScryptCost> = (password, salt, { ln, r, p }, length) => {
  const N = 2 ** ln
  // the need of RFC 7914, and some room; Node's default would refuse more than 2^14
  const maxmem = 128 * r * (N + p + 8)
  return derivedByScrypt(password, salt, length, { N, r, p, maxmem })
}

type VerifyBcrypt = (password: Buffer, stored: string) => Promise<boolean>

/** bcrypt of `@node-rs/bcrypt`; `undefined` if it is not installed. */
const findBcrypt = async (): Promise<VerifyBcrypt | undefined> => {
  const found = await import('@node-rs/bcrypt').catch(() => undefined)
  return found && ((password, stored) => found.verify(password, stored))
}

// The lengths of inputs, and the work of a new hash
const MAX_PASSWORD_BYTES = 4096
// bcrypt ignores the rest of a password
const MAX_BCRYPT_BYTES = 72
const SALT_BYTES = 16
const KEY_BYTES = 32
// OWASP, Password Storage Cheat Sheet
const argon2Today: Method = { _tag: 'argon2id', cost: { m: 19456, t: 2, p: 1 } }
const scryptToday: Method = { _tag: 'scrypt', cost: { ln: 14, r: 8, p: 5 } }

const LIMIT = 256
const QUEUE_PATIENCE = 5000

interface Shared {
  readonly line: WorkQueue
  /** The queue of hashes that take much memory, so that at most one of them is in `line`. */
  readonly large: WorkQueue
  argon2?: Promise<Derive<Argon2Cost> | undefined>
  bcrypt?: Promise<VerifyBcrypt | undefined>
  /** Whether Argon2id works here; `undefined` before it was tried. */
  hasArgon2?: boolean
  /** How long each kind of hash takes here, see `work`. */
  readonly durations: Map<string, number>
  unit?: number
  /** Hashes that were made of another form than C: `verify` sees it, and `needsRehash` is asked after that. */
  readonly otherForms: Memory<true>
  /** The forms of hashes that no program of this package makes, as warnings named them. */
  readonly warnedForms: Set<string>
}

// Two copies of the package in one process share its cores
const key = Symbol.for('koa-with-auth/passwords')
// Safe: nothing else is kept under this symbol
const globalPasswords = globalThis as { [key]?: Shared }
const sharedState = (): Shared =>
  (globalPasswords[key] ??= {
    line: makeQueue({
      width: widthFor(availableParallelism(), process.env['UV_THREADPOOL_SIZE']),
      limit: LIMIT,
      patience: QUEUE_PATIENCE,
    }),
    large: makeQueue({ width: 1, limit: LIMIT, patience: QUEUE_PATIENCE }),
    durations: new Map(),
    otherForms: memory({ size: 1000, maxAge: Infinity, dropsFirst: 'oldest' }),
    warnedForms: new Set(),
  })

const argon2 = (): Promise<Derive<Argon2Cost> | undefined> => {
  const all = sharedState()
  return (all.argon2 ??= findArgon2().then((found) => {
    all.hasArgon2 = found !== undefined
    return found
  }))
}

// Unicode sorts the marks in a row one by one, which takes a time that grows with the square of their number. No script has so many
const MAX_MARKS = 256

const isPassword = (password: unknown): password is string =>
  typeof password === 'string' &&
  password.length <= MAX_PASSWORD_BYTES &&
  password.split(/\P{M}+/u).every((marks) => marks.length <= MAX_MARKS)

/** A password as it is hashed: in the normal form C, with plain blanks; some keyboards make another blank (RFC 8265 §4.2.2). */
export const normalForm = (password: string): string => password.normalize('NFC').replace(/\p{Zs}/gu, ' ')

// The bytes of a password: of its normal form, and after it those of other forms, which an older hash may have been made of. A browser
// may send `é` as one character or as two. Empty if it is no password.
const unicodeForms = (password: unknown): ReadonlyArray<Buffer> => {
  if (!isPassword(password)) return []
  const composed = passwordBytes(normalForm(password))
  if (composed === undefined) return []
  const others = new Set([password, password.normalize('NFC'), password.normalize('NFD')])
  others.delete(normalForm(password))
  return [composed, ...[...others].flatMap((other) => passwordBytes(other) ?? [])]
}

const passwordBytes = (password: string): Buffer | undefined => {
  // Otherwise two passwords would be equal. A Buffer replaces a lone surrogate. The HMAC of scrypt appends NUL to a short
  // password (RFC 2104 §2). bcrypt repeats a password, with NUL in between
  if (!password.isWellFormed() || password.includes('\0')) return undefined
  const bytes = Buffer.from(password)
  return bytes.length > 0 && bytes.length <= MAX_PASSWORD_BYTES ? bytes : undefined
}

const needs = (algorithm: string, fix: string): TypeError =>
  new TypeError(`verify(stored, password): stored was hashed by ${algorithm}; ${fix}`)

const derivedKey = async (method: Method, password: Buffer, salt: Buffer, length: number): Promise<Buffer> => {
  if (method._tag === 'scrypt') return timed(workOf(method), () => scrypt(password, salt, method.cost, length))
  const derive = await argon2()
  if (derive === undefined) throw needs('Argon2id', 'npm install @node-rs/argon2, or run Node 24.7 or later')
  return timed(workOf(method), () => derive(password, salt, method.cost, length))
}

const hashed = async (password: Buffer): Promise<StoredPassword> => {
  const method = (await argon2()) === undefined ? scryptToday : argon2Today
  const salt = crypto.randomBytes(SALT_BYTES)
  return { ...method, salt, key: await derivedKey(method, password, salt, KEY_BYTES) }
}

/**
 * Hashes a password, as a PHC string to store: Argon2id (19 MiB, 2 passes) of node:crypto from Node 24.7 on, or else of
 * `@node-rs/argon2` if it is installed, or else scrypt (N 2^14, r 8, p 5). The password is hashed in the normal form C of Unicode, so
 * it is the same on every keyboard (RFC 8265 §4.2.2).
 *
 * Rejects with a RangeError for a password that is empty, longer than 4096 bytes, or not well-formed Unicode, or that contains
 * NUL or more than 256 combining marks in a row. Rejects with an `UnavailableError` if the queue is full.
 *
 * @example
 * import { hash, verify } from 'koa-with-auth/passwords'
 *
 * const stored = await hash('correct horse battery staple')
 * assert.match(stored, /^\$(argon2id|scrypt)\$/)
 * assert(await verify(stored, 'correct horse battery staple'))
 */
export const hash = async (password: string): Promise<string> => {
  const [bytes] = unicodeForms(password)
  if (bytes === undefined) {
    throw new RangeError(
      `hash(password): a password must be well-formed Unicode of 1 to ${MAX_PASSWORD_BYTES} bytes, without NUL, and with at most ${MAX_MARKS} combining marks in a row`,
    )
  }
  return printPassword(await sharedState().line(() => hashed(bytes)))
}

/**
 * Resolves to whether a password matches a stored hash of Argon2id, scrypt or, with `@node-rs/bcrypt`, bcrypt. For bcrypt,
 * passwords over 72 bytes are refused. If `stored` is `undefined`, `null` or `''`, because there is no such user, or none with a
 * password, it resolves to `false`. A wrong password takes the same time for each of them: that of the costliest kind of hash that this
 * process has verified. The same holds for any other string, such as a hash of another framework or `!locked`: it is a process warning,
 * once for each form. A password is the same in all forms of Unicode; for a password that is not ASCII, a hash of older programs may have been
 * made of other bytes, which are tried, too.
 *
 * Rejects with an `UnavailableError` if the queue is full; in a guard that is a 503. Rejects with a TypeError if `stored` is no string,
 * or if it needs a package that is not installed.
 *
 * @example
 * import { httpBasicAuth } from 'koa-with-auth'
 * import { hash, verify } from 'koa-with-auth/passwords'
 *
 * const users = new Map([['anna', { name: 'anna', password: await hash('anna-secret') }]])
 * const basic = httpBasicAuth({
 *   authenticate: async (_request, username, password) => {
 *     const user = users.get(username)
 *     return (await verify(user?.password, password)) && user
 *   },
 * })
 */
export const verify = async (stored: string | null | undefined, password: string): Promise<boolean> => {
  const forms = unicodeForms(password)
  if (forms.length === 0) return false
  // Some applications store an empty string for users who have no password
  const parsed = stored === undefined || stored === null || stored === '' ? undefined : readableHash(stored)
  const { line, large } = sharedState()
  const verified = async (): Promise<boolean> => {
    for (const [at, bytes] of forms.entries()) {
      if (!(await verifiedBytes(parsed, bytes))) continue
      if (at > 0 && typeof stored === 'string') sharedState().otherForms.set(stored, fromNow(true))
      return true
    }
    return false
  }
  return parsed !== undefined && isLarge(parsed) ? large(() => line(verified)) : line(verified)
}

const verifiedBytes = async (parsed: StoredPassword | undefined, bytes: Buffer): Promise<boolean> => {
  // bcrypt would cut a longer password
  if (parsed === undefined || (parsed._tag === 'bcrypt' && bytes.length > MAX_BCRYPT_BYTES)) return inVain(bytes)
  return (await matches(parsed, bytes)) || completed(parsed, bytes)
}

const readableHash = (stored: unknown): StoredPassword | undefined => {
  if (typeof stored !== 'string')
    throw new TypeError('verify(stored, password): stored must be a string; is hash(...) awaited?')
  const parsed = parse(stored)
  if (parsed === undefined) warnOfForm(stored)
  return parsed
}

// Only the name of a form, so that no part of a hash is written
const formOf = (stored: string): string =>
  /^[a-z][a-z\d_-]{0,24}(?=[$:])|^!|^\$[a-z\d-]{1,16}(?=\$)/i.exec(stored)?.[0] ?? 'another form'

const MAX_FORMS = 20

const warnOfForm = (stored: string): void => {
  const form = formOf(stored)
  const { warnedForms } = sharedState()
  if (warnedForms.has(form) || warnedForms.size >= MAX_FORMS) return
  warnedForms.add(form)
  process.emitWarning(
    `verify(stored, password): a stored hash (${form}) is no supported hash of Argon2id, scrypt or bcrypt; no password matches it`,
    'PasswordWarning',
  )
}

const matches = async (stored: StoredPassword, password: Buffer): Promise<boolean> => {
  if (stored._tag === 'bcrypt') {
    const verifyBcrypt = await (sharedState().bcrypt ??= findBcrypt())
    if (verifyBcrypt === undefined) throw needs('bcrypt', 'npm install @node-rs/bcrypt')
    return timed(workOf(stored), () => verifyBcrypt(password, stored.text))
  }
  return crypto.timingSafeEqual(await derivedKey(stored, password, stored.salt, stored.key.length), stored.key)
}

// `parse` bounds the costs, and an application has few kinds of hashes
const MAX_KINDS = 100

// Begins to measure work, in milliseconds: its time, or the processor time of this process if that is less. On a busy machine most of
// the time is a wait for the processor, and each kind of hash would wait for another time.
const stopwatch = (): (() => number) => {
  const [begun, used] = [performance.now(), process.cpuUsage()]
  return () => {
    const { user, system } = process.cpuUsage(used)
    return Math.min(performance.now() - begun, (user + system) / 1000)
  }
}

/** Does some work, and notes the least time that this kind of work ever took: more was work of others. */
const timed = async <A>(work: string, run: () => Promise<A>): Promise<A> => {
  const { durations } = sharedState()
  const elapsed = stopwatch()
  const done = await run()
  const before = durations.get(work)
  if (before !== undefined || durations.size < MAX_KINDS) {
    durations.set(work, Math.min(elapsed(), before ?? Infinity))
  }
  return done
}

const inVain = async (password: Buffer): Promise<false> => completed(await hashed(password), password)

const unitCost = { ln: 12, r: 8, p: 1 }
const noSalt = Buffer.alloc(SALT_BYTES)
const MEASURED = 3
// In milliseconds. One user whose hash takes seconds must not make each wrong password take seconds
const MAX_DURATION = 3000

/**
 * Does the work by which a cheaper kind of hash falls short of the costliest.
 *
 * Users of an older system have hashes of other kinds and costs. If each took its own time, an attacker could learn from the time which
 * users exist. So this process notes how long each kind of hash takes. Whatever a wrong password takes less than the costliest of them, it
 * takes as more work, in units of scrypt, which are measured, too. An unknown user's password takes a hash of today first.
 */
const completed = async (stored: StoredPassword, password: Buffer): Promise<false> => {
  const all = sharedState()
  const costliest = Math.min(MAX_DURATION, Math.max(...all.durations.values()))
  const lack = costliest - (all.durations.get(workOf(stored)) ?? 0)
  if (lack <= 0) return false
  all.unit ??= await measuredUnit(password)
  const p = Math.round(lack / all.unit)
  if (p === 0) return false
  const elapsed = stopwatch()
  await scrypt(password, noSalt, { ...unitCost, p }, KEY_BYTES)
  // A unit that was measured while the process was busy would be too long, and the rest would then stay too short
  all.unit = Math.min(all.unit, elapsed() / p)
  return false
}

const measuredUnit = async (password: Buffer): Promise<number> => {
  let least: number = MAX_DURATION
  for (let at = 0; at < MEASURED; at++) {
    const elapsed = stopwatch()
    await scrypt(password, noSalt, unitCost, KEY_BYTES)
    least = Math.min(least, elapsed())
  }
  return least
}

/**
 * Whether a password that was just verified should be hashed again: if `hash` uses another algorithm here, if the hash
 * took less work than OWASP recommends, if it was made of another form of Unicode (as `verify` has just found in this process), or if
 * `stored` is not a hash. Never throws.
 *
 * @example
 * import { hash, needsRehash, verify } from 'koa-with-auth/passwords'
 *
 * const user = { password: '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy' }
 * const signIn = async (password: string) => {
 *   if (!(await verify(user.password, password))) return false
 *   if (needsRehash(user.password)) user.password = await hash(password) // and keep it
 *   return true
 * }
 * assert(needsRehash(user.password))
 */
export const needsRehash = (stored: string): boolean => {
  const parsed = typeof stored === 'string' ? parse(stored) : undefined
  if (parsed === undefined || !isEnough(parsed) || sharedState().otherForms.get(stored) === true) return true
  // Before the first hash it is unknown whether Argon2id works. Then one hash too many may be made
  return parsed._tag === 'scrypt' && sharedState().hasArgon2 !== false
}
