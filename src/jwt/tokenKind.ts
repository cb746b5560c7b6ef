/** The common part of the token kinds: the options of `httpBearer`, the protected resource, and the check of `Origin`. */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Request } from '../core/Request.js'
import { because, forged, invalid } from '../core/AuthError.js'
import { kindOf, type Authenticator } from '../core/Authenticator.js'
import { bareToken, isToken, tokenAfter } from '../core/Credentials.js'
import { stringKindChecks, constantFailure, documented } from '../core/Description.js'
import type { StringKindOptions, ApiKeyScheme, HttpScheme, Leaf, OpenIdConnectScheme } from '../core/Description.js'
import { fromAuthorization, type Reader, type Sent } from '../core/RequestFields.js'
import { andThen, fromAnswer, isThenable, returningResults, toPromise } from '../core/Result.js'
import type { Evaluation, Decoded, Result } from '../core/Result.js'
import { decoderOf, schemaLike, schemaLabel, type Schema } from '../core/Schema.js'
import { restsOn, withEvidence } from '../core/Evidence.js'
import { knownExchange } from '../core/Exchange.js'
import { ownField, ownOrGetter, type Fact } from '../core/data.js'
import { End, NamedEnd, type EndSource } from '../core/ends.js'
import { sayingScopes } from '../core/granted.js'
import { functionName } from '../core/functionName.js'
import * as is from '../core/checks.js'
import type { Checks } from '../core/options.js'
import { bearerChallenge } from '../kinds/http.js'
import type { ProtectedResource } from '../mcp/protectedResource.js'
import { nonEmptyStrings, type StringOrStrings } from './Provider.js'
import type { ValidToken } from './verifier.js'

/** A token that was accepted, for handlers. It is on the decision until the guard lets the request in. */
class AcceptedToken implements EndSource {
  readonly token: string
  readonly resource: ProtectedResource | undefined
  readonly #good: ValidToken

  constructor(token: string, good: ValidToken, resource: ProtectedResource | undefined) {
    this.token = token
    this.#good = good
    this.resource = resource
  }

  /** The claims, or the answer of introspection: a new copy for each reader. */
  claims(): Record<string, unknown> {
    // Safe: only a JSON object is accepted
    return JSON.parse(this.#good.payload) as Record<string, unknown>
  }

  get scopes(): ReadonlyArray<string> {
    return scopesOf(this.claims())
  }

  get act(): unknown {
    return ownField(this.claims(), 'act')
  }

  endFor(): End | undefined {
    const exp = ownField(this.claims(), 'exp')
    const { ending } = this.#good
    const at = typeof exp === 'number' ? exp * 1000 : Infinity
    if (ending !== undefined) return new NamedEnd(at, ending.name, ending.isRevoked)
    return at === Infinity ? undefined : new End(at)
  }
}

/** The last token among the credentials that were accepted. */
export const lastToken = (accepted: ReadonlyArray<EndSource> = []): AcceptedToken | undefined =>
  // Safe: another copy of this package makes the same
  accepted.findLast((source) => 'token' in source) as AcceptedToken | undefined

export const acceptedTokenOf = (ctx: Context): AcceptedToken | undefined => lastToken(knownExchange(ctx)?.accepted)

export interface TokenOptions<C, R> extends StringKindOptions {
  /**
   * The audience of tokens: one of these must be in `aud`. Default: the protected resource. `false`: `aud` is not looked at, for access
   * tokens that have none (Cognito, Clerk, Hydra); then `authorizedParties` must name the clients whose tokens are for this API.
   */
  readonly audience?: StringOrStrings | false | undefined
  /** The clients (`azp`, `client_id`) whose tokens are accepted. Each that a token names must be one of them. Default: all. */
  readonly authorizedParties?: ReadonlyArray<string> | undefined
  /**
   * Where the token is read, alone: `fromHeader('Cf-Access-Jwt-Assertion')`, `fromCookie('session')`. Default: the Authorization
   * field. A query (`fromQuery`) ends up in logs: only for clients that cannot set a field, such as EventSource.
   */
  readonly from?: Reader | undefined
  /**
   * Whether browsers send the token by themselves, such as one that a proxy makes of a cookie. Then writes of other sites are refused.
   * Default: whether `from` is a cookie.
   */
  readonly ambient?: boolean | undefined
  /**
   * Whether a good token was revoked, asked at each request: only `false` lets in. A revoked token is a 401. If it throws, the answer
   * is 500; an `UnavailableError` is a 503. Ask by `jti` or by the user and `iat`, never by the token itself.
   */
  readonly revoked?: ((claims: C, request: Request) => boolean | Promise<boolean>) | undefined
  /**
   * A decoder of io-ts, or a Standard Schema, such as one of zod, valibot and arktype. Claims that it refuses are `invalid`; if it
   * throws, the answer is 500. Its type is the type of the claims.
   */
  readonly claims?: Schema<C> | undefined
  /** Decides about a good token, for each request. Default: returns the claims. */
  readonly authenticate?: ((request: Request, claims: C) => R) | undefined
  /** The resource that it protects: its audience, the document in every challenge, and its origins. */
  readonly protectedResource?: ProtectedResource | undefined
}

const resourceCheck = is.that(
  (value) =>
    typeof value === 'object' && value !== null && 'metadataUrl' in value && typeof value.metadataUrl === 'string',
  'must be the result of protectedResource({ ... })',
)

const readerCheck = is.that(
  (value) => typeof value === 'function' && 'location' in value,
  'must be fromHeader(name), fromCookie(name) or fromQuery(name) of koa-with-auth',
)

export const tokenChecks: Checks<TokenOptions<unknown, unknown>> = {
  // `audiencesOf` checks these two
  audience: is.unchecked,
  authorizedParties: is.unchecked,
  from: is.maybe(readerCheck),
  ambient: is.maybe(is.flag),
  revoked: is.maybe(is.hook(1)),
  claims: is.maybe(schemaLike('t.type({ sub: t.string })')),
  authenticate: is.maybe(is.hook(2)),
  protectedResource: is.maybe(resourceCheck),
  ...stringKindChecks,
}

type CheckToken = (token: string, request: Request) => Evaluation<ValidToken>

/** The clients whose tokens are accepted; `undefined` for all. Throws a TypeError for an empty list. */
export const partiesOf = (where: string, parties: unknown): ReadonlyArray<string> | undefined =>
  parties === undefined ? undefined : nonEmptyStrings(`${where}({ authorizedParties })`, parties)

/** The audience of tokens. Throws a TypeError if there is none. */
export const audiencesOf = <C, R>(where: string, options: TokenOptions<C, R>): ReadonlyArray<string> | false => {
  const wanted = options.audience ?? options.protectedResource?.resource
  if (wanted === false) {
    if (options.authorizedParties !== undefined) return false
    throw new TypeError(
      `${where}({ audience: false }) needs authorizedParties: name the clients whose tokens are for this API, or tokens for other APIs work here`,
    )
  }
  if (wanted === undefined) {
    throw new TypeError(
      `${where}({ audience }) is missing: name the audience that tokens must be for; there is no "any". Tokens without one are for httpBearer, with a hook that verifies them`,
    )
  }
  return nonEmptyStrings(`${where}({ audience })`, wanted)
}

/** A note for the audit: `audience a b`; none if there is nothing to say. */
export const auditNote = (what: string, values: string | ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  values === undefined ? [] : [`${what} ${[values].flat().join(' ')}`]

/** Checks that a good token was sent by the client that it is bound to. It never throws, and its promise never rejects. */
type Confirm = (request: Request, token: string, claims: object) => Evaluation<unknown>

/** How tokens are sent, and how OpenAPI and the audit describe them. */
export interface TokenScheme {
  readonly scheme: HttpScheme
  /** The scheme of the Authorization field. Default `Bearer`. */
  readonly name?: string | undefined
  readonly discovery?: OpenIdConnectScheme | undefined
  /** The tokens that it accepts, in words for the audit: `audience api`. */
  readonly notes: ReadonlyArray<string>
  readonly fact?: Fact | undefined
  readonly parameters?: Readonly<Record<string, string>> | undefined
  /** Makes the check of a binding. `own`: the parameters of every challenge. Left out: a token that is bound is refused before. */
  readonly confirming?: ((own: Readonly<Record<string, string>>) => Confirm) | undefined
  readonly reads?: ReadonlyArray<string> | undefined
  readonly responseFields?: Leaf['responseFields'] | undefined
}

export const tokenKind = <C, R>(
  { scheme, name = 'Bearer', discovery, notes, fact, parameters, confirming, reads, responseFields }: TokenScheme,
  {
    claims: schema,
    authenticate,
    protectedResource: resource,
    realm,
    maxLength,
    from,
    ambient = from?.location.in === 'cookie',
    revoked,
    ...options
  }: TokenOptions<C, R>,
  check: CheckToken,
): Authenticator<unknown> => {
  const own = {
    ...(realm !== undefined && { realm }),
    ...(resource !== undefined && { resource_metadata: resource.metadataUrl }),
  }
  const accept: Admission<C>['ask'] = authenticate ?? ((_request, claims) => E.right(claims))
  const admission: Admission<C> = {
    check,
    decode: schema && decoderOf('claims', schema),
    ask: revoked === undefined ? accept : unlessRevoked(revoked, accept),
    // claims that no schema and no hook has made are no answer to judge
    judge: schema === undefined && authenticate === undefined ? asResult : fromAnswer,
    confirm: confirming?.(own),
    resource,
  }
  const isAllowed = resource?.isAllowedOrigin
  const leaf = {
    ...(discovery !== undefined && from === undefined && { discovery }),
    ...(isAllowed !== undefined && { exposesChallenges: isAllowed }),
    ...(reads !== undefined && { reads }),
    // a reader of the audit's table must see it: tokens for other services are good here, too
    ...(options.audience === false && { demands: 'any audience' }),
    ...(responseFields !== undefined && { responseFields }),
  }
  const made = kindOf<Sent, unknown, string>({
    ...documented<HttpScheme | ApiKeyScheme>(
      from === undefined ? scheme : { type: 'apiKey', ...from.location },
      options,
    ),
    // RFC 6750 §3
    challenge: bearerChallenge({ ...own, ...parameters }, { error_description: 'The access token expired' }, name),
    ambient,
    extract: from ?? fromAuthorization(name),
    credentials: from === undefined ? tokenAfter(name, isToken, true) : bareToken,
    maxLength,
    authenticate: returningResults((request: Request, token: string) => decideToken(admission, request, token)),
    leaf,
    notes: { wrappers: [...notes, ...tokenNotes(revoked, schema, resource)], fact },
    around: (inner, description) => {
      const fromElsewhere = constantFailure(description, forged)
      return (attempt) => (isAllowed?.(attempt.request) === false ? fromElsewhere : inner(attempt))
    },
  })
  // the token says them, whatever a schema or a hook makes of its claims
  return sayingScopes(made, () => undefined)
}

const tokenNotes = (revoked: Function | undefined, schema: unknown, resource: ProtectedResource | undefined) => [
  ...(revoked === undefined ? [] : [`unless revoked by ${functionName(revoked)}`]),
  // Safe: its label says nothing of its result
  ...auditNote('claims', schema === undefined ? undefined : schemaLabel(schema as Schema<never>)),
  ...auditNote('origins', resource?.origins),
]

interface Admission<C> {
  readonly check: CheckToken
  readonly decode: ((claims: unknown) => Decoded<C> | Promise<Decoded<C>>) | undefined
  readonly ask: (request: Request, claims: C) => unknown
  readonly judge: (answer: unknown) => Evaluation<unknown>
  readonly confirm: Confirm | undefined
  readonly resource: ProtectedResource | undefined
}

const decideToken = <C>(self: Admission<C>, request: Request, token: string): Evaluation<unknown> =>
  andThen(self.check(token, request), (good) =>
    E.isLeft(good) ? good : confirmToken(self, request, token, good.right),
  )

const confirmToken = <C>(self: Admission<C>, request: Request, token: string, good: ValidToken): Evaluation<unknown> =>
  self.confirm === undefined
    ? admitToken(self, request, token, good)
    : andThen(self.confirm(request, token, good.claims), (result) =>
        E.isLeft(result) ? result : admitToken(self, request, token, good),
      )

const admitToken = <C>(self: Admission<C>, request: Request, token: string, good: ValidToken): Evaluation<unknown> => {
  const { decode, ask, judge, resource } = self
  // Safe: without a schema, the claims have the default type of `C`
  const claims = decode === undefined ? E.right(good.claims as C) : decode(good.claims)
  return andThen(claims, (decoded) => {
    if (E.isLeft(decoded)) return wrongClaims
    const accepted = restsOn(new AcceptedToken(token, good, resource))
    return andThen(judge(ask(request, decoded.right)), (result) =>
      E.isLeft(result) ? result : withEvidence(result, accepted),
    )
  })
}

// Safe: without a hook, it is one
const asResult = (answer: unknown) => answer as Evaluation<unknown>

const unlessRevoked =
  <C>(
    revoked: (claims: C, request: Request) => boolean | Promise<boolean>,
    accept: (request: Request, claims: C) => unknown,
  ) =>
  (request: Request, claims: C): unknown => {
    const answer: unknown = revoked(claims, request)
    return isThenable(answer)
      ? toPromise(answer).then((late) => (late === false ? accept(request, claims) : revokedToken))
      : answer === false
        ? accept(request, claims)
        : revokedToken
  }

const revokedToken: Result<never> = E.left(because(invalid, 'revoked'))

const wrongClaims: Result<never> = E.left(because(invalid, 'claims'))

const claimedScopes = (claim: unknown): ReadonlyArray<string> => {
  if (typeof claim === 'string') return claim.split(' ').filter(is.isFilled)
  return Array.isArray(claim) ? claim.filter(is.isFilled) : []
}

/**
 * The scopes in the claims of a token: those of `scope` (RFC 9068 §2.2.3, RFC 7662 §2.2), or else of `scp` (Entra,
 * Okta). The claim is a string with blanks, or an array.
 *
 * @example
 * import { scopesOf } from 'koa-with-auth/jwt'
 *
 * assert.deepStrictEqual(scopesOf({ scope: 'files:read files:write' }), ['files:read', 'files:write'])
 * assert.deepStrictEqual(scopesOf({ scp: ['files:read'] }), ['files:read'])
 */
export const scopesOf = <C extends object>(claims: C): ReadonlyArray<string> =>
  claimedScopes(ownOrGetter(claims, 'scope') ?? ownOrGetter(claims, 'scp'))
