/**
 * `cached` caches the principals that a hook let in, for a time that its author chose. In that time a changed password, a revoked key and a deleted
 * user still pass, unless `forget` is called.
 *
 * It is a memo of the hook, by the credential alone: it knows no request, list or limit. So the hook must decide by nothing else. What
 * was refused is never kept. Of a credential only a digest is kept, made with a random secret.
 */
import * as E from 'fp-ts/lib/Either.js'
import { accept, evidence, evidenceOf, merge } from '../core/Evidence.js'
import { attemptOf, evidenceFor, settingsOf, Attempt } from '../core/Exchange.js'
import type { Request } from '../core/Request.js'
import { answerTo, returningResults, sayingWords, type Result } from '../core/Result.js'
import type { Evaluation, PrincipalFromAnswer } from '../core/Result.js'
import * as is from '../core/checks.js'
import { ageOf, thisMoment, type Moment } from '../core/data.js'
import { keepingScopes } from '../core/granted.js'
import { fromNow, memory, type Memory } from '../core/memory.js'
import { checkHook, checkOptions, declareFactory, isPlain } from '../core/options.js'
import { digest, randomId } from '../crypto/secrets.js'

/** How long and how much is kept. */
export interface CachedOptions {
  /** In milliseconds: for so long a credential that was revoked still passes, in this process. */
  readonly maxAge: number
  /** How many credentials are kept; beyond that, the least recently used are dropped. Default 1000. */
  readonly size?: number | undefined
}

/** A hook that caches the principals that it accepted. */
export interface Cached<C extends ReadonlyArray<unknown>, R> {
  (request: Request, ...credential: C): Evaluation<PrincipalFromAnswer<R>>
  /**
   * Forgets a credential, also one that is being verified. Call it when a password changes or a key is revoked. It affects only this
   * process.
   */
  readonly forget: (...credential: C) => void
}

/** A Right that says `cached`. Requests share it. */
type PassedResult = E.Right<unknown>
type VerifyHook = (request: Request, ...credential: ReadonlyArray<unknown>) => unknown

interface Flight {
  readonly since: Moment
  readonly evaluation: Promise<Result<unknown>>
}

interface Cache {
  readonly verify: VerifyHook
  readonly maxAge: number
  readonly passed: Memory<PassedResult>
  /** As many as are kept: a hook may never end, and anybody can send credentials. */
  readonly flights: Memory<Flight>
  readonly keyOf: (credential: ReadonlyArray<unknown>) => string
}

/**
 * Makes a hook that caches the principals of `verify`, for `maxAge` milliseconds, but never longer than the principal's `expiresAt` (a Date, or
 * milliseconds). Requests that come with the same credential at the same time share one call, and requests share the principal, so do
 * not change it. Its results say `cached` in the records of decisions.
 *
 * Throws a TypeError for options that cannot work. A credential that is neither text nor plain data is an exception of the hook: 500.
 *
 * @example
 * import { cached, constantTimeEqual, httpBasicAuth } from 'koa-with-auth'
 *
 * const recent = cached(
 *   async (_request, username: string, password: string) => constantTimeEqual(password, 's3cret') && { username },
 *   { maxAge: 60_000 },
 * )
 * const basic = httpBasicAuth({ authenticate: recent })
 * const onPasswordChanged = (username: string, before: string) => recent.forget(username, before)
 */
export const cached = <C extends ReadonlyArray<unknown>, R>(
  verify: (request: Request, ...credential: C) => R,
  options: CachedOptions,
): Cached<C, R> => {
  checkHook('cached(verify, options)', verify, Infinity)
  const { maxAge, size = 1000 } = checkOptions('cached', options, { maxAge: is.positive, size: is.maybe(is.positive) })
  // No digest leaves this process, so a hash of secret and credential is enough; an HMAC takes two hashes
  const secret = randomId()
  const self: Cache = {
    // Safe: it is called with the arguments of the hook
    verify: verify as unknown as VerifyHook,
    maxAge,
    passed: memory({ size, maxAge, dropsFirst: 'least recently used' }),
    flights: memory({ size, maxAge, dropsFirst: 'oldest' }),
    keyOf: (credential) => digest(secret + textOf(credential), 'binary'),
  }
  const hook = (request: Request, ...credential: C) => cachedAnswer(self, request, credential)
  const forget = (...credential: C): void => {
    const key = self.keyOf(credential)
    self.flights.delete(key)
    self.passed.delete(key)
  }
  // Safe: it lets in the principals of `verify`
  return keepingScopes(
    sayingWords(Object.assign(returningResults(hook), { forget }), `cached ${maxAge / 1000} s`),
    verify,
  ) as unknown as Cached<C, R>
}

declareFactory('cached', cached)

const isPlainValue = (u: unknown): boolean => typeof u === 'string'

// Nearly all credentials are strings, and a replacer takes longer than all the rest
const textOf = (credential: ReadonlyArray<unknown>): string =>
  credential.every(isPlainValue) ? JSON.stringify(credential) : JSON.stringify(credential, plainOnly)

// It is unknown which part of an instance is the credential
function plainOnly(this: unknown, name: string, read: unknown): unknown {
  const value: unknown = Reflect.get(Object(this), name)
  const isScalar = isPlainValue(value) || typeof value === 'boolean' || value === null || Number.isFinite(value)
  if (isScalar || Array.isArray(value) || (typeof value === 'object' && value !== null && isPlain(value))) return read
  throw new TypeError('cached(verify): the credential must be text or plain data; pass the part of it that was sent')
}

const fromCache = evidence({ isCached: true })

const cachedAnswer = (self: Cache, request: Request, credential: ReadonlyArray<unknown>): Evaluation<unknown> => {
  const key = self.keyOf(credential)
  const known = self.passed.get(key)
  if (known !== undefined) return known
  const flight = self.flights.get(key)
  // no request joins a verification that takes longer than a decision may take
  if (flight !== undefined && ageOf(flight.since) < settingsOf(request).timeout) {
    return flight.evaluation.then((late) => (E.isRight(late) ? asCached(late) : late))
  }
  const since = thisMoment()
  const attempt = attemptOf(request) ?? new Attempt(request)
  const verified = answerTo(() => self.verify(request, ...credential))
  if (!(verified instanceof Promise)) return keepPassed(self, key, since, attempt, verified)
  const own: Flight = {
    since,
    evaluation: verified.then((late) => {
      // not if it was forgotten or replaced meanwhile
      if (self.flights.get(key) !== own) return late
      self.flights.delete(key)
      return keepPassed(self, key, since, attempt, late)
    }),
  }
  self.flights.set(key, fromNow(own))
  return own.evaluation
}

const asCached = (known: E.Right<unknown>): PassedResult => accept(known.right, merge(evidenceOf(known), fromCache))

const keepPassed = (
  { passed }: Cache,
  key: string,
  since: Moment,
  attempt: Attempt,
  result: Result<unknown>,
): Result<unknown> => {
  if (E.isLeft(result)) return result
  // the evidence of keys that the hook asked can end, also when the hook is not called again
  const own = evidenceFor(attempt, result, 'all')
  const right = accept(result.right, own)
  if (!own.isRecovered) passed.set(key, { value: asCached(right), since, expiresAt: endOf(result.right) })
  return right
}

/** When a principal expires. NaN for an `expiresAt` of another type: then it is not kept. */
const endOf = (principal: unknown): number => {
  if (typeof principal !== 'object' || principal === null || !('expiresAt' in principal)) return Infinity
  const { expiresAt } = principal
  if (expiresAt === undefined || expiresAt === null) return Infinity
  if (expiresAt instanceof Date) return expiresAt.getTime()
  return typeof expiresAt === 'number' ? expiresAt : NaN
}
