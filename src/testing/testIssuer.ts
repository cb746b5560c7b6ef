/**
 * An issuer of tokens for tests, on loopback: `httpJwt` finds it by discovery, and fetches its keys by real HTTP. `oidc` signs users in
 * with it, `upstream` refreshes their tokens, and `exchange` exchanges them. So no test needs a key in a file, nor a mock of a provider.
 */
import { generateKeyPairSync, hash, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { unlessThrown } from '../core/data.js'

/** An issuer for the time of a test. */
export interface TestIssuer {
  /** Its name, such as `http://127.0.0.1:40123`: for `httpJwt({ issuer })`, and the `iss` of its tokens. */
  readonly issuer: string
  /**
   * A token, signed with ES256 by the newest key. `iss`, `sub`, `iat` and `exp` (in five minutes) are written unless `claims` has others;
   * a claim that is `undefined` is left out. Name `aud` yourself.
   */
  readonly token: (claims?: Readonly<Record<string, unknown>>) => string
  /** Replaces the key. The old key is no longer published, so tokens signed before are refused once the new keys are fetched. */
  readonly rotate: () => void
  /** The user of the next sign-in by `oidc`: the issuer signs this user in without questions. At first `user`. */
  subject: string
  /** How long access tokens of a sign-in and of a refresh last, in seconds. At first 300. */
  expiresIn: number
  /** The answer of the token endpoint instead of tokens: an error of RFC 6749 §5.2 such as `invalid_grant`, or a status such as 503. */
  failWith: string | number | undefined
  /** The requests that the token endpoint got: their parameters. */
  readonly tokenRequests: ReadonlyArray<Readonly<Record<string, string>>>
  /** The tokens that were revoked (RFC 7009). */
  readonly revoked: ReadonlyArray<string>
  /** Stops it: its keys cannot be fetched any more. */
  readonly stop: () => Promise<void>
}

/** The grant of a sign-in, to the client that sends the code or the refresh token. */
interface IssuedGrant {
  readonly subject: string
  readonly nonce?: string | undefined
  readonly client: string
  readonly scope: string
  /** That of PKCE (RFC 7636). */
  readonly challenge?: string | undefined
}

const TOKEN_LIFETIME = 300

const newSigningKey = () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const kid = randomUUID()
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' } }
}

/**
 * Starts an issuer on a free port of the loopback address. It keeps no process alive. Stop it at the end of the test, or to cause an
 * outage.
 *
 * @example
 * import { httpJwt } from 'koa-with-auth/jwt'
 * import { mockRequest, testIssuer } from 'koa-with-auth/testing'
 *
 * const { issuer, token, stop } = await testIssuer()
 * const jwt = httpJwt({ issuer, audience: 'https://api.example' })
 * const fields = [['Authorization', `Bearer ${token({ aud: 'https://api.example', sub: 'anna' })}`]] as const
 * const result = await jwt.evaluate(mockRequest({ fields }))
 * assert.strictEqual(result._tag, 'Right')
 * await stop()
 */
export const testIssuer = async (): Promise<TestIssuer> => {
  const self = newIssuer()
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json')
    const answer = answerRequest(self, request)
    if (answer instanceof Promise) void answer.then(({ status, body }) => response.writeHead(status).end(body))
    else response.writeHead(answer.status, answer.fields).end(answer.body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  // Safe: it listens on a port
  self.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(self, {
    token: (claims: Readonly<Record<string, unknown>> = {}) => issueToken(self, claims),
    rotate: () => {
      self.key = newSigningKey()
    },
    stop: async () => {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  })
}

const newIssuer = () => ({
  issuer: '',
  key: newSigningKey(),
  subject: 'user',
  expiresIn: TOKEN_LIFETIME,
  // Safe: nothing fails at first
  failWith: undefined as string | number | undefined,
  // Safe: they are empty
  tokenRequests: [] as Record<string, string>[],
  // Safe: it is empty
  revoked: [] as string[],
  /** Codes and refresh tokens, each good for one use. */
  granted: new Map<string, IssuedGrant>(),
})

type IssuerState = ReturnType<typeof newIssuer>

interface IssuerAnswer {
  readonly status: number
  readonly body?: string
  readonly fields?: Readonly<Record<string, string>>
}

const json = (value: object, status = 200): IssuerAnswer => ({ status, body: JSON.stringify(value) })

const tokenPart = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const issueToken = (
  { issuer, key: { kid, privateKey } }: IssuerState,
  claims: Readonly<Record<string, unknown>>,
): string => {
  const now = Math.floor(Date.now() / 1000)
  const all = { iss: issuer, sub: 'user', iat: now, exp: now + TOKEN_LIFETIME, ...claims }
  const input = `${tokenPart({ alg: 'ES256', kid, typ: 'JWT' })}.${tokenPart(all)}`
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

const granting = (self: IssuerState, granted: IssuedGrant): string => {
  const id = randomUUID()
  self.granted.set(id, granted)
  return id
}

const answerRequest = (self: IssuerState, request: IncomingMessage): IssuerAnswer | Promise<IssuerAnswer> => {
  const { issuer, key } = self
  const { pathname, searchParams } = new URL(request.url ?? '/', issuer)
  if (pathname === '/jwks') return json({ keys: [key.jwk] })
  if (pathname === '/token' && request.method === 'POST') {
    return text(request).then((body) => answerToken(self, request, new URLSearchParams(body)))
  }
  if (pathname === '/revoke' && request.method === 'POST') {
    return text(request).then((body) => {
      const token = new URLSearchParams(body).get('token') ?? ''
      self.granted.delete(token)
      self.revoked.push(token)
      return { status: 200 }
    })
  }
  if (pathname === '/authorize') return { status: 302, fields: { Location: authorized(self, searchParams) } }
  if (!/^\/\.well-known\/(?:oauth-authorization-server|openid-configuration)$/.test(pathname)) return json({}, 404)
  return json({
    issuer,
    jwks_uri: `${issuer}/jwks`,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    revocation_endpoint: `${issuer}/revoke`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  })
}

// Everybody is signed in, without questions
const authorized = (self: IssuerState, asked: URLSearchParams): string => {
  const sent = (name: string): string | undefined => asked.get(name) ?? undefined
  const redirect = new URL(sent('redirect_uri') ?? self.issuer)
  const [client = '', scope = '', nonce, challenge] = ['client_id', 'scope', 'nonce', 'code_challenge'].map(sent)
  redirect.searchParams.set('code', granting(self, { subject: self.subject, nonce, client, scope, challenge }))
  redirect.searchParams.set('state', sent('state') ?? '')
  return redirect.href
}

const requestClient = ({ headers }: IncomingMessage, sent: URLSearchParams): string => {
  const basic = /^Basic (.+)$/i.exec(headers.authorization ?? '')?.[1]
  const [id = ''] = Buffer.from(basic ?? '', 'base64')
    .toString()
    .split(':', 1)
  return basic === undefined ? (sent.get('client_id') ?? '') : decodeURIComponent(id)
}

const claimsIn = (token: string): Record<string, unknown> | undefined =>
  // Safe: the claims of a token are an object
  unlessThrown(
    () => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>,
  )

// A code and a refresh token are good once; a subject token is one of this issuer
const answerToken = (self: IssuerState, request: IncomingMessage, sent: URLSearchParams): IssuerAnswer => {
  self.tokenRequests.push(Object.fromEntries(sent))
  const { failWith } = self
  if (typeof failWith === 'number') return json({}, failWith)
  if (failWith !== undefined) return json({ error: failWith }, 400)
  const issued = { token_type: 'Bearer', expires_in: self.expiresIn }
  if (sent.get('grant_type') === 'urn:ietf:params:oauth:grant-type:token-exchange') {
    const subject = claimsIn(sent.get('subject_token') ?? '')
    if (subject === undefined) return json({ error: 'invalid_request' }, 400)
    const { sub, exp } = subject
    const aud = sent.get('audience') ?? sent.get('resource') ?? undefined
    const access = issueToken(self, { sub, aud, exp, scope: sent.get('scope') ?? undefined })
    return json({ ...issued, access_token: access, issued_token_type: sent.get('requested_token_type') })
  }
  const id = sent.get('code') ?? sent.get('refresh_token') ?? ''
  const granted = self.granted.get(id)
  const client = requestClient(request, sent)
  if (granted === undefined || granted.client !== client) return json({ error: 'invalid_grant' }, 400)
  self.granted.delete(id)
  const { subject, nonce, scope, challenge } = granted
  if (challenge !== undefined && challenge !== hash('sha256', sent.get('code_verifier') ?? '', 'base64url')) {
    return json({ error: 'invalid_grant' }, 400)
  }
  return json({
    ...issued,
    access_token: issueToken(self, { sub: subject, scope, jti: randomUUID() }),
    refresh_token: granting(self, { subject, client, scope }),
    scope,
    ...(sent.has('code') && { id_token: issueToken(self, { sub: subject, aud: client, nonce }) }),
  })
}
