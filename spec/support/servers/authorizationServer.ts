/** `oidc-provider` on loopback: it issues real access tokens to a client, JSON Web Tokens or opaque ones. */
import { exportJWK } from 'jose'
import { Provider } from 'oidc-provider'
import { signingKey } from './identityProvider.js'
import { restartable } from './server.js'

export const CLIENT = { id: 'app', secret: 'a-secret-of-the-client' }

/** The client that asks about opaque tokens. Form encoding changes its id and secret. */
export const RESOURCE_SERVER = { id: 'the api', secret: 'a+b%&=: c' }

/** Runs until the test has finished. `asked` has the requests that it got, as `GET /path`. */
export const authorizationServer = async (format: 'jwt' | 'opaque' = 'jwt', alg = 'ES256') => {
  const asked: string[] = []
  const state: { provider?: Provider } = {}
  const { origin: issuer } = await restartable((req, res) => {
    asked.push(`${req.method} ${req.url}`)
    state.provider?.callback()(req, res)
  })
  const { privateKey } = await signingKey(alg, 'k1')
  state.provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'k1', alg, use: 'sig' }] },
    clients: [
      { client: CLIENT, grant_types: ['client_credentials'] },
      { client: RESOURCE_SERVER, grant_types: [] },
    ].map(({ client, grant_types }) => ({
      client_id: client.id,
      client_secret: client.secret,
      grant_types,
      redirect_uris: [],
      response_types: [],
      id_token_signed_response_alg: alg,
    })),
    scopes: ['notes:read', 'notes:write'],
    ttl: { ClientCredentials: 600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx: unknown, resource: string) => ({
          scope: 'notes:read notes:write',
          audience: resource,
          accessTokenTTL: 600,
          accessTokenFormat: format,
          ...(format === 'jwt' && { jwt: { sign: { alg } } }),
        }),
      },
    },
  })
  const form = (value: string) => new URLSearchParams({ '': value }).toString().slice(1)
  const basic = Buffer.from(`${form(CLIENT.id)}:${form(CLIENT.secret)}`).toString('base64')
  /** The access token that the server issues to the client. */
  const token = async (resource: string, scope: string): Promise<string> => {
    const response = await fetch(`${issuer}/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${basic}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope }),
    })
    const answer = (await response.json()) as { access_token?: string }
    if (answer.access_token === undefined) throw new Error(JSON.stringify(answer))
    return answer.access_token
  }
  return { issuer, token, asked }
}
