/**
 * Proofs of possession (DPoP, RFC 9449): a client shows with each request that it has the key which its token is bound to.
 *
 * The checks are those of RFC 9449 §4.3, the cheap checks first. The token was verified before, so nothing is done for strangers. The id
 * of the proof is used after its signature, and before the hook: a stranger fills no store, and a replay calls no hook.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from '../core/Request.js'
import { because, expired, invalid } from '../core/AuthError.js'
import { make } from '../core/Challenge.js'
import { digest, mac } from '../crypto/secrets.js'
import { fromHeader } from '../core/RequestFields.js'
import { andThen, type Evaluation, type Result } from '../core/Result.js'
import { settingsOf } from '../core/Exchange.js'
import { usedFor, type UsedOnce } from '../core/OneTimeIds.js'
import { deepFreeze, hasDots } from '../core/data.js'
import { optionWords } from '../core/functionName.js'
import * as is from '../core/checks.js'
import { checkOptions, type Check, type Checks } from '../core/options.js'
import { isProof, objectOf, readCompact, refusalOfProof, type ParsedToken } from './claims.js'
import { checkUrl } from './fetching.js'
import { algorithmsFor, checkSignature, keyOfProof, thumbprintOf, type AsymmetricAlgorithm } from './signature.js'

/** Nonces that need no store: a server makes and recognizes them with a key (RFC 9449 §9). */
export interface DpopNonceOptions {
  /** Secrets of at least 32 bytes. The first makes nonces, and those of all are accepted. All processes of a service share them. */
  readonly keys: readonly [string | Uint8Array, ...(string | Uint8Array)[]]
  /** How long a nonce is accepted at least, in milliseconds. At most twice as long. Default 300,000. */
  readonly lifetime?: number | undefined
}

/** How proofs of possession are checked (RFC 9449). */
export interface DpopOptions {
  /** Where the ids of proofs are used, such as `oneTimeIds(store)` of `koa-with-auth/stores`. All processes of a service share it. */
  readonly spent: UsedOnce
  /**
   * The origin of the API as its clients call it, such as `https://api.example`. It is never read from Host. If a proxy cuts off a
   * prefix, write it too: `https://api.example/orders` for an API that gets the path behind it.
   */
  readonly origin: string
  /** Asks clients for a nonce, so that no proof can be made in advance. Default: none is asked for. */
  readonly nonce?: DpopNonceOptions | undefined
  /** The algorithms that proofs may be signed with. Default RS256, PS256, ES256, EdDSA, Ed25519. */
  readonly algorithms?: readonly [AsymmetricAlgorithm, ...AsymmetricAlgorithm[]] | undefined
  /** How old a proof may be, in milliseconds. Default 60,000. */
  readonly maxAge?: number | undefined
}

// An origin as URLs write it (no user, no default port, in lower case), and the prefix that a proxy cuts off
const origin: Check = (where, value) => {
  checkUrl(where, value)
  const { origin, pathname } = new URL(value)
  if (value === origin || (value === origin + pathname && !/\/$|\/\/|%/.test(pathname))) return
  throw new TypeError(
    `${where} must be an origin, such as "${origin}", or one with the prefix that a proxy cuts off, without a slash at its end`,
  )
}

const checks: Checks<DpopOptions> = {
  spent: is.withMethods(['use'], 'pass oneTimeIds(store) of koa-with-auth/stores'),
  origin,
  nonce: is.unchecked,
  // `algorithmsFor` checks it
  algorithms: is.unchecked,
  maxAge: is.maybe(is.milliseconds),
}

const PROOF_AGE = 60_000
// As for a credential: a longer proof is not parsed
const MAX_PROOF_LENGTH = 8192

type Parameters = Readonly<Record<string, string>>

/** Makes the check of proofs. Throws a TypeError for options that cannot work. `clockTolerance` is in seconds, as claims are. */
export const dpopOf = (given: DpopOptions, clockTolerance: number, where = 'httpJwt({ bound: { dpop: { ... } } })') => {
  const options = checkOptions(where, given, checks)
  const { spent, maxAge = PROOF_AGE } = options
  const algorithms = algorithmsFor('httpJwt: dpop', options.algorithms, false)
  const self: Proofs = {
    spent,
    algorithms,
    nonces: options.nonce === undefined ? undefined : noncesOf(options.nonce),
    uriOf: uriUnder(options.origin),
    times: { clockTolerance, maxTokenAge: maxAge / 1000 },
    window: maxAge + 2 * clockTolerance * 1000,
  }
  const { nonces } = self
  const ahead: Proofs = { ...self, spent: undefined }
  const parameters = { algs: algorithms.join(' ') }
  /** Makes the checks, which never throw or reject, and give the thumbprint of the key. `own`: parameters of every challenge. */
  const checking = (own: Parameters) => {
    const refusals = refusalsWith({ ...own, ...parameters })
    return {
      /** That a request has a proof for its token, and for the key of this thumbprint. */
      ofToken: (request: Request, token: string, thumbprint: string | undefined): Evaluation<string> =>
        thumbprint === undefined ? refusals.unbound : checkProof(self, refusals, request, token, thumbprint),
      /** That a request has a proof for no token yet, as for a token that is to be issued (§5). */
      ofIssuing: (request: Request): Evaluation<string> => checkProof(self, refusals, request, undefined, undefined),
      /** The same before the caller is known. Its id is not used, so a stranger fills no store. */
      ofStranger: (request: Request): Evaluation<string> => checkProof(ahead, refusals, request, undefined, undefined),
    }
  }
  const responseFields = nonces && (() => ({ 'DPoP-Nonce': nonces.current() }))
  const { origin, nonce, algorithms: own, maxAge: age } = options
  // the keys of nonces are secrets
  const shownNonce = nonce && { lifetime: nonce.lifetime ?? NONCE_LIFETIME }
  const words = optionWords({ origin, nonce: shownNonce, algorithms: own, maxAge: age })
  return { parameters, checking, responseFields, words: words.join(' ') }
}

interface Proofs {
  /** Left out: no id is used. */
  readonly spent: DpopOptions['spent'] | undefined
  readonly algorithms: ReturnType<typeof algorithmsFor>
  readonly nonces: ReturnType<typeof noncesOf> | undefined
  readonly uriOf: (request: Request) => string | undefined
  readonly times: { readonly clockTolerance: number; readonly maxTokenAge: number }
  /** From the most distant future to the most distant past in which a proof is accepted. */
  readonly window: number
}

// RFC 9449 §4.3: everything that needs no signature. The keys that may have signed it, or the fault
const checkUnsigned = (
  { algorithms, uriOf, times }: Proofs,
  request: Request,
  token: string | undefined,
  bound: string | undefined,
  { header, claims }: ParsedToken,
) => {
  const jwk = objectOf(header['jwk'])
  if (!isProof(header, claims, algorithms) || jwk === undefined) return 'form'
  const thumbprint = bound ?? thumbprintOf(jwk)
  const keys = thumbprint === undefined ? undefined : keyOfProof(jwk, thumbprint)
  if (thumbprint === undefined || keys === undefined) return 'form'
  if (keys === 'another') return 'binding'
  const isHere = claims['htm'] === request.method && isSameUri(claims['htu'], uriOf(request))
  return refusalOfProof(claims, isHere, token, times, Date.now() / 1000) ?? { keys, thumbprint }
}

const checkProof = (
  self: Proofs,
  refusals: ReturnType<typeof refusalsWith>,
  request: Request,
  token: string | undefined,
  bound: string | undefined,
): Evaluation<string> => {
  const sent = proofField(request)
  if (O.isNone(sent) || typeof sent.value !== 'string') return refusals.field
  const compact = sent.value.length > MAX_PROOF_LENGTH ? undefined : readCompact(sent.value)
  if (compact === undefined) return refusals.form
  const known = checkUnsigned(self, request, token, bound, compact)
  if (typeof known === 'string') return refusals[known]
  const { keys, thumbprint } = known
  return andThen(checkSignature(compact, keys), (result): Evaluation<string> => {
    if (result !== 'good') return refusals.signature
    const { nonce, jti } = compact.claims
    if (self.nonces?.isGood(nonce) === false) return refusals.nonce
    if (self.spent === undefined) return E.right(thumbprint)
    const id = `koa-with-auth/dpop ${digest(`${thumbprint} ${String(jti)}`)}`
    // its time was checked before, and the decision may take a while
    const lifetime = self.window + settingsOf(request).timeout
    return usedFor(request.req, self.spent, id, lifetime).then((isFirst) => {
      if (isFirst === undefined) return refusals.replay
      return E.isLeft(isFirst) ? isFirst : E.right(thumbprint)
    })
  })
}

const proofField = fromHeader('DPoP')

const wrongProof = because(invalid, 'proof')

const errors = {
  unbound: [because(invalid, 'binding'), 'invalid_token', 'the token is bound to no key'],
  binding: [because(invalid, 'binding'), 'invalid_token', 'the token is bound to another key'],
  field: [wrongProof, 'invalid_dpop_proof', 'there must be exactly one DPoP field'],
  form: [wrongProof, 'invalid_dpop_proof', 'the proof must be a JWT of the type dpop+jwt with a public jwk'],
  request: [wrongProof, 'invalid_dpop_proof', 'htm or htu is not of this request'],
  time: [wrongProof, 'invalid_dpop_proof', 'iat is too old, or in the future'],
  token: [wrongProof, 'invalid_dpop_proof', 'ath is not of this token'],
  signature: [wrongProof, 'invalid_dpop_proof', 'the signature is not of the key in jwk'],
  replay: [because(invalid, 'replay'), 'invalid_dpop_proof', 'jti was used before'],
  // not counted as a guess, because every client begins without a nonce
  nonce: [because(expired, 'expired'), 'use_dpop_nonce', 'a new nonce is needed'],
} as const

// Constants of an authenticator, so that their responses can be reused
const refusalsWith = (parameters: Parameters): Readonly<Record<keyof typeof errors, Result<never>>> => {
  const entries = Object.entries(errors).map(([name, [failure, error, error_description]]) => {
    const challenge = make('DPoP', { ...parameters, error, error_description })
    return [name, deepFreeze(E.left({ ...failure, challenge }))] as const
  })
  // Safe: one for each of `errors`
  return Object.fromEntries(entries) as Record<keyof typeof errors, Result<never>>
}

// --- the URI of a request

const unreserved = /^[\w.~-]$/

// RFC 3986 §6.2.2; the rest is done by URL
const normalized = (path: string): string =>
  path.replace(/%[0-9a-f]{2}/gi, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return unreserved.test(character) ? character : code.toUpperCase()
  })

const uriOfUrl = ({ origin, pathname }: URL): string => origin + normalized(pathname)

const absoluteForm = /^https?:\/\/[^/?#]*/i

/** The URI that a proof must name (RFC 9449 §4.3): the origin, and the path as it was sent; `undefined` if no client sends such a path. */
const uriUnder =
  (origin: string) =>
  ({ originalUrl }: Request): string | undefined => {
    const [path = ''] = originalUrl.replace(absoluteForm, '').split(/[?#]/, 1)
    const uri = origin + (path === '' ? '/' : path)
    const isPath = uri.startsWith(`${origin}/`) && !hasDots(path) && URL.canParse(uri)
    return isPath ? uriOfUrl(new URL(uri)) : undefined
  }

const isSameUri = (htu: unknown, uri: string | undefined): boolean => {
  if (uri === undefined || typeof htu !== 'string') return false
  // To parse a host that is not ASCII can take a time that grows with the square of its length
  if (!/^https?:\/\/[!"$-.0->@-~]+(?:[/?#]|$)/i.test(htu) || !URL.canParse(htu)) return false
  const url = new URL(htu)
  return url.username === '' && url.password === '' && uriOfUrl(url) === uri
}

// --- nonces

const NONCE_LIFETIME = 300_000

/** The nonce of this time, and whether one that was sent is good. */
const noncesOf = (given: DpopNonceOptions) => {
  const where = 'httpJwt({ bound: { dpop: { nonce: { ... } } } })'
  const { keys, lifetime = NONCE_LIFETIME } = checkOptions(where, given, {
    keys: is.secrets,
    lifetime: is.maybe(is.milliseconds),
  })
  const copies = keys.map((key) => Buffer.from(key))
  const nonceOf = (key: Buffer, slice: number): string => mac(key, `koa-with-auth/dpop-nonce ${slice}`)
  let kept = { slice: NaN, current: '', accepted: new Set<unknown>() }
  const now = () => {
    const slice = Math.floor(Date.now() / lifetime)
    if (kept.slice !== slice) {
      const all = copies.flatMap((key) => [nonceOf(key, slice), nonceOf(key, slice - 1)])
      kept = { slice, current: all[0] ?? '', accepted: new Set(all) }
    }
    return kept
  }
  return { current: () => now().current, isGood: (nonce: unknown): boolean => now().accepted.has(nonce) }
}
