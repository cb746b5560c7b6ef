/**
 * `remembered`: for a time that its author chose, a credential that has passed passes again without a call of its hook. In that time a
 * changed password, a revoked key and a deleted user still pass, unless `forget` is called.
 *
 * It keeps the principal that one kind let in, by a digest of the credential, and nothing about the request. So a hook
 * that decides by more than the credential, such as the path, must not be remembered.
 *
 * - Only successes are kept. A credential that failed is verified each time, so failures neither lock a user out nor fill the
 *   memory.
 * - Parallel requests with one credential share one verification and its result (single flight).
 * - CSRF and `authorize` are checked each time, also if `authorize` is inside of it.
 * - A result of the function of `recoverUnavailable` is not kept and not shared, because that function reads the request.
 * - Around `throttled`, a verification is valid only for the address that it was made from, and only within the limit.
 *
 * Law (spec/guesses/remembered.law.spec.ts): within its window `remembered(options)(a)` decides as `a` did; after it, as
 * `a` does.
 */
import { hash, randomBytes } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import { settingsOf, type Attempt } from '../core/Exchange.js'
import type { AuthError } from '../core/AuthError.js'
import { decideOf, make, type Authenticator, type Decide } from '../core/Authenticator.js'
import { isForged } from '../core/CrossOrigin.js'
import { withChallenges, wrappedBy } from '../core/Description.js'
import { andThen, failureOf, isAnonymous, type Evaluation, type Result } from '../core/Result.js'
import { ageOf, thisMoment, type Moment } from '../core/data.js'
import { withAccepted, type Accepted } from '../core/ends.js'
import { memory } from '../core/memory.js'
import * as is from '../core/checks.js'
import { checkHook, checkOptions, declareCondition, declareFactory } from '../core/options.js'
import { aroundEachKind, giveBack, type Around } from './throttled.js'

// Lengths are written before contents, so different credentials have different digests, whatever `extract` returns
const written = (value: unknown): string => {
  switch (typeof value) {
    case 'string':
      return `s${value.length}:${value}`
    case 'number':
    case 'boolean':
    case 'bigint':
    case 'undefined':
      return `${typeof value}:${String(value)};`
    case 'object':
      return value === null ? 'null;' : ofObject(value)
    default:
      throw unreadable()
  }
}

const ofObject = (value: object): string => {
  if (Array.isArray(value)) return `a${value.length}:${value.map(written).join('')}`
  if (value instanceof Uint8Array) return `b${written(Buffer.from(value).toString('latin1'))}`
  // a session or a date. The `toJSON` of a Koa request or context leaves out what a hook can read
  if ('toJSON' in value && typeof value.toJSON === 'function' && !('req' in value)) {
    return `j${written(Reflect.apply(value.toJSON, value, []))}`
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  // it is unknown which part of a Map, a stream or a request is the credential
  if (prototype !== Object.prototype && prototype !== null) throw unreadable()
  const names = Object.keys(value)
  let text = `o${names.length}:`
  for (const name of names) text += written(name) + written(Reflect.get(value, name))
  return text
}

const unreadable = (): TypeError =>
  new TypeError(
    'remembered: the credential must be a string or plain data; let extract return what was sent, as a string',
  )

// Such a value is the same for many callers, so it is not a credential
const isCredential = (sent: unknown): boolean => typeof sent !== 'boolean' && sent !== undefined && sent !== null

/**
 * The digest of a credential of a kind. Throws a TypeError for a value that is not plain data. It recognizes the
 * credential without keeping it.
 */
export const credentialKey = (secret: string, kind: string, sent: unknown): string => {
  if (!isCredential(sent)) throw unreadable()
  const text = kind + written(sent)
  // UTF-16 keeps lone surrogates apart, which UTF-8 would make one character
  const digested = text.isWellFormed() ? `8${secret}${text}` : Buffer.from(`16${secret}${text}`, 'utf16le')
  // No HMAC: it takes four times as long, and no digest is shown to anybody who could extend one
  return hash('sha256', digested, 'base64')
}

type VerificationResult = E.Either<AuthError, unknown>

interface Pending {
  readonly evaluation: Promise<VerificationResult>
  readonly since: Moment
  /** Whether the result is for its own request only. */
  isPrivate: boolean
}

/**
 * Verifications, `size` of them at most, `maxAge` milliseconds each. It knows nothing of credentials and requests. It
 * never keeps a failure, or the result of `optional` without a credential.
 */
const verifications = (maxAge: number, size: number) => {
  const passed = memory<E.Right<unknown>>({ size, maxAge, dropsFirst: 'least recently used' })
  const pending = new Map<string, Pending>()

  const keep = (key: string, result: VerificationResult, since: Moment, endsAt = Infinity): void => {
    if (E.isLeft(result) || isAnonymous(result)) return
    passed.set(key, { value: result, since, expiresAt: Math.min(endOf(result.right), endsAt) })
  }

  /**
   * Returns a result that is under way and younger than `patience`, or else the result of `verify`. If `isPrivate` then
   * returns `true`, that result is for its own request only: it is not kept and not shared. It is kept until `endsAt` at most.
   */
  const getOrVerify = (
    key: string,
    verify: () => Evaluation<unknown>,
    patience: number,
    isPrivate?: () => boolean,
    endsAt?: () => number,
  ): Evaluation<unknown> => {
    const other = pending.get(key)
    // A pending verification is joined only if it is younger than the time limit and `maxAge`
    if (other !== undefined && ageOf(other.since) < Math.min(patience, maxAge)) {
      return isPrivate === undefined
        ? other.evaluation
        : other.evaluation.then((result) => (other.isPrivate ? verify() : result))
    }
    const since = thisMoment()
    const evaluation = verify()
    if (!(evaluation instanceof Promise)) {
      if (isPrivate?.() !== true) keep(key, evaluation, since, endsAt?.())
      return evaluation
    }
    const own: Pending = {
      since,
      isPrivate: false,
      evaluation: evaluation.then((result) => {
        own.isPrivate = isPrivate?.() === true
        // not if it was forgotten or replaced meanwhile
        if (pending.get(key) === own) {
          pending.delete(key)
          if (!own.isPrivate) keep(key, result, since, endsAt?.())
        }
        return result
      }),
    }
    pending.set(key, own)
    return own.evaluation
  }

  const forget = (predicate: (principal: unknown) => boolean): number => {
    // a result that is under way will not be kept
    pending.clear()
    return passed.drop((result) => predicate(result.right))
  }
  return { kept: passed.get, getOrVerify, forget }
}

/** When a principal expires. NaN for an `expiresAt` of another type: then the result is not kept. */
const endOf = (principal: unknown): number => {
  if (typeof principal !== 'object' || principal === null || !('expiresAt' in principal)) return Infinity
  const { expiresAt } = principal
  if (expiresAt === undefined || expiresAt === null) return Infinity
  if (expiresAt instanceof Date) return expiresAt.getTime()
  return typeof expiresAt === 'number' ? expiresAt : NaN
}

/** How long and how much is remembered. */
export interface RememberedOptions {
  /** The window, in milliseconds: for so long a credential that was revoked still passes. */
  readonly maxAge: number
  /** How many verifications are kept; beyond that, the least recently used are dropped. Default 1000. */
  readonly size?: number | undefined
}

// Tokens are verified for each request, see `TokenAuthenticator`
type Rememberable<A> = Authenticator<A> & { readonly verifiesTokens?: never }

/** The combinator that `remembered` makes. All authenticators that it wraps share its `size`. */
export interface Remembered<P> {
  <A extends P>(self: Rememberable<A>): Authenticator<A>
  /**
   * Forgets the verifications for whose principal `predicate` is true, and all that are under way. Returns how many it
   * forgot of those that were kept. Call it when a password changes or a key is revoked. It affects only this process.
   */
  readonly forget: (predicate: (principal: P) => boolean) => number
}

/**
 * For `maxAge` milliseconds after a credential passed, it passes again without a call of the hook, even if it was
 * revoked meanwhile; but never longer than the principal's `expiresAt` (a Date, or milliseconds). Requests share the
 * principal, so do not change it. In a list, it applies to each kind. Throws a TypeError for options that cannot work,
 * and for a plain function, because its credential is unknown. `httpJwt` and
 * `httpIntrospection` do not compile, because they keep verified tokens themselves (`verified`, `cache`).
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { constantTimeEqual, httpBasicAuth, remembered } from 'koa-with-auth'
 *
 * const basic = httpBasicAuth({
 *   authenticate: async (_request, username, password) => constantTimeEqual(password, 's3cret') && { username },
 * })
 * const recent = remembered<{ username: string }>({ maxAge: 60_000, size: 1000 })
 * const quick = pipe(basic, recent)
 *
 * const onPasswordChanged = (name: string) => recent.forget(({ username }) => username === name)
 */
export const remembered = <P = unknown>(options: RememberedOptions): Remembered<P> => {
  const { maxAge, size = 1000 } = checkOptions('remembered', options, {
    maxAge: is.positive,
    size: is.maybe(is.positive),
  })
  const words = `remembered ${maxAge / 1000} s`
  const secret = randomBytes(32).toString('base64')
  const kept = verifications(maxAge, size)
  const kinds = new WeakMap<Authenticator<unknown>, number>()
  // What ends of what a result let in, for `endOf`
  const ends = new WeakMap<Result<unknown>, Accepted>()
  let made = 0

  const around: Around = (self, leaf, reading) => {
    const { extract, origin, mayRecover, notRemembered, endsAt } = reading
    if (notRemembered !== undefined) throw new TypeError(`remembered(...)(a): ${notRemembered}`)
    const kind = kinds.get(self) ?? made++
    kinds.set(self, kind)
    const verify = decideOf(self)
    const recalled = (attempt: Attempt, result: Result<unknown>): Result<unknown> => {
      const own = ends.get(result)
      if (own !== undefined) attempt.accepted = withAccepted(attempt.accepted, own)
      return result
    }
    const getOrVerify = (attempt: Attempt, key: string, sent: unknown): Evaluation<unknown> => {
      const { timeout } = settingsOf(attempt.request)
      let isRecovered = false
      const isPrivate = mayRecover && (() => isRecovered)
      let isAsked = false
      const ask = () => {
        isAsked = true
        const before = attempt.accepted
        attempt.accepted = undefined
        // another member of the list may have been recovered
        const wasRecovered = attempt.isRecovered
        if (wasRecovered) attempt.isRecovered = undefined
        return andThen(verify(attempt), (result) => {
          isRecovered = attempt.isRecovered === true
          if (wasRecovered) attempt.isRecovered = true
          const own = attempt.accepted
          if (own !== undefined) ends.set(result, own)
          attempt.accepted = before === undefined || own === undefined ? (own ?? before) : withAccepted(before, own)
          return result
        })
      }
      const evaluation = kept.getOrVerify(key, ask, timeout, isPrivate, endsAt && (() => endsAt(sent)))
      if (isAsked) return evaluation
      attempt.isRecalled = true
      return andThen(evaluation, (result) => (isAsked ? result : recalled(attempt, result)))
    }
    const failed = (error: unknown) => E.left(withChallenges(leaf, failureOf(error)))
    const recalledFrom = (attempt: Attempt, sent: unknown, from: string | undefined): Evaluation<unknown> => {
      if (from === undefined) return verify(attempt)
      const { request } = attempt
      // a forged request never gets the result of another request, or the other way round
      const site = leaf.ambient && isForged(request, settingsOf(request)) ? 'x' : 'o'
      const key = credentialKey(secret, `${kind}${site}${from.length}:${from}`, sent)
      const found = kept.kept(key)
      if (found !== undefined) attempt.isRecalled = true
      const evaluation = found === undefined ? getOrVerify(attempt, key, sent) : recalled(attempt, found)
      return attempt.guesses === undefined ? evaluation : forgivenBy(attempt, sent, evaluation)
    }
    // what passed is no guess, even if another kind refused it before
    const forgivenBy = (attempt: Attempt, sent: unknown, evaluation: Evaluation<unknown>) =>
      andThen(evaluation, (result) => {
        if (E.isRight(result)) giveBack(attempt, sent)
        return result
      })
    const recalledLate = (attempt: Attempt, sent: unknown, from: Promise<string | undefined>) =>
      from.then((late) => recalledFrom(attempt, sent, late)).catch(failed)
    const decide: Decide = (attempt) => {
      try {
        const sent = extract(attempt.request)
        if (O.isNone(sent)) return verify(attempt)
        // with `throttled`, a verification is valid only for its address, and only within the limit
        const from = origin === undefined ? '' : origin(attempt, sent.value)
        return from instanceof Promise
          ? recalledLate(attempt, sent.value, from)
          : recalledFrom(attempt, sent.value, from)
      } catch (error) {
        return failed(error)
      }
    }
    return make(wrappedBy(leaf, words), decide, reading)
  }

  // Safe: the principal is the one that the authenticator itself let in
  const combinator = aroundEachKind('remembered(...)', around) as <A extends P>(
    self: Authenticator<A>,
  ) => Authenticator<A>
  const forget = (predicate: (principal: P) => boolean): number => {
    checkHook('remembered(...).forget(predicate)', predicate, 1)
    // Safe: all that is kept was let in by authenticators of P
    return kept.forget((principal) => predicate(principal as P))
  }
  return declareCondition('remembered', Object.assign(combinator, { forget }))
}

declareFactory('remembered', remembered)
