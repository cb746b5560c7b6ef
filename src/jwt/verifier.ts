/**
 * Verifies tokens, and caches verified tokens.
 *
 * The cheap checks come first: form, type, issuer, audience, time. Then the signature is checked. `expired` is reported
 * only if the signature is good.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from '../core/Request.js'
import { because, expired, invalid, malformed, type Why } from '../core/AuthError.js'
import { andThen, type Evaluation, type Result } from '../core/Result.js'
import { fromNow, type Memory } from '../core/memory.js'
import { digest } from '../crypto/secrets.js'
import type { Provider, Providers } from './Provider.js'
import { copierOf, readCompact, refusalByTime, refusalOfAccessToken } from './claims.js'
import type { ClaimRules, Json, ParsedToken } from './claims.js'
import { checkSignature, type Keys } from './signature.js'

/** The key of a token: its SHA-256, so that no token is kept. One character for each byte is made and found fastest. */
export const cacheKey = (token: string): string => digest(token, 'binary')

export interface CachedToken {
  readonly payload: string
  /** A copy of its claims, for one reader. */
  readonly copy: () => object
  /** Those of its claims that depend on the time. */
  readonly times: Json
  readonly provider: Provider
  readonly keys: Keys
}

/** Claims that are valid now, for a hook, and their JSON. */
export interface ValidToken {
  readonly payload: string
  readonly claims: object
  /** Under which name it can end before its time, and whether it has. */
  readonly ending?: { readonly name: string; readonly isRevoked: () => boolean }
}

type TokenVerdict = Result<ValidToken>

export const malformedToken: TokenVerdict = E.left(because(malformed, 'syntax'))
const unsignedToken: TokenVerdict = E.left(because(invalid, 'algorithm'))
const expiredToken: TokenVerdict = E.left(because(expired, 'expired'))
const wrongSignature: Result<never> = E.left(because(invalid, 'signature'))
const unknownKeyToken: Result<never> = E.left(because(invalid, 'key'))

interface Verifier {
  readonly providers: Providers
  readonly rules: ClaimRules
  readonly cache: Memory<CachedToken> | undefined
}

/** Decides about tokens, sync for cached tokens. The promise never rejects. */
export const verifier = (
  providers: Providers,
  rules: ClaimRules,
  cache: Memory<CachedToken> | undefined,
): ((token: string, request: Request) => Evaluation<ValidToken>) => {
  const self: Verifier = { providers, rules, cache }
  if (cache === undefined) return (token, request) => verifyToken(self, token, '', request)
  return (token, request) => {
    const key = cacheKey(token)
    return remembered(self, cache, key) ?? verifyToken(self, token, key, request)
  }
}

const remembered = (self: Verifier, cache: Memory<CachedToken>, key: string): TokenVerdict | undefined => {
  const now = Date.now()
  const kept = cache.get(key, now)
  if (kept === undefined || !self.providers.isCurrent(kept.provider)) return undefined
  const keys = kept.provider.keys.current()
  return keys instanceof Promise || E.isLeft(keys) ? undefined : ifStillValid(self, kept, keys.right, now)
}

// A cached token is valid while its keys are current and its times are valid
const ifStillValid = ({ rules }: Verifier, kept: CachedToken, current: Keys, now: number): TokenVerdict | undefined =>
  kept.keys === current && refusalByTime(kept.times, rules, now / 1000) === undefined
    ? E.right({ payload: kept.payload, claims: kept.copy() })
    : undefined

const verifyToken = (self: Verifier, token: string, key: string, request: Request): Evaluation<ValidToken> => {
  const compact = readCompact(token)
  // one without a signature, whose header says so (RFC 7519 §6.1), breaks no syntax
  if (compact === undefined) return readCompact(`${token}AA`)?.header['alg'] === 'none' ? unsignedToken : malformedToken
  const { iss } = compact.claims
  const found = typeof iss === 'string' ? self.providers.find(iss, request) : undefined
  return andThen(found, (provider) => verifyWith(self, provider, compact, key))
}

const verifyWith = (
  self: Verifier,
  found: Provider | undefined,
  compact: ParsedToken,
  key: string,
): Evaluation<ValidToken> => {
  const provider = found === undefined ? 'issuer' : providerFor(self, compact, found)
  if (typeof provider === 'string') return E.left(because(invalid, provider))
  const began = provider.keys.begun()
  return andThen(provider.keys.current(), (keys) => {
    if (E.isLeft(keys)) return keys
    const kept = self.cache?.get(key)
    return (
      (kept && ifStillValid(self, kept, keys.right, Date.now())) ??
      andThen(keysThatSigned(compact, provider, keys.right, began), (signed) =>
        E.isLeft(signed) ? signed : acceptSigned(self, compact, key, provider, signed.right),
      )
    )
  })
}

// The provider, if everything but the token's signature and its expiry is right. Otherwise the cause
const providerFor = ({ rules }: Verifier, { header, claims }: ParsedToken, provider: Provider): Provider | Why => {
  const { algorithms, audiences } = provider
  const refusal = refusalOfAccessToken(header, algorithms, { claims, audiences, rules }, Date.now() / 1000)
  return refusal === undefined || refusal === 'expired' ? provider : refusal
}

const keysThatSigned = (compact: ParsedToken, provider: Provider, keys: Keys, began: number): Evaluation<Keys> =>
  andThen(checkSignature(compact, keys), (first) => {
    if (first === 'unknown key') return checkWithNewerKeys(compact, provider, keys, began)
    return first === 'good' ? E.right(keys) : wrongSignature
  })

const checkWithNewerKeys = async (compact: ParsedToken, { keys: source }: Provider, keys: Keys, began: number) => {
  const others = await source.afterMiss(keys, began, JSON.stringify([compact.header.alg, compact.header.kid]))
  if (E.isLeft(others)) return others
  if (others.right === undefined) return unknownKeyToken
  return (await checkSignature(compact, others.right)) === 'good' ? E.right(others.right) : wrongSignature
}

const acceptSigned = (
  self: Verifier,
  token: ParsedToken,
  key: string,
  provider: Provider,
  keys: Keys,
): TokenVerdict => {
  const { payload, claims, given } = token
  const refusal = refusalByTime(claims, self.rules, Date.now() / 1000)
  if (refusal !== undefined) return refusal === 'expired' ? expiredToken : E.left(because(invalid, refusal))
  // Safe: `refusalByTime` refuses an `exp` that is not a number
  const expiresAt = (claims['exp'] as number) * 1000
  const times = { exp: claims['exp'], nbf: claims['nbf'], iat: claims['iat'] }
  self.cache?.set(key, fromNow({ payload, copy: copierOf(payload), times, provider, keys }, expiresAt))
  return E.right({ payload, claims: given })
}
