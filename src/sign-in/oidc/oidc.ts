/** `oidc`: signing in with an OpenID provider, as a kind of ceremony. openid-client checks the demands of the protocol. */
import * as E from 'fp-ts/lib/Either.js'
import type { Configuration } from 'openid-client' with { 'resolution-mode': 'import' }
import * as is from '../../core/checks.js'
import { checkOptions, declareFactory, type Checks } from '../../core/options.js'
import { keyPolicyOf, type KeyOptions } from '../../jwt/keySet.js'
import { checkSecret } from '../../jwt/signature.js'
import type { Kind } from '../Kind.js'
import {
  askingChecks,
  registeredClient,
  SIGN_IN_MS,
  providerChecks,
  authorizationQuestions,
  readResponse,
  Rejected,
  responseFields,
} from './Client.js'
import type { Asking, AuthorizationResponse, ExpectedAnswer, ProviderOptions, Registered } from './Client.js'
import { openidClient } from './openidClient.js'
import { withAnswer, proofIn, rejected, asThrown, unsignedIn, type OidcProof } from './ProviderAnswer.js'
import { idTokenAlgorithms, isOfTenants, placeChecks, remoteProvider } from './RemoteProvider.js'
import type { IdTokenAlgorithm, ProviderPlace } from './RemoteProvider.js'
import { tokenClients } from './TokenClient.js'

/** How users sign in with an OpenID provider. */
export interface OidcOptions extends Asking, ProviderOptions, ProviderPlace {
  /**
   * The URL of the issuer, exactly as its tokens name it. Discovery finds everything else, at first use. For the tenants of Entra ID:
   * `https://login.microsoftonline.com/organizations/v2.0`, or `common`; `proof.issuer` is then that of the tenant.
   */
  readonly issuer: string
  /** How the provider answers. `form_post` is a POST of another site; it is answered with a redirect. Default `query`. */
  readonly responseMode?: 'query' | 'form_post' | undefined
  /** Whether the claims of userinfo are fetched. Default `false`. */
  readonly userinfo?: boolean | undefined
  /** Whether authorization requests are pushed (RFC 9126). Default: as the provider's metadata demand. */
  readonly pushed?: boolean | undefined
  /**
   * The only algorithm of ID tokens. Default: those in the provider's metadata, but none by a secret. `HS256` is by the client's secret,
   * of at least 32 bytes (OpenID Connect Core §10.1). `undefined` is a TypeError.
   */
  readonly idTokenAlgorithm?: IdTokenAlgorithm
  /** That of all sign-ins. `undefined` is a TypeError. */
  readonly maxAge?: number
  /** Those of all sign-ins. `undefined` is a TypeError. */
  readonly acrValues?: ReadonlyArray<string>
  /** `false` for a provider that puts no nonce into its ID tokens; PKCE binds the code to the browser. Default `true`. */
  readonly nonce?: boolean | undefined
  /** How far the clocks may differ, in milliseconds. Default 30,000. */
  readonly clockTolerance?: number | undefined
  /** How metadata and keys are kept, and the time limit of each request to the provider (`timeout`, 5 seconds). */
  readonly keys?: KeyOptions | undefined
}

/** A provider, for `begin`, `finish`, `rpLogout` and `backChannelLogout`. */
export interface OidcKind extends Kind<Asking, ExpectedAnswer, AuthorizationResponse, OidcProof> {
  readonly issuer: string
  /** Fetches metadata and keys. An application that starts without its provider need not wait for it. Never rejects. */
  readonly ready: () => Promise<void>
}

const checks: Checks<OidcOptions> = {
  ...askingChecks,
  maxAge: is.ifWritten(askingChecks.maxAge),
  acrValues: is.ifWritten(askingChecks.acrValues),
  issuer: is.nonEmpty,
  ...providerChecks,
  responseMode: is.maybe(is.oneOf('query', 'form_post')),
  userinfo: is.maybe(is.flag),
  pushed: is.maybe(is.flag),
  idTokenAlgorithm: is.ifWritten(is.oneOf(...idTokenAlgorithms)),
  nonce: is.maybe(is.flag),
  ...placeChecks,
  clockTolerance: is.maybe(is.millisecondsOrNone),
  keys: is.unchecked,
}

const CLOCK_TOLERANCE = 30_000

/** A provider, for `oidc`, `rpLogout` and `backChannelLogout`. */
export type RelyingParty = ReturnType<typeof partyFrom>

const parties = new WeakMap<object, RelyingParty>()

/** The provider of a kind. Throws a TypeError for a kind that `oidc` did not make. */
export const relyingPartyOf = (where: string, kind: unknown): RelyingParty => {
  const party = typeof kind === 'object' && kind !== null ? parties.get(kind) : undefined
  if (party === undefined) throw new TypeError(`${where} takes the result of oidc(...)`)
  return party
}

const partyFrom = (options: OidcOptions) => {
  const given = checkOptions('oidc', options, checks)
  const { issuer, scope = ['openid'], discovery, metadata, idTokenAlgorithm: algorithm } = given
  // times of tokens are in seconds
  const clockTolerance = (given.clockTolerance ?? CLOCK_TOLERANCE) / 1000
  if (!scope.includes('openid')) {
    throw new TypeError("oidc({ scope }) must include 'openid'; without it there is no ID token, see oauth2")
  }
  const client = registeredClient('oidc({ client })', given.client)
  checkSources(given, client)
  const policy = keyPolicyOf('oidc({ keys })', given.keys)
  const provider = remoteProvider({ issuer, client, policy, clockTolerance, discovery, metadata, algorithm })
  const isPosted = given.responseMode === 'form_post'
  return { given, issuer, client, provider, scopes: new Set(scope), isPosted, clockTolerance }
}

/**
 * Signing in with an OpenID provider, found by discovery at first use. Pass it to `begin` and `finish` of
 * `koa-with-auth/sign-in`. It uses PKCE, a nonce and RFC 9207, and verifies the signature of every ID token. A user is
 * found by `proof.issuer` and `proof.subject`, never by e-mail.
 *
 * Throws a TypeError for options that cannot work. While the provider is down, `begin` and `finish` answer 503.
 *
 * @example
 * import { oidc } from 'koa-with-auth/sign-in/oidc'
 *
 * const google = oidc({
 *   issuer: 'https://accounts.google.com',
 *   client: { id: 'shop', secret: 'a secret of the client' },
 *   callback: '/sign-in/google/callback',
 *   scope: ['openid', 'email'],
 * })
 * assert.strictEqual(google.issuer, 'https://accounts.google.com')
 */
export const oidc = (options: OidcOptions): OidcKind => {
  const self = partyFrom(options)
  const { given, issuer, provider, scopes } = self
  const kind: OidcKind = {
    name: `oidc:${issuer} ${given.callback}`,
    part: 'oidc',
    issuer,
    lifetime: given.lifetime ?? SIGN_IN_MS,
    leadsAgain: true,
    ...(self.isPosted && { posted: responseFields, concealed: ['user'] }),
    ready: provider.ready,
    begin: (_incoming, beginning, ask) => beginOidc(self, beginning, ask),
    read: readResponse,
    check: (expected, answer, ceremony) => checkOidcAnswer(self, expected, answer, ceremony),
  }
  tokenClients.set(kind, { issuer, configured: provider.verifying, scopes })
  parties.set(kind, self)
  return kind
}

const beginOidc = async (
  { given, provider, scopes, isPosted }: RelyingParty,
  { origin, secret, intent, display }: Parameters<OidcKind['begin']>[1],
  ask: Asking = {},
) => {
  // a step-up is worth something only if the user does something
  const all: Asking = { ...given, ...checkOptions('begin(kind, { ask })', ask, askingChecks) }
  const isUnasked = all.maxAge === undefined && all.acrValues === undefined
  const wanted = intent === 'stepUp' && isUnasked ? { ...all, maxAge: 0 } : all
  const configured = await provider.configuration()
  if (E.isLeft(configured)) return configured
  const questions = authorizationQuestions(wanted)
  const sent = {
    ...given.parameters,
    ...questions.parameters,
    redirect_uri: origin + given.callback,
    scope: [...scopes].join(' '),
    ...(given.nonce !== false && { nonce: secret('nonce') }),
    code_challenge: await openidClient().calculatePKCECodeChallenge(secret('pkce')),
    code_challenge_method: 'S256',
    ...(isPosted && { response_mode: 'form_post' }),
    ...(display !== 'page' && { display }),
  }
  return E.right({
    kept: questions.expected,
    send: async (state: string) => ({
      redirect: await authorizationUrl(configured.right, { ...sent, state }, given.pushed),
    }),
  })
}

const authorizationUrl = async (
  configuration: Configuration,
  sent: Record<string, string>,
  isPushed = configuration.serverMetadata().require_pushed_authorization_requests === true,
): Promise<string> => {
  const openid = openidClient()
  if (!isPushed) return openid.buildAuthorizationUrl(configuration, sent).href
  const url = await openid.buildAuthorizationUrlWithPAR(configuration, sent).catch((error: unknown) => {
    throw asThrown(error)
  })
  return url.href
}

const checkOidcAnswer = async (
  { given, client, provider, clockTolerance }: RelyingParty,
  expected: ExpectedAnswer,
  { parameters, state, user }: AuthorizationResponse,
  { origin, secret }: Parameters<OidcKind['check']>[2],
) => {
  const configured = await provider.verifying()
  if (E.isLeft(configured)) return configured
  const openid = openidClient()
  const named = configured.right.serverMetadata().issuer
  const url = new URL(`${origin}${given.callback}?${parameters}`)
  const iss = isOfTenants(named) ? url.searchParams.get('iss') : null
  if (iss !== null) url.searchParams.delete('iss')
  let step: 'code' | 'userinfo' = 'code'
  try {
    const tokens = await openid.authorizationCodeGrant(configured.right, url, {
      pkceCodeVerifier: secret('pkce'),
      ...(given.nonce !== false && { expectedNonce: secret('nonce') }),
      expectedState: state,
      idTokenExpected: true,
      ...(expected.maxAge !== undefined && { maxAge: expected.maxAge }),
    })
    const claims = tokens.claims()
    // Safe: `idTokenExpected` refuses an answer without an ID token
    const proof = proofIn(claims!, tokens, { ...expected, issuer: named, clientId: client.id }, clockTolerance)
    if (iss !== null && iss !== proof.issuer) throw new Rejected('iss')
    step = 'userinfo'
    const userinfo = given.userinfo
      ? await openid.fetchUserInfo(configured.right, tokens.access_token, proof.subject)
      : undefined
    return E.right(withAnswer(proof, { claims, userinfo, tokens, unsigned: unsignedIn(user) }))
  } catch (error) {
    return rejected(given.issuer, error, step)
  }
}

declareFactory('oidc', oidc)

// Throws a TypeError for a secret that cannot sign, and for keys that cannot be found
const checkSources = (
  { discovery, metadata, idTokenAlgorithm: algorithm }: Pick<OidcOptions, 'idTokenAlgorithm' | keyof ProviderPlace>,
  { secret }: Registered,
): void => {
  const refuse = (problem: string): never => {
    throw new TypeError(`oidc(${problem}`)
  }
  if (discovery !== undefined && metadata !== undefined)
    refuse('{ discovery, metadata }): write discovery or metadata; with metadata nothing is discovered')
  if (metadata !== undefined && metadata.jwks_uri === undefined && algorithm !== 'HS256')
    refuse('{ metadata }) needs jwks_uri, the address of the keys')
  if (algorithm !== 'HS256') return
  if (typeof secret !== 'string')
    return refuse("{ idTokenAlgorithm: 'HS256' }) needs client: { secret }, a string, which signs the ID tokens")
  checkSecret('oidc({ client: { secret } })', Buffer.from(secret), [algorithm])
}
