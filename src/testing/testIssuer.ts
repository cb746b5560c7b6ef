/**
 * An issuer of tokens for tests, on loopback: `httpJwt` finds it by discovery, and fetches its keys by real HTTP. So no test needs a
 * key in a file, nor a mock of a provider.
 */
import { generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An issuer for the time of a test. */
export interface TestIssuer {
  /** Its name, such as `http://127.0.0.1:40123`: for `httpJwt({ issuer })`, and the `iss` of its tokens. */
  readonly issuer: string
  /**
   * A token, signed with ES256 by the newest key. `iss`, `sub`, `iat` and `exp` (in five minutes) are written unless `claims` has others;
   * a claim that is `undefined` is left out. Name `aud` yourself.
   */
  readonly token: (claims?: Readonly<Record<string, unknown>>) => string
  /** Replaces the key. The old one is no longer published, so tokens signed before are refused once the new keys are fetched. */
  readonly rotate: () => void
  /** Stops it: its keys cannot be fetched any more. */
  readonly stop: () => Promise<void>
}

interface SigningKey {
  readonly kid: string
  readonly privateKey: KeyObject
  readonly jwk: object
}

const LIFETIME = 300

const newKey = (): SigningKey => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const kid = randomUUID()
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' } }
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const signed = (claims: object, { kid, privateKey }: SigningKey): string => {
  const input = `${part({ alg: 'ES256', kid, typ: 'JWT' })}.${part(claims)}`
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

/**
 * Starts an issuer on a free port of the loopback address. It keeps no process alive. Stop it at the end of the test, or to see what an
 * outage does.
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
  let key = newKey()
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json')
    if (request.url === '/jwks') return void response.end(JSON.stringify({ keys: [key.jwk] }))
    const isDocument = /^\/\.well-known\/(?:oauth-authorization-server|openid-configuration)$/.test(request.url ?? '')
    if (!isDocument) return void response.writeHead(404).end('{}')
    response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/jwks` }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  // Safe: it listens on a port
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    issuer,
    token: (claims = {}) => {
      const now = Math.floor(Date.now() / 1000)
      return signed({ iss: issuer, sub: 'user', iat: now, exp: now + LIFETIME, ...claims }, key)
    },
    rotate: () => {
      key = newKey()
    },
    stop: async () => {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
