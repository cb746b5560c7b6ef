/** Scopes for each tool of an MCP server, from its header fields, and what its document says about bound tokens. */
import Koa from 'koa'
import { allOf, also, apiKeyHeader, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { httpJwt, mcpScopes, protectedResource } from 'koa-with-auth/jwt'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import Router from '@koa/router'
import { describe, expect, it } from 'vitest'
import { pollute } from '../support/runs/pollute.js'
import { API, identityProvider } from '../support/servers/identityProvider.js'
import { sendLines } from '../support/sites/guardedApp.js'
import { ask, listen } from '../support/servers/server.js'
import { tokenSite } from '../support/sites/tokenSite.js'

const rules = {
  'tools/call': { 'files.write': ['files:write', 'files:read'], größe: ['size'], '*': [] },
  'resources/read': { 'file:///a': ['files:read'] },
  'prompts/get': { '*': ['prompts'] },
}

const site = async () => {
  const provider = await identityProvider()
  const jwt = httpJwt({ issuer: provider.issuer, audience: API })
  const served = await tokenSite(mcpScopes(rules)(jwt))
  const call = async (scope: string, fields: Record<string, string>, method = 'POST') =>
    served.get(await provider.token({ scope }), fields, method)
  return { ...served, provider, call }
}

describe('mcpScopes', () => {
  it('names all missing scopes in one challenge, and none that is there', async () => {
    const { call } = await site()
    const fields = { 'mcp-method': 'tools/call', 'mcp-name': 'files.write' }
    const none = await call('other', fields)
    expect([none.status, none.ran]).toEqual([403, 0])
    expect(none.challenge).toBe('Bearer realm="api", error="insufficient_scope", scope="files:write files:read"')
    const half = await call('files:read', fields)
    expect(half.challenge).toContain('scope="files:write"')
    const unlisted = await call('files:read', { 'mcp-method': 'resources/read', 'mcp-name': 'file:///b' })
    expect(unlisted.challenge).toBe('Bearer realm="api", error="insufficient_scope"')
    const both = await call('files:read files:write', fields)
    expect([both.status, both.ran]).toEqual([200, 1])
  })

  it.each<[string, number, method?: string | undefined, name?: string | undefined, http?: string]>([
    ['a method that is no key', 200, 'ping'],
    ['a name that only * lists', 200, 'tools/call', 'other'],
    ['a name that only * lists, with scopes', 403, 'prompts/get', 'other'],
    ['a name that is not listed, without *', 403, 'resources/read', 'file:///b'],
    ['an inherited name', 403, 'resources/read', 'constructor'],
    ['an inherited method', 200, 'toString', 'x'],
    ['* as a name', 403, 'resources/read', '*'],
    ['a POST without Mcp-Method', 400],
    ['a POST without the name', 400, 'tools/call'],
    ['an empty name', 400, 'tools/call', ''],
    ['a GET, which opens a stream', 200, undefined, undefined, 'GET'],
    ['base64 of a name with scopes', 403, 'tools/call', '=?base64?Z3LDtsOfZQ==?='],
    ['base64 of an ASCII name', 403, 'tools/call', '=?base64?ZmlsZXMud3JpdGU=?='],
    ['base64 of no UTF-8', 400, 'tools/call', '=?base64?/w==?='],
    ['base64 behind something, which is a name', 200, 'tools/call', 'a=?base64?ZmlsZXMud3JpdGU=?='],
    ['base64 that is none', 400, 'tools/call', '=?base64?Z3L?='],
  ])('%s', async (_case, status, method, name, http) => {
    const { call } = await site()
    const named = Object.entries({ 'mcp-method': method, 'mcp-name': name })
    const fields = Object.fromEntries(named.flatMap(([field, value]) => (value === undefined ? [] : [[field, value]])))
    const answer = await call('other', fields, http)
    expect([answer.status, answer.ran]).toEqual([status, status === 200 ? 1 : 0])
  })

  it('R09 an inherited * lists no name', async () => {
    const { call } = await site()
    pollute({ '*': [] })
    const answer = await call('other', { 'mcp-method': 'resources/read', 'mcp-name': 'file:///b' })
    expect([answer.status, answer.ran]).toEqual([403, 0])
  })

  it('a field twice is a 400, and without a token it is a 401 first', async () => {
    const { port, provider, ran } = await site()
    const token = await provider.token({ scope: 'files:write files:read' })
    for (const field of ['Mcp-Method: ping', 'Mcp-Name: files.write']) {
      const twice = ['Mcp-Method: tools/call', 'Mcp-Name: other', field]
      expect((await sendLines(port, 'POST /me', [`Authorization: Bearer ${token}`, ...twice])).status).toBe(400)
      expect((await sendLines(port, 'POST /me', twice)).status).toBe(401)
    }
    expect(ran()).toBe(0)
  })

  it('is in the audit, and for a credential that says no scopes it is a 403', async () => {
    const key = apiKeyHeader({ authenticate: () => ({ name: 'key' }) })
    const router = new Router().post('/mcp', withAuth(mcpScopes(rules)(key)), () => {})
    expect(audit(router).operations[0]?.protection).toContain(
      'mcpScopes tools/call (files.write: files:write files:read; größe: size; *: none), resources/read (',
    )
    const { url } = await listen(new Koa().use(router.routes()))
    const headers = { key: 'k', 'mcp-method': 'tools/call', 'mcp-name': 'files.write' }
    expect((await ask(`${url}/mcp`, { method: 'POST', headers })).status).toBe(403)
  })

  it('reads the scopes of an API key', async () => {
    const { issue, authenticate } = apiKeys({ prefix: 'acme', store: memoryStore() })
    const { get } = await tokenSite(mcpScopes(rules)(apiKeyHeader({ authenticate })))
    const statusOf = async (scopes: ReadonlyArray<string>) => {
      const { key } = await issue({ owner: 'anna', scopes })
      const headers = { key, 'mcp-method': 'tools/call', 'mcp-name': 'files.write' }
      return (await get(undefined, headers, 'POST')).status
    }
    expect([await statusOf(['files:write', 'files:read']), await statusOf(['files:write'])]).toEqual([200, 403])
  })

  it('asks for the scopes of its own credential, not of a token that is needed beside it or by a level', async () => {
    const provider = await identityProvider()
    const agent = httpJwt({ issuer: provider.issuer, audience: API })
    const key = mcpScopes(rules)(apiKeyHeader({ authenticate: () => ({ name: 'key' }) }))
    let ran = 0
    const run = (ctx: Koa.Context) => {
      ran += 1
      ctx.body = 'ran'
    }
    const router = new Router()
      .post('/both', withAuth(allOf({ agent, key })), run)
      .use('/level', withAuth(agent)(new Router().post('/also', withAuth(also(key)), run)).routes())
    const { url } = await listen(new Koa().use(router.routes()))
    const authorization = `Bearer ${await provider.token({ scope: 'files:write files:read' })}`
    const headers = { authorization, key: 'k', 'mcp-method': 'tools/call', 'mcp-name': 'files.write' }
    for (const path of ['/both', '/level/also']) {
      expect((await ask(`${url}${path}`, { method: 'POST', headers })).status).toBe(403)
    }
    expect(ran).toBe(0)
  })

  it.each([[{}], [{ x: 1 }], [{ x: { y: 'z' } }], [{ x: { y: ['a b'] } }], [{ x: new Map() }], [null]])(
    '%j is a TypeError',
    (wrong) => {
      expect(() => mcpScopes(wrong as never)).toThrow(TypeError)
    },
  )
})

describe('the document of a protected resource', () => {
  it('says how tokens are bound, from the value that checks them (RFC 9728 §2)', async () => {
    const resource = protectedResource({ resource: API, authorizationServers: 'https://login.example' })
    const dpop = { spent: { use: async () => true }, origin: API }
    httpJwt({ issuer: 'https://login.example', protectedResource: resource, bound: { dpop, required: true } })
    const { url } = await listen(new Koa().use(resource.metadata))
    const answer = await ask(`${url}/.well-known/oauth-protected-resource`)
    expect(JSON.parse(answer.text)).toEqual({
      resource: API,
      authorization_servers: ['https://login.example'],
      bearer_methods_supported: ['header'],
      dpop_bound_access_tokens_required: true,
      dpop_signing_alg_values_supported: expect.arrayContaining(['ES256']) as unknown,
    })
  })

  it('offline_access is not a scope of a resource', () => {
    const options = { resource: API, authorizationServers: 'https://login.example', scopes: ['a', 'offline_access'] }
    expect(() => protectedResource(options)).toThrow(/not a scope of a resource/)
  })
})
