/** `oidc`: signing in with an OpenID provider, as a kind of ceremony. openid-client checks what the protocol demands. */
import * as E from 'fp-ts/lib/Either.js'
import type { Configuration, UserInfoResponse } from 'openid-client'
import { UnavailableError } from '../../core/Result.js'
import {
  checkOptions,
  declareFactory,
  flag,
  list,
  maybe,
  nonEmpty,
  oneOf,
  positive,
  unchecked,
  type Checks,
} from '../../core/options.js'
import { duration, keyPolicyOf, type KeyOptions } from '../../jwt/keySet.js'
import type { Kind } from '../Kind.js'
import {
  askingOf,
  expectedOf,
  furtherParameters,
  parametersOf,
  callbackPath,
  scopes,
  type Asking,
  type Expected,
} from './AuthorizationRequest.js'
import { readResponse, responseFields, type Response } from './AuthorizationResponse.js'
import { carrying } from './answers.js'
import { clientOf, type Client } from './Client.js'
import { failureOf, refused, type ProviderFailure } from './failures.js'
import { proofIn, type OidcProof } from './IdToken.js'
import { openidClient } from './openidClient.js'
import { providerOf, type Provider } from './Provider.js'

/** How users sign in with an OpenID provider. */
export interface OidcOptions extends Asking {
  /** The URL of the issuer. Discovery finds everything else, at first use. */
  readonly issuer: string
  /** What the application is registered as. */
  readonly client: Client
  /**
   * The path of the route that has `finish(...)`. With the application's `origin` it is the redirect URI to register.
   * Each provider has its own. Default: it is found in the routers that `app.use` mounts; `app.callback()` throws a
   * TypeError if no route has it, or several.
   */
  readonly callback?: string | undefined
  /** What is asked for. Default `['openid']`, which must be among them. */
  readonly scope?: ReadonlyArray<string> | undefined
  /** How the provider answers. `form_post` is a POST of another site; it is answered with a redirect. Default `query`. */
  readonly responseMode?: 'query' | 'form_post' | undefined
  /** Whether the claims of userinfo are fetched. Default `false`. */
  readonly userinfo?: boolean | undefined
  /** Whether authorization requests are pushed (RFC 9126). Default: as the provider's metadata demand. */
  readonly pushed?: boolean | undefined
  /** Parameters of the provider's own, such as `{ hd: 'shop.example' }`. */
  readonly parameters?: Readonly<Record<string, string>> | undefined
  /** How long a sign-in may take, in milliseconds. Default 15 minutes. */
  readonly lifetime?: number | undefined
  /** How far the clocks may differ, in seconds. Default 30. */
  readonly clockTolerance?: number | undefined
  /** How metadata and keys are kept, and the time limit of each request to the provider (`timeout`, 5 seconds). */
  readonly keys?: KeyOptions | undefined
}

/** A provider, for `begin`, `finish`, `endSession` and `backChannel`. */
export interface OidcKind extends Kind<Asking, Expected, Response, OidcProof> {
  readonly issuer: string
  /** Fetches metadata and keys. An application that starts without its provider need not wait for it. Never rejects. */
  readonly ready: () => Promise<void>
}

const asking: Checks<Asking> = {
  prompt: unchecked,
  loginHint: unchecked,
  maxAge: unchecked,
  acrValues: unchecked,
  uiLocales: unchecked,
}

const checks: Checks<OidcOptions> = {
  ...asking,
  issuer: nonEmpty,
  client: unchecked,
  callback: maybe(callbackPath),
  scope: maybe(scopes),
  responseMode: maybe(oneOf('query', 'form_post')),
  userinfo: maybe(flag),
  pushed: maybe(flag),
  parameters: maybe(furtherParameters),
  lifetime: maybe(positive),
  clockTolerance: maybe(duration),
  keys: unchecked,
}

const LIFETIME = 15 * 60_000
const TOLERANCE = 30

const parties = new WeakMap<object, RelyingParty>()

/** What `endSession` and `backChannel` need of a provider. */
export interface RelyingParty {
  readonly provider: Provider
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
  const { issuer, scope = ['openid'], responseMode = 'query', userinfo = false, pushed, parameters = {} } = given
  const { lifetime = LIFETIME, clockTolerance = TOLERANCE } = given
  const { prompt, loginHint, maxAge, acrValues, uiLocales } = given
  const defaults = askingOf('oidc', { prompt, loginHint, maxAge, acrValues, uiLocales })
  list('oidc({ scope })', scope)
  if (!scope.includes('openid')) {
    throw new TypeError("oidc({ scope }) must include 'openid'; without it there is no ID token, see oauth2")
  }
  const client = clientOf('oidc({ client })', given.client)
  const policy = keyPolicyOf('oidc({ keys })', given.keys)
  const provider = providerOf('oidc', { issuer, client, policy, clockTolerance })

  const authorizationUrl = async (configuration: Configuration, sent: Record<string, string>): Promise<string> => {
    const openid = openidClient()
    const isPushed = pushed ?? configuration.serverMetadata().require_pushed_authorization_requests === true
    if (!isPushed) return openid.buildAuthorizationUrl(configuration, sent).href
    const url = await openid.buildAuthorizationUrlWithPAR(configuration, sent).catch((error: unknown) => {
      throw thrownFor(failureOf(error, 'begin'))
    })
    return url.href
  }

  const kindAt = (callback: string): OidcKind => ({
    name: `oidc:${issuer} ${callback}`,
    issuer,
    lifetime,
    leadsAgain: true,
    ...(responseMode === 'form_post' && { posted: responseFields }),
    ready: provider.ready,
    begin: async (_incoming, { origin, secret, intent, display }, ask = {}) => {
      // a step-up is worth something only if the user does something
      const all = { ...defaults, ...askingOf('begin(kind, { ask })', ask) }
      const isUnasked = all.maxAge === undefined && all.acrValues === undefined
      const wanted = intent === 'stepUp' && isUnasked ? { ...all, maxAge: 0 } : all
      const configured = await provider.configuration()
      if (E.isLeft(configured)) return configured
      const sent = {
        ...parameters,
        ...parametersOf(wanted),
        redirect_uri: origin + callback,
        scope: scope.join(' '),
        nonce: secret('nonce'),
        code_challenge: await openidClient().calculatePKCECodeChallenge(secret('pkce')),
        code_challenge_method: 'S256',
        ...(responseMode === 'form_post' && { response_mode: 'form_post' }),
        ...(display !== 'page' && { display }),
      }
      return E.right({
        kept: expectedOf(wanted),
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
        const proof = proofIn(claims!, { tokens, clientId: client.id, expected, clockTolerance, now: Date.now() })
        step = 'userinfo'
        const fetched: UserInfoResponse | undefined = userinfo
          ? await openid.fetchUserInfo(configured.right, tokens.access_token, proof.subject)
          : undefined
        return E.right(carrying(proof, { claims, userinfo: fetched, tokens }))
      } catch (error) {
        return refused(issuer, error, step)
      }
    },
  })
  const kind =
    given.callback === undefined ? { ...kindAt(''), name: `oidc:${issuer}`, at: kindAt } : kindAt(given.callback)
  parties.set(kind, { provider, issuer, clientId: client.id, clockTolerance })
  return kind
}

/** What a step that cannot return a failure throws for it. */
const thrownFor = ({ error }: ProviderFailure): unknown =>
  error._tag === 'raised' ? error.error : new UnavailableError('the provider')

declareFactory('oidc', oidc)
