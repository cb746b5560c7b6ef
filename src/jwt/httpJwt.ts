/**
 * `httpJwt`: access tokens that a provider signs (RFC 7519, RFC 9068), as an authenticator of the Bearer scheme.
 *
 * It verifies tokens in the process, with keys that it keeps. `verifier.ts` describes the order of the checks. `keySet.ts`
 * describes outages.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from '../core/Request.js'
import { because, invalid } from '../core/AuthError.js'
import type { PrincipalFromAnswer, Result } from '../core/Result.js'
import type { Authenticator } from '../core/Authenticator.js'
import { ownFields } from '../core/data.js'
import { functionName, optionWords } from '../core/functionName.js'
import { memory } from '../core/memory.js'
import * as is from '../core/checks.js'
import { declareFactory, checkOptions, type Checks } from '../core/options.js'
import type { OpenIdConnectScheme } from '../core/Description.js'
import { alt } from '../core/lists.js'
import { digest } from '../crypto/secrets.js'
import { certificateReader, type CertificateReader, type CertificateSource } from '../kinds/clientCertificate.js'
import type { BoundFields } from '../mcp/protectedResource.js'
import { finderIn, providersOf, type FindIssuer, type FindIssuerAlone, type Issuer, type Provider } from './Provider.js'
import { objectOf, type ClaimRules, type JwtClaims } from './claims.js'
import { dpopOf, type DpopOptions } from './dpop.js'
import { documentsOf } from './fetching.js'
import { cachePolicyOf, keyPolicyOf, type KeyEvents, type CacheOptions, type KeyOptions } from './keySet.js'
import type { Algorithm } from './signature.js'
import { verifier, type CachedToken } from './verifier.js'
import { audiencesOf, auditNote, partiesOf, tokenChecks, tokenKind } from './tokenKind.js'
import type { TokenOptions, TokenScheme } from './tokenKind.js'

/** Which bindings of tokens are checked. At least one. */
export interface BoundOptions {
  /** Tokens that are bound to a key (`cnf.jkt`), with a proof of possession for each request. */
  readonly dpop?: DpopOptions | undefined
  /**
   * Tokens that are bound to a certificate (`cnf['x5t#S256']`), with the certificate of the connection. It may be signed by anybody
   * (RFC 8705 §2.2): make the server with `requestCert: true` and `rejectUnauthorized: false`.
   */
  readonly certificate?: BoundCertificateOptions | undefined
  /** Whether tokens that are bound to nothing are refused. Default `false`. */
  readonly required?: boolean | undefined
}

/** Where the certificate comes from that a token is bound to. */
export interface BoundCertificateOptions {
  /** The TLS socket of this process, or a header of proxies that are named by their addresses. */
  readonly from: CertificateSource
}

export interface HttpJwtOptions<C, R> extends TokenOptions<C, R> {
  /**
   * The issuers of the tokens. A URL means discovery (RFC 8414, then OpenID Connect). An object has exactly one of `jwksUri`, `jwks`,
   * `publicKey` and `secret`. An array has several of these. The `audience` and `algorithms` of an issuer replace the general options.
   * A function finds the issuer of a token by its `iss`, such as that of a tenant: return nothing for an unknown issuer.
   */
  readonly issuer: Issuer | ReadonlyArray<Issuer> | FindIssuer | FindIssuerAlone
  /** The algorithms that tokens may be signed with. Default RS256, PS256, ES256, EdDSA, Ed25519; with a `secret` HS256. */
  readonly algorithms?: readonly [Algorithm, ...Algorithm[]] | undefined
  /**
   * `'any'`: `typ` is absent, `JWT` or `at+jwt`. `'rfc9068'`: `typ` is `at+jwt`, and the token has iat, jti, sub and client_id, so
   * it is not an ID token. Default `'any'`.
   */
  readonly profile?: 'any' | 'rfc9068' | undefined
  /** How far clocks may differ, in milliseconds. Default 5000. */
  readonly clockTolerance?: number | undefined
  /** How old a token may be, in milliseconds since `iat`. With this option, tokens must have `iat`. Default: no limit but `exp`. */
  readonly maxTokenAge?: number | undefined
  /** Accepts tokens that are bound to their client (`cnf`), and checks the binding. Default: such tokens are refused. */
  readonly bound?: BoundOptions | undefined
  /** How the keys of a provider are kept. */
  readonly keys?: KeyOptions | undefined
  /** How many verified tokens are cached, and how long, by their SHA-256. Default: 1000, for 60 000 ms. `false`: none. */
  readonly verified?: false | CacheOptions | undefined
}

/** An authenticator of tokens that can load its keys at the start. */
export interface HttpJwt<P> extends Authenticator<P> {
  /**
   * Loads the keys, so that the first request does not wait. It resolves within `keys.timeout` plus a second, and never rejects. If
   * the provider is down, the application still starts, and there is a process warning.
   */
  readonly ready: () => Promise<void>
}

const checks: Checks<HttpJwtOptions<unknown, unknown>> = {
  // `providersOf` checks these two, `nonEmptyStrings` and the policies the others
  issuer: is.unchecked,
  algorithms: is.unchecked,
  profile: is.maybe(is.oneOf('any', 'rfc9068')),
  clockTolerance: is.maybe(is.millisecondsOrNone),
  maxTokenAge: is.maybe(is.milliseconds),
  // `checkBound` checks it
  bound: is.unchecked,
  keys: is.unchecked,
  verified: is.unchecked,
  ...tokenChecks,
}

const DEFAULT_TOLERANCE = 5000
const DEFAULT_VERIFIED_AGE = 60_000

/**
 * Authenticates by access tokens that one or several providers sign. A refused token is a 401 `error="invalid_token"`. If the
 * provider's keys cannot be fetched, it is a 503, so an outage never looks like a bad token. Throws a TypeError for options that
 * cannot work.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { requireScopes } from 'koa-with-auth'
 * import { httpJwt, scopesOf } from 'koa-with-auth/jwt'
 *
 * const jwt = httpJwt({ issuer: 'https://login.example/', audience: 'https://api.example' })
 * const reader = pipe(jwt, requireScopes(['read'], { granted: scopesOf }))
 */
export const httpJwt = <C = JwtClaims, R = C>(given: HttpJwtOptions<C, R>): HttpJwt<PrincipalFromAnswer<R>> => {
  const caller = 'httpJwt'
  const options = checkOptions(caller, given, checks)
  const audience = audiencesOf(caller, options)
  const policy = cachePolicyOf(`${caller}({ verified })`, options.verified, DEFAULT_VERIFIED_AGE)
  const cache = policy === undefined ? undefined : memory<CachedToken>({ ...policy, dropsFirst: 'oldest' })
  const events = (issuer: string): KeyEvents => ({
    issuer,
    failed: (problem) => warnOfKeys(issuer, problem),
  })
  const { algorithms } = options
  const keyPolicy = keyPolicyOf(`${caller}({ keys })`, options.keys)
  const providers = providersOf(options.issuer, { caller, audience, algorithms, policy: keyPolicy, events })
  const { known } = providers
  if (options.authenticate === undefined && options.claims === undefined) warnOfAnyone(known)
  const ready = async (): Promise<void> => {
    await Promise.all(known.map(({ keys }) => keys.ready()))
  }
  const { profile, authorizedParties, clockTolerance, maxTokenAge, keys, verified } = options
  const notes = [
    ...auditNote('issuer', finderWords(options.issuer) ?? known.map(({ issuer }) => issuer).sort()),
    ...auditNote('audience', audience || undefined),
    ...auditNote('profile', profile),
    ...auditNote('authorizedParties', authorizedParties),
    ...[options.issuer].flat().flatMap(ofIssuer),
    ...optionWords({ algorithms, clockTolerance, maxTokenAge, keys, verified }),
  ]
  const fact = { part: 'httpJwt', isForHere: audience !== false, isTyped: profile === 'rfc9068' }
  const scheme = { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } as const
  const bearer: TokenScheme = { scheme, discovery: discoveryOf(known), notes, fact }
  if (options.from !== undefined && options.bound?.dpop !== undefined) {
    throw new TypeError(
      'httpJwt({ from, bound: { dpop } }): a token that is bound to a key is sent in the Authorization field (RFC 9449 §7.1)',
    )
  }
  // claims are in seconds
  const tolerance = (clockTolerance ?? DEFAULT_TOLERANCE) / 1000
  const bound = checkBound(options.bound, bearer, tolerance)
  if (bound.published !== undefined) options.protectedResource?.adds(bound.published)
  const rules: ClaimRules = {
    profile: profile ?? 'any',
    clockTolerance: tolerance,
    maxTokenAge: maxTokenAge && maxTokenAge / 1000,
    confirmations: bound.confirmations,
    isBindingRequired: bound.isRequired,
    authorizedParties: partiesOf(caller, authorizedParties),
  }
  const check = verifier(providers, rules, cache)
  const [first, second] = bound.schemes
  const one = tokenKind(first, options, check)
  const made = second === undefined ? one : alt(() => tokenKind(second, withDerivedName(options, second), check))(one)
  // Safe: it lets in the result of the hook, as `authenticator` computes it; without a hook, `R` is the claims
  return Object.assign(made, { ready }) as HttpJwt<PrincipalFromAnswer<R>>
}

const finderWords = (issuer: unknown): string | undefined => {
  const finder = finderIn(issuer)
  return finder && `found by ${finder === issuer ? '' : 'iss alone '}${functionName(finder)}`
}

// The options of a single issuer. Keys are not named: they are exchanged where the provider does so
const ofIssuer = (issuer: Issuer | FindIssuer | FindIssuerAlone): ReadonlyArray<string> => {
  if (typeof issuer !== 'object' || 'ofIssuerAlone' in issuer) return []
  const { audience, algorithms, jwksUri } = issuer
  const own = optionWords({ audience, algorithms, jwksUri })
  return own.length === 0 ? [] : [`of ${issuer.issuer} (${own.join(' ')})`]
}

// OpenAPI lists each scheme under another name
const withDerivedName = <C, R>(options: HttpJwtOptions<C, R>, { name = '' }: TokenScheme): HttpJwtOptions<C, R> =>
  options.schemeName === undefined ? options : { ...options, schemeName: options.schemeName + name }

// OpenAPI 3.1 allows one discovery document for each scheme
const discoveryOf = ([first, ...others]: ReadonlyArray<Provider>): OpenIdConnectScheme | undefined =>
  first?.isDiscovered === true && others.length === 0
    ? { type: 'openIdConnect', openIdConnectUrl: documentsOf(first.issuer)[1] }
    : undefined

const warnOfKeys = (issuer: string, problem: string): void =>
  process.emitWarning(
    `httpJwt: the keys of ${issuer} cannot be loaded: it ${problem}. Requests that need them are answered with 503`,
    'ProviderWarning',
  )

// Any workflow and any service account gets a token with the audience that it asks for
const signsForAnyone = /^https:\/\/(?:token\.actions\.githubusercontent\.com|gitlab\.com|accounts\.google\.com)$/

const warnOfAnyone = (known: ReadonlyArray<Provider>): void => {
  const found = known.find(({ issuer }) => signsForAnyone.test(issuer))
  const words = 'signs tokens for everybody, with any audience; compare a claim in authenticate, as repository or email'
  if (found !== undefined) process.emitWarning(`httpJwt: ${found.issuer} ${words}`, 'ProviderWarning')
}

declareFactory('httpJwt', httpJwt)

// --- tokens that are bound to their client

/** The meaning of the option `bound` for tokens, which can be bound to a key (RFC 9449), to a TLS certificate (RFC 8705), or to both. */
interface TokenBinding {
  readonly confirmations: ReadonlyArray<string>
  readonly isRequired: boolean
  readonly published?: BoundFields
  /** The schemes of the Authorization field, in the order of the challenges. */
  readonly schemes: readonly [TokenScheme, TokenScheme?]
}

const JKT = 'jkt'
const X5T = 'x5t#S256'

const whereBound = 'httpJwt({ bound: { ... } })'

const wrongBinding: Result<never> = E.left(because(invalid, 'binding'))

const confirmedBinding: Result<true> = E.right(true)

/** The value of a member of `cnf`; the claims were checked before. */
const confirmationOf = (claims: object, name: string): string | undefined => {
  const value = objectOf(ownFields(claims)['cnf'])?.[name]
  return typeof value === 'string' ? value : undefined
}

// RFC 8705 §3.1
const isHolder = (reader: CertificateReader | undefined, request: Request, claims: object): boolean => {
  const thumbprint = confirmationOf(claims, X5T)
  if (thumbprint === undefined || reader === undefined) return true
  const sent = reader.extract(request)
  const certificate = O.isSome(sent) ? reader.decode(sent.value) : undefined
  return certificate !== undefined && digest(certificate.raw) === thumbprint
}

const schemeOfKeys = (
  { parameters, responseFields, checking, words }: ReturnType<typeof dpopOf>,
  reader: Parameters<typeof isHolder>[0],
  notes: ReadonlyArray<string>,
): TokenScheme => ({
  scheme: { type: 'http', scheme: 'dpop' },
  name: 'DPoP',
  parameters,
  reads: ['DPoP'],
  responseFields,
  notes: [...notes, `bound to a key ${words}`],
  confirming: (own) => {
    const check = checking(own)
    return (request, token, claims) =>
      isHolder(reader, request, claims) ? check.ofToken(request, token, confirmationOf(claims, JKT)) : wrongBinding
  },
})

const certificateOf = (given: BoundCertificateOptions): CertificateReader => {
  const { from } = checkOptions('httpJwt({ bound: { certificate: { ... } } })', given, { from: is.unchecked })
  return certificateReader('httpJwt: certificate', from)
}

/** Checks the option. Throws a TypeError if it cannot work. `bearer`: the scheme of tokens that are bound to no key. */
const checkBound = (given: BoundOptions | undefined, bearer: TokenScheme, clockTolerance: number): TokenBinding => {
  if (given === undefined) return { confirmations: [], isRequired: false, schemes: [bearer] }
  const boundChecks = { dpop: is.unchecked, certificate: is.unchecked, required: is.maybe(is.flag) }
  const { dpop, certificate, required: isRequired = false } = checkOptions(whereBound, given, boundChecks)
  const reader = certificate === undefined ? undefined : certificateOf(certificate)
  if (dpop === undefined && reader === undefined) {
    throw new TypeError(`${whereBound} must have dpop or certificate, the proof that a bound token needs`)
  }
  const notes = [
    ...bearer.notes,
    ...(reader === undefined ? [] : [`bound to a certificate ${reader.words}`]),
    ...(isRequired ? ['bound always'] : []),
  ]
  const confirmations = [...(dpop === undefined ? [] : [JKT]), ...(reader === undefined ? [] : [X5T])]
  // RFC 9449 §7.2: a token that is bound to a key is never a bearer token
  const plain: TokenScheme = {
    ...bearer,
    notes,
    confirming: () => (request, _token, claims) =>
      confirmationOf(claims, JKT) === undefined && isHolder(reader, request, claims) ? confirmedBinding : wrongBinding,
  }
  const ofCertificates = reader !== undefined && { tls_client_certificate_bound_access_tokens: true as const }
  if (dpop === undefined) return { confirmations, isRequired, schemes: [plain], published: { ...ofCertificates } }
  const proofs = dpopOf(dpop, clockTolerance)
  const keys = schemeOfKeys(proofs, reader, notes)
  const isOnlyDpop = isRequired && reader === undefined
  const published = {
    dpop_signing_alg_values_supported: proofs.parameters.algs.split(' '),
    ...(isOnlyDpop && { dpop_bound_access_tokens_required: true as const }),
    ...ofCertificates,
  }
  return { confirmations, isRequired, schemes: isOnlyDpop ? [keys] : [plain, keys], published }
}
