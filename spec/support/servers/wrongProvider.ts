/**
 * An OpenID provider that can do wrong what `oidc-provider` cannot: every answer can be replaced, and every claim and
 * signature of its tokens. It checks PKCE and the client as a good one does, and knows each code once.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { JWTPayload } from 'jose'
import { pour, seconds, signedWith, signingKey, type SigningKey } from './identityProvider.js'
import { SECRET } from './openIdProvider.js'
import { restartable } from './server.js'

type Respond = (res: ServerResponse, req: IncomingMessage, body: URLSearchParams) => unknown

/** The paths of its endpoints. */
export type Endpoint = '/discovery' | '/jwks' | '/authorize' | '/par' | '/token' | '/userinfo' | '/end'

export interface WrongProvider {
  readonly issuer: string
  /** The requests that it got, by endpoint. */
  readonly asked: (endpoint: Endpoint) => number
  /** The body of the last token request. */
  readonly tokenRequest: () => URLSearchParams
  /** `Authorization` of the last token request. */
  readonly tokenAuthorization: () => string | undefined
  /** The parameters of the last authorization request. */
  readonly authorizationRequest: () => URLSearchParams
  /** Answers an endpoint instead of the provider. */
  readonly answers: Partial<Record<Endpoint, Respond>>
  /** Its keys; the first one signs. */
  readonly keys: SigningKey[]
  /** Changes of the metadata. `undefined` removes a member. */
  metadata: Readonly<Record<string, unknown>>
  /** Changes of the claims of an ID token. */
  claims: (claims: JWTPayload) => JWTPayload
  /** Makes the ID token. */
  idToken: (claims: JWTPayload) => string | Promise<string>
  /** Changes of the token response. */
  tokens: (answer: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  /** What userinfo answers. */
  userinfo: Readonly<Record<string, unknown>>
  /** Changes of the authorization response. */
  response: (parameters: URLSearchParams) => void
  /** A logout token (OpenID Connect Back-Channel Logout §2.4) with the given changes. */
  readonly logoutToken: (
    over?: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>,
  ) => Promise<string>
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
}

interface Granted {
  readonly nonce: string | undefined
  readonly challenge: string | undefined
  readonly redirect: string
}

const ofJson = (res: ServerResponse, status = 200) => res.writeHead(status, { 'Content-Type': 'application/json' })

/** Common answers of a provider that fails. */
export const failing = {
  error: (res: ServerResponse) => res.writeHead(500).end('internal: token=secret'),
  limiting: (res: ServerResponse) => ofJson(res, 429).end('{"error":"too_many_requests"}'),
  html: (res: ServerResponse) => res.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>moved</html>'),
  cutOff: (res: ServerResponse) => {
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '500' })
    res.write('{"access_token":"a')
    setTimeout(() => res.destroy(), 50)
  },
  null: (res: ServerResponse) => ofJson(res).end('null'),
  empty: (res: ServerResponse) => ofJson(res).end(),
  hanging: () => undefined,
  slow: (res: ServerResponse) => ofJson(res).write('{"access_token":"'),
  endless: (res: ServerResponse) => pour(ofJson(res)),
} satisfies Readonly<Record<string, Respond>>

/** A JSON answer with any status. */
export const json =
  (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Respond =>
  (res) =>
    res.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))

let firstKey: ReturnType<typeof signingKey> | undefined

/** Runs until the test has finished. */
export const wrongProvider = async (): Promise<WrongProvider> => {
  const keys = [await (firstKey ??= signingKey('RS256', 'k1'))]
  const counts = new Map<string, number>()
  const codes = new Map<string, Granted>()
  const pushed = new Map<string, URLSearchParams>()
  let tokenRequest = new URLSearchParams()
  let tokenAuthorization: string | undefined
  let authorizationRequest = new URLSearchParams()

  const authorize: Respond = (res, req) => {
    const given = new URL(req.url ?? '', provider.issuer).searchParams
    const asked = pushed.get(given.get('request_uri') ?? '') ?? given
    authorizationRequest = asked
    const code = randomBytes(8).toString('hex')
    const redirect = asked.get('redirect_uri') ?? ''
    codes.set(code, {
      nonce: asked.get('nonce') ?? undefined,
      challenge: asked.get('code_challenge') ?? undefined,
      redirect,
    })
    const answer = new URLSearchParams({ code, state: asked.get('state') ?? '', iss: provider.issuer })
    provider.response(answer)
    res.writeHead(303, { Location: `${redirect}?${answer.toString()}` }).end()
  }
  const token: Respond = async (res, _req, body) => {
    const granted = codes.get(body.get('code') ?? '')
    codes.delete(body.get('code') ?? '')
    const verifier = body.get('code_verifier')
    const challenge = verifier === null ? undefined : createHash('sha256').update(verifier).digest('base64url')
    if (granted === undefined || granted.challenge !== challenge || granted.redirect !== body.get('redirect_uri')) {
      return json(400, { error: 'invalid_grant' })(res, _req, body)
    }
    const now = seconds()
    const claims = provider.claims({
      iss: provider.issuer,
      sub: 'anna',
      aud: 'shop',
      iat: now,
      exp: now + 300,
      ...(granted.nonce !== undefined && { nonce: granted.nonce }),
    })
    const answer = {
      access_token: 'an-access-token',
      token_type: 'Bearer',
      expires_in: 300,
      refresh_token: 'a-refresh-token',
      id_token: await provider.idToken(claims),
    }
    return json(200, provider.tokens(answer))(res, _req, body)
  }
  const par: Respond = (res, req, body) => {
    const uri = `urn:ietf:params:oauth:request_uri:${randomBytes(8).toString('hex')}`
    pushed.set(uri, body)
    return json(201, { request_uri: uri, expires_in: 60 })(res, req, body)
  }
  const own: Record<Endpoint, Respond> = {
    '/discovery': (res, req, body) => {
      const { issuer } = provider
      const metadata = {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        pushed_authorization_request_endpoint: `${issuer}/par`,
        end_session_endpoint: `${issuer}/end`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256', 'ES256'],
        authorization_response_iss_parameter_supported: true,
        ...provider.metadata,
      }
      return json(200, metadata)(res, req, body)
    },
    '/jwks': (res, req, body) => json(200, { keys: keys.map(({ jwk }) => jwk) })(res, req, body),
    '/authorize': authorize,
    '/par': par,
    '/token': token,
    '/userinfo': (res, req, body) => json(200, provider.userinfo)(res, req, body),
    '/end': (res) => res.end('signed out'),
  }
  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const path = (req.url ?? '').split('?')[0] ?? ''
    const name = path.endsWith('/.well-known/openid-configuration') ? '/discovery' : path
    counts.set(name, (counts.get(name) ?? 0) + 1)
    if (!Object.hasOwn(own, name)) return void res.writeHead(404).end()
    const endpoint = name as Endpoint
    const body = new URLSearchParams(await text(req))
    if (endpoint === '/token') {
      tokenRequest = body
      tokenAuthorization = req.headers.authorization
    }
    await (provider.answers[endpoint] ?? own[endpoint])(res, req, body)
  }
  const { origin, stop, start } = await restartable((req, res) => void handle(req, res))
  const provider: WrongProvider = {
    issuer: origin,
    asked: (endpoint) => counts.get(endpoint) ?? 0,
    tokenRequest: () => tokenRequest,
    tokenAuthorization: () => tokenAuthorization,
    authorizationRequest: () => authorizationRequest,
    answers: {},
    keys,
    metadata: {},
    claims: (claims) => claims,
    idToken: (claims) => signedWith(keys[0]!, claims),
    tokens: (answer) => answer,
    userinfo: { sub: 'anna' },
    response: () => undefined,
    logoutToken: (over = {}, header = {}) => {
      const now = seconds()
      const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
      const jti = randomBytes(8).toString('hex')
      // Safe: a wrong claim is what a test wants
      const claims = { iss: provider.issuer, aud: 'shop', iat: now, exp: now + 120, jti, events, ...over } as JWTPayload
      return signedWith(keys[0]!, claims, { typ: 'logout+jwt', ...header })
    },
    stop,
    start,
  }
  return provider
}

export { SECRET }
