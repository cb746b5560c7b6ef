/**
 * Second factors: codes of an authenticator app (TOTP, RFC 6238), and recovery codes. `secondFactor` makes one kind of them,
 * which finishes a sign-in that `askSecondFactor` began.
 */
import { createHmac, randomBytes, randomInt } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import * as AuthErrors from '../core/AuthError.js'
import type { Result } from '../core/Result.js'
import type { OneTimeIds } from '../core/OneTimeIds.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactories, token, typeName } from '../core/options.js'
import type { Limiter, Limiters } from '../guesses/Limiter.js'
import { memoryLimiter } from '../guesses/memoryLimiter.js'
import { clientAddress } from '../guesses/addresses.js'
import { counting } from '../guesses/Guess.js'
import { derivedFrom, keysFix, strengthOf } from '../crypto/appKeys.js'
import { constantTimeEqual, decrypt, digest, encrypt, mac } from '../crypto/secrets.js'
import { idsIn } from '../stores/oneTimeIds.js'
import { storeLike, timedStore, type Store } from '../stores/Store.js'
import { requestSessionOf } from '../sessions/RequestSession.js'
import { contextOf, type WithRequest } from '../sessions/SignIn.js'
import { caught, DAY_SECONDS, thrownFor, usualLimiters } from './countFailures.js'
import { routePath, typedCode, typedDigits, type Kind } from './Kind.js'

/** One way to give a second factor by a code. */
export interface CodeFactor {
  /** The method of its proof. */
  readonly method: string
  /** Whether a code is right, and was not used before. It is used up. Rejects in an outage. */
  readonly verify: (user: string, code: unknown) => Promise<boolean>
  /** Whether a user has set it up. Left out: every user has. */
  readonly has?: ((user: string) => boolean | Promise<boolean>) | undefined
  /** Whether it only replaces another factor, as recovery codes do. Default `false`. */
  readonly isSpare?: boolean | undefined
  /** Whether its codes are digits, which phones can show. Default `false`. */
  readonly isNumeric?: boolean | undefined
}

const rootsOf = (keys: () => unknown, purpose: string): ReadonlyArray<Buffer> => {
  const now = keys()
  if (strengthOf(now) === 'weak') throw new TypeError(keysFix)
  return derivedFrom(now, `koa-with-auth/${purpose}`)
}

// --- TOTP

const TOTP_STEP = 30_000
const TOTP_DIGITS = 6
const SECRET_BYTES = 20
// How long the store keeps the newest step of a secret, so that no older code is good when the clock is set back
const STEP_LIFETIME = 90 * 86_400_000
const STORE_TIMEOUT = 2000
// More codes of one user cannot be good at once
const CHANGES = 3

/** Notes the step of a code as the newest, if it is the newest: of two codes at once, only the first replaces the text that both have read. */
const isNewest = async (store: Store, name: string, step: number): Promise<boolean> => {
  for (let tries = 0; tries < CHANGES; tries++) {
    const [was] = await store.get([name])
    // also after the clock was set back
    if (was !== undefined && !(step > Number(was))) return false
    const isNoted =
      was === undefined
        ? store.insert(name, String(step), STEP_LIFETIME)
        : store.update(name, String(step), STEP_LIFETIME, was)
    if (await isNoted) return true
  }
  return false
}

/** The code of a step: RFC 4226 §5.3, by SHA-1 as the apps demand (RFC 6238 §4). */
const codeOfStep = (secret: Buffer, step: number): string => {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const offset = (mac.at(-1) ?? 0) & 0xf
  return String((mac.readUInt32BE(offset) & 0x7fff_ffff) % 10 ** TOTP_DIGITS).padStart(TOTP_DIGITS, '0')
}

const base32Alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 §6, without padding. */
const base32 = (bytes: Buffer): string => {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  return (bits.match(/.{1,5}/g) ?? []).map((five) => base32Alphabet[Number.parseInt(five.padEnd(5, '0'), 2)]).join('')
}

/** How codes of an authenticator app work. */
export interface TotpOptions {
  /** The name of the service, which the app shows. */
  readonly issuer: string
  /** The keys that encrypt secrets at rest: `() => app.keys`. The first encrypts, all decrypt. */
  readonly keys: () => unknown
  /** The sealed secret of a user, as `enrol` made it, once it is active; `undefined` if there is none. */
  readonly secretOf: (user: string) => string | undefined | Promise<string | undefined>
  /** Where used codes are kept: the store of the sessions. */
  readonly store: Store
  /**
   * How many steps of 30 seconds before and after the present step are good, too: 1 for clocks that differ, and for people who type
   * slowly; 0 for the present step alone, so that a code lives 30 seconds at most (OWASP ASVS 5.0 §6.5.5). Default 1.
   */
  readonly window?: 0 | 1 | undefined
}

/** A secret for an app. */
export interface Enrolment {
  /** In base32, to type it. */
  readonly secret: string
  /** `otpauth://`, to show it as a QR code. */
  readonly uri: string
  /** The encrypted secret. Keep it for `secretOf` once `confirm` resolved to `true`. */
  readonly sealed: string
}

/** Codes of an authenticator app. */
export interface Totp extends CodeFactor {
  /** Makes a secret for a user; `account` is the name that the app shows. */
  readonly enrol: (user: string, account?: string) => Enrolment
  /** Whether the first code of a secret is right. It is used up. Then the application makes the secret active. */
  readonly confirm: (user: string, sealed: string, code: unknown) => Promise<boolean>
}

/**
 * Codes of an authenticator app: six digits, 30 seconds, SHA-1, by default a window of one step. A code is good once; after it, no
 * older one is, also if the clock is set back. Secrets are encrypted for their user, and cannot be exchanged in the
 * database. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { memoryStore } from 'koa-with-auth/stores'
 * import { totp } from 'koa-with-auth/sign-in'
 *
 * const secrets = new Map<string, string>()
 * const app2fa = totp({
 *   issuer: 'Shop',
 *   keys: () => ['at least 32 characters, and kept outside the code'], // () => app.keys
 *   secretOf: (user) => secrets.get(user),
 *   store: memoryStore(), // the store of sessions(app, { store })
 * })
 * const { uri, sealed } = app2fa.enrol('anna')
 */
export const totp = (options: TotpOptions): Totp => {
  const window = is.maybe(is.that((value) => value === 0 || value === 1, 'must be 0 or 1'))
  const checks = { issuer: is.nonEmpty, keys: is.hook(0), secretOf: is.hook(1), store: storeLike, window }
  const given = checkOptions<TotpOptions>('totp', options, checks)
  const { issuer, keys, secretOf, window: around = 1 } = given
  const inStore = timedStore('one-time-ids', given.store, STORE_TIMEOUT)
  const open = (user: string, sealed: string): Buffer => {
    const raw = Buffer.from(sealed, 'base64url')
    for (const root of rootsOf(keys, 'totp')) {
      const secret = decrypt(root, raw, user)
      if (secret !== undefined) return secret
    }
    throw new Error('totp: no key of app.keys opens the secret of this user; keep old keys in the list')
  }
  // A secret in another form, such as the bytes of a driver, would switch the second factor off
  const sealedOf = async (user: string): Promise<string | undefined> => {
    // databases answer null for a row that is not there
    const sealed: unknown = (await secretOf(user)) ?? undefined
    if (sealed === undefined || is.isFilled(sealed)) return sealed
    throw new TypeError(
      `totp({ secretOf }) must return the sealed secret as a string, or undefined, not ${typeName(sealed)}`,
    )
  }
  const confirm = async (user: string, sealed: string, typed: unknown): Promise<boolean> => {
    const secret = open(user, sealed)
    const step = stepOf(secret, typedDigits(typed) ?? '', around)
    const id = JSON.stringify(['totp', user, digest(secret)])
    return step !== undefined && isNewest(inStore, `koa-with-auth/totp/${digest(id)}`, step)
  }
  return {
    method: 'totp',
    isNumeric: true,
    enrol: (user, account = user) => {
      const bytes = randomBytes(SECRET_BYTES)
      const secret = base32(bytes)
      const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
      const uri = `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}`
      const [root] = rootsOf(keys, 'totp')
      // Safe: strong keys are at least one
      return { secret, uri, sealed: encrypt(root as Buffer, bytes, user).toString('base64url') }
    },
    confirm,
    has: async (user) => (await sealedOf(user)) !== undefined,
    verify: async (user, code) => {
      const sealed = await sealedOf(user)
      return sealed !== undefined && confirm(user, sealed, code)
    },
  }
}

// The step of a code; every step is compared, so the time does not show which step fits
const stepOf = (secret: Buffer, code: string, around: number): number | undefined => {
  const now = Math.floor(Date.now() / TOTP_STEP)
  let found: number | undefined
  for (let step = now - around; step <= now + around; step++) {
    if (constantTimeEqual(code, codeOfStep(secret, step))) found = step
  }
  return found
}

// --- recovery codes

const COUNT = 10
const CODE_BYTES = 15

/** How recovery codes work. */
export interface RecoveryCodesOptions {
  /** The keys that digest codes: `() => app.keys`. */
  readonly keys: () => unknown
  /**
   * Removes one of these digests from those of a user, and resolves to whether it was there. In one statement, so that a code
   * is used once: `delete from recovery where user = ? and digest in (...)`.
   */
  readonly use: (user: string, digests: ReadonlyArray<string>) => boolean | Promise<boolean>
}

/** A new set of codes. */
export interface RecoverySet {
  /** To be shown once. */
  readonly codes: ReadonlyArray<string>
  /** To be kept instead of the set before. */
  readonly digests: ReadonlyArray<string>
}

/** Recovery codes. */
export interface RecoveryCodes extends CodeFactor {
  /** Makes ten codes of 120 random bits, in groups of four characters. */
  readonly make: (user: string) => RecoverySet
}

/**
 * Recovery codes, for users who have lost their authenticator app. The application keeps digests only, and each code is
 * good once. With 120 bits a digest needs neither salt nor work (OWASP ASVS 5.0 §6.5.2). Throws a TypeError for options that cannot
 * work.
 *
 * @example
 * import { recoveryCodes } from 'koa-with-auth/sign-in'
 *
 * const kept = new Map<string, Set<string>>()
 * const recovery = recoveryCodes({
 *   keys: () => ['at least 32 characters, and kept outside the code'], // () => app.keys
 *   use: (user, digests) => digests.some((digest) => kept.get(user)?.delete(digest) === true),
 * })
 * const { codes, digests } = recovery.make('anna')
 * kept.set('anna', new Set(digests))
 */
export const recoveryCodes = (options: RecoveryCodesOptions): RecoveryCodes => {
  const { keys, use } = checkOptions('recoveryCodes', options, { keys: is.hook(0), use: is.hook(2) })
  const digestsOf = (user: string, code: string): ReadonlyArray<string> =>
    rootsOf(keys, 'recovery').map((root) => mac(root, JSON.stringify([user, code])))
  return {
    method: 'recovery',
    isSpare: true,
    make: (user) => {
      const made = Array.from({ length: COUNT }, () => base32(randomBytes(CODE_BYTES)))
      return {
        codes: made.map((code) => code.replace(/.{4}(?=.)/g, '$&-')),
        digests: made.flatMap((code) => digestsOf(user, code).slice(0, 1)),
      }
    },
    verify: async (user, typed) => {
      const code = typedCode(typed)?.toUpperCase() ?? ''
      return /^[A-Z2-7]{24}$/.test(code) && (await use(user, digestsOf(user, code))) === true
    },
  }
}

// --- the kind

/** How codes finish a sign-in. */
export interface SecondFactorOptions {
  /** Such as `[totp({ ... }), recoveryCodes({ ... })]`. */
  readonly factors: ReadonlyArray<CodeFactor>
  /**
   * Counts wrong codes, by user and address of the client. Default: as `passwordSignIn` counts. With any limiter, this kind checks at
   * most 100 wrong codes of a user in a day, from all addresses, in all processes that share the store of the sessions.
   */
  readonly limiter?: Limiter | Limiters | undefined
  /** A name that distinguishes these codes from others with the same factors, such as `staff`. */
  readonly name?: string | undefined
  /** How long a half sign-in can be finished, in milliseconds. Default 10 minutes. */
  readonly lifetime?: number | undefined
  /** The path of `finish(code, ...)`: where pages post the code. Those of `passwordSignIn` need none. */
  readonly path?: string | undefined
}

interface CodeAnswer {
  readonly code: unknown
  readonly from: string
}

interface CodeProof {
  readonly method: string
  readonly subject: string
}

/** A kind whose answer is a code. */
export interface SecondFactor extends Kind<unknown, null, CodeAnswer, CodeProof, { readonly handle: string }> {
  /**
   * The proof by a code of a user who is signed in, for `addProof`. Wrong codes are counted by the same limiter. Rejects
   * with `SignInRefused` for a wrong code (403), for too many (429), and in an outage (503).
   */
  readonly prove: (ctx: WithRequest, user: string, code: unknown) => Promise<CodeProof>
  /** Whether a user has set up one of the factors; a spare factor does not count beside others. */
  readonly has: (user: string) => Promise<boolean>
}

// Counts a wrong code where all processes see it: it takes one of so many places, which no race goes around
const inAllProcesses = async <A>(
  ids: OneTimeIds | undefined,
  user: string,
  run: () => Promise<Result<A>>,
): Promise<Result<A>> => {
  if (ids === undefined) return run()
  // from anywhere, so that few are asked while few are taken
  const first = randomInt(MAX_WRONG_CODES)
  const placeAt = (at: number) => `wrong codes of ${user}.${(first + at) % MAX_WRONG_CODES}`
  let at = 0
  while (!(await ids.use(placeAt(at), DAY_SECONDS * 1000))) {
    at++
    if (at === MAX_WRONG_CODES) return E.left(AuthErrors.throttled(DAY_SECONDS))
  }
  const result = await caught(run)
  // if the store fails now, it stays counted
  if (E.isRight(result) || result.left.reason !== 'wrong') await ids.release(placeAt(at)).catch(() => undefined)
  return result
}

const CODE_TRIES = 5

// NIST SP 800-63B §3.2.2: at most 100 wrong codes in a row for an account
const MAX_WRONG_CODES = 100

/**
 * A kind whose answer is a code of a second factor; its name has the factors, so no others finish its beginnings.
 * `askSecondFactor(ctx, code, { user, proof })` begins it, and answers `{ handle }`; `finish` takes `{ handle, code }`. Five tries, wrong
 * ones are counted. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { finish, secondFactor, type CodeFactor } from 'koa-with-auth/sign-in'
 *
 * declare const factors: CodeFactor[] // [totp({ ... }), recoveryCodes({ ... })]
 * const users = new Map([['anna', { username: 'anna' }]])
 * const make = () => finish(secondFactor({ factors }), (_ctx, { proof }) => users.get(proof.subject)) // POST /sign-in/code
 */
export const secondFactor = (options: SecondFactorOptions): SecondFactor => {
  const given = checkOptions('secondFactor', options, {
    factors: is.list,
    limiter: is.unchecked,
    name: is.maybe(is.nameLike(token)),
    lifetime: is.maybe(is.positive),
    path: is.maybe(routePath("finish(code, ...), such as '/sign-in/code'")),
  })
  const { factors, limiter = usualLimiters(), name, lifetime = 600_000, path } = given
  const self = codesOf(factors, limiter)
  const isNumeric = factors.every((factor) => factor.isNumeric === true)
  return {
    name: ['code', name, factors.map(({ method }) => method).join()].filter((part) => part !== undefined).join(':'),
    lifetime,
    tries: CODE_TRIES,
    leadsAgain: true,
    form: {
      answer: [
        { name: 'code', type: 'text', autocomplete: 'one-time-code', ...(isNumeric && { inputmode: 'numeric' }) },
      ],
      path,
    },
    has: (user) => hasFactor(factors, user),
    begin: (_incoming, { subject }) => {
      if (subject === undefined)
        throw new TypeError('secondFactor: begin it by askSecondFactor(ctx, code, { user, proof })')
      return E.right({ kept: null, send: (handle) => ({ body: { handle } }) })
    },
    read: ({ method, body, address }) =>
      method === 'POST' && typeof body['handle'] === 'string'
        ? { handle: body['handle'], answer: { code: body['code'], from: address } }
        : undefined,
    check: (_kept, { code, from }, { subject = '', ids }) => checkCode(self, subject, code, from, ids),
    prove: async (given, user, code) => {
      const { request }: { readonly request: Request } = contextOf('prove(ctx, user, code)', given)
      const { host } = requestSessionOf(request.ctx)
      const ids = host && idsIn(host.store, host.name)
      const proven = await caught(() => checkCode(self, user, code, clientAddress(request), ids))
      if (E.isLeft(proven)) throw thrownFor(proven.left)
      return proven.right
    },
  }
}

const codesOf = (factors: ReadonlyArray<CodeFactor>, limiter: Limiter | Limiters) => ({
  factors,
  count: counting(limiter, 'secondFactor'),
  // a guesser who knows the password has as many addresses as they like
  ofAccount: counting(memoryLimiter(MAX_WRONG_CODES, DAY_SECONDS), 'secondFactor'),
})

const checkCode = (
  self: ReturnType<typeof codesOf>,
  user: string,
  code: unknown,
  from: string,
  ids: OneTimeIds | undefined,
) =>
  self.ofAccount(user, '', () =>
    self.count(user, from, () =>
      inAllProcesses(ids, user, async () => {
        for (const { method, verify } of self.factors) {
          if ((await verify(user, code)) === true) return E.right({ method, subject: user })
        }
        return E.left(AuthErrors.unfinished('wrong'))
      }),
    ),
  )

const hasFactor = async (factors: ReadonlyArray<CodeFactor>, user: string): Promise<boolean> => {
  const own = factors.filter((factor) => factor.isSpare !== true)
  for (const factor of own.length === 0 ? factors : own) {
    if (factor.has === undefined || (await factor.has(user)) !== false) return true
  }
  return false
}

declareFactories({ totp, recoveryCodes, secondFactor })
