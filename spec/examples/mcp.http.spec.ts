/**
 * The example of an MCP server: the official client is refused, finds the authorization server, and calls a tool with a
 * token.
 */
import {
  Client,
  ClientCredentialsProvider,
  discoverOAuthProtectedResourceMetadata,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { application } from '../../examples/mcp/app.js'
import { authorizationServer, CLIENT } from '../support/servers/authorizationServer.js'
import { ask, reserved } from '../support/servers/server.js'

const serving = async () => {
  const authorization = await authorizationServer()
  const { port, serve } = await reserved()
  const origin = `http://127.0.0.1:${port}`
  const resource = `${origin}/mcp`
  serve(application({ issuer: authorization.issuer, resource }).callback())
  const clientWith = async (transport: StreamableHTTPClientTransport) => {
    const client = new Client({ name: 'test', version: '1.0.0' })
    onTestFinished(() => client.close())
    await client.connect(transport)
    return client
  }
  const bearer = (token: string) =>
    new StreamableHTTPClientTransport(new URL(resource), {
      requestInit: { headers: { Authorization: `Bearer ${token}` } },
    })
  return { authorization, origin, resource, clientWith, bearer }
}

describe('examples/mcp', () => {
  it('refuses a client without a token, and the 401 leads to the metadata', async () => {
    const { authorization, origin, resource, clientWith } = await serving()
    await expect(clientWith(new StreamableHTTPClientTransport(new URL(resource)))).rejects.toThrow()
    const { status, challenge } = await ask(resource, { method: 'POST', body: '{}' })
    const url = `${origin}/.well-known/oauth-protected-resource/mcp`
    expect([status, challenge]).toEqual([401, `Bearer realm="api", resource_metadata="${url}", scope="notes:read"`])
    expect(await discoverOAuthProtectedResourceMetadata(resource, { resourceMetadataUrl: url })).toMatchObject({
      resource,
      authorization_servers: [authorization.issuer],
      scopes_supported: ['notes:read', 'notes:write'],
      resource_name: 'Notes',
    })
  })

  it('lets the client find the authorization server, get a token for this resource, and list and call a tool', async () => {
    const { authorization, resource, clientWith } = await serving()
    const authProvider = new ClientCredentialsProvider({
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      scope: 'notes:read',
      expectedIssuer: authorization.issuer,
    })
    const client = await clientWith(new StreamableHTTPClientTransport(new URL(resource), { authProvider }))
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['whoami', 'save_note'])
    expect(await client.callTool({ name: 'whoami' })).toMatchObject({
      content: [{ text: `${CLIENT.id} by ${CLIENT.id}` }],
    })
    expect(authorization.asked).toContain('POST /token')
  })

  it('refuses a tool that needs more scopes than the token has, and runs it with them', async () => {
    const { authorization, resource, clientWith, bearer } = await serving()
    const reading = await clientWith(bearer(await authorization.token(resource, 'notes:read')))
    await expect(reading.callTool({ name: 'save_note' })).rejects.toThrow(/scope/i)
    const writing = await clientWith(bearer(await authorization.token(resource, 'notes:read notes:write')))
    expect(await writing.callTool({ name: 'save_note' })).toMatchObject({ content: [{ text: '1 saved' }] })
  })

  it('refuses a token of another audience', async () => {
    const { authorization, origin, clientWith, bearer, resource } = await serving()
    for (const other of ['https://other.example/mcp', origin]) {
      const token = await authorization.token(other, 'notes:read')
      await expect(clientWith(bearer(token))).rejects.toThrow()
      const { status, challenge } = await ask(resource, {
        method: 'POST',
        body: '{}',
        headers: { Authorization: `Bearer ${token}` },
      })
      expect(status).toBe(401)
      expect(challenge).toContain('error="invalid_token"')
    }
  })

  it('refuses a page of an origin that is not allowed, with and without a token', async () => {
    const { authorization, resource } = await serving()
    const token = await authorization.token(resource, 'notes:read')
    for (const method of ['GET', 'POST', 'DELETE']) {
      const headers = { Authorization: `Bearer ${token}`, Origin: 'https://evil.example' }
      expect((await ask(resource, { method, headers })).status).toBe(403)
    }
  })
})
