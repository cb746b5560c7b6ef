/**
 * `oidc`: signing in with an OpenID provider, as a kind of ceremony. openid-client checks what the protocol demands. The
 * provider is found by discovery at first use: its metadata, its keys, and openid-client set up for it.
 */
import * as E from 'fp-ts/lib/Either.js'
import { identity } from 'fp-ts/lib/function.js'
import type { Configuration, CustomFetch, ServerMetadata, UserInfoResponse } from 'openid-client' with {
  'resolution-mode': 'import',
}
import type { AuthError } from '../../core/AuthError.js'
import { isYounger, thisMoment, type Moment } from '../../core/data.js'
import * as is from '../../core/checks.js'
import { bare, checkOptions, declareFactory, type Checks } from '../../core/options.js'
import { checkUrl, isSecure, Outage } from '../../jwt/fetching.js'
import { fetched, fetchJwks, keyPolicyOf, type KeyOptions, type KeyPolicy } from '../../jwt/keySet.js'
import type { SigningKeySet } from '../../jwt/signature.js'
import type { Kind } from '../Kind.js'
import {
  askedFor,
  askingChecks,
  clientOf,
  configurationOf,
  jsonResponse,
  LIFETIME,
  providerChecks,
  questionsOf,
  readResponse,
  responseFields,
  type Asking,
  type AuthorizationResponse,
  type Expected,
  type ProviderOptions,
  type Registered,
} from './Client.js'
import { openidClient, openidClientLoaded } from './openidClient.js'
import { carrying, proofIn, refused, thrownFor, type OidcProof } from './ProviderAnswer.js'
import { addingTo, declareTokenClient } from './TokenClient.js'

/** How users sign in with an OpenID provider. */
export interface OidcOptions extends Asking, ProviderOptions {
  /** The URL of the issuer. Discovery finds everything else, at first use. */
  readonly issuer: string
  /** How the provider answers. `form_post` is a POST of another site; it is answered with a redirect. Default `query`. */
  readonly responseMode?: 'query' | 'form_post' | undefined
  /** Whether the claims of userinfo are fetched. Default `false`. */
  readonly userinfo?: boolean | undefined
  /** Whether authorization requests are pushed (RFC 9126). Default: as the provider's metadata demand. */
  readonly pushed?: boolean | undefined
  /** How far the clocks may differ, in milliseconds. Default 30,000. */
  readonly clockTolerance?: number | undefined
  /** How metadata and keys are kept, and the time limit of each request to the provider (`timeout`, 5 seconds). */
  readonly keys?: KeyOptions | undefined
}

/** A provider, for `begin`, `finish`, `rpLogout` and `backChannelLogout`. */
export interface OidcKind extends Kind<Asking, Expected, AuthorizationResponse, OidcProof> {
  readonly issuer: string
  /** Fetches metadata and keys. An application that starts without its provider need not wait for it. Never rejects. */
  readonly ready: () => Promise<void>
}

const checks: Checks<OidcOptions> = {
  ...askingChecks,
  issuer: is.nonEmpty,
  ...providerChecks,
  responseMode: is.maybe(is.oneOf('query', 'form_post')),
  userinfo: is.maybe(is.flag),
  pushed: is.maybe(is.flag),
  clockTolerance: is.maybe(is.millisecondsOrNone),
  keys: is.unchecked,
}

const TOLERANCE = 30_000

const parties = new WeakMap<object, RelyingParty>()

/** What `rpLogout` and `backChannelLogout` need of a provider. */
export interface RelyingParty {
  readonly provider: ReturnType<typeof providerOf>
  readonly issuer: string
  readonly clientId: string
  readonly clockTolerance: number
}

/** The provider of a kind. Throws a TypeError for a kind that `oidc` did not make. */
export const relyingPartyOf = (where: string, kind: unknown): RelyingParty => {
  const party = typeof kind === 'object' && kind !== null ? parties.get(kind) : undefined
  if (party === undefined) throw new TypeError(`${where} takes what oidc(...) returns`)
  return party
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
  const given = checkOptions('oidc', options, checks)
  const {
    issuer,
    callback,
    scope = ['openid'],
    responseMode = 'query',
    userinfo = false,
    pushed,
    parameters = {},
  } = given
  const { lifetime = LIFETIME } = given
  // times of tokens are in seconds
  const clockTolerance = (given.clockTolerance ?? TOLERANCE) / 1000
  if (!scope.includes('openid')) {
    throw new TypeError("oidc({ scope }) must include 'openid'; without it there is no ID token, see oauth2")
  }
  const client = clientOf('oidc({ client })', given.client)
  const policy = keyPolicyOf('oidc({ keys })', given.keys)
  const provider = providerOf(issuer, client, policy, clockTolerance)
  const scopes = new Set(scope)

  const authorizationUrl = async (configuration: Configuration, sent: Record<string, string>): Promise<string> => {
    const openid = openidClient()
    const isPushed = pushed ?? configuration.serverMetadata().require_pushed_authorization_requests === true
    if (!isPushed) return openid.buildAuthorizationUrl(configuration, sent).href
    const url = await openid.buildAuthorizationUrlWithPAR(configuration, sent).catch((error: unknown) => {
      throw thrownFor(error)
    })
    return url.href
  }

  const kind: OidcKind = {
    name: `oidc:${issuer} ${callback}`,
    part: 'oidc',
    issuer,
    lifetime,
    leadsAgain: true,
    ...(responseMode === 'form_post' && { posted: responseFields }),
    ready: provider.ready,
    begin: async (_incoming, { origin, secret, intent, display }, ask = {}) => {
      // a step-up is worth something only if the user does something
      const all = bare<Asking>({ ...given, ...checkOptions('begin(kind, { ask })', ask, askingChecks) })
      const isUnasked = all.maxAge === undefined && all.acrValues === undefined
      const wanted = intent === 'stepUp' && isUnasked ? bare({ ...all, maxAge: 0 }) : all
      const configured = await provider.configuration()
      if (E.isLeft(configured)) return configured
      const questions = questionsOf(wanted)
      const sent = {
        ...parameters,
        ...questions.parameters,
        redirect_uri: origin + callback,
        scope: [...scopes].join(' '),
        nonce: secret('nonce'),
        code_challenge: await openidClient().calculatePKCECodeChallenge(secret('pkce')),
        code_challenge_method: 'S256',
        ...(responseMode === 'form_post' && { response_mode: 'form_post' }),
        ...(display !== 'page' && { display }),
      }
      return E.right({
        kept: questions.expected,
        send: async (state) => ({ redirect: await authorizationUrl(configured.right, { ...sent, state }) }),
      })
    },
    read: readResponse,
    check: async (expected, { parameters: answered, state }, { origin, secret }) => {
      const configured = await provider.verifying()
      if (E.isLeft(configured)) return configured
      const openid = openidClient()
      let step: 'code' | 'userinfo' = 'code'
      try {
        const tokens = await openid.authorizationCodeGrant(
          configured.right,
          new URL(`${origin}${callback}?${answered}`),
          {
            pkceCodeVerifier: secret('pkce'),
            expectedNonce: secret('nonce'),
            expectedState: state,
            idTokenExpected: true,
            ...(expected.maxAge !== undefined && { maxAge: expected.maxAge }),
          },
        )
        const claims = tokens.claims()
        // Safe: `idTokenExpected` refuses an answer without one
        const proof = proofIn(claims!, tokens, expected, client.id, clockTolerance)
        step = 'userinfo'
        const fetched: UserInfoResponse | undefined = userinfo
          ? await openid.fetchUserInfo(configured.right, tokens.access_token, proof.subject)
          : undefined
        return E.right(carrying(proof, { claims, userinfo: fetched, tokens }))
      } catch (error) {
        return refused(issuer, error, step)
      }
    },
  }
  declareTokenClient(kind, { issuer, configured: provider.verifying, askFor: addingTo(scopes) })
  parties.set(kind, { provider, issuer, clientId: client.id, clockTolerance })
  return kind
}

declareFactory('oidc', oidc)

// --- the provider

// Nothing is asked before it is used. Throws a TypeError for an issuer that is not an https URL. The tolerance is in seconds
const providerOf = (issuer: string, client: Registered, policy: KeyPolicy, clockTolerance: number) => {
  checkUrl('oidc({ issuer })', issuer)
  const server = new URL(issuer)
  const isInsecure = server.protocol === 'http:'

  const setUp = (metadata: ServerMetadata, fetch: CustomFetch): Configuration => {
    const made = configurationOf(metadata, client, { timeout: policy.timeout, clockTolerance, isInsecure }, fetch)
    // RFC 9700 does not demand it of a token from the token endpoint; a proxy that ends TLS is a reason to
    openidClient().enableNonRepudiationChecks(made)
    return made
  }

  const fetchMetadata = async (): Promise<ServerMetadata> => {
    const openid = await openidClientLoaded()
    const options = {
      [openid.customFetch]: askedFor(),
      timeout: policy.timeout / 1000,
      execute: isInsecure ? [openid.allowInsecureRequests] : [],
    }
    const found = await openid
      .discovery(server, client.id, undefined, openid.None(), options)
      .catch((error: unknown) => {
        throw outageOf(error)
      })
    const metadata = bare(found.serverMetadata())
    // found at the beginning, not when the user comes back
    for (const name of ['authorization_endpoint', 'token_endpoint']) {
      if (typeof metadata[name] !== 'string') throw new Outage(`answered a discovery document without ${name}`, true)
    }
    // OpenID Connect Discovery 1.0 §4.3. openid-client compares them as URLs, which have a slash at the end of an origin
    if (metadata.issuer !== issuer) {
      throw new Outage('names another issuer in its discovery document; compare them, also a slash at the end', true)
    }
    return metadata
  }
  const kept = <J, A>(fetch: (signal: AbortSignal) => Promise<J>, read: (json: J) => A) =>
    fetched(
      { fetch, read, unreadable: 'answered what openid-client does not take' },
      { ...policy, refreshAhead: false },
      { issuer, failed: (problem) => warn(issuer, problem) },
    )
  // the metadata do not change a request of a browser, so one set-up serves all until they do
  const setUps = kept(fetchMetadata, (metadata) => setUp(metadata, askedFor()))

  const fetchKeys = async (signal: AbortSignal): Promise<SigningKeySet> => {
    const found = await setUps.current()
    const url = E.isRight(found) ? found.right.serverMetadata().jwks_uri : undefined
    if (!isSecure(url)) throw new Outage('answered a discovery document without a jwks_uri that can be used', true)
    return fetchJwks(url, signal)
  }
  const keySets = kept(fetchKeys, identity)

  // Newer keys than these, which lacked one; the same ones if the provider has no newer
  let missedAt: Moment | undefined
  const newer = async (than: SigningKeySet): Promise<E.Either<AuthError, SigningKeySet>> => {
    const known = keySets.latest()
    if (known !== undefined && known.value !== than) return known.right
    if (keySets.isPaused()) return keySets.outage()
    if (!keySets.isDown() && isYounger(missedAt, policy.cooldown)) return E.right(than)
    if (!(await keySets.refresh())) return keySets.outage()
    missedAt = thisMoment()
    return keySets.latest()?.right ?? keySets.outage()
  }

  const keysFor = async (kid: string | undefined): Promise<E.Either<AuthError, SigningKeySet>> => {
    const latest = await keySets.current()
    if (E.isLeft(latest) || kid === undefined || latest.right.keys.some((key) => key['kid'] === kid)) return latest
    return newer(latest.right)
  }

  /*
   * openid-client keeps the keys of a set-up for five minutes, and does not ask again for one. So each answer has its own
   * set-up, whose keys are those kept here: a rotated key is found at once, and an outage of the provider's keys is one
   * only after `staleIfError`.
   */
  const verifying = async (): Promise<E.Either<AuthError, Configuration>> => {
    const found = await setUps.current()
    if (E.isLeft(found)) return found
    const metadata = found.right.serverMetadata()
    let kid: string | undefined
    const ask = askedFor((seen) => {
      kid = seen
    })
    const answer: CustomFetch = async (url, init) => {
      if (typeof metadata.jwks_uri !== 'string' || url !== new URL(metadata.jwks_uri).href) return ask(url, init)
      const keys = await keysFor(kid)
      if (E.isLeft(keys)) throw new Outage('answers no keys', false)
      return jsonResponse(keys.right)
    }
    return E.right(setUp(metadata, answer))
  }

  // it fetches metadata and keys that are missing, and never rejects
  const ready = async (): Promise<void> => void (await keySets.current())
  return { configuration: setUps.current, verifying, keysFor, ready }
}

const outageOf = (error: unknown): Outage => {
  if (error instanceof Outage) return error
  if (error instanceof Error && error.cause instanceof Outage) return error.cause
  return new Outage('answered a discovery document that cannot be used, or one of another issuer', true)
}

const warn = (issuer: string, problem: string): void =>
  process.emitWarning(
    `oidc: ${issuer} cannot be used: it ${problem}. Sign-ins that need it are answered with 503`,
    'ProviderWarning',
  )
