/**
 * `oauth2`: signing in with a provider that speaks OAuth 2.0 without OpenID Connect, such as GitHub, as a kind of
 * ceremony. The access token says nothing about the user, so a hook asks the provider for its id.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { TokenEndpointResponse } from 'openid-client' with { 'resolution-mode': 'import' }
import * as is from '../../core/checks.js'
import { checkOptions, declareFactory, token, typeName, type Checks } from '../../core/options.js'
import { checkAddress, checkUrl, Outage, beforeAbort } from '../../jwt/fetching.js'
import type { Ceremony, Kind } from '../Kind.js'
import { answerOf, HookRaised, providerChecks, readResponse, registeredClient } from './Client.js'
import { Rejected, SIGN_IN_MS, type AuthorizationResponse, type ProviderOptions } from './Client.js'
import { openidClientLoaded } from './openidClient.js'
import { withAnswer, rejected } from './ProviderAnswer.js'
import { plainConfiguration } from './ProviderRequest.js'
import { tokenClients } from './TokenClient.js'

/** The proof of a sign-in with a provider without OpenID Connect. */
export interface OAuth2Proof {
  readonly method: 'oauth2'
  /** When, in milliseconds since 1970. */
  readonly at: number
  /** The issuer, or else the name of the kind. */
  readonly issuer: string
  /** The result of the hook `subject`. */
  readonly subject: string
}

/** How users sign in with a provider without OpenID Connect. */
export interface OAuth2Options extends ProviderOptions {
  /** The name of the provider, such as `github`; it is `proof.issuer`, if there is no `issuer`. */
  readonly name: string
  /** The address of its authorization endpoint. */
  readonly authorize: string
  /** The address of its token endpoint. */
  readonly token: string
  /** The identifier that the provider sends as `iss` (RFC 9207). If it is given, it must come. `undefined` is a TypeError. */
  readonly issuer?: string
  /**
   * Asks the provider for the user. It returns an id that never changes and is never given to another user: a
   * number, not a name and not an e-mail address. An exception is a 500, but an `UnavailableError` or a network
   * problem of `fetch` is a 503.
   */
  readonly subject: (tokens: TokenEndpointResponse, signal: AbortSignal) => SubjectAnswer | Promise<SubjectAnswer>
  /**
   * `false` for a provider that refuses PKCE (RFC 7636). It needs a client with a secret or a key: without PKCE, that alone stops others
   * who have read a code. Default `true`.
   */
  readonly pkce?: boolean | undefined
  /** The time limit of each request to the provider, in milliseconds. Default 5000. */
  readonly timeout?: number | undefined
}

/** A stable id of a user: a string that is not empty, or an integer. */
export type SubjectAnswer = string | number

/** A provider without OpenID Connect, for `begin` and `finish`. */
export type OAuth2Kind = Kind<never, null, AuthorizationResponse, OAuth2Proof>

const checks: Checks<OAuth2Options> = {
  name: is.nameLike(token),
  authorize: (where, value) => checkUrl(where, value, true),
  token: checkAddress,
  issuer: is.ifWritten((where, value) => checkUrl(where, value)),
  ...providerChecks,
  subject: is.hook(2),
  pkce: is.maybe(is.flag),
  timeout: is.maybe(is.positive),
}

const TIMEOUT = 5000
const MAX_SUBJECT = 255

/**
 * Signing in with a provider that speaks OAuth 2.0 without OpenID Connect. Pass it to `begin` and `finish` of
 * `koa-with-auth/sign-in`. It uses PKCE, and checks `iss` wherever it comes. It cannot step up, because no such provider
 * says when its user signed in; for the same reason, its proof is fresh for no `maxAge`.
 *
 * Throws a TypeError for options that cannot work. While the provider is down, `finish` answers 503.
 *
 * @example
 * import { oauth2 } from 'koa-with-auth/sign-in/oidc'
 *
 * const github = oauth2({
 *   name: 'github',
 *   authorize: 'https://github.com/login/oauth/authorize',
 *   token: 'https://github.com/login/oauth/access_token',
 *   client: { id: 'shop', secret: 'a secret of the client' },
 *   callback: '/sign-in/github/callback',
 *   subject: async ({ access_token }, signal) => {
 *     const headers = { Authorization: `Bearer ${access_token}` }
 *     const response = await fetch('https://api.github.com/user', { headers, signal })
 *     return String(Object(await response.json()).id ?? '')
 *   },
 * })
 */
export const oauth2 = (options: OAuth2Options): OAuth2Kind => {
  const self = serverFrom(options)
  const { name, callback, lifetime = SIGN_IN_MS } = self.given
  const kind: OAuth2Kind = {
    name: `oauth2:${name} ${callback}`,
    lifetime,
    leadsAgain: true,
    intents: ['signIn', 'link'],
    begin: (_incoming, ceremony) => beginOAuth2(self, ceremony),
    read: readResponse,
    check: (_kept, answer, ceremony) => checkOAuth2Answer(self, answer, ceremony),
  }
  const configured = () => Promise.resolve(E.right(self.configuration()))
  tokenClients.set(kind, { issuer: self.issuer, configured, scopes: self.scopes })
  return kind
}

const serverFrom = (options: OAuth2Options) => {
  const given = checkOptions('oauth2', options, checks)
  const client = registeredClient('oauth2({ client })', given.client)
  if (given.pkce === false && client.isPublic)
    throw new TypeError(
      'oauth2({ pkce: false }) needs a client with a secret or a key; without PKCE, only these protect the code',
    )
  const { name, issuer, authorize, token: endpoint, scope, timeout = TIMEOUT } = given
  const authority = new URL(authorize).origin
  const server = {
    // openid-client takes no server without an issuer
    issuer: issuer ?? authority,
    authorization_endpoint: authorize,
    token_endpoint: endpoint,
    ...(issuer !== undefined && { authorization_response_iss_parameter_supported: true }),
  }
  const configuration = plainConfiguration(server, client, timeout)
  return { given, issuer: issuer ?? name, authority, scopes: new Set(scope), timeout, configuration }
}

type OAuth2 = ReturnType<typeof serverFrom>

const beginOAuth2 = async ({ given, scopes, configuration }: OAuth2, { origin, secret }: Ceremony) => {
  const openid = await openidClientLoaded()
  const sent = {
    ...given.parameters,
    redirect_uri: origin + given.callback,
    ...(scopes.size > 0 && { scope: [...scopes].join(' ') }),
    ...(given.pkce !== false && {
      code_challenge: await openid.calculatePKCECodeChallenge(secret('pkce')),
      code_challenge_method: 'S256',
    }),
  }
  return E.right({
    kept: null,
    send: (state: string) => ({ redirect: openid.buildAuthorizationUrl(configuration(), { ...sent, state }).href }),
  })
}

const checkOAuth2Answer = async (
  self: OAuth2,
  { parameters, state }: AuthorizationResponse,
  { origin, secret }: Ceremony,
) => {
  const { given, issuer, authority, configuration } = self
  try {
    const url = new URL(`${origin}${given.callback}?${parameters}`)
    if (given.issuer === undefined) checkIssuer(url, authority)
    const openid = await openidClientLoaded()
    const tokens = await openid.authorizationCodeGrant(configuration(), url, {
      ...(given.pkce !== false && { pkceCodeVerifier: secret('pkce') }),
      expectedState: state,
    })
    const subject = await askSubject(self, tokens)
    const proof: OAuth2Proof = { method: 'oauth2', at: Date.now(), issuer, subject }
    return E.right(withAnswer(proof, { claims: undefined, userinfo: undefined, tokens }))
  } catch (error) {
    return rejected(issuer, error, 'code')
  }
}

// Its issuer is not known, but an answer of another server is refused (RFC 9207 §2.4)
const checkIssuer = (url: URL, authority: string): void => {
  const iss = url.searchParams.get('iss')
  if (iss === null) return
  if (!URL.canParse(iss) || new URL(iss).origin !== authority) throw new Rejected('iss')
  url.searchParams.delete('iss')
}

// The results of `String(...)` for an answer without an id
const missing: ReadonlySet<string> = new Set(['undefined', 'null', 'NaN', '[object Object]'])

const askSubject = async ({ given, timeout }: OAuth2, tokens: TokenEndpointResponse): Promise<string> => {
  const signal = AbortSignal.timeout(Math.ceil(timeout))
  const asked = answerOf(() => given.subject(tokens, signal))
  const found: unknown = await beforeAbort(signal, asked).catch((error: unknown) => {
    const cause = error instanceof HookRaised ? error.cause : error
    // undici's own words for a server that cannot be asked
    const isNetwork = cause instanceof TypeError && cause.message === 'fetch failed'
    if (cause instanceof Outage || isNetwork || signal.aborted) throw new Outage('cannot be asked', false)
    throw error
  })
  const text = typeof found === 'number' && Number.isSafeInteger(found) ? String(found) : found
  if (typeof text !== 'string' && typeof found !== 'number') {
    throw wrongSubject(`must return a string or an integer, not ${typeName(found)}`)
  }
  if (typeof text !== 'string' || text.trim() === '' || text.length > MAX_SUBJECT) throw new Rejected('subject')
  if (!missing.has(text)) return text
  throw wrongSubject(`returned the string '${text}': a value was missing, and all users would be one`)
}

const wrongSubject = (problem: string): HookRaised =>
  new HookRaised('subject', { cause: new TypeError(`oauth2({ subject }) ${problem}`) })

declareFactory('oauth2', oauth2)
